"""The programs that stand where netlab looks for containerlab, Docker and sudo: what they do, and what they refuse."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from minigts.cli import called_by_netlab
from minigts.errors import InputError
from minigts.netlab import labs, programs


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def run(*what: Any) -> tuple[int, str, str]:
        found.append(what)
        return 3, "out\n", "err\n"

    monkeypatch.setattr(labs, "run", run)
    return found


def test_a_command_in_a_container_has_its_own_code(ran: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert called_by_netlab.main("docker", ["exec", "-i", "clab-t-r1", "vtysh", "-c", "show ip route"]) == 3
    assert ran == [("clab-t-r1", ["vtysh", "-c", "show ip route"], b"")]
    assert capsys.readouterr() == ("out\n", "err\n")


def test_a_script_in_a_network_namespace_runs_in_the_host(ran: list[Any], tmp_path: Path) -> None:
    script = tmp_path / "initial"
    script.write_text("ip link\n")
    assert called_by_netlab.main("sudo", ["ip", "netns", "exec", "clab-t-h1", "sh", str(script)]) == 3
    assert ran == [("clab-t-h1", ["sh", "-s", "--"], b"ip link\n")]


@pytest.mark.parametrize(
    "words", ["modprobe vrf", "ip link add name t_6 type bridge", "sysctl -w net.bridge.bridge-nf-call-iptables=0"]
)
def test_what_netlab_does_as_root_on_a_machine_is_not_done(words: str, ran: list[Any]) -> None:
    assert called_by_netlab.main("sudo", words.split()) == 0
    assert not ran


@pytest.mark.parametrize(
    ("name", "words"),
    [("sudo", "rm -rf /"), ("sudo", "ip netns"), ("docker", "run x"), ("docker", "cp a"), ("containerlab", "tools x")],
)
def test_anything_else_is_refused(name: str, words: str, ran: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert called_by_netlab.main(name, words.split()) == 1
    assert f"minigts: {name} {words}: labs of netlab" in capsys.readouterr().err
    assert not ran


def test_an_error_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(_file: Path) -> None:
        raise InputError("no such lab")

    monkeypatch.setattr(labs, "destroy", refuse)
    assert called_by_netlab.main("containerlab", ["destroy", "--cleanup", "-t", "x.yml"]) == 1
    assert capsys.readouterr().err == "minigts: no such lab\n"


def test_the_programs_stand_before_all_others_and_start_by_themselves() -> None:
    with programs.stand_ins() as (place, _):
        variables = programs.environment(place, "virtual")
        assert variables["PATH"].startswith(f"{place}:")
        env = {**os.environ, **variables}
        script = ["sh", "-c", "containerlab version; groups"]
        said = subprocess.run(script, env=env, capture_output=True, text=True, check=True)
        assert said.stdout.splitlines()[0] == f"version: {called_by_netlab.CONTAINERLAB}"
        assert said.stdout.splitlines()[-1] == "clab_admins"
    assert not place.exists()
