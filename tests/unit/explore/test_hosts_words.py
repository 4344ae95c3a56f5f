"""Lines of hosts' logs get the lab's time, whatever was done to the clock that they name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from minigts.explore import folder, host_logs, stamps, timeline
from minigts.explore.faults import Fault
from minigts.explore.host_logs import Period
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program
from minigts.explore.work import Exploration
from minigts.lab.events import Event
from minigts.providers.uml.clock.process import EPOCH_NS
from minigts.topology.plan import reseed
from minigts.topology.read.load import parse

PLAN = parse("name: pair\npair: {hosts: [a, b], link: {rtt: 2ms}}\n", "p.yaml", time="virtual")
SEED = reseed.replicate(PLAN, 3)
PHASE_S = reseed.phases_s(SEED)["a"]
AFTER_5_S = EPOCH_NS + 5_123_000_000


@pytest.mark.parametrize(
    ("line", "found_ns"),
    [
        ("2026-01-01T00:00:05.123Z mark", AFTER_5_S),
        ('{"level":"info","ts":"2026-01-01T00:00:05.123000Z","msg":"became leader"}', AFTER_5_S),
        ('time="2026-01-01T00:00:05.123000000Z" level=warning msg="no route"', AFTER_5_S),
        ('{"log":"at 2001-01-01 00:00:00\\n","stream":"stderr","time":"2026-01-01T00:00:05.123Z"}', AFTER_5_S),
        ("2026-01-01T09:00:05.123+09:00 mark", AFTER_5_S),
        ("2025-12-31 19:00:05,123 -0500 mark", AFTER_5_S),
        ("2026-01-01 00:00:05.123 UTC [71] LOG:  checkpoint starting", AFTER_5_S),
        ("2026/01/01 00:00:05 OSPF: [EC 1] neighbour is gone", EPOCH_NS + 5 * 10**9),
        ("157:M 01 Jan 2026 00:00:05.123 * Synchronization succeeded", AFTER_5_S),
        ("I0101 00:00:05.123000      71 kubelet.go:1] started", AFTER_5_S),
        ('10.255.0.1 - - [01/Jan/2026:00:00:05 +0000] "GET / HTTP/1.1" 200', EPOCH_NS + 5 * 10**9),
        ("Jan  1 00:00:05 a sshd[71]: gone", EPOCH_NS + 5 * 10**9),
        ("2026-01-01T00:00:05.123456789Z mark", EPOCH_NS + 5_123_456_789),
        ("Traceback (most recent call last):", None),
        ("2026-13-01T00:00:05Z is no day", None),
        ("12345-01-01 00:00:05 is a number", None),
        (" " * stamps.FAR + "2026-01-01T00:00:05Z", None),
    ],
)
def test_a_line_has_its_time_in_the_forms_that_programs_write(line: str, found_ns: int | None) -> None:
    assert stamps.time_of_day_ns(line) == found_ns


def said(
    logs: dict[str, str], happened: list[Event], *, skew: tuple[float, float, float] | None = None
) -> list[tuple[float, str, str]]:
    """The lines of host a in a course from 1 s to 61 s of the lab; `skew`: a step's beginning, end and size."""
    period = Period(10**9, 61 * 10**9, EPOCH_NS)
    drawn, played = [], list[timeline.Entry]()
    if skew is not None:
        at_s, end_s, by_s = skew
        drawn.append(Fault(number=1, kind="clock-skew", at_s=at_s, for_s=end_s - at_s, machines=("a",), amount=by_s))
        played += [{"at_s": at_s, "event": "fault", "number": 1}, {"at_s": end_s, "event": "fault over", "number": 1}]
    of = host_logs.clocks(SEED, happened, drawn, played, period)
    entries = host_logs.entries({"a": logs}, of, period)
    assert {entry["event"] for entry in entries} <= {timeline.SAID}
    return [(float(str(each["at_s"])), str(each["log"]), str(each["text"])) for each in entries]


def stamped(lab_s: float, words: str, behind_s: float) -> str:
    """A program's line, as of a host whose time of day is so far behind the lab's."""
    moment = datetime.fromtimestamp(EPOCH_NS / 1e9 + lab_s - behind_s, UTC)
    return f"{moment.isoformat(timespec='microseconds')} {words}\n"


def times(found: list[tuple[float, str, str]]) -> dict[str, float]:
    return {text.split()[-1]: at_s for at_s, _, text in found}


def test_phase_and_pauses_are_taken_out() -> None:
    log = stamped(5, "before", PHASE_S) + stamped(20, "after", PHASE_S + 3)
    happened: list[Event] = [
        {"event": "paused", "host": "a", "lab_s": 10.0},
        {"event": "resumed", "host": "a", "lab_s": 13.0},
    ]
    assert times(said({"mine.log": log}, happened)) == pytest.approx({"before": 4, "after": 19}, abs=2e-6)


