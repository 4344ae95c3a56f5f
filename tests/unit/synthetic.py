"""Results folders whose numbers are made up: one for each kind of experiment, as input for the renderer's tests.

    python -m tests.unit.synthetic DIRECTORY

writes them all, as a campaign. Nothing in them was measured.
"""

from __future__ import annotations

import csv
import json
import random
import statistics
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from minigts.results import tables
from minigts.topology.read.load import parse

OVERLAYS = ("none", "swarm", "flannel", "mesh")
MTUS = {"none": 1500, "swarm": 1450, "flannel": 1450, "mesh": 1410}
Sample = Mapping[str, float]
"""`value`, and further columns."""


@dataclass(frozen=True)
class Kind:
    """An experiment's declaration, and a function that makes a sample up from overlay, path and settings."""

    name: str
    title: str
    measurements: Sequence[Mapping[str, Any]]
    make: Callable[[str, str, Mapping[str, str], random.Random], Sample]
    overlays: Sequence[str] = OVERLAYS
    paths: Sequence[tuple[str, str, int]] = (("h1", "h2", 1),)
    published: Mapping[tuple[str, str], float] = field(default_factory=dict)
    figures: Sequence[Mapping[str, Any]] = ()
    claims: Sequence[Mapping[str, str]] = ()
    trend: str = ""
    swept: Mapping[str, str] = field(default_factory=dict)
    """What its topology has instead, where it is one lab of a sweep."""


def write(directory: Path, kind: Kind, repetitions: int = 5, tainted_every: int = 0) -> Path:
    """A results folder in `directory`; every `tainted_every`th sample bears the guard's mark."""
    directory.mkdir(parents=True)
    settings = list(dict.fromkeys(name for measurement in kind.measurements for name in measurement.get("vary", {})))
    cells: dict[tuple[str, ...], _Cell] = {}
    samples = _kept(_samples(kind, repetitions, tainted_every), cells, settings)
    planned = _table(directory / "samples.csv", [*tables.SAMPLE_COLUMNS, *settings], samples)
    _table(directory / "summary.csv", [*_PLACE, *settings, *_SUMMARY], _summary(kind, cells, settings))
    (directory / "claims.json").write_text(json.dumps(list(kind.claims)))
    (directory / "manifest.json").write_text(json.dumps(_manifest(kind, planned, repetitions)))
    (directory / "run.log").write_text("made up\n")
    return directory


_PLACE = ("overlay", "measurement", "source", "target", "hops", "kind")
_SUMMARY = ("n", "mean", "stdev", "median", "low", "high", "unit", "predicted", "published")


def _samples(kind: Kind, repetitions: int, tainted_every: int) -> Iterable[dict[str, Any]]:
    rng, number = random.Random(kind.name), 0
    for measurement, overlay, (source, target, hops) in product(kind.measurements, kind.overlays, kind.paths):
        vary = measurement.get("vary", {})
        for values in product(*vary.values()):
            settings = dict(zip(vary, map(str, values), strict=True))
            for repetition in range(1, repetitions + 1):
                number += 1
                made = kind.make(measurement["name"], overlay, {**settings, "path": f"{source}-{target}"}, rng)
                taint = (
                    f"other programs used 1.{number % 10} processors"
                    if tainted_every and number % tainted_every == 0
                    else ""
                )
                yield {
                    **dict(zip(_PLACE, (overlay, measurement["name"], source, target, hops, "path"), strict=True)),
                    **settings,
                    "repetition": repetition,
                    "sample": f"{number}.{measurement['name']}.{source}-{target}.r{repetition}",
                    "tool": measurement["tool"],
                    "unit": "ms" if measurement["tool"] in ("ping", "netperf-rr") else "Mbit/s",
                    "started": "2026-11-21T10:00:01+00:00",
                    "seconds": "1.0",
                    "attempts": "1",
                    "ok": "true",
                    "error": "",
                    "tainted": taint,
                    "repeats": "2" if taint else "0",
                    **{name: f"{value * (1.6 if taint else 1):.6g}" for name, value in made.items()},
                }


@dataclass
class _Cell:
    """What the summary needs of a cell's samples."""

    unit: str
    values: array[float] = field(default_factory=lambda: array("d"))


