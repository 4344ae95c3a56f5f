"""Waiting for a host's answer: clients and the supervisor's end of the line are real, the agent is the test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigts.errors import CommandTimeout, HostFailed
from minigts.machine import interruption
from minigts.machine.parallel import together
from minigts.providers.agent import agent_line, client, patience, protocol
from minigts.providers.agent.client import OutputTooLong
from minigts.providers.agent.patience import Conditions, LabTime
from minigts.providers.base import CommandResult

LIMIT_S = 60.0


class Agent:
    """What is at the other end of the supervisor's line."""

    def __init__(self, line: socket.socket) -> None:
        self.line, self._decoder, self._come = line, protocol.Decoder(), list[protocol.Frame]()
        line.settimeout(LIMIT_S)

    def greet(self) -> None:
        self.line.sendall(protocol.HELLO)

    def say(self, kind: int, payload: bytes = b"", channel: int = 1) -> None:
        self.line.sendall(protocol.Frame(channel, kind, payload).encode())

    def end(self, code: int = 0) -> None:
        self.say(protocol.EXIT, json.dumps({"code": code, "timeout": False}).encode())

    def take(self) -> protocol.Frame:
        """The next frame, of which it says that it has taken it."""
        while not self._come:
            data = self.line.recv(1 << 16)
            if not data:
                raise ConnectionResetError
            self.say(protocol.TAKEN, protocol.COUNT.pack(len(data)), 0)
            self._come += self._decoder.feed(data)
        return self._come.pop(0)

    def take_until_end_of_input(self) -> None:
        while (frame := self.take()).kind != protocol.INPUT or frame.payload:
            pass

    def answer_for_ever(self) -> None:
        with suppress(OSError):
            while True:
                self.take()


