"""What a test says of its course: what it needs, and what it does to the lab itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigts.explore import timeline, variables
from minigts.testing.course import Course, NothingToJudge


@pytest.fixture
def noted() -> list[dict[str, object]]:
    return []


@pytest.fixture
def lab(noted: list[dict[str, object]]) -> Any:
    return SimpleNamespace(_lab=SimpleNamespace(note=noted.append))


def test_acts_are_noted_and_those_that_are_left_out_are_not_done(
    lab: Any, noted: list[dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variables.WITHOUT, "2,3")
    course = Course(lab, tmp_path)
    done = [course.act(f"kill nats on {host}") for host in "abcd"]
    assert done == [True, False, False, True]
    assert noted[1] == {"event": "act left out", "number": 2, "what": "kill nats on b"}
    entries = [{"at_s": 0.0, **event} for event in noted]
    assert timeline.acts(entries) == {1: "kill nats on a", 4: "kill nats on d"}
    assert next(timeline.entry_lines(entries)).strip() == "0.000000 s  act: kill nats on a"


def test_without_explore_all_acts_are_done(lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variables.WITHOUT, raising=False)
    assert Course(lab, tmp_path).act("kill nats on a")


def test_what_a_test_needs_is_no_failure(lab: Any, tmp_path: Path) -> None:
    course = Course(lab, tmp_path)
    course.require(["a write"], "no write")
    with pytest.raises(NothingToJudge, match="only 0 writes"):
        course.require([], "only 0 writes")
