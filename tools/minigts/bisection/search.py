"""Builds a kernel of each commit that git wants to know of, asks it, and tells git, until the first one is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from minigts import paths
from minigts.artifacts import kernels
from minigts.artifacts.kernels import KernelRequest, NamedKernel
from minigts.bisection import folder, page
from minigts.bisection.folder import BisectRequest, CommitFacts, TriedCommit
from minigts.bisection.history import Bisection, BisectionEnd, Commit, Mark, Remaining, Repository
from minigts.bisection.question import KernelAnswer, Question, QuestionWatcher, cannot_tell
from minigts.errors import InputError, MinigtsError
from minigts.machine.locks import hold_lock
from minigts.machine.progress import Progress
from minigts.providers.uml.build.named import build
from minigts.providers.uml.build.named.build import KernelFault
from minigts.providers.uml.build.named.patches import SourceMismatch
from minigts.results.folder import inside, make

KERNEL = "bisect"
"""The name of a bisection's kernels; others begin with it. So none that the user has built is replaced."""

Builder = Callable[[str, KernelRequest, Progress], NamedKernel]


class BisectWatcher(QuestionWatcher, Protocol):
    """Receives the progress of a bisection."""

    def take_commit(self, step: TriedCommit, known_before: bool) -> None:
        """Take what came of a commit, in this call or an earlier one."""


def require_name(name: str) -> str:
    """The name itself. Raises InputError for one that a bisection does not take."""
    kernels.require_name(name)
    if not name.startswith(KERNEL):
        raise InputError(
            f"--kernel {name[:60]}: each commit's kernel gets this name in turn, so it has to begin with {KERNEL}, as "
            f"in {KERNEL}-2: no kernel of yours is replaced"
        )
    return name


def run(
    place: Path, request: BisectRequest, question: Question, watcher: BisectWatcher, build_one: Builder = build.build
) -> BisectionEnd:
    """Try every commit that is wanted and that the folder lacks; return the end. However it ends, what was tried is
    kept, and the page is written. Raises InputError where the ends are not as the user says, or git cannot bisect them;
    what builds and labs raise, where that says nothing about the commit."""
    with _only_one(request.kernel, watcher.step):
        return _Search(place, request, question, watcher, build_one).found()


def _only_one(kernel: str, say: Progress) -> AbstractContextManager[None]:
    build.trees().mkdir(parents=True, exist_ok=True)
    lock = build.trees() / f"{kernel}.bisection"
    return hold_lock(lock, lambda: say(f"waiting for another bisection that has kernel {kernel}"))


@dataclass(frozen=True)
class _Search:
    place: Path
    request: BisectRequest
    question: Question
    watcher: BisectWatcher
    build_one: Builder

    def found(self) -> BisectionEnd:
        repository = Repository.open(Path(self.request.repository))
        holds, fails = self.request.holds.commit, self.request.fails.commit
        self._require_end(holds, "holds")
        self._require_end(fails, "fails")
        is_mended = repository.is_ancestor(fails, holds)
        ends: list[tuple[Mark, Commit]] = [("holds", holds), ("fails", fails)]
        if is_mended:
            ends.reverse()
        (old, older), (new, newer) = ends
        own = inside(self.place, folder.HISTORY)
        bisection = Bisection.start(repository, own, old, self.request.paths, newer)
        bisection.mark(old, older)
        state = bisection.mark(new, newer)
        while isinstance(state, Remaining):
            self.watcher.step(f"left after this commit: {state.commits}, in some {state.steps} steps by git's estimate")
            state = bisection.mark(self._step(state.commit).mark, state.commit)
        if state is None:
            raise MinigtsError(f"git bisect names no commit between {older.in_words} and {newer.in_words}")
        page.write_page(self.place, self.request, self._steps(), state, repository)
        return state

    def _require_end(self, commit: Commit, wanted: Mark) -> None:
        step = self._step(commit)
        if not step.builds:
            raise InputError(f"{commit.in_words} cannot be built, so it is no end of a bisection: {step.answer.detail}")
        if step.mark != wanted:
            raise InputError(
                f"{commit.in_words} was to be one that {wanted}, but {self.question.in_words} is found: "
                f"{step.verdict} ({step.answer.detail}); name another commit, or ask with more seeds"
            )

    def _steps(self) -> Mapping[str, TriedCommit]:
        return folder.steps(self.place)

    def _step(self, commit: Commit) -> TriedCommit:
        """What came of a commit, in an earlier call or now."""
        known = self._steps()
        if (before := known.get(commit.id)) is not None:
            self.watcher.take_commit(before, known_before=True)
            return before
        step = self._try(commit, folder.step_folder(self.place, len(known) + 1, commit))
        folder.keep(self.place, step)
        self.watcher.take_commit(step, known_before=False)
        page.write_page(self.place, self.request, self._steps(), None, None)
        return step

    def _try(self, commit: Commit, own: Path) -> TriedCommit:
        begun = time.monotonic()
        self.watcher.step(f"{commit.in_words}: building it")
        try:
            kernel = self._built(commit)
        except (KernelFault, SourceMismatch) as error:
            return _step(commit, cannot_tell(str(error)), None, time.monotonic() - begun, 0.0)
        built = time.monotonic()
        paths.remove_tree(own)  # what an interrupted call has left
        make(own)
        answer = self.question.ask(self.request.kernel, own, self.watcher, self.watcher.step)
        return _step(commit, answer, kernel, built - begun, time.monotonic() - built)

    def _built(self, commit: Commit) -> NamedKernel:
        """The kernel of a commit. The files of the commit before, which has lost its name, are removed."""
        name = self.request.kernel
        before = kernels.read(name)
        asked = KernelRequest(
            source=self.request.repository,
            commit=commit.id,
            patches=tuple(self.request.patches),
            config=self.request.config,
        )
        made = self.build_one(name, asked, self.watcher.step)
        if before is not None:
            build.remove_unnamed(before.directory)
        return made


def _step(
    commit: Commit, answer: KernelAnswer, kernel: NamedKernel | None, build_s: float, ask_s: float
) -> TriedCommit:
    return TriedCommit(
        commit=CommitFacts.of(commit),
        builds=kernel is not None,
        answer=answer,
        kernel_sha256="" if kernel is None else kernel.manifest.linux_sha256,
        build_s=round(build_s, 1),
        ask_s=round(ask_s, 1),
    )
