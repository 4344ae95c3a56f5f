"""Measures once what a topology file expects of its lab beyond the certificate: its `expect:`. judge/ decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from minigts.fidelity.certificate import Certificate, CertificateRow
from minigts.fidelity.kept_certificate import keep
from minigts.fidelity.measure import certify
from minigts.fidelity.rates import MeasuredPath, tcp_mbit
from minigts.fidelity.round_trips import NO_ONE_ROUND_TRIP, link_rows, path_rows
from minigts.judge import tolerances
from minigts.judge.latency import segment_sums
from minigts.judge.registry import WORDS
from minigts.judge.samples import PathSamples, ends, measured_once, paths_by_hops, plural
from minigts.judge.throughput import ceiling_in_words, reaches_ceiling
from minigts.judge.tolerances import CEILING
from minigts.judge.verdicts import Judgement
from minigts.lab import Lab, plan_now, used_links, whole_paths
from minigts.language.figures import digits
from minigts.machine.progress import Progress
from minigts.tools import QUANTITIES
from minigts.tools.cpu_bound import is_modelled, is_the_processors, unlimited_tcp
from minigts.topology.plan.elements import Link, Path
from minigts.topology.plan.plan import Plan

LONG_SLOW_START_S = 3
"""The slow start over many hops: TCP doubles its window once a round trip, and then lets it grow more slowly."""
A_SAWTOOTH_ROUND_TRIPS = 60
"""How many round trips TCP is measured for: a recovery from a loss, of one or two, is then a few per cent of all."""


class Measurements:
    """Round trips and TCP of a lab's paths, each measured when it is first asked for.

    `rows` has what the certificate has measured; its round trips are not measured again.
    """

    def __init__(self, lab: Lab, say: Progress, rows: Sequence[CertificateRow] = ()) -> None:
        self._lab, self._say, self._rows = lab, say, rows
        self.notes: dict[str, str] = {}
        """By path, why its throughput could not be measured."""

    @cached_property
    def further_round_trips(self) -> tuple[CertificateRow, ...]:
        """Rows of every link and path that the certificate has left out."""
        return tuple(self._round_trips())

    @property
    def round_trips(self) -> tuple[CertificateRow, ...]:
        """Rows of every link and path, the certificate's and the further ones."""
        return (*self._rows, *self.further_round_trips)

    @cached_property
    def latencies(self) -> tuple[PathSamples, ...]:
        """Median round trips of each link and reachable path, in ms."""
        plan = self._lab.plan
        measured = {row.subject: row for row in self.round_trips if row.quantity == "RTT"}
        links = [(link.name, *link.ends, 1) for link in plan.links if _carries_its_ends(plan, link)]
        paths = [(_name(path), path.source, path.target, path.hops) for path in plan.paths if path.hops > 1]
        return tuple(
            PathSamples(
                source=source,
                target=target,
                hops=hops,
                kind="segment" if hops == 1 else "path",
                unit="ms",
                estimate=measured_once(row.measured, tolerances.round_trip(plan)),
                predicted=row.declared,
                p99=row.p99,
            )
            for name, source, target, hops in (*links, *paths)
            if (row := measured.get(name)) is not None and row.measured is not None and row.note != NO_ONE_ROUND_TRIP
        )

    @cached_property
    def throughputs(self) -> tuple[PathSamples, ...]:
        """TCP from the first host to each that it reaches without loss and with a limit, in Mbit/s; the shortest path
        first."""
        return tuple(self._throughputs())

    def _round_trips(self) -> Iterator[CertificateRow]:
        measured = {row.subject for row in self._rows if row.quantity == "RTT"}
        record = self._lab.read_record()
        for link in used_links(self._lab.plan, record):
            if link.name not in measured:
                self._say(f"round trips over {link.name}")
                yield from link_rows(self._lab, link)
        for path in whole_paths(self._lab.plan, record):
            if path.reachable and path.hops > 1 and _name(path) not in measured:
                self._say(f"round trips from {path.source} to {path.target}")
                yield from path_rows(self._lab, _name(path), path)

    def _throughputs(self) -> Iterator[PathSamples]:
        plan = self._lab.plan
        first = plan.hosts[0].name
        record = self._lab.read_record()
        now = plan_now(plan, record)
        reached = [path for path in whole_paths(plan, record) if path.reachable and path.source == first]
        paths = [path for path in reached if not path.lossy and plan.keeps_order(path) and plan.is_filled(path)]
        for path in sorted(paths, key=lambda path: path.hops):
            if why := unlimited_tcp(now, now.path(path.source, path.target)):
                if path.tcp_ceiling_mbit is not None:  # its links have lost their rate
                    self.notes[_name(path)] = why
                continue
            self._say(f"throughput over {plural(path.hops, 'hop')}")
            way = MeasuredPath(path.source, path.target, plan.address_over(path), path.rtt_ms)
            measured, note = tcp_mbit(
                self._lab, way, least_slow_start_s=LONG_SLOW_START_S, least_round_trips=A_SAWTOOTH_ROUND_TRIPS
            )
            if measured is None:
                self.notes[_name(path)] = note
            else:
                yield PathSamples(
                    source=path.source,
                    target=path.target,
                    hops=path.hops,
                    unit="Mbit/s",
                    estimate=measured_once(measured, tolerances.rate(plan)),
                    predicted=path.tcp_ceiling_mbit,
                    predicted_least=path.tcp_least_mbit,
                )


