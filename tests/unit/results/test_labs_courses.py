"""Where two courses part: by marks to an interval, by recordings to the event; and how a run's folder keeps them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.errors import InputError
from minigts.providers.course import (
    MARKS,
    NS_PER_S,
    RECORD,
    EventChain,
    HostCourse,
    RecordedCourse,
    Recording,
    course_request,
)
from minigts.results import course_difference, courses
from minigts.results.course_difference import difference_lines, interval, parting, run_differences
from minigts.results.courses import LabCourse, Phase
from minigts.results.schema import CourseFacts, Manifest

S = NS_PER_S
PING = "5210c94301025210c943000108004500005400074000400100000a0000010a00000208000000000700030000"


def digest(number: int) -> str:
    return f"{number:032x}"


def chain(hashes: dict[int, int], every_ns: int = S) -> EventChain:
    """A chain by its marks: at each moment, in seconds, the number that stands for its hash and its count then."""
    marks = tuple(f"{moment * S} {digest(value)} {value}" for moment, value in hashes.items())
    last = list(hashes.values())[-1] if hashes else 0
    return EventChain(hash=digest(last), count=last, every_ns=every_ns, marks=marks)


def course(
    fingerprint: int, recording: Recording | None = None, **hosts: tuple[EventChain, EventChain]
) -> RecordedCourse:
    """By each host what came from it, and to it."""
    found = tuple(HostCourse(name=name, from_=both[0], to=both[1]) for name, both in hosts.items())
    return RecordedCourse(now_ns=10 * S, fingerprint=digest(fingerprint), hosts=found, recording=recording)


QUIET = chain({})


def test_the_first_interval_is_that_of_the_host_which_parts_first() -> None:
    same = chain({1: 1, 2: 2, 5: 3})
    one = course(1, a=(same, QUIET), b=(chain({1: 1, 3: 2, 4: 4}), same))
    other = course(2, a=(chain({1: 1, 2: 2, 5: 9}), QUIET), b=(chain({1: 1, 3: 7, 4: 8}), same))
    found = interval(one, other)
    assert found is not None
    assert (found.from_ns, found.until_ns, found.chains) == (2 * S, 3 * S, (("b", "from"),))
    assert interval(other, one) == found
    assert interval(one, one) is None


def test_an_event_more_in_a_quiet_interval_is_found_there() -> None:
    one = course(1, a=(chain({1: 1, 9: 2}), QUIET))
    other = course(2, a=(chain({1: 1, 4: 5, 9: 6}), QUIET))
    found = interval(one, other)
    assert found is not None
    assert (found.from_ns, found.until_ns) == (3 * S, 4 * S)


def test_a_host_of_only_one_of_them_parts_at_its_first_event() -> None:
    found = interval(course(1, a=(QUIET, QUIET)), course(2, a=(QUIET, QUIET), b=(QUIET, chain({7: 1}))))
    assert found is not None
    assert (found.until_ns, found.chains) == (7 * S, (("b", "to"),))


def test_chains_that_have_been_thinned_are_compared_at_the_moments_that_both_know() -> None:
    fine = chain({1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6})
    coarse = chain({2: 2, 4: 4, 6: 7}, every_ns=2 * S)
    found = interval(course(1, a=(fine, QUIET)), course(2, a=(coarse, QUIET)))
    assert found is not None
    assert (found.from_ns, found.until_ns) == (4 * S, 6 * S)


@given(
    st.lists(st.integers(0, 40), max_size=30),
    st.integers(0, 39),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4]),
)
def test_the_interval_has_the_moment_in_which_they_part(seconds: list[int], at: int, one: int, other: int) -> None:
    """Events at these seconds, and in one of the two courses another one at the second `at`."""

    def of(moments: Sequence[tuple[int, int]], every: int) -> EventChain:
        marks: dict[int, tuple[int, int]] = {}
        state, count = 1, 0
        for moment, kind in sorted(moments):
            state, count = hash((state, moment, kind)) % 2**128, count + 1
            marks[(moment // every + 1) * every] = (state, count)
        lines = tuple(f"{until * S} {digest(value)} {number}" for until, (value, number) in marks.items())
        return EventChain(hash=digest(state if count else 0), count=count, every_ns=every * S, marks=lines)

    events = [(second, 0) for second in seconds]
    found = interval(
        course(1, a=(of(events, one), QUIET)),
        course(2, a=(of([*events, (at, 1)], other), QUIET)),
    )
    assert found is not None
    assert found.from_ns <= at * S < found.until_ns
    assert found.until_ns - found.from_ns == max(one, other) * S


def recorded(path: Path, lines: Sequence[str], head: str = "minigts course 1 0 18446744073709551615") -> Path:
    path.write_text("".join(f"{line}\n" for line in (head, *lines)))
    return path


def sent(moment_ns: int, host: int = 0, frame: str = PING, drawn: int = 3) -> str:
    return f"{moment_ns} {host} sent 0 98 {moment_ns} {moment_ns + 5} 0 0 {drawn} {digest(len(frame))} {frame}"


WHOLE = Recording()


def lab(recording: Recording | None = WHOLE) -> LabCourse:
    both = course(1, recording, a=(QUIET, QUIET), b=(QUIET, QUIET))
    return LabCourse(course=both, phases=(Phase(at_s=1, doing="sample x"), Phase(at_s=2, doing="sample y")))


def first(tmp_path: Path, one: Sequence[str], other: Sequence[str], **of: Any) -> course_difference.Parting | None:
    files = recorded(tmp_path / "one", one), recorded(tmp_path / "other", other)
    return parting(lab(), lab(**of), files)


def test_the_first_event_is_that_of_the_earliest_chain_whatever_the_order_of_the_files(tmp_path: Path) -> None:
    one = [sent(10), "15 1 got 0 98 0 0 1", sent(30), "35 1 got 0 98 0 0 2"]
    other = ["15 1 got 0 98 0 0 1", "29 1 got 0 98 0 0 2", sent(10), sent(24)]
    found = first(tmp_path, one, other)
    assert found is not None
    assert (found.moment_ns, found.host, found.later) == (24, "a", ("b at 0.000000029 s",))
    assert found.events == (
        "at 0.00000003 s a eth1 sent ICMP echo request 10.0.0.1 > 10.0.0.2 id 7 seq 3 (98 bytes), "
        "which arrives at 0.000000035 s; random numbers 0000000000000003",
        "at 0.000000024 s a eth1 sent ICMP echo request 10.0.0.1 > 10.0.0.2 id 7 seq 3 (98 bytes), "
        "which arrives at 0.000000029 s; random numbers 0000000000000003",
    )


def test_of_two_long_commands_the_place_is_shown_where_they_differ(tmp_path: Path) -> None:
    def command(word: str) -> str:
        text = f'{{"argv": ["sh", "-c", "{"x" * 500}", "{word}"]}}'
        return f"20 0 input {len(text)} {digest(len(word))} {(bytes(4) + bytes([1]) + bytes(4) + text.encode()).hex()}"

    found = first(tmp_path, [command("one")], [command("other")])
    assert found is not None
    assert [event.partition("…")[2].lstrip("x") for event in found.events] == ['", "one"]}', '", "other"]}']
    assert found.events[0].startswith("at 0.00000002 s a was sent by minigts: command: …xx")


def test_an_event_that_only_one_has_stands_beside_nothing(tmp_path: Path) -> None:
    found = first(tmp_path, [sent(10), "20 1 ended"], [sent(10)])
    assert found is not None
    assert (found.moment_ns, found.host, found.events) == (20, "b", ("at 0.00000002 s b ended", "nothing more"))


def test_what_a_host_did_is_named_before_what_came_to_another_at_the_same_moment(tmp_path: Path) -> None:
    one, other = (
        ["20 0 got 0 98 1 0 1", "20 1 output 2 " + digest(1) + " 6869"],
        ["20 1 output 2 " + digest(2) + " 686a"],
    )
    found = first(tmp_path, one, other)
    assert found is not None
    assert (found.host, found.events[1]) == ("b", "at 0.00000002 s b sent to minigts: hj")


def test_nothing_is_said_of_what_one_recording_does_not_have(tmp_path: Path) -> None:
    short = Recording(whole_before_ns=30, why="it is as long as a recording may be")
    assert first(tmp_path, [sent(10), sent(40)], [sent(10)], recording=short) is None
    found = first(tmp_path, [sent(10), sent(29)], [sent(10)], recording=short)
    assert found is not None
    later = recorded(tmp_path / "later", [sent(40)], "minigts course 1 40 50")
    whole = recorded(tmp_path / "whole", [sent(10), sent(40), sent(60)])
    assert parting(lab(), lab(), (whole, later)) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "10 0 sent 0 98",
        "10 0 flew",
        "ten 0 ended",
        "10 0 got 0 98 0 0",
        "10 -1 ended",
        sent(10)[: -len(PING) - 1],
    ],
)
def test_a_file_that_is_no_recording_is_one_error_with_its_line(tmp_path: Path, line: str) -> None:
    good, bad = recorded(tmp_path / "good", [sent(10)]), recorded(tmp_path / "bad", [sent(10), line, sent(12)])
    with pytest.raises(InputError, match=r"bad:3: "):
        parting(lab(), lab(), (good, bad))
    with pytest.raises(InputError, match=r"empty:1: "):
        parting(lab(), lab(), (good, recorded(tmp_path / "empty", [], "something else")))


def of_two(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs whose labs part between 2 and 3 s, on b."""
    folders = tmp_path / "one", tmp_path / "other"
    for number, folder in enumerate(folders, 1):
        folder.mkdir()
        (folder / "manifest.json").touch()
        marks = chain({1: 1, 3: 1 + number, 4: 3 + number})
        found = course(number, Recording(), a=(QUIET, QUIET), b=(marks, QUIET))
        phases = (Phase(at_s=0.5, doing="none.ping.a-b.r1"), Phase(at_s=3, doing="later"))
        courses.keep(folder, courses.next_name(folder), LabCourse(course=found, phases=phases))
    return folders


