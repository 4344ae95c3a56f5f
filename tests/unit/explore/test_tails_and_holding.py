"""Tails of a seed: what they draw, how a test becomes two, and where what came of them is kept."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest

from minigts.cli.verbs import replay as verb
from minigts.errors import InputError, MinigtsError
from minigts.explore import draws, folder, on_worker, outcome, program, timeline
from minigts.explore import faults as plans
from minigts.explore.attempt import SeedResult
from minigts.explore.faults import Fault
from minigts.explore.holding import Holder
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program
from minigts.explore.tails import tail_name
from minigts.explore.work import Exploration
from minigts.providers.agent import halting
from minigts.topology.read.load import parse

RING = parse("name: ring\nring: {hosts: [a, b, c]}\n", "ring.yaml", time="virtual")
FAULTS = "faults: {partition: {every: 5s, for: 1s to 9s}, kill: {every: 9s, for: 2s}, length: 60s, at_most: 2}"
READ = plans.parse(FAULTS, "faults.yaml", RING)


def drawn(seed: int) -> tuple[tuple[Fault, ...], float]:
    found, branch_s = draws.draw(READ, RING, seed), draws.draw_branch_s(draws.draw(READ, RING, seed), seed)
    assert branch_s is not None
    return found, branch_s


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_tail_shares_the_faults_before_it_and_no_other(seed: int) -> None:
    whole, branch_s = drawn(seed)
    assert branch_s in {fault.at_s for fault in whole}
    before = [fault for fault in whole if fault.at_s < branch_s]
    tails = [draws.draw_tail(READ, RING, seed, tail, branch_s) for tail in range(1, 6)]
    for tail in tails:
        assert list(tail[: len(before)]) == before
        assert [fault.number for fault in tail] == [*range(1, len(tail) + 1)]
        assert all(branch_s <= fault.at_s <= fault.end_s <= READ.over_s for fault in tail[len(before) :])
        for fault in tail:
            assert sum(other.at_s <= fault.at_s < other.end_s for other in tail) <= READ.at_most
    assert len({*tails, whole}) > 1
    assert tails == [draws.draw_tail(READ, RING, seed, tail, branch_s) for tail in range(1, 6)]


def test_what_goes_on_from_a_course_shares_what_has_begun_in_it() -> None:
    whole = draws.draw_tail(READ, RING, 3, 1, drawn(3)[1])
    moment_s = whole[-1].at_s
    further = draws.draw_further(READ, RING, "3/1/2", moment_s, whole)
    assert further[: len(whole) - 1] == whole[:-1]
    assert all(fault.at_s >= moment_s for fault in further[len(whole) - 1 :])
    assert draws.draw_further(READ, RING, "3/1", drawn(3)[1], drawn(3)[0]) == whole


def test_a_seed_without_faults_has_no_tails() -> None:
    assert draws.draw_branch_s((), 3) is None


def test_what_came_of_tails_is_kept_beside_their_seeds(tmp_path: Path) -> None:
    test = Program(words=("true",))
    made = Exploration(
        minigts="1", topology="ring", plan=RING, provider="uml", test=test, first=1, last=2, longest_s=9, started="now"
    )
    assert "tails" not in made.model_dump_json()
    place = folder.create(tmp_path, made, datetime.now(UTC))
    bad = Outcome(seed=1, tail=2, verdict="failed", why="# are lost")
    folder.keep(place, Outcome(seed=1, tail=1, verdict="passed"), {})
    folder.keep(place, bad, {timeline.FILE: "", "history.jsonl": "{}"})
    assert folder.missing(place, made) == [1, 2]
    folder.keep(place, Outcome(seed=1, verdict="passed"), {})
    assert folder.missing(place, made) == [2]
    assert [*folder.outcomes(place)] == [1]
    assert folder.tail_outcomes(place)[1, 2] == bad
    assert folder.recorded_files(place, 1, 2)["history.jsonl"] == "{}"
    assert (place / "failed" / "000001-02").is_dir() and not (place / "failed" / "000001").exists()
    assert outcome.group_failures(folder.tail_outcomes(place).values()) == {("failed", "# are lost"): ["1/2"]}
    merged = folder.merge([place], tmp_path / "merged", datetime.now(UTC))
    assert folder.tail_outcomes(merged) == folder.tail_outcomes(place)
    assert folder.recorded_files(merged, 1, 2) == folder.recorded_files(place, 1, 2)


def test_a_worker_answers_with_tails_and_their_seed() -> None:
    bad, good = Outcome(seed=3, tail=12, verdict="failed"), Outcome(seed=3, verdict="passed")
    taken = [SeedResult(bad, "", {"logs/a/x.log": "1"}, None), SeedResult(good, "", {"left.txt": "2"}, None)]
    files = {name: text for each in taken for name, text in on_worker.answer_files(each).items()}
    first, last = on_worker.split_answer(files)
    assert first == {"logs/a/x.log": "1", on_worker.OUTCOME: bad.model_dump_json()}
    assert last == {on_worker.OUTCOME: good.model_dump_json()}


def test_a_tails_lab_is_known_by_its_seeds() -> None:
    assert tail_name("job-6f02ab-000417-7763c661-0021554", 2) == "job-6f02ab-000417.2-7763c661-0021554"


@pytest.mark.parametrize("written, read", [("5", (5, 0)), ("5/2", (5, 2)), ("17/1000", (17, 1000))])
def test_replay_names_a_seed_or_a_tail(written: str, read: tuple[int, int]) -> None:
    assert verb.seed_and_tail(written) == read


@pytest.mark.parametrize("written", ["", "5/", "/2", "5/0", "a", "5/2/1", "-5", "٣"])
def test_other_words_are_refused(written: str) -> None:
    with pytest.raises(InputError, match="--seed"):
        verb.seed_and_tail(written)


WAITS = """
import os, socket, sys
from pathlib import Path
from minigts.providers.agent import halting

