"""What Python programs may rely on: labs that are given back as they were, links that are changed, errors that help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tc_hosts
from experiment_lab import recorded

from minigts import api, overlays
from minigts import lab as labs
from minigts.errors import InputError, MinigtsError
from minigts.fidelity import kept_certificate, measure, rates
from minigts.lab import Change, Lab, Settings, current, events
from minigts.providers import registry
from minigts.topology.plan.elements import Port
from minigts.topology.read.load import parse

TEXT = "name: chain\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n"
ON = tc_hosts.TcHosts.name


class ServingHosts(tc_hosts.EditedHosts):
    """With servers of iperf3, each for one client."""

    name = "serving-hosts"

    def __init__(self, rundir: Path) -> None:
        super().__init__(rundir)
        self.servers: set[tuple[str, str]] = set()
        """By host and port."""

    def _answer(self, network: tc_hosts.Network, host: str, argv: list[str], stdin: str) -> str:
        match argv:
            case ["sh", "-c", rates.SERVE, port]:
                self.servers.add((host, port))
                return ""
            case ["iperf3", "-c", address, "-p", port, *_]:
                server = (tc_hosts.answering(network.plan, address), port)
                if server in self.servers:
                    self.servers.remove(server)
                    return recorded("iperf3.18-tcp.json")
        return super()._answer(network, host, argv, stdin)


def quiet(_text: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture(autouse=True)
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    monkeypatch.setitem(registry._PROVIDERS, ServingHosts.name, ServingHosts)


@pytest.fixture
def lab() -> Lab:
    lab = labs.up(parse(TEXT, "chain.yaml"), ON, None, quiet)
    overlays.join(lab, "none", quiet)
    measure.certify(lab, quiet)
    labs.set_links_up(lab, "h2", "h3", up=False)
    return lab


def state(lab: Lab) -> dict[str, object]:
    """All that is set on its hosts, and every file of its run directory but what tells of all that has happened: the
    events, and in lab.json how often links were set."""
    network = tc_hosts.NETWORKS[lab.rundir]
    files = {
        str(path): path.read_bytes() for path in lab.rundir.rglob("*") if path.is_file() and path.name != events.FILE
    }
    record = lab.read_record().model_copy(update={"times_set": {}})
    files[str(lab.rundir / "lab.json")] = record.model_dump_json().encode()
    return {"tbf": dict(network.tbf), "netem": dict(network.netem), "gro": set(network.gro), **files}


def meddle(lab: Lab) -> None:
    """What live tests do to a lab, and more."""
    labs.set_links_up(lab, "h1", "h2", up=False)
    labs.set_links_up(lab, "h2", "h3", up=True)
    labs.replace_settings(lab, "h1", "h2", Change(delay_ms=20, rate_mbit=10))
    labs.set_for_experiment(lab, Settings(unlimited=True, gro="on"))
    lab.write(lab.read_record().model_copy(update={"emulator_overhead_ms": 3.0}))
    labs.reshape(lab, lab.read_record())
    tc_hosts.NETWORKS[lab.rundir].netem["h1", "eth1"]["delay"]["delay"] = 0.5
    measure.certify(lab, quiet)
    overlays.leave(lab, quiet)


@pytest.mark.parametrize("certified", [True, False])
def test_a_borrowed_lab_is_given_back_as_it_was(lab: Lab, certified: bool) -> None:
    if not certified:
        (lab.rundir / kept_certificate.FILE).unlink()
    before = state(lab)
    with api.open_lab("chain").given_back() as lent:
        assert lent.name == lab.name
        meddle(lab)
        assert state(lab) != before
    assert state(lab) == before


def test_a_link_takes_what_can_be_set_in_the_language_s_words(lab: Lab) -> None:
    link = api.open_lab("chain").link("h1", "h2")
    link.change(rtt="30ms", rate="10mbit", queue="100kB", loss="1%", burst="8packets")
    assert lab.read_record().changed["h1-h2"].given == {
        "delay_ms": 15,
        "loss_percent": 1,
        "rate_mbit": 10,
        "queue_bytes": 100_000,
        "burst_packets": 8,
    }
    link.mend()
    assert lab.read_record().changed == {}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"delay": "1ms", "rtt": "2ms"}, "change: set either delay, which is one-way, or rtt"),
        ({"delay": "1"}, "change: delay: '1' lacks its unit"),
        ({"mtu": "9000"}, "change: 'mtu' cannot be set: write delay, jitter, 'jitter_correlation', "),
        ({"burst": "8packets"}, "h1-h2: a burst without a loss"),
    ],
)
def test_what_a_link_cannot_be_set_to_is_refused(lab: Lab, settings: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        api.open_lab("chain").link("h1", "h2").change(**settings)
    assert lab.read_record().changed == {}


def test_also_when_a_test_breaks_off(lab: Lab) -> None:
    before = state(lab)
    with pytest.raises(KeyboardInterrupt), api.open_lab().given_back():
        meddle(lab)
        raise KeyboardInterrupt
    assert state(lab) == before


def test_links_alone_are_given_back_without_touching_the_rest(lab: Lab) -> None:
    before = state(lab)
    with api.open_lab().links_given_back() as lent:
        lent.link("h1", "h2").change(delay="40ms", loss="1%")
        lent.link("h2", "h3").mend()
        assert state(lab) != before
    assert state(lab) == before


def test_a_lab_that_up_brings_up_goes_down_with_its_block_and_another_stays(lab: Lab) -> None:
    with api.up(TEXT.replace("name: chain", "name: second"), provider=ON) as brought:
        assert (brought.ours, brought.name, brought.overlay) == (True, "second", "none")
        assert [each.name for each in api.all_labs()] == ["chain", "second"]
    with api.open_lab() as opened:
        assert (opened.ours, opened.cut) == (False, {"h2-h3"})
    assert [each.name for each in api.all_labs()] == ["chain"]


def test_a_lab_is_the_same_lab_whoever_is_told_of_its_progress(lab: Lab) -> None:
    told = api.open_lab(say=lambda _: None)
    assert told == api.open_lab()
    assert repr(told) == repr(api.open_lab())


def test_a_command_reads_what_it_is_given_and_otherwise_nothing(lab: Lab) -> None:
    host = api.open_lab().host("h1")
    assert host.run("cat", stdin="for it\n").stdout == "for it\n"
    assert host.run("cat").stdout == ""


def test_what_is_expected_follows_what_is_set_of_the_links(lab: Lab) -> None:
    opened = api.open_lab()
    opened.link("h3", "h2").mend()
    declared = opened.rtt("h1", "h3")
    opened.link("h1", "h2").change(rtt="50ms", rate="20mbit")
    changed = opened.rtt("h3", "h1")
    assert (declared.expected_ms, declared.lost, declared.as_expected) == (20, 0, True)
    assert (changed.expected_ms, changed.median_ms, changed.as_expected) == (60, pytest.approx(60, abs=0.01), True)
    plan = labs.plan_now(lab.plan, lab.read_record())
    near, far = plan.path("h1", "h2"), plan.path("h1", "h3")
    assert (near.rtt_ms, near.rate_mbit, far.rtt_ms, far.rate_mbit) == (50, 20, 60, 20)
    assert near.tcp_ceiling_mbit == pytest.approx(20 * 1448 / 1514)
    assert plan.links[0].rtt_ms == 50
    assert plan.paths[-1] == lab.plan.paths[-1]


def test_nothing_comes_back_over_a_link_that_was_cut(lab: Lab) -> None:
    measured = api.open_lab().rtt("h1", "h3", count=7)
    assert (measured.sent, measured.lost, measured.loss_percent, measured.as_expected) == (7, 7, 100, False)
    assert "7 lost" in str(measured)


def test_what_tcp_reaches_is_held_against_the_links_or_the_hosts_buffers_where_those_carry_less() -> None:
    labs.up(parse("name: long\npair: {link: {rtt: 100ms, rate: 1gbit}}\n", "long.yaml"), ServingHosts.name, None, quiet)
    lab = api.open_lab()
    flow = lab.throughput("h1", "h2")
    assert flow.mbit == pytest.approx(170.847)
    # Linux's send buffer of 4 MiB, of which payload is at least half, once in a round trip.
    assert (flow.least_mbit, flow.ceiling_mbit) == pytest.approx((4194304 * 4 / 1e5, 4194304 * 8 / 1e5))
    assert flow.reaches_ceiling
    lab.link("h1", "h2").change(rate="100mbit")
    slower = lab.throughput("h1", "h2")
    assert slower.ceiling_mbit == pytest.approx(100 * 1448 / 1514)
    assert slower.least_mbit is None
    assert not slower.reaches_ceiling


def test_a_change_is_recorded_shown_and_gone_when_the_link_is_mended(lab: Lab) -> None:
    link = api.open_lab().link("h2", "h1")
    link.change(delay="20ms", jitter="1ms", loss="5%", rate="10mbit")
    (change,) = labs.changed_links(lab.plan, lab.read_record()).values()
    assert change.in_words == "delay 20 ms, jitter 1 ms, loss 5 %, rate 10 Mbit/s"
    assert kept_certificate.valid_certificate(lab) is None
    port = current.port_now(lab.plan, lab.plan.host("h1").ports[0], lab.read_record())
    other = current.port_now(lab.plan, lab.plan.host("h2").ports[0], lab.read_record())
    assert port.outgoing.queue_bytes == 75_000
    assert (port.outgoing.seed, port.incoming.seed) == (other.incoming.seed, other.outgoing.seed)
    assert len({port.outgoing.seed, port.incoming.seed} - {None}) == 2
    link.mend()
    assert labs.changed_links(lab.plan, lab.read_record()) == {}


def test_hosts_and_links_come_and_go_and_each_call_returns_the_lab_as_it_is_then() -> None:
    with api.up(TEXT, provider=ServingHosts.name) as three:
        four = three.add_host("h4", "h3", rtt="6ms")
        assert four.rtt("h1", "h4").as_expected
        ring = four.add_link("h4", "h1", rtt="4ms")
        row = ring.remove_link("h4-h3")
        again = row.remove_host("h4")
        seen = [[*(link.name for link in each.plan.links)] for each in (three, four, ring, row, again)]
        assert seen == [
            ["h1-h2", "h2-h3"],
            ["h1-h2", "h2-h3", "h4-h3"],
            ["h1-h2", "h2-h3", "h4-h3", "h4-h1"],
            ["h1-h2", "h2-h3", "h4-h1"],
            ["h1-h2", "h2-h3"],
        ]
        assert [host.name for host in again.hosts] == ["h1", "h2", "h3"]
        assert again.rtt("h1", "h3").as_expected
        with pytest.raises(InputError, match="no host 'h4'"):
            again.host("h4")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"delay": "20"}, "change: delay: '20' lacks its unit: write a time as in 10ms"),
        ({"loss": "200%"}, "change: loss: '200%' is out of range"),
        ({"rate": "fast"}, "change: rate: 'fast' is not"),
        ({"delay": "1ms", "rtt": "2ms"}, "rtt, not both"),
    ],
)
def test_a_wrong_change_changes_nothing(lab: Lab, wrong: dict[str, str], says: str) -> None:
    before = state(lab)
    with pytest.raises(InputError) as caught:
        api.open_lab().link("h1", "h2").change(**wrong)
    assert says in str(caught.value)
    assert state(lab) == before


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda lab: lab.host("h11"), "no host 'h11'; hosts are h1, h2, h3; did you mean 'h1'?"),
        (lambda lab: lab.rtt("h1", "x"), "no host 'x'"),
        (lambda lab: lab.rtt("h1", "h1"), "name two hosts"),
        (lambda lab: lab.link("h1", "h3"), "no link between h1 and h3"),
        (lambda lab: api.open_lab("chian"), "did you mean 'chain'?"),
        (lambda lab: lab.join("swam"), "no overlay 'swam'"),
        (lambda lab: api.up("no-such.yaml"), "no-such.yaml"),
        (lambda lab: api.run_experiment({"name": "x", "topologie": "chain"}), "topologie"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence(lab: Lab, ask: Callable[[api.Lab], object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        ask(api.open_lab())
    assert says in str(caught.value)


def test_in_mode_neighbours_hosts_further_away_are_not_measured(tmp_path: Path) -> None:
    text = TEXT.replace("name: chain\n", "name: next\nrouting: neighbours\n")
    with api.up(text, provider=ON) as lab:
        assert lab.rtt("h2", "h1").as_expected
        with pytest.raises(InputError, match="only an overlay joins them"):
            lab.rtt("h1", "h3")


def test_there_are_no_containers_without_an_overlay(lab: Lab) -> None:
    overlays.leave(lab, quiet)
    with pytest.raises(MinigtsError, match="no overlay is joined on lab chain"):
        api.open_lab().container("h1")


def test_a_link_that_is_removed_and_added_again_draws_others_than_the_one_before() -> None:
    with api.up(TEXT, provider=ServingHosts.name) as three:
        ring = three.add_link("h3", "h1", rtt="4ms", loss="5%")
        port = ring.plan.host("h1").ports[-1]
        first = recorded_port(ring, port).incoming.seed
        again = ring.remove_link("h3-h1").add_link("h3", "h1", rtt="4ms", loss="5%")
        port = again.plan.host("h1").ports[-1]
        assert recorded_port(again, port).incoming.seed not in (None, first, port.incoming.seed)
        shown = tc_hosts.NETWORKS[labs.open_lab(again.name).rundir].netem["h1", port.name]
        assert shown["seed"] == recorded_port(again, port).incoming.seed


def recorded_port(lab: api.Lab, port: Port) -> Port:
    opened = labs.open_lab(lab.name)
    return current.port_now(opened.plan, port, opened.read_record())