def test_what_is_said_names_the_interval_the_host_what_was_done_and_how_to_learn_more(tmp_path: Path) -> None:
    assert run_differences(*of_two(tmp_path)) == (
        "they part between 2 s and 3 s of the lab, in what came from b",
        "  then: none.ping.a-b.r1",
        f"  for the first event, run both with {RECORD}=2s..3s",
    )


def test_with_recordings_the_first_event_is_named(tmp_path: Path) -> None:
    folders = of_two(tmp_path)
    for moment, folder in zip((2_500_000_000, 2_400_000_000), folders, strict=True):
        recording = recorded(tmp_path / f"{folder.name}.recording", [sent(moment, 1)])
        courses.keep(folder, "lab-1", courses.read(folder, "lab-1"), recording)
    lines = run_differences(*folders)
    assert lines[0] == "they part at 2.4 s of the lab, on b; then: none.ping.a-b.r1"
    assert lines[1].startswith("  A: at 2.5 s b eth1 sent ICMP")
    assert lines[2].startswith("  B: at 2.4 s b eth1 sent ICMP")


def test_of_equal_runs_the_fingerprint_is_said_and_of_older_ones_nothing(tmp_path: Path) -> None:
    one, other = of_two(tmp_path)
    assert run_differences(one, one) == (f"the same, 4 events in 10 s of the lab: {digest(1)}",)
    old = tmp_path / "old"
    old.mkdir()
    (old / "manifest.json").touch()
    assert run_differences(old, old) == ()
    assert run_differences(old, other) == ("not compared: only one of the two has kept any",)


