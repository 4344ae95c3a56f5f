"""What is said of a host whose memory is used up, or that has as many processes as it may: without asking it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_lab import Answering, fake_lab
from minigts.cli.app import app
from minigts.lab.lab import Lab
from minigts.providers.uml.run import console as consoles
from minigts.providers.uml.run.console import STARTED, Console
from minigts.topology.read.load import parse

PLAN = parse("name: one\nhosts: {ams: {memory: 128MB}}\n", "one.yaml")


def killed(number: int, name: str = "bash") -> bytes:
    """As Linux 7.2 says it (mm/oom_kill.c)."""
    sizes = "total-vm:7212kB, anon-rss:1024kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0"
    return f"[   12.500000] Out of memory: Killed process {number} ({name}) {sizes}\n".encode()


OF_A_GROUP = b"Memory cgroup out of memory: Killed process 9 (stress) total-vm:1kB, anon-rss:1kB\n"


def test_the_processes_that_a_kernel_has_ended_are_told_with_their_number() -> None:
    assert consoles.memory_victims(killed(812) + b"something else\n" + killed(813, "a b (c)")) == (
        "bash[812]",
        "a b (c)[813]",
    )
    assert consoles.memory_victims(OF_A_GROUP + b"a program says: out of memory\n") == ()


def test_what_it_said_before_it_was_started_again_does_not_count() -> None:
    assert consoles.memory_victims(killed(1) + STARTED + killed(2)) == ("bash[2]",)
    assert consoles.memory_victims(killed(1) + STARTED) == ()


def test_it_is_a_clause() -> None:
    told = "its memory is exhausted, and its kernel has killed"
    assert consoles.memory_lack_in_words(()) == ""
    assert consoles.memory_lack_in_words(("bash[812]",)) == f"{told} 1 process, bash[812]"
    assert consoles.memory_lack_in_words(("bash[812]", "awk[9]")) == f"{told} 2 processes, the last awk[9]"


def test_each_start_of_a_kernel_begins_at_a_mark_of_its_own(tmp_path: Path) -> None:
    for number in (1, 2):
        console = Console(tmp_path / "console.log")
        console.begin()
        os.write(console.descriptor, killed(number))
        assert consoles.memory_victims(console.output()) == (f"bash[{number}]",)
        console.close()
    assert (tmp_path / "console.log").read_bytes() == killed(1) + STARTED + killed(2)
    assert console.output() == b""


@pytest.mark.parametrize(
    ("kilobytes", "told"), [(104_858, "all of its memory of 128 MB is in use"), (104_000, ""), (27_568, "")]
)
def test_a_kernel_that_has_touched_all_its_memory_is_told_of(tmp_path: Path, kilobytes: int, told: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text(f"Name:\tlinux\nRssFile:\t   15376 kB\nRssShmem:\t  {kilobytes} kB\n")
    assert consoles.memory_in_use(7, 128, tmp_path) == told
    assert consoles.memory_in_use(8, 128, tmp_path) == ""


class Starved(Answering):
    """Its kernel ends some processes while a command runs."""

    ended: tuple[str, ...] = ("old[1]",)

    def memory_kills(self, host: str) -> tuple[str, ...]:
        return self.ended

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        Starved.ended = (*Starved.ended, *argv)
        return 137, ""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(Starved, "ended", ("old[1]",))
    return fake_lab(PLAN, tmp_path / "state", monkeypatch, Starved)


@pytest.mark.parametrize(("number", "others"), [(1, 0), (3, 0), (7, 4)])
def test_exec_says_which_processes_were_ended_meanwhile(lab: Lab, number: int, others: int) -> None:
    programs = [f"p[{each}]" for each in range(number)]
    done = CliRunner().invoke(app, ["exec", "--lab", lab.name, "ams", "--", *programs])
    told = [
        f"minigts: the kernel of ams has killed {each}, because its memory of 128 MB has run out"
        for each in programs[:3]
    ]
    told += [f"minigts: the same is true of {others} further processes"] if others else []
    assert (done.exit_code, done.stderr.splitlines()) == (137, told)