class Line:
    def settle(self):
        return True
    def move(self, rundir):
        new = socket.create_connection(("127.0.0.1", int(rundir.name)))
        halting.exchange(self.socket, new)

halting.begin()
assert halting.VARIABLE not in os.environ
line = Line()
line.socket = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
halting.enter(line)
halting.add_move(lambda rundir: print("for", os.environ["OF"], flush=True))
halting.wait_for(line.socket)
said = line.socket.recv(1).decode()
print("heard", said, "in", Path.cwd().name, flush=True)
sys.exit(int(said))
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(stack: ExitStack) -> tuple[int, socket.socket]:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    listener.settimeout(30)
    return listener.getsockname()[1], listener


def waiting_test(
    holder: Holder, place: Path, stack: ExitStack, program_text: str = WAITS
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A process that waits for a line of its first lab, and our end of that line."""
    port, listener = listening(stack)
    env = {**os.environ, **holder.variables, "PYTHONPATH": ":".join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program_text, str(port)], env=env, cwd=place, stdout=subprocess.PIPE
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    line = stack.enter_context(listener.accept()[0])
    return process, line


def tail_of(tmp_path: Path, name: str) -> Path:
    place = tmp_path / name
    (place / program.WORK).mkdir(parents=True)
    (place / program.OUTPUT).write_text("before\n")
    return place


def test_a_test_that_waits_becomes_two_as_often_as_that_is_asked(tmp_path: Path, stack: ExitStack) -> None:
    holder = Holder(tmp_path, stack)
    process, line = waiting_test(holder, tmp_path, stack)
    with holder.hold(lambda: False):
        for number in (3, 4):
            port, listener = listening(stack)
            listener.setblocking(True)
            thread = Thread(target=answer, args=(listener, str(number)), daemon=True)
            thread.start()
            place = tail_of(tmp_path, f"tail{number}")
            assert holder.run(Path(f"/labs/{port}"), place, {"OF": f"lab {number}"}, lambda: False) == number
            assert (place / program.OUTPUT).read_text() == f"before\nfor lab {number}\nheard {number} in work\n"
    line.send(b"1")
    assert process.wait(30) == 1
    assert process.stdout is not None and process.stdout.read() == f"heard 1 in {tmp_path.name}\n".encode()
    assert holder.held_s > 0


def answer(listener: socket.socket, what: str) -> None:
    with listener.accept()[0] as line:
        line.send(what.encode())
        line.recv(1)


def test_a_tail_that_is_to_end_is_ended(tmp_path: Path, stack: ExitStack) -> None:
    holder = Holder(tmp_path, stack)
    process, line = waiting_test(holder, tmp_path, stack)
    with holder.hold(lambda: False):
        port, _listener = listening(stack)
        place = tail_of(tmp_path, "tail")
        assert holder.run(Path(f"/labs/{port}"), place, {"OF": "it"}, lambda: "for it" in said(place)) is None
    line.send(b"0")
    assert process.wait(30) == 0


def said(place: Path) -> str:
    return (place / program.OUTPUT).read_text()


def test_a_tail_whose_lab_is_not_there_ends_and_says_so(tmp_path: Path, stack: ExitStack) -> None:
    holder = Holder(tmp_path, stack)
    _process, _line = waiting_test(holder, tmp_path, stack)
    with holder.hold(lambda: False):
        place = tail_of(tmp_path, "tail")
        assert holder.run(Path("/labs/1"), place, {"OF": "it"}, lambda: False) == halting.FAILED
        assert "could not go on with the fork" in said(place)


def test_a_test_that_has_ended_is_not_held(tmp_path: Path, stack: ExitStack) -> None:
    holder = Holder(tmp_path, stack)
    process, line = waiting_test(holder, tmp_path, stack)
    line.send(b"0")
    assert process.wait(30) == 0
    with pytest.raises(MinigtsError, match="the test has ended"), holder.hold(lambda: False):
        pass


def test_a_test_that_never_waits_is_given_up(tmp_path: Path, stack: ExitStack) -> None:
    holder = Holder(tmp_path, stack)
    with pytest.raises(MinigtsError, match="the test has ended"), holder.hold(lambda: True):
        pass


def test_a_process_with_threads_of_its_own_says_so(tmp_path: Path, stack: ExitStack) -> None:
    holder = Holder(tmp_path, stack)
    before = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    _process, _line = waiting_test(holder, tmp_path, stack, before + WAITS)
    with pytest.raises(MinigtsError, match="cannot become two: it has threads"), holder.hold(lambda: False):
        pass


def test_what_ends_a_wait_is_done_before_the_test_is_held(tmp_path: Path, stack: ExitStack) -> None:
    """It settles where it waits next."""
    holder = Holder(tmp_path, stack)
    unsettled = WAITS.replace(
        "        return True", "        self.asked = getattr(self, 'asked', 0) + 1\n        return self.asked > 1"
    )
    again = unsettled.replace("said =", "line.socket.recv(1)\nhalting.wait_for(line.socket)\nsaid =")
    process, line = waiting_test(holder, tmp_path, stack, again)
    send = Thread(target=lambda: (time.sleep(1), line.send(b"x")), daemon=True)
    send.start()
    with holder.hold(lambda: False):
        pass
    line.send(b"0")
    assert process.wait(30) == 0
