"""The provider where machines do not come up, with stand-ins for Vagrant and virsh; and how a host is reached."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from minigts import lab as labs
from minigts.cli import console
from minigts.errors import HostFailed
from minigts.providers.agent import lab_processes
from minigts.providers.vagrant import definition, prerequisites, ssh_supervisor
from minigts.providers.vagrant import relay as module
from minigts.providers.vagrant.definition import Definition
from minigts.providers.vagrant.provider import VagrantProvider
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

PLAN = load(Path(__file__).parents[3] / "topologies" / "pair.yaml")


@pytest.fixture
def rundir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab's run directory on a machine whose libvirt has nothing in it."""
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LIBVIRT_DEFAULT_URI", "test:///default")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(prerequisites, "missing", list)
    monkeypatch.setattr(prerequisites, "prepare", lambda progress: None)
    monkeypatch.setattr(prerequisites, "define", define)
    program(tmp_path, "virsh", f'echo "$@" >>{tmp_path}/asked')
    made = tmp_path / "state" / "labs" / "pair"
    made.mkdir(parents=True)
    return made


def define(plan: Plan, rundir: Path) -> Definition:
    consoles = prerequisites.consoles(rundir)
    consoles.mkdir(parents=True)
    return Definition(
        lab=plan.name,
        uri="test:///default",
        proxy_command=None,
        box="minigts",
        box_version="1.0.1",
        catalogue="",
        private_key="/key",
        known_hosts="/known",
        prefix=definition.prefix(rundir),
        processor=definition.processor("emulation"),
        at_once=2,
        boot_timeout_s=20,
        machines=definition.machines(plan, rundir, consoles),
    )


def program(place: Path, name: str, script: str) -> None:
    file = place / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_what_vagrant_said_last_is_said_and_consoles_are_kept(rundir: Path, tmp_path: Path) -> None:
    console = f"{prerequisites.consoles(rundir)}/ams.log"
    program(
        tmp_path,
        "vagrant",
        f'[ "$1" != up ] || {{ echo "Kernel panic" >{console}; echo "the box is broken"; exit 1; }}',
    )
    with pytest.raises(HostFailed, match=r"did not bring the machines up; it ended with:\n    the box is broken"):
        VagrantProvider(rundir).up(PLAN, lambda _: None)
    assert (rundir / "consoles" / "ams.log").read_text() == "Kernel panic\n"
    assert not prerequisites.consoles(rundir).exists()
    assert not (rundir / "definition.json").exists()


def test_a_failed_start_is_destroyed_by_vagrant_and_swept_by_its_prefix(rundir: Path, tmp_path: Path) -> None:
    program(tmp_path, "vagrant", f'mkdir -p "$VAGRANT_DOTFILE_PATH"; echo "$1" >>{tmp_path}/verbs; [ "$1" != up ]')
    with pytest.raises(HostFailed):
        VagrantProvider(rundir).up(PLAN, lambda _: None)
    assert (tmp_path / "verbs").read_text().split() == ["up", "destroy"]
    assert not (rundir / "vagrant").exists()
    assert "-c test:///default list --all --name" in (tmp_path / "asked").read_text()


@pytest.mark.parametrize(("state", "removed"), [("starting", False), ("up", True)])
def test_machines_that_vagrant_made_outlive_a_start_that_fails(
    rundir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Literal["starting", "up"], *, removed: bool
) -> None:
    """What a halt has left on their disks is still there; a lab that was complete goes with its machines."""
    monkeypatch.setattr("minigts.providers.vagrant.provider.ADDRESS_DEADLINE_S", 0.0)
    names = "\n".join(definition.prefix(rundir) + host.name for host in PLAN.hosts)
    program(tmp_path, "virsh", f"echo \"$@\" >>{tmp_path}/asked\ncase \"$*\" in *'list --'*) echo '{names}' ;; esac")
    labs.Lab(rundir).write(labs.Record(provider="vagrant", time="real", created=datetime.now(UTC), state=state))
    with pytest.raises(HostFailed, match="no address in network"):
        VagrantProvider(rundir).up(PLAN, lambda _: None)
    asked = (tmp_path / "asked").read_text()
    assert ("undefine" in asked) == removed
    assert prerequisites.consoles(rundir).exists() != removed


def test_a_console_that_cannot_be_read_hides_no_failure_and_stops_no_down(rundir: Path, tmp_path: Path) -> None:
    """A folder in a console's place stands for what the daemon has closed: root, who may run this, reads all files."""
    consoles = prerequisites.consoles(rundir)
    script = f"rm {consoles}/ams.log; mkdir {consoles}/ams.log; echo panic >{consoles}/bra.log; echo broken; exit 1"
    program(tmp_path, "vagrant", f'[ "$1" != up ] || {{ {script}; }}')
    rundir.rmdir()
    with pytest.raises(HostFailed, match="did not bring the machines up") as raised:
        labs.up(PLAN, "vagrant", None, lambda _: None)
    assert raised.value.__notes__ == ["consoles that could not be kept: ams.log: Is a directory"]
    assert not rundir.exists()
    assert not consoles.exists()
    assert (tmp_path / "state" / "failed" / "pair" / "consoles" / "bra.log").read_text() == "panic\n"


