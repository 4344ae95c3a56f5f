"""Which verdicts an experiment can have, found from its files before anything is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from minigts.experiment_language.claims import Claim
from minigts.experiments import run_folders, time_limits
from minigts.experiments.claims import foreseen
from minigts.experiments.derive import Taken, summarise
from minigts.experiments.prepare import Prepared
from minigts.judge.registry import WORDS
from minigts.judge.samples import ENOUGH, plural
from minigts.judge.statistics import clearest_rank, clearest_sign, holm, significant
from minigts.results.schema import RawSample
from minigts.tools.base import Measured

OPEN, VACUOUS, TOO_FEW = "open", "vacuous", "too few"


def counted(prepared: Prepared, provider: str) -> Mapping[bool, Counter[str]]:
    """How many verdicts can come out either way (OPEN), follow from the plan (VACUOUS), or cannot be decided by so few
    repetitions (TOO_FEW). The key True has those on claims of documents, False those on the experiment's own.
    """
    found: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    verdicts_on = [*_verdicts(prepared, provider)]
    words = _tested_together(verdicts_on)
    for claim, is_open in verdicts_on:
        found[bool(claim.source)][OPEN if is_open else VACUOUS] += 1
    if prepared.plan.time == "real":
        repetitions = prepared.experiment.repetitions
        for sourced, verdicts in found.items():
            few = verdicts[OPEN] if repetitions < ENOUGH else _undecidable(words, repetitions) if sourced else 0
            verdicts[OPEN] -= few
            verdicts[TOO_FEW] = few
    return found


def needed(words: Sequence[str]) -> int:
    """How many repetitions in real time are needed to decide claims of these words, when tested together."""
    repetitions = ENOUGH
    while _undecidable(words, repetitions):
        repetitions += 1
    return repetitions


def too_few_in_words(several: Sequence[Prepared], provider: str) -> tuple[str, ...]:
    """A line for each experiment in real time with claims that so few repetitions can never decide."""
    lines: dict[str, str] = {}
    for each in several:
        experiment = each.experiment
        if not each.samples or each.plan.time != "real" or not experiment.claims or experiment.name in lines:
            continue
        number = plural(experiment.repetitions, "repetition")
        if experiment.repetitions < ENOUGH:
            lines[experiment.name] = f"{experiment.name}: {number} in real time decide no claim; {ENOUGH} and more do"
            continue
        words = _tested_together(_verdicts(each, provider))
        few = _undecidable(words, experiment.repetitions)
        if few:
            lines[experiment.name] = (
                f"{experiment.name}: {number} in real time cannot decide {few} of {len(words)} verdicts on claims of "
                f"documents, which are tested together (Holm's procedure); {needed(words)} can"
            )
    return tuple(lines.values())


def _verdicts(prepared: Prepared, provider: str) -> Iterator[tuple[Claim, bool]]:
    """Each claim once for each of its verdicts, and whether that verdict can come out either way."""
    manifest = run_folders.manifest_of(prepared, provider)
    cells = summarise(manifest, [_made_up(prepared, index) for index in range(len(prepared.samples))])
    for claim in time_limits.claims(manifest):
        for follows in foreseen(claim, cells, prepared.plan, prepared.experiment).values():
            yield claim, follows is None


def _tested_together(verdicts: Iterable[tuple[Claim, bool]]) -> list[str]:
    """The words of those on claims of documents that can be either."""
    return [claim.word for claim, is_open in verdicts if is_open and claim.source]


def _undecidable(words: Sequence[str], repetitions: int) -> int:
    """How many of these verdicts stay undecided even with the smallest possible p values. Words about hops have
    several p values, and are not counted."""
    tested = [word for word in words if word not in WORDS]
    signs = ("bounded", "follows", "slope")
    clearest = [clearest_sign(repetitions) if word in signs else clearest_rank(repetitions) for word in tested]
    return sum(not significant(p) for p in holm(clearest))


def _made_up(prepared: Prepared, index: int) -> Taken:
    """A sample with invented figures, of which only its place is used."""
    sample = prepared.samples[index]
    tool = prepared.experiment.measurement(sample.measurement).instrument
    raw = RawSample(
        sample=sample.id, host=sample.source, argv=(), code=0, stdout="", stderr="", started="", seconds=0.0, attempt=1
    )
    return Taken(sample, raw, 1, 0, Measured(1.0, {column.name: 1.0 for column in tool.columns}), "")
