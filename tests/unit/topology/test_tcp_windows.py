"""What TCP's windows leave of a link's rate: in the plan, in what a tool is promised, and in what is judged."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from minigts.api.measured import Throughput
from minigts.cli.app import app
from minigts.cli.views.plan import tcp_at_most
from minigts.experiments.commands import buffers_of
from minigts.judge.samples import PathSamples, measured_once
from minigts.judge.throughput import reaches_ceiling, within_ceiling
from minigts.judge.tolerances import rate
from minigts.tools import iperf3_tcp, netperf_stream
from minigts.tools.base import PathUnderTest
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse
from minigts.topology.tcp import buffers, goodput, window
from minigts.topology.tcp_and_loss import response_mbit

LARGE = "net.ipv4.tcp_rmem: 4096 131072 134217728, net.ipv4.tcp_wmem: 4096 16384 134217728"
BY_RATE = 1000 * 1448 / 1514
LEAST, MOST = 4194304 * 0.5 * 8 / 1e5, 4194304 * 8 / 1e5
"""Of Linux's own send buffers over 100 ms, in Mbit/s."""


def pair(link: str = "rtt: 100ms, rate: 1gbit", *, left: str = "", right: str = "") -> Plan:
    return parse(
        f"name: x\nhosts: {{h1: {{sysctls: {{{left}}}}}, h2: {{sysctls: {{{right}}}}}}}\n"
        f"links: [{{ends: [h1, h2], {link}}}]\n",
        "f.yaml",
    )


def way(plan: Plan, mtu: int = 1500) -> PathUnderTest:
    return PathUnderTest("", mtu, 1500, plan.path("h1", "h2"), buffers=buffers_of(plan, "h1", "h2"))


@pytest.mark.parametrize(
    ("receive", "send", "rtt_ms", "seen_mbit"),
    [
        (16_777_216, 16_777_216, 100.0, 558.0),  # 1 Gbit/s; seen with iperf3 in virtual time
        (16_777_216, 16_777_216, 20.0, 3983.0),  # 10 Gbit/s
        (33_554_432, 4_194_304, 100.0, 225.0),  # 1 Gbit/s, with Linux's own
    ],
)
def test_what_was_seen_lies_between_the_two_windows(receive: int, send: int, rtt_ms: float, seen_mbit: float) -> None:
    low, high = window(receive, send).mbit(rtt_ms)
    assert low * 0.98 <= seen_mbit <= high * 1.02


def test_the_smaller_of_both_buffers_decides() -> None:
    assert window(6_291_456, 1_000_000).most == 1_000_000
    assert window(1_000_000, 4_194_304).most == pytest.approx(1_000_000 * 151 / 256)


def test_it_is_said_in_a_clause_with_the_settings_that_would_have_to_be_others() -> None:
    said = window(16_777_216, 16_777_216).describe(100)
    assert "tcp_rmem up to 16777216" in said
    assert "561 to 791.7 Mbit/s over 100 ms" in said


def test_links_are_the_limit_where_the_least_of_the_windows_fills_them() -> None:
    by = window(33_554_432, 4_194_304)
    assert goodput(100.0, by, 100.0) == (100.0, None)
    assert goodput(BY_RATE, by, 100.0) == pytest.approx((MOST, LEAST))
    assert goodput(200.0, by, 100.0) == pytest.approx((200.0, LEAST))
    assert goodput(BY_RATE, by, 100.0, streams=8) == pytest.approx((BY_RATE, None), nan_ok=True)
    assert goodput(math.inf, by, 0.0) == (math.inf, None)


def test_a_plans_path_carries_what_its_hosts_buffers_do() -> None:
    path = pair().path("h1", "h2")
    assert (path.tcp_ceiling_mbit, path.tcp_least_mbit) == pytest.approx((MOST, LEAST), abs=1e-6)
    assert path.back is None
    assert path.turned.tcp_least_mbit == path.tcp_least_mbit


