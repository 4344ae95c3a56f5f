"""Frames that pass an interface of a machine, as they pass: tcpdump on the machine, read over its control line.

No packet takes a link of the lab for it. What stands in a capture is what the machine's kernel sees: what it sends
before the link's delay, and what arrives after it, with the lab's own time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minigts.errors import EnvironmentLacks, HostFailed, InputError
from minigts.lab import links
from minigts.lab.record import Lab
from minigts.language.problems import did_you_mean, listed, shown
from minigts.providers.agent import wire
from minigts.providers.base import Converses

ANY = "any"
"""All interfaces of a machine."""


@dataclass(frozen=True)
class Point:
    """Where is captured: a machine, and one of its interfaces or `ANY`."""

    machine: str
    interface: str


def point(lab: Lab, name: str, end: str | None = None) -> Point:
    """Of a link its first end, or `end`; of a machine all its interfaces. Raises InputError."""
    machines = [machine.name for machine in lab.plan.machines]
    if name in machines:
        if end is not None:
            raise InputError(f"{name} is a machine: an end is of a link")
        return Point(name, ANY)
    if name not in {link.name for link in lab.plan.links} and "-" not in name:
        known = [*machines, *(link.name for link in lab.plan.links)]
        raise InputError(f"no machine or link {shown(name)}; there are {listed(known)}{did_you_mean(name, known)}")
    link = links.link_named(lab.plan, name)
    if end is not None and end not in link.ends:
        raise InputError(f"{shown(end)} is no end of {link.name}: {' and '.join(link.ends)} are")
    at = end or link.ends[0]
    return Point(at, next(port.name for port in lab.plan.machine(at).ports if port.link == link.name))


def command(
    where: Point, expression: Sequence[str], *, frames: int | None, seconds: float | None, text: bool
) -> list[str]:
    """What runs on the machine: pcap on its standard output, or a line a frame where `text` is. It ends by itself after
    so many frames or the lab's seconds.
    """
    limit = [] if seconds is None else ["timeout", "--signal=INT", "--preserve-status", f"{seconds:g}"]
    count = [] if frames is None else ["-c", str(frames)]
    return [
        *limit,
        "tcpdump",
        "-n",
        "-i",
        where.interface,
        *(["-l"] if text else ["-U", "-w", "-"]),
        *count,
        *expression,
    ]


def capture(
    lab: Lab, where: Point, argv: Sequence[str], take: Callable[[bytes], object], say: Callable[[bytes], object]
) -> int:
    """Run it until it ends by itself; its exit code. `take` gets what it writes, `say` what it says beside. It ends,
    too, when this is broken off. In virtual time a second of the lab takes a second meanwhile, unless somebody waits
    for more. Raises HostFailed.
    """
    if not isinstance(lab.provider, Converses):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot capture")
    line = lab.provider.converse(where.machine, argv)
    with contextlib.closing(line):
        line.settimeout(None)
        decoder = wire.Decoder()
        while piece := line.recv(1 << 16):
            for frame in decoder.feed(piece):
                if frame.kind == wire.EXIT:
                    return int(json.loads(frame.payload)["code"])
                (take if frame.kind == wire.STDOUT else say)(frame.payload)
    raise HostFailed(f"{where.machine} went away")
