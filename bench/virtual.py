"""How exact virtual time is, and what it costs: each part by its name, or all of them.

round-trips  echo requests of every pair, compared with the plan's prediction to the nanosecond, over plain hosts and
             over Swarm, in separate labs; in every second lab beside a busy program on each core. Are all equal?
speed        virtual seconds per real second, by hosts, their rate, and cores; and which processes used the processors
joins        Swarm joined and left again and again; from time to time the lab is replaced by a new one
scale        many bare hosts on one clock: the time until they are up, and their memory; round trips over a long chain
fast         TCP and UDP over one fast link, and how much slower than real time that is
multihop     `minigts run experiments/multihop.yaml --time virtual` twice: how long, and are the files equal?

Other work of the machine does not change virtual figures, but it changes real seconds.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import memory, stage
from minigts import overlays
from minigts.cli import console
from minigts.cli.views import tables
from minigts.dataplane import wire
from minigts.errors import MinigtsError
from minigts.experiment_language.model import MEASUREMENTS, AnyMeasurement
from minigts.experiments import commands
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.lab.calibration import probe
from minigts.machine import shell
from minigts.machine.proc import family, shared_files_bytes, text_of, used_s
from minigts.overlays import Endpoint
from minigts.providers.agent import lab_processes
from minigts.providers.base import CarriesLinks
from minigts.tools import TOOLS
from minigts.tools.base import Measured, PathUnderTest
from minigts.topology.plan.elements import Path as PlanPath
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse
from tests.live.program import spinning

ECHO_BYTES = 98
"""The size of a frame of the probe: 56 bytes after the headers of ICMP, IPv4 and Ethernet."""
EXPERIMENT = stage.PROJECT / "experiments" / "multihop.yaml"
GROUPS = ("clock", "kernels", "rest")


@dataclass(frozen=True)
class Table:
    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Part:
    """The result of a part: all figures, and those to be printed."""

    figures: Any
    tables: tuple[Table, ...]


@dataclass
class Passed:
    """How long a block took, in real time and in the lab's; processor time by kind of process; frames carried over a
    link."""

    real_s: float = 0.0
    virtual_s: float = 0.0
    frames: int = 0
    processor_s: dict[str, float] | None = None

    @property
    def speed(self) -> float:
        """Virtual seconds per real second."""
        return self.virtual_s / self.real_s


def chain(hosts: int, rate_mbit: float | None, rtt_ms: float = 10, memory_mb: int = 128) -> Plan:
    rate = f", rate: {rate_mbit:g}mbit" if rate_mbit else ""
    text = (
        f"name: chain-{hosts}\ndefaults: {{host: {{memory: {memory_mb}MB}}}}\n"
        f"chain: {{hosts: {hosts}, link: {{rtt: {rtt_ms:g}ms{rate}}}}}\n"
    )
    return parse(text, "chain.yaml", time="virtual")


def carrier(lab: Lab) -> CarriesLinks:
    if not isinstance(lab.provider, CarriesLinks):
        raise MinigtsError("the lab's links are not carried by a clock")
    return lab.provider


def predicted_rtt_ns(plan: Plan, path: PlanPath, frame_bytes: int) -> int:
    """The round trip of one frame and of an equally long answer on idle links: the links' delays and the frames' own
    time on each wire, in nanoseconds."""
    wires = [wire.wire_for(port.outgoing) for port in plan.ends_on(path)]
    return sum(each.delay_ns + (-(-frame_bytes * 8 * 10**9 // each.rate_bps) if each.rate_bps else 0) for each in wires)


def members(lab: Lab) -> dict[str, list[int]]:
    """The lab's processes: its clock, its kernels with the processes in them, and the supervisor."""
    supervisor = lab_processes.supervisor(lab.rundir)
    if supervisor is None:
        raise MinigtsError("the lab's supervisor has ended")
    found: dict[str, list[int]] = {group: [] for group in GROUPS}
    for pid in family([supervisor]):
        words = text_of(Path("/proc") / str(pid) / "cmdline").split("\0")
        kind = "clock" if words[0].endswith("/clock") else "rest" if pid == supervisor else "kernels"
        found[kind].append(pid)
    return found


@contextmanager
def timing(lab: Lab) -> Iterator[Passed]:
    """Measure what the block takes; the result is complete when the block has ended."""

    def used() -> dict[str, float]:
        return {group: sum(map(used_s, pids)) for group, pids in members(lab).items()}

    def carried() -> int:
        return sum(state.frames for state in carrier(lab).wires().values())

    passed = Passed()
    frames, processor_s, virtual_s, real_s = carried(), used(), lab.provider.now_s(), time.monotonic()
    yield passed
    passed.real_s, passed.virtual_s = time.monotonic() - real_s, lab.provider.now_s() - virtual_s
    passed.processor_s = {group: after_s - processor_s[group] for group, after_s in used().items()}
    passed.frames = carried() - frames


