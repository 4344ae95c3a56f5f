"""Frames that pass interfaces of machines, as they pass: tcpdump on each machine, read over its control line.

No packet takes a link of the lab for it. What stands in a capture is what the machine's kernel sees: what it sends
before the link's delay, and what arrives after it, with the lab's own time.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minigts.errors import EnvironmentLacks, HostFailed, InputError, reading_from
from minigts.lab import links
from minigts.lab.record import Lab
from minigts.language.problems import did_you_mean, listed, shown
from minigts.providers.agent import wire
from minigts.providers.base import Converses

ANY = "any"
"""All interfaces of a machine."""


@dataclass(frozen=True)
class Point:
    """Where is captured: a machine, and one of its interfaces or `ANY`; by `prefix`, in a container's network."""

    machine: str
    interface: str
    prefix: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.machine} {self.interface}"


def points(lab: Lab, name: str, ends: Sequence[str] = ()) -> list[Point]:
    """Of a link its first end, or `ends`; of a machine all its interfaces. Raises InputError."""
    machines = [machine.name for machine in lab.plan.machines]
    if name in machines:
        if ends:
            raise InputError(f"{name} is a machine: an end is of a link")
        return [Point(name, ANY)]
    if name not in {link.name for link in lab.plan.links} and "-" not in name:
        known = [*machines, *(link.name for link in lab.plan.links)]
        raise InputError(f"no machine or link {shown(name)}; there are {listed(known)}{did_you_mean(name, known)}")
    link = links.link_named(lab.plan, name)
    for end in ends:
        if end not in link.ends:
            raise InputError(f"{shown(end)} is no end of {link.name}: {' and '.join(link.ends)} are")
    return [Point(at, _interface(lab, at, link.name)) for at in dict.fromkeys(ends or link.ends[:1])]


def _interface(lab: Lab, machine: str, link: str) -> str:
    return next(port.name for port in lab.plan.machine(machine).ports if port.link == link)


def command(
    where: Point,
    expression: Sequence[str],
    *,
    frames: int | None,
    seconds: float | None,
    text: bool,
    nanoseconds: bool = False,
) -> list[str]:
    """What runs on the machine: pcap on its standard output, or a line a frame where `text` is. It ends by itself after
    so many frames or the lab's seconds.
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
        "--immediate-mode",  # else what has come waits for up to a second, and is lost with it at the end
        *(["--nano"] if nanoseconds else []),
        *(["-l"] if text else ["-U", "-w", "-"]),
        *count,
        *expression,
    ]


LOOK_S = 0.5
"""How often, by the machine's clock, `capture` says that time has passed."""


def capture(
    lab: Lab,
    commands: Sequence[tuple[Point, Sequence[str]]],
    take: Callable[[int, bytes], object],
    say: Callable[[bytes], object],
    passed: Callable[[], object] = lambda: None,
) -> int:
    """Run them side by side until each has ended by itself; their highest exit code. `take` gets what one writes, with
    its number among them, `say` what it says beside; `passed` is called each LOOK_S. All end when this is
    broken off. In virtual time a second of the lab takes a second meanwhile, unless somebody waits for more. Raises
    HostFailed.
    """
    if not isinstance(lab.provider, Converses):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot capture")
    codes: list[int] = []
    looked_s = time.monotonic()
    with contextlib.ExitStack() as open_lines, selectors.DefaultSelector() as lines:
        for number, (where, argv) in enumerate(commands):
            line = open_lines.enter_context(contextlib.closing(lab.provider.converse(where.machine, argv)))
            line.settimeout(None)
            lines.register(line, selectors.EVENT_READ, (number, line, wire.Decoder()))
        while len(codes) < len(commands):
            for key, _ in lines.select(LOOK_S):
                number, line, decoder = key.data
                piece = line.recv(1 << 16)
                if not piece:
                    raise HostFailed(f"{commands[number][0].machine} went away")
                for frame in decoder.feed(piece):
                    if frame.kind == wire.EXIT:
                        codes.append(_code(commands[number][0].machine, frame))
                        lines.unregister(line)
                    elif frame.kind == wire.STDOUT:
                        take(number, frame.payload)
                    else:
                        _beside(commands[number][0].machine, frame, say)
            if time.monotonic() - looked_s >= LOOK_S:
                looked_s = time.monotonic()
                passed()
    return max(codes)


def _code(machine: str, frame: wire.Frame) -> int:
    with reading_from(machine, "how tcpdump ended"):
        return wire.ended(frame.payload).code


def _beside(machine: str, frame: wire.Frame, say: Callable[[bytes], object]) -> None:
    if frame.kind == wire.CUT:
        raise HostFailed(f"{machine}: more has passed than could be read")
    if frame.kind == wire.STDERR:
        say(frame.payload)
