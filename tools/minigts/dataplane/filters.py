"""The filters on a port's frames: those that lead arrivals to the device that delays them (`shaping`), and foreign
ones. Pure.

`tc filter show dev eth1 ingress` prints a table's own two lines and then each rule, with its actions below it:

    filter protocol all pref 1 u32 chain 0
    filter protocol all pref 1 u32 chain 0 fh 800: ht divisor 1
    filter protocol all pref 1 u32 chain 0 fh 800::1 order 1 key ht 800 bkt 0 terminal flowid not_in_hw
      match 00000806/0000ffff at -4
            action order 1: mirred (Egress Redirect to device ifb-eth1) stolen
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from minigts.dataplane.shaping import holds_arrivals, ifb, largest_frame, polices, spares_arp
from minigts.topology.plan.elements import Port

BEGIN, _PLACE = "--filters--", "--filters of "
_SIDES = {"ingress": "arriving", "egress": "leaving"}
_ARP, _ALL = "800::1", "800::2"
"""The handles of the lab's own two rules."""
_TABLE = (None, "800:")
_PASSES = "gact action pass"
_ROUNDED = re.compile(r"([\d.]+)([KMGT]?)(bit|b)", re.ASCII)
"""An amount as tc prints it for a policer: `police 0x1 rate 20Mbit burst 100000b mtu 1414b action drop/pipe`."""
_ROUNDING = 0.02


@dataclass
class FilterRule:
    """A rule, and the lines of its matches and actions."""

    pref: str
    kind: str
    handle: str | None
    does: list[str] = field(default_factory=list)

    @property
    def is_own(self) -> bool:
        return (self.pref, self.kind) == ("1", "u32") and self.handle in (*_TABLE, _ARP, _ALL)


Shown: TypeAlias = Mapping[tuple[str, str], tuple[FilterRule, ...]]
"""The rules by port and side, `ingress` or `egress`."""


def show(ports: Iterable[Port]) -> str:
    """The commands for `sh` that print the filters of these ports. A port without clsact has none."""
    names = " ".join(shlex.quote(port.name) for port in ports)
    each = f'echo "{_PLACE}$port $side"; tc filter show dev $port $side 2>/dev/null || true'
    return f"echo '{BEGIN}'; for port in {names}; do for side in {' '.join(_SIDES)}; do {each}; done; done"


def read(text: str) -> Shown:
    """The rules in the output of `show`, without its first line. Raises ValueError for other output."""
    found: dict[tuple[str, str], list[FilterRule]] = {}
    here: list[FilterRule] = []
    for line in filter(str.strip, text.splitlines()):
        if line.startswith(_PLACE):
            port, side = line.removeprefix(_PLACE).split()
            here = found.setdefault((port, side), [])
        elif line.startswith("filter "):
            here.append(_rule(line.split()))
        elif here:
            here[-1].does.append(line.strip())
        else:
            raise ValueError(f"{line[:80]!r} is of no filter")
    return {place: tuple(rules) for place, rules in found.items()}


def _rule(words: list[str]) -> FilterRule:
    try:
        _, pref, kind, *_ = words[words.index("pref") :]
    except ValueError as error:
        raise ValueError(f"{' '.join(words)[:80]!r} is no filter") from error
    return FilterRule(pref, kind, next((after for word, after in pairwise(words) if word == "fh"), None))


def differences(port: Port, shown: Shown) -> list[str]:
    """How a port's filters differ from those that `shaping` sets for it, a sentence each. `port` has its current
    settings. Where it delays nothing, `shaping.differences` checks that it has no clsact."""
    return [f"{port.name}: {text}" for text in _differences(port, shown)]


def _differences(port: Port, shown: Shown) -> Iterator[str]:
    if not holds_arrivals(port.incoming):
        return
    own = {rule.handle: rule for rule in shown.get((port.name, "ingress"), ()) if rule.is_own}
    leads = f"Egress Redirect to device {ifb(port)}"
    for handle, does in ((_ALL, leads), (_ARP, _PASSES if spares_arp(port.incoming) else leads)):
        what = "ARP" if handle == _ARP else "arriving frames"
        actions = [line for line in own[handle].does if line.startswith("action order")] if handle in own else []
        if handle == _ALL and polices(port.incoming):
            dropping = [line for line in actions if "police" in line]
            actions = [line for line in actions if "police" not in line]
            yield from _of_policer(port, dropping)
        if not actions:
            yield f"no filter leads {what} where they are delayed"
        elif len(actions) > 1 or does not in actions[0]:
            yield f"the filter for {what} does something else: {actions[-1].partition(': ')[2].strip()}"
    for side, which in _SIDES.items():
        foreign = [rule for rule in shown.get((port.name, side), ()) if side == "egress" or not rule.is_own]
        for rule in {(each.pref, each.kind): each for each in foreign}.values():
            yield f"a filter {rule.kind} for {which} frames that is not the lab's (pref {rule.pref})"


def _of_policer(port: Port, actions: list[str]) -> Iterator[str]:
    """How the actions `police` of a port's filter differ from what should drop there."""
    if len(actions) != 1:
        yield f"{len(actions)} filters drop what arrives beyond its rate or size, should be 1"
        return
    arriving = port.incoming
    wanted = {"mtu": largest_frame(arriving)}
    if arriving.polices:
        wanted |= {"rate": arriving.rate_bps or 0, "burst": arriving.rate_burst_bytes}
    for word, should in wanted.items():
        is_, exact = _said(actions[0], word)
        if is_ is None or abs(is_ - should) > (0 if exact else _ROUNDING * should):
            yield f"the {word} beyond which arriving frames are dropped is {is_}, should be {should}"


def police_figures(port: Port, shown: Shown) -> dict[str, float]:
    """What the action `police` on a port's arriving frames shows: `mtu` in bytes, and of a policer `rate` in bits a
    second and `burst` in bytes, as tc rounds them. Empty where there is none."""
    rules = (rule for rule in shown.get((port.name, "ingress"), ()) if rule.handle == _ALL and rule.is_own)
    action = next((line for rule in rules for line in rule.does if "police" in line), "")
    said = {word: _said(action, word)[0] for word in ("rate", "burst", "mtu")}
    return {word: amount for word, amount in said.items() if amount}


def _said(action: str, word: str) -> tuple[float | None, bool]:
    """The amount after a word of an action, None without, and whether tc has not rounded it."""
    found = _ROUNDED.search(action, action.find(f"{word} "))
    if found is None or f"{word} {found[0]}" not in action:
        return None, False
    return _amount(*found.groups()), not found[2]


def _amount(number: str, prefix: str, unit: str) -> float:
    """tc counts bits in powers of 1000, and bytes in powers of 1024."""
    power = " KMGT".index(prefix or " ")
    return float(float(number) * (1000 if unit == "bit" else 1024) ** power)
