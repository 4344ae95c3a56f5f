"""`minigts explain`: for each cause of a wrong delay the one sentence that names it, and nothing is set."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import tc_hosts
from mutants import mutated
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.dataplane import filters
from minigts.errors import HostFailed
from minigts.fidelity import measure, shown_settings
from minigts.fidelity.certificate import CertificateRow
from minigts.fidelity.explanation import Explanation, MeasuredLink, compose_explanation, explain
from minigts.lab import Change, Lab, Record, Settings
from minigts.topology.plan import link_names
from minigts.topology.read.load import load, parse

RECORDED = Path(__file__).parents[1] / "recorded_settings"
PAIR = load(Path(__file__).parents[3] / "topologies" / "pair.yaml", known_overlays=["none"])
RECORD = Record(
    provider="uml", time="real", created=datetime(2026, 11, 22, tzinfo=UTC), state="up", emulator_overhead_ms=0.0898
)
ALL_WELL = ("ams.txt", "bra.txt")
BY_HAND = ("ams.txt", "bra-by-hand.txt")
TEXT = """
name: chain
hosts: {ams: {}, bra: {}, lon: {}}
links:
- {ends: [ams, bra], rtt: 20ms, rate: 50mbit}
- {ends: [bra, lon], delay: 5ms, loss: 5%}
"""
TWICE = """
name: twice
hosts: {ams: {}, bra: {}}
links:
- {ends: [ams, bra], rtt: 20ms}
- {ends: [ams, bra], rtt: 10ms}
"""
runner = CliRunner()


def quiet(_text: str) -> None:
    pass


def round_trip(median_ms: float, *, ok: bool) -> CertificateRow:
    return CertificateRow(
        subject="ams-bra", quantity="RTT", unit="ms", declared=17.7, measured=median_ms, tolerance=0.377, ok=ok
    )


def measured(median_ms: float, *, ok: bool, busy: tuple[str, ...] = (), current: bool = True) -> MeasuredLink:
    rows = (round_trip(median_ms, ok=ok),)
    return MeasuredLink(rows=rows, at=None, source="certificate", current=current, busy=busy)


def of_pair(
    files: tuple[str, str] = ALL_WELL, record: Record = RECORD, seen: MeasuredLink | None = None, **unread: str
) -> Explanation:
    """From what the two hosts of pair.yaml showed when it was recorded."""
    shown = {
        host.name: shown_settings.parse(host, (RECORDED / file).read_text())
        for host, file in zip(PAIR.hosts, files, strict=True)
        if host.name not in unread
    }
    return compose_explanation("pair", PAIR, PAIR.links[0], record, shown, unread, seen)


def test_each_direction_is_shown_as_declared_as_wanted_and_as_its_two_hosts_hold_it() -> None:
    shown = {(each.source, each.name): each for each in of_pair(BY_HAND).quantities}
    there, back, rate = shown["ams", "delay"], shown["bra", "delay"], shown["ams", "rate"]
    assert (there.declared, there.wanted, there.shown) == (8.85, pytest.approx(8.7602), 50.0)
    assert (back.declared, back.wanted, back.shown) == (8.85, pytest.approx(8.7602), pytest.approx(8.7602))
    assert (there.where, back.where) == ("bra ifb-eth1 netem", "ams ifb-eth1 netem")
    assert (rate.declared, rate.wanted, rate.shown, rate.where) == (100.0, 100.0, 100.0, "ams eth1 tbf")


POLICED = """
name: pair
hosts: {ams: {}, bra: {}}
links:
- {ends: [ams, bra], delay: 8ms, rate: {mean: 20mbit, burst: 100kB, excess: EXCESS}, blackhole: 1400B}
"""
POLICES = """
--filters of eth1 ingress
filter protocol all pref 1 u32 chain 0 fh 800::2 order 1 key ht 800 bkt 0 terminal flowid not_in_hw
  match 00000000/00000000 at 0
