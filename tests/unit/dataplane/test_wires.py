"""Where links have rate, delay and loss of their own: what wires are set to, and that hosts are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import tc_hosts
import wired_hosts
from experiment_lab import chain
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fake_provider import WIRINGS, WiredFakeProvider, Wiring
from minigts import lab as labs
from minigts.cli.app import app
from minigts.dataplane import wire
from minigts.dataplane.wire import Wire, WireState
from minigts.errors import HostFailed
from minigts.experiments import run_folders
from minigts.experiments.guard import Drops
from minigts.fidelity import measure, shown_settings
from minigts.fidelity.explanation import explain
from minigts.lab import DECLARED, Lab, Settings, shown_links
from minigts.providers import registry
from minigts.providers.base import CarriesLinks, Provider
from minigts.topology.facts.links.jitter import DISTRIBUTIONS
from minigts.topology.facts.links.jitter import ORDERS as JITTER_ORDERS
from minigts.topology.facts.links.rate import EXCESSES
from minigts.topology.link_setting import LOSS_OF_ALL
from minigts.topology.link_settings import BY_FIELD, Shaping
from minigts.topology.plan import link_names
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

TEXT = """
name: chain
time: virtual
seed: 3
hosts: {ams: {}, bra: {}, lon: {}}
links:
- {ends: [ams, bra], rtt: 21.75ms, rate: 50mbit, queue: 100kB}
- {ends: [bra, lon], rtt: 10ms, jitter: 1ms, loss: 0.1%}
"""
SWITCHED = """
name: switched
time: virtual
hosts: {a: {}, b: {}}
switches: {s1: {}}
links:
- {ends: [a, s1], rtt: 2ms, rate: 10mbit}
- {ends: [s1, b], rtt: 4ms}
"""
FIRST = Wire(50_000_000, 100_000, 10_875_000, 0, 0, None)
"""Of ams-bra."""
AMS, BRA = ("ams", "eth1"), ("bra", "eth1")
TO_LON, FROM_LON = ("bra", "eth2"), ("lon", "eth1")
runner = CliRunner()


def quiet(_text: str) -> None:
    pass


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wired_hosts.use(monkeypatch, tmp_path)


@pytest.fixture
def lab() -> Lab:
    return brought_up(TEXT)


def brought_up(text: str) -> Lab:
    return labs.up(parse(text, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)


def wiring(lab: Lab) -> Wiring:
    return WIRINGS[lab.rundir]


def network(lab: Lab) -> tc_hosts.Network:
    return tc_hosts.NETWORKS[lab.rundir]


def declared(plan: Plan) -> Mapping[tuple[str, str], Wire]:
    return {(each.name, port.name): wire.wire_for(port.outgoing) for each in plan.machines for port in each.ports}


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        (Shaping(), Wire(None, None, 0, 0, 0, None)),
        (Shaping(rate_mbit=0.008, queue_bytes=1514), Wire(8_000, 1_514, 0, 0, 0, None)),
        (Shaping(rate_mbit=100_000, queue_bytes=10**9), Wire(100_000_000_000, 10**9, 0, 0, 0, None)),
        (Shaping(delay_ms=10.875), Wire(None, None, 10_875_000, 0, 0, None)),
        (Shaping(delay_ms=0.000001), Wire(None, None, 1, 0, 0, None)),
        (Shaping(delay_ms=5, jitter_ms=1, seed=7), Wire(None, None, 5_000_000, 1_000_000, 0, 7)),
        (
            Shaping(
                delay_ms=5,
                jitter_ms=1,
                jitter_distribution="pareto",
                jitter_correlation_percent=25,
                jitter_order="free",
            ),
            Wire(
                None,
                None,
                5_000_000,
                1_000_000,
                0,
                None,
                jitter_distribution=2,
                jitter_correlation=2**30,
                jitter_overtakes=1,
            ),
        ),
        (
            Shaping(delay_ms=5, jitter_ms=1, jitter_distribution="table", jitter_table="-65536 65536"),
            Wire(*(None, None, 5_000_000, 1_000_000, 0, None), jitter_distribution=4, jitter_table=(-65_536, 65_536)),
        ),
        (
            Shaping(rate_mbit=8, queue_bytes=64_000, rate_burst_bytes=10**6, rate_peak_mbit=20),
            Wire(8_000_000, 64_000, 0, 0, 0, None, credit_bytes=10**6, peak_bps=20_000_000),
        ),
        (
            Shaping(rate_mbit=8, queue_bytes=64_000, rate_burst_bytes=10**6, rate_excess="drop", blackhole_bytes=1400),
            Wire(
                8_000_000,
                64_000,
                0,
                0,
                0,
                None,
                credit_bytes=10**6,
                excess_drops=1,
                hole_bytes=1400,
            ),
        ),
        (Shaping(loss_percent=25, seed=0), Wire(None, None, 0, 0, 2**30, 0)),
        (Shaping(loss_percent=100), Wire(None, None, 0, 0, LOSS_OF_ALL, None)),
        (
            Shaping(loss_percent=20, burst_packets=8, seed=1),
            Wire(None, None, 0, 0, round(0.2 * 2**32), 1, burst_begins=2**27, burst_ends=2**29),
        ),
        (
            Shaping(delay_ms=5, reorder_percent=25, duplicate_percent=50, corrupt_percent=12.5, slot_ms=2, seed=1),
            Wire(None, None, 5_000_000, 0, 0, 1, reorder=2**30, duplicate=2**31, corrupt=2**29, slot_ns=2_000_000),
        ),
    ],
)
def test_a_wire_is_the_direction_in_whole_numbers(direction: Shaping, expected: Wire) -> None:
    assert wire.wire_for(direction) == expected
    of_wires = {field: each for field, each in BY_FIELD.items() if each.wire}
    for field, setting in of_wires.items():
        shown, declared = expected.amount_of(setting), getattr(direction, field)
        assert shown == (declared if isinstance(declared, str) else pytest.approx(declared))


PORT = chain().hosts[0].ports[0]
DIRECTIONS = st.builds(
    Shaping,
    delay_ms=st.integers(0, 10**10).map(lambda ns: ns / 10**6),
    jitter_ms=st.floats(0, 1000),
    loss_percent=st.floats(0, 100),
    rate_mbit=st.floats(0.008, 100_000),
    queue_bytes=st.integers(1, 2**40),
    seed=st.integers(0, 2**32 - 1),
    burst_packets=st.floats(1, 1000),
    reorder_percent=st.floats(0, 100),
    duplicate_percent=st.floats(0, 100),
    corrupt_percent=st.floats(0, 100),
    slot_ms=st.floats(0, 1000),
    jitter_distribution=st.sampled_from(DISTRIBUTIONS),
    jitter_correlation_percent=st.floats(0, 100),
    jitter_order=st.sampled_from(JITTER_ORDERS),
    burst_loss_percent=st.floats(60, 100),
    burst_between_percent=st.floats(0, 50),
    rate_burst_bytes=st.integers(0, 10**9),
    rate_excess=st.sampled_from(EXCESSES),
    blackhole_bytes=st.integers(68, 9500),
    rate_peak_mbit=st.floats(0.008, 100_000),
    jitter_table=st.sampled_from(["-65536 65536", "-1 0 1"]),
)
WHAT = ("rate", "queue", "delay", "jitter", "loss", "seed", "beginning of bursts", "end of bursts")
WHAT += ("reorder", "duplicate", "corrupt", "slot", "jitter.distribution", "jitter.correlation", "jitter.order")
WHAT += ("what a burst spares", "burst.between", "rate.burst", "rate.excess", "blackhole", "rate.peak")


@given(direction=DIRECTIONS, number=st.integers(0, len(WHAT) - 1), step=st.sampled_from([-1, 1]))
def test_a_wire_that_is_off_by_one_is_named_and_an_equal_one_is_not(direction: Shaping, number: int, step: int) -> None:
    port = PORT.model_copy(update={"outgoing": direction})
    right = wire.wire_for(direction)
    assert wire.differences(port, right) == []
    values = list(astuple(right))
    values[number] += step
    (sentence,) = wire.differences(port, Wire(*values))
    name = WHAT[number]
    shown, should = sentence.removeprefix(f"{port.name}: {name} is ").split(", should be ")
    assert shown != should


def test_a_rate_that_is_not_there_and_one_that_should_not_be_are_named() -> None:
    limited = PORT.model_copy(update={"outgoing": Shaping(rate_mbit=50, queue_bytes=100_000)})
    assert wire.differences(limited, wire.wire_for(Shaping())) == [
        "eth1: rate is none, should be 50 Mbit/s",
        "eth1: queue is none, should be 100000 bytes",
    ]
    bare = PORT.model_copy(update={"outgoing": Shaping()})
    assert wire.differences(bare, replace(wire.wire_for(Shaping()), rate_bps=1)) == [
        "eth1: rate is 1e-06 Mbit/s, should be none"
    ]


@pytest.mark.parametrize(
    ("outgoing", "expected"),
    [
        (Shaping(), 3 + 4),
        (Shaping(rate_mbit=50, queue_bytes=64_000), 4),
        (Shaping(loss_percent=1), 3),
        (Shaping(rate_mbit=50, queue_bytes=64_000, loss_percent=1), 0),
    ],
)
def test_what_a_queue_or_a_loss_takes_is_declared(outgoing: Shaping, expected: int) -> None:
    state = WireState(wire.wire_for(outgoing), frames=100, bytes=100_000, dropped=3, lost=4)
    assert wire.undeclared_losses(PORT.model_copy(update={"outgoing": outgoing}), state, modelled=False) == expected


def test_what_a_host_had_no_room_for_is_declared_by_a_model_of_its_processor_alone() -> None:
    port = PORT.model_copy(update={"outgoing": Shaping(rate_mbit=50, queue_bytes=64_000)})
    state = WireState(wire.wire_for(port.outgoing), frames=100, bytes=100_000, dropped=3, lost=0, overrun=2)
    assert [wire.undeclared_losses(port, state, modelled=modelled) for modelled in (False, True)] == [2, 0]


@pytest.mark.parametrize("name", registry.names())
def test_in_real_time_hosts_shape(name: str, tmp_path: Path) -> None:
    assert not isinstance(registry.make(name, tmp_path), CarriesLinks)


def test_the_fake_that_carries_links_is_a_provider(tmp_path: Path) -> None:
    provider: Provider = WiredFakeProvider(tmp_path)
    assert isinstance(provider, CarriesLinks)
    provider.set_wires({AMS: FIRST})
    assert provider.wires()[AMS].wire == FIRST
    provider.down()
    assert provider.wires() == {}


def test_up_sets_every_wire_at_once_and_hosts_to_nothing(lab: Lab) -> None:
    assert wiring(lab).wires == declared(lab.plan)
    assert wiring(lab).wires[AMS] == wiring(lab).wires[BRA] == FIRST
    (to_lon, from_lon) = (wiring(lab).wires[port] for port in (TO_LON, FROM_LON))
    assert to_lon.seed != from_lon.seed
    assert replace(to_lon, seed=None) == Wire(None, None, 5_000_000, 1_000_000, 4_294_967, None)
    assert [set(ports) for ports in wiring(lab).set] == [{AMS, BRA, TO_LON, FROM_LON}]
    assert (network(lab).tbf, network(lab).netem, network(lab).gro) == ({}, {}, set())


def test_up_measures_no_latency_of_the_emulators_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> str:
        pytest.fail("echo requests were sent")

    monkeypatch.setattr(wired_hosts.WiredHosts, "_probe", none)
    steps: list[str] = []
    lab = labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, steps.append)
    assert not any("latency" in step for step in steps)
    assert (labs.calibrate(lab), lab.read_record().emulator_overhead_ms) == (0.0, 0.0)
    done = runner.invoke(app, ["calibrate"])
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "",
        "lab chain has nothing to calibrate: its wires are exactly as declared\n",
    )


def test_a_second_up_sets_nothing(lab: Lab) -> None:
    before = (len(wiring(lab).set), network(lab).set)
    assert brought_up(TEXT) == lab
    assert (len(wiring(lab).set), network(lab).set) == before


def test_a_cut_link_loses_all_in_both_directions_at_one_moment(lab: Lab) -> None:
    before = dict(wiring(lab).wires)
    labs.set_links_up(lab, "bra", "ams", up=False)
    cut = {port: replace(each, loss=LOSS_OF_ALL) for port, each in before.items() if port in (AMS, BRA)}
    assert wiring(lab).wires == before | cut
    assert set(wiring(lab).set[-1]) == {AMS, BRA}
    labs.set_links_up(lab, "ams", "bra", up=True)
    assert wiring(lab).wires == before
    assert [len(ports) for ports in wiring(lab).set] == [4, 2, 2]


@pytest.mark.parametrize(
    ("settings", "rate_bps", "queue_bytes"),
    [
        (Settings(unlimited=True), None, None),
        (Settings(queue_bytes=30_000), 50_000_000, 30_000),
        (Settings(unlimited=True, queue_bytes=30_000), None, None),
        (Settings(gro="on"), 50_000_000, 100_000),
    ],
)
def test_an_experiment_sets_wires_and_what_is_cut_stays_cut(
    lab: Lab, settings: Settings, rate_bps: int | None, queue_bytes: int | None
) -> None:
    before = dict(wiring(lab).wires)
    labs.set_links_up(lab, "bra", "lon", up=False)
    labs.set_for_experiment(lab, settings)
    expected = replace(FIRST, rate_bps=rate_bps, queue_bytes=queue_bytes)
    assert (wiring(lab).wires[AMS], wiring(lab).wires[BRA]) == (expected, expected)
    assert {wiring(lab).wires[port].loss for port in (TO_LON, FROM_LON)} == {LOSS_OF_ALL}
    assert {wiring(lab).wires[port].rate_bps for port in (TO_LON, FROM_LON)} == {None}
    assert len(network(lab).gro) == (4 if settings.gro == "on" else 0)
    assert (network(lab).tbf, network(lab).netem) == ({}, {})
    labs.set_links_up(lab, "bra", "lon", up=True)
    labs.set_for_experiment(lab, DECLARED)
    seedless = [{end: replace(each, seed=None) for end, each in wires.items()} for wires in (wiring(lab).wires, before)]
    assert seedless[0] == seedless[1]
    assert network(lab).gro == set()


def test_a_cut_link_stays_cut_when_a_host_is_started_again(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    labs.set_for_experiment(lab, Settings(gro="on"))
    before = len(wiring(lab).set)
    labs.restart(lab, "bra")
    assert {wiring(lab).wires[port].loss for port in (AMS, BRA)} == {LOSS_OF_ALL}
    assert ("bra", "eth1") in network(lab).gro
    assert len(wiring(lab).set) == before  # the wires are no part of the host


class BrokenOff(Exception):
    """As a signal that ends the command at this moment."""


def test_a_cut_that_was_broken_off_is_finished_by_the_next_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(wiring(lab).wires)

    def set_wires(self: wired_hosts.WiredHosts, wires: Mapping[tuple[str, str], Wire]) -> None:
        raise BrokenOff

    with monkeypatch.context() as patch, pytest.raises(BrokenOff):
        patch.setattr(wired_hosts.WiredHosts, "set_wires", set_wires)
        labs.set_links_up(lab, "ams", "bra", up=False)
    assert lab.read_record().unsettled == {"ams", "bra"}
    wiring(lab).wires = before
    again = brought_up(TEXT)
    assert {wiring(again).wires[port].loss for port in (AMS, BRA)} == {LOSS_OF_ALL}
    assert again.read_record().unsettled == frozenset()


def test_reshape_begins_the_seeds_anew_and_asks_no_host(lab: Lab) -> None:
    asked = network(lab).asked
    labs.reshape(lab, lab.read_record())
    assert set(wiring(lab).set[-1]) == {AMS, BRA, TO_LON, FROM_LON}
    assert network(lab).asked == asked


def test_reshape_reads_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wired_hosts.WiredHosts, "set_wires", lambda *_: None)
    wiring(lab).wires[BRA] = replace(FIRST, delay_ns=FIRST.delay_ns + 1)
    with pytest.raises(HostFailed, match=r"\nbra: eth1: delay is 10.875001 ms, should be 10.875 ms$"):
        labs.reshape(lab, lab.read_record())


def test_a_port_that_is_not_known_between_the_hosts_is_named(lab: Lab) -> None:
    del wiring(lab).wires[TO_LON]
    with pytest.raises(HostFailed, match="lab chain has no wires for the ports bra eth2"):
        shown_links.read_wires(lab)


def test_the_certificate_reads_wires_back_and_measures_what_they_take(lab: Lab) -> None:
    certificate = measure.certificate_after_up(lab, quiet)
    settings = {row.subject: row for row in certificate.rows if row.quantity == "settings"}
    assert all(row.ok for row in settings.values())
    (row,) = (row for row in certificate.rows if (row.subject, row.quantity) == ("ams-bra", "RTT"))
    assert (row.measured, certificate.emulator_overhead_ms) == (21.75, 0.0)
    wiring(lab).wires[AMS] = replace(FIRST, rate_bps=50_000_001)
    network(lab).tbf["bra", "eth1"] = (1e6, 2_000, 64_000)
    notes = {row.subject: row.note for row in measure.certify(lab, quiet).rows if row.quantity == "settings"}
    assert notes["ams"] == "eth1: rate is 50.000001 Mbit/s, should be 50 Mbit/s"
    assert notes["bra"] == "eth1: rate is 1 Mbit/s, should be none"


def test_a_lab_that_is_too_fast_is_not_calibrated_when_it_is_brought_up(lab: Lab) -> None:
    for port in (AMS, BRA):
        wiring(lab).wires[port] = replace(FIRST, delay_ns=0)
    steps: list[str] = []
    assert measure.certificate_after_up(lab, steps.append).too_fast
    assert not any("latency" in step for step in steps)
    assert lab.read_record().emulator_overhead_ms == 0.0
    done = runner.invoke(app, ["check", "--quick"])
    assert done.exit_code == 1
    assert "calibrate" not in done.stdout
    assert "emulator's own latency" not in done.stdout


def test_a_link_is_explained_by_its_wires(lab: Lab) -> None:
    labs.set_for_experiment(lab, Settings(queue_bytes=30_000))
    explanation = explain(lab, link_names.link_named(lab.plan, "ams-bra"))
    shown = {(each.source, each.name): each for each in explanation.quantities}
    queue, delay = shown["ams", "queue"], shown["bra", "delay"]
    assert (queue.declared, queue.wanted, queue.shown, queue.where) == (100_000, 30_000, 30_000, "ams eth1 wire")
    assert (delay.declared, delay.wanted, delay.shown, delay.where) == (10.875, 10.875, 10.875, "bra eth1 wire")
    assert (explanation.carried, explanation.cause, explanation.differences) == (True, "experiment", ())
    words = " ".join(runner.invoke(app, ["explain", "ams-bra"]).stdout.split())
    assert "bra to ams delay 10.875 ms 10.875 ms 10.875 ms bra eth1 wire" in words
    assert "emulator's own latency" not in words


def test_the_command_that_the_answer_names_sets_a_wire_again(lab: Lab) -> None:
    wiring(lab).wires[BRA] = replace(FIRST, jitter_ns=5)
    explanation = explain(lab, link_names.link_named(lab.plan, "ams-bra"))
    assert explanation.differences == ("bra eth1: jitter is 5e-06 ms, should be 0 ms",)
    assert explanation.answer.endswith("minigts link ams bra up sets them again")
    assert runner.invoke(app, ["link", "ams", "bra", "up"]).exit_code == 0
    assert wiring(lab).wires[BRA] == FIRST


def test_what_wires_take_too_long_is_no_matter_of_calibration(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wired_hosts.WiredHosts, "_probe", lambda *_: '{"sent": 2, "rtts_us": [30000, 30000]}')
    explanation = explain(lab, link_names.link_named(lab.plan, "ams-bra"), measuring=True)
    assert explanation.cause == "measured"
    assert "the wire is exactly as declared, so the hosts cause this" in explanation.answer


def test_what_a_wire_loses_undeclared_taints_and_no_host_is_asked(lab: Lab) -> None:
    asked = network(lab).asked
    wiring(lab).counts[AMS] = {"lost": 1, "dropped": 50}
    drops = Drops(lab)
    wiring(lab).counts[AMS] = {"lost": 3, "dropped": 90}
    wiring(lab).counts[TO_LON] = {"lost": 7, "dropped": 4}
    with drops.recording() as machine:
        pass
    assert machine.load is not None
    assert machine.load.dropped == 2 + 4
    with drops.recording() as machine:
        pass
    assert machine.load is not None
    assert machine.load.dropped == 0
    assert network(lab).asked == asked


def test_what_a_cut_link_loses_is_expected_in_that_block_alone(lab: Lab) -> None:
    drops, dropped = Drops(lab), []
    for lost in (40, 41):
        with drops.recording() as machine:
            if not dropped:
                drops.expect_once()
            wiring(lab).counts[AMS] = {"lost": lost, "dropped": 0}
        assert machine.load is not None
        dropped.append(machine.load.dropped)
    assert dropped == [None, 1]


def test_a_switch_s_ports_send_into_wires_as_a_host_s_do() -> None:
    lab = brought_up(SWITCHED)
    assert wiring(lab).wires == declared(lab.plan)
    assert {("s1", "eth1"), ("s1", "eth2")} < wiring(lab).wires.keys()
    switch = lab.plan.machine("s1")
    shown = shown_settings.read_back(lab, switch, lab.read_record(), shown_links.read_wires(lab))
    assert shown_settings.differences(lab.plan, switch, lab.read_record(), shown) == []
    labs.set_links_up(lab, "a", "s1", up=False)
    assert [port for port, each in wiring(lab).wires.items() if each.loss] == [("a", "eth1"), ("s1", "eth1")]


def test_a_run_s_manifest_holds_the_wires(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "_qdiscs", lambda *_: [])
    readback = run_folders._readback(lab)
    assert readback["ams eth1"] == FIRST.numbers
    assert "trace" not in FIRST.numbers  # what is stored of wires without one is as it was
    assert set(readback) == {"ams", "bra", "lon", "ams eth1", "bra eth1", "bra eth2", "lon eth1"}


def test_a_trace_is_there_in_place_of_the_rate_and_is_read_back_by_its_name() -> None:
    way = Shaping(rate_mbit=100, rate_burst_bytes=50_000, rate_peak_mbit=200, queue_bytes=64_000, trace="1x60")
    found = wire.wire_for(way)
    assert (found.rate_bps, found.credit_bytes, found.peak_bps, found.queue_bytes) == (None, 0, None, 64_000)
    assert found.numbers["trace_runs"] == "1x60"
    shown = replace(found, trace_runs=None)  # as the clock tells it
    assert shown == found
    port = SimpleNamespace(name="eth1", outgoing=way)
    assert wire.differences(port, shown) == []  # type: ignore[arg-type]
    (said,) = wire.differences(port, replace(shown, trace=None))  # type: ignore[arg-type]
    assert said == f"eth1: the trace is none, should be {found.trace}"
    assert wire.wire_for(Shaping(queue_bytes=None, trace="1")).queue_bytes is None
