"""The scripts for two computers and a cable, and what is read back of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from minigts import paths
from minigts.errors import InputError
from minigts.experiments import hardware, prepare
from minigts.experiments.prepare import Prepared
from minigts.report.read import read

PROJECT = paths.project_root()
ECHO = """\
name: echoes
title: Echoes
topology: {topology}
overlays: [none]
seed: 1
repetitions: 5
measurements:
  - {{name: echo, tool: ping, paths: [{path}], options: {{count: 2, interval: 20ms}}}}
claims:
  - {{latency: bounded, of: echo, range: 20 to 21 ms}}
"""
PINGED = """\
PING 10.255.0.2 (10.255.0.2) 56(84) bytes of data.
[1764230000.000000] 64 bytes from 10.255.0.2: icmp_seq=1 ttl=64 time=20.2 ms
[1764230000.020000] 64 bytes from 10.255.0.2: icmp_seq=2 ttl=64 time=20.4 ms

--- 10.255.0.2 ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 20ms
rtt min/avg/max/mdev = 20.200/20.300/20.400/0.100 ms
"""


def prepared(tmp_path: Path, topology: str = "two-computers", path: str = "{from: near, to: far}") -> Prepared:
    file = tmp_path / "echoes.yaml"
    file.write_text(ECHO.format(topology=PROJECT / "topologies" / f"{topology}.yaml", path=path))
    [found] = prepare.prepare_all([file], paper=False, quick=False, only=(), time="real")
    return found


def answered(asked: Prepared, directory: Path) -> Path:
    directory.mkdir()
    for sample in asked.samples:
        for end, text in (("out", PINGED), ("err", ""), ("code", "0\n")):
            (directory / f"{sample.id}.{end}").write_text(text)
    return directory


def test_each_sample_is_one_line_of_the_computer_that_measures(tmp_path: Path) -> None:
    asked = prepared(tmp_path)
    serving, measuring = hardware.scripts(asked).values()
    assert [line.split()[1] for line in measuring.splitlines() if line.startswith("take ")] == [
        sample.id for sample in asked.samples
    ]
    assert "iperf3 -s" in serving and "iperf3 -s" not in measuring
    assert "netem delay 10000.000us" in measuring and "loss random 0.1" in serving


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not here")
def test_the_scripts_are_clean(tmp_path: Path) -> None:
    list(hardware.write_scripts(prepared(tmp_path), tmp_path / "computers"))
    subprocess.run(["shellcheck", *(tmp_path / "computers").glob("*.sh")], check=True)


def test_scripts_that_have_yet_to_run_are_left_as_they_are(tmp_path: Path) -> None:
    list(hardware.write_scripts(prepared(tmp_path), tmp_path / "computers"))
    (tmp_path / "computers" / "near.sh").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        list(hardware.write_scripts(prepared(tmp_path), tmp_path / "computers"))
    assert (tmp_path / "computers" / "near.sh").read_text() == "mine"


@pytest.mark.parametrize(
    ("topology", "path", "says"),
    [("chain6", "first-to-each", "two hosts and one link"), ("two-computers", "every-pair", None)],
)
def test_only_two_hosts_and_one_direction_will_do(tmp_path: Path, topology: str, path: str, says: str | None) -> None:
    asked = prepared(tmp_path, topology, path)
    if says is None:
        assert len(hardware.scripts(asked)) == 2
        return
    with pytest.raises(InputError, match=says):
        hardware.scripts(asked)


def test_answers_become_a_results_folder_with_verdicts(tmp_path: Path) -> None:
    asked = prepared(tmp_path)
    folder = hardware.read_back(asked, answered(asked, tmp_path / "answers"), tmp_path)
    results = read(folder)
    assert results.provider == hardware.PROVIDER
    assert [claim.verdict for claim in results.claims] == ["held"]
    assert results.samples.total == len(asked.samples)


@pytest.mark.parametrize(("end", "says"), [("out", "is missing"), ("code", "no exit code")])
def test_answers_that_lack_something_are_refused_and_leave_nothing(tmp_path: Path, end: str, says: str) -> None:
    asked = prepared(tmp_path)
    answers = answered(asked, tmp_path / "answers")
    spoiled = answers / f"{asked.samples[0].id}.{end}"
    if end == "code":
        spoiled.write_text("well\n")
    else:
        spoiled.unlink()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=says):
        hardware.read_back(asked, answers, tmp_path)
    assert sorted(tmp_path.iterdir()) == before
