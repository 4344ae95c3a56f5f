"""The effects that a hostile kernel may have, each with its reason. Any other fails tests/live/test_effects.py."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Permitted:
    """Regular expressions for a change, a call and its descriptor, all of which must match whole."""

    changed: str
    call: str
    by: str
    reason: str
    races: bool = False
    """Whether the lab makes this change a moment later, so that the look after the call seldom sees it."""

    def covers(self, call: str, by: str, changed: str) -> bool:
        pairs = ((self.changed, changed), (self.call, call), (self.by, by))
        return all(re.fullmatch(shape, text) for shape, text in pairs)


CLOCKS = "the clock's .*"
LINES = f"{CLOCKS}|the agent's line|a link|another socket"
OWN_PLACES = "its own directory|its kernel's directory|what the user copies from it"

PERMITTED = (
    Permitted(
        "the host itself: its kernel ends",
        ".*",
        f"its memory|its disk|{LINES}",
        "it ends its own host, by ruining its own memory or by a message that breaks a protocol",
    ),
    Permitted(
        "the notes of why hosts were ended: .*|the lab's records: times|open files of the (supervisor|clock): "
        "a (socket|descriptor) is (made|gone)",
        "write|writev|pwrite.*|send.*|splice|vmsplice|shutdown.*|recvfrom",
        LINES,
        "the clock or the supervisor ends the host for it, and the lab notes why",
        races=True,
    ),
    Permitted(
        "its own directory: a file is made|what the user copies from it: a file is made",
        "openat to make a file",
        OWN_PLACES,
        "files of its own, which nobody opens as anything but a plain file",
    ),
    Permitted(
        "locks: a lock to (read|write) of .* is (made|gone)",
        "fcntl F_SETLK to (read|write)",
        ".*",
        "it holds for programs alone that ask for such locks (fcntl(2)): kernels do, of their disks, and minigts of "
        "none of these files",
    ),
    Permitted(
        "open files of the supervisor: (position|flags)",
        "write|writev|lseek|sendfile|splice|copy_file_range|ioctl FIONBIO|fcntl F_SETFL .*",
        "memfd console|a link",
        "the supervisor copies its console from a place that it chooses itself, and reads from the link's end without "
        "waiting: no flag and no position changes that",
    ),
    Permitted(
        "open files of the clock: (position|flags)",
        "write|writev|lseek|sendfile|splice|copy_file_range|ioctl FIONBIO|fcntl F_SETFL .*",
        "its memory",
        "its own memory, which the clock maps and never reads or writes as a file",
    ),
)


def reason(call: str, by: str, changed: str) -> str:
    """Why it may do that; empty if it may not."""
    return next((each.reason for each in PERMITTED if each.covers(call, by, changed)), "")
