"""The certificate: what a lab's topology declares, what was measured, and the verdicts. Pure.

It is written as JSON for programs, and in words for manifests and tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path as FilePath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from minigts.dataplane.round_trip import echo_range_ms
from minigts.judge import tolerances
from minigts.judge.loss import CONFIDENCE, judge_loss
from minigts.language.figures import digits, span
from minigts.paths import write_for_user
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.directions import lost_or_corrupt_percent
from minigts.topology.plan.elements import Link, Path
from minigts.topology.plan.plan import Plan


class CertificateRow(BaseModel):
    """One quantity of one path, link or host. `measured` is None when nothing was measured; `ok` is None when the
    measurement cannot tell. `p99` is the 99th percentile of the same samples, where there are several."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subject: str
    quantity: str
    unit: str
    declared: float
    measured: float | None
    tolerance: float
    ok: bool | None
    note: str = ""
    p99: float | None = None
    direction: str = ""
    """`ams to bra`, where the other direction has its own row; empty otherwise."""
    wanted: str = ""
    """The expected range, where it is not `declared` ± `tolerance`: `85% to 102% of 47.8 Mbit/s`."""

    @property
    def title(self) -> str:
        """`ams-bra`, or `ams-bra, bra to ams`."""
        return f"{self.subject}, {self.direction}" if self.direction else self.subject

    @property
    def too_fast(self) -> bool:
        """Whether it is a round trip that is shorter than declared."""
        low = self.measured is not None and self.measured < self.declared
        return self.quantity == "RTT" and self.ok is False and low

    def sentence(self) -> str:
        measured = "nothing" if self.measured is None else f"{digits(self.measured, 6)} {self.unit}"
        if self.wanted:
            verdict = {True: "held", False: "failed", None: "undecided"}[self.ok]
            return f"{measured}, expected {self.wanted}: {verdict}"
        verdict = {True: "ok", False: "outside", None: "not judged"}[self.ok]
        tail = "" if self.p99 is None else f", 99 % within {digits(self.p99, 6)} {self.unit}"
        declared = f"{digits(self.declared, 6)} ± {digits(self.tolerance)} {self.unit}"
        return f"{measured}, declared {declared}: {verdict}{tail}"


class Certificate(BaseModel):
    """Every row measured on one lab at one time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lab: str
    provider: str
    emulator_overhead_ms: float
    """The emulator's own one-way latency over a link, in ms, which was subtracted from the delays."""
    rows: tuple[CertificateRow, ...]
    measured_at: datetime
    seconds: float = 0.0
    """How long measuring took, in seconds."""
    busy: tuple[str, ...] = ()
    """Other load on the machine meanwhile, if it was enough to doubt the figures."""
    cut: tuple[str, ...] = ()
    """Links that carried nothing, or not what the plan says: neither they nor paths over them were measured."""
    off: Annotated[dict[str, str], Field(exclude_if=lambda off: not off)] = {}
    """Why links of `cut` were not measured that nobody has cut, by name: `bra is off`, `blocked by the spanning
    tree`."""
    changed: tuple[str, ...] = ()
    """Links whose settings had been changed, and how; they were measured against the declared settings."""
    storm: Annotated[tuple[str, ...], Field(exclude_if=lambda storm: not storm)] = ()
    """Links on which frames have gone round in a loop of bridges, at one moment of the lab."""
    sample: Annotated[tuple[str, ...], Field(exclude_if=lambda sample: not sample)] = ()
    """The links of a quick certificate, which alone were measured; empty, which is not stored, where all were."""
    links: Annotated[int, Field(ge=0, exclude_if=lambda links: not links)] = 0
    """Of a quick certificate, how many links could have been measured. Otherwise 0, which is not stored."""

    kernels: Annotated[dict[str, str], Field(exclude_if=lambda kernels: not kernels)] = {}
    """The kernels by name that hosts had, by host; empty, which is not stored, where all had the standard one."""

    @property
    def too_fast(self) -> bool:
        """Whether round trips are shorter than declared, because the machine was busier during calibration than now."""
        return any(row.too_fast for row in self.rows)

    @property
    def ok(self) -> bool:
        """Whether nothing lies outside its tolerance; what could not be judged does not count against the lab."""
        return all(row.ok is not False for row in self.rows)

    @property
    def verdict(self) -> str:
        outside = sum(row.ok is False for row in self.rows)
        unsure = sum(row.ok is None for row in self.rows)
        total = len(self.rows)
        words = f"{outside} of {total} outside the tolerance" + (f", {unsure} not judged" if unsure else "")
        if self.ok:
            words = (f"{total - unsure} of {total} judged, " if unsure else "") + "all within tolerance"
        names = [name for name in self.cut if name not in self.off]
        cut = f"; cut, and not measured: {', '.join(names)}" if names else ""
        for why in dict.fromkeys(self.off.values()):
            cut += f"; {why}, and not measured: {', '.join(name for name in self.off if self.off[name] == why)}"
        if self.sample:
            measured = f"{len(self.sample)} of {self.links} links measured, all settings read back"
            words = f"quick certificate, {measured}: {words}"
        changed = f"; changed: {'; '.join(self.changed)}" if self.changed else ""
        storm = f"; a storm on {', '.join(self.storm)}" if self.storm else ""
        return words + cut + changed + storm

    def summary(self) -> dict[str, JsonValue]:
        """The certificate for people, by subject and quantity; settings that are as declared have no line."""
        shown = [row for row in self.rows if row.quantity != "settings" or not row.ok]
        words: dict[str, JsonValue] = {"verdict": self.verdict}
        if self.busy:
            words["the machine meanwhile"] = "; ".join(self.busy)
        for kernel in dict.fromkeys(self.kernels.values()):
            words[f"kernel {kernel}"] = ", ".join(host for host, own in self.kernels.items() if own == kernel)
        return words | {f"{row.title} {row.quantity}": row.sentence() for row in shown}

    def write(self, path: FilePath) -> None:
        write_for_user(path, self.model_dump_json(indent=1) + "\n")