def test_a_failure_is_what_is_shown_and_what_could_not_be_cleaned_up_stands_below(
    rundir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path, "vagrant", f"touch {tmp_path}/ran; echo 'the box is broken'; exit 1")
    program(tmp_path, "virsh", f"[ ! -e {tmp_path}/ran ] || {{ echo 'no domains today' >&2; exit 1; }}")
    rundir.rmdir()
    with pytest.raises(HostFailed, match="did not bring the machines up") as raised:
        labs.up(PLAN, "vagrant", None, lambda _: None)
    code = console.explain(raised.value, debug=False)
    said = capsys.readouterr().err
    assert code == HostFailed.exit_code
    assert said.startswith("minigts: `vagrant up` did not bring the machines up")
    assert "minigts: and then: " in said
    assert "no domains today" in said


def test_what_explains_a_host_is_written_even_if_its_console_is_closed(rundir: Path, tmp_path: Path) -> None:
    (prerequisites.consoles(rundir) / "ams.log").mkdir(parents=True)
    VagrantProvider(rundir).diagnose("ams", tmp_path / "told")
    assert "ams.log: Is a directory" in (tmp_path / "told" / "console.log").read_text()
    assert (tmp_path / "told" / "dmesg.log").exists()


def test_machines_that_get_no_address_are_named_with_their_consoles(
    rundir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigts.providers.vagrant.provider.ADDRESS_DEADLINE_S", 0.0)
    program(tmp_path, "vagrant", "exit 0")
    with pytest.raises(
        HostFailed, match=r"no address in network minigts for ams, bra; their consoles are in .*/ams.log"
    ):
        VagrantProvider(rundir).up(PLAN, lambda _: None)


def test_vagrant_is_told_which_lab_it_is_for(rundir: Path, tmp_path: Path) -> None:
    program(tmp_path, "vagrant", f'[ "$1" != up ] || env >{tmp_path}/environment; exit 1')
    with pytest.raises(HostFailed):
        VagrantProvider(rundir).up(PLAN, lambda _: None)
    told = (tmp_path / "environment").read_text().splitlines()
    assert f"MINIGTS_DEFINITION={rundir / 'definition.json'}" in told
    assert f"VAGRANT_DOTFILE_PATH={rundir / 'vagrant'}" in told


def test_ssh_checks_the_machines_key_and_uses_no_configuration_of_the_users() -> None:
    launch = ssh_supervisor.SshLaunch(
        {"ams": "10.255.240.7"}, "/key", "/known", "minigts", ("nsenter", "--target", "7", "--net")
    )
    argv = ssh_supervisor.ssh(launch, "ams")
    assert argv[:8] == ["nsenter", "--target", "7", "--net", "ssh", "-T", "-F", "none"]
    assert {"StrictHostKeyChecking=yes", "UserKnownHostsFile=/known", "IdentityFile=/key"} <= set(argv)
    assert argv[-2:] == ["root@10.255.240.7", ssh_supervisor.AGENT]


def test_ssh_reads_paths_as_they_are() -> None:
    odd = """/it's a "home", 100 %d\\new/key"""
    launch = ssh_supervisor.SshLaunch({"ams": "10.255.240.7"}, odd, odd, "minigts", ())
    argv = ssh_supervisor.ssh(launch, "ams")
    shown = subprocess.run([argv[0], "-G", *argv[1:-1]], capture_output=True, text=True, timeout=30, check=True).stdout
    settings = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
    assert settings["identityfile"].replace("%%", "%") == odd
    assert settings["userknownhostsfile"].replace("%%", "%") == odd


def test_a_launch_is_read_as_it_was_written(tmp_path: Path) -> None:
    launch = ssh_supervisor.SshLaunch({"ams": "10.255.240.7"}, "/key", "/known", "minigts", ("a", "b"))
    launch.write(tmp_path / "launch.json")
    assert ssh_supervisor.SshLaunch.read(tmp_path / "launch.json") == launch


def test_the_supervisor_connects_to_each_machine_and_ends_with_its_connections(tmp_path: Path) -> None:
    for name in ("ams", "bra"):
        (tmp_path / "hosts" / name).mkdir(parents=True)
    os.mkfifo(tmp_path / "connected")
    told = f'for word; do case $word in root@*) echo "$word" >{tmp_path}/connected ;; esac; done'
    program(tmp_path, "connect", f"{told}\nexec sleep 1000")
    addresses = {"ams": "10.255.240.7", "bra": "10.255.240.8"}
    launch = ssh_supervisor.SshLaunch(addresses, "/key", "/known", "minigts", (str(tmp_path / "connect"),))
    launch.write(tmp_path / lab_processes.LAUNCH)
    connected = b""
    with (tmp_path / "connected").open("r+b", buffering=0) as pipe:
        ssh_supervisor.start(tmp_path)
        try:
            while connected.count(b"\n") < len(addresses):
                assert select.select([pipe], [], [], 30)[0], (tmp_path / "ssh_supervisor.log").read_text()
                connected += pipe.read(4096)
        finally:
            assert lab_processes.end(tmp_path) == []
    assert sorted(connected.decode().split()) == [f"root@{address}" for address in addresses.values()]
    assert lab_processes.marked_pids(tmp_path) == []


def relay(port: int, data: bytes) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-ISE", module.__file__, "127.0.0.1", str(port)]
    return subprocess.run(argv, input=data, capture_output=True, timeout=30, check=False)


def test_the_relay_carries_both_ways_and_ends_with_the_connection() -> None:
    data = bytes(range(256)) * 300

    def echo(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            while piece := connection.recv(65536):
                connection.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        echoed = pool.submit(echo, server)
        done = relay(server.getsockname()[1], data)
        echoed.result(timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_the_relay_says_nothing_while_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = relay(port, b"")
    assert (done.returncode, done.stderr) == (1, b"")
