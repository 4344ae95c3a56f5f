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
    manifest: str = ""
    """What its cluster of Kubernetes carries, as YAML."""
    heals_s: float = 0.0
    """How many seconds of the lab, at most, a cluster is given until all is again as it was."""


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
_CLUSTER = """
overlay: kubernetes-flannel
kubernetes: {dns: true, policies: true}
hosts: {gva: {memory: 1500MB}, brn: {memory: 700MB}, zrh: {memory: 700MB}}
links:
  - {ends: [gva, brn], rtt: 4ms, rate: 50mbit}
  - {ends: [gva, zrh], rtt: 6ms, rate: 50mbit}
"""
_APP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 3
  strategy: {{type: Recreate}}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {{matchLabels: {{app: {name}}}}}
      containers:
        - name: {name}
          image: minigts/measure
          imagePullPolicy: IfNotPresent
          readinessProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 2}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
  selector: {{app: {name}}}
  clusterIP: {address}
  ports: [{{port: {service_port}, targetPort: {port}}}]
"""


@dataclass(frozen=True)
class ClusterApp:
    """An application of a board's cluster: a Deployment with a server on each node, and a Service of the same name."""

    name: str
    port: int
    """On which a server listens."""
    address: str
    """The Service's."""
    service_port: int = 80
    """The Service's port."""


APPS = (ClusterApp("web", 5201, "172.30.10.1"), ClusterApp("store", 12865, "172.30.10.2"))
"""What each cluster carries. The servers are iperf3's and netperf's, which the image has."""
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
    "star-kubernetes": Board(
        _CLUSTER, settles_s=12, manifest="---\n".join(_APP.format(**vars(app)) for app in APPS), heals_s=90
    ),
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