def _kept(
    samples: Iterable[dict[str, Any]], cells: dict[tuple[str, ...], _Cell], settings: Sequence[str]
) -> Iterable[dict[str, Any]]:
    """The same samples, one by one; the values of those that count go into `cells`."""
    for sample in samples:
        if not sample["tainted"]:
            key = tuple(str(sample.get(name, "")) for name in (*_PLACE, *settings))
            cells.setdefault(key, _Cell(sample["unit"])).values.append(float(sample["value"]))
        yield sample


def _summary(kind: Kind, cells: Mapping[tuple[str, ...], _Cell], settings: Sequence[str]) -> Iterable[dict[str, Any]]:
    for key, cell in cells.items():
        values = sorted(cell.values)
        place = dict(zip((*_PLACE, *settings), key, strict=True))
        at = next((place[name] for name in settings if place[name]), f"{place['source']}-{place['target']}")
        yield {
            **place,
            "n": len(values),
            "mean": statistics.fmean(values),
            "stdev": statistics.stdev(values) if len(values) > 1 else 0,
            "median": statistics.median(values),
            "low": values[0],
            "high": values[-1],
            "unit": cell.unit,
            "published": kind.published.get((place["overlay"], at), ""),
        }


def _manifest(kind: Kind, planned: int, repetitions: int) -> dict[str, Any]:
    endpoints = {
        name: {"endpoints": {"h2": {"address": "10.0.0.2", "mtu": MTUS.get(name, 1450)}}} for name in kind.overlays
    }
    names = dict.fromkeys(name for source, target, _ in kind.paths for name in (source, target))
    plan = parse(f"name: {kind.name}\nchain: {{hosts: [{', '.join(names)}], link: {{rtt: 2ms}}}}\n", "made up")
    return {
        "version": 2,
        "minigts": "0.1.0",
        "topology_sha256": "0" * 64,
        "plan": plan.model_dump(mode="json"),
        "experiment": {
            "name": kind.name,
            "title": kind.title,
            "description": "Numbers made up, for looking at the page.",
            "topology": "topologies/pair.yaml",
            "overlays": list(kind.overlays),
            "seed": 1,
            "repetitions": repetitions,
            "vary": {place: [value] for place, value in kind.swept.items()},
            "measurements": [{**measurement, "paths": ["every-pair"]} for measurement in kind.measurements],
            "figures": list(kind.figures),
            "published": [
                {"measurement": m["name"], "source": "made up", "trend": kind.trend} for m in kind.measurements
            ],
        },
        "provider": "fake",
        "started": "2026-11-21T10:00:00+00:00",
        "ended": "2026-11-21T10:04:41+00:00",
        "samples_planned": planned,
        "overlays": endpoints,
        "machine": {"cpu": "made up", "cores": 2, "memory_mb": 4096, "kernel": "6.1.0"},
    }


def _table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes the rows as they come; returns how many there were."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _around(value: float, rng: random.Random, spread: float = 0.02) -> float:
    return max(0.0, value * (1 + rng.uniform(-spread, spread)))


