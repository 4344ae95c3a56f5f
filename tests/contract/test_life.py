"""`up`, `down` and `diagnose`. The same for every provider."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.chain import Make, MakeLab, chain
from live.program import start_time
from minigts.errors import MinigtsError
from minigts.foreign import user_text
from minigts.providers.base import Provider

LIMIT_S = 120.0


def boots(lab: Provider, hosts: tuple[str, ...] = ("h1", "h2")) -> list[str]:
    """Tells a host that was started anew from one that was left alone."""
    script = "test -e /proc/1/stat && cut -d' ' -f22 /proc/1/stat; cat /proc/sys/kernel/random/boot_id"
    return [user_text(lab.run(host, ["sh", "-c", script], timeout_s=LIMIT_S).stdout) for host in hosts]


def test_a_second_up_changes_nothing(make_lab: MakeLab, make: Make) -> None:
    lab = make_lab(2)
    before = boots(lab)
    lab.run("h1", ["sh", "-c", "echo kept >mark"], timeout_s=LIMIT_S)
    make(lab.rundir).up(chain(2), lambda _: None)
    assert boots(lab) == before
    assert lab.run("h1", ["cat", "mark"], timeout_s=LIMIT_S).stdout == "kept\n"


def test_another_object_for_the_run_directory_is_the_same_lab(lab: Provider, make: Make) -> None:
    assert make(lab.rundir).run("h2", ["echo", "here"], timeout_s=LIMIT_S).stdout == "here\n"


def test_up_says_how_far_it_is(make: Make, tmp_path: Path) -> None:
    provider = make(tmp_path)
    said: list[str] = []
    try:
        provider.up(chain(2), said.append)
    finally:
        provider.down()
    assert "2 of 2 hosts answer" in said


def test_after_down_a_host_does_not_answer(make_lab: MakeLab) -> None:
    lab = make_lab(2)
    lab.down()
    with pytest.raises(MinigtsError, match="h1"):
        lab.run("h1", ["true"], timeout_s=LIMIT_S)


def test_down_works_from_the_run_directory_alone_and_twice(make_lab: MakeLab, make: Make) -> None:
    lab = make_lab(2)
    carrying = {pid: start_time(pid) for pid in lab.processes()}
    assert lab.run("h2", ["echo", "here"], timeout_s=LIMIT_S).stdout == "here\n"
    for _ in range(2):
        make(lab.rundir).down()
        assert make(lab.rundir).processes() == ()
        assert [pid for pid, started in carrying.items() if start_time(pid) == started] == []
        for host in ("h1", "h2"):
            with pytest.raises(MinigtsError, match=host):
                make(lab.rundir).run(host, ["true"], timeout_s=LIMIT_S)


def test_down_of_what_was_never_up_does_nothing(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "never").down()
    assert not (tmp_path / "never").exists()


def test_down_ends_commands_that_run(make_lab: MakeLab) -> None:
    """A client in another thread learns of it at once, and not when its own time is up."""
    lab, begun = make_lab(2), threading.Event()
    argv = ["sh", "-c", "echo begun; while :; do :; done"]  # where time is virtual, a sleep is over at once
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lab.run, "h1", argv, timeout_s=60, on_output=lambda _: begun.set())
        assert begun.wait(LIMIT_S)
        lab.down()
        with pytest.raises(MinigtsError, match="h1"):
            running.result(timeout=30)


def test_down_leaves_other_labs_alone(make_lab: MakeLab) -> None:
    one, two = make_lab(2), make_lab(2)
    one.down()
    assert two.run("h1", ["echo", "here"], timeout_s=LIMIT_S).stdout == "here\n"


def test_a_lab_comes_up_again_after_down(make_lab: MakeLab) -> None:
    lab = make_lab(2)
    lab.down()
    lab.up(chain(2), lambda _: None)
    assert lab.run("h2", ["echo", "again"], timeout_s=LIMIT_S).stdout == "again\n"


def test_diagnose_writes_the_console(lab: Provider, tmp_path: Path) -> None:
    lab.diagnose("h1", tmp_path / "deep" / "h1")
    assert (tmp_path / "deep" / "h1" / "console.log").exists()


def test_diagnose_works_when_the_host_is_gone(make_lab: MakeLab, tmp_path: Path) -> None:
    lab = make_lab(2)
    lab.down()
    lab.diagnose("h1", tmp_path / "h1")
    assert (tmp_path / "h1").is_dir()
