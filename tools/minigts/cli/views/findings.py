"""Prints measurements and verdicts on the terminal: a lab's certificate, a link's explanation, experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.cli.views import tables
from minigts.foreign import printable
from minigts.language.figures import digits, duration

if TYPE_CHECKING:
    from pathlib import Path

    from minigts.experiments.prepare import Prepared
    from minigts.experiments.provider_comparison import ProviderComparison
    from minigts.experiments.run import RunOutcome
    from minigts.experiments.summary import Verdict
    from minigts.fidelity.certificate import Certificate, CertificateRow
    from minigts.fidelity.explanation import Explanation, MeasuredLink
    from minigts.judge.statistics import Estimate
    from minigts.lab import Lab
    from minigts.report.page import Table as Result
    from minigts.results.schema import ClaimVerdict

CERTIFIED = ("RTT", "loss", "TCP", "rate")
"""The quantities that a certificate's table may have for each link and path."""


def show_certificate(certificate: Certificate, lab: Lab) -> None:
    """Print the measured and the declared figures of each link and path; then those that are outside or were not
    judged."""
    out = console.out()
    measured = [row for row in certificate.rows if row.quantity in CERTIFIED]
    quantities = [quantity for quantity in CERTIFIED if any(row.quantity == quantity for row in measured)]
    rows = []
    for title in dict.fromkeys(row.title for row in measured):
        own = {row.quantity: row for row in measured if row.title == title}
        rows.append((title, *(certified_figure(own.get(quantity)) for quantity in quantities)))
    title = f"lab {lab.name} on {lab.provider.name} in {lab.time} time"
    tables.show_table(title, ("link or path", *(f">{quantity}" for quantity in quantities)), rows)
    for row in certificate.rows:
        if row.ok is not True or (row not in measured and row.quantity != "settings"):
            out.print(f"{row.title} {row.quantity}: {row.sentence()}  {row.note}", markup=False, soft_wrap=True)
    for name in certificate.cut:
        why = certificate.off.get(name, f"{name} is down")
        out.print(f"{why}: neither {name} nor a path over it was measured", markup=False, soft_wrap=True)
    if certificate.too_fast and certificate.emulator_overhead_ms:
        out.print(
            "round trips are shorter than declared, because too much was subtracted from the delays: minigts calibrate",
            markup=False,
            soft_wrap=True,
        )
    for reason in certificate.busy:
        out.print(f"the machine was busy: {reason}", markup=False)
    overhead_ms = certificate.emulator_overhead_ms
    latency = (
        f"; the emulator's own latency, {overhead_ms:.3f} ms for each link and direction, is subtracted from the delays"
    )
    wanted = "declared or set" if certificate.changed else "declared"
    out.print(
        f"{certificate.verdict}; measured in {certificate.seconds:.1f} s, {wanted} in brackets"
        f"{latency if overhead_ms else ''}",
        markup=False,
        soft_wrap=True,
    )


def show_certificate_unless_hidden(certificate: Certificate, lab: Lab, beside: Path | None = None) -> None:
    """Print the certificate; for a lesson's lab only the verdict, until its student has predicted, or found the
    fault."""
    from minigts.lessons import hidden_figures

    hiding = hidden_figures.why_hidden(lab.plan.name, beside) or hidden_figures.why_fault_hidden(lab)
    if hiding is None:
        show_certificate(certificate, lab)
        return
    print(certificate.verdict)
    console.note(hiding)


def certified_figure(row: CertificateRow | None) -> str:
    """`21.76 (21.75) ms`: measured, and declared in brackets; marked if outside or not judged. Empty for None."""
    if row is None:
        return ""
    measured = "nothing" if row.measured is None else digits(row.measured, 4)
    mark = {True: "", False: " OUTSIDE", None: " ?"}[row.ok]
    return f"{measured} ({digits(row.declared, 4)}) {row.unit}{mark}"


def show_explanation(explained: Explanation) -> None:
    """Print one link on one screen: its settings, the lab's record of it, measured figures, and the likely answer."""
    out = console.out()

    def line(text: str) -> None:
        out.print(printable(text), markup=False, soft_wrap=True)

    rows = (
        (
            f"{each.source} to {each.target}",
            each.name,
            setting(each.declared, each.unit),
            setting(each.wanted, each.unit),
            "not read" if each.where.partition(" ")[0] in explained.unread else setting(each.shown, each.unit),
            each.where,
        )
        for each in explained.quantities
    )
    title = f"{explained.link}  lab {explained.lab} on {explained.provider}"
    tables.show_table(
        title, ("direction", "", ">declared", ">should be now", ">shown", "where"), rows, optional=("where",)
    )
    if not explained.carried:
        own = f"{explained.emulator_overhead_ms:.3f} ms"
        line(f"subtracted from each delay: {own}, the emulator's own latency for each link and direction")
    line(f"the lab's record: {explained.outage or 'not cut'}; experiments: {explained.settings.in_words}")
    for each in explained.interfaces:
        beside = f", IPv6 {', '.join(each.ipv6)}" if each.ipv6 else ""
        line(f"{each.host} {each.port}: MTU {each.mtu}, generic receive offload {each.gro}{beside}")
    for difference in explained.differences:
        line(f"differs: {difference}")
    for text in _measured_lines(explained.measured):
        line(text)
    out.print(printable(f"Likely answer: {explained.answer}"), style="bold", markup=False, soft_wrap=True)


