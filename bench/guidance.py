"""Would `minigts explore` find more if tails began where a seed has shown something new?

Five planted bugs are chains of two to four faults, such as "a is killed, and b at most 3 s after it is back". Seeds and
tails draw their faults as `explore` does (tools/minigts/explore/draws.py), so no hosts are needed to know which of them
find a bug. Compared is what it costs until the first one does, in seeds:

  chance   seeds alone
  tails    ten tails of each seed, right before one of its faults, as `explore --tails 10` takes them
  guided   rounds of eight. Half of them are new seeds, the others eight tails each from a place at which something new
           was seen: right before the next fault, in a seed or in a tail, each place three times at most. New is the
           first line that tells of a step of the chain, and of so many other lines that are in one run or in a thousand
  told     tails from each run that has come a step further, by somebody who knows the chain

A seed costs 1, of which the lab's start has 0.24, and a tail 0.05 and 0.87 of what is left of its seed: as measured of
the example with etcd (docs/explore.md, Measured).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import stage
from minigts import paths
from minigts.cli.views import tables
from minigts.explore import draws
from minigts.explore import faults as plans
from minigts.explore.faults import Fault
from minigts.topology.read.load import parse

LENGTH_S = 40.0
RING = parse("name: ring\nring: {hosts: [a, b, c]}\n", "ring.yaml", time="virtual")
PLAN = plans.parse(
    "faults:\n  partition: {every: 8s, for: 1s to 6s}\n"
    "  kill-process: {every: 6s, for: 1s to 4s, program: store, restart: store}\n"
    "  pause: {every: 10s, for: 1s to 5s}\n  length: 40s\n  apart: 500ms to 3s\n  at_most: 3\n",
    "faults.yaml",
    RING,
)
START, FORK, MAPPED = 0.24, 0.05, 0.87
"""The costs of a lab's start, of a fork, and of a tail's rest, as parts of a seed's."""
TAILS, ROUND, TAILS_OF_A_PLACE, MOST_USES = 10, 8, 8, 3
LEAST_LEFT_S = 8.0
MOST_SEEDS = 3000.0
RAREST = 3.0
"""The exponent of how rare other lines are: one in a thousand runs."""
Course = tuple[Fault, ...]


@dataclass(frozen=True)
class Step:
    """A fault of this kind and host, `during` the one before, or at most so many seconds after it is over."""

    kind: str
    host: str
    within_s: float | None = None

    def follows(self, fault: Fault, before: Fault) -> bool:
        if self.within_s is None:
            return before.at_s < fault.at_s < before.end_s
        return before.end_s < fault.at_s < before.end_s + self.within_s


BUGS = {
    "b parted, a killed meanwhile": (Step("partition", "b"), Step("kill-process", "a")),
    "a killed, then b": (Step("kill-process", "a"), Step("kill-process", "b", 2)),
    "a parted, b paused meanwhile, then c killed": (
        Step("partition", "a"),
        Step("pause", "b"),
        Step("kill-process", "c", 4),
    ),
    "a, b and c killed in this order": (
        Step("kill-process", "a"),
        Step("kill-process", "b", 3),
        Step("kill-process", "c", 3),
    ),
    "c paused, then a parted, b killed meanwhile, then a": (
        Step("pause", "c"),
        Step("partition", "a", 8),
        Step("kill-process", "b"),
        Step("kill-process", "a", 8),
    ),
}


def reached(course: Course, bug: Sequence[Step]) -> list[float]:
    """When each step of the chain was first come to, as far as it was."""
    found: list[float] = []
    last: list[Fault] = []
    for number, step in enumerate(bug):
        of_kind = [each for each in course if each.kind == step.kind and each.machines == (step.host,)]
        last = [each for each in of_kind if not number or any(step.follows(each, before) for before in last)]
        if not last:
            break
        found.append(last[0].at_s)
    return found


@dataclass
class Search:
    """What a search for a bug has cost so far; `name` draws its seeds, `others` are the shares of runs with a line."""

    name: str
    bug: Sequence[Step]
    others: Sequence[float] = ()
    spent: float = 0.0
    taken: int = 0
    chance: random.Random = field(default_factory=random.Random)

    def seed(self) -> Course:
        self.taken, self.spent = self.taken + 1, self.spent + 1
        return draws.draw_further(PLAN, RING, f"{self.name}/{self.taken}", 0.0, ())

    def tail(self, whole: Course, branch_s: float) -> Course:
        self.taken, self.spent = self.taken + 1, self.spent + FORK + MAPPED * (LENGTH_S - branch_s) / LENGTH_S
        return draws.draw_further(PLAN, RING, f"{self.name}/{self.taken}", branch_s, whole)

    def go_back(self, branch_s: float) -> None:
        """Take a run up to that moment again."""
        self.spent += START + (1 - START) * branch_s / LENGTH_S

    def is_found(self, course: Course) -> bool:
        return len(reached(course, self.bug)) == len(self.bug)

    def other_lines(self, begin_s: float) -> list[tuple[float, str]]:
        left = (LENGTH_S - begin_s) / LENGTH_S
        return [
            (self.chance.uniform(begin_s, LENGTH_S), f"other {number}")
            for number, share in enumerate(self.others)
            if self.chance.random() < 1 - (1 - share) ** left
        ]


