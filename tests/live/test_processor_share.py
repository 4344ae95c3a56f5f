"""A host with a share of a processor: in real time, on a machine that lets minigts make control groups with a quota."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import quiet
from minigts import lab as labs
from minigts.lab import Lab
from minigts.machine import cgroups
from minigts.machine.proc import family, used_s
from minigts.providers import processor_share as of_a_lab
from minigts.providers.base import OwnProcesses
from minigts.topology.read.load import parse

HERE = cgroups.place()
pytestmark = [
    pytest.mark.uml,
    pytest.mark.nightly,
    pytest.mark.alone,
    pytest.mark.skipif(isinstance(HERE, str), reason=str(HERE)),
]

HALVED = "name: halved\ntime: real\nhosts: {whole: , half: {cpus: 0.5}}\nlinks: [{ends: [whole, half]}]\n"
WATCHED_S = 4


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_STATE", str(tmp_path_factory.mktemp("state")))
        made = labs.up(parse(HALVED, "halved.yaml"), "uml", None, quiet)
        yield made
        labs.down(made)
        assert of_a_lab.remove(made.rundir) == []
        assert isinstance(HERE, cgroups.CgroupPlace)
        assert not [*HERE.parent.glob("minigts-*-half")]


def used_while_spinning(lab: Lab, host: str) -> float:
    """Processors that the host takes of this machine while a program in it spins."""
    assert isinstance(lab.provider, OwnProcesses)
    pid = lab.provider.kernels()[host]
    before_s, begun_s = sum(map(used_s, family([pid]))), time.monotonic()
    lab.provider.run(host, ["timeout", str(WATCHED_S), "sh", "-c", "while :; do :; done"], timeout_s=120, check=False)
    return (sum(map(used_s, family([pid]))) - before_s) / (time.monotonic() - begun_s)


def test_a_host_gets_its_share_and_no_more(lab: Lab) -> None:
    """A quota is a limit, whatever the machine does; of what another host gets only that it is not limited is known."""
    assert used_while_spinning(lab, "half") <= 0.53
    assert isinstance(lab.provider, OwnProcesses)
    groups = {host: Path(f"/proc/{pid}/cgroup").read_text() for host, pid in lab.provider.kernels().items()}
    own = {
        host: [line for line in text.splitlines() if ":cpu" in line or line.startswith("0:")]
        for host, text in groups.items()
    }
    assert {host for host, lines in own.items() if any("/minigts-" in line for line in lines)} == {"half"}, groups


def test_a_host_that_is_started_again_has_its_share_again(lab: Lab) -> None:
    labs.restart(lab, "half")
    assert used_while_spinning(lab, "half") <= 0.53
