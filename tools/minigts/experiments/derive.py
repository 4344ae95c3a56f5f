"""samples.csv, summary.csv, series.csv and claims.json of a results directory, from its manifest and raw files alone.

Deriving twice gives the same bytes. An unfinished run yields the tables of what it has.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from minigts.experiment_language.claims import Published
from minigts.experiment_language.model import AnyMeasurement, Experiment, Links, settings
from minigts.experiments import flow_results, time_limits
from minigts.experiments.claims import evaluate
from minigts.experiments.commands import buffers_of, least, outer_mtu, prediction, underlay_mtu
from minigts.experiments.matrix import Repeated as Row
from minigts.experiments.matrix import Sample, cells, path_between
from minigts.experiments.outputs import read, time_series
from minigts.experiments.summary import FURTHER, Cell, Verdict
from minigts.judge.samples import Basis
from minigts.judge.statistics import estimate
from minigts.language import documents
from minigts.language.formula import formula
from minigts.results import chance, store, tables
from minigts.results import manifest as manifests
from minigts.results.folder import LARGEST_NUMBER, inside, write
from minigts.results.schema import CLAIMS, FLOWS, SAMPLES, SERIES, SUMMARY, Claims, ClaimVerdict, Manifest, RawSample
from minigts.results.tables import number
from minigts.tools import COLUMNS
from minigts.tools.base import Measured, ParseError, PathUnderTest
from minigts.tools.columns import MIDDLES, VALUE
from minigts.tools.flows import UTILISATION, FlowResult, FlowsOptions, Member
from minigts.topology.frames import IP_HEADER_BYTES, TCP_HEADER_BYTES, family_of
from minigts.topology.plan.plan import Plan

MOST_MOMENTS, FEWEST_MOMENTS = 150_000, 20
"""The most rows of series.csv, so that it can be read again, and the fewest of each of its series."""


@dataclass(frozen=True)
class MeasuredSample:
    """A sample that was tried: its last attempt, how many there were, how many of them were repeated because the
    machine was starved, and its result, None when it failed."""

    sample: Sample
    raw: RawSample
    attempts: int
    repeats: int
    measured: Measured | None
    error: str
    flows: tuple[FlowResult, ...] = ()
    """What each single flow gave, where several ran at the same time."""


def derive(directory: Path) -> tuple[Verdict, ...]:
    """Write the tables and return the claims' verdicts.

    Raises InputError for a manifest or a raw file that cannot be read, MinigtsError when the disk is full.
    """
    manifest = manifests.read(directory)
    tried = tuple(measured_samples(directory, manifest))
    found = summarise(manifest, tried)
    verdicts = evaluate(time_limits.claims(manifest), found, manifest.plan, manifest.experiment, manifest.claims_sha256)
    of_the_lab = tables.lab_columns(manifest.experiment.values)
    of_samples = (key for each in manifest.experiment.measurements for key in each.vary)
    varied = tuple(dict.fromkeys((*of_the_lab, *of_samples)))
    summary = [cell for cell in found if not cell.metric]
    promised = _Predictions(manifest)
    in_real_time = manifest.plan.time == "real"
    rows = (of_the_lab | _sample_row(promised, entry, timed=in_real_time) for entry in tried)
    several = manifest.experiment.replicates > 1
    columns = tables.replicate_columns(tables.SAMPLE_COLUMNS) if several else tables.SAMPLE_COLUMNS
    write(inside(directory, SAMPLES), tables.text((*columns, *_own_columns(manifest.experiment), *varied), rows))
    write(
        inside(directory, SUMMARY),
        tables.text((*tables.SUMMARY_COLUMNS, *varied), (of_the_lab | _summary_row(cell) for cell in summary)),
    )
    if series := [of_the_lab | row for row in _series(manifest.experiment, tried)]:
        columns = tables.replicate_columns(tables.SERIES_COLUMNS) if several else tables.SERIES_COLUMNS
        write(inside(directory, SERIES), tables.text((*columns, *varied), series))
    if flows := [of_the_lab | row for entry in tried for row in _flow_rows(entry)]:
        columns = tables.replicate_columns(tables.FLOW_COLUMNS) if several else tables.FLOW_COLUMNS
        write(inside(directory, FLOWS), tables.text((*columns, *varied), flows))
    claims = Claims(tuple(ClaimVerdict.model_validate(dataclasses.asdict(verdict)) for verdict in verdicts))
    write(inside(directory, CLAIMS), claims.model_dump_json(indent=1) + "\n")
    return verdicts


def _own_columns(experiment: Experiment) -> Sequence[str]:
    """The columns of samples.csv that only the programs of this experiment's file have."""
    names = (column.name for each in experiment.measurements for column in each.instrument.columns)
    return [name for name in dict.fromkeys(names) if name not in COLUMNS]


