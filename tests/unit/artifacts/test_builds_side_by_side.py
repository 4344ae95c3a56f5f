"""What virtual time takes, built side by side. The recipes here are of one script, and the image is a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.artifacts.build import Product, compiling
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, HostFailed
from minigts.machine.proc import stat_fields
from minigts.providers import registry
from minigts.providers.uml.build import build_all, clock_build, image, kernel_build, namespaces

TOOLS = Path(__file__).parents[3] / "tools"
OBEDIENT = "(cat; kill -TERM -- -$$) <&$MINIGTS_LIFELINE &>/dev/null &\n"
"""What a recipe does so that it ends with its caller, as provision/debian.sh has it."""
HERE = 'touch "${0%/*}.here"'
"""Beside the recipe: in its folder it would make another of it."""


def meet(other: Path) -> str:
    """Goes on only when the other has begun, too."""
    return f"{HERE}; while [[ ! -e {other}.here ]]; do sleep 0.01; done"


def product(tmp_path: Path, name: str, script: str) -> Product:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "build.sh").write_text(f"#!/bin/bash\nexec </dev/stdin\n{OBEDIENT}{script}\n")
    (folder / "build.sh").chmod(0o755)
    return Product(
        name=name, folder=folder, store=tmp_path / "cache" / name, duration="a moment", work_mb=0, step="x", steps=1
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], list[str]]:
    """A machine where nothing is built, and that lacks nothing. Called with the kernel's script and the clock's it
    builds all, and gives what is said."""
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "present", lambda: None)
    monkeypatch.setattr(image, "ensure", lambda say: image.Image(tmp_path / "image"))

    def ensure(kernel: str, lab_clock: str, meanwhile: Callable[[], object] | None = None) -> list[str]:
        made = [product(tmp_path, "kernel", kernel), product(tmp_path, "clock", lab_clock)]
        monkeypatch.setattr(kernel_build, "product", lambda: made[0])
        monkeypatch.setattr(clock_build, "product", lambda: made[1])
        said: list[str] = []
        build_all.ensure(said.append, meanwhile)
        return said

    return ensure


def test_they_are_built_side_by_side_and_it_is_said_what_could_be_done_meanwhile(
    place: Callable[[str, str], list[str]], tmp_path: Path
) -> None:
    kernel, lab_clock = (meet(tmp_path / name) for name in ("clock", "kernel"))
    said = place(kernel, lab_clock)
    assert said[0].startswith("building the kernel, the clock and the hosts' image, once, side by side: some ")
    assert "--time real" in said[1]
    assert {*said[2:]} == {
        "building the kernel; once, a moment",
        "building the clock; once, a moment",
        "the kernel is built",
        "the clock is built",
    }
    assert kernel_build.present() is not None
    assert clock_build.present() is not None
    assert build_all.uncompiled_products() == ()


def test_what_is_done_meanwhile_has_the_image_and_not_the_kernel(
    place: Callable[..., list[str]], tmp_path: Path
) -> None:
    kernels = []

    def meanwhile() -> None:
        kernels.append(kernel_build.present())
        (tmp_path / "seen").touch()

    place(f"while [[ ! -e {tmp_path}/seen ]]; do sleep 0.01; done", HERE, meanwhile)
    assert kernels == [None]
    assert kernel_build.present() is not None
    build_all.ensure(lambda _: None, meanwhile)
    assert kernels == [None], "there is nothing to wait for"


def test_what_fails_meanwhile_breaks_the_builds_off(place: Callable[..., list[str]], tmp_path: Path) -> None:
    def meanwhile() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place(f"{HERE}; sleep 60", f"{HERE}; sleep 60", meanwhile)
    assert not list((tmp_path / "cache").rglob("building-*"))


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("E: Failed to fetch a://b", "its Debian mirror does not answer"),
        ("tar: x: No space left on device", "the disk is full; this step needs 0 MB in /var/tmp"),
        ("unshare failed", "its log ends with\n    unshare failed"),
    ],
)
def test_one_that_cannot_be_built_breaks_the_others_off_and_names_real_time(
    place: Callable[[str, str], list[str]], tmp_path: Path, says: str, why: str
) -> None:
    met = meet(tmp_path / "clock")
    with pytest.raises(EnvironmentLacks) as caught:
        place(f"{met}; echo {says!r}; exit 1", f"{HERE}; sleep 60")
    assert str(caught.value).startswith(f"labs cannot be in virtual time here: the kernel could not be built: {why}")
    assert str(caught.value).endswith("\nin real time they can: --time real")
    assert not list((tmp_path / "cache").rglob("building-*"))
    assert [path.name for path in (tmp_path / "cache" / "clock").iterdir()] == ["lock"]


def test_when_the_image_fails_the_others_are_broken_off_and_the_image_s_error_stands(
    place: Callable[[str, str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(say: Callable[[str], None]) -> image.Image:
        deadline = time.monotonic() + 30
        while not all((tmp_path / f"{name}.here").exists() for name in ("kernel", "clock")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        raise HostFailed("the image does not boot")

    monkeypatch.setattr(image, "ensure", fail)
    with pytest.raises(HostFailed, match=r"^the image does not boot$"):
        place(f"{HERE}; sleep 60", f"{HERE}; sleep 60")
    assert not list((tmp_path / "cache").rglob("building-*"))


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    """In a process of its own, since the signal goes to the main thread."""
    made = product(tmp_path, "kernel", f"touch {tmp_path}/started; sleep 60 & echo $! >{tmp_path}/pid; wait")
    program = (
        "import pathlib, sys, time\n"
        "from minigts.artifacts.build import compiling\n"
        "from minigts.artifacts.build import Product\n"
        f"one = Product(name='kernel', folder=pathlib.Path({str(made.folder)!r}), store=pathlib.Path("
        f"{str(made.store)!r}), duration='', work_mb=0, step='x', steps=1)\n"
        "with compiling([one], lambda _: None): pass\n"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(TOOLS)}, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    caller.send_signal(signal.SIGINT)
    assert caller.wait(timeout=30) != 0
    assert [path.name for path in made.store.iterdir()] == ["lock"]
    assert stat_fields((tmp_path / "pid").read_text().strip())[:1] in ([], ["Z"])


def test_who_waits_for_another_s_build_can_be_broken_off(tmp_path: Path) -> None:
    one = product(tmp_path, "kernel", "exit 1")
    one.store.mkdir(parents=True)
    holder = subprocess.Popen(
        ["flock", str(one.store / "lock"), "-c", f"touch {tmp_path}/held; sleep 60"], start_new_session=True
    )
    try:
        while not (tmp_path / "held").exists():
            time.sleep(0.01)
        waits = threading.Event()

        def interrupted() -> None:
            assert waits.wait(30)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), compiling([one], lambda _: waits.set()):
            interrupted()
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an image, without a kernel and a clock, and without the room for them."""
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"MINIGTS_{name}", str(tmp_path / name.lower()))
    (tmp_path / "cache" / "images" / image.key()).mkdir(parents=True)
    (tmp_path / "pair.yaml").write_text("name: two\npair: {hosts: [a, b]}\n")
    made = Product(
        name="kernel",
        folder=tmp_path,
        store=tmp_path / "cache" / "k",
        duration="",
        work_mb=1 << 40,
        step="x",
        steps=1,
    )
    monkeypatch.setattr(kernel_build, "product", lambda: made)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("argv", [["up", "pair.yaml"], ["kernel", "build"], ["setup", "uml"]])