def test_a_plan_knows_what_a_topology_sets_its_buffers_to() -> None:
    path = pair(left=LARGE, right=LARGE).path("h1", "h2")
    assert (path.tcp_ceiling_mbit, path.tcp_least_mbit, path.back) == (pytest.approx(BY_RATE, abs=1e-6), None, None)


def test_where_one_host_alone_has_large_buffers_the_directions_differ() -> None:
    """It sends what the other one takes: 107 to 151 of 256 of 32 MiB are more than the link carries. The other does not
    send as much."""
    there, back = pair(left=LARGE).path("h1", "h2").ways
    assert (there.tcp_ceiling_mbit, there.tcp_least_mbit) == (pytest.approx(BY_RATE, abs=1e-6), None)
    assert (back.tcp_ceiling_mbit, back.tcp_least_mbit) == pytest.approx((MOST, LEAST), abs=1e-6)
    assert pair(left=LARGE).path("h2", "h1").ways == (back, there)


@pytest.mark.parametrize(
    ("link", "is_there"), [("rtt: 100ms, rate: 1gbit", True), ("rtt: 100ms, rate: 100mbit", False)]
)
def test_a_plan_that_buffers_do_not_limit_has_no_word_of_them(link: str, *, is_there: bool) -> None:
    (path,) = json.loads(plan_json(pair(link)))["paths"]
    assert ("tcp_least_mbit" in path) is is_there
    assert "tcp_least_mbit" not in json.loads(plan_json(pair(link)))["links"][0]


def test_links_without_a_rate_are_promised_nothing() -> None:
    path = pair("rtt: 100ms").path("h1", "h2")
    assert (path.tcp_ceiling_mbit, path.tcp_least_mbit) == (None, None)
    assert iperf3_tcp.prediction(iperf3_tcp.TcpOptions(), way(pair("rtt: 100ms"))) is None


def test_a_tool_is_promised_what_the_plan_promises() -> None:
    for tool, options in (
        (iperf3_tcp.TOOL, iperf3_tcp.TcpOptions()),
        (netperf_stream.TOOL, netperf_stream.StreamOptions(protocol="tcp")),
    ):
        asked = way(pair())
        assert (tool.predicted(options, asked), tool.least(options, asked)) == pytest.approx((MOST, LEAST))
        asked = way(pair(left=LARGE, right=LARGE), mtu=1450)
        assert (tool.predicted(options, asked), tool.least(options, asked)) == (
            pytest.approx(1000 * 1398 / 1514),
            None,
        )


def test_several_streams_have_a_window_each() -> None:
    two, eight = (iperf3_tcp.TcpOptions(streams=number) for number in (2, 8))
    assert iperf3_tcp.prediction(two, way(pair())) == pytest.approx(2 * MOST)
    assert iperf3_tcp.prediction(eight, way(pair())) == pytest.approx(BY_RATE)
    assert iperf3_tcp.least(eight, way(pair())) is None


def test_a_socket_that_asks_for_a_buffer_gets_twice_as_much_and_no_more_than_the_host_allows() -> None:
    """208 KiB over 20 ms: a window of 178048 to 251484 bytes was seen (docs/evidence/virtual-time.md)."""
    options = iperf3_tcp.TcpOptions(window="208KiB")
    asked = way(pair("rtt: 20ms, rate: 1gbit"))
    assert iperf3_tcp.prediction(options, asked) == pytest.approx(251_484 * 8 / 20_000, rel=0.002)
    assert iperf3_tcp.least(options, asked) == pytest.approx(178_048 * 8 / 20_000, rel=0.002)
    own = buffers(pair(left="net.core.wmem_max: 10000").host("h1").sysctls).request(1 << 20)
    assert (own.receive, own.send) == (2 << 20, 20_000)


def over(mbit: float, least: float | None = LEAST) -> PathSamples:
    estimate = measured_once(mbit, rate(pair()))
    return PathSamples(
        source="h1", target="h2", hops=1, unit="Mbit/s", estimate=estimate, predicted=MOST, predicted_least=least
    )


