"""Grades a folder with topology.yaml, experiment.yaml and answers.yaml; each test is a point.

minigts test --minigts submissions/ana/topology.yaml --minigts-time virtual grade_bufferbloat.py
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from minigts import api

RATE_KBIT, HOST_MBIT, RTT_MS = 1500, 1000, 20.0
FRAME_BYTES = 1514
"""A full Ethernet frame: 1500 bytes and its header of 14."""
QUEUES = (20, 100)
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "B": 1.0, "kB": 1e3, "KiB": 1024.0}
MOST_BYTES = 100_000


def in_queue_ms(packets: int, rate_kbit: float = RATE_KBIT) -> float:
    """How long a queue of full frames takes to be sent."""
    return packets * FRAME_BYTES * 8 / rate_kbit


RIGHT = {
    "echo_20": RTT_MS + in_queue_ms(20),
    "echo_100": RTT_MS + in_queue_ms(100),
    "window_100": 100 * FRAME_BYTES + RTT_MS * RATE_KBIT / 8,
    "card": 1000 * 1500 * 8 / 100_000,
}
"""In ms, or in bytes."""
WITHIN = 0.08


def handed_in(config: pytest.Config, name: str) -> Mapping[str, Any]:
    """A file beside the topology, as data; empty where there is none that can be read."""
    file = Path(config.getoption("--minigts")).parent / name
    if file.is_symlink() or not file.is_file() or file.stat().st_size > MOST_BYTES:
        return {}
    try:
        read = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}
    return read if isinstance(read, dict) else {}


def figure(written: object) -> float:
    """A number with its unit, in ms or bytes; NaN for anything else."""
    found = re.fullmatch(r"([0-9.]+) ?(us|ms|s|B|kB|KiB)", str(written))
    return float(found[1]) * UNITS[found[2]] if found else math.nan


@pytest.fixture(scope="session")
def series(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], list[float]]:
    """What the student's experiment measures on the student's topology: values by queue, in packets, and column.
    A column's name begins with the flow's, or with the direction of the queue."""
    experiment = dict(handed_in(pytestconfig, "experiment.yaml"))
    assert experiment, "experiment.yaml: it is missing, or cannot be read"
    experiment["topology"] = str(Path(pytestconfig.getoption("--minigts")).resolve())
    found = api.run_experiment(experiment, time="virtual", results=tmp_path_factory.mktemp("results"))
    values: dict[tuple[int, str], list[float]] = defaultdict(list)
    for run in found.runs or (found,):
        with (run.directory / "series.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                packets = packets_of(row.get("links.router-home.queue", ""))
                values[packets, row["column"]].append(float(row["value"]))
    return values


def packets_of(queue: str) -> int:
    """How many full frames find room in a queue that is written in packets or in bytes; 0 if it is not written."""
    packets = re.fullmatch(r"([0-9]+) ?packets?", queue)
    if packets:
        return int(packets[1])
    size = figure(queue)
    return 0 if math.isnan(size) else round(size / FRAME_BYTES)


@pytest.fixture
def as_asked(lab: api.Lab) -> None:
    """Nothing is measured over links without a rate: over them a download of virtual time may never end."""
    assert [host.name for host in lab.hosts] == ["server", "router", "home"]
    declared = {link.name: (link.rate_mbit, link.rtt_ms, link.back) for link in lab.plan.links}
    assert {*declared} == {"server-router", "router-home"}
    assert declared["server-router"][0] == HOST_MBIT
    assert declared["router-home"][0] == RATE_KBIT / 1000
    assert sum(rtt_ms for _, rtt_ms, _ in declared.values()) == RTT_MS


def test_the_links_are_as_asked(as_asked: None, rtt: Callable[..., api.RoundTrips]) -> None:
    measured = rtt("server", "home")
    assert measured.as_expected
    assert measured.lost == 0


def test_the_download_fills_the_line(as_asked: None, throughput: Callable[..., api.Throughput]) -> None:
    assert throughput("server", "home", seconds=10).reaches_ceiling


@pytest.mark.parametrize("packets", QUEUES)
def test_an_echo_waits_behind_the_full_queue(series: dict[tuple[int, str], list[float]], packets: int) -> None:
    assert max(series[packets, "echo rtt_ms"], default=0) == pytest.approx(RTT_MS + in_queue_ms(packets), rel=WITHIN)


@pytest.mark.parametrize("packets", QUEUES)
def test_the_window_is_shown(series: dict[tuple[int, str], list[float]], packets: int) -> None:
    under_way = packets * FRAME_BYTES + RTT_MS * RATE_KBIT / 8
    assert max(series[packets, "download cwnd_bytes"], default=0) > under_way / 2


@pytest.mark.parametrize("packets", QUEUES)
def test_the_queue_is_shown(series: dict[tuple[int, str], list[float]], packets: int) -> None:
    assert max(series[packets, "router-home from router queue_bytes"], default=0) == pytest.approx(
        packets * FRAME_BYTES, rel=WITHIN
    )


def test_pages_come_later_behind_the_longer_queue(series: dict[tuple[int, str], list[float]]) -> None:
    short, long = (sorted(series[packets, "page completion_ms"]) for packets in QUEUES)
    assert min(len(short), len(long)) >= 20
    assert long[len(long) // 2] > 1.3 * short[len(short) // 2]


@pytest.mark.parametrize("question", RIGHT)
def test_the_answer_is_right(pytestconfig: pytest.Config, question: str) -> None:
    answer = figure(handed_in(pytestconfig, "answers.yaml").get(question))
    assert answer == pytest.approx(RIGHT[question], rel=WITHIN)


def test_the_discipline_cures_it(
    pytestconfig: pytest.Config, lab: api.Lab, link: Callable[[str, str], api.Link], run: Callable[..., Any]
) -> None:
    discipline = str(handed_in(pytestconfig, "answers.yaml").get("discipline"))
    assert discipline != "fifo"
    link("router", "home").change(
        rate=f"{RATE_KBIT}kbit", rtt="10ms", queue=f"{QUEUES[-1]}packets", queue_discipline=discipline
    )
    run("home", "sh", "-c", "iperf3 -s -1 -D && sleep 1")
    home = lab.host("home").address
    run("server", "sh", "-c", f"iperf3 -c {home} -t 30 >/root/download 2>&1 & sleep 0.1")
    run("home", "sleep", "10")
    echoes = run("home", "ping", "-n", "-c", "100", "-i", "0.1", lab.host("server").address).stdout
    run("server", "sleep", "15")
    waited = sorted(float(value) for value in re.findall(r"time=([0-9.]+)", echoes))
    assert waited[len(waited) // 2] < RTT_MS + 30
    received = re.findall(r"([0-9.]+) ([KM])bits/sec\s+receiver", run("server", "cat", "/root/download").stdout)
    assert [float(number) / {"K": 1000, "M": 1}[unit] for number, unit in received] == [pytest.approx(1.4, rel=0.15)]
