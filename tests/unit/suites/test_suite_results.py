"""What came of a suite's tests: kept, compared between several times, and written down."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minigts.errors import InputError
from minigts.session.plans import planned
from minigts.suites import comparison, folder, junit, on_worker, suite_run, table
from minigts.suites.outcome import CaseOutcome
from minigts.suites.performance import CaseReport
from minigts.suites.suite import Case, SuiteTest, Verdict
from minigts.suites.work import SuiteRun, SuiteSettings

PLAN = planned("name: suite\nhosts: {host: }\n", time="virtual", known_overlays=())
TESTS = (
    SuiteTest(name="tcp_a", cases=(Case(name="ipv4", argv=("a",)), Case(name="ipv6", argv=("b",)))),
    SuiteTest(name="tcp_b", cases=(Case(name="", argv=("c",)),)),
)
RUN = SuiteRun(
    minigts="1.0.0",
    settings=SuiteSettings(
        suite="packetdrill", directory="/linux/packetdrill", longest_s=300, plan=PLAN, provider="uml"
    ),
    tests=TESTS,
    times=2,
    started="2026-11-29T12:00:00+00:00",
)


def ended(
    test: str, case: str, time: int, verdict: Verdict = "passed", output: str = "sent\n", reason: str = ""
) -> CaseReport:
    outcome = CaseOutcome(
        test=test,
        case=case,
        time=time,
        verdict=verdict,
        reason=reason,
        code=0,
        lab_s=0.25,
        real_s=1.0,
        processor_s=0.5,
        start_processor_s=2.0,
        output_sha256=hashlib.sha256(output.encode()).hexdigest(),
        fingerprint="ab" * 16,
    )
    return CaseReport(outcome, output)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = folder.create(tmp_path, RUN, datetime(2026, 11, 29, tzinfo=UTC))
    folder.keep(made, [ended("tcp_a", "ipv4", 1), ended("tcp_a", "ipv6", 1, "failed", "sent\nlate\n", "t.pkt:2: late")])
    folder.keep(made, [ended("tcp_b", "", 1)])
    return made


def test_what_has_ended_is_not_run_again(place: Path) -> None:
    assert [(job.tests[0].name, job.turn) for job in suite_run.missing(place, RUN)] == [("tcp_a", 2), ("tcp_b", 2)]


def test_a_test_without_a_lab_is_run_again(place: Path) -> None:
    folder.keep(place, [ended("tcp_b", "", 1, "error")])
    assert ("tcp_b", 1) in [(job.tests[0].name, job.turn) for job in suite_run.missing(place, RUN)]


def test_a_line_that_was_cut_short_does_not_count(place: Path) -> None:
    with (place / folder.RESULTS).open("a") as file:
        file.write('{"test": "tcp_b", "ca')
    assert len(folder.outcomes(place)) == 3
    folder.keep(place, [ended("tcp_b", "", 2)])
    assert len(folder.outcomes(place)) == 4


def test_output_is_kept_once_where_it_is_the_same(place: Path) -> None:
    same, other = ended("tcp_a", "ipv4", 2), ended("tcp_a", "ipv6", 2, "passed", "sent\nin time\n")
    folder.keep(place, [same, other])
    assert sorted(path.name for path in (place / "output" / "tcp_a").iterdir()) == [
        *("ipv4-1.txt", "ipv6-1.txt", "ipv6-2.txt")
    ]
    assert folder.output(place, same.outcome) == "sent\n"
    assert folder.output(place, other.outcome) == "sent\nin time\n"


def test_a_verdict_that_changes_is_told_with_the_first_line_that_differs(place: Path) -> None:
    folder.keep(place, [ended("tcp_a", "ipv4", 2), ended("tcp_a", "ipv6", 2, "passed", "sent\nin time\n")])
    folder.keep(place, [ended("tcp_b", "", 2)])
    cases = comparison.summaries(folder.outcomes(place))
    assert [case.first.name for case in cases] == ["tcp_a ipv4", "tcp_a ipv6", "tcp_b"]
    assert list(table.notable(cases, lambda outcome: folder.output(place, outcome))) == [
        "tcp_a ipv6: 1 × failed, 1 × passed: t.pkt:2: late",
        "tcp_a ipv6: line 2 of its output differs between the first and the 2. time:",
        "    late",
        "    in time",
    ]
    assert table.totals(cases) == "3 cases: 2 passed; in 2 times 1 changed their verdict, 1 their output"


def test_a_case_that_fails_each_time_has_not_changed(place: Path) -> None:
    folder.keep(place, [ended("tcp_a", "ipv6", 2, "failed", "sent\nlate\n", "t.pkt:2: late")])
    case = comparison.summaries(folder.outcomes(place))[1]
    assert not case.changes_verdict
    assert case.chosen.verdict == "failed"


def test_output_that_changes_is_amiss_where_that_is_asked_for(place: Path) -> None:
    folder.keep(place, [ended("tcp_a", "ipv4", 2, "passed", "other\n"), ended("tcp_b", "", 2)])
    changed, failed, same = comparison.summaries(folder.outcomes(place))
    assert [comparison.is_amiss(each, same_output=False) for each in (changed, failed, same)] == [False, True, False]
    assert [comparison.is_amiss(each, same_output=True) for each in (changed, failed, same)] == [True, True, False]


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        ("a\nb\n", "a\nb\n", None),
        ("a\nb\n", "a\nc\n", (2, "b", "c")),
        ("a\n", "a\nb\n", (2, "", "b")),
        ("", "a\n", (1, "", "a")),
    ],
)
def test_the_first_difference_of_two_outputs(one: str, other: str, line: tuple[int, str, str] | None) -> None:
    assert comparison.first_difference(one, other) == line


def test_junit_counts_and_shows_what_failed(place: Path) -> None:
    folder.keep(place, [ended("tcp_b", "", 1, "skipped", "", "needs \x1b[1mgre")])
    text = junit.text_of("packetdrill", comparison.summaries(folder.outcomes(place)), lambda _: "the output\x07")
    suite = ElementTree.fromstring(text)[0]
    assert suite.attrib == {"name": "packetdrill", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [case.get("name") for case in suite] == ["ipv4", "ipv6", "tcp_b"]
    failure, skipped = suite[1][0], suite[2][0]
    assert (failure.tag, failure.get("message"), failure.text) == ("failure", "t.pkt:2: late", "the output\\x07")
    assert (skipped.tag, skipped.get("message")) == ("skipped", "needs \\x1b[1mgre")


def test_the_page_has_a_row_for_each_case(place: Path) -> None:
    suite_run.write_pages(place, RUN, place / "more.xml")
    page = (place / folder.TABLE).read_text()
    assert "| tcp_a | ipv6 | failed | 0.25 s | 1 s | 0.50 s | abababababab |" in page
    assert (
        "3 cases: 2 passed, 1 failed; processors: 1.5 s in cases, 6.0 s in starts of labs; the labs' clocks: 0.8 s."
        in page
    )
    assert (place / "more.xml").read_text() == (place / folder.JUNIT).read_text()


def test_a_run_is_continued_with_the_same_settings_only() -> None:
    suite_run.require_equal(RUN, RUN.model_copy(update={"started": "later", "minigts": "1.0.1"}))
    with pytest.raises(InputError, match="the folder's run has other times"):
        suite_run.require_equal(RUN, RUN.model_copy(update={"times": 3}))


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no folder of `minigts suite run`: it has no suite\.json"):
        folder.read(tmp_path)


def test_each_test_runs_so_often_at_each_load() -> None:
    run = RUN.model_copy(update={"times": 2, "loads": (0, 8), "tests": TESTS[1:]})
    assert [(job.number, job.turn, job.load) for job in run.jobs()] == [(0, 1, 0), (1, 2, 0), (2, 3, 8), (3, 4, 8)]


def test_the_tests_within_cases_are_counted() -> None:
    report = ended("mptcp", "", 1)
    within = report.outcome.model_copy(update={"parts": {"passed": 3, "skipped": 1}})
    cases = comparison.summaries([within, ended("tcp_b", "", 1).outcome])
    assert table.totals(cases) == "2 cases: 2 passed (within them 3 passed, 1 skipped)"
    assert "| mptcp |  | passed (3 passed, 1 skipped) |" in table.page(RUN, cases, lambda _: "")


def test_frames_are_kept_beside_the_output(tmp_path: Path) -> None:
    made = folder.create(tmp_path, RUN, datetime(2026, 11, 29, tzinfo=UTC))
    report = ended("tcp_a", "ipv4", 2)._replace(capture=b"\xd4\xc3")
    folder.keep(made, on_worker.unpack(on_worker.pack([report])))
    assert (made / "output" / "tcp_a" / "ipv4-2.pcap").read_bytes() == b"\xd4\xc3"
    assert [path.name for path in made.rglob("*.pcap")] == ["ipv4-2.pcap"]


def test_several_tests_share_a_lab_where_that_is_asked_for() -> None:
    jobs = RUN.model_copy(update={"in_a_lab": 2}).jobs()
    assert [(job.name, job.size, job.turn) for job in jobs] == [
        ("tcp_a and 1 more, time 1", 3, 1),
        ("tcp_a and 1 more, time 2", 3, 2),
    ]
    assert [job.name for job in RUN.jobs()] == ["tcp_a, time 1", "tcp_b, time 1", "tcp_a, time 2", "tcp_b, time 2"]