def check(lab: Lab, say: Progress) -> Certificate:
    """Measure the certificate and what the file expects, and write all of it to certificate.json."""
    certificate = certify(lab, say)
    rows = (*certificate.rows, *expected_rows(lab.plan, Measurements(lab, say, certificate.rows)))
    whole = certificate.model_copy(update={"rows": rows})
    keep(lab, whole)
    return whole


def judge_expectation(plan: Plan, quantity: str, word: str, measured: Measurements) -> Judgement:
    """The verdict on one entry of the file's `expect:`."""
    if quantity == "latency":
        return WORDS[word](measured.latencies, plan)
    cells = measured.throughputs
    if measured.notes:
        return Judgement("failed", "; ".join(f"{path}: {note}" for path, note in measured.notes.items()))
    return WORDS[word](cells, plan)


def expected_rows(plan: Plan, measured: Measurements) -> Iterator[CertificateRow]:
    """The certificate's rows for the file's `expect:`: one for each path, or one for a shape over the hops."""
    wanted = _wanted(plan)
    if any(quantity == "latency" for quantity, _ in wanted):
        yield from measured.further_round_trips
    for quantity, word in wanted:
        if word != "as-declared":  # the certificate has these rows already
            yield from _rows(plan, quantity, word, measured)


@dataclass(frozen=True)
class Expected:
    """One expectation of a file, as known before measuring: about one path or link, or about the lab."""

    quantity: str
    word: str
    subject: str = ""
    """The path or link, `ams-lon`; empty for an expectation about all of them together."""

    def __str__(self) -> str:
        """`latency: sum-of-segments: ams-lon`"""
        return ": ".join(filter(None, (self.quantity, self.word, self.subject)))


def single_expectations(plan: Plan) -> tuple[Expected, ...]:
    """The single expectations of the file's `expect:`, as known before anything is measured."""
    return tuple(
        Expected(quantity, word, subject)
        for quantity, word in _wanted(plan)
        for subject in _subjects(plan, quantity, word) or [""]
    )


def row_of(plan: Plan, each: Expected, measured: Measurements) -> CertificateRow | None:
    """The row of an expectation; None where it was not measured because a link of its path is cut."""
    if each.word == "as-declared":
        rows = [row for row in measured.round_trips if row.quantity == "RTT"]
    else:
        rows = list(_rows(plan, each.quantity, each.word, measured))
    return next((row for row in rows if each.subject in ("", row.subject)), None)


def _wanted(plan: Plan) -> list[tuple[str, str]]:
    return list(dict.fromkeys((key, word) for entry in plan.expect for key, word in entry.items()))


def _subjects(plan: Plan, quantity: str, word: str) -> list[str]:
    """The subjects of the rows that `_rows` will yield if no link is cut."""
    if plan.time == "virtual" and word != "as-declared" and _of_a_free_processor(plan, quantity):
        return []
    whole = [path for path in plan.paths if path.reachable]
    carrying = {link.name for link in plan.links if _carries_its_ends(plan, link)}
    further = [path for path in whole if path.hops > 1]
    if word == "sum-of-segments":
        return [_name(path) for path in further if carrying.issuperset(path.crossed)]
    if word == "as-declared":
        return [*(link.name for link in plan.links), *map(_name, further)]
    if word == "within-ceiling":
        first = [path for path in whole if path.source == plan.hosts[0].name and not path.loss_percent]
        return [_name(path) for path in first if path.tcp_ceiling_mbit is not None]
    return []


