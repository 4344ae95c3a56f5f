"""What hosts said in a course, with the lab's time: their kernels' warnings and errors, and their programs' logs.

A host's log has times of the host's own clocks. They are late by the host's phase and its pauses, begin anew with its
kernel, and are off while a fault steps them; all that is known. So each line gets its moment of the lab's time, as
exact as the line's own time is: a kernel's is exact to 10 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from minigts import paths
from minigts.explore import outcome, stamps
from minigts.explore.faults import Fault
from minigts.explore.histories import HostClocks
from minigts.explore.timeline import SAID, Entry
from minigts.foreign import UNPRINTABLE
from minigts.lab.events import Event
from minigts.language import documents
from minigts.providers.uml.run.console import STARTED
from minigts.topology.plan.plan import Plan

FILE = "said.jsonl"
KERNEL = "kernel"
WARNINGS = "warnings.log"
"""The file with warnings and errors of the kernel that runs last, among a host's logs."""
WARNINGS_ARGV = ("dmesg", "--level", "emerg,alert,crit,err,warn")
ALIKE, LONGEST = 3, 400
"""How many lines of a log that differ by their numbers alone are shown, and how many characters of each."""
BOOT_NS = 100_000_000
"""A kernel's lines of its first 0.1 s tell of this machine, and are the same at each start."""
SLACK_NS = 10_000_000
_OF_A_KERNEL = re.compile(r"^(?:<\d+>)?\[ *(\d+)\.(\d{6})\] (.*)$")
NS_PER_S = 10**9


@dataclass(frozen=True)
class Period:
    """The time of a course: `begin_ns` to `end_ns` of the lab's clock, at whose zero it was `epoch_ns` on hosts. In
    real time both are the time of day."""

    begin_ns: int
    end_ns: int
    epoch_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / NS_PER_S