def _cpu(measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    full = {"none": 94.0, "swarm": 60.0, "flannel": 72.0, "mesh": 55.0}[overlay] * (0.6 if measurement == "udp" else 1)
    taken = float(at.get("stress", "0%")[:-1]) / 100
    return {
        "value": _around(full * (1 - 0.8 * taken), rng, 0.05),
        "cpu_percent": _around(96, rng),
        "cpu_source_percent": _around(96, rng),
        "cpu_target_percent": _around(88, rng),
        **({"loss_percent": _around(2 + 20 * taken, rng, 0.3)} if measurement == "udp" else {}),
    }


def _fragments(_measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    size = float(at["datagram"][:-1])
    lost = 30.0 if size > MTUS[overlay] - 28 else 0.1
    return {"value": _around(size / 40 * (1 - lost / 100), rng), "loss_percent": _around(lost, rng, 0.1)}


def _offload(_measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    size = float(at.get("datagram", "1400B")[:-1])
    return {"value": _around((30 + size / 200) * (1.5 if at["offload"] == "on" else 1.0), rng)}


def _sweep(_measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    number, unit = float(at["rate"][:-4]), at["rate"][-4:]
    offered = number * (1000 if unit == "gbit" else 1)
    most = {"none": 95.0, "swarm": 70.0, "flannel": 74.0, "mesh": 60.0}[overlay]
    received = min(offered, most)
    return {
        "value": _around(received, rng),
        "loss_percent": 100 * (1 - received / offered),
        "jitter_ms": _around(0.1 + offered / 2000, rng, 0.3),
    }


def _placed(_measurement: str, _overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    return {"value": _around(PLACED[at["congestion"]] * 0.4, rng)}


PLACED = {
    "hosts": 9400.0,
    "hostnetwork": 9400.0,
    "bridge": 9400.0,
    "within": 23800.0,
    "published": 8000.0,
    "own": 21000.0,
}


def _both_ways(measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    base = {"none": 94.0, "swarm": 90.0, "ovs": 91.0}[overlay] - (2 if at["path"] == "h2-h1" else 0)
    if measurement == "latency":
        return {"value": _around(20 / base, rng)}
    return {"value": _around(base, rng), "cpu_percent": _around(60, rng)}


def _sessions(_measurement: str, _overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    return {"value": _around(5, rng), "jitter_ms": _around(0.2 * float(at["sessions"]), rng, 0.3)}


def _hops(measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    hops = int(at["path"][-1]) - 1
    if measurement == "latency":
        return {"value": _around(20.0 * hops + 0.05 * len(overlay), rng, 0.001)}
    return {"value": _around(47 - 0.4 * hops * (1 + len(overlay) / 8), rng, 0.01), "retransmits": float(hops)}


SUSPECTS = ("window", "queue", "gro")


def _suspects(measurement: str, overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    hops = int(at["path"][-1]) - 1
    fall = {"tcp-window": 1 / hops, "tcp-gro": 0.05 if hops > 1 and overlay == "mesh" else 1.0}.get(measurement, 0.99)
    return {"value": _around(45 * fall, rng, 0.01)}


def _unfair(_measurement: str, _overlay: str, at: Mapping[str, str], rng: random.Random) -> Sample:
    return {"value": _around({"h1-h2": 2.5, "h1-h3": 16.2}.get(at["path"], 5.0), rng, 0.001)}


def _plain(_measurement: str, overlay: str, _at: Mapping[str, str], rng: random.Random) -> Sample:
    return {"value": _around({"none": 94.0}.get(overlay, 89.0), rng), "retransmits": 3.0}


def _tcp(**vary: Sequence[str | int]) -> dict[str, Any]:
    return {"name": "tcp", "tool": "iperf3-tcp", "vary": vary}


def _udp(**vary: Sequence[str | int]) -> dict[str, Any]:
    return {"name": "udp", "tool": "iperf3-udp", "vary": vary}


SIZES = [f"{size}B" for size in range(1000, 2001, 100)]
MANY = ("none", "swarm", "flannel", "flannel-udp", "ovs", "calico", "calico-never", "mesh", "romana", "weave")
FIVE_HOPS = tuple(("h1", f"h{number + 1}", number) for number in range(1, 6))
TWO_WAYS = (("h1", "h2", 1), ("h2", "h1", 1))
KINDS = (
    Kind("cpu", "Throughput and CPU", [_tcp(), _udp()], _cpu),
    Kind(
        "cpu-stress",
        "Throughput and the CPU that is left",
        [_tcp(stress=["0%", "20%", "40%", "60%", "80%", "100%"])],
        _cpu,
    ),
    Kind("fragmentation", "Datagrams larger than the MTU", [_udp(datagram=SIZES)], _fragments, trend="30 % is lost"),
    Kind(
        "offload",
        "Segmentation offload",
        [_tcp(offload=["on", "off"]), _udp(datagram=SIZES[4:], offload=["on", "off"])],
        _offload,
        overlays=("none", "swarm"),
    ),
    Kind(
        "overlay-host",
        "Overlay against host",
        [_tcp()],
        _plain,
        overlays=("none", "swarm"),
        published={("none", "h1-h2"): 756.0, ("swarm", "h1-h2"): 715.0},
        figures=[{"of": "tcp", "relative_to": "none"}],
    ),
    Kind(
        "udp-sweep",
        "Offered rates of UDP",
        [_udp(rate=["1mbit", "10mbit", "100mbit", "1gbit", "3gbit"])],
        _sweep,
        paths=(("w1", "w2", 1), ("w2", "w3", 1)),
        figures=[{"of": "udp"}, {"of": "udp", "relative_to": "none", "title": "The same, normalised"}],
    ),
    Kind(
        "placement",
        "Where the containers lie",
        [_tcp(congestion=list(PLACED))],
        _placed,
        overlays=("none",),
        published={("none", name): value for name, value in PLACED.items()},
        figures=[{"of": "tcp"}, {"of": "tcp", "relative_to": "hosts"}],
    ),
    Kind(
        "overlay-ovs",
        "Overlay against Open vSwitch",
        [_tcp(), {"name": "latency", "tool": "netperf-rr"}],
        _both_ways,
        overlays=("none", "swarm", "ovs"),
        paths=TWO_WAYS,
    ),
    Kind(
        "window",
        "Suspects over five hops",
        [_tcp(congestion=["cubic", "reno"]), *({"name": f"tcp-{name}", "tool": "iperf3-tcp"} for name in SUSPECTS)],
        _suspects,
        overlays=("none", "mesh"),
        paths=FIVE_HOPS,
        figures=[
            {
                "of": ["tcp", *(f"tcp-{name}" for name in SUSPECTS)],
                "x": "hops",
                "overlays": ["mesh"],
                "relative_to": "1",
            }
        ],
    ),
    Kind(
        "places",
        "Placements, one measurement each",
        [{"name": name, "tool": "iperf3-tcp"} for name in ("host-to-host", "within-own", "within-published")],
        lambda measurement, *_: {"value": {"host-to-host": 48.0, "within-own": 900.0}.get(measurement, 40.0)},
        overlays=("none",),
        figures=[
            {
                "of": ["host-to-host", "within-own", "within-published"],
                "x": "measurement",
                "relative_to": "host-to-host",
            }
        ],
    ),
    Kind(
        "many",
        "Five hops over ten networks",
        [{"name": "latency", "tool": "netperf-rr"}, _tcp()],
        _hops,
        overlays=MANY,
        paths=FIVE_HOPS,
    ),
    Kind(
        "healing",
        "A link that is cut for a while",
        [{"name": "echoes", "tool": "ping", "cut": {"link": "h1-h2", "at": "3s", "for": "5s"}}],
        lambda _measurement, overlay, _at, rng: {
            "value": _around(20, rng),
            "gap_ms": 5000.0 if overlay == "none" else 4000,
        },
        overlays=("none", "mesh"),
    ),
    Kind(
        "unfair",
        "Two flows at once",
        [_tcp(congestion=["cubic", "reno"])],
        _unfair,
        overlays=("none",),
        paths=(("h1", "h2", 1), ("h1", "h3", 2)),
    ),
    Kind(
        "star",
        "Sessions at once",
        [_udp(sessions=list(range(1, 10)))],
        _sessions,
        overlays=("none",),
        figures=[{"of": "udp", "y": ["jitter_ms"], "lines": [{"at": 30, "text": "limit for video, 30 ms"}]}],
    ),
)


CAMPAIGN = ("cpu", "cpu-stress", "udp-sweep", "many", "healing", "star")
"""Whose figures differ most."""


def campaign(directory: Path) -> Path:
    """One folder for each of them."""
    claims: list[Mapping[str, str]] = [
        {
            "claim": "a",
            "overlay": "swarm",
            "verdict": "held",
            "text": "The overlay is slower.",
            "detail": "94.0 Mbit/s to 89.0",
        },
        {
            "claim": "a",
            "overlay": "mesh",
            "verdict": "failed",
            "text": "The overlay is slower.",
            "detail": "94.0 to 94.1",
        },
        {"claim": "b", "overlay": "", "verdict": "undecided", "text": "It is the CPU.", "detail": "n = 1"},
    ]
    for kind in (kind for kind in KINDS if kind.name in CAMPAIGN):
        made = Kind(**{**kind.__dict__, "claims": claims})
        write(directory / f"{kind.name}-20261121-100000", made, tainted_every=17 if kind.name == "cpu-stress" else 0)
    return directory


if __name__ == "__main__":
    campaign(Path(sys.argv[1]))
