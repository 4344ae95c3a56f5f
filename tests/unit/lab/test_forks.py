"""Forks of a lab: what is copied into the second lab's directory, what is refused, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import tc_hosts
from keeping_hosts import KeepingHosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts import paths
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, HostFailed, InputError
from minigts.lab import Lab, events
from minigts.providers import registry
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

TEXT = """
name: chain
hosts: {ams: {}, bra: {}}
links:
- {ends: [ams, bra], rtt: 20ms, rate: 50mbit}
"""
runner = CliRunner()


class ForkingHosts(KeepingHosts):
    """Hosts whose labs fork; what was asked for is noted."""

    asked: ClassVar[list[tuple[str, int]]] = []
    fails = False

    def fork(self, plan: Plan, into: Path, seed: int) -> None:
        self.asked.append((into.name, seed))
        (into / "own").write_text("of the fork")
        (into / paths.KERNELS).write_text("{}")
        if self.fails:
            raise HostFailed("it does not fork")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    monkeypatch.setattr(tc_hosts.TcHosts, "pace_s", 0.0)
    monkeypatch.setattr(ForkingHosts, "asked", [])
    monkeypatch.setattr(ForkingHosts, "fails", False)
    monkeypatch.setitem(registry._PROVIDERS, ForkingHosts.name, ForkingHosts)
    (tmp_path / "image").write_text("first")
    yield tmp_path


@pytest.fixture
def lab() -> Lab:
    made = labs.up(parse(TEXT, "chain.yaml"), ForkingHosts.name, None, lambda _: None)
    labs.set_links_up(made, "ams", "bra", up=False)
    return made


def test_a_fork_has_the_records_of_its_origin_and_processes_of_its_own(lab: Lab) -> None:
    (lab.rundir / paths.KERNELS).write_text("of the origin")
    fork = labs.fork(lab, "second")
    assert ForkingHosts.asked == [("second", 0)]
    assert fork.read_record() == lab.read_record()
    assert fork.plan == lab.plan and labs.cut_links(fork.plan, fork.read_record())
    assert (fork.rundir / paths.KERNELS).read_text() == "{}"
    told = events.read(fork.rundir)
    assert told[:-1] == events.read(lab.rundir)
    assert (told[-1]["event"], told[-1]["of"]) == ("fork", "chain")
    assert {each.name for each in labs.all_labs()} == {"chain", "second"}


def test_with_a_seed_each_direction_of_a_link_counts_as_set_so_often(lab: Lab) -> None:
    fork, again = labs.fork(lab, "second", 7), labs.fork(lab, "third", 7)
    assert fork.read_record().times_set == again.read_record().times_set
    before, after = lab.read_record(), fork.read_record()
    for end in ("ams", "bra"):
        assert after.number_of("ams-bra", end) == 7 + before.number_of("ams-bra", end)


@pytest.mark.parametrize(("name", "seed"), [("chain", 0), ("a name", 0), ("../x", 0), ("two", -1), ("two", 2**63)])
def test_names_and_seeds_that_no_fork_can_have(lab: Lab, name: str, seed: int) -> None:
    with pytest.raises(InputError):
        labs.fork(lab, name, seed)
    assert not ForkingHosts.asked


def test_a_name_that_a_lab_has_is_refused(lab: Lab) -> None:
    labs.fork(lab, "second")
    with pytest.raises(InputError, match="there is a lab second"):
        labs.fork(lab, "second")
    assert labs.next_fork("chain") == "chain.1"
    labs.fork(lab, "chain.1")
    assert labs.next_fork("chain") == "chain.2"


def test_nothing_is_left_of_a_fork_that_fails(lab: Lab, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkingHosts, "fails", True)
    with pytest.raises(HostFailed):
        labs.fork(lab, "second")
    assert [each.name for each in labs.all_labs()] == ["chain"]
    assert not [*paths.labs_root().glob("second*")]
    assert lab.read_record().state == "up"


def test_other_providers_labs_do_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._PROVIDERS, KeepingHosts.name, KeepingHosts)
    made = labs.up(parse(TEXT, "chain.yaml"), KeepingHosts.name, None, lambda _: None)
    with pytest.raises(EnvironmentLacks, match="uml in virtual time"):
        labs.fork(made, "second")


def test_the_verb(lab: Lab) -> None:
    done = runner.invoke(app, ["fork", "second", "--seed", "3"])
    assert done.exit_code == 0 and ForkingHosts.asked == [("second", 3)]
    assert runner.invoke(app, ["fork", "second", "--lab", "chain"]).exit_code == 2
    assert runner.invoke(app, ["fork", "third", "--lab", "chain", "--seed", "-1"]).exit_code == 2
