"""The boards of the arena: the topologies whose labs have incidents. All are in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from minigts import overlays
from minigts.overlays import policy
from minigts.overlays.policy import Policy
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse


@dataclass(frozen=True)
class Board:
    """A topology, without its name; how many seconds of the lab a change takes until all follow it; and a policy."""

    topology: str
    settles_s: float = 0.0
    policy: str = ""
    """The text of a policy file: what its containers may do."""


_ROW = """
hosts: {ams: , bra: , lju: , mil: }
links:
  - {ends: [ams, bra], rtt: 10ms, rate: 10mbit}
  - {ends: [bra, lju], rtt: 24ms, rate: 10mbit}
  - {ends: [lju, mil], rtt: 10ms, rate: 10mbit}
"""
_STAR = """
hosts: {zag: , vie: , bud: , sof: , ath: }
links:
  - {ends: [zag, vie], rtt: 8ms, rate: 10mbit}
  - {ends: [zag, bud], rtt: 12ms, rate: 10mbit}
  - {ends: [zag, sof], rtt: 24ms, rate: 10mbit}
  - {ends: [sof, ath], rtt: 10ms, rate: 10mbit}
"""
_RING = """
hosts: {osl: , sto: , hel: , tal: , rig: }
links:
  - {ends: [osl, sto], rtt: 10ms, rate: 10mbit}
  - {ends: [sto, hel], rtt: 12ms, rate: 10mbit}
  - {ends: [hel, tal], rtt: 24ms, rate: 10mbit}
  - {ends: [tal, rig], rtt: 10ms, rate: 10mbit}
  - {ends: [rig, osl], rtt: 16ms, rate: 10mbit}
"""
_FOUR = """
hosts: {par: {memory: 1GB}, lyo: {memory: 1GB}, nic: {memory: 1GB}, tou: {memory: 1GB}}
links:
  - {ends: [par, lyo], rtt: 10ms, rate: 10mbit}
  - {ends: [lyo, nic], rtt: 12ms, rate: 10mbit}
  - {ends: [lyo, tou], rtt: 16ms, rate: 10mbit}
"""
_THREE = """
hosts: {par: {memory: 1GB}, lyo: {memory: 1GB}, nic: {memory: 1GB}}
links:
  - {ends: [par, lyo], rtt: 10ms, rate: 10mbit}
  - {ends: [lyo, nic], rtt: 12ms, rate: 10mbit}
"""
_FOUR_IN_A_ROW = """
hosts: {par: {memory: 1GB}, lyo: {memory: 1GB}, tou: {memory: 1GB}, nic: {memory: 1GB}}
links:
  - {ends: [par, lyo], rtt: 10ms, rate: 10mbit}
  - {ends: [lyo, tou], rtt: 16ms, rate: 10mbit}
  - {ends: [tou, nic], rtt: 12ms, rate: 10mbit}
"""
_SHOP = """\
name: shop
default: deny
groups: {web: [par, lyo], store: [nic, tou]}
rules:
  - deny: {from: store, to: web}
  - allow: {from: any, to: any, protocol: icmp}
  - allow: {from: web, to: web}
  - allow: {from: web, to: store, protocol: tcp, ports: [5201]}
"""
BOARDS = {
    "row": Board(_ROW),
    "star": Board(_STAR),
    "ring": Board(_RING),
    "row-dns": Board(f"dns: true\n{_ROW}"),
    "star-dns": Board(f"dns: true\n{_STAR}"),
    "row-ospf": Board(f"routing: ospf\n{_ROW}", settles_s=20),
    "ring-ospf": Board(f"routing: ospf\n{_RING}", settles_s=20),
    "ring-bgp": Board(f"routing: bgp\n{_RING}", settles_s=20),
    "four-vxlan": Board(f"overlay: vxlan\n{_FOUR}"),
    "three-swarm": Board(f"overlay: swarm\n{_THREE}"),
    "four-calico": Board(f"overlay: calico\n{_FOUR}", policy=_SHOP),
    "row-romana": Board(f"overlay: romana\n{_FOUR_IN_A_ROW}", policy=_SHOP),
}
"""The boards by name."""


def topology_of(board: str, name: str) -> str:
    """The text of a board's topology file, of that name."""
    return f"name: {name}\ntime: virtual\n{BOARDS[board].topology}"


@cache
def plan_of(board: str, name: str) -> Plan:
    """The plan of a board's lab, which has that name."""
    return parse(topology_of(board, name), f"board {board}", known_overlays=overlays.known_names())


@cache
def policy_of(board: str) -> Policy | None:
    """What the containers of a board may do; None: everything."""
    if not (text := BOARDS[board].policy):
        return None
    return policy.parse(text, f"policy of board {board}", [host.name for host in plan_of(board, "board").hosts])