def test_a_kernel_that_was_started_later_has_no_phase() -> None:
    log = stamped(5, "before", PHASE_S) + stamped(20, "after", 0)
    happened: list[Event] = [
        {"event": "killed", "host": "a", "lab_s": 10.0},
        {"event": "started", "host": "a", "lab_s": 12.0},
    ]
    assert times(said({"mine.log": log}, happened)) == pytest.approx({"before": 4, "after": 19}, abs=2e-6)


@pytest.mark.parametrize(("by_s", "early_s"), [(4.0, 11), (60.0, 11), (-4.0, 7)])
def test_a_clock_that_was_stepped_is_known(by_s: float, early_s: float) -> None:
    """A clock that was stepped back shows a time twice; then the earlier one is taken."""
    log = (
        stamped(5, "before", PHASE_S)
        + stamped(12, "early", PHASE_S - by_s)
        + stamped(19, "late", PHASE_S - by_s)
        + stamped(22, "after", PHASE_S)
    )
    expected = {"before": 4, "early": early_s, "late": 18, "after": 21}
    assert times(said({"mine.log": log}, [], skew=(10.0, 20.0, by_s))) == pytest.approx(expected, abs=2e-6)


def test_lines_without_a_time_belong_to_the_one_before() -> None:
    log = "no time yet\n" + stamped(5, "it failed", PHASE_S) + "Traceback:\n  at line 3\n" + stamped(70, "too late", 0)
    found = said({"mine.log": log}, [])
    assert [text.split(" ", 1)[-1] for _, _, text in found] == ["it failed", "Traceback:", "line 3"]
    assert len({at_s for at_s, _, _ in found}) == 1


def test_a_containers_line_is_what_it_has_printed() -> None:
    log = '{"log":"order 17 is lost\\n","stream":"stderr","time":"2026-01-01T00:00:05.000Z"}\n{"log":3\n'
    found = said({"container-shop.log": log}, [])
    assert [text for _, _, text in found] == ["order 17 is lost", '{"log":3']


def test_of_lines_that_are_alike_the_first_are_shown_and_the_others_counted() -> None:
    log = "".join(stamped(5 + number, f"request {number} was slow", PHASE_S) for number in range(20))
    found = said({"mine.log": log}, [])
    assert len(found) == host_logs.ALIKE
    assert found[-1][2].endswith("request 2 was slow (and 17 more like it)")


def test_a_kernel_tells_of_each_of_its_starts_without_the_boots() -> None:
    console = (
        "[    0.000000] check_one_sigio failed, errno = 13\n"
        "[    4.000000] first\n"
        "minigts: agent is here\n"
        "[minigts has started the kernel anew]\n"
        "[    0.010000] check_one_sigio failed, errno = 13\n"
        "[    2.000000] second\n"
    )
    warnings = "[    0.010000] check_one_sigio failed, errno = 13\n[    2.000000] second\n[    3.000000] third\n"
    happened: list[Event] = [
        {"event": "killed", "host": "a", "lab_s": 10.0},
        {"event": "started", "host": "a", "lab_s": 12.0},
    ]
    logs = {"console.log": console, host_logs.WARNINGS: warnings, "dmesg.log": "[    9.000000] not a warning\n"}
    found = said(logs, happened)
    assert {log for _, log, _ in found} == {host_logs.KERNEL}
    assert times(found) == pytest.approx({"first": 3 + PHASE_S, "second": 13, "third": 14}, abs=2e-6)
    del logs[host_logs.WARNINGS]
    assert times(said(logs, happened)) == pytest.approx({"first": 3 + PHASE_S, "second": 13}, abs=2e-6)


def test_they_stand_in_the_time_line_for_people_alone(tmp_path: Path) -> None:
    exploration = Exploration(
        minigts="1", topology="pair", plan=PLAN, provider="uml", test=Program(words=("true",)), first=1, last=1,
        longest_s=1, started="2026-11-27T00:00:00+00:00",
    )  # fmt: skip
    place = folder.create(tmp_path, exploration, datetime(2026, 11, 27, tzinfo=UTC))
    played: list[timeline.Entry] = [
        {"at_s": 0.0, "event": timeline.BEGUN},
        {"at_s": 2.0, "event": "cut", "link": "a-b"},
        {"at_s": 3.0, "event": timeline.ENDED, "code": 1},
    ]
    words = {"at_s": 2.0, "event": timeline.SAID, "host": "a", "log": "mine", "text": "the link is gone"}
    files = {timeline.FILE: timeline.text_of(played), host_logs.FILE: timeline.text_of([words])}
    folder.keep(place, Outcome(seed=1, verdict="failed"), files)
    assert (place / "failed" / "000001" / folder.TIMELINE_TEXT).read_text().splitlines() == [
        "    0.000000 s  test begun",
        "    2.000000 s  cut: a-b",
        "    2.000000 s    a mine: the link is gone",
        "    3.000000 s  test ended: code 1",
    ]
    assert timeline.SAID not in (place / "failed" / "000001" / timeline.FILE).read_text()