@pytest.fixture
def rundir(tmp_path: Path) -> Path:
    (tmp_path / "hosts" / "ams").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def agent(rundir: Path) -> Iterator[Agent]:
    """Of a host `ams`, which the real supervisor's `Host` serves."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(["sleep", "1000"])
    served, place = agent_line.AgentHost("ams", process, ours), rundir / "hosts" / "ams" / "control.sock"
    is_over = threading.Event()

    async def supervise() -> None:
        await served.serve(str(place))
        while not is_over.is_set():
            await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(supervise()))
    thread.start()
    while not place.exists():
        assert thread.is_alive()  # it ends where the directory's name is too long for a socket
        time.sleep(0.005)
    try:
        yield Agent(theirs)
    finally:
        with suppress(OSError):
            theirs.shutdown(socket.SHUT_RDWR)  # another thread may read from it
        theirs.close()
        is_over.set()
        process.kill()
        process.wait()
        thread.join(LIMIT_S)
    assert not thread.is_alive()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    for name, value in {
        "LOOK_S": 0.05,
        "ASK_AFTER_S": 0.3,
        "SILENT_S": 0.6,
        "BOOT_S": 0.8,
        "QUIET_S": 0.1,
        "STOPPED_S": 0.3,
        "CLOCK_S": 0.6,
        "STILL_S": 0.6,
        "ENDLESS_S": 0.6,
        "SILENT_AT_MOST_S": 0.8,
        "INTERRUPTED_S": 0.4,
        "LATER_S": 0.1,
    }.items():
        monkeypatch.setattr(patience, name, value)
    monkeypatch.setattr(client, "LOOK_S", 0.05)
    monkeypatch.setattr(client, "GRACE_S", 0.5)
    monkeypatch.setattr(interruption, "_moments", [])


def run(
    rundir: Path, *argv: str, timeout_s: float = 100.0, conditions: Conditions | None = None, **more: Any
) -> CommandResult:
    settings: dict[str, Any] = {"check": False, "stdin": b"", "on_output": None, **more}
    return client.run(rundir, "ams", argv or ("true",), timeout_s=timeout_s, conditions=conditions, **settings)


def beside(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_host_that_takes_nothing_does_not_answer(rundir: Path, agent: Agent) -> None:
    agent.greet()
    began = time.monotonic()
    with pytest.raises(HostFailed, match=r"host ams does not answer: it has read nothing for 0.6 s .`true`.; mend it"):
        run(rundir, conditions=Conditions(remedy="mend it"))
    assert time.monotonic() - began < LIMIT_S


def test_what_is_known_to_ail_it_is_told_as_well(rundir: Path, agent: Agent) -> None:
    agent.greet()
    told = r"for 0.6 s .`true`.; its memory is exhausted; mend it starts it again"
    with pytest.raises(HostFailed, match=told):
        run(rundir, conditions=Conditions(remedy="mend it", ailment=lambda: "its memory is exhausted"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Resource temporarily unavailable (os error 11)", "it has as many processes as its kernel allows"),
        ("Cannot allocate memory (os error 12)", "its memory is exhausted"),
        ("No such file or directory (os error 2)", None),
    ],
)
def test_a_host_that_can_start_no_command_says_what_it_lacks(
    rundir: Path, agent: Agent, said: str, told: str | None
) -> None:
    def answer() -> None:
        agent.take_until_end_of_input()
        agent.say(protocol.STDERR, f"true: {said}\n".encode())
        agent.end(127)

    agent.greet()
    answering = beside(answer)
    if told is None:
        assert run(rundir).code == 127
    else:
        with pytest.raises(HostFailed, match=f"host ams cannot start `true`: {told}; mend it starts it again"):
            run(rundir, conditions=Conditions(remedy="mend it"))
    answering.join(LIMIT_S)


def test_one_that_never_greets_has_not_come_up(rundir: Path, agent: Agent) -> None:
    with pytest.raises(HostFailed, match=r"it has not come up for 0.8 s"):
        run(rundir)


def test_a_command_may_take_longer_than_any_silence(rundir: Path, agent: Agent) -> None:
    """Its agent takes what asks whether it is there, and says nothing else."""
    agent.greet()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, rundir, "sleep", "3600")
        agent.take_until_end_of_input()
        asked = [agent.take().kind for _ in range(5)]
        agent.end(3)
        assert running.result().code == 3
    assert asked == [protocol.ASK] * 5


def test_an_agent_that_falls_silent_is_noticed(rundir: Path, agent: Agent) -> None:
    agent.greet()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, rundir, "sleep", "3600")
        agent.take_until_end_of_input()
        with pytest.raises(HostFailed, match="it has read nothing for"):
            running.result()


def test_what_it_says_now_and_then_does_not_put_its_end_off(rundir: Path, agent: Agent) -> None:
    """A limit is for the whole command, and not from one word to the next."""
    agent.greet()

    def drip() -> None:
        agent.take_until_end_of_input()
        with suppress(OSError):
            while True:
                agent.say(protocol.STDOUT, b".")
                time.sleep(0.1)

    beside(drip)
    began = time.monotonic()
    with pytest.raises(HostFailed, match="`sh` should have ended after 1 s"):
        run(rundir, "sh", timeout_s=0.5)
    assert time.monotonic() - began < LIMIT_S


def test_input_that_a_command_takes_slowly_is_no_silence(rundir: Path, agent: Agent) -> None:
    agent.greet()

    def slowly() -> None:
        left = 3 << 20
        while left > 0:
            frame = agent.take()
            left -= len(frame.payload) if frame.kind == protocol.INPUT else 0
            time.sleep(0.02)
        agent.end()

    beside(slowly)
    assert run(rundir, "cat", stdin=bytes(3 << 20)).code == 0


def test_nor_is_a_caller_who_takes_long_for_what_comes(rundir: Path, agent: Agent) -> None:
    agent.greet()

    def speak() -> None:
        agent.take_until_end_of_input()
        agent.say(protocol.STDOUT, b"one")
        agent.end()

    beside(speak)
    assert run(rundir, timeout_s=0.3, on_output=lambda _: time.sleep(1.2)).stdout == "one"


def test_output_without_end_is_not_kept(rundir: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_KEPT_BYTES", 1 << 20)
    agent.greet()
    beside(lambda: _flood(agent))
    with pytest.raises(OutputTooLong, match="on ams: `yes` was ended: it wrote more than 1 MB"):
        run(rundir, "yes")


def _flood(agent: Agent, most: int = 1 << 40) -> None:
    agent.take_until_end_of_input()
    with suppress(OSError):
        for _ in range(most):
            agent.say(protocol.STDOUT, bytes(protocol.CHUNK))


def test_streamed_it_comes_whole_and_little_is_kept(
    rundir: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_KEPT_STREAMED_BYTES", 100_000)
    agent.greet()

    def speak() -> None:
        _flood(agent, 600)
        agent.end()

    beside(speak)
    heard: list[int] = []
    result = run(rundir, "yes", on_output=lambda piece: heard.append(len(piece)))
    assert sum(heard) == 600 * protocol.CHUNK
    assert (len(result.stdout), "keeps no more" in result.stderr) == (100_000, True)


def test_who_reads_too_slowly_is_told(rundir: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_line, "UNREAD_LIMIT_BYTES", 1 << 20)
    agent.greet()
    beside(lambda: _flood(agent))
    with pytest.raises(HostFailed, match="left unread"):
        run(rundir, "yes", on_output=lambda _: time.sleep(0.02))


def test_what_was_printed_before_a_host_went_away_is_there(rundir: Path, agent: Agent) -> None:
    agent.greet()

    def go() -> None:
        agent.take_until_end_of_input()
        agent.say(protocol.STDOUT, b"one\nt")
        agent.say(protocol.STDERR, b"wrong\n")
        agent.line.shutdown(socket.SHUT_RDWR)

    beside(go)
    with pytest.raises(HostFailed, match="host ams went away") as failed:
        run(rundir)
    assert failed.value.out == "one\nt"


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"code": "0"}', b'{"code": 1e99}', b'{"code": -1}', b"9" * 5000])
def test_an_end_that_is_none_is_one_error(rundir: Path, agent: Agent, said: bytes) -> None:
    agent.greet()

    def lie() -> None:
        agent.take_until_end_of_input()
        agent.say(protocol.EXIT, said)

    beside(lie)
    with pytest.raises(HostFailed, match="host ams went away"):  # its line is closed: no agent says so
        run(rundir)


def test_a_line_that_holds_no_frames_is_ended(rundir: Path, agent: Agent) -> None:
    agent.greet()
    agent.say(protocol.TAKEN, b"no number")
    with pytest.raises(HostFailed, match=r"host ams (went away|is not running)"):
        run(rundir, timeout_s=2.0)


def test_a_conversation_begins_when_the_host_has_taken_it(rundir: Path, agent: Agent) -> None:
    agent.greet()

    def speak() -> None:
        agent.take()
        agent.say(protocol.STDOUT, b"hello")

    beside(speak)
    with client.converse(rundir, "ams", ["cat"]) as line:
        line.settimeout(LIMIT_S)
        (frame,) = protocol.Decoder().feed(line.recv(1000))
    assert frame == protocol.Frame(1, protocol.STDOUT, b"hello")


def test_and_does_not_begin_with_one_that_is_silent(rundir: Path, agent: Agent) -> None:
    agent.greet()
    began = time.monotonic()
    with pytest.raises(HostFailed, match="it has read nothing"):
        client.converse(rundir, "ams", ["cat"])
    assert time.monotonic() - began < LIMIT_S


def test_a_host_that_its_user_holds_is_waited_for(rundir: Path, agent: Agent) -> None:
    held = threading.Event()
    held.set()
    agent.greet()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, rundir, timeout_s=0.1, conditions=Conditions(is_held=held.is_set))
        agent.take_until_end_of_input()
        time.sleep(1.5)
        assert not running.done()
        held.clear()
        with pytest.raises(HostFailed):
            running.result()


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time pass for who waits, without waiting."""
    now_s = [1000.0]
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def let_pass(seconds: float) -> None:
        now_s[0] += seconds

    return let_pass