def settings_row(host: str, differences: Sequence[str], facts: Sequence[str]) -> CertificateRow:
    """The row of a host's settings: there must be no `differences` from the plan. `facts` is what its kernel shows."""
    return CertificateRow(
        subject=host,
        quantity="settings",
        unit="differences",
        declared=0,
        measured=len(differences),
        tolerance=0,
        ok=not differences,
        note="; ".join(differences or facts),
    )


def rtt_row(plan: Plan, subject: str, path: Path, rtts_ms: Sequence[float]) -> CertificateRow:
    """The row of a path's median round trip. It is expected to be the sum of its segments and of the time that modelled
    processors take; in virtual time also of the echo's transmission times, which are long on a slow link. Of several
    ways any may be taken: then the nearest that they allow is expected."""
    tolerance = tolerances.round_trip(plan, path)
    ordered = sorted(rtts_ms)
    median = ordered[(len(ordered) - 1) // 2] if ordered else None
    declared = path.rtt_ms, path.rtt_ms if path.rtt_most_ms is None else path.rtt_most_ms
    least_ms, most_ms = (round(ms, 6) for ms in (echo_range_ms(plan, path) if plan.time == "virtual" else declared))
    declared_ms = least_ms if median is None else min(max(median, least_ms), most_ms)
    return CertificateRow(
        subject=subject,
        quantity="RTT",
        unit="ms",
        declared=declared_ms,
        measured=None if median is None else round(median, 4),
        tolerance=round(tolerance.distance(declared_ms), 4),
        ok=median is not None and tolerance.allows(median, declared_ms),
        p99=round(ordered[math.ceil(0.99 * len(ordered)) - 1], 4) if ordered else None,
        note="" if least_ms == most_ms else f"its ways take {least_ms:g} to {most_ms:g} ms",
    )


def loss_row(plan: Plan, subject: str, path: Path, lost: int, sent: int) -> CertificateRow:
    """The row of echo requests without answer, which were lost in either direction."""
    there, back = path.ways
    both_ways = round(lost_or_corrupt_percent(there.loss_percent, back.loss_percent), 6)
    alike = max(_alike(end.outgoing) for end in plan.ends_on(path))
    return _loss_row(plan, subject, "", both_ways, lost, sent, alike)


def loss_rows(plan: Plan, link: Link, sent: int, arrived: int, answered: int) -> tuple[CertificateRow, CertificateRow]:
    """A row for each direction of a link: how many of the requests sent the other end counted as arrived, and how many
    of its answers came back."""
    there, back = link.ways
    first, second = link.ends
    arrived = min(arrived, sent)
    alike, alike_back = (_alike(shaping) for shaping in plan.directions(link))
    lost_back = max(0, arrived - answered)
    return (
        _loss_row(plan, link.name, f"{first} to {second}", there.loss_percent, sent - arrived, sent, alike),
        _loss_row(plan, link.name, f"{second} to {first}", back.loss_percent, lost_back, arrived, alike_back),
    )


def _alike(shaping: Shaping) -> float:
    """How many packets of a bursty loss are worth one independent packet. In a chain of two states the correlation of
    neighbouring states is 1 less the two chances to change (Gilbert, 1960). Losses are less correlated where a state
    loses only some: by the share of the loss's variance that the states have."""
    if shaping.bursts is None:
        return 1.0
    neighbours = 1 - sum(shaping.bursts)
    lost, inside = shaping.loss_percent / 100, shaping.share_in_bursts
    apart = (shaping.burst_loss_percent - shaping.burst_between_percent) / 100
    of_states = apart**2 * inside * (1 - inside) / (lost * (1 - lost))
    return max(1.0, 1 + 2 * of_states * neighbours / (1 - neighbours))


def _loss_row(
    plan: Plan, subject: str, direction: str, declared_percent: float, lost: int, sent: int, alike: float
) -> CertificateRow:
    tolerance = tolerances.loss(plan).distance(declared_percent)
    ok, low, high = judge_loss(round(lost / alike), round(sent / alike), declared_percent, tolerance)
    true_loss = f"{span(digits(low, 2), digits(high, 2))} %"
    note = f"{direction or 'there and back'}, {sent} probes: {true_loss}, {CONFIDENCE:.0%} sure"
    return CertificateRow(
        subject=subject,
        quantity="loss",
        unit="%",
        declared=declared_percent,
        measured=round(100 * lost / sent, 4) if sent else None,
        tolerance=tolerance,
        ok=ok if sent else None,
        note=note if ok is not None and sent else f"{note}; too few to judge such a loss",
        direction=direction,
    )


def rate_row(
    plan: Plan,
    link: str,
    declared_mbit: float,
    measured: float | None,
    note: str,
    *,
    judged: bool,
    direction: str = "",
    quantity: str = "TCP",
) -> CertificateRow:
    """The row of what a link carries: of TCP, against the goodput that the link's rate allows; or, as `rate`, of whole
    frames, against the rate."""
    tolerance = tolerances.rate(plan)
    within = measured is not None and tolerance.allows(measured, declared_mbit)
    return CertificateRow(
        subject=link,
        quantity=quantity,
        unit="Mbit/s",
        declared=round(declared_mbit, 4),
        measured=measured,
        tolerance=round(tolerance.distance(declared_mbit), 4),
        ok=within if judged else None,
        note=note,
        direction=direction,
    )
