"""SSH to hosts: what OpenSSH makes of the configuration, the inventory, and what carries a connection. No hosts."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from fake_provider import FakeProvider
from minigts.cli.app import app
from minigts.errors import HostFailed
from minigts.lab import ssh
from minigts.lab.lab import Lab
from minigts.lab.record import Record
from minigts.lab.rundir import MARKER, lab_named
from minigts.providers import registry
from minigts.providers.agent import protocol
from minigts.topology.read.load import parse

TOPOLOGY = """
name: four
hosts:
  ams: {environment: {NOTE: 'a "quoted" \\ word # so', EMPTY: "", LINES: "two\\nlines"}}
  bra: {}
  lju: {}
  mil: {}
links:
  - {ends: [ams, bra], rtt: 10ms}
  - {ends: [bra, lju], rtt: 10ms}
  - {ends: [lju, mil], rtt: 10ms}
overlay: vxlan
groups: {left-hand: [ams, bra], right: [lju, mil]}
"""
PLAN = parse(TOPOLOGY, "four.yaml", known_overlays=["vxlan"])
CONTENT = bytes(range(256)) * 300


class Agent:
    """The far end of a host's line, in this process: what came on it, and what the test lets it say."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        self.argv: Sequence[str] = ()
        self._decoder = protocol.Decoder()
        self._frames: list[protocol.Frame] = []

    def say(self, kind: int, payload: bytes) -> None:
        self.far.sendall(protocol.Frame(ssh.CHANNEL, kind, payload).encode())

    def end(self, code: int) -> None:
        self.say(protocol.EXIT, json.dumps({"code": code, "timeout": False}).encode())

    def frame(self) -> protocol.Frame:
        self.far.settimeout(20)
        while not self._frames:
            self._frames = list(self._decoder.feed(self.far.recv(1 << 16)))
        return self._frames.pop(0)

    def hears(self, count: int) -> bytes:
        heard = b""
        while len(heard) < count:
            heard += self.frame().payload
        return heard


class TalkingProvider(FakeProvider):
    """Whose lines all lead to one agent."""

    agent: Agent

    def converse(self, host: str, argv: Sequence[str]) -> socket.socket:
        self.agent.argv = argv
        return self.agent.near


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    made = Agent()
    monkeypatch.setattr(TalkingProvider, "agent", made, raising=False)
    yield made
    made.near.close()
    made.far.close()


