"""Why something could not be built: what a build's log says, in words that help. Pure."""

from __future__ import annotations

import re

from minigts.errors import without_secrets

FULL = "No space left on device"
UNREACHABLE = "Failed to fetch|Could not resolve|Could not connect|Unable to connect"
"""What the log says when a disk is full, when the mirror does not answer."""
LOG_LINES = 8


def cause(log: str, room: str) -> str:
    """The cause, if the log tells one that is known, else its last lines. `room` says what the build takes where."""
    if re.search(FULL, log):
        return f"the disk is full; it takes {room}"
    if re.search(UNREACHABLE, log):
        return "its Debian mirror does not answer; look at the network, or name another one in MINIGTS_DEBIAN_MIRROR"
    return "the end of its log is" + "".join(f"\n    {without_secrets(line)}" for line in log.splitlines()[-LOG_LINES:])
