"""Hosts that were restarted join the overlay again: in which order, who is waited for, and whom a leader can lack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_lab import Answering, fake_lab
from minigts import overlays
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.topology.edit import add_host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

PLAN = parse("name: three\nchain: {hosts: [plane, bra, ams], link: {rtt: 10ms}}\n", "three.yaml")
ADDRESSES = {"plane": "172.31.0.1", "bra": "172.31.0.2", "ams": "172.31.0.3", "lon": "172.31.0.4"}
TOLD: list[tuple[str, str]] = []
"""The phases that hosts were told, in order."""
WORDS: dict[tuple[str, str], dict[str, str]] = {}
"""The variables of each host's last phase of a name."""


class Telling(Answering):
    """It notes phases, and answers as hosts do whose phases succeed."""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        stdout = ""
        if argv[0] == "env":
            TOLD.append((host, argv[-1]))
            WORDS[host, argv[-1]] = dict(word.split("=", 1) for word in argv[1:-2])
            if argv[-1] == "start":
                stdout = f"ADDRESS={ADDRESSES[host]}\nMTU=1480\nENTER=7\n"
        return 0, stdout


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = fake_lab(PLAN, tmp_path / "state", monkeypatch, Telling)
    overlays.join(made, "calico", quiet)
    TOLD.clear()
    WORDS.clear()
    return made


def quiet(_text: str) -> None:
    pass


def set_to(lab: Lab, **fields: frozenset[str]) -> None:
    record = lab.read_record()
    lab.write(record.model_copy(update=fields), record)


def joined_again() -> list[str]:
    return [host for host, phase in TOLD if phase == "start"]


def waited_for() -> dict[str, set[str]]:
    """By each host that was told to wait: the hosts for which."""
    names = {address: name for name, address in ADDRESSES.items()}
    return {
        host: {names[address] for address in words["PEERS"].split()}
        for (host, phase), words in WORDS.items()
        if phase == "reach"
    }


def test_nobody_waits_for_a_host_that_has_not_joined_again(lab: Lab) -> None:
    set_to(lab, unjoined=frozenset({"bra", "ams"}))
    overlays.rejoin(lab, "ams", quiet)
    assert joined_again() == ["ams"]
    assert waited_for() == {"plane": {"ams"}, "ams": {"plane"}}
    assert lab.read_record().unjoined == {"bra"}


def test_links_settle_without_a_host_that_has_not_joined_again(lab: Lab) -> None:
    set_to(lab, unjoined=frozenset({"bra"}))
    overlays.settle(lab, quiet)
    assert waited_for() == {"plane": {"ams"}, "ams": {"plane"}}


def test_with_their_leader_the_hosts_that_could_not_join_without_it_do(lab: Lab) -> None:
    set_to(lab, unjoined=frozenset({"plane", "bra"}))
    overlays.rejoin(lab, "plane", quiet)
    assert joined_again() == ["plane", "bra"]
    assert lab.read_record().unjoined == set()


def test_a_host_whose_leader_is_off_joins_again_with_it(lab: Lab) -> None:
    set_to(lab, off=frozenset({"plane"}), unjoined=frozenset({"bra"}))
    said: list[str] = []
    assert overlays.rejoin(lab, "bra", said.append) == {}
    assert (joined_again(), lab.read_record().unjoined) == ([], {"bra"})
    assert said == ["calico: bra joins again with plane, which leads its network and is off"]
    set_to(lab, off=frozenset(), unjoined=frozenset({"plane", "bra"}))
    overlays.rejoin(lab, "plane", quiet)
    assert joined_again() == ["plane", "bra"]


def test_a_host_that_is_off_is_left_out_though_its_leader_comes_back(lab: Lab) -> None:
    set_to(lab, unjoined=frozenset({"plane", "bra"}), off=frozenset({"bra"}))
    overlays.rejoin(lab, "plane", quiet)
    assert joined_again() == ["plane"]
    assert lab.read_record().unjoined == {"bra"}


class Altered(Telling):
    """Hosts come and go without being started."""

    def require_room_for(self, plan: Plan) -> None:
        pass

    def alter(self, plan: Plan, progress: Progress) -> frozenset[str]:
        before = {path.name for path in (self.rundir / "hosts").iterdir()}
        self.up(plan, progress)
        return frozenset(host.name for host in plan.hosts) - before


def test_plain_hosts_that_are_on_are_measured_again_when_one_is_added_while_another_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = fake_lab(PLAN, tmp_path / "state", monkeypatch, Altered)
    overlays.join(lab, "none", quiet)
    set_to(lab, off=frozenset({"bra"}))
    TOLD.clear()
    now, _ = overlays.alter(lab, add_host(PLAN, "lon", "ams", {"rtt": "4ms"}), quiet)
    assert sorted(joined_again()) == ["ams", "lon", "plane"]
    joined = overlays.joined_overlay(now)
    assert joined is not None
    assert {name: end.address for name, end in joined.endpoints().items()} == ADDRESSES


@pytest.mark.parametrize("command", ["rejoin", "join"])
def test_a_leader_joins_before_the_others(lab: Lab, command: str) -> None:
    set_to(lab, unjoined=frozenset({"plane", "ams"}))
    if command == "rejoin":
        overlays.rejoin(lab, "ams", quiet)
    else:
        overlays.join(lab, "calico", quiet)
    assert joined_again() == ["plane", "ams"]


def test_a_leader_is_told_who_does_not_take_part(lab: Lab) -> None:
    set_to(lab, unjoined=frozenset({"plane", "bra", "ams"}), off=frozenset({"bra"}))
    overlays.rejoin(lab, "plane", quiet)
    assert WORDS["plane", "start"]["ABSENT"] == "bra ams"
    assert "ABSENT" not in WORDS["plane", "reach"]
