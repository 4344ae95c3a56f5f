"""What the users of a board rely on, measured from every host: that hosts reach each other in the time of the plan,
whole and in order, with large packets, services, names, a disk and a clock. What does not hold is a complaint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from minigts import overlays
from minigts.foreign import parser_text
from minigts.lab import Lab
from minigts.overlays import Endpoint, policy
from minigts.overlays.policy import Policy
from minigts.topology.plan.plan import Plan

Missing: TypeAlias = Literal["reach", "large", "pieces", "service", "transfer", "name", "record", "ports", "link"]
Poor: TypeAlias = Literal["slow", "fast", "rate", "loss", "twice", "order", "jitter"]
OfCluster: TypeAlias = Literal["site", "server", "servers", "lookup", "node", "enter"]
What: TypeAlias = Missing | Poor | Literal["open", "disk", "clock"] | OfCluster
LOOK_S, MOVE_S = 300.0, 60.0
QUIET_S = 2.0
"""How long the lab is left alone before anybody looks: a transfer that has just ended, such as the one by which a fault
of a rate is seen, leaves as many as 1000 packets in a queue, which take 1.2 s at 10 Mbit/s."""
PINGS, INTERVAL_S = 25, 0.05
"""How many echo requests a neighbour gets, and how far apart. `ping` waits busily for its next one when an answer comes
less than 10 ms before it, which takes none of the lab's time and much of this machine's."""
PIECES, PIECES_MS = 8000, 40.0
"""A packet in six pieces, and how many ms more than a small one it may take there and back."""
SLOWER, SLOWER_MS, FASTER = 1.05, 2.0, 0.9
"""A round trip is slow above this share of the plan's and so many ms, fast below this share of it."""
LONG_MS = 20.0
"""Over links of at least this round trip a transfer is measured, since a small window shows there."""
LEAST_RATE = 0.3
"""A transfer of a second has to reach this share of the path's highest TCP rate; TCP's slow start is part of it."""
MOST_JITTER_MS = 3.0
CLOCK_S = 60.0
"""By how much a host's time of day may differ from that of most hosts."""
_SERVICE = 5201
_WHOLE = "-M probe"
"""Forbids fragments, and does not believe what a host remembers for ten minutes of a path's MTU."""
_NONE = "none"
_LINE = re.compile(r"([a-z]{1,10}) ([a-z0-9-]{1,40}) ([0-9.]{1,40}|none)")
_SHELL = f"""
says() {{
  what=$1 of=$2
  shift 2
  if "$@" >/dev/null 2>&1; then echo "$what $of 1"; else echo "$what $of {_NONE}"; fi
}}
trip() {{
  told=$(ping -q -n -W 1 "$@" 2>/dev/null)
  case $told in *" = "*) told=${{told##* = }} ;; *) told={_NONE} ;; esac
  echo "${{told%%/*}}"
}}
reach() {{ echo "reach $1 $(trip -c 2 -i 0.2 "$2")"; }}
look() {{
  says large "$1" ping -q -n -c 1 -W 1 {_WHOLE} -s "$3" "$2"
  echo "pieces $1 $(trip -c 1 -s {PIECES} "$2")"
}}
open() {{ says service "$1" nc -z -w 2 "$2" {_SERVICE}; }}
near() {{
  ping -n -c {PINGS} -i {INTERVAL_S} -W 1 "$2" 2>/dev/null | awk -v of="$1" '
    /icmp_seq=/ {{
      if (/DUP!/) {{ twice++; next }}
      split($0, parts, "icmp_seq="); number = parts[2] + 0; seen++
      if (number < last) order++
      last = number
    }}
    /^rtt/ {{ split($4, times, "/"); jitter = times[4] }}
    END {{
      print "loss", of, {PINGS} - seen; print "twice", of, twice + 0
      print "order", of, order + 0; print "jitter", of, jitter + 0
    }}'
}}
named() {{
  for name; do
    found=$(getent hosts "$name")
    echo "name $name ${{found%%[!0-9.]*}}"
  done
}}
served() {{
  for name; do
    found=$(dig +short +tries=1 +time=2 "$name" 2>/dev/null)
    echo "record $name $found"
  done
}}
own() {{
  says disk "$1" dd if=/dev/zero of=/root/.room bs=64k count=1 conv=fsync
  rm -f /root/.room
  echo "clock $1 $(date +%s)"
  shift
  python3 -c "$SPEAK" "$@"
}}
"""
_SPEAK = f"""
import socket, sys

def opened(address):
    return socket.create_connection((address, {_SERVICE}), 3)

def speaks(address):
    # The server of iperf3 says a byte to whoever sends a cookie. It may be busy with what another one has asked.
    for _ in range(5):
        try:
            with opened(address) as asked:
                asked.sendall(bytes(37))
                if asked.recv(1):
                    return 1
        except OSError:
            pass
    return "{_NONE}"

for name, address in zip(sys.argv[1::2], sys.argv[2::2]):
    print("transfer", name, speaks(address))
    try:
        held = [opened(address) for _ in range(2)]
        print("ports", name, 1)
    except OSError:
        print("ports", name, "{_NONE}")
"""
"""Whether the service of each neighbour says anything, and whether it can be spoken to twice at once."""
_MOVE = f"""
moved=$(timeout 12 iperf3 -c "$1" -p {_SERVICE} -t 1 -J --connect-timeout 2000 2>/dev/null |
  jq -r '.end.sum_received.bits_per_second // "{_NONE}"')
echo "rate $0 ${{moved:-{_NONE}}}"
"""


