"""Why something could not be built: what a build's log says, in words that help. Pure."""

from __future__ import annotations

import re

from minigts.errors import without_secrets

FULL = "No space left on device"
UNREACHABLE = "Failed to fetch|Could not resolve|Could not connect|Unable to connect"
"""What the log says when a disk is full, when the mirror does not answer."""
NO_SOURCE = re.compile(r"^error: no source: (.*)", re.MULTILINE)
"""A sentence of provision/debian.sh: every place was tried, and why each was passed over."""
LOG_LINES = 8
TAKEN = "source: "
"""How a line begins that says what a build took from where, or passed over and why."""


def sources(log: str) -> tuple[str, ...]:
    """Those lines."""
    return tuple(line.removeprefix(TAKEN) for line in log.splitlines() if line.startswith(TAKEN))


def cause(log: str, room: str) -> str:
    """The cause, if the log tells one that is known, else its last lines. `room` says what the build takes where."""
    if re.search(FULL, log):
        return f"the disk is full; it takes {room}"
    if told := NO_SOURCE.search(log):
        return told[1]
    if re.search(UNREACHABLE, log):
        return "its Debian mirror does not answer; look at the network, or name another one in MINIGTS_DEBIAN_MIRROR"
    return "the end of its log is" + "".join(f"\n    {without_secrets(line)}" for line in log.splitlines()[-LOG_LINES:])