RATES = {"Gbit/s": 1000.0, "kbit/s": 0.001}
"""The factor from a published unit to Mbit/s, the unit of everything measured."""
_Key = tuple[str, str, str, str, str]
"""Overlay, measurement, source, target, condition."""
_Value = tuple[int, int, float]
"""A replicate's number, a repetition's, and the sample's value."""


def summarise(manifest: Manifest, taken: Iterable[MeasuredSample]) -> tuple[Cell, ...]:
    """A cell for each measurement, pair of hosts, condition and overlay with a good sample, in the file's order; one
    for its value and one for each further metric that a claim may name.

    A tainted sample counts only in a cell that has no other; the cell says how many there are.
    """
    claims = manifest.experiment.claims
    of_formulas = (name for claim in claims if claim.formula for name in formula(claim.formula).names)
    metrics = dict.fromkeys((*FURTHER, *(claim.metric for claim in claims if claim.metric), *of_formulas))
    values: dict[tuple[_Key, str], list[_Value]] = {}
    doubtful: dict[tuple[_Key, str], list[_Value]] = {}
    for entry in taken:
        if entry.measured is not None:
            sample = entry.sample
            key = (sample.overlay, sample.measurement, sample.source, sample.target, sample.condition)
            extra = {name: value for name, value in entry.measured.extra.items() if name in metrics}
            for metric, value in {"": entry.measured.value, **extra}.items():
                to = doubtful if entry.raw.tainted else values
                to.setdefault((key, metric), []).append((sample.replicate, sample.repetition, value))
    experiment, promised, basis = manifest.experiment, _Predictions(manifest), _basis(manifest)
    return tuple(
        _cell(manifest, promised, basis, overlay, cell, metric, counting, len(doubtful.get((key, metric), ())))
        for overlay in experiment.overlays
        for cell in cells(experiment, manifest.plan, overlay)
        for key in [(overlay, cell.measurement, cell.source, cell.target, cell.condition)]
        for metric in ("", *metrics)
        for counting in [values.get((key, metric)) or doubtful.get((key, metric))]
        if counting
    )


def _cell(
    manifest: Manifest,
    promised: _Predictions,
    basis: Basis,
    overlay: str,
    what: Row,
    metric: str,
    counting: Sequence[_Value],
    tainted: int,
) -> Cell:
    tool, plan = manifest.experiment.measurement(what.measurement).instrument, manifest.plan
    column = tool.column(metric or VALUE) or COLUMNS.get(metric)
    key = (overlay, what.measurement, what.source, what.target, what.condition)
    # Each cell draws its own resamples, whatever else was measured.
    seed = manifest.experiment.seed ^ zlib.crc32("/".join(part for part in (*key, metric) if part).encode())
    every = tuple(value for _, _, value in counting)
    virtual = plan.time == "virtual"
    by_course = _of_courses(counting)
    values = tuple(by_course.values()) if virtual else every
    return Cell(
        overlay=overlay,
        measurement=what.measurement,
        quantity=tool.quantity,
        metric=metric,
        condition=what.condition,
        source=what.source,
        target=what.target,
        hops=what.hops,
        kind=what.kind,
        unit=tool.unit if column is None or column.unit is None else column.unit,
        mtu=promised.mtu(overlay, what.target),
        mss=promised.mss(overlay, what.target),
        better=column.better if column else None,
        estimate=estimate(values, seed),
        values=values,
        every=every if virtual else (),
        keys=tuple(by_course) if virtual else tuple(repetition for _, repetition, _ in counting),
        basis=basis,
        predicted=promised(*key) if metric == "" or metric in MIDDLES else None,
        predicted_least=promised.least(*key) if metric == "" else None,
        published=_published(manifest.experiment.published, plan, key, what.hops, metric),
        tainted=tainted,
    )


