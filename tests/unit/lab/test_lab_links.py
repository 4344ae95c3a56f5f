"""What every port should look like now is said in one place: what is cut stays cut, and no measurement mends it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tc_hosts
from experiment_lab import chain
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import HostFailed, InputError
from minigts.fidelity import kept_certificate, measure
from minigts.lab import DECLARED, Lab, Record, Settings, current, link_states
from minigts.providers.base import CommandResult
from minigts.session.campaign import Means, lab_for
from minigts.topology.link_settings import Shaping
from minigts.topology.read.load import parse

TEXT = """
name: chain
seed: 3
hosts: {ams: {}, bra: {}, lon: {}}
links:
- {ends: [ams, bra], rtt: 20ms, rate: 50mbit}
- {ends: [bra, lon], rtt: 10ms, rate: 50mbit}
"""
LOSSY = TEXT.replace("rtt: 10ms", "rtt: 10ms, loss: 5%")
runner = CliRunner()


def quiet(_said: str) -> None:
    pass


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)


@pytest.fixture
def lab() -> Lab:
    return labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)


def network(lab: Lab) -> tc_hosts.Network:
    return tc_hosts.NETWORKS[lab.rundir]


def losses(lab: Lab) -> dict[tuple[str, str], float]:
    """Of every port that delays what arrives."""
    held = network(lab).netem.items()
    return {key: options.get("loss-random", {}).get("loss", 0.0) for key, options in held}


CUT = {("ams", "eth1"): 1.0, ("bra", "eth1"): 1.0, ("bra", "eth2"): 0.0, ("lon", "eth1"): 0.0}
"""With the link of ams and bra cut."""


@pytest.mark.parametrize("ends", [("ams", "lon"), ("ams", "ams"), ("ams", "nobody")])
def test_only_a_link_that_is_there_can_be_cut(lab: Lab, ends: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=r"no link between .*; links are ams-bra, bra-lon"):
        labs.set_links_up(lab, *ends, up=False)
    assert lab.read_record().cut == frozenset()


def test_a_cut_link_is_recorded_and_made_whole_again(lab: Lab) -> None:
    labs.set_links_up(lab, "bra", "ams", up=False)
    assert (lab.read_record().cut, losses(lab)) == ({"ams-bra"}, CUT)
    labs.set_links_up(lab, "ams", "bra", up=True)
    assert (lab.read_record().cut, losses(lab)) == (frozenset(), dict.fromkeys(CUT, 0.0))


def test_a_cut_link_stays_cut_when_its_hosts_are_started_again(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    for host in ("ams", "bra"):
        labs.restart(lab, host)
    assert losses(lab) == CUT


@pytest.mark.parametrize("settings", [Settings(unlimited=True), Settings(queue_bytes=30_000), Settings(gro="on")])
def test_a_cut_link_stays_cut_while_an_experiment_sets_the_links(lab: Lab, settings: Settings) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    labs.set_for_experiment(lab, settings)
    assert losses(lab) == CUT
    labs.set_for_experiment(lab, DECLARED)
    assert losses(lab) == CUT


def test_a_cut_link_stays_cut_when_the_lab_is_calibrated(lab: Lab) -> None:
    before_ms = lab.read_record().emulator_overhead_ms
    labs.set_links_up(lab, "ams", "bra", up=False)
    network(lab).surplus_ms = 0.3
    labs.calibrate(lab)
    assert losses(lab) == CUT
    assert (before_ms, lab.read_record().emulator_overhead_ms) == (pytest.approx(0.1), pytest.approx(0.3))


def test_a_lab_without_a_whole_path_is_not_calibrated(lab: Lab) -> None:
    before = lab.read_record().emulator_overhead_ms
    for ends in (("ams", "bra"), ("bra", "lon")):
        labs.set_links_up(lab, *ends, up=False)
    with pytest.raises(InputError, match="every path of lab chain passes a cut link: ams-bra, bra-lon"):
        labs.calibrate(lab)
    assert lab.read_record().emulator_overhead_ms == before


@pytest.mark.parametrize("text", [TEXT, LOSSY], ids=["plain", "lossy"])
def test_certify_names_what_is_cut_and_neither_measures_nor_mends_it(text: str) -> None:
    lab = labs.up(parse(text, "chain.yaml"), tc_hosts.TcHosts.name, "lossy", quiet)
    labs.set_links_up(lab, "ams", "bra", up=False)
    before = losses(lab)
    certificate = measure.certify(lab, quiet)
    assert losses(lab) == before
    assert certificate.cut == ("ams-bra",)
    assert certificate.verdict.endswith("; cut, and not measured: ams-bra")
    subjects = {row.subject for row in certificate.rows if row.quantity in ("RTT", "loss", "TCP")}
    assert subjects == {"bra-lon"}
    assert [row.note for row in certificate.rows if row.quantity == "settings" and not row.ok] == []


def test_a_link_of_a_machine_that_is_off_is_not_called_cut(lab: Lab) -> None:
    lab.write(lab.read_record().model_copy(update={"off": frozenset({"lon"}), "cut": frozenset({"ams-bra"})}))
    certificate = measure.certify(lab, quiet)
    assert certificate.cut == ("ams-bra", "bra-lon")
    assert certificate.verdict.endswith("; cut, and not measured: ams-bra; lon is off, and not measured: bra-lon")


def test_certify_says_faster_than_declared_and_sets_nothing(lab: Lab) -> None:
    """As after an `up` on a busier machine: too much has been taken off every delay."""
    lab.write(lab.read_record().model_copy(update={"emulator_overhead_ms": 1.0}))
    labs.reshape(lab, lab.read_record())
    before = (lab.read_record(), network(lab).set)
    certificate = measure.certify(lab, quiet)
    assert (lab.read_record(), network(lab).set) == before
    assert certificate.too_fast
    assert not certificate.ok
    assert labs.calibrate(lab) == pytest.approx(0.1)
    assert not measure.certify(lab, quiet).too_fast


def test_check_says_what_to_do_about_a_lab_that_is_too_fast(lab: Lab) -> None:
    lab.write(lab.read_record().model_copy(update={"emulator_overhead_ms": 1.0}))
    labs.reshape(lab, lab.read_record())
    done = runner.invoke(app, ["check", "--quick"])
    assert done.exit_code == 1
    assert (
        "round trips are shorter than declared, because too much was subtracted from the delays: minigts calibrate"
        in (" ".join(done.stdout.split()))
    )
    assert lab.read_record().emulator_overhead_ms == 1.0
    assert runner.invoke(app, ["calibrate"]).exit_code == 0
    assert lab.read_record().emulator_overhead_ms == pytest.approx(0.1)


def test_a_lab_that_is_brought_up_is_calibrated_until_it_is_not_too_fast(lab: Lab) -> None:
    network(lab).surplus_ms = 0.0
    lab.write(lab.read_record().model_copy(update={"emulator_overhead_ms": 1.0}))
    labs.reshape(lab, lab.read_record())
    assert not measure.certificate_after_up(lab, quiet).too_fast
    assert lab.read_record().emulator_overhead_ms == 0


def test_certify_leaves_what_somebody_has_set_by_hand(lab: Lab) -> None:
    """The seeds of links that lose are given anew, and that must not put other settings back."""
    lossy = labs.up(parse(LOSSY, "chain.yaml"), tc_hosts.TcHosts.name, "lossy", quiet)
    by_hand = network(lossy).netem["bra", "eth2"]
    by_hand["delay"]["delay"] = 0.5
    certificate = measure.certify(lossy, quiet)
    assert network(lossy).netem["bra", "eth2"]["delay"]["delay"] == 0.5
    assert "delay is 500 ms" in next(row.note for row in certificate.rows if row.subject == "bra")


def test_a_certificate_of_other_links_is_not_the_labs_own(lab: Lab) -> None:
    made = measure.certify(lab, quiet)
    assert kept_certificate.valid_certificate(lab) == made
    labs.set_links_up(lab, "ams", "bra", up=False)
    assert kept_certificate.valid_certificate(lab) is None


def test_status_and_up_name_what_is_cut(lab: Lab, tmp_path: Path) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    assert "ams-bra is cut; to restore it: minigts link ams bra up" in runner.invoke(app, ["status"]).stdout
    assert json.loads(runner.invoke(app, ["status", "--json"]).stdout)[0]["cut"] == ["ams-bra"]
    assert "cut" not in runner.invoke(app, ["link", "ams", "bra", "up"]).stderr
    assert "is cut" not in runner.invoke(app, ["status"]).stdout


def test_an_experiment_refuses_a_lab_with_a_cut_link(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    refusal = pytest.raises(InputError, match=r"are cut \(ams-bra\); make them whole first: minigts link ams")
    with refusal, lab_for(lab.plan, Means(lab="chain"), quiet):
        pytest.fail("it began")
    assert losses(lab) == CUT


def test_an_experiment_begins_with_links_as_declared(lab: Lab) -> None:
    """One that was killed has left them otherwise; the next would take them for the declared ones."""
    labs.set_for_experiment(lab, Settings(unlimited=True, gro="on"))
    assert (network(lab).tbf, len(network(lab).gro)) == ({}, 4)
    with lab_for(lab.plan, Means(lab="chain"), quiet):
        assert lab.read_record().settings == DECLARED
        assert (len(network(lab).tbf), network(lab).gro) == (4, set())


def test_what_an_experiment_has_set_survives_a_restart_and_is_no_difference(lab: Lab) -> None:
    labs.set_for_experiment(lab, Settings(queue_bytes=30_000, gro="on"))
    labs.restart(lab, "bra")
    assert ("bra", "eth1") in network(lab).gro
    assert {limit for _, _, limit in network(lab).tbf.values()} == {30_000}
    settings = [row for row in measure.certify(lab, quiet).rows if row.quantity == "settings"]
    assert [row.note for row in settings if not row.ok] == []


def test_the_same_plan_on_another_provider_is_not_the_lab_that_was_asked_for(lab: Lab) -> None:
    with pytest.raises(InputError, match="lab chain is up on provider tc-hosts, not on mininet: minigts down"):
        labs.up(lab.plan, "mininet", None, quiet)
    assert labs.up(lab.plan, "tc-hosts", None, quiet) == lab


def test_another_plan_is_not_taken_for_the_labs(lab: Lab) -> None:
    other = parse(TEXT.replace("20ms", "21ms"), "chain.yaml")
    with pytest.raises(InputError, match="lab chain is up with another plan: minigts down chain, or"):
        labs.up(other, "tc-hosts", None, quiet)


def test_a_lab_none_of_whose_hosts_answer_is_made_anew(lab: Lab) -> None:
    tc_hosts.NETWORKS.clear()
    other = parse(TEXT.replace("20ms", "21ms"), "chain.yaml")
    assert labs.up(other, "tc-hosts", None, quiet).plan == other


def test_a_link_that_cannot_be_set_now_is_set_when_its_host_is_back(lab: Lab) -> None:
    held = tc_hosts.NETWORKS.pop(lab.rundir)
    with pytest.raises(HostFailed):
        labs.set_links_up(lab, "ams", "bra", up=False)
    tc_hosts.NETWORKS[lab.rundir] = held
    for host in ("ams", "bra"):
        labs.restart(lab, host)
    assert losses(lab) == CUT


RECORD = Record.model_validate({"provider": "uml", "created": "2026-01-01T00:00:00Z", "time": "real"})
PORT = chain().hosts[0].ports[0].model_copy(update={"outgoing": Shaping(rate_mbit=50, queue_bytes=262_500)})


@pytest.mark.parametrize(
    ("settings", "rate_mbit", "queue_bytes"),
    [
        (DECLARED, 50, 262_500),
        (Settings(queue_bytes=30_000), 50, 30_000),
        (Settings(unlimited=True), None, None),
        (Settings(unlimited=True, queue_bytes=30_000), None, None),
        (Settings(gro="on"), 50, 262_500),
    ],
)
def test_what_settings_leave_out_is_as_declared(
    settings: Settings, rate_mbit: float | None, queue_bytes: int | None
) -> None:
    now = current.port_now(chain(), PORT, RECORD.model_copy(update={"settings": settings}))
    assert (now.outgoing.rate_mbit, now.outgoing.queue_bytes) == (rate_mbit, queue_bytes)
    assert now.model_copy(update={"outgoing": PORT.outgoing}) == PORT


class BrokenOff(Exception):
    """As a signal that ends the command at this moment."""


def break_off(lab: Lab, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The lab's hosts take so many scripts more, and then the command ends."""
    whole, left = tc_hosts.TcHosts.run, [after]

    def run(self: tc_hosts.TcHosts, host: str, argv: Sequence[str], **settings: Any) -> CommandResult:
        if list(argv) == ["bash", "-eu", "-s"]:
            if not left[0]:
                raise BrokenOff
            left[0] -= 1
        return whole(self, host, argv, **settings)

    monkeypatch.setattr(tc_hosts.TcHosts, "run", run)


