"""Links that are set otherwise while the lab is up: each direction on its own, read back, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tc_hosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import HostFailed
from minigts.lab import Change, Lab
from minigts.lab.record import Amounts
from minigts.topology.read.load import parse

ENDS = {"ams": True, "bra": True}
OF_AMS = {"ams": True, "bra": False}
AMS_3, BRA_3 = (Change(one_way={end: Amounts(delay_ms=3)}) for end in ENDS)
OVERHEAD_S = 2e-4
"""More than the emulator's own latency, which is taken off delays."""
TEXT = """name: square
hosts: {ams: {}, bra: {}, lon: {}, mil: {}}
links:
  - {ends: [ams, bra], delay: 5ms, rate: 50mbit}
  - {ends: [bra, lon], delay: 5ms}
  - {ends: [lon, mil], delay: 5ms}
  - {ends: [mil, ams], delay: 5ms}
"""
runner = CliRunner()


def quiet(_text: str) -> None:
    pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    tc_hosts.use(monkeypatch, tmp_path)
    return labs.up(parse(TEXT, "square.yaml"), tc_hosts.TcHosts.name, None, quiet)


def minigts(*words: str, code: int = 0) -> str:
    done = runner.invoke(app, words)
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def ways(lab: Lab, link: str = "ams-bra") -> list[tuple[float, float | None, float]]:
    """One-way delay in ms, rate in Mbit/s and loss in % as they should be now, there and back."""
    plan = labs.plan_now(lab.plan, lab.read_record())
    (one,) = (each for each in plan.links if each.name == link)
    return [(each.delay_ms, each.rate_mbit, each.loss_percent) for each in one.ways]


def test_what_is_not_named_stays_as_it_is(lab: Lab) -> None:
    assert "ams-bra is set: delay 20 ms" in minigts("set", "ams-bra", "delay=20ms")
    assert "ams-bra is set: delay 20 ms, loss 1 %" in minigts("set", "bra-ams", "loss=1%")
    assert ways(lab) == [(20, 50, 1), (20, 50, 1)]
    minigts("set", "ams-bra", "delay=declared", "rate=10mbit")
    assert ways(lab) == [(5, 10, 1), (5, 10, 1)]


def test_each_direction_is_set_on_its_own(lab: Lab) -> None:
    minigts("set", "ams-bra", "delay=20ms", "rate=10mbit")
    said = minigts("set", "ams-bra", "delay=1ms", "rate=declared", "--from", "bra")
    assert "ams-bra is set: from ams: delay 20 ms, rate 10 Mbit/s; from bra: delay 1 ms" in said
    assert ways(lab) == [(20, 10, 0), (1, 50, 0)]
    assert lab.read_record().unsettled == frozenset()
    network = tc_hosts.NETWORKS[lab.rundir]
    assert network.netem["bra", "eth1"]["delay"]["delay"] == pytest.approx(0.020, abs=OVERHEAD_S)
    assert network.netem["ams", "eth1"]["delay"]["delay"] == pytest.approx(0.001, abs=OVERHEAD_S)