def _basis(manifest: Manifest) -> Basis:
    """What the figures of a run are, which is the same for each of its cells."""
    if manifest.plan.time == "real":
        return "samples"
    if manifest.experiment.replicates > 1:
        return "replicates"
    return "draw" if chance.random_links(manifest.plan, manifest.experiment.measurements) else "course"


def _of_courses(values: Sequence[_Value]) -> Mapping[int, float]:
    """The value of each course of events, by replicate: the median of its repetitions, which are not independent."""
    courses: dict[int, list[float]] = {}
    for replicate, _, value in values:
        courses.setdefault(replicate, []).append(value)
    return {replicate: median(own) for replicate, own in courses.items()}


def measured_samples(directory: Path, manifest: Manifest) -> Iterator[MeasuredSample]:
    """Every sample of the matrix that has a raw file, in the matrix's order."""
    tries, repeats = store.attempts(directory), store.repeats(directory)
    measurements = {measurement.name: measurement for measurement in manifest.experiment.measurements}
    promised = _Predictions(manifest)
    for sample in time_limits.samples(manifest):
        raw = store.good(directory, sample.id)
        if raw is None and sample.id in tries:
            raw = store.earlier(directory, sample.id)[-1]
        if raw is None:
            continue
        measured, error = None, raw.error or ""
        flows: tuple[FlowResult, ...] = ()
        if raw.error is None:
            try:
                measured, flows = _read(measurements[sample.measurement], sample, raw, promised)
            except ParseError as reason:
                error = str(reason)
        tried = max(raw.attempt, tries.get(sample.id, 0))
        yield MeasuredSample(sample, raw, tried, repeats.get(sample.id, 0), measured, error, flows)


def _read(
    measurement: AnyMeasurement, sample: Sample, raw: RawSample, promised: _Predictions
) -> tuple[Measured, tuple[FlowResult, ...]]:
    """The sample's result and that of each flow, if it has several. Raises ParseError."""
    asked = measurement.under(sample.condition)
    if not isinstance(asked.options, FlowsOptions):
        return _possible(read(measurement, raw)), ()
    found = flow_results.results(asked.options, raw)
    measured = read(asked, raw)
    share = None
    if is_as_declared(asked):

        def way_of(member: Member) -> PathUnderTest:
            return promised.way(sample.overlay, member.source, member.target)

        share = flow_results.utilisation_percent(promised.plan, found, way_of)
    extra = {**measured.extra} if share is None else {**measured.extra, UTILISATION.name: share}
    return _possible(replace(measured, extra=extra)), found


def is_as_declared(asked: AnyMeasurement) -> bool:
    """Whether links are as the topology declares them while it is measured."""
    return asked.links == Links() and not asked.schedule and asked.play is None


def _possible(measured: Measured) -> Measured:
    """The same. Raises ParseError for a number that is not finite, or larger than any that can be measured."""
    for name, value in {"value": measured.value, **measured.extra}.items():
        if not abs(value) <= LARGEST_NUMBER:
            raise ParseError(f"{name} is {value:g}, which cannot be")
    return measured