class Complaint(BaseModel):
    """What does not hold from one host to another, or on a host alone; between their containers with `inside`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    what: What
    source: str
    target: str = ""
    figure: float | None = None
    """What was measured, in ms, Mbit/s or packets; None where nothing came, or there is no figure."""
    inside: bool = False


def complaints(lab: Lab) -> tuple[Complaint, ...]:
    """All that does not hold now. It takes some seconds of the lab's time, and changes nothing that lasts."""
    joined = overlays.joined_overlay(lab)
    ends = {} if joined is None else {name: end for name, end in joined.endpoints().items() if end.prefix}
    lab.provider.sleep_until(lab.provider.now_s() + QUIET_S)
    found: list[Complaint] = []
    for inside in (False, True) if ends else (False,):
        serves = inside or not ends  # containers have the service where there are such
        allowed = policy.policy_in_force(lab) if inside else None
        found += _judged(lab.plan, _said(lab, ends if inside else {}), allowed, inside=inside, serves=serves)
    return tuple(found)


Said = Mapping[tuple[str, str, str], str]
"""By what, source and target, what the source's script printed."""


def _said(lab: Lab, ends: Mapping[str, Endpoint]) -> Said:
    """Small packets from all hosts side by side, then whatever would delay them, then transfers between neighbours one
    after the other."""
    plan = lab.plan
    names = [host.name for host in plan.hosts]
    found: dict[tuple[str, str, str], str] = {}
    with lab.provider.together() as pool:
        for look in (_reach, _look):
            said = pool.all([partial(look, lab, name, ends, found) for name in names])
            found |= {
                (what, name, of): text for name, lines in zip(names, said, strict=True) for what, of, text in lines
            }
        for source, target in _transfers(plan):
            argv = (*_entry(ends, source), "sh", "-c", _MOVE, target, _address(plan, ends, target))
            for what, of, text in _lines(lab, source, argv, MOVE_S):
                found[what, source, of] = text
    return found


def _reach(lab: Lab, host: str, ends: Mapping[str, Endpoint], _said: Said) -> Sequence[tuple[str, str, str]]:
    plan = lab.plan
    calls = [f"reach {each.name} {_address(plan, ends, each.name)}" for each in plan.hosts if each.name != host]
    return list(_lines(lab, host, (*_entry(ends, host), "sh", "-c", "\n".join([_SHELL, *calls])), LOOK_S))


def _look(lab: Lab, host: str, ends: Mapping[str, Endpoint], said: Said) -> Sequence[tuple[str, str, str]]:
    plan = lab.plan
    others = [each.name for each in plan.hosts if each.name != host]
    size = (ends[host].mtu if ends else 1500) - 28
    calls = []
    for name in others:
        address = _address(plan, ends, name)
        if said.get(("reach", host, name), _NONE) != _NONE:
            calls.append(f"look {name} {address} {size}")
        calls.append(f"open {name} {address}")
    calls += [f"near {name} {_address(plan, ends, name)}" for name in _neighbours(plan, host)]
    near = " ".join(f"{name} {_address(plan, ends, name)}" for name in _neighbours(plan, host))
    calls.append(f"own {host} {near}")
    if not ends:
        links = [(other.name, far.address) for _, other, far in plan.neighbours(plan.host(host))]
        calls += [f"says link {name} ping -q -n -c 1 -W 1 {address}" for name, address in links]
        calls.append(" ".join(("named", *others)))
        calls += [" ".join(("served", *others))] if plan.dns else []
    argv = (*_entry(ends, host), "env", f"SPEAK={_SPEAK}", "sh", "-c", "\n".join([_SHELL, *calls]))
    return list(_lines(lab, host, argv, LOOK_S))


def _lines(lab: Lab, host: str, argv: Sequence[str], limit_s: float) -> Iterator[tuple[str, str, str]]:
    said = parser_text(lab.provider.run(host, argv, timeout_s=limit_s, check=False).stdout)
    for line in said.splitlines():
        if found := _LINE.fullmatch(line):
            yield found[1], found[2], found[3]


