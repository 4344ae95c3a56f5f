"""Links that go down with the carrier of their ends: what is recorded, what is set, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tc_hosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.dataplane import wire
from minigts.errors import EnvironmentLacks, InputError
from minigts.explore import draws, faults
from minigts.lab import Lab, changes, events, outages
from minigts.providers import supported
from minigts.providers.mininet.provider import MininetProvider
from minigts.topology.link_settings import Shaping
from minigts.topology.outage import SILENT, Outage
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

TEXT = """
name: chain
hosts: {ams: {}, bra: {}, lon: {}}
links:
- {ends: [ams, bra], rtt: 20ms, rate: 50mbit}
- {ends: [bra, lon], rtt: 10ms, rate: 50mbit}
"""
OFF_AT_BOTH = [("ams", "eth1", False), ("bra", "eth1", False)]
ON_AT_BOTH = [("ams", "eth1", True), ("bra", "eth1", True)]
runner = CliRunner()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)


@pytest.fixture
def lab() -> Lab:
    return labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)


def network(lab: Lab) -> tc_hosts.Network:
    return tc_hosts.NETWORKS[lab.rundir]


def done(lab: Lab) -> list[tuple[str, str, bool]]:
    """What was done to carriers since this was last called."""
    found = sorted(network(lab).carriers)
    network(lab).carriers.clear()
    return found


def minigts(*argv: str, code: int = 0) -> str:
    ended = runner.invoke(app, [*argv])
    assert ended.exit_code == code, ended.output
    return ended.output


@pytest.mark.parametrize(
    ("options", "words", "off"),
    [
        ([], "down", OFF_AT_BOTH),
        (["--end", "ams"], "down at ams", OFF_AT_BOTH[:1]),
        (["--end", "bra"], "down at bra", OFF_AT_BOTH[1:]),
        (["--silent"], "cut", []),
    ],
)
def test_a_link_goes_down_and_comes_up(
    lab: Lab, options: list[str], words: str, off: list[tuple[str, str, bool]]
) -> None:
    assert f"the link between ams and bra is {words}" in minigts("link", "ams", "bra", "down", *options)
    assert (lab.read_record().cut, done(lab)) == ({"ams-bra"}, off)
    assert f"ams-bra is {words}; to restore it: minigts link ams bra up" in minigts("status")
    assert json.loads(minigts("status", "--json"))[0]["down"] == {"ams-bra": words}
    assert f"ams-bra is {words}, so everything" in minigts("explain", "ams", "bra")
    minigts("link", "ams", "bra", "up")
    assert done(lab) == [(host, port, True) for host, port, _ in off]
    record = lab.read_record()
    assert (record.cut, record.without_carrier) == (frozenset(), frozenset())


def test_an_outage_can_become_another_one(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    labs.set_links_up(lab, "ams", "bra", up=False, how=Outage())
    assert done(lab) == OFF_AT_BOTH
    labs.set_links_up(lab, "ams", "bra", up=False, how=Outage(end="bra"))
    assert done(lab) == ON_AT_BOTH[:1]
    labs.set_links_up(lab, "ams", "bra", up=False, how=SILENT)
    assert done(lab) == ON_AT_BOTH[1:]
    assert outages.outage(lab.read_record(), "ams-bra") == SILENT


def test_each_way_down_is_an_event(lab: Lab) -> None:
    for how in (Outage(), Outage(end="ams"), SILENT):
        labs.set_links_up(lab, "ams", "bra", up=False, how=how)
    said = [{key: value for key, value in each.items() if key != "time"} for each in events.read(lab.rundir)]
    assert said[-3:] == [
        {"event": "link down", "link": "ams-bra", "without_carrier": ["ams", "bra"]},
        {"event": "link down", "link": "ams-bra", "without_carrier": ["ams"]},
        {"event": "cut", "link": "ams-bra"},
    ]


def test_a_host_that_is_started_again_has_no_carrier_either(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False, how=Outage())
    done(lab)
    labs.restart(lab, "bra")
    assert done(lab) == [("bra", "eth1", False), ("bra", "eth2", True)]


def test_what_is_set_for_an_experiment_and_restored_leaves_carriers_alone(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False, how=Outage())
    before = lab.read_record()
    done(lab)
    labs.set_for_experiment(lab, labs.Settings(unlimited=True))
    labs.set_for_experiment(lab, labs.DECLARED)
    assert done(lab) == []
    labs.set_links_up(lab, "ams", "bra", up=True)
    done(lab)
    labs.restore_links(lab, before)
    assert (done(lab), lab.read_record().without_carrier) == (OFF_AT_BOTH, before.without_carrier)


def test_a_partition_leaves_a_link_without_carrier_as_it_is_and_healing_brings_all_up(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False, how=Outage())
    done(lab)
    assert changes.partition(lab, [["ams"], ["bra"], ["lon"]]) == ["ams-bra", "bra-lon"]
    assert (done(lab), outages.outage(lab.read_record(), "bra-lon")) == ([], SILENT)
    changes.heal(lab)
    assert (done(lab), lab.read_record().cut) == (ON_AT_BOTH, frozenset())


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["down", "--end", "lon"], "'lon' is no end of ams-bra: ams and bra are"),
        (["down", "--end", "ams", "--silent"], "give one of them"),
        (["up", "--silent"], "leave them out with up"),
        (["up", "--end", "ams"], "leave them out with up"),
    ],
)
def test_what_cannot_be_meant_is_refused(lab: Lab, argv: list[str], says: str) -> None:
    assert says in " ".join(minigts("link", "ams", "bra", *argv, code=2).split())
    assert (done(lab), lab.read_record().cut) == ([], frozenset())


def test_where_no_carrier_can_be_taken_the_reason_is_said_and_what_to_do(lab: Lab) -> None:
    network(lab).no_carriers = "its kernel is another one"
    with pytest.raises(EnvironmentLacks, match=r"its kernel is another one; or cut it in silence: .* down --silent"):
        labs.set_links_up(lab, "ams", "bra", up=False, how=Outage())
    assert (done(lab), lab.read_record().cut) == ([], frozenset())
    labs.set_links_up(lab, "ams", "bra", up=False)
    assert lab.read_record().cut == {"ams-bra"}


def test_a_schedule_has_links_that_go_down() -> None:
    steps = "- {at: 1s, link: ams-bra, down: 100us}\n- {at: 2s, link: ams-bra, down: 1s, end: bra}\n"
    plan = parse(f"{TEXT}schedule:\n{steps}", "chain.yaml")
    assert plan.schedule == (
        Moment(at_s=1, link="ams-bra", up=False, carrier_lost=True),
        Moment(at_s=1.0001, link="ams-bra", up=True),
        Moment(at_s=2, link="ams-bra", up=False, carrier_lost=True, lost_at="bra"),
        Moment(at_s=3, link="ams-bra", up=True),
    )
    assert [each.in_words for each in plan.schedule] == ["down", "whole", "down at bra", "whole"]


def test_a_schedule_that_takes_carriers_is_refused_where_ends_keep_theirs() -> None:
    steps = "schedule:\n- {at: 1s, link: bra-lon, cut: 1s}\n- {at: 3s, link: ams-bra, down: 1s}\n"
    with pytest.raises(EnvironmentLacks, match=r"ams-bra with `schedule: .*; provider.* or write `cut:` for `down:`"):
        supported.require(parse(TEXT + steps, "chain.yaml"), "mininet", MininetProvider.supports)
    supported.require(parse(TEXT + steps.replace("down:", "cut:"), "chain.yaml"), "mininet", MininetProvider.supports)


def test_a_wire_has_its_ports_carrier() -> None:
    way = Shaping(delay_ms=1.0)
    assert wire.wire_for(way).no_carrier == 0
    gone = wire.wire_for(way, carrier=False)
    assert gone.no_carrier == 1 and gone.numbers["no_carrier"] == 1
    (port,) = parse(TEXT, "chain.yaml").machine("ams").ports
    port = port.model_copy(update={"outgoing": way})
    assert wire.differences(port, gone) == ["eth1: the carrier is lost, should be there"]
    assert wire.differences(port, wire.wire_for(way), carrier=False) == ["eth1: the carrier is there, should be lost"]


def test_flaps_are_drawn_by_seed() -> None:
    plan = parse(TEXT, "chain.yaml")
    text = "faults:\n  flap: {every: 1s, for: 100us to 2ms, ends: either}\n  length: 60s\n"
    planned = faults.parse(text, "faults.yaml", plan)
    drawn = draws.draw(planned, plan, 1)
    assert drawn == draws.draw(planned, plan, 1) != draws.draw(planned, plan, 2)
    assert all(0.0001 <= each.for_s <= 0.002 and each.link in ("ams-bra", "bra-lon") for each in drawn)
    assert {each.end != "" for each in drawn} == {True, False}
    assert all(each.end in ("", *plan.ends_of(each.link)) for each in drawn)
    assert drawn[0].in_words.startswith(f"{drawn[0].link} down")


@pytest.mark.parametrize("ends", ["both", "one"])
def test_flaps_take_the_carrier_where_they_are_told_to(ends: str) -> None:
    plan = parse(TEXT, "chain.yaml")
    text = f"faults:\n  flap: {{every: 1s, for: 1ms, ends: {ends}, of: [bra-lon]}}\n  length: 60s\n"
    drawn = draws.draw(faults.parse(text, "faults.yaml", plan), plan, 3)
    assert {each.end for each in drawn} == ({""} if ends == "both" else {"bra", "lon"})


def test_a_flap_of_a_link_that_is_not_there_is_refused() -> None:
    text = "faults:\n  flap: {every: 1s, for: 1ms, of: [ams-lon]}\n  length: 60s\n"
    with pytest.raises(InputError, match="no link 'ams-lon'"):
        faults.parse(text, "faults.yaml", parse(TEXT, "chain.yaml"))