def _measured_lines(measured: MeasuredLink | None) -> Iterator[str]:
    if measured is None:
        yield "measured: nothing"
        return
    at = "at an unknown time" if measured.at is None else measured.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    source = "now" if measured.source == "now" else f"by the certificate, {at}"
    if not measured.current:
        source += ", before links were changed"
    for row in measured.rows:
        direction = f", {row.direction}" if row.direction else ""
        yield f"measured {source}: {row.quantity}{direction} {row.sentence()}"
    for reason in measured.busy:
        yield f"the machine was busy meanwhile: {reason}"


def setting(value: float | str | None, unit: str) -> str:
    """`8.75 ms`, or a word; `none` where nothing is set."""
    if isinstance(value, str):
        return value
    return "none" if value is None else f"{digits(value, 7)} {unit}"


def show_providers(found: ProviderComparison) -> None:
    """Print a row for each quantity with a column for each provider: the median, and its interval if there are several
    rounds."""
    columns = ("", "", *(f">{name}" for name in found.providers))
    rows = (
        (quantity, unit, *(_with_interval(by_provider.get(name)) for name in found.providers))
        for quantity, unit, by_provider in found.rows()
    )
    title = f"{found.topology}, {found.path}: medians of {found.rounds} rounds, with 95 % intervals"
    tables.show_table(title, columns, rows)
    for name, reason in found.absent.items():
        console.note(f"minigts: {name} is left out: {reason}")


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        return digits(estimate.median)
    return f"{digits(estimate.median)} [{digits(estimate.low)}, {digits(estimate.high)}]"


def show_samples(prepared: Iterable[Prepared]) -> None:
    """Print the number of samples for each overlay, measurement and tool, and how long they take."""
    experiments: dict[str, list[Prepared]] = {}
    for each in prepared:
        experiments.setdefault(each.experiment.name, []).append(each)
    for name, several in experiments.items():
        samples = [sample for each in several for sample in each.samples]
        counts = Counter((sample.overlay, sample.measurement, sample.tool) for sample in samples)
        rows = ((*cell, str(count)) for cell, count in counts.items())
        labs = f"{len(several)} labs, " if len(several) > 1 else ""
        takes = duration(sum(each.seconds for each in several))
        real = f", about {duration(sum(each.real_seconds for each in several))} here in all"
        title = f"{name}: {labs}{len(samples)} samples, {takes} of measuring in {several[0].plan.time} time{real}"
        tables.show_table(title, ("overlay", "measurement", "tool", ">samples"), rows, optional=("tool",))


def show_outcome(outcome: RunOutcome, directory: Path) -> None:
    """Print the verdicts on an experiment's claims, and what could not be measured. A sweep prints its claims at its
    end."""
    from minigts.results.store import is_cell

    if not is_cell(directory):
        show_claims(outcome.verdicts, directory.name)
    for overlay, reason in outcome.skipped.items():
        console.note(f"minigts: {overlay} was skipped: {reason}")
    if outcome.failed:
        console.note(f"minigts: {len(outcome.failed)} samples have no result; try: minigts run --resume {directory}")
        for sample in outcome.failed:
            console.note(f"  {sample}")


def show_claims(claims: Sequence[Verdict | ClaimVerdict], experiment: str = "") -> None:
    """Print a row for each verdict, below the name of the experiment's folder; then the counts of verdicts."""
    from minigts.judge.verdicts import SHOWN

    if claims:
        rows = ((SHOWN[one.verdict], one.overlay, one.claim, one.detail) for one in claims)
        tables.show_table(experiment, ("verdict", "overlay", "claim", ""), rows)
        for whose, own in (
            ("documents", [one for one in claims if one.source]),
            ("our own", [one for one in claims if not one.source]),
        ):
            counts = ", ".join(
                f"{number} {text}"
                for word, text in SHOWN.items()
                if (number := sum(one.verdict == word for one in own))
            )
            if own:
                console.out().print(f"claims of {whose}: {counts}", markup=False, soft_wrap=True)
        found = {one.verdict for one in claims}
        if not_held := [SHOWN[word] for word in ("failed", "vacuous") if word in found]:
            console.note(
                f"minigts: claims that are {' or '.join(not_held)} are findings about what they claim; nothing is "
                "wrong with this installation. The report says why of each."
            )


def show_comparison(headline: Iterable[str], found: Iterable[Result], notes: Iterable[str]) -> None:
    """Print the differences between two runs: the tables, how they were judged, and the headline."""
    out = console.out()
    for each in found:
        tables.show_table(each.heading, each.columns, each.rows, optional=("Cliff's δ", "n", "p", "95 % interval"))
    for line in (*notes, *headline):
        out.print(line, markup=False, soft_wrap=True)
