"""`minigts bisect`: the commit of a kernel's history that changed what a lab shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console, files
from minigts.cli.options import TimeOption
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.verbs.run import OnScreen
from minigts.errors import InputError
from minigts.providers import DEFAULT

if TYPE_CHECKING:
    from minigts.bisection.folder import BisectRequest, TriedCommit
    from minigts.bisection.question import ClaimQuestion, Question, SeedQuestion
    from minigts.experiments.run import OnProgress, RunOutcome
    from minigts.explore.outcome import Outcome
    from minigts.topology.time import Time

verb = Verb(EXPERIMENTS, 376)


@verb.command()
def bisect(
    repository: Annotated[Path, typer.Argument(metavar="REPOSITORY", help="A git repository with sources of Linux.")],
    good: Annotated[
        str, typer.Option("--good", metavar="REV", help="A commit on which the claim holds, or the test passes.")
    ],
    topology: Annotated[
        Path | None, typer.Argument(metavar="[TOPOLOGY]", help="With a test: the topology of its lab.")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEST…]", help="A pytest file and its options, or a command, after --."),
    ] = None,
    bad: Annotated[
        str, typer.Option("--bad", metavar="REV", help="A commit on which it fails; it may be the older one.")
    ] = "HEAD",
    experiment: Annotated[
        Path | None,
        typer.Option(
            "--experiment",
            metavar="FILE",
            help="In place of a test: an experiment, or a name of `minigts validate`, as tcp-timers.",
        ),
    ] = None,
    claim: Annotated[
        str,
        typer.Option(
            "--claim",
            metavar="TEXT",
            help="Claims of the experiment whose text or law has these words. Default: all of them.",
        ),
    ] = "",
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            metavar="N|A-B",
            help="Of a test: how many seeds, or which; all have to pass. Of an experiment: its replicates. Default: 1, "
            "or the file's.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The experiment's quick form.")] = False,
    faults: Annotated[
        Path | None, typer.Option("--faults", metavar="FILE", help="Of a test: a plan of faults, as of `explore`.")
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="FILE", help="A file that the test needs beside it; may be repeated."),
    ] = None,
    longest: Annotated[
        str, typer.Option("--longest", metavar="TIME", help="How long the test may take, by the lab's time.")
    ] = "1h",
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path", metavar="PATH", help="Only commits that change something there, as net/ipv4; may be repeated."
        ),
    ] = None,
    patch: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A patch to apply to each commit; may be repeated."),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the kernels; may be repeated.")
    ] = None,
    kernel: Annotated[
        str, typer.Option("--kernel", metavar="NAME", help="The name that each commit's kernel gets in turn, bisect….")
    ] = "bisect",
    time: TimeOption = None,
    on: Annotated[
        str | None, typer.Option("--on", metavar="ENGINE", help="Who runs the labs, as of `run` and `explore`.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with a bisection in its results folder, with the same options."),
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
) -> None:
    """Find the commit of a kernel's history from which on a claim does not hold, or a test does not pass.

    Each commit that git bisect asks for is built, as by `minigts kernel build`, in one tree that is kept: after the
    first one what has changed is compiled. Then the experiment or the test runs in labs of that kernel. A commit that
    cannot be built, or whose claim stays undecided, is skipped; a test says so by ending with 125.

    Git works in a repository of its own. Nothing in yours is changed, and what is not committed there plays no part.
    The good commit may be the newer one: then the commit that mended it is looked for.

    Each commit is kept as it is tried, so nothing is lost when the program is ended. Prints the commit, and the folder
    with the page bisect.md. Exit 1 if it is one of several, since commits between them could not be tried.

    Example:  minigts bisect ~/linux --good v7.2 --experiment tcp-timers --claim "Delayed acknowledgements"

    Example:  minigts bisect ~/linux --good v7.2 --bad main topologies/pair.yaml --seeds 20 -- ./check.sh
    """
    from datetime import UTC, datetime

    from minigts.bisection import folder, page, search
    from minigts.results.folder import exclusive, make

    search.require_name(kernel)
    if (experiment is None) == (topology is None):
        raise InputError(
            "bisect: name an experiment, as --experiment tcp-timers, or a topology and a test, as in "
            "topologies/pair.yaml -- ./check.sh"
        )
    if experiment is not None:
        _refuse("an experiment", {"--faults": faults, "--with": beside, "--time": time})
        question: Question = _claims(experiment, claim, seeds, on, quick=quick)
    else:
        assert topology is not None, "one of the two was given"
        _refuse("a test", {"--claim": claim, "--quick": quick})
        question = _seeds(topology, test or (), seeds, faults, beside or (), longest, time, on)
    request = _request(repository, (good, bad), path or (), question, kernel, patch or (), config or ())
    if resume is not None:
        folder.require_equal(resume, request)
        place = resume
    else:
        make(results)
        place = folder.create(results, request, datetime.now(UTC))
    with exclusive(place), console.progress() as say:
        try:
            found = search.run(place, request, question, _BisectOnScreen(say))
        except BaseException:
            console.note(f"minigts: what was tried is kept; go on with the same command and --resume {place}")
            raise
    typer.echo(page.headline(found, request, folder.steps(place)))
    typer.echo(place)
    raise typer.Exit(0 if found.is_exact else 1)


def _refuse(question: str, options: Mapping[str, object]) -> None:
    """Raises InputError for an option that does not go with the question."""
    if given := [name for name, value in options.items() if value]:
        raise InputError(f"bisect: {given[0]} does not go with {question}")


def _claims(experiment: Path, claim: str, seeds: str | None, on: str | None, *, quick: bool) -> ClaimQuestion:
    """The question that the options of an experiment ask. Raises InputError."""
    from minigts.bisection.question import ClaimQuestion
    from minigts.cli.verbs.validate import law_file

    file = law_file(experiment) or files.find_file(experiment, files.EXPERIMENTS)
    if seeds is not None and not seeds.isdecimal():
        raise InputError(f"--seeds {seeds[:40]}: of an experiment it is the number of replicates: 1, or at least 5")
    made = ClaimQuestion(file.absolute(), claim, None if seeds is None else int(seeds), quick, on)
    made.check()
    return made


def _seeds(
    topology: Path,
    test: Sequence[str],
    seeds: str | None,
    faults: Path | None,
    beside: Sequence[Path],
    longest: str,
    time: Time | None,
    on: str | None,
) -> SeedQuestion:
    """The question that a test asks. Raises InputError, EnvironmentLacks."""
    from minigts.bisection.question import SeedQuestion
    from minigts.cli.verbs import explore

    if not test:
        raise InputError(f"bisect: name a test for {topology}, as in: {topology} -- ./check.sh")
    asked = explore.request_of(topology, list(test), seeds or "1", faults, list(beside), longest, None, DEFAULT, time)
    return SeedQuestion(
        topology=files.find_file(topology, files.TOPOLOGIES).absolute(),
        test=asked.test,
        first=asked.first,
        last=asked.last,
        longest_s=asked.longest_s,
        faults=asked.faults,
        faults_file=asked.faults_file,
        time=asked.plan.time,
        engine=explore.engine_for(on or (explore.HERE if asked.first == asked.last else None), asked.plan.time),
    )


def _request(
    repository: Path,
    ends: tuple[str, str],
    inside: Sequence[str],
    question: Question,
    kernel: str,
    patch: Sequence[Path],
    config: Sequence[str],
) -> BisectRequest:
    """What the options ask for. Raises InputError."""
    import minigts
    from minigts.bisection.folder import BisectRequest, CommitFacts
    from minigts.bisection.history import Repository
    from minigts.providers.uml.build.named import build, patches

    found = Repository.open(repository)
    good, bad = (found.commit(rev, option) for rev, option in zip(ends, ("--good", "--bad"), strict=True))
    if good == bad:
        raise InputError(f"bisect: --good {ends[0]} and --bad {ends[1]} are one commit: {good.in_words}")
    own = {str(each.expanduser().absolute()): patches.user_patch(each.expanduser()).sha256 for each in patch}
    return BisectRequest(
        minigts=minigts.__version__,
        repository=str(found.place),
        holds=CommitFacts.of(good),
        fails=CommitFacts.of(bad),
        paths=tuple(inside),
        question=dict(question.facts),
        kernel=kernel,
        config=build.options(config, None, ()),
        patches=own,
    )


class _BisectOnScreen(OnScreen):
    """Shows a bisection's progress; see `bisection.search.BisectWatcher`."""

    def __init__(self, say: console.Say) -> None:
        self._say = say

    def step(self, line: str) -> None:
        self._say(line)

    def outcome(self, outcome: RunOutcome, directory: Path) -> None:
        """Nothing is shown: `take_commit` says what the claims are."""

    @contextmanager
    def preparing(self) -> Iterator[console.Say]:
        yield self._say

    @contextmanager
    def measuring(self) -> Iterator[tuple[console.Say, OnProgress]]:
        yield self._say, lambda at: self._say(f"{at.done} of {at.total} samples")

    def take_outcome(self, outcome: Outcome, done: int, total: int) -> None:
        self._say(f"{done} of {total} seeds: {outcome.verdict}")

    def take_commit(self, step: TriedCommit, known_before: bool) -> None:
        before = ", as was known" if known_before else ""
        console.note(f"{step.commit.commit.in_words}: {step.verdict}{before}; {step.answer.detail}")