# ---- round-trips


def echoes_ns(lab: Lab, ends: Mapping[str, Endpoint], path: PlanPath, count: int) -> list[int]:
    source, target = ends[path.source], ends[path.target]
    seen = probe(lab.provider, path.source, target.address, count=count, prefix=source.network)
    return [round(rtt_ms * 1e6) for rtt_ms in seen.rtts_ms]


def one_run(plan: Plan, count: int) -> dict[str, dict[str, dict[str, Any]]]:
    """By overlay and path: the predicted round trip, and each measured one, in nanoseconds."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with stage.lab_of(plan) as lab:
        underlay = commands.underlay_mtu(plan)
        for overlay in ("none", "swarm"):
            ends = overlays.join(lab, overlay, console.note)
            found[overlay] = {}
            for path in plan.paths:
                frame_bytes = ECHO_BYTES + underlay - ends[path.target].mtu
                found[overlay][f"{path.source}-{path.target}"] = {
                    "hops": path.hops,
                    "predicted_ns": predicted_rtt_ns(plan, path, frame_bytes),
                    "rtts_ns": echoes_ns(lab, ends, path, count),
                }
    return found


def round_trips(chosen: argparse.Namespace) -> Part:
    plan = load(chosen.topology, known_overlays=overlays.known_names(), time="virtual")
    cores = len(os.sched_getaffinity(0))
    runs: list[dict[str, Any]] = []
    for number in range(chosen.runs):
        programs = cores if number % 2 else 0
        console.note(f"round-trips: run {number + 1} of {chosen.runs}, beside {programs} spinning programs")
        since = time.monotonic()
        with spinning(programs):
            found = one_run(plan, chosen.count)
        runs.append({"spinning": programs, "real_s": round(time.monotonic() - since, 1), "found": found})
    rows = [round_trips_row(overlay, runs) for overlay in ("none", "swarm")]
    heads = ("overlay", ">runs", ">pairs", ">echoes a run", ">furthest median", ">same, beside", ">furthest echo")
    heads = (*heads, ">median off by > 1 µs", ">pairs all equal", ">a median's spread")
    return Part(runs, (Table("Round trips less what the plan predicts, in µs", heads, rows),))


def round_trips_row(overlay: str, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A row of the table. Deviations are from the prediction; the spread is that of one pair's median over all runs."""
    found = [(run["spinning"], run["found"][overlay]) for run in runs]
    names = list(found[0][1])

    def off_us(one: Mapping[str, Any]) -> list[float]:
        return [(rtt_ns - one["predicted_ns"]) / 1000 for rtt_ns in one["rtts_ns"]]

    def furthest_median(beside: bool) -> str:
        medians = [
            statistics.median(off_us(one))
            for programs, run in found
            if bool(programs) == beside
            for one in run.values()
        ]
        return f"{max(medians, key=abs):+.3f}" if medians else ""

    medians = {name: [statistics.median(off_us(run[name])) for _, run in found] for name in names}
    every = [off for _, run in found for one in run.values() for off in off_us(one)]
    equal = sum(all(run[name]["rtts_ns"] == found[0][1][name]["rtts_ns"] for _, run in found) for name in names)
    return [
        overlay,
        str(len(runs)),
        str(len(names)),
        str(sum(len(one["rtts_ns"]) for one in found[0][1].values())),
        furthest_median(beside=False),
        furthest_median(beside=True),
        f"{max(every, key=abs):+.3f}",
        str(sum(abs(median) > 1 for each in medians.values() for median in each)),
        f"{equal} of {len(names)}",
        f"{max(max(each) - min(each) for each in medians.values()):.3f}",
    ]


# ---- speed and fast


def measurement(tool: str, **options: str) -> AnyMeasurement:
    return MEASUREMENTS[tool].model_validate(
        {"name": TOOLS[tool].usual_name, "tool": tool, "paths": ("first-to-each",), "options": options}
    )


