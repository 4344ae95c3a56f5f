"""What an agent may write: names, settings and words, none of which becomes an option of a verb or a file of this
machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import tc_hosts
from hypothesis import given
from hypothesis import strategies as st

from minigts import lab as labs
from minigts.agents.desk import LOOKS, MOST_SAID, READ, Desk
from minigts.errors import CommandFailed, InputError
from minigts.machine import shell
from minigts.topology.read.load import parse

TEXT = "name: chain\nhosts: {ams: {}, bra: {}}\nlinks: [{ends: [ams, bra], rtt: 20ms, rate: 50mbit, loss: 1%}]\n"
DESK = Desk("chain")
ran: list[tuple[str, ...]] = []


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)
    ran.clear()
    monkeypatch.setattr(shell, "run_bounded", answer("said\n"))


def answer(said: str, code: int = 0, complained: str = "") -> Callable[..., shell.Completed]:
    """A program that says this, whatever it is asked."""

    def run(argv: tuple[str, ...], **_how: object) -> shell.Completed:
        ran.append(tuple(argv[5:]))
        return shell.Completed(tuple(argv), code, said, complained, 0.1)

    return run


def test_a_topology_is_machines_and_links(lab: None) -> None:
    assert DESK.topology().splitlines() == [
        "ams: eth1 10.20.0.1/24 on ams-bra",
        "bra: eth1 10.20.0.2/24 on ams-bra",
        "",
        "ams-bra (ams and bra): from ams 10 ms, 50 Mbit/s, loss 1 %; from bra 10 ms, 50 Mbit/s, loss 1 %",
    ]


def test_a_command_runs_on_a_host_of_the_lab_with_a_limit(lab: None) -> None:
    assert DESK.run("ams", "ls /; rm -rf x", 7) == "said"
    assert ran == [("exec", "--lab", "chain", "--timeout", "7", "ams", "--", "bash", "-c", "ls /; rm -rf x")]


def test_a_capture_is_at_the_end_that_is_named(lab: None) -> None:
    DESK.capture("ams-bra", "bra", "tcp port 80", 3, 10)
    (words,) = ran
    assert words[:6] == ("exec", "--lab", "chain", "--timeout", "33", "bra")
    assert words[-6:] == ("eth1", "-c", "10", "tcp", "port", "80")
    with pytest.raises(InputError, match="lon"):
        DESK.capture("ams-bra", "lon", "", 3, 10)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (lambda: DESK.run("--help", "true", 1), "no host '--help'; there are ams, bra"),
        (lambda: DESK.run("lon", "true", 1), "no host 'lon'"),
        (lambda: DESK.run("ams", "true", 1e9), "where 0.1 to 600 is possible"),
        (lambda: DESK.ping("ams", "-f", 1, 56, whole=False), "no name of a host"),
        (lambda: DESK.ping("ams", "bra", 10_000, 56, whole=False), "where 1 to 100"),
        (lambda: DESK.read_file("ams", "etc/passwd"), "begins with /"),
        (lambda: DESK.explain("--json"), "no name of a host"),
        (lambda: DESK.capture("ams-bra", "", "-w /tmp/x", 1, 1), "it has no options"),
        (lambda: DESK.set_link("ams-bra", ["--reset"]), "is no setting"),
        (lambda: DESK.set_link("ams-bra", ["delay"]), "is no setting"),
        (lambda: DESK.link("ams-bra", "sideways"), "goes `up` or `down`"),
        (lambda: DESK.look("ams", "secrets"), "routes"),
        (lambda: DESK.write_file("ams", "/tmp/x", "x" * 1_000_001), "where a file may have"),
        (lambda: DESK.write_file("ams", "/tmp/x", "\ud800"), "is no character"),
        (lambda: DESK.run("ams", "echo \0", 1), "NUL"),
        (lambda: DESK.run("ams", "echo \udc80", 1), "is no character"),
        (lambda: DESK.run("ams", "x" * 200_000, 1), "200000 bytes, where"),
        (lambda: DESK.run("ams", "true", float("nan")), "where 0.1 to 600"),
        (lambda: DESK.capture("ams-bra", "", "icmp\0", 1, 1), "NUL"),
        (lambda: DESK.read_file("ams", "/etc/\0"), "NUL"),
        (lambda: DESK.wait(float("nan")), "where 0.001 to 600"),
        (lambda: DESK.wait(float("inf")), "where 0.001 to 600"),
    ],
)
def test_what_is_no_name_is_refused_before_anything_runs(lab: None, asked: Callable[[], str], why: str) -> None:
    with pytest.raises(InputError, match=why.replace("(", r"\(")):
        asked()
    assert ran == []


@given(st.text(max_size=30))
def test_no_text_becomes_an_option(text: str) -> None:
    """Of a verb that takes names: either the text is refused, or it stands behind `--`."""
    seen: list[tuple[str, ...]] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            shell, "run_bounded", lambda argv, **_: seen.append(tuple(argv[5:])) or shell.Completed((), 0, "", "", 0)
        )
        for asked in (DESK.explain, DESK.restart, DESK.logs, lambda word: DESK.link(word, "up")):
            try:
                asked(text)
            except InputError:
                continue
            words = seen.pop()
            assert text not in words[: words.index("--")] or text == "chain"


def test_an_answer_is_bounded_and_has_no_control_characters(lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "run_bounded", answer("\x1b[31mred" + "x" * 100_000 + "end"))
    said = DESK.status()
    assert "\x1b" not in said and said.endswith("end") and "characters are left out" in said
    assert len(said) < MOST_SAID + 100


def test_an_exit_code_is_said_and_a_refusal_raised(lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "run_bounded", answer("out\n", 3, "err\n"))
    assert DESK.run("ams", "false", 1) == "out\nerr\nexit code 3"
    monkeypatch.setattr(shell, "run_bounded", answer("", 2, "minigts: no link 'x'\n"))
    with pytest.raises(InputError, match=r"^no link 'x'$"):
        DESK.explain("x")


def test_a_file_that_was_not_written_is_said(lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DESK.write_file("ams", "/tmp/x", "text") == "/tmp/x on ams has 4 characters now"
    monkeypatch.setattr(shell, "run_bounded", answer("", 2, "sh: 1: cannot create /proc/x: Directory nonexistent\n"))
    with pytest.raises(InputError, match=r"/proc/x on ams was not written: .*nonexistent"):
        DESK.write_file("ams", "/proc/x", "text")


@pytest.mark.parametrize("target", ["::1", "fe80::1%eth1", "10.20.0.2", "bra"])
def test_a_target_is_any_address_or_name(lab: None, target: str) -> None:
    DESK.ping("ams", target, 1, 56, whole=False)
    assert ran[0][-2:] == ("--", target)


def test_only_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in it")
    os.mkfifo(tmp_path / "pipe")
    found = [
        subprocess.run(["sh", "-c", READ, tmp_path / name], capture_output=True, text=True, timeout=20, check=False)
        for name in ("file", "pipe", "none")
    ]
    assert [each.stdout for each in found] == ["in it", "", ""]
    assert found[1].stderr == f"{tmp_path}/pipe is no plain file\n" and found[1].returncode == 1


def test_a_capture_is_at_a_host_though_a_switch_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    text = (
        "name: chain\nhosts: {ams: {}, bra: {}}\nswitches: {mid: {}}\nlinks: [{ends: [mid, ams]}, {ends: [mid, bra]}]\n"
    )
    labs.up(parse(text, "chain.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)
    ran.clear()
    monkeypatch.setattr(shell, "run_bounded", answer("said\n"))
    DESK.capture("mid-ams", "", "", 3, 10)
    assert ran[0][5] == "ams"


def test_what_prints_without_end_is_ended_and_said(lab: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: tuple[str, ...], **_how: object) -> shell.Completed:
        raise CommandFailed("", argv, -2, "y\n" * 100_000, "")

    monkeypatch.setattr(shell, "run_bounded", run)
    said = DESK.run("ams", "yes", 1)
    assert said.startswith("y\ny\n") and said.endswith("since it printed more than 10 MB") and len(said) < 25_000


def test_a_verb_that_runs_refuses_as_at_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    with pytest.raises(InputError, match=r"^no lab is up"):
        Desk("gone").status()


def test_every_look_is_one_line_of_shell(lab: None) -> None:
    for what in LOOKS:
        DESK.look("ams", what)
    assert [words[-3:-1] for words in ran] == [("sh", "-c")] * len(LOOKS)


def test_what_the_kernel_has_said_is_not_taken_from_a_host() -> None:
    """/proc/kmsg, which is a plain file by its kind, is another one for the next reader."""
    asked = subprocess.run(["sh", "-c", READ, "/proc/kmsg"], capture_output=True, text=True, timeout=20, check=False)
    assert (asked.returncode, asked.stdout, asked.stderr) == (1, "", "/proc/kmsg is another one once it is read\n")
    asked = subprocess.run(["sh", "-c", READ, "/proc/version"], capture_output=True, text=True, timeout=20, check=False)
    assert asked.stdout.startswith("Linux version")
