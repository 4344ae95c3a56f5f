"""A turn on a lab's clock that is lent to other programs: who says what, and when the turn rests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from minigts import paths
from minigts.errors import HostFailed
from minigts.machine import parallel
from minigts.providers.agent import lending, lent_turn
from minigts.providers.agent.lent_turn import LentTurn


class Turn:
    """Notes what it is told."""

    number = 7

    def __init__(self) -> None:
        self.told: list[str] = []

    def rest(self) -> None:
        self.told.append("rest")

    def resume(self) -> None:
        self.told.append("resume")

    def end(self) -> None:
        self.told.append("end")


@pytest.fixture
def turn() -> Turn:
    return Turn()


@pytest.fixture
def address(turn: Turn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    lent_turn._of_process.cache_clear()
    with lending.lend(turn, tmp_path, lambda act: 100 * act) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield Path(variables[lent_turn.VARIABLE])
    lent_turn._of_process.cache_clear()


def test_who_waits_has_its_number_and_is_late_by_the_seeds_draw(address: Path, turn: Turn) -> None:
    for act in range(3):
        with lent_turn.waiting() as (number, late_s):
            assert (number, late_s) == (7, act * 1e-4)
    assert lent_turn.number() == 7
    assert turn.told == []  # the clock itself rests it and makes it busy


def test_while_another_waits_time_passes_after_an_answer(address: Path, turn: Turn) -> None:
    first, second = LentTurn(address), LentTurn(address)
    first.begins(), second.begins()
    first.ends()
    assert turn.told == ["rest"]
    second.ends()
    assert turn.told == ["rest"]


def test_one_that_is_ended_while_it_waits_is_forgotten(address: Path, turn: Turn) -> None:
    program = (
        "import os, pathlib; from minigts.providers.agent.lent_turn import LentTurn\n"
        f"LentTurn(pathlib.Path({str(address)!r})).begins(); os._exit(0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(paths.import_root())}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    other = LentTurn(address)
    other.begins(), other.ends()
    assert turn.told == ["resume"]


def test_threads_that_run_together_let_the_lent_turn_rest(address: Path, turn: Turn) -> None:
    with parallel.together(parallel.NoTurn, lent_turn.borrow) as pool:
        assert parallel.current_turn() == 7
        assert pool.start(lambda: "done").result() == "done"
    assert turn.told in (["rest", "resume"], [])  # the call may have ended before it was waited for
    assert "end" not in turn.told


def test_a_thread_with_a_turn_of_its_own_borrows_none(address: Path, turn: Turn) -> None:
    with parallel.together(Turn), lent_turn.waiting() as (number, late_s):
        assert (number, late_s) == (7, 0.0)  # of its own, which is not late
    with lent_turn.waiting() as (_, late_s):
        assert late_s == 0.0  # this is the first act


def test_without_a_lender_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(lent_turn.VARIABLE, raising=False)
    with lent_turn.waiting() as (number, late_s):
        assert (number, late_s) == (0, 0.0)
    with pytest.raises(HostFailed, match="nobody lends a turn there any more"):
        LentTurn(tmp_path / "turn.sock")


def test_a_lender_that_has_ended_is_told_of(turn: Turn, tmp_path: Path) -> None:
    with lending.lend(turn, tmp_path, lambda _act: 0) as variables:
        lent = LentTurn(Path(variables[lent_turn.VARIABLE]))
    with closing(lent._socket), pytest.raises(HostFailed, match="has ended"):
        lent.begins()
    assert not (tmp_path / lending.NAME).exists()
