"""What may be asked of a suite, and how a wrong request is refused before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.machine import proc
from minigts.suites import performance, registry, suite_run
from minigts.suites.suite import Suite, SuiteOptions
from minigts.suites.suite_run import SuiteRequest

RUNNER = '[ipv4]="--ip_version=ipv4"\n ip_versions="ipv4"\n'


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "ksft_runner.sh").write_text(RUNNER)
    (tmp_path / "tcp_a.pkt").write_text("0 `true`\n")
    return tmp_path


def refusal(request: SuiteRequest) -> str:
    with pytest.raises(InputError) as caught:
        suite_run.check_request(request, lambda _: None)
    return str(caught.value)


def test_an_unknown_suite_lists_the_known_ones(directory: Path) -> None:
    assert refusal(SuiteRequest("packetdril", directory)) == (
        f"no suite 'packetdril'; there are {', '.join(registry.SUITES)}; did you mean 'packetdrill'?"
    )


def test_a_directory_that_is_none_says_what_the_suite_wants(directory: Path) -> None:
    assert "no such directory; the suite wants Linux's tools/testing" in refusal(
        SuiteRequest("packetdrill", directory / "x")
    )


def test_a_pattern_without_a_test_is_refused(directory: Path) -> None:
    said = refusal(SuiteRequest("packetdrill", directory, only=["tcp_b*"]))
    assert said == "--only tcp_b*: none of the 1 tests of packetdrill has such a name"


def test_a_program_that_is_not_there_is_named(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(directory))
    assert "there is no program packetdrill here; name it with --program PATH" in refusal(
        SuiteRequest("packetdrill", directory)
    )
    assert "no such file; it has to be the program packetdrill" in refusal(
        SuiteRequest("packetdrill", directory, program=directory / "none")
    )


@pytest.mark.parametrize("suite", registry.SUITES.values(), ids=list(registry.SUITES))
def test_a_lab_has_the_memory_and_the_packages_of_its_suite(suite: Suite) -> None:
    request = SuiteRequest(suite.name, Path(), time="virtual", packages=["hping3", *suite.packages])
    [host] = suite_run.plan_of(suite, request).hosts
    assert host.memory_mb in (int(suite.memory[:-2]), 1024 * int(suite.memory[:-2]))
    assert host.software is not None
    assert [package.name for package in host.software.packages] == [*suite.packages, "hping3"]


def test_a_pattern_with_a_blank_chooses_cases(directory: Path) -> None:
    (directory / "ksft_runner.sh").write_text('[ipv4]="-4"\n[ipv6]="-6"\n ip_versions="ipv4 ipv6"\n')
    (directory / "tcp_b.pkt").write_text("0 `true`\n")
    suite = registry.find("packetdrill")
    tests = suite.tests(directory, SuiteOptions())
    for only, expected in (
        ([], [("tcp_a", 2), ("tcp_b", 2)]),
        (["tcp_*"], [("tcp_a", 2), ("tcp_b", 2)]),
        (["tcp_* ipv6"], [("tcp_a", 1), ("tcp_b", 1)]),
        (["* ipv4", "tcp_b"], [("tcp_a", 1), ("tcp_b", 2)]),
    ):
        found = suite_run.choose(suite, tests, only)
        assert [(test.name, len(test.cases)) for test in found] == expected
    assert "--only tcp_a ipv5: none of the 2 tests" in refusal(
        SuiteRequest("packetdrill", directory, program=directory / "tcp_a.pkt", only=["tcp_a ipv5"])
    )


@pytest.mark.parametrize("count", [0, 2])
def test_programs_that_keep_processors_busy_end_with_their_context(count: int) -> None:
    def children() -> set[int]:
        return set(proc.family([os.getpid()]))

    before = children()
    with suite_run.busy_processors(count):
        assert len(children() - before) == count
    assert children() == before


def test_a_process_that_has_ended_counts_once_whether_or_not_somebody_has_waited_for_it() -> None:
    """The kernels of a lab that was taken down are waited for while the next lab runs."""
    begun_s = performance.processor_s(())
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    with subprocess.Popen([sys.executable, "-ISc", busy]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended_s = performance.processor_s(())
    assert ended_s - begun_s > 0.4
    assert performance.processor_s(()) - ended_s < 0.3


def test_a_tolerance_that_is_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="tolerance_us"):
        SuiteOptions(tolerance_us=0)
