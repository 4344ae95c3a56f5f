"""Finds in a build's log why the build failed, and says what to do. Pure."""

from __future__ import annotations

import re

from minigts.errors import redact
from minigts.foreign import Foreign, parser_text, printable

FULL = "No space left on device"
"""Appears in the log when a disk is full."""
UNREACHABLE = "Failed to fetch|Could not resolve|Could not connect|Unable to connect"
"""Appears in the log when the Debian mirror does not answer."""
NO_SOURCE = re.compile(r"^error: no source: (.*)", re.MULTILINE)
"""A line of provision/debian.sh when no place had the source; it says why each place was passed over."""
LOG_LINES = 8
TAKEN = "source: "
"""The prefix of lines that say where a build took a source from, or which place it passed over and why."""


def sources(log: str) -> tuple[str, ...]:
    """The log's lines about sources, without their prefix."""
    return tuple(line.removeprefix(TAKEN) for line in log.splitlines() if line.startswith(TAKEN))


def cause(said: Foreign, room: str) -> str:
    """The cause of the failure if the log shows a known one, otherwise the log's last lines. `room` says how much room
    the build needs, and where."""
    log = parser_text(said)
    if re.search(FULL, log):
        return f"the disk is full; this step needs {room}"
    if told := NO_SOURCE.search(log):
        return printable(told[1])
    if re.search(UNREACHABLE, log):
        return "its Debian mirror does not answer; look at the network, or name another one in MINIGTS_DEBIAN_MIRROR"
    return "its log ends with" + "".join(f"\n    {printable(redact(line))}" for line in log.splitlines()[-LOG_LINES:])