def _rows(plan: Plan, quantity: str, word: str, measured: Measurements) -> Iterator[CertificateRow]:
    if plan.time == "virtual" and (why := _of_a_free_processor(plan, quantity)):
        yield _unmeasured_row(plan, quantity, word, why)
        return
    judgement = judge_expectation(plan, quantity, word, measured)
    if word == "sum-of-segments" and (sums := list(_sum_rows(plan, measured))):
        yield from sums
    elif word == "within-ceiling" and (shares := list(_ceiling_rows(measured))):
        yield from shares
    else:
        yield _shape_row(plan, quantity, word, judgement, measured)


def _sum_rows(plan: Plan, measured: Measurements) -> Iterator[CertificateRow]:
    for each in segment_sums(measured.latencies, plan):
        yield CertificateRow(
            subject=_name(each.cell),
            quantity="RTT, sum of segments",
            unit="ms",
            declared=round(each.total_ms, 4),
            measured=each.cell.estimate.median,
            tolerance=round(each.tolerance.distance(each.total_ms), 4),
            ok=each.agrees,
            wanted=f"the segments' {each.total_ms:.4f} ± {digits(each.tolerance.distance(each.total_ms))} ms",
        )


def _ceiling_rows(measured: Measurements) -> Iterator[CertificateRow]:
    for cell in paths_by_hops(measured.throughputs):
        if cell.predicted is not None:
            lowest = CEILING.low * (cell.predicted if cell.predicted_least is None else cell.predicted_least)
            yield CertificateRow(
                subject=_name(cell),
                quantity=f"TCP over {plural(cell.hops, 'hop')}",
                unit="Mbit/s",
                declared=cell.predicted,
                measured=cell.estimate.median,
                tolerance=round(cell.predicted - lowest, 4),
                ok=reaches_ceiling(cell),
                wanted=f"{CEILING.in_words} of {ceiling_in_words(cell.predicted, cell.predicted_least)}",
            )
    for path, note in measured.notes.items():
        yield CertificateRow(
            subject=path, quantity="TCP", unit="Mbit/s", declared=0, measured=None, tolerance=0, ok=False, note=note
        )


def _shape_row(plan: Plan, quantity: str, word: str, judgement: Judgement, measured: Measurements) -> CertificateRow:
    """A row with the longest path as measured and the shortest as declared; with neither for a single length."""
    both = ends(measured.throughputs) if quantity == "throughput" else None
    return CertificateRow(
        subject=_name(both[1]) if both else plan.name,
        quantity=f"TCP, {word}" if quantity == "throughput" else f"RTT, {word}",
        unit="Mbit/s" if quantity == "throughput" else "ms",
        declared=both[0].estimate.median if both else 0.0,
        measured=both[1].estimate.median if both else None,
        tolerance=0.0,
        ok=judgement.ok,
        note=judgement.detail,
        wanted=f"{word} against {digits(both[0].estimate.median, 4)} over {plural(both[0].hops, 'hop')}"
        if both
        else word,
    )


def _of_a_free_processor(plan: Plan, quantity: str) -> str:
    """Why no path's links determine the quantity, where no processor is modelled; empty when some do."""
    column = QUANTITIES[quantity]
    if any(not is_the_processors(column, plan, path) or is_modelled(plan, path) for path in plan.paths):
        return ""
    lack = " or ".join(column.follows)
    return f"says nothing in virtual time, where the processor is free: no link declares a {lack}"


def _unmeasured_row(plan: Plan, quantity: str, word: str, why: str) -> CertificateRow:
    named, unit = ("TCP", "Mbit/s") if quantity == "throughput" else ("RTT", "ms")
    return CertificateRow(
        subject=plan.name,
        quantity=f"{named}, {word}",
        unit=unit,
        declared=0.0,
        measured=None,
        tolerance=0.0,
        ok=None,
        note=why,
        wanted=word,
    )


def _carries_its_ends(plan: Plan, link: Link) -> bool:
    """Whether traffic between the link's ends takes this link, and not another between the same ends. Where a way back
    may be another one, the link's own addresses still lead over it alone."""
    if plan.has_several_ways and [each.ends for each in plan.links if {*each.ends} == {*link.ends}] == [link.ends]:
        return True
    return not plan.joins_hosts(link) or plan.path(*link.ends).crossed == {link.name}


def _name(path: Path | PathSamples) -> str:
    return f"{path.source}-{path.target}"
