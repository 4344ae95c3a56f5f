"""Links whose two directions differ: from the file to the plan, what is set, what is judged, and what is shown.

What a file may not say of them is in tests/topologies/directions.yaml.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import tc_hosts
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.dataplane import round_trip, shaping, wire
from minigts.errors import HostFailed
from minigts.fidelity import measure
from minigts.fidelity.certificate import loss_rows, rtt_row
from minigts.fidelity.explanation import explain
from minigts.lab import Lab
from minigts.report.topology_figure import link_words
from minigts.tools import iperf3_tcp, iperf3_udp
from minigts.tools.base import PathUnderTest
from minigts.topology.plan.elements import Direction
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

TWO_WAYS = """
name: two
hosts: {a: , b: , c: }
links:
  - {ends: [a, b], delay: {to: 10ms, from: 30ms}, jitter: {to: 1ms, from: 2ms}, rate: {to: 50mbit, from: 5mbit},
     loss: {to: 0%, from: 1%}, queue: {to: 100kB, from: 20kB}}
  - {ends: [c, b], delay: {to: 1ms, from: 2ms}, rate: {to: 20mbit, from: 40mbit}, loss: {to: 10%, from: 0%}}
"""
MTU, OUTER = 1450, 1500


def made(text: str) -> Plan:
    return parse(f"name: x\n{text}\n", "f.yaml")


PLAN = parse(TWO_WAYS, "f.yaml")


def test_each_direction_is_what_the_file_says_of_it() -> None:
    there, back = PLAN.directions(PLAN.links[0])
    assert (there.delay_ms, there.jitter_ms, there.rate_mbit, there.loss_percent, there.queue_bytes) == (
        10,
        1,
        50,
        0,
        100_000,
    )
    assert (back.delay_ms, back.jitter_ms, back.rate_mbit, back.loss_percent, back.queue_bytes) == (30, 2, 5, 1, 20_000)
    a, b = (PLAN.host(name).ports[0] for name in "ab")
    assert (a.outgoing, a.incoming) == (b.incoming, b.outgoing) == (there, back)


def test_a_queue_is_sized_by_its_own_rate_and_the_links_round_trip() -> None:
    plan = made("pair: {link: {delay: {to: 10ms, from: 30ms}, rate: {to: 50mbit, from: 20mbit}}}")
    assert [way.queue_bytes for way in plan.directions(plan.links[0])] == [375_000, 150_000]


@pytest.mark.parametrize(
    ("short", "ways"),
    [
        ("pair: {hosts: [m, n], LINK}", {("m", "n"): 1, ("n", "m"): 2}),
        ("chain: {hosts: [m, n, o], LINK}", {("m", "n"): 1, ("n", "o"): 1, ("n", "m"): 2, ("o", "n"): 2}),
        ("star: {clients: [n, o], centre: m, LINK}", {("m", "n"): 1, ("m", "o"): 1, ("n", "m"): 2, ("o", "m"): 2}),
        (
            "ring: {hosts: [m, n, o], LINK}",
            {("m", "n"): 1, ("n", "o"): 1, ("o", "m"): 1, ("n", "m"): 2, ("o", "n"): 2, ("m", "o"): 2},
        ),
        (
            "clos: {spines: [n], leaves: [m], hosts: 1, LINK}",
            {("h1", "m"): 1, ("m", "n"): 1, ("m", "h1"): 2, ("n", "m"): 2},
        ),
        ("hosts: {m: , n: }\nlinks: [{ends: [n, m], LINK}]", {("n", "m"): 1, ("m", "n"): 2}),
    ],
    ids=["pair", "chain", "star", "ring", "clos", "links"],
)
@pytest.mark.parametrize("by_default", [False, True], ids=["own", "default"])
def test_in_every_form_to_leads_from_the_first_end_to_the_second(
    short: str, ways: dict[tuple[str, str], float], by_default: bool
) -> None:
    delay = "delay: {to: 1ms, from: 2ms}"
    own = "mtu: 1400" if short.startswith("hosts") else "link: {mtu: 1400}"
    plain = delay if short.startswith("hosts") else f"link: {{{delay}}}"
    text = (
        f"defaults: {{link: {{{delay}}}}}\n" + short.replace("LINK", own)
        if by_default
        else short.replace("LINK", plain)
    )
    found = {(host.name, port.peer_host): port.outgoing.delay_ms for host in made(text).hosts for port in host.ports}
    assert found == ways


def test_a_setting_nearer_by_holds_for_both_directions() -> None:
    plan = made(
        "defaults: {link: {rate: {to: 50mbit, from: 5mbit}, delay: {to: 1ms, from: 3ms}}}\npair: {link: {rate: 10mbit}}"
    )
    assert [way.rate_mbit for way in plan.links[0].ways] == [10, 10]
    assert [way.delay_ms for way in plan.links[0].ways] == [1, 3]
    assert made("defaults: {link: {delay: {to: 1ms, from: 3ms}}}\npair: {link: {rtt: 10ms}}").links[0].back is None


def test_a_link_that_is_written_as_two_equal_directions_is_one_that_is_not() -> None:
    both, one = (made(f"pair: {{link: {{delay: {delay}}}}}") for delay in ("{to: 1ms, from: 1ms}", "1ms"))
    assert both == one


def test_the_path_back_is_the_path_there_with_its_directions_turned() -> None:
    there, back = PLAN.path("a", "c"), PLAN.path("c", "a")
    assert (there.links, there.rtt_ms, there.rate_mbit, there.loss_percent) == (("a-b", "c-b"), 43.0, 40.0, 0.0)
    assert (back.links, back.rtt_ms, back.rate_mbit, back.loss_percent) == (("c-b", "a-b"), 43.0, 5.0, 10.9)
    assert [way.delay_ms for way in there.ways] == [12.0, 31.0]
    assert there.ways == back.ways[::-1]
    assert back.turned == there


def test_where_directions_are_alike_the_path_back_has_the_same_figures() -> None:
    plan = made("chain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit, loss: 1%}}")
    back = plan.path("h3", "h1")
    assert (back.source, back.target, back.links, back.back) == ("h3", "h1", ("h2-h3", "h1-h2"), None)
    assert back.ways == plan.path("h1", "h3").ways


def test_the_way_is_chosen_by_the_round_trip() -> None:
    slow_back, even = "delay: {to: 1ms, from: 9ms}", "delay: 4ms"
    links = f"{{ends: [a, b], {slow_back}}}, {{ends: [a, c], {even}}}, {{ends: [c, b], delay: 0.5ms}}"
    plan = made(f"hosts: {{a: , b: , c: }}\nlinks: [{links}]")
    assert plan.path("a", "b").links == ("a-c", "c-b")
    assert [plan.routes_of(name)[0].via for name in "ab"] == ["10.20.1.2", "10.20.2.1"]


@pytest.mark.parametrize(
    ("back", "ceiling"), [("50mbit", True), ("2.2mbit", True), ("2.1mbit", False), ("500kbit", False)]
)
def test_a_ceiling_is_left_out_where_acknowledgements_may_be_the_limit(back: str, *, ceiling: bool) -> None:
    """66 bytes for each of 1514 are 2.18 of 50 Mbit/s."""
    plan = made(f"chain: {{hosts: 3, link: {{rate: {{to: 50mbit, from: {back}}}}}}}")
    for there, again in (plan.links[0].ways, plan.path("h1", "h3").ways):
        assert there.tcp_ceiling_mbit == (pytest.approx(50 * 1448 / 1514, abs=1e-6) if ceiling else None)
        assert there.unacknowledged is not ceiling
        assert again.tcp_ceiling_mbit is not None


@pytest.mark.parametrize(("back", "promised"), [("4mbit", True), ("3.8mbit", False)])
def test_over_an_overlay_acknowledgements_are_longer(back: str, *, promised: bool) -> None:
    """116 bytes for each of 1514 are 3.83 of 50 Mbit/s."""
    plan = made(f"pair: {{link: {{rate: {{to: 50mbit, from: {back}}}}}}}")
    way = PathUnderTest("", MTU, OUTER, plan.path("h1", "h2"))
    wanted = pytest.approx(50 * 1398 / 1514) if promised else None
    assert iperf3_tcp.prediction(iperf3_tcp.TcpOptions(), way) == wanted


def test_udp_is_promised_what_its_own_direction_carries() -> None:
    options = iperf3_udp.UdpOptions(rate="100%", datagram="1472B")
    there, back = (PathUnderTest("", 1500, 1500, PLAN.path(*ends)) for ends in ("ac", "ca"))
    assert iperf3_udp.prediction(options, there) == pytest.approx(40 * 1472 / 1514)
    assert iperf3_udp.prediction(options, back) == pytest.approx(5 * 1472 / 1514 * 0.891)


def test_each_host_is_set_to_its_own_directions() -> None:
    a, b = (PLAN.host(name).ports[0] for name in "ab")
    first, second = (shaping.script([port]) for port in (a, b))
    assert "root handle 2: tbf rate 50000000bit" in first
    assert "netem delay 30000.000us 2000.000us 0.0000000% rate 100tbit loss random 1.0000000%" in first
    assert "root handle 2: tbf rate 5000000bit" in second
    assert "netem delay 10000.000us 1000.000us 0.0000000% rate 100tbit corrupt" in second
    assert (wire.wire_for(a.outgoing).delay_ns, wire.wire_for(b.outgoing).delay_ns) == (10_000_000, 30_000_000)


def test_a_round_trip_is_both_delays_and_each_rates_own_time() -> None:
    plan = made("time: virtual\npair: {link: {delay: {to: 10ms, from: 30ms}, rate: {to: 50mbit, from: 100kbit}}}")
    path = plan.path("h1", "h2")
    assert round_trip.frames_ns(plan, path, 98) == 40_000_000 + 98 * 8 * 20 + 98 * 8 * 10_000
    assert round_trip.echo_s_at_lowest_rate(plan, path) == pytest.approx(0.00784)
    assert rtt_row(plan, "h1-h2", path, [47.86]).ok


@pytest.mark.parametrize(
    ("arrived", "answered", "verdicts"),
    [(1500, 1350, (True, True)), (1350, 1350, (False, False)), (1500, 1500, (True, False)), (1501, 1350, (True, True))],
)
def test_a_loss_is_judged_for_each_direction(arrived: int, answered: int, verdicts: tuple[bool, bool]) -> None:
    plan = made("pair: {link: {loss: {to: 0%, from: 10%}}}")
    rows = loss_rows(plan, plan.links[0], 1500, arrived, answered)
    assert tuple(row.ok for row in rows) == verdicts
    assert [row.title for row in rows] == ["h1-h2, h1 to h2", "h1-h2, h2 to h1"]


def test_where_no_request_arrives_nothing_is_said_of_the_answers() -> None:
    plan = made("pair: {link: {loss: {to: 100%, from: 0%}}}")
    there, back = loss_rows(plan, plan.links[0], 200, 0, 0)
    assert (there.ok, there.measured, back.ok, back.measured) == (True, 100, None, None)


def test_rows_of_directions_have_names_of_their_own_in_a_manifest() -> None:
    plan = made("pair: {link: {loss: {to: 0%, from: 10%}}}")
    rows = loss_rows(plan, plan.links[0], 1500, 1500, 1350)
    made_of = measure.Certificate(
        lab="x", provider="uml", emulator_overhead_ms=0, rows=rows, measured_at=datetime(2026, 11, 29, tzinfo=UTC)
    )
    assert {"h1-h2, h1 to h2 loss", "h1-h2, h2 to h1 loss"} <= made_of.summary().keys()


@pytest.fixture
def tc_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """TWO_WAYS on hosts that hold what `tc` is told."""
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    tc_hosts.register(monkeypatch)
    return labs.up(PLAN, tc_hosts.TcHosts.name, "two", lambda _: None)


def test_a_lab_is_set_and_read_back_by_direction(tc_lab: Lab) -> None:
    explanation = explain(tc_lab, PLAN.links[0])
    shown = {(each.source, each.target, each.name): each.shown for each in explanation.quantities}
    taken_off_ms = tc_lab.read_record().emulator_overhead_ms
    assert taken_off_ms > 0
    assert explanation.differences == ()
    assert (shown["a", "b", "rate"], shown["b", "a", "rate"]) == (50, 5)
    assert (shown["a", "b", "loss"], shown["b", "a", "loss"]) == (0, 1)
    assert shown["a", "b", "delay"] == pytest.approx(10 - taken_off_ms)
    assert shown["b", "a", "delay"] == pytest.approx(30 - taken_off_ms)


def test_status_says_which_links_have_two_directions(tc_lab: Lab) -> None:
    shown = CliRunner().invoke(app, ["status"]).stdout
    assert "a-b, there and back: 10.00 ms, back 30.00 ms; 50 Mbit/s, back 5 Mbit/s; 0 %, back 1 %" in shown


def test_a_direction_that_somebody_turned_round_is_named(tc_lab: Lab) -> None:
    network = tc_hosts.NETWORKS[tc_lab.rundir]
    network.netem["a", "eth1"], network.netem["b", "eth1"] = network.netem["b", "eth1"], network.netem["a", "eth1"]
    differences = explain(tc_lab, PLAN.links[0]).differences
    assert any(text.startswith("a eth1: delay is 9.9 ms, should be 29.9 ms") for text in differences)
    assert any(text.startswith("b eth1: delay is 29.9 ms, should be 9.9 ms") for text in differences)


def test_a_certificate_has_rows_for_each_direction_that_differs(tc_lab: Lab) -> None:
    rows = measure.certify(tc_lab, lambda _: None).rows
    assert {(row.subject, row.quantity, row.direction) for row in rows if row.quantity in ("loss", "TCP")} == {
        ("a-b", "loss", "a to b"),
        ("a-b", "loss", "b to a"),
        ("a-b", "TCP", "a to b"),
        ("a-b", "TCP", "b to a"),
        ("c-b", "loss", "c to b"),
        ("c-b", "loss", "b to c"),
        ("c-b", "TCP", "c to b"),
        ("c-b", "TCP", "b to c"),
    }
    notes = {row.direction: row.note for row in rows if row.quantity == "TCP"}
    assert notes["a to b"] == "acknowledgements are lost on the way back"
    assert notes["b to a"] == "TCP gives way to loss"


def test_a_host_that_counts_no_echoes_is_named(tc_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = tc_hosts.TcHosts._answer

    def without(self: tc_hosts.TcHosts, network: tc_hosts.Network, host: str, argv: list[str], stdin: str) -> str:
        return "Tcp: 1\n" if argv[0] == "cat" else answer(self, network, host, argv, stdin)

    monkeypatch.setattr(tc_hosts.TcHosts, "_answer", without)
    with pytest.raises(HostFailed, match="b: /proc/net/snmp does not count echo requests"):
        measure.certify(tc_lab, lambda _: None)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("rtt: 40ms, rate: 50mbit", "40 ms\n50 Mbit/s"),
        ("delay: {to: 10ms, from: 30ms}, rate: 50mbit", "40 ms\n→10 ←30 ms\n50 Mbit/s"),
        ("rate: {to: 50mbit, from: 500kbit}, loss: {to: 0%, from: 1%}", "0 ms\n→50 ←0.5 Mbit/s\n→0 ←1 % loss"),
    ],
)
def test_a_figure_shows_both_directions_where_they_differ(link: str, words: str) -> None:
    assert link_words(made(f"pair: {{link: {{{link}}}}}").links[0]) == words


def test_a_plan_shows_both_directions_where_they_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(TWO_WAYS)
    monkeypatch.setenv("COLUMNS", "200")
    shown = CliRunner().invoke(app, ["plan", str(file)]).stdout
    assert "10.00 ms, back 30.00 ms" in shown
    assert "50 Mbit/s, back 5 Mbit/s" in shown
    assert "0 %, back 1 %" in shown


def test_a_plan_of_before_which_knew_one_direction_is_still_read() -> None:
    plan = made("chain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}")
    document = json.loads(plan.model_dump_json())
    for each in document["links"]:
        del each["back"]
    assert Plan.model_validate(document) == plan
    assert (
        plan.links[0].ways
        == (Direction(delay_ms=5, rate_mbit=50, loss_percent=0, tcp_ceiling_mbit=plan.links[0].tcp_ceiling_mbit),) * 2
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), min_size=1, max_size=6))
def test_one_way_delays_of_a_path_are_the_sums_of_what_its_ports_do(delays: list[tuple[int, int, bool]]) -> None:
    links = [
        f"{{ends: [n{index + turned}, n{index + (not turned)}], delay: {{to: {there}ms, from: {back}ms}}}}"
        for index, (there, back, turned) in enumerate(delays)
    ]
    hosts = "".join(f"n{index}: , " for index in range(len(delays) + 1))
    plan = made(f"hosts: {{{hosts}}}\nlinks: [{', '.join(links)}]")
    path = plan.path("n0", f"n{len(delays)}")
    forward = [back if turned else there for there, back, turned in delays]
    backward = [there if turned else back for there, back, turned in delays]
    assert [way.delay_ms for way in path.ways] == [sum(forward), sum(backward)]
    assert path.rtt_ms == sum(forward) + sum(backward)
    ports = {(host.name, port.peer_host): port.outgoing for host in plan.hosts for port in host.ports}
    assert sum(ports[f"n{index}", f"n{index + 1}"].delay_ms for index in range(len(delays))) == sum(forward)