class _Predictions:
    """The plan's figures over each overlay, with the MTU of its endpoints; each is computed once."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._known: dict[_Key, tuple[float | None, float | None]] = {}

    def __call__(self, overlay: str, measurement: str, source: str, target: str, condition: str) -> float | None:
        return self._of(overlay, measurement, source, target, condition)[0]

    def least(self, overlay: str, measurement: str, source: str, target: str, condition: str) -> float | None:
        """The lower bound, where the hosts' buffers may be the limit; None otherwise."""
        return self._of(overlay, measurement, source, target, condition)[1]

    def _of(self, *key: str) -> tuple[float | None, float | None]:
        overlay, measurement, source, target, condition = key
        cell = (overlay, measurement, source, target, condition)
        if cell not in self._known:
            self._known[cell] = self._predicted(*cell)
        return self._known[cell]

    @property
    def plan(self) -> Plan:
        return self._manifest.plan

    def way(self, overlay: str, source: str, target: str) -> PathUnderTest:
        """The path over the overlay, with the headers that it adds and the hosts' buffers."""
        plan, mtu = self.plan, self.mtu(overlay, target)
        outer = outer_mtu(mtu, underlay_mtu(plan), self._encapsulations(overlay))
        path, buffers = path_between(plan, source, target), buffers_of(plan, source, target)
        return PathUnderTest(self._address(overlay, target), mtu, outer, path, buffers=buffers)

    def unit(self, measurement: str) -> str:
        return self._manifest.experiment.measurement(measurement).instrument.unit

    def mtu(self, overlay: str, target: str) -> int:
        facts = self._manifest.overlays.get(overlay)
        endpoint = facts.endpoints.get(target) if facts else None
        return endpoint.mtu if endpoint else underlay_mtu(self._manifest.plan)

    def mss(self, overlay: str, target: str) -> int:
        """The payload of a full TCP segment, in bytes."""
        family = family_of(self._address(overlay, target))
        return self.mtu(overlay, target) - IP_HEADER_BYTES[family] - TCP_HEADER_BYTES

    def _address(self, overlay: str, target: str) -> str:
        """The endpoint's address, whose family says how large headers are; empty where nothing was measured."""
        facts = self._manifest.overlays.get(overlay)
        return facts.endpoints[target].address if facts and target in facts.endpoints else ""

    def _encapsulations(self, overlay: str) -> set[str]:
        """The encapsulations that `verify` saw at the hosts; empty where it saw none."""
        facts = self._manifest.overlays.get(overlay)
        try:
            proofs = documents.document(facts.verify) if facts and facts.verify.startswith("{") else {}
        except ValueError:
            return set()
        known = [each.get("ENCAPSULATION") for each in proofs.values() if isinstance(each, dict)]
        return {name for name in known if isinstance(name, str)}

    def _predicted(
        self, overlay: str, measurement: str, source: str, target: str, condition: str
    ) -> tuple[float | None, float | None]:
        way = self.way(overlay, source, target)
        asked = self._manifest.experiment.measurement(measurement).under(condition)
        # The plan's figures hold for links as declared, and for one flow over each.
        usual = is_as_declared(asked)
        usual &= getattr(asked.options, "sessions", None) is None
        usual &= not asked.together or not self._shares_links(measurement, overlay)
        return (prediction(asked, way), least(asked, way)) if usual else (None, None)

    def _shares_links(self, measurement: str, overlay: str) -> bool:
        """Whether two paths of the measurement share a link."""
        plan = self._manifest.plan
        ways = {
            (row.source, row.target): path_between(plan, row.source, row.target).links
            for row in cells(self._manifest.experiment, plan, overlay)
            if row.measurement == measurement
        }
        passed = [link for links in ways.values() for link in links]
        return len(passed) > len(set(passed))


def _published(entries: Sequence[Published], plan: Plan, key: _Key, hops: int, metric: str) -> float | None:
    """The study's value for this cell: by hops from the first host, by segment between two neighbours, or by what
    the entry says."""
    overlay, measurement, source, target, condition = key
    place = {"overlay": overlay, "from": source, "to": target, **settings(condition)}
    for entry in entries:
        if entry.measurement != measurement or entry.metric != metric:
            continue
        for value in entry.values:
            if value.where.items() <= place.items():
                return value.value * RATES.get(entry.unit, 1.0)
        if source == plan.hosts[0].name and 0 < hops <= len(entry.by_hops):
            return entry.by_hops[hops - 1]
        for link in plan.links[: len(entry.by_segment)]:
            if link.ends == (source, target):
                return entry.by_segment[link.index]
    return None


def _sample_row(promised: _Predictions, entry: MeasuredSample, *, timed: bool) -> dict[str, str]:
    """A row of samples.csv; `timed` adds when the sample was taken and how long that took, which differs by run."""
    sample, measured = entry.sample, entry.measured
    expected = promised(sample.overlay, sample.measurement, sample.source, sample.target, sample.condition)
    values = {name: number(value) for name, value in (measured.extra if measured else {}).items()}
    return {
        **values,
        **settings(sample.condition),
        "sample": sample.id,
        "overlay": sample.overlay,
        "measurement": sample.measurement,
        "tool": sample.tool,
        "source": sample.source,
        "target": sample.target,
        "hops": str(sample.hops),
        "kind": sample.kind,
        "repetition": str(sample.repetition),
        **_replicate(sample),
        "value": number(measured.value if measured else None),
        "unit": promised.unit(sample.measurement),
        "predicted": number(expected),
        "started": entry.raw.started if timed else "",
        "seconds": f"{entry.raw.seconds:.3f}" if timed else "",
        "attempts": str(entry.attempts),
        "ok": "false" if measured is None else "true",
        "error": " ".join(entry.error.split()),
        "note": measured.note if measured else "",
        "tainted": "; ".join(entry.raw.tainted),
        "repeats": str(entry.repeats),
        **_machine_columns(entry.raw),
    }