def test_a_restart_that_is_broken_off_is_finished_by_the_next_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    before = losses(lab)
    with monkeypatch.context() as patch, pytest.raises(BrokenOff):
        break_off(lab, patch, 0)
        labs.restart(lab, "bra")
    assert losses(lab) != before
    assert (lab.read_record().unsettled, lab.read_record().unjoined) == ({"bra"}, {"bra"})
    again = labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert losses(again) == before
    assert again.read_record().unsettled == frozenset()


@pytest.mark.parametrize("up", [False, True])
def test_a_link_that_was_cut_at_one_end_only_is_set_to_its_end_by_the_next_up(
    lab: Lab, up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if up:
        labs.set_links_up(lab, "ams", "bra", up=False)
    with monkeypatch.context() as patch, pytest.raises(BrokenOff):
        break_off(lab, patch, 1)
        labs.set_links_up(lab, "ams", "bra", up=up)
    assert sorted(losses(lab).values()) == [0.0, 0.0, 0.0, 1.0]
    again = labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert losses(again) == (dict.fromkeys(CUT, 0.0) if up else CUT)


def test_what_was_set_to_its_end_is_settled(lab: Lab) -> None:
    labs.set_links_up(lab, "ams", "bra", up=False)
    labs.set_for_experiment(lab, Settings(unlimited=True))
    labs.restart(lab, "lon")
    assert lab.read_record().unsettled == frozenset()
    assert lab.read_record().unjoined == {"lon"}  # until it is on its overlay again


PARALLEL = TEXT + "- {ends: [ams, bra], rtt: 40ms, rate: 50mbit, name: spare}\n"


def test_one_of_several_links_between_two_hosts_is_cut_by_its_name_and_all_by_theirs() -> None:
    lab = labs.up(parse(PARALLEL, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    said = runner.invoke(app, ["link", "spare", "down"])
    assert said.exit_code == 0, said.output
    assert lab.reopened.read_record().cut == {"spare"}
    assert link_states.how_to_mend(lab.reopened.plan, lab.reopened.read_record())["spare"] == "minigts link spare up"
    assert runner.invoke(app, ["link", "ams", "bra", "down"]).exit_code == 0
    assert lab.reopened.read_record().cut == {"spare", "ams-bra"}
    assert runner.invoke(app, ["link", "ams-bra", "up"]).exit_code == 0
    assert lab.reopened.read_record().cut == {"spare"}


@pytest.mark.parametrize("words", [["spare"], ["ams", "bra"], ["ams", "bra", "sideways"], ["none", "down"]])
def test_a_link_that_is_not_said_whole_is_refused_and_nothing_is_cut(words: list[str]) -> None:
    lab = labs.up(parse(PARALLEL, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert runner.invoke(app, ["link", *words]).exit_code == 2
    assert lab.reopened.read_record().cut == set()