def flow(lab: Lab, plan: Plan, ends: Mapping[str, Endpoint], what: AnyMeasurement) -> Measured:
    """A measurement from the first host to the last; `plan` is the lab's, with the present rates of its wires."""
    path = plan.path(plan.hosts[0].name, plan.hosts[-1].name)
    source, target = ends[path.source], ends[path.target]
    way = PathUnderTest(target.address, target.mtu, commands.underlay_mtu(plan), path)
    argv = commands.command(what, source, way, lab.provider.pace_s)
    said = lab.provider.run(path.source, argv, timeout_s=commands.timeout_s(what, path))
    return TOOLS[what.tool].read(user_text(said.stdout), user_text(said.stderr))


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Processes that are started in the block use that number of this process's processors, as with taskset(1)."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:count]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def speed(chosen: argparse.Namespace) -> Part:
    found: list[dict[str, Any]] = []
    for cores in chosen.cores:
        for hosts in chosen.hosts:
            console.note(f"speed: {hosts} hosts on {cores} cores")
            with on_cores(cores), stage.lab_of(chain(hosts, max(chosen.rates))) as lab:
                found += [{"hosts": hosts, "cores": cores, **row} for row in speeds(lab, hosts, chosen)]
    heads = ("hosts", ">cores", "what", ">virtual s", ">real s", ">virtual s a real s", ">frames × links a real s")
    heads = (*heads, ">clock, cores", ">kernels, cores", ">goodput, Mbit/s")
    rows = [
        (
            str(row["hosts"]),
            str(row["cores"]),
            row["what"],
            f"{row['virtual_s']:.2f}",
            f"{row['real_s']:.2f}",
            f"{row['virtual_s'] / row['real_s']:.3g}",
            f"{row['frames'] / row['real_s']:.0f}",
            *(f"{row['processor_s'][group] / row['real_s']:.2f}" for group in ("clock", "kernels")),
            f"{row['mbit']:.2f}" if "mbit" in row else "",
        )
        for row in found
    ]
    return Part(
        found, (Table("How fast virtual time passes: a chain of 10 ms links, from the first to the last", heads, rows),)
    )


