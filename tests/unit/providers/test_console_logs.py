"""`minigts logs`, and what it asks of providers: a host's console and kernel log, whether it answers or not."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fake_lab import fake_lab
from minigts.cli.app import app
from minigts.errors import CommandTimeout
from minigts.lab.lab import Lab
from minigts.providers import registry
from minigts.providers.agent.provider import AgentProvider
from minigts.topology.read.load import parse

PLAN = parse("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms}}\n", "two.yaml")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Of fake hosts, each of which has run a command, and is not configured: that would be this machine."""
    made = fake_lab(PLAN, tmp_path / "state", monkeypatch)
    for host in PLAN.hosts:
        made.provider.run(host.name, ["echo", f"this is {host.name}"], timeout_s=20)
    return made


def logs(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["logs", *arguments])


def test_a_hosts_console_is_printed_below_a_heading(lab: Lab) -> None:
    done = logs("ams")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "==> ams: console.log <==\n['echo', 'this is ams']\n"


def test_without_a_host_every_one_is_shown(lab: Lab) -> None:
    done = logs("--lab", "two")
    assert [line for line in done.stdout.splitlines() if "==>" in line] == [
        "==> ams: console.log <==",
        "==> bra: console.log <==",
    ]
    assert "this is bra" in done.stdout


def test_one_of_the_logs_alone(lab: Lab) -> None:
    assert logs("bra", "--only", "console").stdout == "==> bra: console.log <==\n['echo', 'this is bra']\n"


def test_what_would_change_the_terminal_is_shown_as_its_escape(lab: Lab) -> None:
    console = lab.rundir / "hosts" / "ams" / "console.log"
    console.write_bytes(b"[    0.1] Linux\r\n\x1b]0;title\x07 \xff\n")
    assert logs("ams").stdout == "==> ams: console.log <==\n[    0.1] Linux\n\\x1b]0;title\\x07 \ufffd\n"


def test_into_a_directory_each_host_has_a_folder(lab: Lab, tmp_path: Path) -> None:
    into = tmp_path / "deep" / "logs"
    done = logs("--into", str(into))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"the logs of ams, bra are in {into}\n"
    assert {str(file.relative_to(into)): file.read_text() for file in into.rglob("*.log")} == {
        "ams/console.log": "['echo', 'this is ams']\n",
        "bra/console.log": "['echo', 'this is bra']\n",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lju"], "no host 'lju'; there are ams, bra"),
        (["ams", "--only", "consle"], "no log 'consle'; there are console; did you mean 'console'?"),
        (["ams", "--lab", "three"], "three"),
        (["ams", "--into", "FILE"], "cannot make the directory FILE/ams: Not a directory"),
    ],
)
def test_what_is_not_there_is_one_error(lab: Lab, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "file").touch()
    file = str(tmp_path / "file")
    done = logs(*(file if word == "FILE" else word for word in arguments))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("minigts: ")
    assert message.replace("FILE", file) in done.stderr


AGENTS = [name for name in registry.names() if isinstance(registry.make(name, Path()), AgentProvider)]


@pytest.mark.parametrize("name", AGENTS)
def test_a_host_that_is_too_slow_to_answer_has_its_console_told_all_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    provider = registry.make(name, tmp_path / "lab")
    assert isinstance(provider, AgentProvider)

    def late(host: str, argv: Sequence[str], *, timeout_s: float, **_: Any) -> None:
        raise CommandTimeout(host, argv, timeout_s, "", "")

    monkeypatch.setattr(provider, "run", late)
    console = provider.logs("ams")["console.log"]
    console.parent.mkdir(parents=True)
    console.write_text("Kernel panic\n")
    provider.diagnose("ams", tmp_path / "told")
    assert (tmp_path / "told" / "console.log").read_text() == "Kernel panic\n"
    assert "dmesg" in (tmp_path / "told" / "dmesg.log").read_text()


HOSTILE = ("\x1b]0;title\x07.log", "-rf.log", ".log", "\u202egol.log", "console.log", f"{'x' * 200}.log")


def test_logs_of_a_host_have_names_that_act_on_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lists the folder, or writes `*` there, is shown no escape and gives no option."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        top = tarfile.TarInfo(".")
        top.type, top.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(top)
        for name in (*HOSTILE, "dockerd.log"):
            member = tarfile.TarInfo(f"./{name}")
            member.size = 2
            archive.addfile(member, io.BytesIO(b"x\n"))
    provider = AgentProvider(tmp_path / "lab")
    provider.rundir.mkdir()
    (tmp_path / "told").mkdir()
    (tmp_path / "told" / "console.log").write_text("the true one")

    def stream(_host: str, _argv: Sequence[str], take: Callable[[bytes], object], _timeout_s: float) -> None:
        take(packed.getvalue())

    monkeypatch.setattr(provider, "stream", stream)
    provider._programs_logs("ams", tmp_path / "told")
    names = {path.name for path in (tmp_path / "told").iterdir()}
    assert {"%1B%5D0%3Btitle%07.log", "%2Drf.log", "%2Elog", "%E2%80%AEgol.log", "dockerd.log", "console.log"} < names
    assert len(names) == len(HOSTILE) + 1
    assert all(name.isascii() and name.isprintable() and name[0] not in "-." for name in names)
    assert (tmp_path / "told" / "console.log").read_text() == "the true one"
