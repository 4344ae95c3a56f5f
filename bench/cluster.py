"""How often a cluster of Kubernetes comes up, how long it takes, and its nodes' memory: one cluster many times, or
clusters of more and more nodes.

Each `up` is a replicate of its own, with other random numbers, since a lab in virtual time is one course of events: the
same course twenty times would be one trial. Counted are the seconds of the lab, and those of this machine, from the
first host's start until every node and every pod of the topology is ready; the processor seconds of the lab's processes
and this one; and MiB of this machine then: of the whole lab, of the control plane's kernel, and of the largest other.

`--nodes` makes clusters of its own: the control plane and workers on switches, 1 ms and 1 Gbit/s a link, and as many
pods on each node as `--pods` says, beside the measuring one. A failed `up` is kept in the figures with its error, and
the next is tried; with `--nodes` no larger cluster is tried.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from bench import memory, stage
from minigts import lab as labs
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import MinigtsError
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.rundir import lab_named
from minigts.machine.proc import shared_files_bytes, used_s
from minigts.session.bring_up import Request, bring_up, ready
from minigts.topology.plan import reseed
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load
from minigts.topology.time import Time

LINKS_OF_A_SWITCH = 30
"""Below what a machine can have in virtual time; one of them leads to the first switch."""
COUNT_TIMEOUT_S = 60.0
HEADS = ("", ">lab, s", ">machine, s", ">processor, s", ">pods", ">MiB", ">control plane", ">a worker")
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: servers}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: servers}}}}
  template:
    metadata: {{labels: {{app: servers}}}}
    spec:
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {{matchLabels: {{app: servers}}}}
      containers:
        - name: servers
          image: minigts/measure
          imagePullPolicy: IfNotPresent
          readinessProbe: {{tcpSocket: {{port: 12865}}, periodSeconds: 1}}
"""


@dataclass(frozen=True)
class Up:
    """One cluster that came up, or `failed` says why it did not. Memory in MiB."""

    lab_s: float = 0.0
    machine_s: float = 0.0
    processor_s: float = 0.0
    pods: int = 0
    mib: float = 0.0
    plane_mib: float = 0.0
    worker_mib: float = 0.0
    failed: str = ""


def topology(nodes: int, pods: int, worker_mb: int, plane_mb: int) -> str:
    """A topology of `nodes` nodes, the first the control plane, on switches that are joined to the first of them."""
    names = ["plane", *(f"worker{number}" for number in range(1, nodes))]
    racks = [names[first : first + LINKS_OF_A_SWITCH - 1] for first in range(0, nodes, LINKS_OF_A_SWITCH - 1)]
    switches = [f"rack{number}" for number in range(1, len(racks) + 1)]
    links = [f"  - {{ends: [{switches[0]}, {other}]}}\n" for other in switches[1:]]
    links += [
        f"  - {{ends: [{name}, {switch}]}}\n" for switch, rack in zip(switches, racks, strict=True) for name in rack
    ]
    files = "files: [{source: servers.yaml, target: /srv/kubernetes/manifests/}]" if pods else ""
    hosts = [f"  plane: {{memory: {plane_mb}MB, {files}}}\n", *(f"  {name}: {{}}\n" for name in names[1:])]
    return (
        "name: bench\noverlay: kubernetes\n"
        f"defaults: {{link: {{rtt: 1ms, rate: 1gbit}}, host: {{memory: {worker_mb}MB}}}}\n"
        f"hosts:\n{''.join(hosts)}switches:\n{''.join(f'  {name}: {{}}{chr(10)}' for name in switches)}"
        f"links:\n{''.join(links)}"
    )


def pods_of(lab: Lab, plane: str) -> int:
    """How many pods run on the cluster."""
    argv = ["kubectl", "get", "pods", "--all-namespaces", "--no-headers", "--field-selector", "status.phase=Running"]
    said = user_text(lab.provider.run(plane, argv, timeout_s=COUNT_TIMEOUT_S).stdout)
    return len(said.splitlines())


