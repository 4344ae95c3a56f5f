"""What is asked of each kernel: whether claims of an experiment hold, or whether a test passes under several seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from minigts.errors import CommandFailed, HostFailed, InputError
from minigts.experiment_language.claims import Claim
from minigts.experiments import prepare
from minigts.explore import exploration
from minigts.explore import folder as seeds
from minigts.explore.exploration import Watcher as SeedWatcher
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program
from minigts.foreign import Foreign, one_line
from minigts.judge.verdicts import SHOWN, Word, combine
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT
from minigts.report.read import ReportResults, is_sweep, labs_of, read, runs
from minigts.results import schema
from minigts.results.folder import read_bytes
from minigts.results.tables import NothingYet
from minigts.session import campaign, plans
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.cluster.engine import EngineFile

LONGEST_DETAIL = 400
Verdict = Literal["holds", "fails", "undecided"]


class KernelAnswer(BaseModel):
    """What a kernel was found to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Verdict
    detail: Annotated[str, Field(max_length=LONGEST_DETAIL)] = ""
    """The figures that it rests on, or why it is undecided."""
    fingerprints: tuple[str, ...] = ()
    """Of each lab's course in virtual time, in the order of labs or seeds."""


class QuestionWatcher(SeedWatcher, campaign.CampaignWatcher, Protocol):
    """Receives the progress of labs."""


class Question(Protocol):
    """Something to be asked of a kernel."""

    @property
    def in_words(self) -> str:
        """`tcp-timers, claims "Delayed acknowledgements"`."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """What it consists of, with the digests of files, for the results folder. Raises InputError."""
        ...

    def ask(self, kernel: str, place: Path, watcher: QuestionWatcher, say: Progress) -> KernelAnswer:
        """Ask the kernel of that name; results go into the new folder `place`. Raises InputError, EnvironmentLacks."""
        ...


@dataclass(frozen=True)
class ClaimQuestion:
    """Do these claims of an experiment hold?"""

    file: Path
    claim: str = ""
    """A part of the claim's text, or of the name of its law; empty: all claims of the experiment."""
    replicates: int | None = None
    quick: bool = False
    on: str | None = None

    @property
    def in_words(self) -> str:
        which = f'claims with "{self.claim}"' if self.claim else "all claims"
        several = f", {self.replicates} replicates" if self.replicates is not None else ""
        return f"{self.file.stem}, {which}{several}{', quick' if self.quick else ''}"

    @property
    def facts(self) -> Mapping[str, str]:
        return {"asked": self.in_words, "experiment": str(self.file), "digest": _digest(read_bytes(self.file))}

    def check(self) -> None:
        """Raises InputError for an experiment that has no such claim."""
        [*several] = prepare.prepare_all(
            prepare.files((self.file,)), paper=False, quick=self.quick, only=(), replicates=self.replicates
        )
        claims = [claim for each in several for claim in each.experiment.claims]
        if not any(map(self._is_meant, claims)):
            known = dict.fromkeys(each.law or each.text or each.words for each in claims)
            what = f"no claim with {self.claim[:80]!r}; it has: {'; '.join(known)}" if claims else "no claims"
            raise InputError(f"{self.file}: {what}")

    def _is_meant(self, claim: Claim) -> bool:
        wanted = self.claim.casefold()
        return any(wanted in text.casefold() for text in (claim.law, claim.text, claim.words))

    def ask(self, kernel: str, place: Path, watcher: QuestionWatcher, say: Progress) -> KernelAnswer:
        say(f"measuring {self.file.stem}")
        asked = campaign.CampaignRequest(
            files=(self.file,),
            quick=self.quick,
            replicates=self.replicates,
            kernel=kernel,
            means=campaign.Means(on=self.on),
        )
        try:
            with campaign.open_campaign(asked, watcher.note) as opened:
                measured = opened.measure(place, watcher)
        except (HostFailed, CommandFailed) as error:
            return cannot_tell(f"the lab failed: {error}")
        return self._answer(measured)

    def _answer(self, measured: campaign.CampaignResult) -> KernelAnswer:
        found = list(_results(measured.folder))
        fingerprints = tuple(
            course.fingerprint for each in found if each.manifest is not None for course in each.manifest.courses
        )
        outcomes = [claim for each in found for claim in self._outcomes(each)]
        if not measured.complete:
            return cannot_tell("some samples have no result", fingerprints)
        word = combine([each.verdict for each in outcomes])
        told = [each for each in outcomes if each.verdict == word]
        more = f" (and {len(told) - 1} more)" if told[1:] else ""
        detail = _cut(f"{SHOWN[word]}: {told[0].detail}{more}" if told else "no such claim was judged")
        return KernelAnswer(verdict=_verdict(word, outcomes), detail=detail, fingerprints=fingerprints)

    def _outcomes(self, results: ReportResults) -> Sequence[schema.ClaimVerdict]:
        assert results.manifest is not None, "it was measured here"
        meant = {(each.words, each.text) for each in results.manifest.experiment.claims if self._is_meant(each)}
        return [each for each in results.claims if (each.claim, each.text) in meant]


