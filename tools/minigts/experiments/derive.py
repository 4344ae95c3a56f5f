"""samples.csv, summary.csv and claims.json of a results directory, from its manifest and raw files alone.

Deriving twice gives the same bytes. A directory of a run that is not finished yields what it has.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts.experiments import manifest as manifests
from minigts.experiments import store
from minigts.experiments.claims import Cell, Verdict, evaluate
from minigts.experiments.manifest import Manifest
from minigts.experiments.matrix import Sample, cells, matrix
from minigts.experiments.model import Published
from minigts.experiments.parsers import ParseError
from minigts.experiments.store import RawSample
from minigts.experiments.tools import TOOLS, Measured, Way, predicted, read, underlay_mtu
from minigts.statistics import middle
from minigts.topology.plan import Plan

EXTRA = (
    *("min", "median", "mean", "p99", "max", "stdev", "sent", "offered", "loss_percent", "jitter_ms", "out_of_order"),
    *("retransmits", "rtt_ms", "cwnd_bytes"),
)
"""The columns that only some tools fill. Without a unit in its name a column is in the row's unit."""
SAMPLES = (
    *(
        "sample",
        "overlay",
        "measurement",
        "tool",
        "source",
        "target",
        "hops",
        "kind",
        "repetition",
        "value",
        "unit",
    ),
    *("predicted", *EXTRA, "started", "seconds", "attempts", "ok", "error", "tainted", "repeats"),
    *("foreign_cores", "waited_cores", "steal_cores", "lag_ms"),
)
SUMMARY = (
    *("overlay", "measurement", "source", "target", "hops", "kind", "n", "mean", "stdev", "median", "low", "high"),
    *("unit", "predicted", "published", "tainted"),
)


@dataclass(frozen=True)
class Taken:
    """A sample that was tried: its last attempt, how many there were, how many of them were repeated since the
    machine was starved, and its result, None when it failed."""

    sample: Sample
    raw: RawSample
    attempts: int
    repeats: int
    measured: Measured | None
    error: str


def derive(directory: Path) -> tuple[Verdict, ...]:
    """Write the three tables and return the claims' verdicts.

    Raises InputError for a manifest or a raw file that cannot be read, MinigtsError when the disk is full.
    """
    manifest = manifests.read(directory)
    taken = tuple(_taken(directory, matrix(manifest.experiment, manifest.plan)))
    summary = summarise(manifest, taken)
    verdicts = evaluate(manifest.experiment.claims, summary, manifest.plan)
    store.write(directory / "samples.csv", _table(SAMPLES, (_sample_row(manifest, entry) for entry in taken)))
    store.write(directory / "summary.csv", _table(SUMMARY, map(_summary_row, summary)))
    claims = [dataclasses.asdict(verdict) for verdict in verdicts]
    store.write(directory / "claims.json", json.dumps(claims, indent=1, ensure_ascii=False) + "\n")
    return verdicts


def summarise(manifest: Manifest, taken: Iterable[Taken]) -> tuple[Cell, ...]:
    """One cell for each measurement, pair of hosts and overlay that has a good sample, in the file's order.

    A tainted sample counts only in a cell that has no other; the cell says how many there are.
    """
    values: dict[tuple[str, str, str, str], list[float]] = {}
    doubtful: dict[tuple[str, str, str, str], list[float]] = {}
    for entry in taken:
        if entry.measured is not None:
            sample = entry.sample
            key = (sample.overlay, sample.measurement, sample.source, sample.target)
            (doubtful if entry.raw.tainted else values).setdefault(key, []).append(entry.measured.value)
    experiment, plan = manifest.experiment, manifest.plan
    found = []
    for overlay in experiment.overlays:
        for cell in cells(experiment, plan, overlay):
            key = (overlay, cell.measurement, cell.source, cell.target)
            counting = values.get(key) or doubtful.get(key)
            if counting is None:
                continue
            tool = TOOLS[cell.tool]
            found.append(
                Cell(
                    overlay=overlay,
                    measurement=cell.measurement,
                    quantity=tool.quantity,
                    source=cell.source,
                    target=cell.target,
                    hops=cell.hops,
                    kind=cell.kind,
                    unit=tool.unit,
                    # Each cell draws its own resamples, whatever else was measured.
                    middle=middle(counting, experiment.seed ^ zlib.crc32("/".join(key).encode())),
                    predicted=_predicted(manifest, *key),
                    published=_published(experiment.published, plan, key, cell.hops),
                    tainted=len(doubtful.get(key, ())),
                )
            )
    return tuple(found)