def wait_for_a_host_that_is_held(
    passing: Callable[[float], None], before: Callable[[patience.Patience], None]
) -> patience.Patience:
    """Of a host that has greeted, `before` what it did then; it was held for long, and goes on now."""
    held = [True]
    waits = patience.Patience("ams", "true", Conditions(is_held=lambda: held[0]))
    waits.note_greeting(True)
    before(waits)
    passing(10 * patience.SILENT_S)
    assert not waits.look()
    held[0] = False
    return waits


def test_what_a_host_owed_when_it_was_held_it_owes_from_when_it_goes_on(passing: Callable[[float], None]) -> None:
    waits = wait_for_a_host_that_is_held(passing, patience.Patience.owes)
    passing(0.9 * patience.SILENT_S)
    assert not waits.look()
    passing(0.2 * patience.SILENT_S)
    with pytest.raises(HostFailed, match=r"it has read nothing for 0.6 s"):
        waits.look()


def test_one_that_owed_nothing_when_it_was_held_is_asked_before_it_is_given_up(
    passing: Callable[[float], None],
) -> None:
    waits = wait_for_a_host_that_is_held(passing, patience.Patience.note_words)
    passing(2 * patience.SILENT_S)
    assert waits.look()
    passing(2 * patience.SILENT_S)
    with pytest.raises(HostFailed, match=r"it has read nothing for 0.6 s"):
        waits.look()


def test_one_whose_kernel_somebody_has_stopped_is_named(rundir: Path, agent: Agent) -> None:
    agent.greet()
    with pytest.raises(HostFailed, match=r"its kernel's process has been stopped for 0.3 s"):
        run(rundir, conditions=Conditions(is_stopped=lambda: True))


class LabClock:
    """A lab's clock that says what the test wants."""

    unanswered_s = 0.0

    def __init__(self, times: Sequence[LabTime | None]) -> None:
        self._times = list(times)

    def look(self) -> LabTime | None:
        return self._times.pop(0) if len(self._times) > 1 else self._times[0]


def lab_time(*seconds: float, passes: bool = True) -> Conditions:
    """The lab's time at each look; the last step goes on for ever."""
    step = seconds[-1] - seconds[-2] if len(seconds) > 1 else 0.0
    times = [*seconds, *(seconds[-1] + step * (number + 1) for number in range(10_000))]
    clock = LabClock([LabTime(each, passes) for each in times])
    return Conditions(clock=lambda: clock)