def test_without_the_room_there_is_one_error_that_names_real_time(small: Path, argv: list[str]) -> None:
    done = CliRunner().invoke(app, argv)
    assert (done.exit_code, done.stdout) == (3, "")
    assert "minigts: labs cannot be in virtual time here: building the kernel" in done.stderr
    assert f"takes {(1 << 40) + clock_build.product().work_mb} MB in /var/tmp; " in done.stderr
    assert done.stderr.rstrip().endswith("in real time they can: --time real")
    assert not (small / "state" / "labs" / "two").exists()
    assert not list((small / "cache").rglob("building-*"))


def test_real_time_lacks_nothing_there(small: Path) -> None:
    assert registry.make("uml", small).missing() == []
    assert len(registry.make("uml", small, "virtual").missing()) == 1


def test_room_on_one_disk_is_asked_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    # The kernel's sources and objects, the clock's, the image unpacked, its agent, the image packed.
    assert sum(each.needed_mb for each in build_all.room()) == 3500 + 1500 + 1200 + 1200 + 800
    same = Path("/var/tmp").stat().st_dev == tmp_path.stat().st_dev
    assert len(build_all.room()) == (1 if same else 2)
    assert build_all.room()[0].what == "the full kernel, the clock of virtual time and the hosts' image"


def test_user_namespaces_that_are_off_are_said_beforehand(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(namespaces, "blocking_sysctl", lambda: "a.b=1")
    said = (
        "user namespaces are switched off: sudo sysctl -w a.b=1; or build nothing here: minigts setup uml --from FILE"
    )
    assert said in build_all.missing()
    monkeypatch.setattr(image, "present", lambda: None)
    assert said in image.missing()
    assert said not in build_all.missing()


@pytest.mark.parametrize("profile", [False, True])
def test_apparmor_restricts_labs_also_where_a_build_has_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, profile: bool
) -> None:
    """Ubuntu 24.04 has a profile for mmdebstrap, and none for this program."""
    monkeypatch.setattr(namespaces, "_read", lambda path: "1" if path.name.startswith("apparmor_restrict") else "")
    monkeypatch.setattr(namespaces, "PROFILE", tmp_path / "mmdebstrap")
    if profile:
        namespaces.PROFILE.touch()
    assert namespaces.restricting_sysctl() == namespaces.APPARMOR
    assert namespaces.blocking_sysctl() == ("" if profile else namespaces.APPARMOR)