def _verdict(word: Word, outcomes: Sequence[schema.ClaimVerdict]) -> Verdict:
    words: dict[Word, Verdict] = {"held": "holds", "failed": "fails"}
    return words.get(word, "undecided") if outcomes else "undecided"


def _results(folder: Path) -> Sequence[ReportResults]:
    """The results of each lab in a folder that was measured here."""
    found = []
    places = labs_of(folder) if is_sweep(folder) else runs(folder).values()
    for place in places:
        try:
            found.append(read(place))
        except NothingYet:
            continue
    return found


@dataclass(frozen=True)
class SeedQuestion:
    """Does a test pass under each of these seeds?"""

    topology: Path
    test: Program
    first: int
    last: int
    longest_s: float
    faults: str = ""
    faults_file: str = "faults.yaml"
    time: Time = "virtual"
    engine: str | EngineFile | None = None

    @property
    def in_words(self) -> str:
        faults = f", faults of {self.faults_file}" if self.faults else ""
        return f"`{self.test.in_words}` in {self.topology.stem}, seeds {self.first} to {self.last}{faults}"

    @property
    def facts(self) -> Mapping[str, str]:
        return {
            "asked": self.in_words,
            "topology": str(self.topology),
            "digest": _digest(read_bytes(self.topology)),
            "test": _digest(self.test.model_dump_json().encode()),
            **({"faults": _digest(self.faults.encode())} if self.faults else {}),
            "longest": f"{self.longest_s:g} s",
            "time": self.time,
        }

    def ask(self, kernel: str, place: Path, watcher: QuestionWatcher, say: Progress) -> KernelAnswer:
        plan = plans.planned(self.topology, time=self.time, kernel=kernel)
        asked = exploration.ExplorationRequest(
            self.topology.stem,
            plan,
            DEFAULT,
            self.test,
            self.first,
            self.last,
            self.longest_s,
            self.faults,
            self.faults_file,
        )
        allowed = exploration.check_exploration(asked, say)
        made = seeds.create(place, allowed.content, datetime.now(UTC))
        exploration.run(made, allowed, self.engine, watcher)
        return answer_of(tuple(seeds.outcomes(made).values()))


def answer_of(outcomes: Sequence[Outcome]) -> KernelAnswer:
    """The answer of a test's seeds: it fails if one has failed; it holds if all have passed."""
    fingerprints = tuple(each.course for each in outcomes if each.course)
    untold = [each for each in outcomes if each.verdict in ("error", "vacuous")]
    bad = [each for each in outcomes if each.is_bad and each not in untold]
    if bad:
        detail = _cut(f"{len(bad)} of {len(outcomes)} seeds; seed {bad[0].seed} {bad[0].verdict}: {bad[0].detail}")
        return KernelAnswer(verdict="fails", detail=detail, fingerprints=fingerprints)
    if untold:
        return cannot_tell(f"seed {untold[0].seed} cannot tell: {untold[0].detail}", fingerprints)
    return KernelAnswer(verdict="holds", detail=f"{len(outcomes)} of {len(outcomes)} seeds", fingerprints=fingerprints)


def cannot_tell(why: str, fingerprints: tuple[str, ...] = ()) -> KernelAnswer:
    """The answer of a kernel that cannot be told of, and why."""
    return KernelAnswer(verdict="undecided", detail=_cut(why), fingerprints=fingerprints)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _cut(text: str) -> str:
    return one_line(Foreign(text), LONGEST_DETAIL - 1)
