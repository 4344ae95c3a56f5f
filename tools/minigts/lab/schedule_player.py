"""Plays a schedule on a lab: makes each change at its moment, reads it back, and says when it was made.

Where links have wires (`current.link_carrier`), the clock makes each change exactly at its moment. Elsewhere each
machine gets its changes beforehand and makes them by its own clock, which has been compared with this machine's; only
carriers, which no machine can take from itself, are taken by this one as the moments come.
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from minigts.dataplane import shaping
from minigts.errors import HostFailed, InputError, reading_from
from minigts.foreign import decimal_number, parser_text, whole_number
from minigts.lab import carriers, changes, current, links, outages, shown_links
from minigts.lab.lab import Lab
from minigts.lab.record import DECLARED, Record
from minigts.lab.rundir import exclusive
from minigts.topology import opportunities
from minigts.topology.plan import link_names
from minigts.topology.plan.elements import Host, Port, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.schedule import Moment

T = TypeVar("T")

LATEST_S = 1e10
"""The latest time that a host's clock may show: of the year 2286."""
COMPARISONS = 5
"""How often a machine's clock is compared with this one's; the quickest comparison counts."""
AHEAD_S = 0.5
"""How long before its beginning machines get a schedule, so that all wait for it in time."""
SPARE_S = 60.0
# `read` waits on a pipe without input, which needs no process, but may be late by a tick of the
# kernel: so it ends 5 ms early, and a busy loop waits for the rest.
_PLAY = r"""
set -u
waiting=/run/minigts-playing.$$ orders=/run/minigts-orders.$$ said=/run/minigts-played.$$
mkfifo "$waiting" "$orders"
exec 9<>"$waiting"
tc -j -batch - <"$orders" >"$said" 9<&- &
changing=$!
exec 3>"$orders"
rm "$waiting" "$orders"
at() {
  local due=$((BEGIN_US + $1))
  local left=$((due - ${EPOCHREALTIME/./} - 5000)) seconds
  if ((left > 0)); then
    printf -v seconds %d.%06d $((left / 1000000)) $((left % 1000000))
    read -r -t "$seconds" -u 9 || :
  fi
  while ((${EPOCHREALTIME/./} < due)); do :; done
  printf '%s\n' "$2" >&3
  echo "$((${EPOCHREALTIME/./} - BEGIN_US))"
}
CHANGES
exec 3>&-
wait "$changing" || exit
cat "$said"
rm "$said"
"""


@dataclass(frozen=True)
class Played:
    """One change, made `at_s` after the schedule's beginning by the lab's clock, and the link's values after it."""

    moment: Moment
    at_s: float
    amounts: Mapping[str, float]
    """Values by link and quantity: `ams-bra rate_mbit`; `ams-bra up` is 0 or 1."""

    @property
    def in_words(self) -> str:
        """`ams-bra from ams: rate 10 mbit`"""
        sender = f" from {self.moment.sender}" if self.moment.sender else ""
        return f"{self.moment.link}{sender}: {self.moment.in_words}"


def play(
    lab: Lab, moments: Sequence[Moment], on_played: Callable[[Played], None], beside: Callable[[], T] | None = None
) -> T | None:
    """Play the changes from now on while `beside` runs; return the result of `beside`. At the end, and after an
    interruption, every link is set as it was before.

    Raises InputError when there are no changes, or one is impossible; HostFailed when links read back differ.
    """
    if not moments:
        raise InputError(f"the topology of lab {lab.name} has no schedule: add `schedule:` to its file")
    before = lab.read_record()
    try:
        with lab.provider.together() as pool:
            task = pool.start(beside) if beside is not None else None
            for each in play_moments(lab, moments):
                on_played(each)
            return None if task is None else task.result()
    finally:
        changes.restore_links(lab, before)


