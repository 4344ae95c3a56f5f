"""Random numbers of links begin anew with a setting that changes something, each time others, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tc_hosts
import wired_hosts
from typer.testing import CliRunner

from fake_provider import WIRINGS
from minigts import api
from minigts import lab as labs
from minigts.cli.app import app
from minigts.fidelity import measure
from minigts.fidelity.mending import mend
from minigts.lab import DECLARED, Change, Lab, Settings, edit, links, schedule_player
from minigts.topology.plan import reseed
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

TEXT = """
name: chain
time: {time}
hosts: {{ams: {{}}, bra: {{}}, lon: {{}}}}
links:
- {{ends: [ams, bra], rtt: 20ms, rate: 50mbit, loss: 5%}}
- {{ends: [bra, lon], rtt: 10ms}}
"""
runner = CliRunner()
Seeds = Mapping[str, int | None]
AMS_BRA = frozenset({"ams-bra from ams", "ams-bra from bra"})


def quiet(_said: str) -> None:
    pass


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wired_hosts.use(monkeypatch, tmp_path)


class Watched:
    """A lab whose wires, or whose hosts' netem, are watched."""

    def __init__(self, time: str, replicate: int = 0) -> None:
        plan = parse(TEXT.format(time=time), "chain.yaml")
        plan = reseed.replicate(plan, replicate) if replicate else plan
        self.lab: Lab = labs.up(plan, tc_hosts.TcHosts.name, f"lab{replicate}", quiet)
        self._begun: list[str] = []
        self._watch()

    def _watch(self) -> None:
        """Note the directions of which the numbers begin anew."""
        if self.lab.time == "virtual":
            self._seen = len(WIRINGS[self.lab.rundir].set)
        else:
            network = tc_hosts.NETWORKS[self.lab.rundir]
            self._before = dict(network.netem)

    def seeds(self) -> Seeds:
        """As they are there now, by direction."""
        found: dict[str, int | None] = {}
        for machine in self.lab.plan.machines:
            for port in machine.ports:
                if self.lab.time == "virtual":
                    wire = WIRINGS[self.lab.rundir].wires[machine.name, port.name]
                    found[f"{port.link} from {machine.name}"] = wire.seed
                else:
                    shown: Mapping[str, Any] = tc_hosts.NETWORKS[self.lab.rundir].netem.get(
                        (machine.name, port.name), {}
                    )
                    found[f"{port.link} from {port.peer_host}"] = shown.get("seed")
        return found

    def begun(self) -> set[str]:
        """The directions that were set since the last question, so that their numbers have begun."""
        plan, found = self.lab.plan, set[str]()
        ports = [(machine.name, port) for machine in plan.machines for port in machine.ports]
        if self.lab.time == "virtual":
            every = {(name, port.name): f"{port.link} from {name}" for name, port in ports}
            found = {every[end] for each in WIRINGS[self.lab.rundir].set[self._seen :] for end in each}
        else:
            every = {(name, port.name): f"{port.link} from {port.peer_host}" for name, port in ports}
            netem = tc_hosts.NETWORKS[self.lab.rundir].netem
            found = {every[end] for end, options in netem.items() if self._before.get(end) is not options}
        self._watch()
        return found


@pytest.fixture(params=["virtual", "real"])
def watched(request: pytest.FixtureRequest) -> Watched:
    return Watched(request.param)


def set_loss(lab: Lab, percent: float | None, sender: str | None = None) -> None:
    labs.update_settings(lab, "ams-bra", {"loss_percent": percent}, sender)


def test_the_same_setting_twice_begins_nothing_anew(watched: Watched) -> None:
    set_loss(watched.lab, 20.0)
    assert watched.begun() == AMS_BRA
    before, record = watched.seeds(), watched.lab.read_record()
    set_loss(watched.lab, 20.0)
    assert (watched.begun(), watched.seeds(), watched.lab.read_record()) == (set(), before, record)


def test_the_same_loss_again_has_other_numbers(watched: Watched) -> None:
    found = []
    for percent in (20.0, None, 20.0, None):
        found.append(watched.seeds()["ams-bra from ams"])
        set_loss(watched.lab, percent)
    assert len({*found}) == 4


def test_another_direction_goes_on(watched: Watched) -> None:
    set_loss(watched.lab, 20.0, "ams")
    assert watched.begun() == {"ams-bra from ams"}


def _given_back(lab: Lab) -> None:
    with api.open_lab(lab.name).given_back() as lent:
        lent.link("ams", "bra").change(loss="30%")


def _links_given_back(lab: Lab) -> None:
    with api.open_lab(lab.name).links_given_back() as lent:
        lent.link("ams", "bra").change(loss="30%")


ACTS: Mapping[str, Callable[[Lab], object]] = {
    "set": lambda lab: [set_loss(lab, each) for each in (9.0, None)],
    "change": lambda lab: [
        labs.replace_settings(lab, "ams", "bra", each) for each in (Change(loss_percent=9.0), Change())
    ],
    "cut and whole": lambda lab: [labs.set_links_up(lab, "ams", "bra", up=up) for up in (False, True)],
    "partition and heal": lambda lab: [labs.partition(lab, [["ams"], ["bra", "lon"]]), labs.heal(lab)],
    "experiment": lambda lab: [labs.set_for_experiment(lab, each) for each in (Settings(unlimited=True), DECLARED)],
    "given back": _given_back,
    "links given back": _links_given_back,
    "schedule": lambda lab: list(
        schedule_player.play_moments(
            lab, [Moment(at_s=0.0, link="ams-bra", update={"loss_percent": each}) for each in (9.0, None)]
        )
    ),
    "certificate": lambda lab: measure.certify(lab, quiet),
}


