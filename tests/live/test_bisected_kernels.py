"""A bisection with real builds of sources that compile in a second, and its questions to real labs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import named_kernels
from live.conftest import quiet, state_directory
from live.test_kernel_builds import SOURCES
from minigts import paths
from minigts.artifacts import kernels
from minigts.bisection import folder, search
from minigts.bisection.folder import BisectRequest, CommitFacts, TriedCommit
from minigts.bisection.history import Repository
from minigts.bisection.question import ClaimQuestion, KernelAnswer, Question, QuestionWatcher, SeedQuestion
from minigts.explore import program
from minigts.machine.progress import Progress
from minigts.providers.uml.build import kernel_build
from minigts.providers.uml.build.named import build, confined

pytestmark = [pytest.mark.uml, pytest.mark.nightly]


class Quiet:
    """A watcher that nothing is done with."""

    def step(self, line: str) -> None: ...

    def note(self, line: str) -> None: ...

    def take_outcome(self, outcome: object, done: int, total: int) -> None: ...

    def outcome(self, outcome: object, directory: Path) -> None: ...

    def preparing(self) -> Any:
        return nullcontext(quiet)

    def measuring(self) -> Any:
        return nullcontext((quiet, lambda _: None))

    def take_commit(self, step: TriedCommit, known_before: bool) -> None: ...


class Printed:
    """Asks the built program itself: it holds while it prints 1."""

    in_words = "what the program prints"
    facts: Mapping[str, str] = {"asked": in_words}

    def ask(self, kernel: str, place: Path, watcher: QuestionWatcher, say: Progress) -> KernelAnswer:
        argv = [kernels.find(kernel).directory / "linux"]
        printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
        return KernelAnswer(verdict="holds" if printed == "1" else "fails", detail=f"it prints {printed}")


BODIES = ("return 1;", "int x = 1; return x;", "return one;", "return 2;", "return 2 ;", "return 1 + 1;")
"""The commits: the second changes nothing that is seen, the third does not compile, and from the fourth on it fails."""


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit for each of BODIES."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "x")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "x@example.org")
    place = tmp_path / "linux"
    for path, text in SOURCES.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    for number, body in enumerate(BODIES):
        (place / "b.c").write_text(f"int answer(void) {{ {body} }}\n")
        for words in (["add", "-A"], ["commit", "-q", "-m", f"number {number}"]):
            subprocess.run(["git", "-C", str(place), *words], check=True)
    return place


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own, with the root that kernels are compiled in, and without minigts' patches."""
    root = confined.root()
    ready = root.ensure(quiet)
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    confined.root().store.mkdir(parents=True)
    (confined.root().store / root.key).symlink_to(ready)
    monkeypatch.setattr(kernels, "own_patches", lambda: ())
    yield
    paths.remove_tree(tmp_path / "cache" / "kernel-trees")


def request_of(linux: Path) -> BisectRequest:
    repository = Repository.open(linux)
    good, bad = (repository.commit(rev, "--rev") for rev in (f"HEAD~{len(BODIES) - 1}", "HEAD"))
    return BisectRequest(
        minigts="0",
        repository=str(linux),
        holds=CommitFacts.of(good),
        fails=CommitFacts.of(bad),
        question=dict(Printed.facts),
        kernel="bisect",
    )


def test_each_commit_is_built_in_one_tree_and_what_does_not_compile_is_skipped(
    cache: None, linux: Path, tmp_path: Path
) -> None:
    request = request_of(linux)
    (tmp_path / "results").mkdir()
    place = folder.create(tmp_path / "results", request, datetime.now(UTC))

    found = search.run(place, request, Printed(), Quiet())

    assert sorted(each.subject for each in found.suspects) == ["number 2", "number 3"]
    steps = {step.commit.subject: step for step in folder.steps(place).values()}
    assert not steps["number 2"].builds
    assert "error: " in steps["number 2"].answer.detail
    assert (steps["number 0"].verdict, steps["number 3"].verdict) == ("holds", "fails")
    assert steps["number 0"].kernel_sha256 != steps["number 3"].kernel_sha256


TOPOLOGY = "name: two\nhosts: {a: , b: }\nlinks: [{ends: [a, b], delay: 1ms}]\n"


@pytest.fixture
def kernel() -> Iterator[str]:
    """The standard kernel by a name of its own."""
    name = f"bisect-{os.getpid()}"
    yield named_kernels.registered(name, kernel_build.ensure(quiet).directory).manifest.name
    build.remove(name)


@pytest.mark.virtual
@pytest.mark.parametrize(("script", "verdict"), [("true", "holds"), ("exit 1", "fails"), ("exit 125", "undecided")])
def test_a_test_is_asked_of_a_kernel_and_has_one_course(kernel: str, tmp_path: Path, script: str, verdict: str) -> None:
    (tmp_path / "two.yaml").write_text(TOPOLOGY)
    words = ["sh", "-c", f"minigts exec a -- ping -c 2 $(minigts exec b -- hostname -I) && {script}"]
    question = SeedQuestion(tmp_path / "two.yaml", program.read(words, ()), 1, 1, 60.0)

    answers = asked_twice(question, kernel, tmp_path)

    assert [each.verdict for each in answers] == [verdict] * 2
    assert answers[0].fingerprints == answers[1].fingerprints
    assert len(answers[0].fingerprints) == 1


@pytest.mark.virtual
def test_a_law_is_asked_of_a_kernel_and_has_one_course(kernel: str, tmp_path: Path) -> None:
    file = paths.project_root() / "experiments" / "validation" / "tcp-timers.yaml"

    answers = asked_twice(ClaimQuestion(file, "delayed acknowledgements", quick=True), kernel, tmp_path)

    assert [each.verdict for each in answers] == ["holds"] * 2
    assert answers[0].fingerprints == answers[1].fingerprints
    assert len(answers[0].fingerprints) == 1


def asked_twice(question: Question, kernel: str, tmp_path: Path) -> list[KernelAnswer]:
    with state_directory(tmp_path / "state"):
        places = [tmp_path / word for word in ("first", "second")]
        for place in places:
            place.mkdir()
        return [question.ask(kernel, place, Quiet(), quiet) for place in places]
