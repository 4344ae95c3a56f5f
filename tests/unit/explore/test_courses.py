"""A whole exploration in real time on hosts of this process: faults are played while a command runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import tc_hosts

from minigts import lab as labs
from minigts import overlays, paths
from minigts.cluster.shares import JobShare
from minigts.errors import EnvironmentLacks, HostFailed, InputError
from minigts.explore import attempt, course, exploration, folder, replaying, seed_labs, timeline
from minigts.explore import program as programs
from minigts.explore.attempt import Stop
from minigts.explore.exploration import ExplorationRequest
from minigts.explore.outcome import Outcome
from minigts.explore.work import Exploration, Reduced, SeedOfWork
from minigts.lab import events
from minigts.providers.agent import ended
from minigts.providers.base import CommandResult
from minigts.results import gate
from minigts.topology.read.load import parse

pytestmark = pytest.mark.touched("tools/minigts/explore")

ON = tc_hosts.TcHosts.name
RING = parse("name: ring\nring: {hosts: [a, b, c], link: {rtt: 2ms, rate: 100mbit}}\n", "ring.yaml", time="real")
FAULTS = """
faults:
  partition: {every: 200ms, for: 100ms to 300ms}
  slow-link: {every: 200ms, for: 100ms, delay: 5ms to 50ms}
  loss: {every: 200ms, for: 100ms, loss: 1% to 5%}
  length: 2s
  at_most: 3