@pytest.mark.parametrize(
    ("time", "act"),
    # In real time a schedule is played by the hosts' own clocks, which these hosts lack.
    [*(("virtual", act) for act in ACTS), *(("real", act) for act in ACTS if act != "schedule")],
)
def test_whatever_sets_a_link_lets_it_draw_others_which_are_read_back(time: str, act: str) -> None:
    watched = Watched(time)
    seen = [watched.seeds()]
    for _ in range(2):
        ACTS[act](watched.lab)
        seen.append(watched.seeds())
        ACTS["cut and whole"](watched.lab)
        seen.append(watched.seeds())
    for way in AMS_BRA:
        assert len({each[way] for each in seen}) == len(seen)
    rows = [row for row in measure.settings(watched.lab, quiet) if not row.ok]
    assert rows == []


def test_what_differs_by_the_seed_alone_is_read_back_as_a_difference(watched: Watched) -> None:
    record = watched.lab.read_record()
    watched.lab.write(record.counting([("ams-bra", "ams")]))
    notes = [row.note for row in measure.settings(watched.lab, quiet) if not row.ok]
    assert len(notes) == 1
    assert "seed is" in notes[0]


def test_a_restarted_host_begins_only_what_it_draws_itself_and_then_other_numbers(watched: Watched) -> None:
    before = watched.seeds()
    watched.begun()
    labs.restart(watched.lab, "bra")
    after = watched.seeds()
    moved = {way for way in AMS_BRA if before[way] != after[way]}
    assert moved == (set() if watched.lab.time == "virtual" else {"ams-bra from ams"})
    assert watched.begun() & AMS_BRA == moved
    assert [row.note for row in measure.settings(watched.lab, quiet) if not row.ok] == []


def test_a_host_that_is_mended_draws_others_where_it_draws_for_links() -> None:
    watched = Watched("real")
    before = watched.seeds()
    tc_hosts.NETWORKS[watched.lab.rundir].netem["bra", "eth1"]["delay"]["delay"] = 0.5
    assert mend(watched.lab, ["bra"])
    assert before["ams-bra from ams"] != watched.seeds()["ams-bra from ams"]
    assert before["ams-bra from bra"] == watched.seeds()["ams-bra from bra"]


def test_the_numbers_outlive_a_broken_command(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    class BrokenOffHere(Exception):
        pass

    def broken(*_: object, **__: object) -> None:
        raise BrokenOffHere

    before = watched.seeds()
    with monkeypatch.context() as patch, pytest.raises(BrokenOffHere):
        patch.setattr(links, "set_wires", broken)
        patch.setattr(links, "_set_machines", broken)
        set_loss(watched.lab, 20.0)
    assert watched.lab.read_record().unsettled == {"ams", "bra"}
    labs.up(watched.lab.plan, tc_hosts.TcHosts.name, watched.lab.name, quiet)
    after = watched.seeds()
    assert not {way for way in AMS_BRA if before[way] == after[way]}
    assert [row.note for row in measure.settings(watched.lab, quiet) if not row.ok] == []


def test_the_first_certificate_leaves_the_declared_numbers(watched: Watched) -> None:
    before = watched.seeds()
    measure.certificate_after_up(watched.lab, quiet)
    assert watched.begun() >= AMS_BRA
    assert watched.seeds() == before
    measure.certify(watched.lab, quiet)
    assert not {way for way in AMS_BRA if before[way] == watched.seeds()[way]}


def test_replicates_and_repetitions_draw_others_for_what_is_set(watched: Watched) -> None:
    other = Watched(watched.lab.time or "real", replicate=3)
    for each in (watched, other):
        labs.update_settings(each.lab, "bra-lon", {"loss_percent": 30.0})
    ours, theirs = watched.seeds(), other.seeds()
    assert ours.keys() == theirs.keys()
    assert not [way for way in ours if ours[way] is None or ours[way] == theirs[way]]


def test_a_plan_that_is_applied_counts_what_it_sets(watched: Watched) -> None:
    before = watched.seeds()
    after = parse(TEXT.format(time=watched.lab.time).replace("rate: 50mbit", "rate: 40mbit"), "chain.yaml")
    watched.begun()
    lab = edit.declare(watched.lab, after, quiet, altered=False)
    watched.lab = lab
    now = watched.seeds()
    assert not {way for way in AMS_BRA if before[way] == now[way]}
    assert watched.begun() == AMS_BRA
    assert [row.note for row in measure.settings(lab, quiet) if not row.ok] == []
    set_loss(lab, 5.0)
    assert watched.begun() == set()


def test_set_on_the_command_line_twice_is_one_setting(watched: Watched) -> None:
    words = ["set", "ams-bra", "loss=20%", "--lab", watched.lab.name]
    assert runner.invoke(app, words).exit_code == 0
    before = watched.seeds()
    assert runner.invoke(app, words).exit_code == 0
    assert watched.seeds() == before
    counts = watched.lab.read_record().times_set
    assert counts == {"ams-bra": {"ams": 1, "bra": 1}}
