"""A bisection of a small repository by the real git; kernels and labs, which take minutes, are stood in for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import named_kernels
from minigts.artifacts import kernels
from minigts.artifacts.kernels import KernelRequest, NamedKernel
from minigts.bisection import folder, page, search
from minigts.bisection.folder import BisectRequest, CommitFacts, TriedCommit
from minigts.bisection.history import BisectionEnd, Repository
from minigts.bisection.question import KernelAnswer, answer_of
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.explore.outcome import Outcome
from minigts.machine.progress import Progress
from minigts.providers.uml.build.named.build import KernelFault
from minigts.providers.uml.build.named.patches import SourceMismatch

NUMBER = "net/number"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "x")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "x@example.org")


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(place), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    """A repository of twelve commits that could be Linux's, and a thirteenth on a branch beside them."""
    place = tmp_path / "linux"
    for path in ("Makefile", "arch/um/Kconfig", NUMBER):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text("0\n")
    git(tmp_path, "init", "-q", "-b", "main", str(place))
    for number in range(12):
        (place / NUMBER).write_text(f"{number}\n")
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", f"net: number {number} | *bold*")
    git(place, "tag", "first", "main~11")
    return place


def numbers(place: Path) -> Mapping[str, int]:
    """The number of each commit, by its id."""
    ids = git(place, "rev-list", "--reverse", "main").split()
    return {commit: number for number, commit in enumerate(ids)}


@dataclass
class Kernels:
    """Stands in for the build: a kernel is a small file. Of some commits none can be built."""

    linux: Path
    broken: Mapping[int, Exception] = field(default_factory=dict)
    built: list[int] = field(default_factory=list)

    def __call__(self, name: str, asked: KernelRequest, _say: Progress) -> NamedKernel:
        number = numbers(self.linux)[asked.commit]
        self.built.append(number)
        if (error := self.broken.get(number)) is not None:
            raise error
        place = self.linux.parent / f"made-{number}"
        shutil.rmtree(place, ignore_errors=True)
        return named_kernels.registered(name, named_kernels.small(place, f"kernel {number}"))


@dataclass
class Asked:
    """Stands in for labs: what a kernel shows is in its file."""

    answer: Callable[[int], KernelAnswer]
    folders: list[Path] = field(default_factory=list)
    in_words: str = "a question"
    facts: Mapping[str, str] = field(default_factory=lambda: {"asked": "a question"})

    def ask(self, kernel: str, place: Path, _watcher: object, _say: Progress) -> KernelAnswer:
        self.folders.append(place)
        (place / "result").write_text("")
        return self.answer(int((kernels.find(kernel).directory / "linux").read_text().split()[1]))


def fails_from(first: int) -> Callable[[int], KernelAnswer]:
    def answer(number: int) -> KernelAnswer:
        verdict = "fails" if number >= first else "holds"
        return KernelAnswer.model_validate(
            {"verdict": verdict, "detail": f"it is {number}", "fingerprints": (f"{number:032x}",)}
        )

    return answer


class Quiet:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.told: list[tuple[str, bool]] = []

    def step(self, line: str) -> None:
        self.steps.append(line)

    def note(self, line: str) -> None:
        self.steps.append(line)

    def take_outcome(self, outcome: object, done: int, total: int) -> None: ...

    def outcome(self, outcome: object, directory: Path) -> None: ...

    def preparing(self) -> Any:
        return nullcontext(self.step)

    def measuring(self) -> Any:
        return nullcontext((self.step, self.step))

    def take_commit(self, step: TriedCommit, known_before: bool) -> None:
        self.told.append((step.commit.subject, known_before))


def request_of(linux: Path, good: str = "first", bad: str = "main", paths: Sequence[str] = ()) -> BisectRequest:
    repository = Repository.open(linux)
    return BisectRequest(
        minigts="0",
        repository=str(linux),
        holds=CommitFacts.of(repository.commit(good, "--good")),
        fails=CommitFacts.of(repository.commit(bad, "--bad")),
        paths=tuple(paths),
        question={"asked": "a question"},
        kernel="bisect",
    )


def made(tmp_path: Path, request: BisectRequest) -> Path:
    (tmp_path / "results").mkdir(exist_ok=True)
    return folder.create(tmp_path / "results", request, datetime.now(UTC))


def found(tmp_path: Path, linux: Path, first: int, **broken: Exception) -> tuple[BisectionEnd, Path, Kernels]:
    request = request_of(linux)
    place = made(tmp_path, request)
    build = Kernels(linux, {int(number.removeprefix("c")): error for number, error in broken.items()})
    return search.run(place, request, Asked(fails_from(first)), Quiet(), build), place, build


