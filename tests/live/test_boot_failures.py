"""A host that does not come up: the error has its console's last lines, and everything else is taken down."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from live.program import TOPOLOGIES, Traces
from minigts import lab as labs
from minigts.errors import HostFailed
from minigts.providers.agent import client
from minigts.providers.uml import provider
from minigts.providers.uml.build import image
from minigts.providers.uml.run import booting
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

pytestmark = pytest.mark.uml


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def launched(change: Callable[[Launch], Launch], monkeypatch: pytest.MonkeyPatch) -> None:
    """As planned, but for the change."""
    as_planned = provider.launch_of

    def launch(plan: Plan, ready: image.Image, boot: Path, layered: Mapping[str, Path], programs: str) -> Launch:
        return change(as_planned(plan, ready, boot, layered, programs))

    monkeypatch.setattr(provider, "launch_of", launch)


def less_memory_than_a_topology_may_ask_for(launch: Launch) -> Launch:
    first, second = launch.machines
    return dataclasses.replace(launch, machines=(first, dataclasses.replace(second, memory_mb=8)))


def something_that_never_answers(launch: Launch) -> Launch:
    return dataclasses.replace(launch, instead=("sleep", "60"))


def test_a_kernel_that_ends_while_it_boots(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "Too few physical memory"
    launched(less_memory_than_a_topology_may_ask_for, monkeypatch)
    _fails_and_leaves_only_its_console(state, says)
    assert says in (state / "failed" / "pair" / "consoles" / "bra" / "console.log").read_text()


def test_a_kernel_that_does_not_answer_within_its_deadline(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched(something_that_never_answers, monkeypatch)
    monkeypatch.setattr(booting, "BOOT_DEADLINE_S", 0.2)
    monkeypatch.setattr(client, "GRACE_S", 0.0)
    _fails_and_leaves_only_its_console(state, "host ams did not come up")


def _fails_and_leaves_only_its_console(state: Path, says: str) -> None:
    traces = Traces.before(state)
    with pytest.raises(HostFailed, match=says):
        labs.up(load(TOPOLOGIES / "pair.yaml"), "uml", None, lambda _: traces.look())
    assert traces.left(but="failed") == []