def lab_on(provider: type[FakeProvider], state: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("MINIGTS_STATE", str(state))
    monkeypatch.setitem(registry._PROVIDERS, "fake", provider)
    made = lab_named("four")
    made.rundir.mkdir(parents=True)
    (made.rundir / MARKER).touch()
    digest = made.write_plan(PLAN)
    made.write(Record(provider="fake", time="real", created=datetime.now(UTC), plan_sha256=digest, state="up"))
    return made


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Its state directory has a name that OpenSSH would take apart."""
    return lab_on(TalkingProvider, tmp_path / 'the "state" of 100 %h', monkeypatch)


def do(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def as_openssh_reads(file: Path, host: str) -> dict[str, str]:
    """`ssh -G`, which connects nowhere: every setting of a connection, by its name in lower case."""
    said = subprocess.run(["ssh", "-G", "-F", file, host], capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)


@pytest.mark.parametrize("host", ["ams", "mil"])
def test_openssh_finds_keys_and_line_whatever_the_state_directory_is_called(lab: Lab, host: str) -> None:
    done = do("ssh-config")
    assert (done.exit_code, done.stdout) == (0, ssh.config_file(lab).read_text())
    found = as_openssh_reads(ssh.config_file(lab), host)
    folder = str(lab.rundir / "ssh")
    # OpenSSH prints the paths as written, and replaces what stands behind a per cent sign when it opens them.
    assert found["identityfile"].replace("%%", "%") == f"{folder}/user"
    assert found["userknownhostsfile"].replace("%%", "%") == f"{folder}/known_hosts"
    assert found["stricthostkeychecking"] in ("true", "yes")
    words = shlex.split(found["proxycommand"].replace("%%", "%"))
    assert words[-4:] == ["ssh-line", "--lab", "four", "%n"]
    assert f"MINIGTS_STATE={lab.rundir.parents[1]}" in words


def test_hosts_of_no_lab_are_left_as_they_are(lab: Lab) -> None:
    ssh.write_config(lab)
    assert "proxycommand" not in as_openssh_reads(ssh.config_file(lab), "elsewhere")


def test_keys_are_made_once_and_nobody_else_reads_them(lab: Lab) -> None:
    ssh.write_config(lab)
    folder = lab.rundir / "ssh"
    made = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {name: (folder / name).stat().st_mode & 0o777 for name in ("user", "host")} == {"user": 0o600, "host": 0o600}
    ssh.write_config(lab)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == made
    assert made["known_hosts"].decode() == f"minigts-four {made['host.pub'].decode()}"


def test_what_was_broken_off_as_keys_were_made_is_made_anew(lab: Lab) -> None:
    (lab.rundir / "ssh").mkdir()
    (lab.rundir / "ssh" / "user").write_text("half")
    ssh.write_config(lab)
    assert "OPENSSH PRIVATE KEY" in (lab.rundir / "ssh" / "user").read_text()


def test_the_inventory_has_hosts_and_groups_and_how_they_are_reached(lab: Lab) -> None:
    done = do("inventory", "four")
    assert (done.exit_code, done.stderr) == (0, "")
    everything = YAML(typ="safe").load(done.stdout)["all"]
    assert list(everything["hosts"]) == ["ams", "bra", "lju", "mil"]
    assert {name: list(group["hosts"]) for name, group in everything["children"].items()} == {
        "left_hand": ["ams", "bra"],
        "right": ["lju", "mil"],
    }
    assert shlex.split(everything["vars"]["ansible_ssh_common_args"]) == ["-F", str(ssh.config_file(lab))]
    # Ansible replaces %(directory)s, and OpenSSH what is left.
    control = everything["vars"]["ansible_control_path"] % {"directory": "/d"}
    assert control.startswith("/d/minigts-")
    assert control.endswith("-%n")


def test_a_host_s_environment_reaches_what_is_run_there(lab: Lab, tmp_path: Path) -> None:
    """OpenSSH's client has the server's word SetEnv, too, and shows what it has read. Two lines cannot be set."""
    ssh.write_config(lab)
    _, given = ssh.session(lab, "ams", ssh.SshKeys(lab.rundir / "ssh"))
    (line,) = (line for line in given.decode().splitlines() if line.startswith("SetEnv"))
    (tmp_path / "config").write_text(f"{line}\n")
    said = subprocess.run(
        ["ssh", "-G", "-F", tmp_path / "config", "ams"], capture_output=True, text=True, check=True
    ).stdout
    shown = [line.removeprefix("setenv ") for line in said.splitlines() if line.startswith("setenv ")]
    assert shown == ["LANG=C.UTF-8", 'NOTE=a "quoted" \\ word # so', "EMPTY="]


class Carried:
    """`carry` of a connection in this thread, with a pipe each way."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.source, self.user_writes = os.pipe()
        self.user_reads, self.target = os.pipe()

    def run(self) -> int:
        return ssh.carry(self._lab, "ams", self.source, self.target)

    def close(self) -> None:
        for descriptor in (self.source, self.user_writes, self.user_reads, self.target):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def carried(lab: Lab) -> Iterator[Carried]:
    ssh.write_config(lab)
    made = Carried(lab)
    yield made
    made.close()


def prelude(agent: Agent) -> int:
    """How many bytes come before the connection's own, by the command."""
    return sum(int(word) for word in agent.argv[6::2])


def side_by_side(play: Any, carried: Carried) -> int:
    """`play` is the agent's and the user's part."""
    problems: list[BaseException] = []

    def played() -> None:
        try:
            play()
        except BaseException as error:
            problems.append(error)

    other = threading.Thread(target=played)
    other.start()
    try:
        return carried.run()
    finally:
        other.join(30)
        assert not problems, problems


def test_bytes_go_both_ways_and_the_code_is_sshd_s(agent: Agent, carried: Carried) -> None:
    def play() -> None:
        given = agent.hears(1) if not agent.argv else b""
        given += agent.hears(prelude(agent) - len(given))
        assert b"OPENSSH PRIVATE KEY" in given
        os.write(carried.user_writes, CONTENT[:60_000])
        assert agent.hears(60_000) == CONTENT[:60_000]
        agent.say(protocol.STDOUT, CONTENT[:16_384])
        assert os.read(carried.user_reads, 16_384) == CONTENT[:16_384]
        agent.end(3)

    assert side_by_side(play, carried) == 3


def test_when_the_user_goes_sshd_is_told_and_ends_by_itself(agent: Agent, carried: Carried) -> None:
    def play() -> None:
        agent.hears(1)
        os.close(carried.user_writes)
        carried.user_writes = -1
        while agent.frame().payload:
            pass
        agent.say(protocol.STDOUT, b"goodbye")
        agent.end(255)

    assert side_by_side(play, carried) == 255


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_that_the_user_goes(agent: Agent, carried: Carried, number: signal.Signals) -> None:
    def play() -> None:
        agent.hears(1)
        os.kill(os.getpid(), number)
        while agent.frame().payload:
            pass
        agent.end(0)

    before = signal.getsignal(number)
    assert side_by_side(play, carried) == 0
    assert signal.getsignal(number) is before


def test_sshd_may_say_more_than_a_user_who_has_gone_reads(agent: Agent, carried: Carried) -> None:
    def play() -> None:
        agent.hears(1)
        os.close(carried.user_reads)
        carried.user_reads = -1
        agent.say(protocol.STDOUT, b"more")
        while agent.frame().payload:
            pass
        agent.say(protocol.STDOUT, b"and more")
        agent.end(255)

    assert side_by_side(play, carried) == 255


def test_nobody_waits_for_ever_for_an_sshd_that_does_not_end(
    agent: Agent, carried: Carried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "GRACE_S", 0.2)
    os.close(carried.user_writes)
    carried.user_writes = -1
    assert carried.run() == 0
    assert agent.near.fileno() == -1, "the line is open yet, and with it the host's sshd runs"


def test_a_host_that_goes_is_an_error(agent: Agent, carried: Carried) -> None:
    def play() -> None:
        agent.hears(1)
        agent.far.close()

    with pytest.raises(HostFailed, match="host ams went away"):
        side_by_side(play, carried)


@pytest.mark.parametrize("verb", ["ssh-config", "inventory"])
def test_without_a_lab_there_is_one_error(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    done = do(verb)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "minigts: no lab is up; bring one up with: minigts up topologies/chain6.yaml\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ssh-config", "fourr"), 2, "no lab 'fourr'; did you mean 'four'?"),
        (("ssh-line", "am"), 2, "no host 'am'; there are ams, bra, lju, mil; did you mean 'ams'?"),
        (("ssh-line", "ams"), 3, "lab four has no keys for SSH yet: minigts ssh-config four"),
    ],
)
def test_what_is_not_there_is_named(lab: Lab, words: tuple[str, ...], code: int, said: str) -> None:
    done = do(*words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_provider_that_cannot_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab_on(FakeProvider, tmp_path, monkeypatch)
    done = do("ssh-config")
    assert done.exit_code == 3
    assert "hosts of provider fake cannot be reached by SSH" in done.stderr


def test_without_ssh_keygen_it_says_what_to_install(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = do("ssh-config")
    assert done.exit_code == 3
    assert "ssh-keygen is not installed: apt-get install openssh-client" in done.stderr