\taction order 1:  police 0x1 ACTION
\taction order 2: mirred (Egress Redirect to device ifb-eth1) stolen
--filters of eth1 egress
"""
OF_A_BUCKET = ("rate", "rate.burst", "rate.excess", "blackhole", "queue")


def bucket(excess: str, action: str) -> dict[str, tuple[object, object, str]]:
    """What is shown of the direction from ams of what a token bucket holds, where bra's filters drop so."""
    plan = parse(POLICED.replace("EXCESS", excess), "pair.yaml", time="real")
    dropping = filters.read(POLICES.replace("ACTION", action))
    shown = {
        host.name: replace(shown_settings.parse(host, (RECORDED / file).read_text()), filters=dropping)
        for host, file in zip(plan.hosts, ALL_WELL, strict=True)
    }
    found = compose_explanation("pair", plan, plan.links[0], RECORD, shown, {}, None).quantities
    own = [each for each in found if each.source == "ams" and each.name in OF_A_BUCKET]
    return {each.name: (each.wanted, each.shown, each.where) for each in own}


def test_a_policer_and_a_black_hole_are_shown_as_the_receiver_holds_them() -> None:
    where = "bra eth1 police"
    found = bucket("drop", "rate 20Mbit burst 100000b mtu 1414b action drop/pipe overhead 14b")
    assert found.pop("queue")[0] is None
    assert found == {
        "rate": (20.0, 20.0, where),
        "rate.burst": (100_000, 100_000, where),
        "rate.excess": ("drop", "drop", where),
        "blackhole": (1400, 1400, where),
    }
    other = bucket("drop", "rate 2Mbit burst 50000b mtu 1200b action drop/pipe overhead 14b")
    assert [other[name][1] for name in ("rate", "rate.burst", "blackhole")] == [2.0, 50_000, 1186]
    gone = bucket("drop", "mtu 65549b action drop/pipe")
    assert [gone[name][1] for name in ("rate", "rate.burst", "rate.excess", "blackhole")] == [None, None, "queue", None]


def test_a_credit_is_the_burst_of_the_senders_tbf() -> None:
    found = bucket("queue", "rate 0bit burst 0b mtu 1414b action drop/pipe overhead 0b")
    assert found["rate.burst"] == (100_000, 50_000, "ams eth1 tbf")
    assert "rate.excess" not in found
    assert found["blackhole"] == (1400, 1400, "bra eth1 police")


def test_interfaces_are_shown_with_mtu_and_offloads() -> None:
    first, second = of_pair().interfaces
    assert (first.host, first.port, first.mtu, first.gro) == ("ams", "eth1", 1500, "off")
    assert second.fact.startswith("eth1: MTU 1500, on are ")


@pytest.mark.parametrize(
    ("explanation", "cause", "answer"),
    [
        (of_pair(seen=measured(17.8, ok=True)), "none", "all is set as declared, and what was measured lies within"),
        (of_pair(), "not-measured", "this link has not been measured yet: add --measure"),
        (of_pair(seen=measured(17.8, ok=True, current=False)), "not-measured", "the links had other settings when"),
        (
            of_pair(BY_HAND),
            "settings",
            "bra eth1: delay is 50 ms, should be 8.7602 ms, and more): minigts link",
        ),
        (
            of_pair(BY_HAND, RECORD.model_copy(update={"cut": frozenset({"ams-bra"})})),
            "settings",
            "minigts link ams bra down --silent sets them again",
        ),
        (of_pair(bra="host bra is not running"), "no-answer", "bra does not answer (host bra is not running)"),
        (of_pair(seen=measured(16.0, ok=False)), "calibration", "too much is subtracted from the delays"),
        (of_pair(seen=measured(19.0, ok=False)), "calibration", "the machine is slower than when"),
        (of_pair(seen=measured(19.0, ok=False, busy=("it was",))), "busy", "the machine was busy (it was)"),
    ],
)
def test_the_answer_names_the_likely_cause(explanation: Explanation, cause: str, answer: str) -> None:
    assert explanation.cause == cause
    assert answer in explanation.answer