def test_of_several_labs_the_first_that_parts_is_told(tmp_path: Path) -> None:
    one, other = of_two(tmp_path)
    for folder in (one, other):
        courses.keep(folder, "lab-2", courses.read(one, "lab-1"))
    lines = run_differences(one, other)
    assert lines[0].startswith("lab-1: they part between 2 s and 3 s")
    assert lines[-1] == "  of 2 labs 1 have the same course in both"


def test_a_folders_labs_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for _ in range(11):
        courses.keep(tmp_path, courses.next_name(tmp_path), lab())
    assert courses.names(tmp_path) == [f"lab-{number}" for number in range(1, 12)]
    assert courses.read(tmp_path, "lab-11") == lab()
    assert next(iter(courses.files_of(tmp_path))) == "courses/lab-1.json"


@pytest.mark.parametrize("text", ["{}", "[]", '{"course": {"now_ns": -1}}', "nothing"])
def test_a_broken_course_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "courses").mkdir()
    (tmp_path / "courses" / "lab-1.json").write_text(text)
    with pytest.raises(InputError, match=r"lab-1\.json"):
        courses.read(tmp_path, "lab-1")


def test_a_manifest_has_an_entry_for_each_lab_and_older_ones_none() -> None:
    facts = lab().facts("lab-1")
    assert facts == CourseFacts(lab="lab-1", fingerprint=digest(1), seconds=10.0, events=0)
    again = facts.model_copy(update={"events": 5})
    other = facts.model_copy(update={"lab": "lab-2"})
    assert courses.add_course((facts, other), again) == (other, again)
    assert Manifest.model_fields["courses"].default == ()


