from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from experiment_lab import RECORDED, recorded
from hypothesis import given, settings
from hypothesis import strategies as st

from minigts.tools import TOOLS, iperf3_tcp, iperf3_udp, netperf_rr, netperf_stream, ping
from minigts.tools.base import ParseError

Parser = Callable[[str, str], object]
PARSERS: dict[str, Parser] = {name: tool.read for name, tool in TOOLS.items()}


@pytest.mark.parametrize(
    ("name", "median_ms", "intervals"),
    [
        ("netperf-udp-rr-5ms.txt", 4.99, 6),
        ("netperf-udp-rr-22ms.txt", 22.11, 6),
        ("netperf-udp-rr-161ms.txt", 161.90, 6),
        ("netperf-udp-rr-nodemo-161ms.txt", 161.79, 0),
        ("netperf-tcp-rr-22ms.txt", 22.46, 8),
    ],
)
def test_netperf_median_is_exact_where_the_histogram_is_not(name: str, median_ms: float, intervals: int) -> None:
    run = netperf_rr.parse(recorded(name))
    assert run.median_ms == pytest.approx(median_ms, abs=0.05)
    assert run.min_ms <= run.median_ms <= run.max_ms
    assert run.intervals == intervals


def test_one_exchange_that_a_clock_tick_held_up_does_not_move_the_netperf_median() -> None:
    run = netperf_rr.parse(recorded("netperf-udp-rr-nodemo-5ms.txt"))
    assert run.max_ms > 9
    assert run.mean_ms > 5.5
    assert run.median_ms < 5


@pytest.mark.parametrize(
    ("name", "received", "retransmits"),
    [("iperf3.12-tcp.json", 19.912, 0), ("iperf3.18-tcp.json", 170.847, 0), ("iperf3.22-tcp.json", 19.899, 0)],
)
def test_iperf3_tcp_gives_the_receivers_rate_without_the_omitted_start(
    name: str, received: float, retransmits: int
) -> None:
    run = iperf3_tcp.parse(recorded(name))
    assert run.received_mbit == pytest.approx(received, abs=0.001)
    assert run.retransmits == retransmits
    assert len(run.intervals_mbit) == json.loads(recorded(name))["start"]["test_start"]["duration"]
    assert run.mean_rtt_ms is not None
    assert run.max_cwnd_bytes is not None


@pytest.mark.parametrize(
    ("name", "offered", "received", "lost_percent"),
    [
        ("iperf3.12-udp.json", 20.0, 19.985, 0.0),
        ("iperf3.18-udp.json", 20.0, 19.951, 0.0),
        ("iperf3.18-udp-loss.json", 5.0, 4.769, 4.318),
        ("iperf3.22-udp.json", 20.0, 20.002, 0.0),
    ],
)
def test_iperf3_udp_is_not_diluted_by_the_round_trip(
    name: str, offered: float, received: float, lost_percent: float
) -> None:
    run = iperf3_udp.parse(recorded(name))
    assert run.offered_mbit == offered
    assert run.received_mbit == pytest.approx(received, abs=0.001)
    assert run.lost_percent == pytest.approx(lost_percent, abs=0.001)
    assert run.received_mbit == pytest.approx(run.sent_mbit * (1 - run.lost_percent / 100), rel=0.001)
    assert run.datagram_bytes == 1422


def test_iperf3_udp_whose_queues_are_full_counts_by_the_receivers_own_seconds() -> None:
    text = recorded("iperf3.18-udp-omit.json")
    run = iperf3_udp.parse(text)
    assert run.sent_mbit == pytest.approx(55.0, abs=0.01)
    assert run.received_mbit == pytest.approx(50 * 1472 / 1514, abs=0.01)
    assert run.lost_percent == pytest.approx(11.6, abs=0.1)
    untold = text.replace('"server_output_json"', '"another"')
    with pytest.raises(ParseError, match="the server has not told what it received in each second"):
        iperf3_udp.parse(untold)


def test_ping_counts_loss_and_sharpens_whole_milliseconds() -> None:
    lossy, far = ping.parse(recorded("ping-loss.txt")), ping.parse(recorded("ping-161ms.txt"))
    assert (lossy.sent, lossy.received, lossy.loss_percent) == (20, 17, 15.0)
    assert lossy.median_ms == 10.2
    assert far.median_ms == pytest.approx(161.4, abs=0.1)


def test_ping_finds_the_longest_gap_where_it_says_when_replies_came() -> None:
    """Replies that went round before they came overtake each other; what counts is when they came."""
    run = ping.parse(recorded("ping-cut.txt"))
    assert run.gap_ms == 4295.712
    assert (run.sent, run.received) == (3000, 2801)
    extra = ping.read(recorded("ping-cut.txt"), "").extra
    assert (extra["lost"], extra["gap_ms"]) == (199, 4295.712)
    assert "gap_ms" not in ping.read(recorded("ping-loss.txt"), "").extra


