"""Breaks a lab: one fault, which a seed draws of those that its topology has a place for, to be found by usual tools.

What a seed draws follows from the plan alone, so that it can be judged without the lab.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from minigts import paths
from minigts.errors import EnvironmentLacks, InputError, MinigtsError, reading_from
from minigts.foreign import Foreign, parser_text, whole_number
from minigts.lab import Lab, changes
from minigts.language.fields import unknown
from minigts.lessons.break_kinds import KINDS, Kind
from minigts.providers.base import Power
from minigts.results.folder import read_model
from minigts.topology.outage import Outage
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan

FILE = "broken.json"
"""The file of a run directory that holds what was broken."""
INCIDENT = "incident.json"
"""The same of a lab with an incident of the arena, as long as that has no answer."""
COMMAND_S = 120.0
NAMES = tuple(kind.name for kind in KINDS)


@dataclass(frozen=True)
class FaultPlace:
    """Where a fault can be: the host that is broken, a neighbour who may watch, and variables for the scripts."""

    host: str
    watcher: str
    variables: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    """The link of its interface."""
    far_end: str = ""
    """The machine at the link's other end: the watcher, or a switch."""
    of_cluster: str = ""
    """What of a cluster of Kubernetes is broken from that host: an object, as service/web, or a node."""


@dataclass(frozen=True)
class LessonFault:
    """A fault of a lab."""

    kind: Kind
    place: FaultPlace

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are a right answer: the one that is broken, and of a cable the other end, too; of a cluster
        its object."""
        if self.place.of_cluster:
            return (self.place.of_cluster,)
        far = (self.place.far_end,) if self.kind.unplugs == "both ends" else ()
        return (self.place.host, *far)


class Broken(BaseModel):
    """broken.json: how a lab was broken, and the commands that undo it, if any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: str
    what: str
    """The kind of the fault."""
    place: FaultPlace
    undo: str
    mended: bool = False
    """Whether it was undone by `minigts break --mend`."""

    @property
    def fault(self) -> LessonFault:
        """Raises InputError for a kind that there is not."""
        return LessonFault(find_kinds([self.what])[0], self.place)


def find_kinds(kinds: Sequence[str]) -> tuple[Kind, ...]:
    """The kinds of these names, in the order of the list; all for none. Raises InputError."""
    for each in kinds:
        if each not in NAMES:
            raise InputError(f"{unknown('kind of fault', 'kinds', each, NAMES)}: minigts break --list")
    return tuple(kind for kind in KINDS if not kinds or kind.name in kinds)


def draw(plan: Plan, seed: str, kinds: Sequence[str] = ()) -> LessonFault:
    """The fault that a seed draws for a plan: first the kind, then its place. Raises InputError when the topology has
    no place for any of the kinds."""
    if plan.family != "ipv4" or plan.routing != "routed":
        raise InputError(f"break: faults are known for labs with IPv4 and static routes, and {plan.name} is none")
    possible = [kind for kind in find_kinds(kinds) if any(True for _ in places(kind, plan))]
    if not possible:
        raise InputError(f"break: the topology {plan.name} has no place for such a fault")
    chance = random.Random(f"break/{seed}")
    kind = possible[int(chance.random() * len(possible))]
    found = list(places(kind, plan))
    return LessonFault(kind, found[int(chance.random() * len(found))])


def every(plan: Plan) -> Iterator[LessonFault]:
    """Of every kind that the plan has a place for, the fault at its first place."""
    for kind in KINDS:
        for place in places(kind, plan):
            yield LessonFault(kind, place)
            break


def places(kind: Kind, plan: Plan) -> Iterator[FaultPlace]:
    """All places that the plan has for a kind of fault."""
    for host in plan.hosts:
        sides = list(plan.neighbours(host))
        for number, (port, other, far) in enumerate(sides):
            path = plan.path(host.name, other.name)
            known = {
                "dev": port.name,
                "own": port.address,
                "prefix": str(port.prefix),
                "near": far.address,
                "there": other.address,
                "name": other.name,
                "rtt": f"{path.rtt_ms:g}",
                "ceiling": f"{path.tcp_ceiling_mbit or 0:g}",
            }
            place = FaultPlace(host.name, other.name, known, port.link, port.peer_host)
            if kind.name == "small-buffers" and not _buffers_matter(path.rtt_ms, path.tcp_ceiling_mbit):
                continue
            match kind.places:
                case "interface" if port not in [before for before, _, _ in sides[:number]]:
                    yield place
                case "way" | "crossroads" | "behind":
                    yield from _ways(kind, plan, host, place, other.name)
                case "transit":
                    for _, second, _ in sides[number + 1 :]:
                        if _passes(plan, other.name, host.name, second.name):
                            yield FaultPlace(host.name, other.name, {**known, "beyond": second.address})


