"""Incidents as an environment for programs: `reset`, `step`, `observe`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from minigts.arena import families, stage, tournament
from minigts.arena.play import TOOLS, Play
from minigts.arena.scores import ArenaAnswer, ArenaScore, NamedFault
from minigts.arena.transcript import Transcript
from minigts.errors import InputError


@dataclass(frozen=True)
class Observation:
    """What is seen of an incident. `answer` is that of the last step, `lab_s` the lab's time since the ticket in
    seconds; `score` is there once the incident has its answer."""

    ticket: str
    answer: str
    calls: int
    lab_s: float
    score: ArenaScore | None = None

    @property
    def done(self) -> bool:
        return self.score is not None


class Arena:
    """The incidents of a family, one lab at a time. A `with` block takes the last lab down at its end."""

    tools = TOOLS
    """The names of what `step` can do; docs/agents.md says what each takes."""

    def __init__(self, family: str, *, agent: str = "program", say: Callable[[str], None] = lambda _: None) -> None:
        families.parse(f"{family}/1")
        self._family, self._agent, self._say = family, agent, say
        self._labs = ExitStack()
        self._play: Play | None = None
        self._seen: Observation | None = None
        self._whole: Transcript | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reset(self, seed: int) -> Observation:
        """Begin the incident of that seed in a new lab, in place of the one before. Raises InputError,
        EnvironmentLacks."""
        self.close()
        incident = families.draw(*families.parse(f"{self._family}/{seed}"))
        lab = self._labs.enter_context(tournament.lab_of(incident, self._say))
        record = stage.make(lab, incident, self._agent, self._say)
        self._play, self._whole = Play(lab), None
        self._seen = Observation(record.ticket, "", 0, 0.0)
        return self._seen

    def step(self, tool: str, **arguments: str | float | bool) -> Observation:
        """Call a tool, as `step("ping", source="ams", target="bra")`. Raises InputError for what there is not."""
        play = self._playing()
        said = play.call(tool, arguments)
        self._seen = Observation(play.record.ticket, said, len(play.calls), play.lab_s)
        return self._seen

    def answer(self, faults: Iterable[tuple[str, str]] = ()) -> Observation:
        """Answer with pairs of a kind and a host; none says that nothing is wrong. The observation has the score."""
        play = self._playing()
        given = ArenaAnswer(faults=tuple(NamedFault(what=what, where=where) for what, where in faults))
        self._whole = play.answer(given)
        found = self._whole.end.score
        self._play = None
        self._seen = Observation(play.record.ticket, "", found.calls, found.lab_s, found)
        return self._seen

    def observe(self) -> Observation:
        """What was seen last; no time of the lab passes. Raises InputError before the first `reset`."""
        if self._seen is None:
            raise InputError("arena: begin with reset(seed)")
        return self._seen

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of faults that an answer may name."""
        return tuple(self._playing().kinds)

    @property
    def transcript(self) -> str:
        """The transcript, a line of JSON for each entry, of the incident that was answered. Raises InputError."""
        if self._whole is None:
            raise InputError("arena: the incident has no answer yet: answer(faults)")
        return self._whole.text

    def close(self) -> None:
        """Take the lab down."""
        self._play = None
        self._labs.close()

    def _playing(self) -> Play:
        if self._play is None:
            raise InputError("arena: no incident waits for an answer: reset(seed)")
        return self._play