@pytest.mark.parametrize(
    ("name", "sent_mbit", "received_mbit", "lost_percent"),
    [("netperf-udp-stream.txt", 1255.37, 668.56, 46.744), ("netperf-tcp-stream.txt", 9194.64, 9194.64, 0.0)],
)
def test_netperf_s_stream_counts_with_what_arrived(
    name: str, sent_mbit: float, received_mbit: float, lost_percent: float
) -> None:
    run = netperf_stream.read(recorded(name), "")
    assert run.value == received_mbit
    assert run.extra == {"sent": sent_mbit, "loss_percent": pytest.approx(lost_percent, abs=0.001)}
    assert run.payload_bytes == pytest.approx(received_mbit * 2e6 / 8)


def test_iperf3_udp_of_which_nothing_arrives_any_more_has_lost_all() -> None:
    report = json.loads(recorded("iperf3.18-udp-omit.json"))
    for interval in report["server_output_json"]["intervals"]:
        interval["sum"] |= {"bytes": 0, "packets": 0, "lost_packets": 0}
    run = iperf3_udp.parse(json.dumps(report))
    assert (run.received_mbit, run.lost_percent) == (0.0, 100.0)


def test_netperf_s_stream_is_read_in_the_unit_that_was_asked_for() -> None:
    text = recorded("netperf-udp-stream.txt").replace("10^6bits/s", "10^3bits/s")
    with pytest.raises(ParseError, match=r"netperf: the unit is '10\^3bits/s', not 10\^6bits/s"):
        netperf_stream.read(text, "")


@pytest.mark.parametrize(
    ("parser", "name", "message"),
    [
        ("netperf-rr", "netperf-refused.txt", "netperf: establish control: are you sure there is a netserver"),
        ("netperf-rr", "netperf-lost.txt", "netperf: no final values"),
        ("netperf-rr", "netperf-killed.txt", "netperf: NETPERF_INT"),
        ("netperf-stream", "netperf-refused.txt", "netperf: establish control: are you sure there is a netserver"),
        ("netperf-stream", "netperf-udp-rr-5ms.txt", "netperf: no final values"),
        ("ping", "ping-unreachable.txt", "ping: none of 2 packets came back"),
        ("iperf3-tcp", "iperf3.12-refused.json", "iperf3: unable to connect to server: Connection refused"),
        ("iperf3-tcp", "iperf3.18-refused.json", "iperf3: unable to connect to server - server may have"),
        ("iperf3-tcp", "iperf3.18-busy.json", "iperf3: the server is busy running a test. try again later"),
        ("iperf3-tcp", "iperf3.18-interrupted.json", "iperf3: interrupt - the client has terminated"),
        ("iperf3-tcp", "iperf3.18-udp.json", "iperf3: not a TCP test"),
        ("iperf3-udp", "iperf3.18-tcp.json", "iperf3: not a UDP test"),
    ],
)
def test_a_failed_run_gives_its_reason(parser: str, name: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        PARSERS[parser](recorded(name), "")
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("parser", PARSERS)
def test_nothing_printed_but_a_complaint_gives_the_complaint(parser: str) -> None:
    with pytest.raises(ParseError, match="no such program"):
        PARSERS[parser]("", "no such program\nand more")


@pytest.mark.parametrize("parser", PARSERS)
def test_nothing_at_all_is_an_error_too(parser: str) -> None:
    with pytest.raises(ParseError):
        PARSERS[parser]("", "")


@pytest.mark.parametrize("cut", range(0, 4000, 97))
def test_truncated_json_is_an_error(cut: int) -> None:
    text = recorded("iperf3.18-tcp.json").rstrip()
    with pytest.raises(ParseError):
        iperf3_tcp.parse(text[: min(cut, len(text) - 1)])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"start": NaN}', "1e999", '"x"', '{"start": {}, "end": 7}'])
def test_odd_json_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        iperf3_udp.parse(text)


OUTPUTS = [path.read_text() for path in sorted(RECORDED.glob("*.*")) if path.suffix != ".md"]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A recorded output, or two joined, with pieces cut out, doubled and put in."""
    text = draw(st.sampled_from(OUTPUTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        piece = draw(st.one_of(st.just(""), st.text(max_size=8), st.sampled_from(["-1", "1e999", "null", "[]", "0"])))
        text = draw(st.sampled_from([text[:start] + piece + text[end:], text[:end] + text[start:], text[:end]]))
    return text


@settings(max_examples=300)
@given(text=mutated(), parser=st.sampled_from(sorted(PARSERS)))
def test_a_mutated_output_gives_a_result_or_a_parse_error(text: str, parser: str) -> None:
    try:
        PARSERS[parser](text, "")
    except ParseError as error:
        assert "\n" not in str(error)