def _entry(ends: Mapping[str, Endpoint], host: str) -> tuple[str, ...]:
    return ends[host].network if ends else ()


def _address(plan: Plan, ends: Mapping[str, Endpoint], host: str) -> str:
    return ends[host].address if ends else plan.own_address(host)


def _transfers(plan: Plan) -> list[tuple[str, str]]:
    """Between neighbours, in both directions of long links."""
    long = [link.ends for link in plan.links if plan.path(*link.ends).rtt_ms >= LONG_MS]
    return [pair for first, second in long for pair in ((first, second), (second, first))]


def _neighbours(plan: Plan, host: str) -> list[str]:
    return list(dict.fromkeys(other.name for _, other, _ in plan.neighbours(plan.host(host))))


def _judged(plan: Plan, said: Said, allowed: Policy | None, *, inside: bool, serves: bool) -> Iterator[Complaint]:
    clocks = [number for (what, _, _), text in said.items() if what == "clock" and (number := _number(text))]
    names = [host.name for host in plan.hosts]
    for source in names:
        if not inside:
            if said.get(("disk", source, source)) != "1":
                yield Complaint(what="disk", source=source)
            if abs((_number(said.get(("clock", source, source))) or 0.0) - median(clocks or [0.0])) > CLOCK_S:
                yield Complaint(what="clock", source=source)
        for target in (name for name in names if name != source):
            may = [
                allowed is None or policy.lets(allowed, source, target, names, protocol, port)
                for protocol, port in (("icmp", None), ("tcp", _SERVICE))
            ]
            yield from _Pair(plan, said, source, target, inside, serves, *may).complaints()


@dataclass(frozen=True)
class _Pair:
    """What a host's script said of another host."""

    plan: Plan
    said: Said
    source: str
    target: str
    inside: bool
    serves: bool
    may_ping: bool = True
    may_open: bool = True
    """What a policy lets through of pings, and of connections to the service."""

    def complain(self, what: What, figure: float | None = None) -> Complaint:
        return Complaint(what=what, source=self.source, target=self.target, figure=figure, inside=self.inside)

    def told(self, what: str) -> str:
        return self.said.get((what, self.source, self.target), _NONE)

    @property
    def is_near(self) -> bool:
        return self.target in _neighbours(self.plan, self.source)

    def complaints(self) -> Iterator[Complaint]:
        reached, served = _number(self.told("reach")), self.told("service") == "1"
        if (reached is not None and not self.may_ping) or (self.serves and served and not self.may_open):
            yield self.complain("open")
        if self.may_ping and reached is None:
            yield self.complain("reach")
        elif self.may_ping and reached is not None:
            yield from self._of_packets(reached)
        if self.serves and self.may_open and served:
            yield from self._of_transfers()
        elif self.serves and self.may_open and (reached is not None or not self.may_ping):
            yield self.complain("service")
        wanted = self.plan.own_address(self.target)
        if not self.inside and self.told("name") != wanted:
            yield self.complain("name")
        if not self.inside and self.plan.dns and self.told("record") != wanted:
            yield self.complain("record")

    def _of_packets(self, reached_ms: float) -> Iterator[Complaint]:
        wanted_ms = self.plan.path(self.source, self.target).rtt_ms
        if reached_ms > wanted_ms * SLOWER + SLOWER_MS:
            yield self.complain("slow", reached_ms)
        if reached_ms < wanted_ms * FASTER:
            yield self.complain("fast", reached_ms)
        if self.is_near and not self.inside and self.told("link") != "1":
            yield self.complain("link")
        if self.told("large") != "1":
            yield self.complain("large")
        pieces = _number(self.told("pieces"))
        if pieces is None:
            yield self.complain("pieces")
        elif pieces > max(reached_ms, wanted_ms) + PIECES_MS:
            yield self.complain("rate")
        for what, most in _MOSTS.items() if self.is_near else ():
            if (figure := _number(self.told(what))) is None or figure > most:
                yield self.complain(what, figure)

    def _of_transfers(self) -> Iterator[Complaint]:
        if self.is_near and self.told("transfer") != "1":
            yield self.complain("transfer")
        elif self.is_near and self.told("ports") != "1":
            yield self.complain("ports")
        if (self.source, self.target) in _transfers(self.plan):
            rate = _number(self.told("rate")) or 0.0
            if rate / 1e6 < LEAST_RATE * (self.plan.path(self.source, self.target).tcp_ceiling_mbit or 0.0):
                yield self.complain("rate", rate / 1e6)


_MOSTS: Mapping[Literal["loss", "twice", "order", "jitter"], float] = {
    "loss": 0,
    "twice": 0,
    "order": 0,
    "jitter": MOST_JITTER_MS,
}


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