def test_what_a_link_takes_by_itself_cannot_be_taken_off_a_smaller_delay() -> None:
    slow = RECORD.model_copy(update={"emulator_overhead_ms": 9.5})
    shown = {
        host.name: shown_settings.parse(host, (RECORDED / file).read_text().replace('"delay":0.0087602', '"delay":0'))
        for host, file in zip(PAIR.hosts, ALL_WELL, strict=True)
    }
    explanation = compose_explanation("pair", PAIR, PAIR.links[0], slow, shown, {}, measured(19.0, ok=False))
    assert explanation.cause == "nothing-taken-off"
    assert "the emulator itself takes 9.500 ms in each direction" in explanation.answer


def test_broken_settings_are_settings_or_one_sentence(request: pytest.FixtureRequest) -> None:
    chance, host = random.Random(1), PAIR.hosts[1]
    text = (RECORDED / "bra.txt").read_text()
    for _ in range(max(100, request.config.getoption("--fuzz") // 100)):
        try:
            shown = shown_settings.parse(host, mutated(text, chance))
            shown_settings.differences(PAIR, host, RECORD, shown)
        except HostFailed as error:
            assert str(error).startswith("bra: the settings of its links cannot be read: ")
            assert len(str(error)) < 300 and "\n" not in str(error)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)


@pytest.fixture
def lab() -> Lab:
    return labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)


def network(lab: Lab) -> tc_hosts.Network:
    return tc_hosts.NETWORKS[lab.rundir]


def of_lab(lab: Lab, name: str = "ams-bra", *, measuring: bool = False) -> Explanation:
    """Of a link of the lab, on which nothing is set meanwhile and of which nothing is written."""
    before = (network(lab).set, {path: path.read_bytes() for path in lab.rundir.rglob("*") if path.is_file()})
    explanation = explain(lab, link_names.link_named(lab.plan, name), measuring=measuring)
    assert (network(lab).set, {path: path.read_bytes() for path in lab.rundir.rglob("*") if path.is_file()}) == before
    return explanation


def test_a_lab_as_it_was_brought_up_is_as_declared(lab: Lab) -> None:
    assert of_lab(lab).cause == "not-measured"
    certificate = measure.certify(lab, quiet)
    explanation = of_lab(lab)
    assert explanation.measured is not None
    assert (explanation.measured.source, explanation.measured.at) == ("certificate", certificate.measured_at)
    assert {row.quantity for row in explanation.measured.rows} == {"RTT", "loss", "TCP"}


def test_one_link_is_measured_now(lab: Lab) -> None:
    network(lab).surplus_ms = 2.0
    explanation = of_lab(lab, measuring=True)
    assert explanation.measured is not None
    assert [(row.quantity, row.measured) for row in explanation.measured.rows] == [
        ("RTT", pytest.approx(23.8)),
        ("loss", 0),
    ]
    assert explanation.measured.source == "now"
    assert explanation.cause in ("calibration", "busy")


def test_a_link_that_was_changed_is_named_with_how(lab: Lab) -> None:
    labs.replace_settings(lab, "ams", "bra", Change(delay_ms=50, loss_percent=1))
    explanation = of_lab(lab)
    assert (explanation.cause, explanation.differences) == ("changed", ())
    assert "(delay 50 ms, loss 1 %); to restore them: minigts set ams-bra --reset" in explanation.answer
    said = runner.invoke(app, ["status"]).output
    assert (
        "ams-bra is changed (delay 50 ms, loss 1 %); to restore its declared settings: minigts set ams-bra --reset"
        in said
    )