def by_chance(search: Search) -> bool:
    return search.is_found(search.seed())


def by_tails(search: Search) -> bool:
    whole = search.seed()
    if search.is_found(whole):
        return True
    branch_s = search.chance.choice(whole).at_s
    return any(search.is_found(search.tail(whole, branch_s)) for _ in range(TAILS))


def by_one_who_is_told(search: Search) -> bool:
    whole, tries = search.seed(), 0
    while not search.is_found(whole):
        steps = reached(whole, search.bug)
        branch_s = next((each.at_s for each in whole if steps and each.at_s > steps[-1]), LENGTH_S)
        if tries == MOST_USES or branch_s > LENGTH_S - LEAST_LEFT_S:
            return False
        tries += 1
        search.go_back(branch_s)
        tails = (search.tail(whole, branch_s) for _ in range(TAILS_OF_A_PLACE))
        further = next((tail for tail in tails if len(reached(tail, search.bug)) > len(steps)), None)
        if further is not None:
            whole, tries = further, 0
    return True


@dataclass
class Place:
    """Where something new was seen: a course, its other lines, the moment of its next fault, how often it was used."""

    course: Course
    lines: list[tuple[float, str]]
    branch_s: float
    uses: int = 0


class Guide:
    """Chooses places of a search for tails."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.places: list[Place] = []

    def take_round(self, search: Search) -> bool:
        """Take seeds and tails; whether one has found the bug."""
        left = sorted((each for each in self.places if each.uses < MOST_USES), key=lambda place: place.uses)
        seeds = ROUND // 2 if left else ROUND
        new: list[Place] = []
        for _ in range(seeds):
            if self._takes(search, search.seed(), search.other_lines(0.0), 0.0, new):
                return True
        for place in left[: ROUND - seeds]:
            place.uses += 1
            search.go_back(place.branch_s)
            before = [line for line in place.lines if line[0] < place.branch_s]
            for _ in range(TAILS_OF_A_PLACE):
                tail = search.tail(place.course, place.branch_s)
                lines = [*before, *search.other_lines(place.branch_s)]
                if self._takes(search, tail, lines, place.branch_s, new):
                    return True
        self.places += new
        return False

    def _takes(
        self, search: Search, course: Course, lines: list[tuple[float, str]], begin_s: float, new: list[Place]
    ) -> bool:
        steps = [(at_s, f"step {number}") for number, at_s in enumerate(reached(course, search.bug))]
        for at_s, line in sorted([*lines, *steps]):
            if at_s < begin_s or line in self.seen:
                continue
            self.seen.add(line)
            branch_s = next((each.at_s for each in course if each.at_s > at_s), None)
            if branch_s is not None and not any((each.course, each.branch_s) == (course, branch_s) for each in new):
                new.append(Place(course, lines, branch_s))
        return len(steps) == len(search.bug)


def ways(others: Sequence[int]) -> Iterator[tuple[str, int, Callable[[], Callable[[Search], bool]]]]:
    """The ways to look for a bug: a name, how many other lines there are, and what makes a way's act."""
    yield "chance", 0, lambda: by_chance
    yield "tails", 0, lambda: by_tails
    for number in others:
        yield f"guided, {number} other lines", number, lambda: Guide().take_round
    yield "told", 0, lambda: by_one_who_is_told


def cost(bug: Sequence[Step], name: str, others: int, act: Callable[[Search], bool]) -> float:
    """What is spent until a bug is found, in seeds."""
    chance = random.Random(name)
    search = Search(name, bug, [10 ** -chance.uniform(0, RAREST) for _ in range(others)], chance=chance)
    while not act(search) and search.spent < MOST_SEEDS:
        pass
    return search.spent


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--times", type=int, default=40, help="how many searches of each bug and way (default: 40)")
    made.add_argument("--others", type=int, nargs="+", default=[0, 100, 300], help="numbers of other lines")
    made.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures")
    given = made.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    for name, bug in BUGS.items():
        for way, others, act in ways(given.others):
            spent = [cost(bug, f"{way}/{number}", others, act()) for number in range(given.times)]
            found.setdefault(name, {})[way] = spent
    names = [way for way, *_ in ways(given.others)]
    rows = [(name, *(f"{statistics.fmean(of[way]):.0f}" for way in names)) for name, of in found.items()]
    tables.show_table("", ("bug", *(f">{way}" for way in names)), rows)
    keep(given.out, found)


def keep(directory: Path, found: dict[str, Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    paths.write_whole(directory / "guidance.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    stage.perform(main)
