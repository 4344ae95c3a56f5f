"""What tools say of single moments, and traffic that crosses at a rate."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from experiment_lab import chain, endpoints, recorded
from test_experiment_around import Stage, go

from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments import outputs
from minigts.experiments.load import parse
from minigts.experiments.matrix import Sample, matrix
from minigts.experiments.sample_steps import CROSSING, Procedure, Surroundings, procedure
from minigts.report import over_time
from minigts.results.schema import RawSample, Side
from minigts.results.tables import SeriesRow
from minigts.tools import iperf3_tcp, ping

PLAN = chain(4)
HEAD = """\
name: small
title: A small one
topology: topologies/chain6.yaml
overlays: [swarm]
seed: 7
repetitions: 1
measurements:
"""
CROSSED = (
    "  - {name: echoes, tool: ping, paths: [{from: ams, to: bra}], options: {count: 100, interval: 20ms},\n"
    "     cross: [{from: bra, to: lon, protocol: udp, rate: 20mbit, between: containers}, {from: mil, to: lon}],\n"
    "     vary: {cross: [5mbit, 1.5gbit]}}\n"
)


def experiment(measurement: str) -> Experiment:
    return parse(HEAD + measurement, "small.yaml")


def todo(asked: Experiment, sample: Sample) -> Procedure:
    ends = endpoints(PLAN, "swarm")
    around = Surroundings(PLAN, ends, lambda host: ends[host], None)
    return procedure(asked.measurements[0].under(sample.condition), sample, around)


def test_cross_traffic_has_its_protocol_its_rate_and_its_ends() -> None:
    asked = experiment(CROSSED)
    flows = {}
    for sample in matrix(asked, PLAN):
        found = todo(asked, sample)
        flows[sample.condition] = [call.argv for call in found.beside if call.name == CROSSING]
        servers = [call for call in found.before if call.name == "servers"]
        assert [call.argv[:2] == ("in", "swarm") for call in servers] == [True, False]
    lon = PLAN.host("lon").address
    assert flows["cross=5mbit"] == [
        ("in", "swarm", "iperf3", "-J", "-c", lon, "-p", "5401", "-t", "4", "-u", "-b", "5000000"),
        ("iperf3", "-J", "-c", lon, "-p", "5402", "-t", "4", "-b", "5000000"),
    ]
    assert {argv[-1] for argv in flows["cross=1.5gbit"]} == {"1500000000"}
    assert Experiment.model_validate(asked.file_values()) == asked


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{from: bra, to: lon, protocol: udp}", r"cross\[0\]: protocol: udp needs `rate:`"),
        ("{from: bra, to: lon, rate: 20}", r"cross\[0\]\.rate: .*unit"),
        ("{from: bra, to: lon, rate: 90%}", r"cross\[0\]\.rate: "),
        ("{from: bra, to: lon, between: guests}", r"cross\[0\]\.between: .* is unknown"),
    ],
)
def test_cross_traffic_that_cannot_be_is_refused(wrong: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"small\.yaml:9: measurements\[0\]\.{message}"):
        experiment(CROSSED.replace("{from: mil, to: lon}", "{from: mil, to: lon}").replace(
            "{from: bra, to: lon, protocol: udp, rate: 20mbit, between: containers}", wrong))  # fmt: skip


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("{cross: [5mbit, 20]}", r"vary\.cross\[1\]: "),
        ("{crosses: [5mbit]}", r"no option 'crosses'; did you mean 'cross'"),
    ],
)
def test_rates_of_cross_traffic_vary_as_options_do(vary: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment(CROSSED.replace("{cross: [5mbit, 1.5gbit]}", vary))


def test_nothing_crosses_that_could_vary() -> None:
    with pytest.raises(InputError, match="no option 'cross'"):
        experiment("  - {name: x, tool: ping, paths: [first-to-each], vary: {cross: [5mbit]}}\n")


def test_what_crosses_paths_that_are_measured_together_crosses_once_and_counts_for_each(tmp_path: Path) -> None:
    asked = experiment(
        "  - {name: both, tool: iperf3-tcp, paths: [{from: ams, to: bra}, {from: lon, to: mil}], together: true,\n"
        "     cross: [{from: bra, to: lon}]}\n"
    ).model_copy(update={"overlays": ("none",)})
    [directory], hosts, [outcome] = go(tmp_path, Stage(), asked)
    assert (outcome.done, outcome.failed) == (2, ())
    assert [host for host, argv in hosts.measured if "5401" in argv] == ["bra"]
    with (directory / "samples.csv").open(newline="") as stream:
        crossed = [row["cross_mbit"] for row in csv.DictReader(stream)]
    assert len(crossed) == 2
    assert crossed[0] == crossed[1] != ""


def test_what_arrived_of_all_flows_is_counted_and_what_was_lost() -> None:
    [measurement] = experiment(CROSSED).measurements
    tcp, udp = (json.loads(recorded(f"iperf3.18-{name}.json"))["end"] for name in ("tcp", "udp-loss"))
    sides = (
        Side(name=CROSSING, host="mil", argv=("iperf3",), stdout=recorded("iperf3.18-tcp.json")),
        Side(name=CROSSING, host="bra", argv=("iperf3", "-u"), stdout=recorded("iperf3.18-udp-loss.json")),
    )
    raw = RawSample(
        sample="x", host="ams", argv=(), code=0, stdout=recorded("ping-22ms.txt"), stderr="", started="", seconds=1,
        attempt=1, around=sides,
    )  # fmt: skip
    extra = outputs.read(measurement, raw).extra
    received = udp["sum_received"]
    arrived = received["bytes"] * 8e-6 / min(udp["sum_sent"]["seconds"], received["seconds"])
    assert extra["cross_mbit"] == pytest.approx(tcp["sum_received"]["bits_per_second"] / 1e6 + arrived)
    assert extra["cross_loss_percent"] == pytest.approx(100 * received["lost_packets"] / received["packets"])


def test_iperf3_tells_of_each_interval_with_the_omitted_ones() -> None:
    said = recorded("iperf3.18-tcp.json")
    intervals = json.loads(said)["intervals"]
    found = iperf3_tcp.series(said)
    assert set(found) == {"sent", "cwnd_bytes", "rtt_ms", "retransmits"}
    assert found["sent"][0] == pytest.approx((0.5006805, 160.2140746))
    assert found["cwnd_bytes"][0][1] == 1749184
    assert found["rtt_ms"][0][1] == pytest.approx(22.003)
    moments = [at for at, _ in found["sent"]]
    assert len(moments) == len(intervals)
    assert moments == sorted(moments)


def test_ping_tells_of_each_reply_when_it_was_asked_for() -> None:
    lines = (
        "[100.021750] 64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=21.7 ms\n"
        "[100.061000] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=51.0 ms\n"
    )
    [(name, points)] = ping.series(lines).items()
    assert (name, points) == ("value", [(0.0, 21.7), (0.00995, 51.0)])
    assert len(ping.series(recorded("ping-cut.txt"))["value"]) == recorded("ping-cut.txt").count("time=")


def test_a_tool_that_says_nothing_of_moments_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"small\.yaml:\d+: measurements\[0\]\.series: netperf-rr reports no figures over time"
    ):
        experiment("  - {name: x, tool: netperf-rr, paths: [first-to-each], series: true}\n")


@pytest.mark.parametrize("interval", ["99ms", "61s"])
def test_an_interval_that_iperf3_refuses_is_refused_before(interval: str) -> None:
    with pytest.raises(InputError, match="is no interval of iperf3's: 100ms to 60s are possible"):
        experiment(f"  - {{name: x, tool: iperf3-tcp, paths: [first-to-each], options: {{interval: {interval}}}}}\n")


def moments(sample: str, *points: tuple[float, float], rate: str = "5mbit", column: str = "rtt_ms") -> list[SeriesRow]:
    return [SeriesRow("none", "tcp", "a", "b", (("cross", rate),), column, at, value, sample) for at, value in points]


def test_a_figure_over_time_has_a_line_for_each_condition_in_its_order_at_the_tool_s_own_moments() -> None:
    rows = [
        *moments("one", (0.05, 20.0), (0.15, 30.0), (0.25, 40.0), rate="20mbit"),
        *moments("r1", (0.05, 1.0), (0.15, 2.0), (0.25, 3.0)),
        *moments("r2", (0.051, 3.0), (0.149, 4.0), (0.2502, 5.0)),
        *moments("r1", (0.05, 0.0), (0.15, 0.0), column="retransmits"),
    ]
    [figure] = over_time.figures(rows, {"tcp": iperf3_tcp.TOOL})
    [(label, lines)] = figure.panels
    assert label == "RTT in ms"
    assert [line.variant for line in lines] == ["cross 5mbit", "cross 20mbit"]
    ats, values = zip(*lines[0].points, strict=True)
    assert values == (2.0, 3.0, 4.0)
    assert ats == pytest.approx((0.05, 0.15, 0.25), abs=0.002)
    assert "What the tool itself says" in figure.caption
    assert "processor" not in figure.caption


def test_series_are_kept_for_who_asks_for_them(tmp_path: Path) -> None:
    [asked] = experiment("  - {name: x, tool: ping, paths: [first-to-each], series: true}\n").measurements
    raw = RawSample(
        sample="x", host="ams", argv=(), code=0, stdout=recorded("ping-cut.txt"), stderr="", started="", seconds=1,
        attempt=1,
    )  # fmt: skip
    assert set(outputs.time_series(asked, raw)) == {"value"}
    assert outputs.time_series(asked.model_copy(update={"series": False}), raw) == {}