class Clocks:
    """Turns times of day of hosts into the lab's time. `steps` are the moments, in the lab's nanoseconds, at which a
    host's time of day was stepped, and by how much."""

    def __init__(self, of_hosts: HostClocks, period: Period, steps: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self._of_hosts, self._period, self._steps = of_hosts, period, steps

    def lab_ns(self, host: str, day_ns: int, since_ns: int) -> int | None:
        """The lab's time at which it was `day_ns` on the host. If it was that twice, the first time from `since_ns` on;
        None if it never was."""
        possible = sorted(self._possible_ns(host, day_ns))
        later = [each for each in possible if each >= since_ns]
        return later[0] if later else possible[-1] if possible else None

    def convert_kernel_ns(self, host: str, own_ns: int, start: int) -> int:
        return self._of_hosts.lab_ns(host, own_ns, start, of_log=True)

    def starts(self, host: str) -> int:
        return len(self._of_hosts.starts_ns(host))

    def _possible_ns(self, host: str, day_ns: int) -> Iterator[int]:
        starts_ns = self._of_hosts.starts_ns(host)
        for start, began_ns in enumerate(starts_ns):
            # The first kernel's time of day is late by the host's phase; one that is started later has the lab's.
            zero_ns = self._period.epoch_ns + (began_ns if start else 0)
            last_ns = starts_ns[start + 1] if start + 1 < len(starts_ns) else None
            by_ns, from_ns = 0, began_ns
            steps = [
                each for each in self._steps.get(host, ()) if began_ns <= each[0] and (not last_ns or each[0] < last_ns)
            ]
            for until_ns, step_ns in [*steps, (last_ns, 0)]:
                found_ns = self._of_hosts.lab_ns(host, day_ns - zero_ns - by_ns, start)
                if from_ns - SLACK_NS <= found_ns and (until_ns is None or found_ns < until_ns + SLACK_NS):
                    yield found_ns
                by_ns, from_ns = by_ns + step_ns, until_ns or from_ns


def clocks(
    plan: Plan, happened: Iterable[Event], drawn: Sequence[Fault], played: Sequence[Entry], period: Period
) -> Clocks:
    """The clocks of a course's hosts. `drawn` are its faults, and `played` is its time line, which says when they began
    and ended."""
    by_number = {fault.number: fault for fault in drawn if fault.kind == "clock-skew"}
    steps: dict[str, list[tuple[int, int]]] = {}
    for entry in played:
        number, at_s = entry.get("number"), entry["at_s"]
        if entry["event"] not in ("fault", "fault over") or number not in by_number or not isinstance(at_s, float):
            continue
        fault = by_number[number]
        by_ns = round(fault.amount * NS_PER_S) * (1 if entry["event"] == "fault" else -1)
        steps.setdefault(fault.machines[0], []).append((period.begin_ns + round(at_s * NS_PER_S), by_ns))
    return Clocks(HostClocks(plan, happened), period, steps)


def entries(logs: Mapping[str, Mapping[str, str]], of: Clocks, period: Period) -> list[Entry]:
    """The lines of hosts' logs within the period, in the order of time. `logs` are texts by host and file."""
    found = [
        (at_ns, host, log, number, text)
        for host, files in logs.items()
        for log, lines in _of_a_host(host, files, of).items()
        for number, (at_ns, text) in enumerate(_few(lines, period))
    ]
    return [
        {"at_s": round((at_ns - period.begin_ns) / NS_PER_S, 6), "event": SAID, "host": host, "log": log, "text": text}
        for at_ns, host, log, _, text in sorted(found)
    ]


def _of_a_host(host: str, files: Mapping[str, str], of: Clocks) -> dict[str, list[tuple[int, str]]]:
    """The lines of a host with their times, by the log's name. What earlier kernels said, and one that does not answer
    any more, is on the console alone: errors, but no warnings."""
    last = of.starts(host) - 1
    kernels = dict(enumerate(files.get(paths.CONSOLE_LOG, "").split(STARTED.decode())[: last + 1]))
    if WARNINGS in files:
        kernels[last] = files[WARNINGS]
    lines = {KERNEL: [each for start, text in kernels.items() for each in _of_a_kernel(host, text, of, start)]}
    for name, text in files.items():
        if name not in (paths.CONSOLE_LOG, WARNINGS, "dmesg.log"):
            lines[name.removesuffix(".log")] = _of_a_program(host, text, of)
    return lines


def _of_a_kernel(host: str, text: str, of: Clocks, start: int) -> list[tuple[int, str]]:
    found = []
    for line in text.splitlines():
        if told := _OF_A_KERNEL.match(line):
            own_ns = int(told[1]) * NS_PER_S + int(told[2]) * 1000
            if own_ns >= BOOT_NS:
                found.append((of.convert_kernel_ns(host, own_ns, start), told[3]))
    return found


def _of_a_program(host: str, text: str, of: Clocks) -> list[tuple[int, str]]:
    """A program's lines. One without a time, such as of a traceback, belongs to the line before it."""
    found: list[tuple[int, str]] = []
    for whole in text.splitlines():
        line, day_ns = _words(whole), stamps.time_of_day_ns(whole)
        before_ns = found[-1][0] if found else 0
        at_ns = before_ns if day_ns is None else of.lab_ns(host, day_ns, before_ns)
        if at_ns is not None and (found or day_ns is not None):
            found.append((at_ns, line))
    return found


def _words(line: str) -> str:
    """`{"log":"it began\\n","stream":"stdout","time":"2026-…Z"}` of a container's log → `it began`."""
    if line.startswith(stamps.OF_A_CONTAINER):
        with suppress(ValueError, TypeError, KeyError):
            return str(documents.document(line)["log"])
    return line


def _few(lines: Iterable[tuple[int, str]], period: Period) -> list[tuple[int, str]]:
    """The period's lines for people: of those that are alike the first, and in the last of these how many more."""
    kept: list[tuple[int, str]] = []
    places: dict[str, list[int]] = {}
    more: dict[str, int] = {}
    for at_ns, line in lines:
        if not period.begin_ns <= at_ns <= period.end_ns:
            continue
        text = " ".join(UNPRINTABLE.sub(" ", line).split())[:LONGEST]
        kind = outcome.alike(text)
        if len(places.setdefault(kind, [])) == ALIKE:
            more[kind] = more.get(kind, 0) + 1
            continue
        places[kind].append(len(kept))
        kept.append((at_ns, text))
    for kind, number in more.items():
        at_ns, text = kept[places[kind][-1]]
        kept[places[kind][-1]] = at_ns, f"{text} (and {number} more like it)"
    return kept
