"""The bisection of a repository's history, by `git bisect`.

It is done in a bare repository of its own, which borrows the objects of the user's and has no files checked out. So
nothing of the user's repository changes, its branches and its working tree least of all, and a bisection of the user's
own may be under way there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minigts import paths
from minigts.errors import InputError, MinigtsError
from minigts.foreign import Foreign, one_line
from minigts.machine import shell

GIT_TIMEOUT_S = 600.0
LONGEST_SUBJECT = 200
_OFF = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "maintenance.auto=false", "log.showSignature=false")
"""Settings of a repository that would start programs, or change what git prints."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_LEFT = re.compile(r"^Bisecting: (\d+) revisions? left to test after this \(roughly (\d+) steps?\)", re.MULTILINE)
_FIRST = re.compile(r"^# first fails commit: \[([0-9a-f]{40,64})\]|^# first holds commit: \[([0-9a-f]{40,64})\]", re.M)
_POSSIBLE = re.compile(r"^# possible first (?:fails|holds) commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)

Mark = Literal["holds", "fails", "skip"]
"""What is told of a commit; `skip`: it cannot be told."""


@dataclass(frozen=True)
class Commit:
    """A commit: its id, and the first line of its message."""

    id: str
    subject: str

    @property
    def short(self) -> str:
        return self.id[:12]

    @property
    def in_words(self) -> str:
        return f"{self.short} ({self.subject})"


@dataclass(frozen=True)
class Remaining:
    """The commit to try next, and by git's estimate how many would be left after it, and how many steps."""

    commit: Commit
    commits: int
    steps: int


@dataclass(frozen=True)
class BisectionEnd:
    """The end of a bisection: the first commit that has the other answer; or several, of which it is one, since those
    between could not be tried."""

    suspects: tuple[Commit, ...]

    @property
    def is_exact(self) -> bool:
        return len(self.suspects) == 1


@dataclass(frozen=True)
class Repository:
    """The user's repository, of which nothing is changed."""

    place: Path

    @classmethod
    def open(cls, place: Path) -> Repository:
        """Raises InputError for a directory that is no git repository."""
        found = cls(place.expanduser().absolute())
        if not found.place.is_dir():
            raise InputError(f"{place}: no such directory; name a git repository with sources of Linux")
        found._ask("rev-parse", "--git-dir")
        return found

    def commit(self, rev: str, option: str) -> Commit:
        """The commit that `rev` names. Raises InputError, which names the option, also for a commit that has no sources
        of Linux."""
        if rev.startswith("-"):
            raise InputError(f"{option} {rev[:60]}: no name of a commit")
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        found = shell.run(self._argv(*words), timeout_s=GIT_TIMEOUT_S, check=False).stdout.strip()
        if _COMMIT.fullmatch(found) is None:
            raise InputError(f"{option} {rev[:60]}: {self.place} has no such commit")
        for path in ("Makefile", "arch/um"):
            if shell.run(self._argv("cat-file", "-e", f"{found}:{path}"), timeout_s=GIT_TIMEOUT_S, check=False).code:
                raise InputError(f"{option} {rev[:60]}: that commit holds no sources of Linux: there is no {path}")
        return self.commit_of(found)

    def commit_of(self, commit: str) -> Commit:
        """The commit of that id."""
        subject = self._ask("log", "-1", "--no-color", "--format=%s", commit, "--")
        return Commit(commit, one_line(Foreign(subject), LONGEST_SUBJECT))

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        words = ("merge-base", "--is-ancestor", older.id, newer.id)
        return shell.run(self._argv(*words), timeout_s=GIT_TIMEOUT_S, check=False).code == 0

    def about(self, commit: Commit) -> tuple[str, ...]:
        """Author's date, and the files that the commit changes against its first parent, a line each."""
        words = ("show", "--first-parent", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv")
        text = self._ask(*words, "--format=%ad", "--date=iso", "--numstat", commit.id, "--")
        return tuple(one_line(Foreign(line), LONGEST_SUBJECT) for line in text.splitlines() if line.strip())

    def lend_to(self, place: Path) -> None:
        """Make a bare repository that borrows this one's objects, and knows where a shallow one ends."""
        objects = Path(self._ask("rev-parse", "--path-format=absolute", "--git-path", "objects").rstrip("\n"))
        if "\n" in str(objects):
            raise InputError(f"{self.place}: a path with a line break in it cannot be lent by git")
        kind = self._ask("rev-parse", "--show-object-format").strip()
        shell.run(["git", "init", "--quiet", "--bare", f"--object-format={kind}", str(place)], timeout_s=GIT_TIMEOUT_S)
        (place / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")
        shallow = Path(self._ask("rev-parse", "--path-format=absolute", "--git-path", "shallow").rstrip("\n"))
        if shallow.is_file():
            (place / "shallow").write_bytes(shallow.read_bytes())

    def _argv(self, *words: str) -> list[str]:
        return ["git", "-C", str(self.place), *_settings(), *words]

    def _ask(self, *words: str) -> str:
        done = shell.run(self._argv(*words), timeout_s=GIT_TIMEOUT_S, check=False)
        if done.code:
            raise InputError(f"{self.place}: git {words[0]}: {_said(done) or 'it fails'}")
        return done.stdout


@dataclass(frozen=True)
class Bisection:
    """A bisection by git, in its own repository."""

    repository: Repository
    place: Path

    @classmethod
    def start(
        cls, repository: Repository, place: Path, old: Mark, paths_of: Sequence[str], commit: Commit
    ) -> Bisection:
        """Start one in a new repository at `place`; what was there is removed. `old` is the answer of the older
        commits; `paths_of` limit it to commits that change something there; `commit` is any of the history."""
        paths.remove_tree(place)
        repository.lend_to(place)
        made = cls(repository, place)
        made._git("update-ref", "--no-deref", "HEAD", commit.id)  # git bisect notes where it began
        new = "fails" if old == "holds" else "holds"
        words = ("bisect", "start", "--no-checkout", f"--term-old={old}", f"--term-new={new}", "--", *paths_of)
        if (done := made._git(*words)).code:
            raise InputError(f"{repository.place}: git bisect start: {_said(done)}")
        return made

    def mark(self, mark: Mark, commit: Commit) -> Remaining | BisectionEnd | None:
        """Tell git of a commit; return what comes next, or the end; None as long as an end is not known. Raises
        MinigtsError where git finds that history and answers do not go together."""
        done = self._git("bisect", mark, commit.id)
        log = self._git("bisect", "log").stdout
        if first := _FIRST.search(log):
            return BisectionEnd((self.repository.commit_of(first[1] or first[2]),))
        if suspects := _POSSIBLE.findall(log):
            return BisectionEnd(tuple(map(self.repository.commit_of, dict.fromkeys(suspects))))
        if done.code:
            raise MinigtsError(f"git bisect {mark} {commit.short}: {_said(done)}")
        head = self._git("rev-parse", "--verify", "--quiet", "BISECT_HEAD")
        if head.code:
            return None
        left = _LEFT.search(done.stdout)
        commits, steps = (int(left[1]), int(left[2])) if left else (0, 0)
        return Remaining(self.repository.commit_of(head.stdout.strip()), commits, steps)

    def _git(self, *words: str) -> shell.Completed:
        argv = ["git", f"--git-dir={self.place}", *_settings(), *words]
        return shell.run(argv, timeout_s=GIT_TIMEOUT_S, check=False, env={"LC_ALL": "C"})


def _settings() -> tuple[str, ...]:
    return tuple(word for each in _OFF for word in ("-c", each))


def _said(done: shell.Completed) -> str:
    return one_line(Foreign(" ".join((done.stderr + done.stdout).split())), 300)