def speeds(lab: Lab, hosts: int, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    ends = overlays.join(lab, "none", console.note)
    first, last = lab.plan.hosts[0].name, lab.plan.hosts[-1]
    with timing(lab) as passed:
        lab.provider.run(first, ["sleep", "10"], timeout_s=30)
    yield {"what": "nothing", **asdict(passed)}
    with timing(lab) as passed:
        probe(lab.provider, first, last.address, count=50, interval_s=0.2)
    yield {"what": "an echo every 0.2 s", **asdict(passed)}
    for rate_mbit in chosen.rates:
        plan = chain(hosts, rate_mbit)
        carrier(lab).set_wires(
            {(host.name, port.name): wire.wire_for(port.outgoing) for host in plan.hosts for port in host.ports}
        )
        with timing(lab) as passed:
            tcp = flow(lab, plan, ends, measurement("iperf3-tcp", duration=f"{chosen.seconds}s"))
        yield {"what": f"TCP at {rate_mbit:g} Mbit/s", "mbit": tcp.value, **asdict(passed)}


def fast(chosen: argparse.Namespace) -> Part:
    rate_mbit = chosen.fast_rate
    flows = {
        "tcp": measurement("iperf3-tcp", duration=f"{chosen.seconds}s", omit="1s"),
        "udp": measurement("iperf3-udp", duration=f"{chosen.seconds}s", rate="95%", datagram="fit"),
    }
    found: list[dict[str, Any]] = []
    with stage.lab_of(chain(2, rate_mbit, rtt_ms=1, memory_mb=512)) as lab:
        ends = overlays.join(lab, "none", console.note)
        for name, what in flows.items():
            with timing(lab) as passed:
                seen = flow(lab, lab.plan, ends, what)
            way = PathUnderTest("", 1500, 1500, lab.plan.paths[0])
            expected = commands.prediction(what, way) or 0.0
            found.append({"flow": name, "mbit": seen.value, "predicted_mbit": expected, **seen.extra, **asdict(passed)})
    heads = ("flow", ">Mbit/s", ">of the predicted", ">virtual s", ">real s", ">times slower than real")
    rows = [
        (
            row["flow"],
            f"{row['mbit']:.1f}",
            f"{100 * row['mbit'] / row['predicted_mbit']:.2f} %",
            f"{row['virtual_s']:.2f}",
            f"{row['real_s']:.1f}",
            f"{row['real_s'] / row['virtual_s']:.1f}",
        )
        for row in found
    ]
    return Part(found, (Table(f"One link of {rate_mbit:g} Mbit/s and 1 ms", heads, rows),))


# ---- joins


def joins(chosen: argparse.Namespace) -> Part:
    """The times of each join, or its error. After a failure, and after every `--fresh` joins, the lab is a new one.
    Ctrl-C ends the part with the joins so far."""
    plan = load(chosen.topology, known_overlays=overlays.known_names(), time="virtual")
    found: list[dict[str, Any]] = []
    with suppress(KeyboardInterrupt):
        while len(found) < chosen.joins:
            with stage.lab_of(plan) as lab:
                for _ in range(min(chosen.fresh, chosen.joins - len(found))):
                    found.append(one_join(lab, len(found)))
                    failed = sum("fault" in each for each in found)
                    console.note(f"joins: {len(found)} of {chosen.joins}, {failed} failed")
                    if "fault" in found[-1]:
                        break
    rows = [
        (
            kind,
            str(len(these)),
            str(sum("fault" in each for each in these)),
            spread([each["virtual_s"] for each in these], 6),
            spread([each["real_s"] for each in these], 1),
        )
        for kind, these in (
            ("first in its lab", [each for each in found if each["first"]]),
            ("after a leave", [each for each in found if not each["first"]]),
        )
        if these
    ]
    heads = ("join", ">times", ">failed", ">virtual s: least, median, most", ">real s: least, median, most")
    return Part(found, (Table("Joins of Swarm", heads, rows),))


def one_join(lab: Lab, number: int) -> dict[str, Any]:
    virtual_s, real_s = lab.provider.now_s(), time.monotonic()
    fault: dict[str, str] = {}
    first = overlays.joined_overlay(lab) is None
    try:
        if not first:
            overlays.leave(lab, console.note)
            virtual_s, real_s = lab.provider.now_s(), time.monotonic()
        overlays.join(lab, "swarm", console.note)
    except MinigtsError as error:
        fault = {"fault": f"{type(error).__name__}: {error}"}
        console.note(f"join {number}: {fault['fault'][:500]}")
    passed = {"virtual_s": round(lab.provider.now_s() - virtual_s, 9), "real_s": round(time.monotonic() - real_s, 3)}
    return {"number": number, "first": first, **passed, **fault}


def spread(values: Sequence[float], digits: int) -> str:
    return ", ".join(f"{each:.{digits}f}" for each in (min(values), statistics.median(values), max(values)))


# ---- scale


def scale(chosen: argparse.Namespace) -> Part:
    found = {"many": many(chosen.many), "long": long_chain(chosen.long)}
    one, other = found["many"], found["long"]
    memory_row = [str(one["hosts"]), f"{one['up_s']:.0f}", *(f"{one[key]:.0f}" for key in ("pss_mib", "all_mib"))]
    memory_row.append(f"{one['all_mib'] / one['hosts']:.1f}")
    off_us = [(rtt_ns - other["predicted_ns"]) / 1000 for rtt_ns in other["rtts_ns"]]
    long_row = [str(other["hops"]), f"{other['up_s']:.0f}", f"{other['predicted_ns'] / 1e6:.6f}"]
    long_row += [f"{statistics.median(off_us):+.3f}", f"{max(off_us, key=abs):+.3f}", str(len(set(off_us)))]
    return Part(
        found,
        (
            Table(
                "Bare hosts in a chain on one clock",
                ("hosts", ">up, real s", ">PSS, MiB", ">all, MiB", ">MiB a host"),
                [memory_row],
            ),
            Table(
                "A long chain",
                ("hops", ">up, real s", ">predicted RTT, ms", ">median off, µs", ">furthest off, µs", ">different"),
                [long_row],
            ),
        ),
    )


def many(hosts: int) -> dict[str, Any]:
    since = time.monotonic()
    with stage.lab_of(chain(hosts, 50)) as lab:
        up_s = time.monotonic() - since
        pids = [pid for group in members(lab).values() for pid in group]
        shares = memory.shares(pids)
        kernels = [each[0] for each in memory.kernels(lab).values()]
        files = shared_files_bytes(kernels)
        return {
            "hosts": hosts,
            "up_s": up_s,
            "pss_mib": shares["Pss"] / memory.MIB,
            "all_mib": (shares["Pss"] - shares["Pss_Shmem"] + files) / memory.MIB,
        }


def long_chain(hops: int) -> dict[str, Any]:
    since, plan = time.monotonic(), chain(hops + 1, 50)
    with stage.lab_of(plan) as lab:
        up_s = time.monotonic() - since
        ends = overlays.join(lab, "none", console.note)
        path = plan.path(plan.hosts[0].name, plan.hosts[-1].name)
        return {
            "hops": path.hops,
            "up_s": up_s,
            "predicted_ns": predicted_rtt_ns(plan, path, ECHO_BYTES),
            "rtts_ns": echoes_ns(lab, ends, path, 20),
        }


# ---- multihop


def multihop(chosen: argparse.Namespace) -> Part:
    runs = [one_experiment(chosen.out / "multihop" / str(number), chosen.quick) for number in (1, 2)]
    first, second = (run["folder"] for run in runs)
    files = sorted({str(path.relative_to(top)) for top in (first, second) for path in top.rglob("*") if path.is_file()})
    equal, differ, lacking = filecmp.cmpfiles(first, second, files, shallow=False)
    figures = {
        "real_s": [run["real_s"] for run in runs],
        "folders": [str(run["folder"]) for run in runs],
        "equal": equal,
        "differ": differ,
        "in_one_only": lacking,
    }
    kinds = {"raw/*": lambda name: name.startswith("raw/"), "figures/*": lambda name: name.startswith("figures/")}

    def kind(name: str) -> str:
        return next((pattern for pattern, fits in kinds.items() if fits(name)), name)

    rows = [
        (each, *(str(sum(kind(name) == each for name in group)) for group in (equal, differ, lacking)))
        for each in dict.fromkeys(map(kind, files))
    ]
    took = ", ".join(f"{run['real_s']:.0f} s" for run in runs)
    heads = ("file", ">equal", ">differ", ">in one only")
    return Part(figures, (Table(f"multihop twice ({took}): are the results equal, byte for byte?", heads, rows),))


def one_experiment(results: Path, quick: bool) -> dict[str, Any]:
    results.mkdir(parents=True, exist_ok=True)
    before = {path for path in results.iterdir() if path.is_dir()}
    argv = ["run", str(EXPERIMENT), "--time", "virtual", "--results", str(results), *(["--quick"] if quick else [])]
    since = time.monotonic()
    with (results / "said.txt").open("wb") as said:
        started = shell.start(
            [str(stage.PROJECT / "minigts"), *argv], output=said, env={"MINIGTS_MODULE": "minigts"}, new_session=False
        )
        try:
            code = started.wait()
        finally:
            if started.poll() is None:  # on SIGTERM it takes its lab down
                started.terminate()
                started.wait()
    if code != 0:
        raise MinigtsError(f"minigts run ended with code {code}; its output is in {results / 'said.txt'}")
    real_s = time.monotonic() - since
    (folder,) = {path for path in results.iterdir() if path.is_dir()} - before
    return {"real_s": real_s, "folder": folder}


PARTS: Mapping[str, Callable[[argparse.Namespace], Part]] = {
    "round-trips": round_trips,
    "speed": speed,
    "joins": joins,
    "scale": scale,
    "fast": fast,
    "multihop": multihop,
}


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them if none is named")
    arguments.add_argument("--runs", type=int, default=10, help="round-trips: the number of labs")
    arguments.add_argument("--count", type=int, default=100, help="round-trips: echo requests for each pair")
    arguments.add_argument("--hosts", type=int, nargs="+", default=[2, 6, 20, 50], help="speed: numbers of hosts")
    arguments.add_argument(
        "--rates", type=float, nargs="+", default=[10, 50, 100, 1000], help="speed: links' rates in Mbit/s"
    )
    arguments.add_argument("--cores", type=int, nargs="+", default=[1, 2], help="speed: numbers of cores")
    arguments.add_argument("--seconds", type=int, default=2, help="speed, fast: seconds of each flow")
    arguments.add_argument("--joins", type=int, default=500, help="joins: the number of joins")
    arguments.add_argument("--fresh", type=int, default=10, help="joins: the number of joins in one lab")
    arguments.add_argument("--many", type=int, default=200, help="scale: the number of hosts")
    arguments.add_argument("--long", type=int, default=50, help="scale: the number of hops")
    arguments.add_argument("--quick", action="store_true", help="multihop: as `run --quick`")
    arguments.add_argument("--fast-rate", type=float, default=10_000, help="fast: the link's rate in Mbit/s")
    chosen = arguments.parse_args()
    unknown = [part for part in chosen.parts if part not in PARTS]
    if unknown:
        arguments.error(f"no part {unknown[0]!r}; parts are {', '.join(PARTS)}")
    for name in chosen.parts or PARTS:
        figures = stage.Figures(f"virtual-{name}", chosen.topology)
        part = PARTS[name](chosen)
        for table in part.tables:
            tables.show_table(table.title, table.heads, table.rows)
        figures.write(
            chosen.out, {"arguments": {key: str(value) for key, value in vars(chosen).items()}, name: part.figures}
        )


if __name__ == "__main__":
    stage.perform(main)
