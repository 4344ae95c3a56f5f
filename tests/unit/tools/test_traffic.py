"""Traffic as it is: what arrives, how large it is, what its program prints, and what the file may say."""

from __future__ import annotations

import json
import random
import runpy
import socket
import statistics
import subprocess
import sys
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from experiment_lab import chain
from pydantic import ValidationError

from minigts.errors import InputError
from minigts.experiments.load import parse
from minigts.tools import traffic
from minigts.tools.base import ParseError, PathUnderTest
from minigts.tools.traffic import TrafficOptions

PATH = chain().path("ams", "bra")
PROGRAM = runpy.run_path(str(Path(__file__).parents[3] / "provision" / "traffic" / "traffic.py"))
WAY = PathUnderTest("127.0.0.1", 1500, 1500, PATH)


def options(**said: Any) -> TrafficOptions:
    return TrafficOptions.model_validate(said)


def asked(**said: Any) -> dict[str, Any]:
    found = json.loads(traffic.argv(options(**said), WAY)[-1])
    assert isinstance(found, dict)
    return found


def drawn(**said: Any) -> list[int]:
    return list(islice(PROGRAM["sizes"](random.Random(5), asked(every="1s", **said)), 20_000))


@pytest.mark.parametrize(("word", "mean"), [("web-search", 1138 * 1460), ("data-mining", 12_660_000)])
def test_a_published_table_has_the_mean_that_the_page_says(word: str, mean: float) -> None:
    assert options(sizes=word).mean_bytes == pytest.approx(mean, rel=0.01)
    shares = [share for _, share in traffic.TABLES[word]]
    assert shares == sorted(shares) and shares[-1] == 1


@pytest.mark.parametrize(
    ("said", "tolerance"),
    [
        ({"sizes": "web-search"}, 0.05),
        ({"sizes": "web-search", "scale": "1%"}, 0.05),
        ({"sizes": "exponential 20kB"}, 0.05),
        ({"sizes": "pareto 20kB", "shape": 3}, 0.05),
        ({"table": [["1kB", "50%"], ["3kB", "100%"]]}, 0.03),
    ],
)
def test_sizes_have_the_mean_from_which_the_load_is_computed(said: dict[str, Any], tolerance: float) -> None:
    # 20,000 sizes: four standard errors of web-search's mean are 4 %.
    assert statistics.fmean(drawn(**said)) == pytest.approx(options(**said).mean_bytes, rel=tolerance)


def test_sizes_follow_their_table() -> None:
    found = drawn(table=[["1kB", "50%"], ["3kB", "100%"]])
    assert sum(size == 1000 for size in found) / len(found) == pytest.approx(0.5, abs=0.02)
    assert sum(size <= 2000 for size in found) / len(found) == pytest.approx(0.75, abs=0.02)
    assert max(found) <= 3000
    assert set(drawn(sizes="20kB")) == {20_000}


@pytest.mark.parametrize("how", ["poisson", "steady", "on-off"])
def test_as_many_flows_arrive_as_the_load_says(how: str) -> None:
    said = asked(arrivals=how, every="10ms", duration="200s", on="100ms", off="300ms")
    moments = list(PROGRAM["arrivals"](random.Random(3), said))
    assert moments == sorted(moments) and moments[0] >= 0 and moments[-1] < 200
    # Of 20,000 arrivals; 500 periods of on-off have a standard error of about 6 %.
    assert len(moments) == pytest.approx(20_000, rel=0.25 if how == "on-off" else 0.03)
    gaps = [after - before for before, after in pairwise(moments)]
    spread = statistics.pstdev(gaps) / statistics.fmean(gaps)
    assert {"poisson": 0.9 < spread < 1.1, "steady": spread < 1e-6, "on-off": spread > 2}[how]


def test_a_load_is_a_share_of_the_paths_rate() -> None:
    assert PATH.rate_mbit == 100
    assert traffic.gap_s(options(sizes="25kB", load="20%"), PATH) == pytest.approx(0.01)
    assert traffic.gap_s(options(sizes="25kB", load="20mbit"), PATH) == pytest.approx(0.01)
    assert traffic.gap_s(options(every="3s"), PATH) == 3
    with pytest.raises(InputError, match="its links have none"):
        traffic.argv(options(load="20%"), PathUnderTest("x", 1500, 1500, chain(rate_mbit=None).path("ams", "bra")))
    with pytest.raises(InputError, match="some 100,000 flows would arrive; at most 20,000"):
        traffic.argv(options(every="1ms", duration="100s"), WAY)


def test_all_repetitions_have_the_same_flows_and_another_seed_has_others() -> None:
    def flows(seed: int) -> list[float]:
        said = asked(seed=seed, every="10ms")
        return list(PROGRAM["arrivals"](random.Random(f"arrivals {said['seed']}"), said))

    assert flows(1) == flows(1) != flows(2)


