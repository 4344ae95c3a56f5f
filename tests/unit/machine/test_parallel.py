"""Calls side by side, broken off by their user."""

from __future__ import annotations

import os
import signal
import time
from threading import Barrier, Event, Thread

import pytest

from minigts.machine.parallel import together


class Turns:
    """A clock's side: who keeps it from going on, and when two speak for one at the same time."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.speaking: set[int] = set()
        self.clashes = 0


class Turn:
    def __init__(self, turns: Turns) -> None:
        self._turns, self.number = turns, len(turns.open) + 1
        turns.open.add(id(self))

    def _speak(self) -> None:
        self._turns.clashes += id(self) in self._turns.speaking
        self._turns.speaking.add(id(self))
        time.sleep(0.05)
        self._turns.speaking.discard(id(self))

    rest = resume = _speak

    def end(self) -> None:
        self._turns.open.discard(id(self))


def test_broken_off_it_ends_when_all_calls_have_and_not_before() -> None:
    turns = Turns()
    ended: list[float] = []
    both = Barrier(2, timeout=60)

    def call() -> None:
        if both.wait() == 0:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.8)
        ended.append(time.monotonic())

    with pytest.raises(KeyboardInterrupt), together(lambda: Turn(turns)) as pool:
        pool.all([call, call])
    assert len(ended) == 2
    assert (turns.open, turns.clashes) == (set(), 0)


def test_a_caller_whose_clock_has_ended_learns_it_from_the_call() -> None:
    class Gone(Turn):
        def resume(self) -> None:
            raise OSError("the clock has ended")

    turns = Turns()
    with pytest.raises(OSError, match="the clock has ended"), together(lambda: Gone(turns)) as pool:
        pool.start(lambda: time.sleep(0.2)).result()
    assert turns.open == set()


def test_interrupted_between_the_start_of_a_call_and_its_return_it_waits_for_that_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a signal does that comes then: the exception is raised as the thread has begun."""
    turns, ended, begun = Turns(), [], Event()

    class Interrupted(Thread):
        def start(self) -> None:
            super().start()
            assert begun.wait(60)
            raise KeyboardInterrupt

    def call() -> None:
        begun.set()
        time.sleep(0.3)
        ended.append(time.monotonic())

    monkeypatch.setattr("minigts.machine.parallel.Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt), together(lambda: Turn(turns)) as pool:
        pool.start(call)
    assert (len(ended), turns.open) == (1, set())


def test_interrupted_before_a_call_has_begun_it_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, ran, threads = Turns(), [], []

    class Late(Thread):
        def start(self) -> None:
            threads.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr("minigts.machine.parallel.Thread", Late)
    with pytest.raises(KeyboardInterrupt), together(lambda: Turn(turns)) as pool:
        pool.start(lambda: ran.append(1))
    Thread.start(threads[0])
    threads[0].join()
    assert (ran, turns.open) == ([], set())
