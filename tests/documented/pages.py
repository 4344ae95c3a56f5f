"""The commands on the documentation's pages, and how a page's commands are run as a reader types them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

PROJECT = Path(__file__).parents[2]
COMMAND = re.compile(
    r"^(?:\$ |time |cd \S+ && )?(?:[A-Z_]+=\S+ )*(?:\./|docs/site/|bench/)?(?:minigts|build|run)(?: |$)"
)
PROMPT, LEFT_OUT = "$ ", "…"
LIMIT_S = 600.0
BY_HAND_S = 6.0
"""How long a command runs that only ctrl-c ends."""
PATIENCE_S = 60.0
"""In which such a command has to end after ctrl-c; two processors may have much else to do."""
PARTS = ("Learn", "Do")
"""The parts of the site whose commands a reader types; those of the others are read by `test_documented_commands`."""
_FIGURE_OF_THIS_MACHINE = re.compile(r"measured in [\d.]+ s")


@dataclass(frozen=True)
class Command:
    """A command of a page, and the lines of output that the page shows below it."""

    line: int
    text: str
    shown: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """It without a comment."""
        return re.sub(r"\s+#\s.*$", "", self.text)


@dataclass(frozen=True)
class Plan:
    """What a page's commands presume that the page does not make, and how they end."""

    first: str = ""
    """Commands of a shell before all others."""
    before: Mapping[str, str] = field(default_factory=dict)
    """Commands of a shell before the one that is named: what its section presumes."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """Exit codes other than 0."""
    by_hand: tuple[str, ...] = ()
    """Commands that a reader ends by ctrl-c."""
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Commands that are not run, with the reason."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the commands take, with their content."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Files that the page shows in a block, by the block's first line."""

    def known(self) -> set[str]:
        return {*self.before, *self.codes, *self.by_hand, *self.not_run}


def pages() -> list[Path]:
    """The pages for learning and doing, as the site has them."""
    sys.path.append(str(PROJECT))  # docs/ is a package for its own command alone
    from docs.site import build_site  # noqa: PLC0415

    return [PROJECT / f"{name}.md" for part in PARTS for name in build_site.pages_of(part, PROJECT)]


def block_that_begins(page: Path, first: str) -> str:
    """The text of the fenced block of a page with this first line."""
    found = re.findall(r"^```.*\n((?:.*\n)*?)```$", page.read_text(encoding="utf-8"), re.MULTILINE)
    (block,) = [str(each) for each in found if each.startswith(f"{first}\n")]
    return block


def blocks(page: Path) -> Iterator[list[tuple[int, str]]]:
    """The lines of each code block of a page with their numbers: between ``` of a shell or of no language, or behind
    four blanks after an empty line."""
    block: list[tuple[int, str]] = []
    fence, empty_before = None, True
    for number, line in enumerate([*page.read_text(encoding="utf-8").splitlines(), ""], 1):
        if line.startswith("```"):
            if block and fence in (None, "", "sh"):
                yield block
            block, fence = [], line[3:] if fence is None else None
        elif fence is not None:
            block.append((number, line))
        elif line.startswith("    ") and (block or empty_before):
            block.append((number, line[4:]))
        elif line.strip() and block:
            yield block
            block = []
        elif block:
            block.append((number, ""))
        empty_before = not line.strip()
    if block:
        yield block


def commands(page: Path) -> list[Command]:
    """The commands of a page in their order: all lines of the parts of blocks in which minigts is called. Where a block
    has prompts, what is behind them, with the output that follows."""
    found: list[Command] = []
    for block in blocks(page):
        if any(line.startswith(PROMPT) for _, line in block):
            for number, line in block:
                if line.startswith(PROMPT):
                    found.append(Command(number, line.removeprefix(PROMPT)))
                elif found:
                    found[-1] = Command(found[-1].line, found[-1].text, (*found[-1].shown, line))
        else:
            for part in parts(block):
                if any(COMMAND.match(line) for _, line in part):
                    found += [Command(number, line) for number, line in part]
    return found


def parts(block: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """A block's lines between its empty lines: commands, an output below them, a file."""
    for filled, lines in groupby(block, key=lambda each: bool(each[1].strip())):
        if filled:
            yield [*lines]


def difference(shown: tuple[str, ...], output: str) -> str | None:
    """The first line of a page that an output lacks, or that stands elsewhere in it; None if it is as shown. `…` stands
    for any lines. Figures of this machine are not compared, and of blanks not how many there are."""
    wanted, there = [*map(_comparable, shown)], [*map(_comparable, output.splitlines())]
    while wanted and not wanted[-1]:
        wanted.pop()
    at, anywhere = 0, False
    for line in wanted:
        if line == LEFT_OUT:
            anywhere = True
            continue
        places = [index for index in range(at, len(there)) if there[index] == line] if anywhere else [at]
        if not places or places[0] >= len(there) or there[places[0]] != line:
            return line
        at, anywhere = places[0] + 1, False
    return None


def _comparable(line: str) -> str:
    return " ".join(_FIGURE_OF_THIS_MACHINE.sub("", line).split())


class Reader:
    """Somebody who types a page's commands, in a directory of theirs with what a checkout has."""

    def __init__(self, directory: Path) -> None:
        self.home = self.directory = directory / "work"
        self.home.mkdir(parents=True)
        for name in ("topologies", "experiments", "docs", "provision", "bench"):
            (self.home / name).symlink_to(PROJECT / name)
        program = f'#!/bin/sh\nexec "{sys.executable}" -P -m minigts "$@"\n'
        for place in (directory / "bin", self.home):
            place.mkdir(exist_ok=True)
            (place / "minigts").write_text(program)
            (place / "minigts").chmod(0o755)
        self.environment = {
            **os.environ,
            "HOME": str(self.home),
            "PATH": f"{directory / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT / "tools"),
            "MINIGTS_STATE": str(directory / "state"),
            "MINIGTS_CACHE": _cache(),
        }
        self._groups: list[int] = []

    def types(self, text: str, *, by_hand: bool = False) -> tuple[int, str]:
        """Type a line into bash; return its exit code, and what it said on both streams. What it starts in the
        background runs on. One that is ended `by_hand` gets ctrl-c, which is no failure."""
        said, place = self.home / ".said", self.home / ".place"
        script = f"{text}\ncode=$?\npwd >{place}\nexit $code"
        with said.open("wb") as into:
            started = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(started.pid)
            code = _ended_by_hand(started) if by_hand else started.wait(LIMIT_S)
        if place.exists() and not by_hand:
            self.directory = Path(place.read_text().strip())
        return code, said.read_text(encoding="utf-8", errors="replace")

    def leaves(self) -> None:
        """Take down what is up, and end what was left running."""
        self.directory = self.home
        self.types("minigts down --all")
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                continue


def _cache() -> str:
    from minigts import paths  # noqa: PLC0415 -- only to be read where HOME is still that of who runs the tests

    return str(paths.cache_root())


def _ended_by_hand(started: subprocess.Popen[bytes]) -> int:
    time.sleep(BY_HAND_S)
    code = started.poll()
    if code is None:
        os.killpg(started.pid, signal.SIGINT)
        code = started.wait(PATIENCE_S)
        return 0 if code in (0, 130, -signal.SIGINT) else code
    return code
