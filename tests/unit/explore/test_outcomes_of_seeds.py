"""What came of seeds: verdicts, groups of failures, time lines, the folder that is written as they end, shrinking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.explore import course, folder, outcome, program, replaying, shrinking, timeline
from minigts.explore.attempt import SeedResult
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program
from minigts.explore.variables import FAILURES
from minigts.explore.work import Exploration, Reduced, SeedOfWork
from minigts.lab import events
from minigts.results import gate
from minigts.topology.read.load import parse

PAIR = parse("name: pair\npair: {link: {rtt: 2ms}}\n", "pair.yaml", time="virtual")
OF_PYTEST, COMMAND = Program(words=("test_x.py",)), Program(words=("./check.sh",))


@pytest.fixture
def exploration() -> Exploration:
    return Exploration(
        minigts="0", topology="pair", plan=PAIR, provider="uml", test=COMMAND, first=1, last=5, longest_s=60, started=""
    )


def test_a_command_that_fails_is_known_by_its_last_line(tmp_path: Path) -> None:
    (tmp_path / program.OUTPUT).write_text("begins\nlost 3 of 40 writes\n\n")
    verdict, why = outcome.judge_test(COMMAND, 7, tmp_path, "")
    assert (verdict, why) == ("failed", "ended with code 7: lost 3 of 40 writes")
    assert outcome.alike(why) == "ended with code #: lost # of # writes"
    assert outcome.judge_test(COMMAND, 0, tmp_path, "") == ("passed", "")
    assert outcome.judge_test(COMMAND, None, tmp_path, "did not end") == ("hung", "did not end")
    assert outcome.judge_test(COMMAND, None, tmp_path, "")[0] == "error"


def test_a_pytest_that_fails_is_known_by_its_tests(tmp_path: Path) -> None:
    first = {"test": "test_x.py::test_a", "why": "AssertionError: 2 are lost"}
    lines = [first, {"test": "t::b", "why": "KeyError: 'x'"}]
    (tmp_path / FAILURES).write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"test": "cut sh')
    verdict, why = outcome.judge_test(OF_PYTEST, 1, tmp_path, "")
    assert (verdict, why) == ("failed", "test_x.py::test_a: AssertionError: 2 are lost; t::b: KeyError: 'x'")
    assert outcome.judge_test(OF_PYTEST, 2, tmp_path, "")[0] == "error"  # it could not be read, or was interrupted


def test_a_seed_without_what_the_test_needs_is_vacuous(tmp_path: Path) -> None:
    assert outcome.judge_test(COMMAND, 125, tmp_path, "")[0] == "vacuous"
    needed = {"test": "t::a", "why": "NothingToJudge: only 2 writes", "vacuous": True}
    (tmp_path / FAILURES).write_text(json.dumps(needed) + "\n")
    assert outcome.judge_test(OF_PYTEST, 1, tmp_path, "") == ("vacuous", "t::a: NothingToJudge: only 2 writes")
    broken = {"test": "t::b", "why": "AssertionError: 1 is lost", "vacuous": False}
    (tmp_path / FAILURES).write_text(json.dumps(needed) + "\n" + json.dumps(broken) + "\n")
    assert outcome.judge_test(OF_PYTEST, 1, tmp_path, "") == ("failed", "t::b: AssertionError: 1 is lost")


def test_seeds_are_counted_by_verdict() -> None:
    found = [Outcome(seed=1, verdict="vacuous"), Outcome(seed=2, verdict="failed"), Outcome(seed=3, verdict="failed")]
    assert outcome.count_verdicts(found) == "3 seeds: 0 passed, 2 failed, 1 vacuous"
    assert outcome.count_verdicts([Outcome(seed=1, verdict="passed")]) == "1 seed: 1 passed"


def test_seeds_are_grouped_by_what_failed() -> None:
    found = [
        Outcome(seed=4, verdict="failed", why="# are lost", detail="3 are lost"),
        Outcome(seed=1, verdict="failed", why="# are lost", detail="1 are lost"),
        Outcome(seed=2, verdict="passed"),
        Outcome(seed=3, verdict="hung", why="did not end"),
    ]
    assert outcome.group_failures(found) == {("failed", "# are lost"): ["1", "4"], ("hung", "did not end"): ["3"]}


def test_numbers_do_not_part_what_is_alike() -> None:
    assert outcome.alike("at 0x7f3a, id 9c1185a5c5e9fc54, 12.5 s\nand\t3") == "at #, id #, # s and #"


def test_a_time_line_has_what_is_the_same_each_time(tmp_path: Path) -> None:
    events.note(tmp_path, [{"event": "up"}], 4.0)
    events.note(tmp_path, [{"event": "joined"}], 5.0000004)
    events.note(tmp_path, [{"event": timeline.BEGUN}], 5.0000004)
    events.note(tmp_path, [{"event": timeline.NOTE, "text": "mine"}, {"event": "cut", "link": "b"}], 7.25)
    events.note(tmp_path, [{"event": "cut", "link": "a"}], 7.25)
    events.note(tmp_path, [{"event": "note", "text": "after"}], 9.5)
    entries = timeline.lab_entries(tmp_path, 5.0000004, 9.0)
    text = timeline.text_of(entries)
    assert text.splitlines() == [
        '{"at_s": 0.0, "event": "test begun"}',
        '{"at_s": 2.25, "event": "cut", "link": "b"}',
        '{"at_s": 2.25, "event": "cut", "link": "a"}',
        '{"at_s": 2.25, "event": "note", "text": "mine"}',
    ]
    assert timeline.read(text) == entries
    assert [*timeline.entry_lines(entries)][1] == "    2.250000 s  cut: b"


def test_before_a_moment_is_what_came_earlier_without_the_tests_end() -> None:
    """Of a replay that stops at that moment, the end of the test is where it was stopped."""
    begun, cut = {"at_s": 0.0, "event": timeline.BEGUN}, {"at_s": 2.0, "event": "cut", "link": "a"}
    whole, ended = {"at_s": 4.0, "event": "whole", "link": "a"}, {"at_s": 3.0, "event": timeline.ENDED, "code": 1}
    assert timeline.entries_before([begun, cut, ended, whole], 4.0) == [begun, cut]
    assert timeline.entries_before([begun, cut, ended, whole], 4.5) == [begun, cut, whole]


def test_in_real_time_it_goes_by_this_machines_clock(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    events.note(tmp_path, [{"event": "note", "text": "now"}], None)
    (entry,) = timeline.lab_entries(tmp_path, before.replace(microsecond=0), datetime.now(UTC))
    assert (entry["event"], entry["text"]) == ("note", "now")


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ("a\nb\n", ""),
        ("a\nc\n", "line 2: b was recorded, c came now"),
        ("a\n", "line 2: only recorded is b"),
        ("a\nb\nd\n", "line 3: only now is d"),
    ],
)
def test_where_two_time_lines_part_is_said(after: str, says: str) -> None:
    assert timeline.first_difference("a\nb\n", after) == says


def test_a_seed_counts_once_its_line_is_written(tmp_path: Path, exploration: Exploration) -> None:
    place = folder.create(tmp_path, exploration, datetime(2026, 11, 27, tzinfo=UTC))
    assert place.name == "explore-pair-20261127-000000"
    assert folder.read(place) == exploration
    assert folder.missing(place, exploration) == [1, 2, 3, 4, 5]
    line = timeline.text_of([{"at_s": 1.5, "event": "cut", "link": "a"}])
    files = {timeline.FILE: line, "logs/a/console.log": "boots\n"}
    folder.keep(place, Outcome(seed=2, verdict="failed", why="x"), files)
    folder.keep(place, Outcome(seed=3, verdict="passed"), {})
    folder.keep(place, Outcome(seed=4, verdict="error", why="no lab"), {})
    with (place / folder.SEEDS).open("a") as file:
        file.write('{"seed": 5, "verdict": "pas')
    assert folder.missing(place, exploration) == [1, 4, 5]
    folder.keep(place, Outcome(seed=5, verdict="passed"), {})
    assert {seed: each.verdict for seed, each in folder.outcomes(place).items()} == {
        2: "failed",
        3: "passed",
        4: "error",
        5: "passed",
    }
    failed = place / "failed" / "000002"
    assert (failed / "timeline.txt").read_text() == "    1.500000 s  cut: a\n"
    assert (failed / "logs" / "a" / "console.log").read_text() == "boots\n"
    assert folder.recorded_files(place, 2) == {timeline.FILE: line}
    assert not (place / "failed" / "000003").exists()


def test_what_a_seed_was_shrunk_to_is_kept(tmp_path: Path, exploration: Exploration) -> None:
    place = folder.create(tmp_path, exploration, datetime.now(UTC))
    folder.keep(place, Outcome(seed=2, verdict="failed", why="x"), {timeline.FILE: ""})
    assert folder.shrunk(place, 2) is None
    left = Reduced(faults=(1, 4), for_s={1: 0.5, 4: 2.25}, without=(2,))
    folder.keep_shrunk(place, 2, left)
    assert folder.shrunk(place, 2) == left
    (folder.seed_folder(place, 2) / folder.SHRUNK).write_text('{"faults": [1, 4]}')
    assert folder.shrunk(place, 2) == Reduced(faults=(1, 4))


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no folder of `minigts explore`"):
        folder.read(tmp_path)
    (tmp_path / folder.EXPLORATION).write_text('{"format": 9}')
    with pytest.raises(InputError, match=r"explore.json:1: format: "):
        folder.read(tmp_path)


@pytest.mark.parametrize(
    ("needed", "left"), [({3}, (3,)), ({2, 5}, (2, 5)), (set(), ()), ({1, 2, 3, 4, 5}, (1, 2, 3, 4, 5))]
)
def test_only_the_faults_that_are_needed_are_left(needed: set[int], left: tuple[int, ...]) -> None:
    tried = []

    def fails(only: tuple[int, ...]) -> bool:
        tried.append(only)
        return needed <= {*only}

    assert shrinking.shrunk((1, 2, 3, 4, 5), fails) == left
    assert len(tried) <= 1 + 5 * 2


def test_of_two_that_suffice_alone_one_is_left() -> None:
    assert shrinking.shrunk((1, 2, 3), lambda only: 1 in only or 3 in only) == (1,)


def test_faults_are_made_shorter_as_long_as_it_fails() -> None:
    tried: list[dict[int, float]] = []

    def fails(lasting: Mapping[int, float]) -> bool:
        tried.append(dict(lasting))
        return lasting[1] >= 1 and lasting[3] >= 0.9

    assert shrinking.shorten_faults({1: 6.0, 3: 0.9}, fails) == {1: 1.5, 3: 0.9}
    assert tried == [{1: 6.0, 3: 0.45}, {1: 3.0, 3: 0.9}, {1: 1.5, 3: 0.9}, {1: 0.75, 3: 0.9}]
    assert shrinking.shorten_faults({}, fails) == {}
    assert shrinking.shorten_faults({1: 0.2}, lambda _: True) == {1: 0.2}


def test_a_seed_is_taken_with_faults_that_last_as_long_as_it_says(exploration: Exploration) -> None:
    faults = "faults: {partition: {every: 5s, for: 1s to 3s}, length: 1min}\n"
    exploration = exploration.model_copy(update={"faults": faults})
    first, second, *_ = exploration.draw_faults(7)
    only = Reduced(faults=(second.number,), for_s={second.number: 0.25})
    job = SeedOfWork(number=7, exploration=exploration, only=only)
    assert job.faults == (second.model_copy(update={"for_s": 0.25}),)
    assert SeedOfWork(number=7, exploration=exploration).faults[0] == first


def test_shrinking_a_seed_leaves_faults_out_and_makes_them_shorter(
    tmp_path: Path, exploration: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = "faults: {partition: {every: 20s, for: 4s}, length: 2min}\n"
    exploration = exploration.model_copy(update={"faults": faults})
    first, second, *_ = exploration.draw_faults(3)
    failed = Outcome(seed=3, verdict="failed", why="# are lost")

    def take(job: SeedOfWork, *_: object, again: bool) -> SeedResult:
        """Fails if the second fault lasts a second or more; in another way if the first is played alone."""
        lasting = {fault.number: fault.for_s for fault in job.faults}
        if lasting.get(second.number, 0) >= 1:
            return SeedResult(failed, "", {}, course=None)
        other = {"verdict": "failed", "why": "it hangs"} if lasting.keys() == {first.number} else {"verdict": "passed"}
        return SeedResult(failed.model_copy(update=other), "", {}, course=None)

    monkeypatch.setattr(course, "take", take)
    place = folder.create(tmp_path, exploration, datetime.now(UTC))
    folder.keep(place, failed, {timeline.FILE: ""})
    said: list[str] = []
    left = replaying.shrink(place, gate.own(exploration), 3, said.append)
    assert left == [f"{second.at_s:.6f} s: {second.in_words}, for 1 s"]
    assert folder.shrunk(place, 3) == Reduced(faults=(second.number,), for_s={second.number: 1.0})
    assert said[-1] == f"try {len(said)}: faults {second.number} for 0.5 s of {len(exploration.draw_faults(3))}: passed"


def test_shrinking_a_seed_leaves_out_acts_of_its_test(
    tmp_path: Path, exploration: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Outcome(seed=3, verdict="failed", why="# are lost")
    tried: list[tuple[int, ...]] = []

    def take(job: SeedOfWork, *_: object, again: bool) -> SeedResult:
        """Fails as long as the second act is done."""
        tried.append(job.without)
        came = failed if 2 not in job.without else failed.model_copy(update={"verdict": "passed"})
        return SeedResult(came, "", {}, course=None)

    monkeypatch.setattr(course, "take", take)
    place = folder.create(tmp_path, exploration, datetime.now(UTC))
    acts = [{"at_s": 1.0 * n, "event": timeline.ACT, "number": n, "what": f"kill nats on {n}"} for n in (1, 2, 3)]
    folder.keep(place, failed, {timeline.FILE: timeline.text_of(acts)})
    said: list[str] = []
    assert replaying.shrink(place, gate.own(exploration), 3, said.append) == ["act 2: kill nats on 2"]
    assert folder.shrunk(place, 3) == Reduced(faults=(), without=(1, 3))
    assert said[1] == "try 2: faults none of 0, acts 1, 2 of 3: it fails in the same way"
    assert tried[0] == (1, 2, 3)