@pytest.mark.parametrize(("mbit", "ok"), [(225, True), (144, True), (342, True), (142, False), (343, False)])
def test_from_the_least_to_the_most_it_is_within_its_ceiling(mbit: float, *, ok: bool) -> None:
    assert reaches_ceiling(over(mbit)) is ok
    judged = within_ceiling([over(mbit)], pair())
    assert judged.ok is ok
    assert "where the hosts' TCP buffers carry 167.8 at the least" in judged.detail
    assert not reaches_ceiling(over(225, least=None))
    flow = Throughput("h1", "h2", "plain hosts", mbit, MOST, LEAST)
    assert flow.reaches_ceiling is ok
    assert "by the hosts' TCP buffers, which carry at least 167.77" in str(flow)
    assert not replace(flow, mbit=225, least_mbit=None).reaches_ceiling


@pytest.mark.parametrize(
    ("link", "at_most", "limit"),
    [
        ("rtt: 100ms, rate: 1gbit", "167.8 to 335.5 Mbit/s", "hosts' buffers"),
        ("rtt: 100ms, rate: 50mbit", "47.8 Mbit/s", "rate"),
        ("rtt: 100ms", "167.8 to 335.5 Mbit/s", "hosts' buffers"),
        ("rtt: 0ms", "unlimited", "nothing"),
        ("rtt: 0.1ms", "unlimited", "nothing"),
        (
            "rate: {to: 50mbit, from: 1mbit}",
            "acknowledgements may limit it, back 1 Mbit/s",
            "acknowledgements, back rate",
        ),
    ],
)
def test_a_plan_says_what_limits_tcp(
    link: str, at_most: str, limit: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("plan") / "x.yaml"
    file.write_text(f"name: x\npair: {{hosts: [h1, h2], link: {{{link}}}}}\n")
    shown = CliRunner().invoke(app, ["plan", str(file)]).stdout.splitlines()
    row = next(line.split("\t") for line in shown if line.startswith("h1 – h2"))
    assert row[3:5] == [at_most, limit]


@pytest.mark.parametrize(
    ("rtt_ms", "loss_percent", "mbit"),
    [
        (40.0, 0.5, 1448 * 8 / 40e3 * math.sqrt(1.5 / 0.005)),  # Mathis's law: CUBIC's own gives less
        (160.0, 0.05, 5.773),  # 1.054 (0.16 / 0.0005)^0.75 = 79.7 segments of 1448 bytes
        (160.0, 0.0, math.inf),
        (0.0, 1.0, math.inf),
    ],
)
def test_what_losses_leave_is_the_larger_of_two_laws(rtt_ms: float, loss_percent: float, mbit: float) -> None:
    assert response_mbit(1448, rtt_ms, loss_percent) == pytest.approx(mbit, rel=1e-3)


def test_the_plan_says_what_losses_let_through_where_that_is_less_than_the_rate() -> None:
    lossy = pair("rtt: 160ms, rate: 100mbit, loss: 0.05%")
    assert tcp_at_most(lossy, lossy.path("h1", "h2")) == ("95.6 Mbit/s", "loss: some 5.8 Mbit/s in the mean")
    slow = pair("rtt: 2ms, rate: 10mbit, loss: 0.01%")
    assert tcp_at_most(slow, slow.path("h1", "h2")) == ("9.6 Mbit/s", "rate")
    other = pair("rtt: 160ms, rate: 100mbit, loss: 0.05%", left="net.ipv4.tcp_congestion_control: bbr")
    assert tcp_at_most(other, other.path("h1", "h2")) == ("95.6 Mbit/s", "rate")


def test_a_verdict_below_the_ceiling_says_what_losses_let_through() -> None:
    plan = pair("rtt: 160ms, rate: 100mbit, loss: 0.05%")
    cell = PathSamples(
        source="h1", target="h2", hops=1, unit="Mbit/s", estimate=measured_once(6.1, rate(plan)), predicted=95.6
    )
    judged = within_ceiling([cell], plan)
    assert judged.word == "failed"
    assert judged.detail.endswith(", where losses of 0.05 % let some 5.8 Mbit/s through in the mean")