def play_moments(lab: Lab, moments: Sequence[Moment]) -> Iterator[Played]:
    """Play the changes; afterwards links stay as the last change has set them."""
    with exclusive(lab.rundir):
        states = _states(lab.plan, lab.read_record(), moments)
        if current.link_carrier(lab) is None:
            _require_carriers(lab, moments)
            yield from _by_machines(lab, moments, states)
        else:
            yield from _by_wires(lab, moments, states)


def _require_carriers(lab: Lab, moments: Sequence[Moment]) -> None:
    """Raises EnvironmentLacks where an end would have to lose its carrier, and this lab's ports keep theirs."""
    for moment in moments:
        if moment.carrier_lost:
            name = link_names.link_named(lab.plan, moment.link).name
            carriers.require(lab, name, moment.outage, instead="write `cut:` for `down:`")


def amounts(plan: Plan, record: Record, moments: Sequence[Moment]) -> dict[str, float]:
    """The values, by that record, of the settings that these moments change. Pure."""
    whole, found = outages.up(record, record.cut).model_copy(update={"settings": DECLARED}), dict[str, float]()
    for moment in moments:
        link = link_names.link_named(plan, moment.link)
        if moment.up is not None:
            found[f"{link.name} up"] = float(link.name not in record.cut)
        for end in link.ends if moment.sender is None else [moment.sender]:
            (port,) = _ports(plan.machine(end), {link.name})
            way, whose = current.port_now(plan, port, whole).outgoing, f" from {moment.sender}" if moment.sender else ""
            values = {field: getattr(way, field) for field in moment.update if field != "trace"}
            if "trace" in moment.update:
                values["rate_mbit"] = opportunities.mean_mbit(way.trace) if way.trace else way.rate_mbit
            found |= {f"{link.name}{whose} {field}": value for field, value in values.items() if value is not None}
    return found


def _states(plan: Plan, record: Record, moments: Sequence[Moment]) -> list[Record]:
    """The record before the first moment, and after each."""
    states = [record]
    for moment in moments:
        states.append(changes.record_at(plan, states[-1], moment))
    return states


def _by_wires(lab: Lab, moments: Sequence[Moment], states: Sequence[Record]) -> Iterator[Played]:
    with lab.provider.together():
        begin_s = lab.provider.now_s()
        for moment, (before, state) in zip(moments, itertools.pairwise(states), strict=True):
            lab.provider.sleep_until(begin_s + moment.at_s)
            at_s = lab.provider.now_s() - begin_s
            name = link_names.link_named(lab.plan, moment.link).name
            links.apply_record(lab, before, state, [name], reading_back=True)
            yield Played(moment, round(at_s, 9), amounts(lab.plan, state, [moment]))


def _by_machines(lab: Lab, moments: Sequence[Moment], states: Sequence[Record]) -> Iterator[Played]:
    names = {link_names.link_named(lab.plan, moment.link).name for moment in moments}
    silent = states[0].silent
    machines = [
        each for each in lab.plan.machines if each.name not in silent and any(port.link in names for port in each.ports)
    ]
    with links.settling(lab, states[0], states[-1], [machine.name for machine in machines]):
        ahead_s = lab.work_on(machines, partial(_ahead_s, lab))
        for machine in machines:
            links.run_script(lab.provider, machine, _devices(lab.plan, machine, states, names))
        begin_s = time.time() + AHEAD_S
        with lab.provider.together() as pool:
            pulling = pool.start(partial(_pulled, lab, machines, moments, states, begin_s))
            made = lab.work_on(
                machines,
                lambda machine: _told(lab, machine, moments, states, begin_s + ahead_s[machine.name]),
            )
            pulled = pulling.result()
    latest = [
        max(each[number] for each in (*made.values(), pulled) if number in each) for number in range(len(moments))
    ]
    for moment, state, at_s in zip(moments, states[1:], latest, strict=True):
        yield Played(moment, at_s, amounts(lab.plan, state, [moment]))