def _flow_rows(entry: MeasuredSample) -> Iterator[dict[str, str]]:
    """The rows of flows.csv of one sample."""
    sample = entry.sample
    for each in entry.flows if entry.measured else ():
        member = each.member
        known = {name: value for name, value in each.measured.extra.items() if name in tables.FLOW_COLUMNS}
        yield {
            **{name: number(value) for name, value in known.items()},
            **settings(sample.condition),
            "sample": sample.id,
            "overlay": sample.overlay,
            "measurement": sample.measurement,
            "repetition": str(sample.repetition),
            **_replicate(sample),
            "flow": member.flow.name,
            "number": str(member.number),
            "tool": member.flow.tool,
            "source": member.source,
            "target": member.target,
            "start_s": number(member.flow.begins_s),
            "value": number(each.measured.value),
            "unit": member.flow.instrument.unit,
            "rate_mbit": number(each.rate_mbit if member.flow.sends else None),
            "share_percent": number(each.share_percent),
            "idle_ms": number(each.idle_ms),
            "queueing_ms": number(each.queueing_ms),
        }


def _replicate(sample: Sample) -> Mapping[str, str]:
    return {tables.REPLICATE: str(sample.replicate)} if sample.replicate else {}


def _series(experiment: Experiment, taken: Sequence[MeasuredSample]) -> Iterator[dict[str, str]]:
    """The rows of series.csv, one for each moment of a good sample; where there are very many, one for the mean of
    several moments.
    """
    asked = {measurement.name: measurement for measurement in experiment.measurements}
    good = [entry for entry in taken if entry.measured]
    watched = [
        (entry.sample, time_series(asked[entry.sample.measurement].under(entry.sample.condition), entry.raw))
        for entry in good
    ]
    most = max(MOST_MOMENTS // max(1, sum(map(len, (columns for _, columns in watched)))), FEWEST_MOMENTS)
    for sample, columns in watched:
        for column, points in columns.items():
            for at_s, value in _thinned(points, most):
                yield {
                    **settings(sample.condition),
                    "sample": sample.id,
                    "overlay": sample.overlay,
                    "measurement": sample.measurement,
                    "source": sample.source,
                    "target": sample.target,
                    "repetition": str(sample.repetition),
                    **_replicate(sample),
                    "column": column,
                    "at_s": number(at_s),
                    "value": number(value),
                }


def _thinned(points: Sequence[tuple[float, float]], most: int) -> Iterator[tuple[float, float]]:
    step = math.ceil(len(points) / most)
    for first in range(0, len(points), step):
        several = points[first : first + step]
        yield fmean(at for at, _ in several), fmean(value for _, value in several)


def _machine_columns(raw: RawSample) -> Mapping[str, str]:
    if raw.machine is None:
        return {}
    names = ("foreign_cores", "waited_cores", "steal_cores", "lag_ms")
    return {name: number(getattr(raw.machine, name)) for name in names}


def _summary_row(cell: Cell) -> dict[str, str]:
    """A row of summary.csv. A single sample has no interval: low and high are then the value, and `n` is 1."""
    found = cell.estimate
    return {
        **settings(cell.condition),
        "overlay": cell.overlay,
        "measurement": cell.measurement,
        "source": cell.source,
        "target": cell.target,
        "hops": str(cell.hops),
        "kind": cell.kind,
        "n": str(found.n),
        "mean": number(found.mean),
        "stdev": number(found.stdev or 0.0),
        "median": number(found.median),
        "low": number(found.median if found.low is None else found.low),
        "high": number(found.median if found.high is None else found.high),
        "unit": cell.unit,
        "predicted": number(cell.predicted),
        "published": number(cell.published),
        "tainted": str(cell.tainted),
    }
