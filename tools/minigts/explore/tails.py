"""The tails of a seed: at a moment its test and its lab become two, as often as tails are wanted, and each goes on
under other draws."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from pathlib import Path

from minigts import lab as labs
from minigts.errors import MinigtsError
from minigts.explore import attempt, holding, program, stalls, timeline
from minigts.explore import outcome as outcomes
from minigts.explore.attempt import Anew, SeedResult, Stop
from minigts.explore.faults import Fault
from minigts.explore.holding import Holder
from minigts.explore.outcome import Outcome
from minigts.explore.player import Halt, Player
from minigts.explore.variables import TAIL
from minigts.explore.work import SeedOfWork
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.providers.agent import lending

SETTINGS_APART = 1_000_000
"""How far the seeds of tails' labs are apart. A link that has been set so often draws other random numbers."""


class Tails:
    """A test whose tails are taken, one after the other, while it waits at the moment at which they begin."""

    tail = 0

    def __init__(
        self,
        lab: Lab,
        seed: SeedOfWork,
        place: Path,
        branch_s: float,
        holder: Holder,
        stop: Stop | None,
        say: Progress,
        kept: bool,
    ) -> None:
        self._lab, self._seed, self._place, self._stop = lab, seed, place, stop
        self.branch_s, self._say, self._kept = branch_s, say, kept
        self.holder = holder
        self.results: list[SeedResult] = []
        self.begun = False
        self._begin_s = 0.0
        self._player: Player | None = None

    @property
    def faults(self) -> Sequence[Fault]:
        return self._seed.faults

    def player(self, limit: tuple[float, str]) -> tuple[Player, float]:
        whole = Anew(self._lab, self._seed, Halt(self.branch_s, self._take_all))
        self._player, self._begin_s = whole.player(limit)
        return self._player, self._begin_s

    def run(self, place: Path, variables: Mapping[str, str], player: Player) -> int | None:
        own, test = {**variables, **self.holder.variables}, self._seed.exploration.test
        return program.run(test, place, own, player.stopped, lambda: self.holder.held_s)

    def _take_all(self) -> bool:
        """Take them; whether the seed is to go on."""
        assert self._player is not None
        over, wanted = self._player.is_over, self._seed.tails
        self.begun = True
        try:
            with self.holder.hold(over.is_set):
                for tail in wanted:
                    # In a context of its own, since this thread has a turn on the seed's clock.
                    self.results.append(Context().run(self._take, tail))
        except (MinigtsError, OSError) as error:
            if over.is_set():
                raise
            self.results += [self._not_taken(tail, str(error)) for tail in wanted[len(self.results) :]]
        self.begun = False
        return not self._seed.ends_with_tails

    def _not_taken(self, tail: int, why: str) -> SeedResult:
        found = Outcome(seed=self._seed.number, tail=tail, verdict="error", why=outcomes.alike(why), detail=why)
        return SeedResult(found, "", {}, None)

    def _take(self, tail: int) -> SeedResult:
        assert self._player is not None
        begun, name = time.monotonic(), tail_name(self._lab.name, tail)
        before = _looks(self._place)
        lab = labs.fork(self._lab, name, tail * SETTINGS_APART)
        try:
            with tempfile.TemporaryDirectory(prefix="minigts-tail-") as directory:
                place = Path(directory).resolve() / "tail"
                shutil.copytree(self._place, place, ignore=_sockets, symlinks=True)
                self._say(f"seed {self._seed.number}/{tail}: from {self.branch_s:.6f} s on")
                lab.note({"event": timeline.BRANCH, "tail": tail})
                with stalls.watch(lab, f"seed {self._seed.number}/{tail}", self._say):
                    ran = attempt.run(lab, self._seed, place, self._stop, Tail(lab, self, tail))
                result = attempt.result_of(lab, self._seed, ran, place, self._stop, tail)
        except BaseException:
            labs.down(lab)
            raise
        if not self._kept:
            labs.down(lab)
        if _looks(self._place) != before:
            return self._not_taken(tail, "it has written to its seed's files: ask for course.folder each time")
        real_s = round(time.monotonic() - begun, 3)
        return replace(result, outcome=result.outcome.model_copy(update={"real_s": real_s}))

    def player_of(self, lab: Lab, faults: Sequence[Fault], limit: tuple[float, str]) -> tuple[Player, float]:
        """The player of a tail, and the moment of the lab's time at which its test began."""
        assert self._player is not None
        return Player(lab, faults, self._begin_s, limit, after=self._player), self._begin_s

    def draw(self, tail: int) -> Sequence[Fault]:
        """The faults of a tail."""
        return self._seed.exploration.draw_tail(self._seed.number, tail)

    @property
    def is_over(self) -> bool:
        assert self._player is not None
        return self._player.is_over.is_set()


@dataclass(frozen=True)
class Tail:
    """One tail of a seed, in its lab."""

    lab: Lab
    tails: Tails
    tail: int

    @property
    def faults(self) -> Sequence[Fault]:
        return self.tails.draw(self.tail)

    def player(self, limit: tuple[float, str]) -> tuple[Player, float]:
        return self.tails.player_of(self.lab, self.faults, limit)

    def run(self, place: Path, variables: Mapping[str, str], player: Player) -> int | None:
        own = {**variables, TAIL: str(self.tail)}
        return self.tails.holder.run(self.lab.rundir, place, own, lambda: player.stopped.is_set() or self.tails.is_over)


def tail_name(seed_lab: str, tail: int | str) -> str:
    """The name of the lab of a tail of a seed: `job-6f02ab-000417.2-…`."""
    prefix, campaign, seed, *where = seed_lab.split("-")
    return "-".join([prefix, campaign, f"{seed}.{tail}", *where])


def _sockets(_directory: str, names: list[str]) -> list[str]:
    return [name for name in names if name in (lending.NAME, holding.NAME)]


def _looks(place: Path) -> list[tuple[str, int, int]]:
    """The files of a test, with their sizes and times."""
    found = ((path, path.lstat()) for path in sorted(place.rglob("*")))
    return [(str(path), state.st_size, state.st_mtime_ns) for path, state in found if not path.is_dir()]