@pytest.mark.parametrize("first", [1, 2, 5, 8, 11])
def test_the_first_commit_that_fails_is_found(tmp_path: Path, linux: Path, first: int) -> None:
    result, place, build = found(tmp_path, linux, first)

    assert [numbers(linux)[each.id] for each in result.suspects] == [first]
    assert build.built[:2] == [0, 11], "first it is tried whether the ends are as the user says"
    assert len(build.built) == len(set(build.built)) <= 6
    assert [step.verdict for step in folder.steps(place).values()] == [
        "fails" if number >= first else "holds" for number in build.built
    ]


def test_nothing_of_the_users_repository_changes(tmp_path: Path, linux: Path) -> None:
    """A bisection of the user's own is under way in it, and a file is changed."""
    git(linux, "bisect", "start", "main", "first")
    (linux / NUMBER).write_text("mine\n")
    before = {path: path.read_bytes() for path in linux.rglob("*") if path.is_file()}

    found(tmp_path, linux, 4)

    assert {path: path.read_bytes() for path in linux.rglob("*") if path.is_file()} == before


def test_the_commit_that_mended_it_is_found_where_the_bad_one_is_the_older(tmp_path: Path, linux: Path) -> None:
    request = request_of(linux, good="main", bad="first")
    place = made(tmp_path, request)

    def answer(number: int) -> KernelAnswer:
        return KernelAnswer(verdict="holds" if number >= 7 else "fails")

    result = search.run(place, request, Asked(answer), Quiet(), Kernels(linux))

    assert [numbers(linux)[each.id] for each in result.suspects] == [7]
    assert "is the first commit that holds" in page.headline(result, request, folder.steps(place))


@pytest.mark.parametrize("error", [KernelFault("it does not compile"), SourceMismatch("hunk 3 does not fit")])
def test_what_cannot_be_built_is_skipped_and_leaves_a_range(tmp_path: Path, linux: Path, error: MinigtsError) -> None:
    result, place, _ = found(tmp_path, linux, 5, c4=error, c5=error, c6=error)

    assert sorted(numbers(linux)[each.id] for each in result.suspects) == [4, 5, 6, 7]
    assert not result.is_exact
    text = (place / folder.PAGE).read_text()
    assert "Found: the first commit that fails is one of 4" in text
    assert str(error) in text


def test_what_cannot_be_built_beside_the_commit_leaves_it_exact(tmp_path: Path, linux: Path) -> None:
    result, _, _ = found(tmp_path, linux, 9, c5=KernelFault("it does not compile"))

    assert [numbers(linux)[each.id] for each in result.suspects] == [9]


def test_an_undecided_answer_is_skipped(tmp_path: Path, linux: Path) -> None:
    request = request_of(linux)

    def answer(number: int) -> KernelAnswer:
        return KernelAnswer(verdict="undecided", detail="too few") if number == 5 else fails_from(3)(number)

    result = search.run(made(tmp_path, request), request, Asked(answer), Quiet(), Kernels(linux))

    assert [numbers(linux)[each.id] for each in result.suspects] == [3]


def test_a_lack_of_this_machine_ends_it_and_says_nothing_about_the_commit(tmp_path: Path, linux: Path) -> None:
    request = request_of(linux)
    place = made(tmp_path, request)

    with pytest.raises(EnvironmentLacks, match="the disk is full"):
        search.run(
            place, request, Asked(fails_from(3)), Quiet(), Kernels(linux, {5: EnvironmentLacks("the disk is full")})
        )

    assert [numbers(linux)[commit] for commit in folder.steps(place)] == [0, 11]


def test_interrupted_it_goes_on_where_it_was(tmp_path: Path, linux: Path) -> None:
    """It was ended while a lab ran, with a line of results that is cut short, and git's repository damaged."""
    request = request_of(linux)
    place = made(tmp_path, request)
    asked: list[int] = []

    def answer(number: int) -> KernelAnswer:
        asked.append(number)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return fails_from(6)(number)

    with pytest.raises(KeyboardInterrupt):
        search.run(place, request, Asked(answer), Quiet(), Kernels(linux))
    with (place / folder.STEPS).open("a") as file:
        file.write('{"commit": {"id": "0')
    (place / folder.HISTORY / "HEAD").write_text("damaged")
    watcher, again = Quiet(), Kernels(linux)

    result = search.run(place, request, Asked(answer), watcher, again)

    assert [numbers(linux)[each.id] for each in result.suspects] == [6]
    assert again.built[0] == asked[3], "what was under way is done again"
    assert not {*again.built} & {*asked[:3]}
    assert [known for _, known in watcher.told][:3] == [True, True, True]