def _ways(kind: Kind, plan: Plan, host: Host, place: FaultPlace, neighbour: str) -> Iterator[FaultPlace]:
    """The places on the ways to other hosts that begin with a neighbour, or for `crossroads` do not."""
    for target in plan.hosts:
        if target == host or not plan.reaches(host.name, target.name):
            continue
        about = {**place.variables, "there": target.address, "name": target.name}
        begins = _passes(plan, host.name, neighbour, target.name) or target.name == neighbour
        if kind.places == "way" and begins:
            yield FaultPlace(host.name, place.watcher, about)
        if kind.places == "behind" and begins and target.name != neighbour:
            yield FaultPlace(host.name, place.watcher, {**about, "beyond": target.address})
        if kind.places == "crossroads" and not begins and len(plan.path(host.name, target.name).links) > 1:
            yield FaultPlace(host.name, place.watcher, {**about, "wrong": place.variables["near"]})


def _passes(plan: Plan, source: str, middle: str, target: str) -> bool:
    """Whether the way from one host to another is that over a third and on from there."""
    if len({source, middle, target}) < 3:
        return False
    first, second = plan.path(source, middle).links, plan.path(middle, target).links
    return plan.path(source, target).links == (*first, *second) and bool(first) and bool(second)


def _buffers_matter(rtt_ms: float, ceiling_mbit: float | None) -> bool:
    """Whether a window of 4 kB carries much less than the path."""
    return ceiling_mbit is not None and rtt_ms > 0 and 4096 * 8 / (rtt_ms * 1000) < ceiling_mbit / 6


def break_(lab: Lab, seed: str, kinds: Sequence[str] = ()) -> None:
    """Do a seed's fault to a lab. It is undone again, and MinigtsError raised, unless it has its effect. Raises
    EnvironmentLacks where hosts have no kernels of their own, or a link no carriers, InputError when the lab is broken
    already."""
    if not isinstance(lab.provider, Power):
        raise EnvironmentLacks(f"break: hosts of {lab.provider.name} share this machine's kernel, clock and disk")
    fault = draw(lab.plan, seed, kinds)
    before = read(lab)
    if before is not None and shows(lab, before.fault):
        raise InputError(f"lab {lab.name} is broken already: find it, or minigts break --mend")
    if shows(lab, fault):
        raise MinigtsError(f"lab {lab.name} has the effects of seed {seed!r}'s fault already: take another seed")
    undo = inflict(lab, fault)
    kept = Broken(seed=seed, what=fault.kind.name, place=fault.place, undo=undo)
    _write(lab, kept)
    if not shows(lab, fault):
        mend(lab)
        raise MinigtsError(f"seed {seed!r}'s fault has no effect in lab {lab.name}, and was undone: take another seed")


def inflict(lab: Lab, fault: LessonFault) -> str:
    """Break; return the commands that undo it, which run on the same host alone, as root there; none for a link that is
    unplugged."""
    if fault.kind.unplugs is not None:
        if fault.place.link in lab.read_record().cut:
            raise MinigtsError(f"link {fault.place.link} is down already: take another seed")
        end = fault.place.host if fault.kind.unplugs == "one end" else None
        changes.set_link_up(lab, fault.place.link, up=False, how=Outage(end=end))
        return ""
    return parser_text(_run(lab, fault.place.host, fault.kind.do, fault.place.variables))


def repair(lab: Lab, place: FaultPlace, undo: str) -> None:
    """Undo a fault of that place by what `inflict` returned."""
    if undo:
        _run(lab, place.host, undo, {})
    else:
        changes.set_link_up(lab, place.link, up=True)


def shows(lab: Lab, fault: LessonFault) -> bool:
    """Whether the fault has its effect now."""
    place, kind = fault.place, fault.kind
    variables = dict(place.variables)
    if "now" in kind.shows:
        with reading_from(place.watcher, "its clock"):
            variables["now"] = str(whole_number(_run(lab, place.watcher, "date +%s", {})))
    script = _script(f"{kind.shows}\n", variables, strict=False)
    on = place.watcher if kind.watched else place.host
    return lab.provider.run(on, ("sh", "-c", script), timeout_s=COMMAND_S, check=False).code == 0


def _run(lab: Lab, host: str, script: str, variables: Mapping[str, str]) -> Foreign:
    return lab.provider.run(host, ("sh", "-c", _script(script, variables)), timeout_s=COMMAND_S).stdout


def _script(script: str, variables: Mapping[str, str], *, strict: bool = True) -> str:
    """The script with its variables, which are addresses, names and figures of the plan."""
    return ("set -eu\n" if strict else "") + "".join(f"{name}='{text}'\n" for name, text in variables.items()) + script


def read(lab: Lab) -> Broken | None:
    """How the lab was broken last; None if it never was."""
    return read_model(lab.rundir / FILE, Broken) if (lab.rundir / FILE).is_file() else None


def require_broken(lab: Lab) -> Broken:
    """The same. Raises InputError if it never was."""
    if (broken := read(lab)) is None:
        raise InputError(f"lab {lab.name} was not broken: minigts break --seed NAME")
    return broken


def mend(lab: Lab) -> None:
    """Undo the lab's fault. Raises InputError if it has none."""
    broken = require_broken(lab)
    if not broken.mended:
        repair(lab, broken.place, broken.undo)
        _write(lab, broken.model_copy(update={"mended": True}))


def _write(lab: Lab, broken: Broken) -> None:
    paths.write_for_user(Path(lab.rundir / FILE), broken.model_dump_json(indent=1) + "\n")
