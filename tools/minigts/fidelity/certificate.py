"""The certificate: what was declared of a lab against what was measured of it, with the verdicts. Pure.

JSON for programs, words for manifests and tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath

from pydantic import BaseModel, ConfigDict, JsonValue

from minigts.paths import write_whole
from minigts.topology.plan import Path, Plan, Tolerances

SURE = 0.99
"""The level of what is said of a loss: of a hundred links that are as declared, one is judged wrongly."""
JITTER_PART = 0.25
"""Of the round trip's declared jitter, added to the tolerance of its median."""


class Row(BaseModel):
    """One quantity of one path, link or host. `measured` is None when nothing was; `ok` is None when what was measured
    cannot judge what was declared. `p99` is that of the same samples, where there are any."""

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

    @property
    def too_low(self) -> bool:
        return self.ok is False and self.measured is not None and self.measured < self.declared

    def in_words(self) -> str:
        measured = "nothing" if self.measured is None else f"{self.measured:g} {self.unit}"
        verdict = {True: "ok", False: "outside", None: "not judged"}[self.ok]
        tail = "" if self.p99 is None else f", 99 % within {self.p99:g} {self.unit}"
        return f"{measured}, declared {self.declared:g} ± {self.tolerance:.3g} {self.unit}: {verdict}{tail}"


class Certificate(BaseModel):
    """Every row measured on one lab at one time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lab: str
    provider: str
    own_latency_ms: float
    """The emulator's own one-way latency over a link, which was taken off the delays."""
    rows: tuple[Row, ...]
    seconds: float = 0.0
    """How long measuring took."""
    busy: tuple[str, ...] = ()
    """What else the machine did meanwhile, if it was enough to doubt the figures."""

    @property
    def ok(self) -> bool:
        """Whether nothing lies outside its tolerance; what could not be judged does not count against the lab."""
        return all(row.ok is not False for row in self.rows)

    @property
    def verdict(self) -> str:
        outside = sum(row.ok is False for row in self.rows)
        unsure = sum(row.ok is None for row in self.rows)
        said = "all within tolerance" if self.ok else f"{outside} of {len(self.rows)} outside the tolerance"
        return said + (f", {unsure} not judged" if unsure else "")

    def in_words(self) -> dict[str, JsonValue]:
        """For people, by subject and quantity; settings that are as declared are left to the verdict."""
        shown = [row for row in self.rows if row.quantity != "settings" or not row.ok]
        words: dict[str, JsonValue] = {"verdict": self.verdict}
        if self.busy:
            words["the machine meanwhile"] = "; ".join(self.busy)
        return words | {f"{row.subject} {row.quantity}": row.in_words() for row in shown}

    def write(self, path: FilePath) -> None:
        write_whole(path, self.model_dump_json(indent=1) + "\n")


def settings_row(host: str, differences: Sequence[str], facts: Sequence[str]) -> Row:
    """What a host's kernel shows that differs from the plan; there must be nothing. `facts` is what it shows else."""
    return Row(
        subject=host,
        quantity="settings",
        unit="differences",
        declared=0,
        measured=len(differences),
        tolerance=0,
        ok=not differences,
        note="; ".join(differences or facts),
    )


