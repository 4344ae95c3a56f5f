"""Several flows at the same time: when each runs, what they share, and what the file may say of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from experiment_lab import recorded
from pydantic import ValidationError

from minigts.tools import TOOLS, flows, iperf3_tcp, ping, traffic
from minigts.tools.base import Measured, ParseError
from minigts.tools.flows import FlowResult, FlowsOptions, parse_flow


def asked(*of: dict[str, Any], **more: Any) -> FlowsOptions:
    return FlowsOptions.model_validate({"flows": of, **more})


BULK = {"name": "bulk", "tool": "iperf3-tcp"}
ECHO = {"name": "echo", "tool": "ping", "options": {"interval": "100ms"}}


def test_all_flows_end_at_the_same_time_and_count_over_the_same_time() -> None:
    options = asked(BULK, {**BULK, "name": "late", "start": "3s"}, ECHO, duration="10s", omit="2s")
    bulk, late, echo = (options.options_of(flow) for flow in options.flows)
    assert isinstance(bulk, iperf3_tcp.TcpOptions) and isinstance(late, iperf3_tcp.TcpOptions)
    assert [(each.omit_s, each.duration_s) for each in (bulk, late)] == [(5.0, 10.0), (2.0, 10.0)]
    assert isinstance(echo, ping.PingOptions) and echo.count == 150
    assert [flow.begins_s + options.left_out_s(flow) for flow in options.flows] == [5.0, 5.0, 5.0]


def test_a_flow_that_never_waits_omits_nothing() -> None:
    [only] = asked(BULK, duration="4s").flows
    assert asked(BULK, duration="4s").options_of(only) == iperf3_tcp.TcpOptions(duration="4s")  # type: ignore[arg-type]


def test_hosts_take_the_flows_of_a_name_in_turn() -> None:
    options = asked({**BULK, "from": ["a", "b", "c"]}, {**ECHO, "to": "d"})
    assert [(each.flow.name, each.number, each.source, each.target) for each in options.members("x", "y")] == [
        ("bulk", 1, "a", "y"),
        ("bulk", 2, "b", "y"),
        ("bulk", 3, "c", "y"),
        ("echo", 1, "x", "d"),
    ]
    two = options.choose({"bulk.number": 2})
    assert [each.source for each in two.members("x", "y")] == ["a", "b", "x"]
    assert [each.source for each in options.choose({"bulk.number": 4}).members("x", "y")][:4] == ["a", "b", "c", "a"]


def test_options_of_each_flow_may_vary_by_its_name() -> None:
    options = asked(BULK, ECHO)
    assert {"duration", "omit", "bulk.number", "bulk.congestion", "echo.interval"} <= {*options.may_vary}
    assert not {"flows", "bulk.duration", "echo.count"} & {*options.may_vary}
    changed = options.choose({"bulk.congestion": "bbr", "duration": "3s"})
    written = changed.model_dump(mode="json", by_alias=True)
    assert (written["flows"][0]["options"]["congestion"], changed.duration_s) == ("bbr", 3.0)


def test_options_are_in_the_language_again_when_they_are_written() -> None:
    options = asked({**BULK, "from": "a", "number": 3, "start": "1s", "options": {"congestion": "bbr"}}, ECHO)
    written = json.loads(options.model_dump_json(by_alias=True))
    assert FlowsOptions.model_validate(written) == options
    assert FlowsOptions.model_validate(options.model_dump(mode="json", by_alias=True, exclude_none=True)) == options


@pytest.mark.parametrize(
    ("of", "more", "message"),
    [
        ([ECHO], {}, "none of them has a rate"),
        ([BULK, BULK], {}, "'bulk' appears twice"),
        ([{**BULK, "options": {"duration": "5s"}}], {}, "`duration` is the measurement's, beside `flows:`"),
        ([BULK, {**ECHO, "options": {"count": 5}}], {}, "in place of `count` write `duration:` beside `flows:`"),
        (
            [{"name": "rr", "tool": "netperf-rr", "options": {"transactions": 5}}, BULK],
            {},
            "in place of `transactions` write `duration:` beside `flows:`",
        ),
        (
            [
                {
                    "name": "web",
                    "tool": "traffic",
                    "options": {"sizes": "web-search", "load": "1mbit", "slowdown": False},
                }
            ],
            {},
            "remove `slowdown`: nothing is measured alone while other flows run",
        ),
        (
            [{"name": "u", "tool": "iperf3-udp", "options": {"sessions": 2}}],
            {},
            "`sessions` is of a measurement of one",
        ),
        ([{**BULK, "number": 64}, {**BULK, "name": "b", "number": 64}, ECHO], {}, "these are 129 flows"),
        ([BULK, {**BULK, "name": "b", "start": "601s"}], {}, "begins 601 s before"),
        ([BULK, {**ECHO, "options": {"interval": "1ms"}}], {"duration": "200s"}, "200,000 echo requests"),
        ([{**BULK, "from": []}], {}, "are no hosts: write the name of one, or a list of names"),
        ([{**BULK, "name": "my-flow"}], {}, "is not a flow's name"),
        ([{**BULK, "start": "1500ms"}], {}, "counts whole seconds"),
    ],
)
def test_what_no_flow_can_be(of: list[dict[str, Any]], more: dict[str, str], message: str) -> None:
    with pytest.raises((ValidationError, ValueError)) as refused:
        asked(*of, **more)
    findings = [str(each) for each in getattr(refused.value, "errors", list)()]
    assert any(message in each for each in findings), findings


@pytest.mark.parametrize(
    ("rates", "index"), [([1.0], 1.0), ([5.0, 5.0, 5.0], 1.0), ([4.0, 0.0, 0.0, 0.0], 0.25), ([3.0, 1.0], 0.8)]
)
def test_jains_index(rates: list[float], index: float) -> None:
    assert flows.jain(rates) == pytest.approx(index)


def test_jains_index_of_nothing_is_none() -> None:
    assert flows.jain([0.0, 0.0]) is None


def test_shares_are_of_what_is_received_and_echoes_have_none() -> None:
    options = asked({**BULK, "number": 2}, {"name": "udp", "tool": "iperf3-udp"}, ECHO)
    rates = [(6.0, {"retransmits": 2.0, "rtt_ms": 30.0}), (3.0, {"retransmits": 1.0, "rtt_ms": 50.0})]
    rates += [(1.0, {"loss_percent": 5.0}), (28.0, {"loss_percent": 0.0, "max": 45.0})]
    found = flows.add_shares(
        [
            FlowResult(member, Measured(value, extra), 20.0)
            for member, (value, extra) in zip(options.members("a", "b"), rates, strict=True)
        ]
    )
    assert [each.share_percent for each in found] == [60.0, 30.0, 10.0, None]
    assert [each.queueing_ms for each in found] == [10.0, 30.0, None, 8.0]
    whole = flows.together(found)
    assert whole.value == 10.0
    assert whole.extra == {
        "jain": pytest.approx(100 / (3 * 46)),
        "queueing_ms": 8.0,
        "bulk_mbit": 9.0,
        "bulk_share_percent": 90.0,
        "bulk_queueing_ms": 20.0,
        "bulk_retransmits": 3.0,
        "udp_mbit": 1.0,
        "udp_share_percent": 10.0,
        "udp_loss_percent": 5.0,
        "echo_ms": 28.0,
        "echo_queueing_ms": 8.0,
        "echo_longest_queueing_ms": 25.0,
        "echo_loss_percent": 0.0,
    }
    assert {column.name for column in flows.columns_of(options)} >= whole.extra.keys()


def test_without_echoes_the_senders_own_round_trips_say_what_waits() -> None:
    options = asked({**BULK, "number": 2})
    found = [
        FlowResult(member, Measured(5.0, {"rtt_ms": rtt}), 20.0)
        for member, rtt in zip(options.members("a", "b"), (24.0, 30.0), strict=True)
    ]
    assert flows.together(found).extra["queueing_ms"] == 7.0


ECHOES = """PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
[1767225600.010000] 64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=10.0 ms
[1767225601.010000] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=10.0 ms
[1767225602.050000] 64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=50.0 ms
[1767225603.040000] 64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=40.0 ms

