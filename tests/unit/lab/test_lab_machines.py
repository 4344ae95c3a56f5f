"""Work on many machines at a time: side by side, or one after the other where they share a kernel."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Barrier, get_ident
from typing import Any, ClassVar

import pytest

from fake_lab import fake_lab
from fake_provider import FakeProvider
from minigts.errors import HostFailed
from minigts.providers.base import CommandResult
from minigts.topology.plan.elements import Host, Switch
from minigts.topology.read.load import parse

ROW = "name: row\nchain: {hosts: 6, link: {delay: 1ms}}\n"
PATIENCE_S = 20.0


class Sharing(FakeProvider):
    """Its odd hosts share a kernel, and its even ones another."""

    def kernel_of(self, host: str) -> str:
        return f"kernel{int(host.removeprefix('h')) % 2}"


def test_hosts_of_one_kernel_are_worked_on_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = fake_lab(parse(ROW, "row.yaml"), tmp_path, monkeypatch, Sharing)
    both = Barrier(2, timeout=PATIENCE_S)
    order: dict[int, list[str]] = {}

    def work(machine: Host | Switch) -> str:
        both.wait()
        order.setdefault(get_ident(), []).append(machine.name)
        return machine.name.upper()

    found = lab.work_through(lab.plan.machines, work)

    assert found == {host.name: host.name.upper() for host in lab.plan.hosts}
    assert list(found) == [host.name for host in lab.plan.hosts]
    assert sorted(order.values()) == [["h1", "h3", "h5"], ["h2", "h4", "h6"]]


def test_one_host_that_fails_keeps_no_other_from_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = fake_lab(parse(ROW, "row.yaml"), tmp_path, monkeypatch, Sharing)
    done = []

    def work(machine: Host | Switch) -> None:
        if machine.name == "h1":
            raise ValueError("h1 cannot")
        done.append(machine.name)

    with pytest.raises(ValueError, match="h1 cannot"):
        lab.work_through(lab.plan.machines, work)
    assert sorted(done) == ["h2", "h3", "h4", "h5", "h6"]


def test_an_interruption_ends_it_before_the_next_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = fake_lab(parse(ROW, "row.yaml"), tmp_path, monkeypatch, Sharing)
    done = []

    def work(machine: Host | Switch) -> None:
        done.append(machine.name)
        if machine.name == "h1":
            os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.5)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)  # SIGINT may be ignored where tests run
    try:
        with pytest.raises(KeyboardInterrupt):
            lab.work_through(lab.plan.machines, work)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "h1" in done and {*done} <= {"h1", "h2"}


class Hung(Sharing):
    """None of its hosts answers."""

    asked: ClassVar[list[str]] = []

    def run(self, host: str, argv: Sequence[str], **settings: Any) -> CommandResult:
        self.asked.append(host)
        raise HostFailed(f"{host} does not answer")


def test_of_a_kernel_that_does_not_answer_one_host_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = fake_lab(parse(ROW, "row.yaml"), tmp_path, monkeypatch, Hung)

    found = lab.state_of_hosts()

    assert sorted(Hung.asked) == ["h1", "h2"]
    assert found["h2"] == "h2 does not answer"
    assert found["h5"] == "h5 shares a kernel, and h1 does not answer"