def rtt_row(plan: Plan, subject: str, path: Path, rtts_ms: Sequence[float]) -> Row:
    """The median round trip of a path against the sum of its segments."""
    tolerance = rtt_tolerance_ms(plan.tolerances, path.rtt_ms, jitter_ms(plan, path))
    ordered = sorted(rtts_ms)
    median = ordered[(len(ordered) - 1) // 2] if ordered else None
    return Row(
        subject=subject,
        quantity="RTT",
        unit="ms",
        declared=path.rtt_ms,
        measured=None if median is None else round(median, 4),
        tolerance=round(tolerance, 4),
        ok=median is not None and abs(median - path.rtt_ms) <= tolerance,
        p99=round(ordered[math.ceil(0.99 * len(ordered)) - 1], 4) if ordered else None,
    )


def rtt_tolerance_ms(tolerances: Tolerances, declared_ms: float, jitter: float = 0.0) -> float:
    """How far a median RTT may lie from what is declared; `jitter` in ms is that of the whole round trip."""
    return tolerances.rtt_ms + tolerances.rtt_percent / 100 * declared_ms + JITTER_PART * jitter


def jitter_ms(plan: Plan, path: Path) -> float:
    """Declared jitter over the path, both ways."""
    return sum(port.outgoing.jitter_ms for port in plan.ends_on(path))


def loss_row(plan: Plan, subject: str, path: Path, lost: int, sent: int) -> Row:
    """Echo requests without answer: a loss on the way there and one on the way back look the same."""
    both_ways = round(100 * (1 - (1 - path.loss_percent / 100) ** 2), 6)
    ok, low, high = judge_loss(lost, sent, both_ways, plan.tolerances.loss_points)
    note = f"there and back, {sent} probes: {low:.2g} to {high:.2g} %, {SURE:.0%} sure"
    return Row(
        subject=subject,
        quantity="loss",
        unit="%",
        declared=both_ways,
        measured=round(100 * lost / sent, 4),
        tolerance=plan.tolerances.loss_points,
        ok=ok,
        note=note if ok is not None else f"{note}; too few to judge such a loss",
    )


def judge_loss(lost: int, sent: int, declared_percent: float, points: float) -> tuple[bool | None, float, float]:
    """Whether `lost` of `sent` agrees with what was declared, and between which shares in per cent the true loss lies.

    It agrees when the exact interval of the true loss (Clopper and Pearson, 1934) meets what is declared ± `points`.
    None when as few probes would likely all come back over a link with that loss: then they cannot tell it from none.
    """
    low, high = (100 * share for share in exact_interval(lost, sent, 1 - SURE))
    if declared_percent > 0 and (1 - declared_percent / 100) ** sent > 1 - SURE:
        return None, low, high
    return low <= declared_percent + points and high >= declared_percent - points, low, high


def exact_interval(hits: int, of: int, doubt: float) -> tuple[float, float]:
    """Between which shares the true one lies, but for a chance of `doubt`, when `hits` of `of` were seen."""
    low = 0.0 if hits == 0 else _share_where(lambda share: 1 - _at_most(hits - 1, of, share), doubt / 2, rising=True)
    high = 1.0 if hits == of else _share_where(lambda share: _at_most(hits, of, share), doubt / 2, rising=False)
    return low, high


def rate_row(plan: Plan, link: str, ceiling_mbit: float, measured: float | None, note: str, *, judged: bool) -> Row:
    """TCP over a link against what its rate leaves for payload."""
    tolerance = plan.tolerances.rate_percent / 100 * ceiling_mbit
    within = measured is not None and abs(measured - ceiling_mbit) <= tolerance
    return Row(
        subject=link,
        quantity="TCP",
        unit="Mbit/s",
        declared=round(ceiling_mbit, 4),
        measured=measured,
        tolerance=round(tolerance, 4),
        ok=within if judged else None,
        note=note,
    )


def _share_where(chance: Callable[[float], float], wanted: float, *, rising: bool) -> float:
    """By halving: where a chance that rises or falls with the share reaches `wanted`."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if (chance(middle) < wanted) == rising:
            low = middle
        else:
            high = middle
    return low


def _at_most(hits: int, of: int, share: float) -> float:
    """The chance of at most `hits` among `of` when each comes with the chance `share`."""
    if share in (0.0, 1.0):
        return float(share == 0.0 or hits >= of)
    logs = math.log(share), math.log1p(-share)
    return min(1.0, sum(math.exp(_log_choices(of, k) + k * logs[0] + (of - k) * logs[1]) for k in range(hits + 1)))


def _log_choices(of: int, hits: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(hits + 1) - math.lgamma(of - hits + 1)