def _taken(directory: Path, samples: Sequence[Sample]) -> Iterator[Taken]:
    """Every sample of the matrix that has a raw file, in the matrix's order."""
    tries, repeats = store.attempts(directory), store.repeats(directory)
    for sample in samples:
        raw = store.good(directory, sample.id)
        if raw is None and sample.id in tries:
            raw = store.earlier(directory, sample.id)[-1]
        if raw is None:
            continue
        measured, error = None, raw.error or ""
        if raw.error is None:
            try:
                measured = read(sample.tool, raw.stdout, raw.stderr)
            except ParseError as reason:
                error = str(reason)
        tried = max(raw.attempt, tries.get(sample.id, 0))
        yield Taken(sample, raw, tried, repeats.get(sample.id, 0), measured, error)


def _predicted(manifest: Manifest, overlay: str, measurement: str, source: str, target: str) -> float | None:
    """What the plan promises over this overlay, with the MTU that its endpoint had."""
    plan, facts = manifest.plan, manifest.overlays.get(overlay)
    endpoint = facts.endpoints.get(target) if facts else None
    under = underlay_mtu(plan)
    way = Way(
        address=endpoint.address if endpoint else "",
        mtu=endpoint.mtu if endpoint else under,
        underlay_mtu=under,
        path=plan.path(source, target),
    )
    return predicted(manifest.experiment.measurement(measurement), way)


def _published(entries: Sequence[Published], plan: Plan, key: tuple[str, str, str, str], hops: int) -> float | None:
    """The study's value for this cell: by hops from the first host, by segment between two neighbours."""
    _, measurement, source, target = key
    for entry in entries:
        if entry.measurement != measurement:
            continue
        if source == plan.hosts[0].name and hops <= len(entry.by_hops):
            return entry.by_hops[hops - 1]
        for link in plan.links[: len(entry.by_segment)]:
            if link.ends == (source, target):
                return entry.by_segment[link.index]
    return None


def _sample_row(manifest: Manifest, entry: Taken) -> Mapping[str, str]:
    sample, measured = entry.sample, entry.measured
    promised = _predicted(manifest, sample.overlay, sample.measurement, sample.source, sample.target)
    values = {name: _number(value) for name, value in (measured.extra if measured else {}).items()}
    return {
        **values,
        "sample": sample.id,
        "overlay": sample.overlay,
        "measurement": sample.measurement,
        "tool": sample.tool,
        "source": sample.source,
        "target": sample.target,
        "hops": str(sample.hops),
        "kind": sample.kind,
        "repetition": str(sample.repetition),
        "value": _number(measured.value if measured else None),
        "unit": TOOLS[sample.tool].unit,
        "predicted": _number(promised),
        "started": entry.raw.started,
        "seconds": f"{entry.raw.seconds:.3f}",
        "attempts": str(entry.attempts),
        "ok": "false" if measured is None else "true",
        "error": " ".join(entry.error.split()),
        "tainted": "; ".join(entry.raw.tainted),
        "repeats": str(entry.repeats),
        **_machine_columns(entry.raw),
    }


def _machine_columns(raw: RawSample) -> Mapping[str, str]:
    if raw.machine is None:
        return {}
    names = ("foreign_cores", "waited_cores", "steal_cores", "lag_ms")
    return {name: _number(getattr(raw.machine, name)) for name in names}


def _summary_row(cell: Cell) -> Mapping[str, str]:
    """A single sample has no interval: low and high are then the value itself, and `n` is 1."""
    found = cell.middle
    return {
        "overlay": cell.overlay,
        "measurement": cell.measurement,
        "source": cell.source,
        "target": cell.target,
        "hops": str(cell.hops),
        "kind": cell.kind,
        "n": str(found.n),
        "mean": _number(found.mean),
        "stdev": _number(found.stdev or 0.0),
        "median": _number(found.median),
        "low": _number(found.median if found.low is None else found.low),
        "high": _number(found.median if found.high is None else found.high),
        "unit": cell.unit,
        "predicted": _number(cell.predicted),
        "published": _number(cell.published),
        "tainted": str(cell.tainted),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """RFC 4180, but with one line feed at each line's end."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
