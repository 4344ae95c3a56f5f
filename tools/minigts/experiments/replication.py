"""The fewest samples, or replicates, that decide claims."""

from __future__ import annotations

from collections.abc import Sequence

from minigts.experiment_language.model import Experiment
from minigts.judge.registry import WORDS
from minigts.judge.samples import ENOUGH
from minigts.judge.statistics import clearest_rank, clearest_sign, holm, significant

_BY_SIGN = ("bounded", "follows", "slope")


def fewest_samples(words: Sequence[str]) -> int:
    """How many samples are needed to decide claims of these words, when tested together."""
    samples = ENOUGH
    while undecidable(words, samples):
        samples += 1
    return samples


def undecidable(words: Sequence[str], samples: int) -> int:
    """How many of these verdicts stay undecided even with the smallest possible p values. Words about hops have
    several p values, and are not counted."""
    tested = [word for word in words if word not in WORDS]
    clearest = [clearest_sign(samples) if word in _BY_SIGN else clearest_rank(samples) for word in tested]
    return sum(not significant(p) for p in holm(clearest))


def fewest_replicates(experiment: Experiment) -> int:
    """The number of replicates with which each claim of the experiment can be decided, those with a source together."""
    return fewest_samples(
        [
            claim.word
            for claim in experiment.claims
            if claim.source
            for _ in ([claim.overlay] if claim.overlay else experiment.overlays)
        ]
    )
