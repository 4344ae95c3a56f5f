"""Packetdrill's scripts: which there are, what runs them, how their end is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.suites.packetdrill import Packetdrill
from minigts.suites.suite import SuiteOptions

RUNNER = """#!/bin/bash
declare -A ip_args=(
	[ipv4]="--ip_version=ipv4
		--local_ip=192.168.0.1
		-D KEY=4"
	[ipv4-mapped-ipv6]="--ip_version=ipv4-mapped-ipv6"
	[ipv6]="--ip_version=ipv6 --mtu=1520"
)
ip_versions=$(grep -E '^--ip_version=' $script | cut -d '=' -f 2)
if [[ -z $ip_versions ]]; then
	ip_versions="ipv4 ipv6"
fi
"""
TIMING = """inbound injected packet:  0.100041 . 1:1(0) ack 1002
tcp_late.pkt:26: error handling packet: timing error: expected outbound packet in 0.040000 sec
script packet:  0.100041 . 1:1(0) ack 1002
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "ksft_runner.sh").write_text(RUNNER)
    (tmp_path / "defaults.sh").write_text("#!/bin/sh\n")
    (tmp_path / "tcp_b.pkt").write_text("0 `./defaults.sh`\n")
    (tmp_path / "tcp_a_ip6.pkt").write_text("--ip_version=ipv6\n0 `./defaults.sh`\n")
    return tmp_path


def test_a_script_runs_once_for_each_version_of_ip_with_the_runners_arguments(directory: Path) -> None:
    alone, both = Packetdrill().tests(directory, SuiteOptions())
    assert (alone.name, [case.name for case in alone.cases]) == ("tcp_a_ip6", ["ipv6"])
    assert (both.name, [case.name for case in both.cases]) == ("tcp_b", ["ipv4", "ipv6"])
    assert both.cases[0].own_namespace
    assert both.cases[0].argv == (
        *("packetdrill", "--verbose"),
        *("--ip_version=ipv4", "--local_ip=192.168.0.1", "-D", "KEY=4", "tcp_b.pkt"),
    )


def test_a_tolerance_is_given_to_packetdrill(directory: Path) -> None:
    test = Packetdrill().tests(directory, SuiteOptions(tolerance_us=1000))[0]
    assert test.cases[0].argv[-2:] == ("--tolerance_usecs=1000", "tcp_a_ip6.pkt")


def test_a_script_has_the_files_that_are_no_scripts_beside_it(directory: Path) -> None:
    test = Packetdrill().tests(directory, SuiteOptions())[1]
    assert sorted(Packetdrill().files(directory, test)) == ["defaults.sh", "ksft_runner.sh", "tcp_b.pkt"]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("ksft_runner.sh", "ksft_runner.sh: cannot be read: No such file"),
        ("tcp_b.pkt tcp_a_ip6.pkt", "has no scripts of packetdrill, which end in .pkt"),
    ],
)
def test_another_directory_is_refused(missing: str, message: str, directory: Path) -> None:
    for name in missing.split():
        (directory / name).unlink()
    with pytest.raises(InputError, match=message):
        Packetdrill().tests(directory, SuiteOptions())


def test_a_runner_of_another_kind_is_refused(directory: Path) -> None:
    (directory / "ksft_runner.sh").write_text("#!/bin/sh\nexec packetdrill $1\n")
    with pytest.raises(InputError, match="does not say with which arguments scripts run"):
        Packetdrill().tests(directory, SuiteOptions())


def test_a_version_that_the_runner_does_not_know_is_refused(directory: Path) -> None:
    (directory / "tcp_b.pkt").write_text("--ip_version=ipv5\n")
    with pytest.raises(InputError, match=r"ipv5: ksft_runner\.sh has no arguments for it"):
        Packetdrill().tests(directory, SuiteOptions())


@pytest.mark.parametrize(
    ("code", "output", "verdict", "reason"),
    [
        (0, "", "passed", ""),
        (0, TIMING, "passed", ""),
        (1, TIMING, "failed", TIMING.splitlines()[1]),
        (127, "unshare: failed to execute packetdrill\n\n", "failed", "unshare: failed to execute packetdrill"),
        (1, "", "failed", "ended with code 1 and said nothing"),
    ],
)
def test_a_verdict_has_packetdrills_own_complaint(code: int, output: str, verdict: str, reason: str) -> None:
    assert Packetdrill().verdict(code, output) == (verdict, reason)
