"""What may be asked of a suite, and how a wrong request is refused before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.machine import proc
from minigts.suites import registry, suite_run
from minigts.suites.suite import SuiteOptions
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


def test_a_lab_has_the_memory_and_the_packages_of_its_suite() -> None:
    for suite in registry.SUITES.values():
        plan = suite_run.plan_of(suite, "virtual", None)
        [host] = plan.hosts
        assert f"{host.memory_mb}MB" == suite.memory
        assert tuple(host.software.packages if host.software else ()) == tuple(suite.packages)


@pytest.mark.parametrize("count", [0, 2])
def test_programs_that_keep_processors_busy_end_with_their_context(count: int) -> None:
    def children() -> set[int]:
        return set(proc.family([os.getpid()]))

    before = children()
    with suite_run.busy_processors(count):
        assert len(children() - before) == count
    assert children() == before


def test_a_tolerance_that_is_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="tolerance_us"):
        SuiteOptions(tolerance_us=0)