def test_in_the_labs_time_silence_goes_by_its_clock(rundir: Path, agent: Agent) -> None:
    agent.greet()
    with pytest.raises(HostFailed, match="it has read nothing for 10 s of the lab's"):
        run(rundir, turn=0, conditions=lab_time(0, 4))


def test_an_agent_there_is_never_asked_and_may_work_for_long(rundir: Path, agent: Agent) -> None:
    agent.greet()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, rundir, timeout_s=1e6, turn=0, conditions=lab_time(0, 100))
        agent.take_until_end_of_input()
        agent.line.settimeout(1.0)
        assert agent.take().kind == protocol.WAIT  # a clock keeps it; here there is none
        with pytest.raises(TimeoutError):
            agent.take()
        agent.end()
        assert running.result().code == 0


def test_a_command_that_outlives_its_limit_by_the_labs_clock_is_given_up(rundir: Path, agent: Agent) -> None:
    agent.greet()
    beside(agent.answer_for_ever)
    with pytest.raises(HostFailed, match=r"`true` should have ended after 10.5 s of the lab's"):
        run(rundir, timeout_s=10, turn=0, conditions=lab_time(0, 4))


def test_a_clock_that_does_not_answer_is_not_waited_for(rundir: Path, agent: Agent) -> None:
    agent.greet()
    clock = LabClock([None])
    clock.unanswered_s = 0.7
    with pytest.raises(HostFailed, match="the lab's clock has not answered"):
        run(rundir, turn=0, conditions=Conditions(clock=lambda: clock))


def test_nor_a_lab_in_which_nothing_happens(rundir: Path, agent: Agent) -> None:
    agent.greet()
    beside(agent.answer_for_ever)
    with pytest.raises(HostFailed, match="nothing has happened in the lab"):
        run(rundir, turn=0, conditions=lab_time(5))


def test_a_lab_waits_for_a_program_that_computes_in_its_kernels_turn(rundir: Path, agent: Agent) -> None:
    """Its clock says nothing meanwhile, and time stands."""
    clock = LabClock([LabTime(5, True)])
    clock.unanswered_s = 0.5
    waits = patience.Patience("bra", "true", Conditions(clock=lambda: clock))
    until = time.monotonic() + 2 * patience.ENDLESS_S
    while time.monotonic() < until:
        waits.look()
        time.sleep(0.05)
    clock.unanswered_s = 0.0
    with pytest.raises(HostFailed, match="nothing has happened in the lab"):
        while time.monotonic() < until + 60:
            waits.look()
            time.sleep(0.05)


def test_nor_a_lab_whose_time_another_command_keeps(rundir: Path, agent: Agent) -> None:
    agent.greet()
    with pytest.raises(HostFailed, match=r"the lab's time has not passed for 0.6 s: another command stops it"):
        run(rundir, turn=0, conditions=lab_time(5, passes=False))


def test_once_its_user_has_broken_off_nothing_is_waited_for_long(rundir: Path, agent: Agent) -> None:
    """As what a verb that was interrupted would like to tidy up on a host."""
    agent.greet()
    beside(agent.answer_for_ever)
    interruption.note()
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(HostFailed, match="was interrupted"):
            run(rundir)
    assert time.monotonic() - began < LIMIT_S


def test_calls_side_by_side_are_broken_off_at_once(rundir: Path, agent: Agent) -> None:
    agent.greet()
    beside(agent.answer_for_ever)
    threading.Timer(0.4, os.kill, [os.getpid(), signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), together() as pool:
        pool.all([lambda: run(rundir, "sleep", "3600")] * 3)
    assert time.monotonic() - began < LIMIT_S


def test_what_has_timed_out_says_what_it_said(rundir: Path, agent: Agent) -> None:
    agent.greet()

    def speak() -> None:
        agent.take_until_end_of_input()
        agent.say(protocol.STDOUT, b"so far")
        agent.say(protocol.EXIT, b'{"code": 137, "timeout": true}')

    beside(speak)
    with pytest.raises(CommandTimeout) as caught:
        run(rundir)
    assert caught.value.out == "so far"


def test_a_supervisor_that_tells_nothing_is_believed(rundir: Path) -> None:
    """It is stopped for longer than a greeting may take, and answers then."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(rundir / "hosts" / "ams" / "control.sock"))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        time.sleep(1.5)
        connection.sendall(protocol.Frame(1, protocol.EXIT, b'{"code": 0, "timeout": false}').encode())
        connection.recv(1)

    beside(serve)
    with listener:
        assert run(rundir).code == 0


def test_conditions_hold_for_nobody_by_themselves() -> None:
    assert not Conditions().is_held()
    assert not replace(Conditions(), remedy="x").is_stopped()
