"""The page of a bisection: the commit, what every commit that was tried shows, and how to do it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from minigts.bisection import folder
from minigts.bisection.folder import BisectRequest, TriedCommit
from minigts.bisection.history import BisectionEnd, Commit, Repository
from minigts.language.figures import duration
from minigts.results.folder import inside, write

FINGERPRINT = 12
"""How many characters of a course's fingerprint the table has."""
MOST_FILES = 20


def headline(result: BisectionEnd, request: BisectRequest, steps: Mapping[str, TriedCommit]) -> str:
    """`71c0… (tcp: wait longer) is the first commit that fails`, or the commits of which it is one."""
    word = new_verdict(result, request, steps)
    if result.is_exact:
        return f"{result.suspects[0].in_words} is the first commit that {word}"
    names = ", ".join(each.in_words for each in result.suspects)
    return f"the first commit that {word} is one of {len(result.suspects)}, since not all can be tried: {names}"


def new_verdict(result: BisectionEnd, request: BisectRequest, steps: Mapping[str, TriedCommit]) -> str:
    """The verdict of the newer commits. Of the suspects the last that git names is one that was tried, and has it."""
    known = [steps[each.id].mark for each in result.suspects if each.id in steps]
    return next((mark for mark in known if mark != "skip"), "fails")


def write_page(
    place: Path,
    request: BisectRequest,
    steps: Mapping[str, TriedCommit],
    result: BisectionEnd | None,
    repository: Repository | None,
) -> None:
    """Write the page; without a result it says that the bisection goes on. Raises MinigtsError."""
    lines = _lines(place, request, steps, result, repository)
    write(inside(place, folder.PAGE), "\n".join(lines) + "\n")


def _lines(
    place: Path,
    request: BisectRequest,
    steps: Mapping[str, TriedCommit],
    result: BisectionEnd | None,
    repository: Repository | None,
) -> Iterator[str]:
    yield "# Bisection"
    yield ""
    if result is None:
        yield "It has not ended. The same command with `--resume` goes on with it:"
        yield ""
        yield f"    --resume {shlex.quote(str(place))}"
    else:
        head = headline(result, request, steps)
        yield f"**Found: {_plain(head)}.**"
        if repository is not None:
            yield from _about(result.suspects, repository)
    yield ""
    yield "## What was asked"
    yield ""
    yield f"- repository: `{request.repository}`"
    for name, commit in (("good", request.holds), ("bad", request.fails)):
        yield f"- {name}: {_plain(commit.commit.in_words)}"
    for key, text in request.question.items():
        yield f"- {key}: `{text}`"
    if request.config:
        yield f"- the kernels' options: `{' '.join(f'{key}={value}' for key, value in request.config.items())}`"
    for path, digest in request.patches.items():
        yield f"- patch: `{path}` ({digest[:FINGERPRINT]})"
    if request.paths:
        yield f"- only commits that change: `{' '.join(request.paths)}`"
    yield ""
    yield "## What was tried"
    yield ""
    yield "| commit | subject | verdict | figures | course | build | labs |"
    yield "|---|---|---|---|---|---|---|"
    for step in steps.values():
        yield _row(step)
    total_s = sum(step.build_s + step.ask_s for step in steps.values())
    yield ""
    yield (
        f"{len(steps)} commits in {duration(total_s)} by this machine's clock. A course is the fingerprint of what "
        "went through a lab in virtual time: two commits with the same one did the same to the byte."
    )


def _row(step: TriedCommit) -> str:
    courses = ", ".join(dict.fromkeys(each[:FINGERPRINT] for each in step.answer.fingerprints[:3]))
    more = f" and {len(step.answer.fingerprints) - 3} more" if step.answer.fingerprints[3:] else ""
    commit = step.commit.commit
    times = (duration(step.build_s), duration(step.ask_s) if step.builds else "")
    cells = (commit.short, _plain(commit.subject), step.verdict, _plain(step.answer.detail), courses + more, *times)
    return f"| {' | '.join(cells)} |"


def _about(suspects: Sequence[Commit], repository: Repository) -> Iterator[str]:
    for commit in suspects:
        date, *files = repository.about(commit)
        yield ""
        yield f"`{commit.short}` of {date} changes:"
        yield ""
        yield from (f"    {line}" for line in files[:MOST_FILES])
        if files[MOST_FILES:]:
            yield f"    and {len(files) - MOST_FILES} more files"


def _plain(text: str) -> str:
    """Text of a stranger's in a table: no column, no tag and no link of its own."""
    for mark in "\\|<>[]`*_":
        text = text.replace(mark, f"\\{mark}")
    return text