def _pulled(
    lab: Lab, machines: Sequence[Host | Switch], moments: Sequence[Moment], states: Sequence[Record], begin_s: float
) -> dict[int, float]:
    """Take carriers, and give them back, from `begin_s` on by this machine's clock; return when each was so, in seconds
    after the beginning by the moment's number."""
    made = {}
    for number, (moment, (before, after)) in enumerate(zip(moments, itertools.pairwise(states), strict=True)):
        if before.without_carrier != after.without_carrier:
            time.sleep(max(begin_s + moment.at_s - time.time(), 0))
            name = link_names.link_named(lab.plan, moment.link).name
            carriers.set_carriers(lab, after, machines, {name}, before)
            made[number] = time.time() - begin_s
    return made


def _ahead_s(lab: Lab, machine: Host | Switch) -> float:
    """By how many seconds the machine's clock is ahead of this machine's."""
    found = []
    for _ in range(COMPARISONS):
        before_s = time.time()
        said = lab.provider.run(machine.name, ["bash", "-c", "echo $EPOCHREALTIME"], timeout_s=10).stdout
        after_s = time.time()
        with reading_from(machine.name, "its clock"):
            shown_s = decimal_number(said, 0, LATEST_S)
        found.append((after_s - before_s, shown_s - (before_s + after_s) / 2))
    return min(found)[1]


def _devices(plan: Plan, machine: Host | Switch, states: Sequence[Record], names: set[str]) -> str:
    """A script that makes the devices that any state needs, so that the changes themselves need only `tc`."""
    first, *others = ([current.port_now(plan, port, state) for port in _ports(machine, names)] for state in states)
    needed = [
        max(each, key=lambda one: (bool(one.incoming.jitter_table), shaping.holds_arrivals(one.incoming)))
        for each in zip(first, *others, strict=True)
    ]
    return shaping.devices(needed)


def _told(
    lab: Lab, machine: Host | Switch, moments: Sequence[Moment], states: Sequence[Record], begin_s: float
) -> dict[int, float]:
    """Let the machine make its changes, from `begin_s` on by its own clock; return when it made each, in seconds after
    the beginning by the moment's number."""
    steps = {
        number: [current.port_now(lab.plan, port, states[number + 1]) for port in _ports(machine, {moment.link})]
        for number, moment in enumerate(moments)
    }
    steps = {number: ports for number, ports in steps.items() if ports}
    overhead_ms = states[0].emulator_overhead_ms
    told = {
        number: shaping.changes(
            ports, overhead_ms, links.arrivals(lab.plan, machine, states[number], states[number + 1], ports)
        )
        for number, ports in steps.items()
    }
    lines = [shlex.join(["at", str(round(moments[number].at_s * 1e6)), each]) for number, each in told.items()]
    script = _PLAY.replace("CHANGES", "\n".join(lines)).replace("BEGIN_US", str(round(begin_s * 1e6)))
    limit_s = AHEAD_S + moments[-1].at_s + SPARE_S
    said = lab.provider.run(machine.name, ["bash", "-s"], timeout_s=limit_s, stdin=script.encode()).stdout.splitlines()
    times, shown = said[: len(steps)], [each for each in said[len(steps) :] if each]
    if len(shown) != len(steps):
        raise HostFailed(f"{machine.name} has shown {len(shown)} of {len(steps)} changes of a schedule")
    with reading_from(machine.name, "what it shows of its links"):
        wrong = [
            f"{machine.name}: {text}"
            for number, qdiscs in zip(steps, shown, strict=True)
            for text in shown_links.differences(
                lab.plan, _ports(machine, {moments[number].link}), states[number + 1], parser_text(qdiscs)
            )
        ]
        made = {number: whole_number(time_us) / 1e6 for number, time_us in zip(steps, times, strict=True)}
    if wrong:
        raise HostFailed("links are not as the schedule has set them:\n" + "\n".join(wrong))
    return made


def _ports(machine: Host | Switch, names: set[str]) -> list[Port]:
    return [port for port in machine.ports if port.link in names]
