"""A lab that is held to a share of the machine: what is handed, where it is refused, and that it is written down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tc_hosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.machine import cgroups
from minigts.machine.cgroups import CgroupPlace
from minigts.providers import processor_share as of_labs
from minigts.providers.base import Share
from minigts.providers.uml.provider import refuse_share
from minigts.topology.read.load import parse

PLAN = parse("name: pair\npair: {hosts: [a, b]}\n", "pair.yaml")
HERE = cgroups.memory_place()
runner = CliRunner()


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of a hierarchy of version 1."""
    for name in ("place", "memory_place"):
        monkeypatch.setattr(cgroups, name, lambda: CgroupPlace(tmp_path, 1))
    return tmp_path


def test_processors_and_memory_are_limited_for_all_of_it(groups: Path) -> None:
    (group,) = of_labs.limit_lab(Share(processors=1.5, memory_mb=2048), Path("/labs/pair"))
    assert group.parent == groups
    assert (group / "cpu.cfs_quota_us").read_text() == "30000"
    assert (group / "memory.limit_in_bytes").read_text() == str(2 << 30)
    assert of_labs.limit_lab(Share(), Path("/labs/pair")) == ()


def test_where_no_group_can_be_made_a_share_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "memory_place", lambda: "no control groups")
    with pytest.raises(EnvironmentLacks, match="no control groups"):
        of_labs.limit_lab(Share(memory_mb=100), Path("/labs/pair"))


@pytest.mark.parametrize(
    ("text", "share", "says"),
    [
        ("chain: {hosts: 16}", Share(memory_mb=512), "16 kernels need 544 MB of memory; 512 MB are free by --memory"),
        ("pair: {host: {cpus: 0.5}}", Share(processors=1), "leave --processors out"),
    ],
)
def test_what_does_not_fit_into_a_share_is_refused_beforehand(text: str, share: Share, says: str) -> None:
    with pytest.raises(EnvironmentLacks, match=says):
        refuse_share(parse(f"name: x\ntime: real\n{text}\n", "x.yaml"), share)


@pytest.mark.skipif(isinstance(HERE, str), reason=str(HERE))
def test_a_limit_of_memory_holds() -> None:
    assert isinstance(HERE, CgroupPlace)
    group = cgroups.limit_memory(HERE, "minigts-test-memory", 64)
    try:
        member = cgroups.join(group)
        taking = "block = bytearray(200 << 20); print(len(block))"
        done = subprocess.run([sys.executable, "-c", taking], preexec_fn=lambda: cgroups.enter(member), check=False)
        assert done.returncode == -9
    finally:
        assert cgroups.remove("minigts-test-memory", controllers=("memory",)) == []


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)


def quiet(_text: str) -> None:
    pass


@pytest.mark.usefixtures("state")
def test_a_provider_that_holds_no_lab_to_a_share_says_so() -> None:
    with pytest.raises(EnvironmentLacks, match="holds no lab to a share of the machine; uml does"):
        labs.up(PLAN, tc_hosts.TcHosts.name, None, quiet, Share(processors=1))
    assert labs.all_labs() == []


@pytest.mark.usefixtures("state")
def test_a_share_is_written_down_and_not_changed_of_a_lab_that_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Share] = []
    monkeypatch.setattr(tc_hosts.TcHosts, "limit_to", lambda _self, share: handed.append(share), raising=False)
    monkeypatch.setattr(tc_hosts.TcHosts, "forecast", lambda _self, _plan, _overlay: (), raising=False)
    monkeypatch.setattr(tc_hosts.TcHosts, "kernels", lambda _self: {}, raising=False)
    lab = labs.up(PLAN, tc_hosts.TcHosts.name, None, quiet, Share(processors=1))
    assert (handed, lab.read_record().share) == ([Share(processors=1)], Share(processors=1))
    labs.up(PLAN, tc_hosts.TcHosts.name, None, quiet)
    with pytest.raises(InputError, match="pair is up with 1 processors: a share is set as a lab comes up"):
        labs.up(PLAN, tc_hosts.TcHosts.name, None, quiet, Share(memory_mb=512))


def test_a_size_that_is_none_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text("name: pair\npair: {}\n")
    done = runner.invoke(app, ["up", str(tmp_path / "pair.yaml"), "--memory", "2"])
    assert done.exit_code == 2
    assert "--memory: '2' lacks its unit" in done.output