--- 10.0.0.2 ping statistics ---
4 packets transmitted, 4 received, 0% packet loss, time 3030ms
rtt min/avg/max/mdev = 10.000/27.500/50.000/17.854 ms
"""


def test_echoes_before_the_common_time_do_not_count() -> None:
    options = asked({**BULK, "start": "2s"}, ECHO, duration="2s")
    _, echo = options.members("a", "b")
    measured = parse_flow(options, echo, ECHOES, "")
    assert (measured.value, measured.extra["min"], measured.extra["max"]) == (45.0, 40.0, 50.0)
    late = asked({**BULK, "start": "5s"}, ECHO, duration="2s")
    with pytest.raises(ParseError, match="flow echo from a to b: ping: no reply came in the time"):
        parse_flow(late, late.members("a", "b")[1], ECHOES, "")


def test_a_flow_without_a_result_is_named() -> None:
    options = asked({**BULK, "number": 2})
    with pytest.raises(ParseError, match="flow bulk 2 of 2 from a to b: iperf3: "):
        parse_flow(options, options.members("a", "b")[1], recorded("iperf3.18-busy.json"), "")


def test_every_tool_that_a_flow_may_have_is_one_of_the_tools() -> None:
    assert {*flows.FLOWING} == {*TOOLS, traffic.TOOL.name}


def test_each_figure_over_time_is_called_by_its_flow_and_what_it_is() -> None:
    web = {"name": "web", "tool": "traffic", "options": {"sizes": "web-search", "load": "1mbit"}}
    options = asked(ECHO, {**web, "start": "3s", "number": 2})
    echo, _, second = options.members("a", "b")
    found = flows.time_series([(echo, ECHOES), (second, '{"flows": [[0.5, 1000, 0.08]]}')])
    assert found == {
        "echo rtt_ms": [(0.0, 10.0), (1.0, 10.0), (2.0, 50.0), (3.0, 40.0)],
        "web 2 completion_ms": [(3.5, 80.0)],
    }