def brought_up(plan: Plan, overlay: str) -> Up:
    name = f"bench-{os.getpid()}"
    lab = lab_named(name)
    started, own_s = time.monotonic(), time.process_time()
    try:
        bring_up(ready(Request(plan, name=name, overlay=overlay)), console.note, extent="quick")
        family = memory.family(memory.supervisor_of(lab), memory.children())
        machine_s, processor_s = time.monotonic() - started, sum(map(used_s, family)) + time.process_time() - own_s
        lab = Lab(lab.rundir)
        lab_s = lab.provider.now_s() if plan.time == "virtual" else machine_s
        held = held_mib(lab)
        plane = plan.hosts[0].name
        return Up(
            round(lab_s, 1),
            round(machine_s, 1),
            round(processor_s, 1),
            pods_of(lab, plane),
            memory.memory(lab)["all"],
            held[plane],
            max((mib for host, mib in held.items() if host in {each.name for each in plan.hosts[1:]}), default=0.0),
        )
    except MinigtsError as error:
        return Up(machine_s=round(time.monotonic() - started, 1), failed=str(error))
    finally:
        labs.down(lab)


def held_mib(lab: Lab) -> dict[str, float]:
    """MiB of each kernel: the blocks of its memory file, and the other memory of its processes."""

    def held(pids: Sequence[int]) -> float:
        shares = memory.shares(pids)
        return round((shared_files_bytes(pids[:1]) + shares["Pss"] - shares["Pss_Shmem"]) / memory.MIB, 1)

    return {name: held(pids) for name, pids in memory.kernels(lab).items()}


def show(found: dict[str, list[Up]]) -> None:
    def row(what: str, ups: Sequence[Up]) -> tuple[str, ...]:
        whole = [each for each in ups if not each.failed]
        if not whole:
            return (what, *("" for _ in HEADS[1:]))

        def middle(name: str) -> str:
            return f"{statistics.median(getattr(each, name) for each in whole):.0f}"

        def span(name: str) -> str:
            least, most = min(getattr(each, name) for each in whole), max(getattr(each, name) for each in whole)
            return f"{least:.1f}" if least == most else f"{least:.1f} to {most:.1f}"

        names = ("processor_s", "pods", "mib", "plane_mib", "worker_mib")
        return (what, span("lab_s"), span("machine_s"), *map(middle, names))

    tables.show_table("Until a cluster is ready", HEADS, (row(what, ups) for what, ups in found.items()))
    for what, ups in found.items():
        failed = [each.failed for each in ups if each.failed]
        console.out().print(f"{what}: {len(failed)} of {len(ups)} failed", *failed, sep="\n", markup=False)


def main() -> None:
    arguments = stage.parser(__doc__, "kubernetes.yaml")
    arguments.add_argument("--ups", type=int, default=20)
    arguments.add_argument("--overlay", default="kubernetes")
    arguments.add_argument("--time", choices=get_args(Time), default="virtual")
    arguments.add_argument(
        "--nodes", nargs="+", type=int, default=[], help="clusters of so many nodes, one after another"
    )
    arguments.add_argument("--pods", type=int, default=3, help="pods on each node of --nodes")
    arguments.add_argument("--worker-mb", type=int, default=500)
    arguments.add_argument("--plane-mb", type=int, default=4000)
    chosen = arguments.parse_args()
    figures = stage.Figures("cluster", chosen.topology)
    found: dict[str, list[Up]] = {}

    def note(what: str, plan: Plan) -> Up:
        done = brought_up(plan, chosen.overlay)
        found.setdefault(what, []).append(done)
        console.note(f"{what}: {done}")
        return done

    if not chosen.nodes:
        plan = load(chosen.topology, known_overlays=overlays.known_names(), time=chosen.time)
        for number in range(1, chosen.ups + 1):
            note(plan.name, reseed.replicate(plan, number))
    for nodes in chosen.nodes:
        with TemporaryDirectory() as place:
            (Path(place) / "servers.yaml").write_text(MANIFEST.format(replicas=nodes * chosen.pods))
            file = Path(place) / "bench.yaml"
            file.write_text(topology(nodes, chosen.pods, chosen.worker_mb, chosen.plane_mb))
            if note(f"{nodes} nodes", load(file, known_overlays=overlays.known_names(), time=chosen.time)).failed:
                break
    show(found)
    written: dict[str, Any] = {what: [asdict(each) for each in ups] for what, ups in found.items()}
    figures.write(chosen.out, {"overlay": chosen.overlay, "time": chosen.time, "ups": written})


if __name__ == "__main__":
    stage.perform(main)