def test_what_else_a_link_does_to_packets_is_set_each_direction_on_its_own(lab: Lab) -> None:
    said = minigts("set", "ams-bra", "loss=2%", "burst=8packets", "reorder=5%", "--from", "ams")
    assert "ams-bra is set: from ams: loss 2 %, burst 8 packets, reorder 5 %" in said
    netem = tc_hosts.NETWORKS[lab.rundir].netem
    assert netem["bra", "eth1"]["loss-gemodel"]["r"] == pytest.approx(1 / 8)
    assert netem["bra", "eth1"]["reorder"]["reorder"] == pytest.approx(0.05)
    assert not {"loss-gemodel", "reorder"} & netem["ams", "eth1"].keys()
    minigts("set", "ams-bra", "burst.loss=50%", "burst.between=0.5%", "--from", "ams")
    gilbert = netem["bra", "eth1"]["loss-gemodel"]
    assert (gilbert["1-h"], gilbert["1-k"]) == (0.5, 0.005)
    assert gilbert["p"] * gilbert["1-h"] + gilbert["r"] * 0.005 == pytest.approx(0.02 * (gilbert["p"] + gilbert["r"]))
    assert "burst.loss 50 %" in minigts("set", "ams-bra", "jitter=1ms", "jitter.distribution=normal", "--from", "ams")
    minigts("set", "ams-bra", "corrupt=10%")
    assert [round(loss, 4) for _, _, loss in ways(lab)] == [11.8, 10]
    minigts("set", "ams-bra", "loss=0%")
    assert "loss-gemodel" not in netem["bra", "eth1"]
    minigts("set", "ams-bra", "loss=1%", "burst=3packets", "--from", "bra")  # a burst from ams without a loss is let be
    minigts("set", "ams-bra", "--reset")
    assert labs.changed_links(lab.plan, lab.read_record()) == {}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("burst=8packets",), "ams-bra: a burst without a loss: say which share is lost, as in loss: 1%"),
        (("burst=1packet", "loss=90%"), "a loss of 90% needs bursts of 9 packets or more"),
        (("burst.loss=60%",), "ams-bra: burst.loss without a burst: say how many packets it has"),
        (
            ("loss=70%", "burst=8packets", "burst.loss=60%"),
            "a loss of 70% is not between the 0% outside of bursts and the 60% in them",
        ),
        (("jitter.order=free",), "ams-bra: jitter.order without a jitter: say how far the delay varies"),
        (("jitter=1ms", "jitter.order=keep"), "'keep' is not an order: write kept or free"),
        (
            ("delay=0ms", "reorder=5%"),
            "ams-bra: reorder without a delay: there is nothing that a packet could overtake",
        ),
        (("burst=8",), "'8' lacks its unit: write a mean length of bursts as in 8packets"),
        (("duplicate=101%",), "'101%' is out of range"),
    ],
)
def test_what_has_no_effect_is_refused(lab: Lab, words: tuple[str, ...], expected: str) -> None:
    assert expected in minigts("set", "ams-bra", *words, code=2)
    assert labs.changed_links(lab.plan, lab.read_record()) == {}


def test_a_link_that_is_cut_and_made_whole_keeps_what_was_set(lab: Lab) -> None:
    minigts("set", "ams-bra", "delay=20ms")
    minigts("link", "ams", "bra", "down")
    minigts("link", "ams", "bra", "up")
    assert ways(lab) == [(20, 50, 0), (20, 50, 0)]
    assert "to restore its declared settings: minigts set ams-bra --reset" in minigts("status")