"""


class Watcher:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.seen: list[tuple[int, int, int]] = []

    def step(self, line: str) -> None:
        pass

    def note(self, line: str) -> None:
        self.notes.append(line)

    def take_outcome(self, outcome: Outcome, done: int, total: int) -> None:
        self.seen.append((outcome.seed, done, total))


@pytest.fixture(autouse=True)
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)


def explored(script: str, faults: str = FAULTS, longest_s: float = 60.0, overlay: str | None = None) -> Exploration:
    test = programs.read(["sh", "-c", script], [])
    asked = ExplorationRequest("ring", RING, ON, test, 1, 3, longest_s, faults, overlay=overlay)
    return exploration.check_exploration(asked, lambda _: None).content


def test_seeds_are_taken_kept_and_grouped(tmp_path: Path) -> None:
    found = explored('sleep 1; [ "$MINIGTS_SEED" != 2 ] || { echo "lost 4 writes"; exit 1; }')
    place, watcher = folder.create(tmp_path, found, datetime.now(UTC)), Watcher()
    exploration.run(place, gate.own(found), None, watcher)
    assert watcher.notes == [exploration.NOT_AGAIN]
    assert watcher.seen == [(1, 1, 3), (2, 2, 3), (3, 3, 3)]
    ended = folder.outcomes(place)
    assert [each.verdict for each in ended.values()] == ["passed", "failed", "passed"]
    assert ended[2].why == "ended with code #: lost # writes"
    assert labs.all_labs() == []
    entries = timeline.read((place / "failed" / "000002" / timeline.FILE).read_text())
    assert (entries[0]["event"], entries[-1]["event"]) == (timeline.BEGUN, timeline.ENDED)
    kinds = [str(entry["event"]) for entry in entries]
    assert {"fault", "fault over"} <= {*kinds}
    assert not [kind for kind in kinds if kind.endswith("failed")]
    drawn_s = {fault.number: fault.at_s for fault in found.draw_faults(2)}
    began_s = {entry["number"]: entry["at_s"] for entry in entries if entry["event"] == "fault"}
    assert began_s
    assert {number for number, at_s in began_s.items() if at_s < drawn_s[number] - 0.01} == set()
    exploration.run(place, gate.own(found), None, watcher)
    assert len(watcher.seen) == 3, "all seeds were there"


def test_shares_of_seeds_put_together_are_all_seeds(tmp_path: Path) -> None:
    found = explored('[ "$MINIGTS_SEED" != 2 ] || { echo "lost 4 writes"; exit 1; }', "")
    places = []
    for number in (1, 2):
        places.append(folder.create(tmp_path / f"share-{number}", found, datetime.now(UTC)))
        exploration.run(places[-1], gate.own(found), None, Watcher(), JobShare(number, 2))
    assert [sorted(folder.outcomes(each)) for each in places] == [[1, 3], [2]]
    merged = folder.merge(places, tmp_path / "all", datetime.now(UTC))
    assert {seed: each.verdict for seed, each in folder.outcomes(merged).items()} == {
        1: "passed",
        2: "failed",
        3: "passed",
    }
    assert folder.missing(merged, found) == []
    assert folder.recorded_files(merged, 2) == folder.recorded_files(places[1], 2)
    assert folder.examine(merged).is_own
    (places[1] / "signature").unlink()
    assert not folder.examine(folder.merge(places, tmp_path / "strange", datetime.now(UTC))).is_own
    other = folder.create(tmp_path / "other", explored("true", ""), datetime.now(UTC))
    with pytest.raises(InputError, match=r"differs from .* in test; a share is of the same files and seeds"):
        folder.merge([places[0], other], tmp_path / "none", datetime.now(UTC))
    assert not (tmp_path / "none").exists()


def test_at_the_end_every_link_is_as_declared(tmp_path: Path) -> None:
    drawn = len(explored("true").draw_faults(5))
    said = paths.labs_root() / "ring" / events.FILE
    found = explored(f'until [ "$(grep -c "fault over" {said})" = {drawn} ]; do sleep 0.1; done')
    seed = SeedOfWork(number=5, exploration=found)
    with seed_labs.lab_of(seed, "ring", lambda _: None) as lab:
        taken = course.run_seed(lab, seed, lambda _: None)
        assert taken.outcome.faults == drawn > 3
        record = lab.read_record()
        assert (record.cut, record.changed) == (frozenset(), {})
    assert taken.outcome.verdict == "passed"


@pytest.mark.parametrize(("asked", "has"), [("swarm", "swarm"), (None, RING.overlay)])
def test_the_lab_of_a_seed_has_the_overlay_asked_for_else_its_topologys(asked: str | None, has: str) -> None:
    found = explored("true", "", overlay=asked)
    with seed_labs.lab_of(SeedOfWork(number=1, exploration=found), "ring", lambda _: None) as lab:
        joined = overlays.joined_overlay(lab)
    assert joined is not None and joined.name == has


def test_a_seed_that_is_taken_again_and_again_has_forks_of_one_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    forked: list[tuple[str, int]] = []

    def fork(origin: labs.Lab, name: str, seed: int = 0) -> labs.Lab:
        forked.append((origin.name, seed))
        return labs.up(RING, ON, name, lambda _: None)

    monkeypatch.setattr(tc_hosts.TcHosts, "fork", lambda *_: None, raising=False)
    monkeypatch.setattr(labs, "fork", fork)
    seed = SeedOfWork(number=5, exploration=explored("true", ""))
    for _ in range(2):
        with seed_labs.lab_of(seed, "job-6f02ab-000005-here-1", lambda _: None, again=True):
            assert len(labs.all_labs()) == 2
        assert [lab.name for lab in labs.all_labs()] == ["job-6f02ab-origin-here-1"]
    assert forked == 2 * [("job-6f02ab-origin-here-1", 0)]
    seed_labs.end_origins()
    assert not labs.all_labs()


def test_a_test_that_does_not_end_hangs(tmp_path: Path) -> None:
    found = explored("sleep 600", longest_s=1.0)
    began_s = time.monotonic()
    taken = course.take(SeedOfWork(number=1, exploration=found), "ring", lambda _: None)
    assert (taken.outcome.verdict, taken.outcome.code) == ("hung", None)
    assert taken.outcome.detail == "did not end in 1 s of the lab's time"
    assert time.monotonic() - began_s < 30


def test_the_end_of_the_test_ends_the_faults(tmp_path: Path) -> None:
    found = explored("exit 0", FAULTS.replace("length: 2s", "length: 10min"))
    began_s = time.monotonic()
    taken = course.take(SeedOfWork(number=1, exploration=found), "ring", lambda _: None)
    assert taken.outcome.verdict == "passed"
    assert time.monotonic() - began_s < 30


def test_with_only_some_faults_the_others_do_not_come(tmp_path: Path) -> None:
    found = explored("sleep 1")
    taken = course.take(SeedOfWork(number=2, exploration=found, only=Reduced(faults=(2,))), "ring", lambda _: None)
    assert {entry["number"] for entry in timeline.read(taken.timeline) if "number" in entry} == {2}


def test_a_replay_that_stops_leaves_the_lab(tmp_path: Path) -> None:
    found = explored("sleep 600", "faults: {partition: {every: 100ms, for: 10s}, length: 1min}", longest_s=2.0)
    place = folder.create(tmp_path, found, datetime.now(UTC))
    exploration.run(place, gate.own(found.model_copy(update={"last": 1})), None, Watcher())
    again = replaying.replay(place, gate.own(found), 1, stop=Stop(1.0), kept=True, only=None, say=lambda _: None)
    lab = labs.open_lab(again.lab)
    try:
        assert lab.read_record().cut, "the partition lasts"
    finally:
        labs.down(lab)


def test_a_seed_that_was_not_taken_is_refused(tmp_path: Path) -> None:
    found = explored("true")
    place = folder.create(tmp_path, found, datetime.now(UTC))
    with pytest.raises(InputError, match="seed 2 has not been taken yet"):
        replaying.find_outcome(place, found, 2)
    with pytest.raises(InputError, match="seed 9 is none of its seeds, 1 to 3"):
        replaying.find_outcome(place, found, 9)


@pytest.mark.parametrize("kind", ["kill", "pause", "clock-skew", "clock-rate", "disk-full"])
def test_what_would_befall_the_machine_is_told_of_beforehand(kind: str) -> None:
    """These hosts have its kernel, and so its clock and its disk."""
    with pytest.raises(EnvironmentLacks, match=f"no power, clock or disk of their own: leave out {kind}"):
        explored("true", f"faults: {{{kind}: {{every: 1s, for: 1s}}, length: 1min}}")


def test_a_host_that_this_machine_was_too_slow_for_says_nothing_about_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended.note(tmp_path, "b", "by the clock: it has not ended its turn for 600 s")
    ended.note(tmp_path, "c", "by the clock: it asked for a time that has passed")
    why = attempt.slowness_reason(tmp_path, ["a", "b", "c"])
    assert why.startswith("b was ended by the clock: it has not ended its turn for 600 s")
    assert attempt.slowness_reason(tmp_path, ["a", "c"]) == ""
    monkeypatch.setattr(attempt, "slowness_reason", lambda *_: why)
    found = explored("exit 1", "")
    taken = course.take(SeedOfWork(number=1, exploration=found), "ring", lambda _: None)
    assert (taken.outcome.verdict, taken.outcome.detail) == ("error", why)


def test_a_fault_that_is_impossible_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    often = "{every: 100ms, for: 100ms, of: [a], program: no-such-one, signal: HUP}"
    found = explored("sleep 1", f"faults: {{kill-process: {often}, length: 1s}}")
    monkeypatch.setattr(tc_hosts.TcHosts, "run", refusing(tc_hosts.TcHosts.run))
    taken = course.take(SeedOfWork(number=1, exploration=found), "ring", lambda _: None)
    entries = timeline.read(taken.timeline)
    assert [entry["why"] for entry in entries if entry["event"] == "fault failed"] == ["a has no pkill"]


def refusing(run: Callable[..., CommandResult]) -> Callable[..., CommandResult]:
    """Hosts that run all but what sends signals."""

    def refuse(self: tc_hosts.TcHosts, host: str, argv: Sequence[str], **settings: Any) -> CommandResult:
        if "pkill" in " ".join(argv):
            raise HostFailed("a has no pkill")
        return run(self, host, argv, **settings)

    return refuse