@pytest.mark.parametrize("direction", ["send", "answer"])
def test_the_program_sends_flows_over_loopback(direction: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", traffic.program(), "serve", str(port)])
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        said = {**asked(every="20ms", duration="400ms", sizes="exponential 50kB", direction=direction), "port": port}
        command = [sys.executable, "-c", traffic.program(), "send", json.dumps(said)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    finally:
        server.terminate()
        server.wait(30)
    found = traffic.parse(done.stdout)
    assert found.unfinished == 0 and len(found.ended) > 5
    assert 2 <= len(found.alone) <= traffic.MOST_ALONE
    assert traffic.read(done.stdout, "").extra["slowdown"] > 0


def test_a_server_that_is_not_there_is_a_failure_in_a_line() -> None:
    said = {**asked(every="100ms", duration="200ms"), "port": 1}
    command = [sys.executable, "-c", traffic.program(), "send", json.dumps(said)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    with pytest.raises(ParseError, match=r"traffic: traffic: .*Connect"):
        traffic.parse(done.stdout, done.stderr)


OUTPUT = json.dumps(
    {
        "alone": [[1000, 0.04], [100_000, 0.4]],
        "flows": [
            [0.0, 1000, 0.08],
            [0.5, 10_000, 0.3793],
            [1.0, 200_000, 0.8],
            [1.5, 20_000_000, 2.5],
            [2, 500, None],
        ],
    }
)


def test_what_is_read_of_flows() -> None:
    found = traffic.read(OUTPUT, "")
    assert found.value == pytest.approx((379.3 + 800) / 2)
    expected = {
        **{"min": 80, "mean": 939.825, "p99": 2500, "max": 2500, "flows": 4, "unfinished": 1},
        **{"small_ms": 229.65, "small_p99_ms": 379.3, "medium_ms": 800, "large_ms": 2500},
        # 10 kB lie between 1 and 100 kB: 0.1265 s alone. Larger flows are compared with the largest.
        **{"slowdown": 2.5, "slowdown_p99": 6.25, "received_mbit": 20_211_000 * 8 / 4.0 / 1e6},
    }
    assert {name: found.extra[name] for name in expected} == pytest.approx(expected, rel=1e-3)
    assert found.extra.keys() <= {column.name for column in traffic.TOOL.columns}
    assert traffic.series(OUTPUT)["value"][0] == (0.0, pytest.approx(80.0))


def test_flows_without_one_alone_have_no_slowdown() -> None:
    assert "slowdown" not in traffic.read('{"flows": [[0, 10, 0.5]]}', "").extra


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{",
        "[]",
        '{"flows": []}',
        '{"flows": [[0, 10, null]]}',
        '{"flows": [[0, -1, 1]]}',
        '{"flows": [[0, 1, "x"]]}',
    ],
)
def test_what_is_no_output(output: str) -> None:
    with pytest.raises(ParseError, match="traffic: "):
        traffic.parse(output, "")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"sizes": "websearch"}, "'websearch' are no sizes of flows: write web-search, data-mining, a size"),
        ({"sizes": "pareto 20"}, "are no sizes of flows"),
        ({"load": "50"}, "50"),
        ({"load": "50%", "every": "1s"}, "`load:` and `every:` are both given"),
        ({"shape": 1}, "shape: 1 has no mean"),
        ({"scale": "0%"}, "scale: flows of 0 % have no bytes"),
        ({"scale": "200%"}, "is not a share from 0% to 100%"),
        ({"table": [["1kB", "50%"]]}, "the last share is 100%"),
        ({"table": [["2kB", "50%"], ["1kB", "100%"]]}, "sizes and shares rise"),
        ({"table": [["2kB", "0.5"]]}, "is no share from 0% to 100%"),
        ({"table": ["2kB"]}, "is no point of a table"),
        ({"seed": -1}, "a seed"),
    ],
)
def test_what_no_traffic_can_be(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        options(**said)
    assert any(message in str(each) for each in refused.value.errors())


def test_options_are_in_the_language_again_when_they_are_written() -> None:
    written = options(table=[["1kB", "50%"], ["3kB", "100%"]], load="20mbit", congestion="bbr", arrivals="on-off")
    assert TrafficOptions.model_validate(json.loads(written.model_dump_json(by_alias=True))) == written


def test_a_claim_may_name_its_columns() -> None:
    text = """\
name: one
title: One tool
topology: topologies/chain6.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {name: web, tool: traffic, paths: [first-to-last], vary: {load: [20%, 80%], sizes: [web-search, 20kB]}}
claims:
  - {value: rises, of: web, metric: small_p99_ms, by: load}
  - {value: worse, of: web, where: {load: 80%}, than: {load: 20%}}
"""
    assert len(parse(text, "one.yaml").claims) == 2
    for column in ("min", "mean", "p99", "max", "received_mbit", "small_ms"):
        better = text.replace("{value: worse, of: web,", f"{{value: worse, of: web, metric: {column},")
        assert parse(better, "one.yaml").claims[1].metric == column
    undirected = text.replace("{value: worse, of: web,", "{value: worse, of: web, metric: stdev,")
    with pytest.raises(
        InputError,
        match=r"claims\[1\]\.value: no stdev of web is better or worse than another; that is said of ",
    ):
        parse(undirected, "one.yaml")
    with pytest.raises(InputError, match=r"claims\[0\].metric: no column 'smal_ms'; did you mean 'small_ms'"):
        parse(text.replace("small_p99_ms", "smal_ms"), "one.yaml")