def test_a_cut_link_is_named_and_not_measured(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    explanation = of_lab(lab, measuring=True)
    assert (explanation.cause, explanation.cut, explanation.measured) == ("cut", True, None)
    assert "minigts link ams bra up" in explanation.answer
    assert of_lab(lab, "bra-lon").cause == "not-measured"


def test_the_command_that_the_answer_names_puts_a_delay_back_that_was_changed_by_hand(lab: Lab) -> None:
    network(lab).netem["bra", "eth1"]["delay"]["delay"] = 0.5
    explanation = of_lab(lab)
    assert explanation.differences == ("bra eth1: delay is 500 ms, should be 9.9 ms",)
    assert explanation.answer.endswith("minigts link ams bra up sets them again")
    assert runner.invoke(app, ["link", "ams", "bra", "up"]).exit_code == 0
    assert of_lab(lab).differences == ()


def test_a_command_that_was_broken_off_is_named_and_the_answer_ends_it(lab: Lab) -> None:
    held = tc_hosts.NETWORKS.pop(lab.rundir)
    assert runner.invoke(app, ["link", "ams", "bra", "down"]).exit_code == 1
    tc_hosts.NETWORKS[lab.rundir] = held
    explanation = of_lab(lab)
    assert (explanation.cause, explanation.cut) == ("broken-off", True)
    assert explanation.answer.endswith("minigts link ams bra down sets them again")
    assert runner.invoke(app, ["link", "ams", "bra", "down"]).exit_code == 0
    assert of_lab(lab).cause == "cut"


def test_an_experiments_settings_are_named(lab: Lab) -> None:
    labs.set_for_experiment(lab, Settings(unlimited=True, gro="on"))
    explanation = of_lab(lab)
    assert explanation.cause == "experiment"
    assert "(no rate, generic receive offload on)" in explanation.answer


def test_a_host_that_does_not_answer_leaves_the_other_s_end_to_be_shown(lab: Lab) -> None:
    network(lab).plan = network(lab).plan.model_copy(update={"hosts": network(lab).plan.hosts[:1]})
    explanation = explain(lab, link_names.link_named(lab.plan, "ams-bra"), measuring=True)
    assert (explanation.cause, [each.host for each in explanation.interfaces]) == ("no-answer", ["ams"])
    shown = {(each.source, each.name): each.shown for each in explanation.quantities}
    assert (shown["bra", "delay"], shown["ams", "delay"]) == (pytest.approx(9.9), None)


@pytest.mark.parametrize("argv", [["ams-bra"], ["bra-ams"], ["bra", "ams"]])
def test_a_link_is_named_by_itself_or_by_its_hosts(lab: Lab, argv: list[str]) -> None:
    done = runner.invoke(app, ["explain", *argv, "--json"])
    assert (done.exit_code, json.loads(done.stdout)["link"]) == (0, "ams-bra")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["ams-bar"], "no link 'ams-bar'; links are ams-bra, bra-lon; did you mean 'ams-bra'?"),
        (["ams", "bar"], "no host 'bar'; there are ams, bra, lon; did you mean 'bra'?"),
    ],
)
def test_an_unknown_link_is_one_sentence(lab: Lab, argv: list[str], message: str) -> None:
    done = runner.invoke(app, ["explain", *argv])
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"minigts: {message}\n")


def test_of_several_links_between_two_hosts_one_is_named() -> None:
    lab = labs.up(parse(TWICE, "twice.yaml"), tc_hosts.TcHosts.name, None, quiet)
    names = [link.name for link in lab.plan.links]
    done = runner.invoke(app, ["explain", "ams", "bra"])
    assert (done.exit_code, done.stderr) == (
        2,
        f"minigts: several links join ams and bra: name one of {', '.join(names)}\n",
    )
    assert of_lab(lab, names[1]).quantities[2].declared == 5.0


def test_the_screen_shows_everything_on_one_page(lab: Lab) -> None:
    network(lab).netem["bra", "eth1"]["delay"]["delay"] = 0.5
    done = runner.invoke(app, ["explain", "ams-bra"])
    assert done.exit_code == 0
    words = " ".join(done.stdout.split())
    assert "ams to bra delay 10 ms 9.9 ms 500 ms bra ifb-eth1 netem" in words
    assert "differs: bra eth1: delay is 500 ms, should be 9.9 ms" in words
    assert "subtracted from each delay: 0.100 ms" in words
    assert words.rpartition("Likely answer: ")[2].startswith("the hosts' settings are not the lab's")
    assert done.stdout.count("\n") <= 24
