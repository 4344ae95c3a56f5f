"""Captures of frames: tcpdump runs on each machine, and its output is read over the machine's control line.

A capture sends nothing over the lab's links. It has the frames that the machine's kernel sees: frames that it sends
before the link's delay, frames that arrive after it. Times are by the lab's clock.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minigts.errors import EnvironmentLacks, HostFailed, InputError, reading_from
from minigts.lab.lab import Lab
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.providers.agent import protocol
from minigts.providers.base import Streams
from minigts.topology import link_rules
from minigts.topology.plan import link_names

ANY = "any"
"""All interfaces of a machine."""
LONGEST_REMARKS = 1 << 16
"""Bytes."""


@dataclass(frozen=True)
class CapturePoint:
    """Where frames are captured: a machine, and one of its interfaces or `ANY`. A `prefix` in front of the command runs
    it in a container's network."""

    machine: str
    interface: str
    prefix: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.machine} {self.interface}"


def points(lab: Lab, name: str, ends: Sequence[str] = ()) -> list[CapturePoint]:
    """The points for `name`: a link's first end, or its `ends`; all interfaces of a machine. Raises InputError."""
    machines = [machine.name for machine in lab.plan.machines]
    if name in machines:
        if ends:
            raise InputError(f"{name} is a machine: only a link has ends")
        return [CapturePoint(name, ANY)]
    if name not in {link.name for link in lab.plan.links} and "-" not in name:
        known = [*machines, *(link.name for link in lab.plan.links)]
        raise InputError(f"no machine or link {quote(name)}; there are {list_names(known)}{did_you_mean(name, known)}")
    link = link_names.link_named(lab.plan, name)
    for end in ends:
        if wrong := link_rules.strange_end(end, link.name, link.ends):
            raise InputError(wrong)
    return [CapturePoint(at, _interface(lab, at, link.name)) for at in dict.fromkeys(ends or link.ends[:1])]


def _interface(lab: Lab, machine: str, link: str) -> str:
    return next(port.name for port in lab.plan.machine(machine).ports if port.link == link)


def command(
    where: CapturePoint,
    expression: Sequence[str],
    *,
    frames: int | None,
    seconds: float | None,
    text: bool,
    nanoseconds: bool = False,
) -> list[str]:
    """The command on the machine. It prints pcap, or with `text` a line for each frame, and ends after `frames` frames
    or `seconds` of the lab's clock; None: no such limit.
    """
    limit = [] if seconds is None else ["timeout", "--signal=INT", "--preserve-status", f"{seconds:g}"]
    count = [] if frames is None else ["-c", str(frames)]
    return [
        *limit,
        *where.prefix,
        "tcpdump",
        "-n",
        "-i",
        where.interface,
        "--immediate-mode",  # without it frames wait for up to a second, and are lost when tcpdump ends
        *(["--nano"] if nanoseconds else []),
        *(["-l"] if text else ["-U", "-w", "-"]),
        *count,
        "--",  # else a word of the expression that begins with a hyphen is an option
        *expression,
    ]


class Remarks:
    """What tcpdump writes to standard error at one point; the last LONGEST_REMARKS bytes of it are kept."""

    def __init__(self) -> None:
        self._text = bytearray()
        self.has_begun = False
        """Whether frames are captured since; `listening on eth1, link-type EN10MB (Ethernet), …` says so."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._text.extend(piece)
        self.has_begun |= b"listening on " in self._text
        del self._text[:-LONGEST_REMARKS]

    @property
    def last_line(self) -> str:
        """The last line, which says what was wrong if tcpdump has failed; empty if there is none."""
        return next(reversed(self._text.decode(errors="replace").strip().splitlines()), "")

    def counts(self) -> tuple[int, int] | None:
        """How many frames were captured, and how many the host's kernel had no room for, of `3 packets captured` and
        `0 packets dropped by kernel`; None if tcpdump has not said so, since it was cut off."""
        captured, dropped = (
            [int(found) for found in re.findall(rb"^(\d{1,18}) packets? " + what + rb"$", self._text, re.MULTILINE)]
            for what in (rb"captured", rb"dropped by kernel")
        )
        return (captured[-1], sum(dropped[-1:])) if captured else None


LOOK_S = 0.5
"""How often `capture` calls `passed`, in seconds of this machine's clock."""


def capture(
    lab: Lab,
    commands: Sequence[tuple[CapturePoint, Sequence[str]]],
    take: Callable[[int, bytes], object],
    say: Callable[[int, bytes], object],
    passed: Callable[[], object] = lambda: None,
) -> int:
    """Run the commands in parallel until all have ended; return their highest exit code. `take` gets a command's number
    and its output, `say` its number and its standard error; `passed` is called every LOOK_S. An interruption ends all
    commands. In virtual time a second of the lab meanwhile takes a second, unless another program waits for the lab.
    Raises EnvironmentLacks, HostFailed.
    """
    if not isinstance(lab.provider, Streams):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot capture")
    codes: list[int] = []
    looked_s = time.monotonic()
    with contextlib.ExitStack() as open_lines, selectors.DefaultSelector() as lines:
        for number, (where, argv) in enumerate(commands):
            line = open_lines.enter_context(contextlib.closing(lab.provider.converse(where.machine, argv)))
            line.settimeout(None)
            lines.register(line, selectors.EVENT_READ, (number, line, protocol.Decoder()))
        while len(codes) < len(commands):
            for key, _ in lines.select(LOOK_S):
                number, line, decoder = key.data
                piece = line.recv(1 << 16)
                if not piece:
                    raise HostFailed(f"{commands[number][0].machine} went away")
                for frame in decoder.feed(piece):
                    if frame.kind == protocol.EXIT:
                        codes.append(_code(commands[number][0].machine, frame))
                        lines.unregister(line)
                    elif frame.kind == protocol.STDOUT:
                        take(number, frame.payload)
                    else:
                        _beside(number, commands[number][0].machine, frame, say)
            if time.monotonic() - looked_s >= LOOK_S:
                looked_s = time.monotonic()
                passed()
    return max(codes)


def _code(machine: str, frame: protocol.Frame) -> int:
    with reading_from(machine, "how tcpdump ended"):
        return protocol.parse_end(frame.payload).code


def _beside(number: int, machine: str, frame: protocol.Frame, say: Callable[[int, bytes], object]) -> None:
    if frame.kind == protocol.CUT:
        raise HostFailed(f"{machine}: more frames passed than could be read")
    if frame.kind == protocol.STDERR:
        say(number, frame.payload)