def test_a_link_is_as_declared_again(lab: Lab) -> None:
    minigts("set", "ams-bra", "delay=20ms", "queue=100kB", "--from", "bra")
    assert "ams-bra is as declared" in minigts("set", "ams-bra", "--reset")
    assert labs.changed_links(lab.plan, lab.read_record()) == {}
    assert ways(lab) == [(5, 50, 0), (5, 50, 0)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ams-bra"], "name what is to be set, as in delay=20ms, or --reset"),
        (["ams-bra", "delay=1ms", "--reset"], "name what is to be set, as in delay=20ms, or --reset"),
        (["ams-bra", "delay=20"], "delay: '20' lacks its unit"),
        (["ams-bra", "delay=20ms", "loss=101%"], "loss: '101%' is out of range"),
        (["ams-bra", "mtu=9000"], "'mtu=9000' is not one of delay, jitter, jitter.correlation, "),
        (["ams-bra", "delay"], "a setting and its value are one word: delay=VALUE"),
        (["ams-lon", "delay=1ms"], "no link 'ams-lon'"),
        (["ams-bra", "delay=1ms", "--from", "lon"], "'lon' is no end of ams-bra: ams and bra are"),
        (["bra-lon", "queue=10kB"], "bra-lon: a queue without a rate: nothing waits"),
        (["ams", "bra", "delay=1ms"], "ams and bra are hosts: name their link, ams-bra"),
        (["ams-bra", "queue=1kB"], "a queue of 1000 bytes holds no full frame of 1514 bytes"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_is_changed(lab: Lab, words: list[str], says: str) -> None:
    before = tc_hosts.NETWORKS[lab.rundir].set
    assert says in minigts("set", *words, code=2)
    assert labs.changed_links(lab.plan, lab.read_record()) == {}
    assert tc_hosts.NETWORKS[lab.rundir].set == before


def test_every_wrong_setting_is_named(lab: Lab) -> None:
    said = minigts("set", "ams-bra", "delay=20", "loss=1", code=2)
    assert "delay: '20' lacks its unit" in said
    assert "loss: '1' lacks its unit" in said


def test_what_does_not_come_back_as_it_was_set_is_said(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tc_hosts.TcHosts.run

    def meddled(self: tc_hosts.TcHosts, host: str, *words: object, **settings: object) -> object:
        tc_hosts.NETWORKS[lab.rundir].netem["bra", "eth1"]["delay"]["delay"] = 0.5
        return run(self, host, *words, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(tc_hosts.TcHosts, "run", meddled)
    with pytest.raises(HostFailed, match="links are not as they were set:\nbra: "):
        labs.update_settings(lab, "ams-bra", {"delay_ms": 20})
    assert lab.read_record().unsettled == {"ams", "bra"}


@pytest.mark.parametrize(
    ("before", "senders", "update", "after"),
    [
        (Change(), ENDS, {"delay_ms": 3}, Change(delay_ms=3)),
        (Change(), OF_AMS, {"delay_ms": 3}, AMS_3),
        (BRA_3, OF_AMS, {"delay_ms": 3}, Change(delay_ms=3)),
        (Change(delay_ms=3), OF_AMS, {"delay_ms": None}, BRA_3),
        (Change(delay_ms=3, loss_percent=1), ENDS, {"delay_ms": None}, Change(loss_percent=1)),
        (AMS_3, ENDS, {"delay_ms": None}, Change()),
    ],
)
def test_a_change_has_one_form(
    before: Change, senders: dict[str, bool], update: dict[str, float | None], after: Change
) -> None:
    assert before.adjust(senders, update) == after


def test_a_partition_cuts_what_joins_its_groups_and_healing_mends_all(lab: Lab) -> None:
    minigts("set", "mil-ams", "delay=9ms")
    assert "cut: bra-lon, mil-ams" in minigts("partition", "ams,bra", "lon,mil")
    assert labs.cut_links(lab.plan, lab.read_record()) == ["bra-lon", "mil-ams"]
    assert "whole again: bra-lon, mil-ams" in minigts("partition", "--heal")
    assert labs.cut_links(lab.plan, lab.read_record()) == []
    assert ways(lab, "mil-ams") == [(9, None, 0), (9, None, 0)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name two groups or more"),
        (["ams,bra"], "name two groups or more"),
        (["ams", "bra", "--heal"], "name two groups or more"),
        (["ams", ","], "name two groups or more"),
        (["ams,bra", "bra,lon"], "bra is in two groups"),
        (["ams,bra", "nix"], "no machine 'nix'"),
        (["ams", "lon"], "joined through machines that are in no group: bra, mil"),
    ],
)
def test_groups_that_cannot_be_parted_are_refused(lab: Lab, words: list[str], says: str) -> None:
    assert says in minigts("partition", *words, code=2)
    assert labs.cut_links(lab.plan, lab.read_record()) == []


def test_a_command_that_was_killed_while_it_set_is_made_up_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> Callable[[], None]:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(tc_hosts.TcHosts, "run", killed)
        labs.update_settings(lab, "ams-bra", {"delay_ms": 20})
    assert lab.read_record().unsettled == {"ams", "bra"}
    labs.up(lab.plan, tc_hosts.TcHosts.name, None, quiet)
    assert lab.read_record().unsettled == frozenset()
    assert tc_hosts.NETWORKS[lab.rundir].netem["bra", "eth1"]["delay"]["delay"] == pytest.approx(0.020, abs=OVERHEAD_S)