def test_git_s_word_is_the_same_in_a_call_that_has_nothing_to_do(tmp_path: Path, linux: Path) -> None:
    result, place, _ = found(tmp_path, linux, 6, c3=KernelFault("no"), c7=KernelFault("no"))
    text = (place / folder.PAGE).read_text()
    idle = Kernels(linux)

    assert search.run(place, folder.read(place), Asked(fails_from(6)), Quiet(), idle) == result
    assert (idle.built, (place / folder.PAGE).read_text()) == ([], text)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (0, "was to be one that holds, but a question is found: fails (it is 0)"),
        (12, "was to be one that fails, but a question is found: holds (it is 11)"),
    ],
)
def test_ends_that_are_not_as_the_user_says_are_an_error(tmp_path: Path, linux: Path, first: int, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        found(tmp_path, linux, first)

    assert said in str(refusal.value)


def test_an_end_that_cannot_be_built_is_an_error(tmp_path: Path, linux: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be built, so it is no end of a bisection: it does not compile"):
        found(tmp_path, linux, 3, c11=KernelFault("it does not compile"))


def test_only_commits_that_change_something_there(tmp_path: Path, linux: Path) -> None:
    for number in range(8):
        (linux / "other").write_text(f"{number}\n")
        git(linux, "add", "-A")
        git(linux, "commit", "-q", "-m", f"other {number}")
    request = request_of(linux, paths=("net",))
    place, build = made(tmp_path, request), Kernels(linux)

    result = search.run(place, request, Asked(fails_from(11)), Quiet(), build)

    assert [numbers(linux)[each.id] for each in result.suspects] == [11]
    assert not {*build.built} & {*range(12, 19)}, "of the commits that change nothing there only the end is tried"


def test_a_branch_whose_fork_already_fails_is_an_error_in_git_s_words(tmp_path: Path, linux: Path) -> None:
    git(linux, "checkout", "-q", "-b", "side", "main~6")
    (linux / "side").write_text("x")
    git(linux, "add", "-A")
    git(linux, "commit", "-q", "-m", "side")
    side = git(linux, "rev-parse", "side")
    request = request_of(linux, good="side")

    def answer(number: int) -> KernelAnswer:
        return KernelAnswer(verdict="holds" if number == 99 else "fails")

    class Branch(Kernels):
        def __call__(self, name: str, asked: KernelRequest, say: Progress) -> NamedKernel:
            if asked.commit == side:
                place = self.linux.parent / "made-side"
                return named_kernels.registered(name, named_kernels.small(place, "kernel 99"))
            return super().__call__(name, asked, say)

    with pytest.raises(MinigtsError, match=r"git bisect fails .*merge base"):
        search.run(made(tmp_path, request), request, Asked(answer), Quiet(), Branch(linux))


def test_a_shallow_repository_is_bisected_as_far_as_it_goes(tmp_path: Path, linux: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "8", f"file://{linux}", str(shallow))
    request = request_of(shallow, good=git(linux, "rev-parse", "main~7"))

    result = search.run(made(tmp_path, request), request, Asked(fails_from(6)), Quiet(), Kernels(linux))  # by its ids

    assert [numbers(linux)[each.id] for each in result.suspects] == [6]


def test_files_of_kernels_that_lost_their_name_are_removed(tmp_path: Path, linux: Path) -> None:
    mine = named_kernels.registered("mine", named_kernels.small(tmp_path / "mine", "mine"))

    found(tmp_path, linux, 5)

    there = {each for each in kernels.store().iterdir() if each.is_dir()}
    last = kernels.read("bisect")
    assert last is not None
    assert there == {mine.directory, last.directory}


def test_the_page_has_each_commit_and_no_words_of_it_become_marks(tmp_path: Path, linux: Path) -> None:
    _, place, build = found(tmp_path, linux, 5)
    text = (place / folder.PAGE).read_text()

    assert f"{git(linux, 'rev-parse', '--short=12', 'main~6')} (net: number 5 \\| \\*bold\\*) is the first" in text
    assert f"1\t1\t{NUMBER}" in text or f"1 1 {NUMBER}" in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and "net: number" in line]
    assert len(rows) == len(build.built)
    assert all(line.replace("\\|", "").count("|") == 8 for line in rows)


def outcome(seed: int, verdict: str, code: int | None = 1, detail: str = "") -> Outcome:
    return Outcome.model_validate(
        {"seed": seed, "verdict": verdict, "code": code, "detail": detail, "course": f"{seed:x}"}
    )


@pytest.mark.parametrize(
    ("outcomes", "verdict", "said"),
    [
        ([outcome(1, "passed", 0), outcome(2, "passed", 0)], "holds", "2 of 2 seeds"),
        ([outcome(1, "passed", 0), outcome(2, "failed", 1, "3 lost")], "fails", "1 of 2 seeds; seed 2 failed: 3 lost"),
        ([outcome(1, "hung", None, "too long"), outcome(2, "error", None)], "fails", "seed 1 hung: too long"),
        ([outcome(1, "passed", 0), outcome(2, "error", None, "no lab")], "undecided", "seed 2 cannot tell: no lab"),
        ([outcome(1, "vacuous", 125, "no such file")], "undecided", "seed 1 cannot tell: no such file"),
    ],
)
def test_a_test_holds_if_it_passes_under_every_seed(outcomes: list[Outcome], verdict: str, said: str) -> None:
    found = answer_of(outcomes)

    assert (found.verdict, said in found.detail) == (verdict, True)
    assert found.fingerprints == tuple(f"{each.seed:x}" for each in outcomes)


TOPOLOGY = "name: two\nhosts: {a: , b: }\nlinks: [{ends: [a, b], delay: 1ms}]\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{here}/nowhere", "--good", "first"], "no such directory; name a git repository"),
        (["{here}", "--good", "first"], "not a git repository"),
        (["{linux}", "--good", "nothing"], "--good nothing: {linux} has no such commit"),
        (["{linux}", "--good", "-x"], "--good -x: no name of a commit"),
        (
            ["{linux}", "--good", "first", "--bad", "empty"],
            "that commit holds no sources of Linux: there is no Makefile",
        ),
        (["{linux}", "--good", "main"], "--good main and --bad HEAD are one commit"),
        (["{linux}", "--good", "first", "--kernel", "mine"], "it has to begin with bisect"),
        (["{linux}", "--good", "first", "--config", "X"], "write an option and its value"),
        (["{linux}", "--good", "first", "--patch", "/nowhere"], "--patch /nowhere: No such file"),
        (["{linux}", "--good", "first", "--faults", "f.yaml"], "--faults does not go with an experiment"),
        (["{linux}", "--good", "first", "--claim", "no such"], "no claim with 'no such'; it has: Delayed acknowl"),
        (["{linux}", "--good", "first", "--seeds", "1-2"], "of an experiment it is the number of replicates"),
        (["{linux}", "--good", "first", "--seeds", "3"], "write 1 for one exact course, or 5 to 1000"),
    ],
)
def test_what_is_refused(tmp_path: Path, linux: Path, words: list[str], said: str) -> None:
    tree = git(linux, "hash-object", "-t", "tree", "--stdin", "-w")
    git(linux, "tag", "empty", git(linux, "commit-tree", tree, "-m", "empty"))
    given = [word.format(here=tmp_path, linux=linux) for word in words]

    done = CliRunner().invoke(
        app, ["bisect", *given, "--experiment", "tcp-timers", "--results", str(tmp_path / "results")]
    )

    assert done.exit_code == 2, done.output
    assert said.format(linux=linux) in " ".join(done.stderr.split())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name an experiment, as --experiment tcp-timers, or a topology and a test"),
        (["{here}/two.yaml"], "name a test for"),
        (["{here}/two.yaml", "--claim", "x", "--", "true"], "--claim does not go with a test"),
        (["{here}/two.yaml", "--", "no-such-program-here"], "there is no program 'no-such-program-here'"),
        (["{here}/two.yaml", "--experiment", "tcp-timers", "--", "true"], "name an experiment"),
    ],
)
def test_what_a_test_lacks(tmp_path: Path, linux: Path, words: list[str], said: str) -> None:
    (tmp_path / "two.yaml").write_text(TOPOLOGY)
    given = [word.format(here=tmp_path) for word in words]

    done = CliRunner().invoke(app, ["bisect", str(linux), "--good", "first", *given])

    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())


def test_a_bisection_that_is_continued_is_the_same_one(tmp_path: Path, linux: Path) -> None:
    place = made(tmp_path, request_of(linux))

    with pytest.raises(InputError, match=r"--resume: the folder's bisection has another fails: .*number 11"):
        folder.require_equal(place, request_of(linux, bad="main~1"))
    with pytest.raises(InputError, match="is no folder of `minigts bisect`"):
        folder.read(linux)
    folder.require_equal(place, request_of(linux))