def test_what_was_done_at_a_moment_is_the_last_step_before_it() -> None:
    told = [lab().doing(moment) for moment in (0, S, S + 1, 2 * S, 9 * S)]
    assert told == [courses.BEFORE, "sample x", "sample x", "sample y", "sample y"]


@pytest.mark.parametrize(
    ("text", "recorded_ns"),
    [
        ("", None),
        ("all", (0, 2**64 - 1)),
        ("3s..4.5s", (3 * S, 4_500_000_000)),
        ("..2s", (0, 2 * S)),
        ("2s..", (2 * S, 2**64 - 1)),
    ],
)
def test_what_is_recorded_is_said_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, recorded_ns: tuple[int, int] | None
) -> None:
    monkeypatch.setenv(RECORD, text)
    monkeypatch.setenv(MARKS, "100ms")
    assert course_request() == (S // 10, recorded_ns)


@pytest.mark.parametrize(
    ("name", "text"),
    [(RECORD, "yes"), (RECORD, "3..4"), (RECORD, "4s..3s"), (RECORD, "3s..3s"), (MARKS, "0s"), (MARKS, "often")],
)
def test_a_word_that_says_nothing_is_one_error(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(InputError, match=name):
        course_request()


def test_every_kind_of_event_has_words() -> None:
    lines = [
        *(f"10 0 {kind}" for kind in ("started", "ended", "paused", "resumed")),
        f"10 0 overloaded 1 98 {digest(1)} {PING}",
        f"10 0 set 1 {digest(1)} 7b7d",
        "10 0 refused 1 98 1 0 7",
        "10 0 got 1 98 9 0 7",
        f"10 0 input 20 {digest(1)} 000000010100000002" + b'{"argv": ["ls"]}\n'.hex(),
        f"10 0 output 20 {digest(1)} 000000010700000002" + b'{"code": 0}'.hex(),
        sent(10).replace(" 15 0 0 ", " 0 0 1 "),
        sent(10).replace(" 15 0 0 ", " 0 0 0 "),
    ]
    assert {line.split()[2].encode() for line in lines} == course_difference._WORDS.keys()
    hosts = course(1, a=(QUIET, QUIET), b=(QUIET, QUIET)).hosts
    found = [course_difference.event_line(line.encode(), hosts) for line in lines]
    assert len({*found}) == len(lines)
    assert found[6:10] == [
        "at 0.00000001 s a eth2 had no room for frame 7 of b eth1 (98 bytes)",
        "at 0.00000001 s a eth2 got frame 7 of host 9 eth1 (98 bytes)",
        'at 0.00000001 s a was sent by minigts: command: {"argv": ["ls"]} ',
        'at 0.00000001 s a sent to minigts: end of a command: {"code": 0}',
    ]
    assert "found the queue full" in found[10]
    assert "is lost" in found[11]


def test_what_is_told_of_a_course_that_went_on_longer_is_where_the_other_one_ended() -> None:
    short, long = chain({1: 1, 2: 2}), chain({1: 1, 2: 2, 8: 3})
    one, other = (LabCourse(course=course(number, a=(each, QUIET))) for number, each in enumerate((short, long)))
    assert next(itertools.islice(difference_lines(one, other, (None, None)), 1)) == (
        "they part between 7 s and 8 s of the lab, in what came from a"
    )
