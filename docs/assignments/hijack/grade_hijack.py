"""Grades a folder with rogue-same.conf, rogue-specific.conf, victim.conf, filter.conf and answers.yaml; each test is a
point.

minigts test --minigts grading/topology.yaml --minigts-time virtual grade_hijack.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from minigts import api

HANDOUT = Path(__file__).parent / "handout"
NUMBERS = (1, 2, 3, 4, 5, 6)
OTHERS = (1, 2, 3, 5)
"""Those who may be led astray."""
PAGE = "http://10.4.0.80/"
SAME, SPECIFIC = "route 10.4.0.0/16 blackhole;", "route 10.4.0.0/17 blackhole;"
"""The attacks of the tasks, with which countermeasures are tried, whatever the student's own are."""
NOTHING = "# nothing"
AT_REST_S, TOLD_S = 25.0, 8.0
"""How long BGP takes to come up, and to tell all of a change."""


class Internet:
    """The six systems, whose files are replaced, and who sees which page then."""

    def __init__(self, lab: api.Lab, run: Callable[..., Any], folder: Path, handed_in: Path) -> None:
        self._lab, self._run, self._folder, self._handed_in = lab, run, folder, handed_in

    def file(self, name: str) -> str:
        return (self._handed_in / name).read_text(encoding="utf-8")

    def has(self, number: int, name: str, text: str) -> None:
        """An AS has this text as that file from now on. A text that BIRD refuses changes nothing."""
        written = self._folder / name
        written.write_text(text, encoding="utf-8")
        host = self._lab.host(f"as{number}")
        host.put(written, f"/root/{name}")
        host.run("birdc", "configure", check=False)

    def attacked(self, rogue: str, *, victim: str = NOTHING, filters: Mapping[int, str] | None = None) -> set[int]:
        """The AS whose hosts see the false page."""
        for number, text in (filters or {}).items():
            self.has(number, "filter.conf", text)
        self.has(4, "victim.conf", victim)
        self.has(6, "rogue.conf", rogue)
        self._lab.sleep(TOLD_S)
        return {number for number in OTHERS if self.page(number) == "false"}

    def page(self, number: int) -> str:
        own = ["--interface", f"10.{number}.0.1"]  # the links' addresses are known to neighbours alone
        told = self._run(f"as{number}", "curl", "-sS", *own, "--max-time", "5", PAGE, check=False).stdout
        return str(told).strip()

    def all_see(self, word: str) -> bool:
        return {self.page(number) for number in OTHERS} == {word}

    def at_peace(self) -> None:
        plain = (HANDOUT / "filter.conf").read_text(encoding="utf-8")
        for number in NUMBERS:
            self.has(number, "filter.conf", plain)
        self.attacked(NOTHING)


@pytest.fixture(scope="session")
def at_rest(lab: api.Lab) -> None:
    lab.sleep(AT_REST_S)


@pytest.fixture
def internet(
    lab: api.Lab, at_rest: None, run: Callable[..., Any], tmp_path: Path, pytestconfig: pytest.Config
) -> Iterator[Internet]:
    made = Internet(lab, run, tmp_path, Path(pytestconfig.getoption("--minigts")).parent)
    made.at_peace()
    yield made


@pytest.fixture
def answers(pytestconfig: pytest.Config) -> Mapping[str, object]:
    file = Path(pytestconfig.getoption("--minigts")).parent / "answers.yaml"
    read = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read if isinstance(read, dict) else {}


def numbers(written: object) -> Collection[int]:
    return {*written} if isinstance(written, list) else ()


def test_the_lab_is_the_one_handed_out(lab: api.Lab) -> None:
    handed_out = api.planned(HANDOUT / "topology.yaml")
    assert lab.plan.links == handed_out.links
    assert [host.name for host in lab.plan.hosts] == [host.name for host in handed_out.hosts]


def test_everybody_sees_the_right_page_before(internet: Internet) -> None:
    assert internet.all_see("right")


def test_the_same_prefix_catches_those_who_are_nearer(internet: Internet) -> None:
    assert internet.attacked(internet.file("rogue-same.conf")) == {1, 2}


def test_the_more_specific_prefix_catches_everybody(internet: Internet) -> None:
    assert internet.attacked(internet.file("rogue-specific.conf")) == {*OTHERS}


@pytest.mark.parametrize(("question", "attack"), [("same", SAME), ("specific", SPECIFIC)])
def test_the_answer_is_what_happens(
    internet: Internet, answers: Mapping[str, object], question: str, attack: str
) -> None:
    assert internet.attacked(attack) == numbers(answers.get(question))


def test_the_victim_gets_its_visitors_back(internet: Internet) -> None:
    assert internet.attacked(SPECIFIC, victim=internet.file("victim.conf")) == set()
    assert internet.all_see("right")


@pytest.mark.parametrize("attack", [SAME, SPECIFIC])
def test_the_filter_believes_no_false_origin(internet: Internet, attack: str) -> None:
    filters = dict.fromkeys(NUMBERS, internet.file("filter.conf"))
    assert internet.attacked(attack, filters=filters) == set()
    assert internet.all_see("right")


def test_the_filter_believes_every_true_origin(internet: Internet, run: Callable[..., Any]) -> None:
    filters = dict.fromkeys(NUMBERS, internet.file("filter.conf"))
    internet.attacked(SPECIFIC, filters=filters, victim="route 10.4.0.0/24 blackhole;")
    told = run("as1", "birdc", "show", "route").stdout
    wanted = [*(f"10.{number}.0.0/16" for number in NUMBERS), "10.4.0.0/24"]
    assert [prefix for prefix in wanted if prefix not in told] == []
    assert "10.4.0.0/17" not in told


def test_one_filter_is_enough_at_the_right_place(internet: Internet, answers: Mapping[str, object]) -> None:
    enough = answers.get("enough")
    assert enough in NUMBERS
    assert isinstance(enough, int)
    for attack in (SAME, SPECIFIC):
        assert internet.attacked(attack, filters={enough: internet.file("filter.conf")}) == set()
        assert internet.all_see("right")
