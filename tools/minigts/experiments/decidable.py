"""Which verdicts an experiment can have, found from its files before anything is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from minigts.experiment_language.claims import Claim
from minigts.experiments import run_folders, time_limits
from minigts.experiments.claims import foreseen
from minigts.experiments.derive import MeasuredSample, summarise
from minigts.experiments.prepare import Prepared
from minigts.experiments.replication import fewest_samples, undecidable
from minigts.judge.samples import ENOUGH, plural
from minigts.results.schema import RawSample
from minigts.tools.base import Measured

OPEN, VACUOUS, TOO_FEW = "open", "vacuous", "too few"


def count_verdicts(prepared: Prepared, provider: str) -> Mapping[bool, Counter[str]]:
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
            few = verdicts[OPEN] if repetitions < ENOUGH else undecidable(words, repetitions) if sourced else 0
            verdicts[OPEN] -= few
            verdicts[TOO_FEW] = few
    return found


def too_few_in_words(several: Sequence[Prepared], provider: str) -> tuple[str, ...]:
    """A line for each experiment with claims that so few repetitions, or replicates, can never decide. A single course
    in virtual time is no sample, and has no line."""
    lines: dict[str, str] = {}
    for each in several:
        experiment = each.experiment
        real = each.plan.time == "real"
        taken = experiment.repetitions if real else experiment.replicates
        if not (each.samples and experiment.claims and (real or taken > 1)) or experiment.name in lines:
            continue
        number = plural(taken, "repetition") + " in real time" if real else plural(taken, "replicate")
        if taken < ENOUGH:
            lines[experiment.name] = f"{experiment.name}: {number} decide no claim; {ENOUGH} and more do"
            continue
        words = _tested_together(_verdicts(each, provider))
        few = undecidable(words, taken)
        if few:
            alike = "" if real else ", unless they come out all alike"
            lines[experiment.name] = (
                f"{experiment.name}: {number} cannot decide {few} of {len(words)} verdicts on claims of documents, "
                f"which are tested together (Holm's procedure){alike}; {fewest_samples(words)} can"
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


def _made_up(prepared: Prepared, index: int) -> MeasuredSample:
    """A sample with invented figures, of which only its place is used."""
    sample = prepared.samples[index]
    tool = prepared.experiment.measurement(sample.measurement).instrument
    raw = RawSample(
        sample=sample.id, host=sample.source, argv=(), code=0, stdout="", stderr="", started="", seconds=0.0, attempt=1
    )
    return MeasuredSample(sample, raw, 1, 0, Measured(1.0, {column.name: 1.0 for column in tool.columns}), "")
