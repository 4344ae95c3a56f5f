"""Reads the times that programs write into their logs. Pure.

    2026-01-01T00:00:05.123456789Z        RFC 3339, at the beginning of a line or within it: Docker, etcd, Open vSwitch
    2026-01-01 00:00:05.123               PostgreSQL, BIRD; 2026/01/01 00:00:05 of FRRouting, nginx and Go
    157:M 01 Jan 2026 00:00:05.123 *      Valkey, Redis
    I0101 00:00:05.123456                 Kubernetes (klog)
    01/Jan/2026:00:00:05 +0000            web servers' accesses
    Jan  1 00:00:05                       syslog

A time without a zone is UTC, as on the lab's hosts, and one without a year is of the year in which a lab begins.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

YEAR = 2026
FAR = 160
"""A time further along a line than this many characters belongs to what the line is about."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?P<month>[A-Z][a-z]{2})"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9})\d*)?"
_ZONE = r"(?: ?(?P<zone>Z|[+-]\d\d:?\d\d))?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?<!\d)(?P<year>\d{{4}})[-/](?P<number>\d\d)[-/](?P<day>\d\d)[T ]{_TIME}{_ZONE}",
        rf"(?<!\d)(?P<day>\d\d?) {_MONTH} (?P<year>\d{{4}}) {_TIME}",
        rf"^[IWEF](?P<number>\d\d)(?P<day>\d\d) {_TIME}",
        rf"(?<!\d)(?P<day>\d\d)/{_MONTH}/(?P<year>\d{{4}}):{_TIME}{_ZONE}",
        rf"^(?:<\d+>)?{_MONTH} +(?P<day>\d\d?) {_TIME}",
    )
)
_BEGAN = datetime(1970, 1, 1, tzinfo=UTC)
OF_A_CONTAINER = '{"log":'
"""What a line of a container's log (Docker's json-file) begins with."""
_TIME_OF_A_CONTAINER = '"time":"'
"""What stands in front of its time, at the line's end."""


def time_of_day_ns(line: str) -> int | None:
    """The first time in a line, in nanoseconds since 1970; None if it has none."""
    at = line.rfind(_TIME_OF_A_CONTAINER) if line.startswith(OF_A_CONTAINER) else -1
    text = line[at + len(_TIME_OF_A_CONTAINER) :] if at >= 0 else line[:FAR]
    for form in _FORMS:
        if found := form.search(text):
            with suppress(ValueError, OverflowError):
                return _ns(found.groupdict())
    return None


def _ns(words: dict[str, str | None]) -> int:
    name = (words.get("month") or "").lower()
    month = MONTHS.index(name) + 1 if name else int(words.get("number") or 0)
    day, hour, minute, second = (int(words[word] or 0) for word in ("day", "hour", "minute", "second"))
    moment = datetime(int(words.get("year") or YEAR), month, day, hour, minute, second, tzinfo=UTC)
    whole_s = (moment - _east_of_utc(words.get("zone") or "Z") - _BEGAN) // timedelta(seconds=1)
    return whole_s * 10**9 + int((words.get("part") or "0").ljust(9, "0"))


def _east_of_utc(zone: str) -> timedelta:
    """`+09:00` or `+0900` → nine hours."""
    if zone == "Z":
        return timedelta()
    digits = zone[1:].replace(":", "")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -ahead if zone[0] == "-" else ahead
