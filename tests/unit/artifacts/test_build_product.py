"""What is compiled once: what is kept of a build, and what a broken one says. The recipes here are of one script."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from minigts import paths
from minigts.artifacts.build import Pace, Product, seconds_left, time_left
from minigts.errors import EnvironmentLacks
from minigts.machine import proc
from minigts.providers.uml.build import clock_build, image, kernel_build

GOOD = 'echo made >"$1/thing"; printf "\\n  CC a.o\\n  CC b.o\\n" >"$1/log"'
BOTH = pytest.mark.parametrize("module", [kernel_build, clock_build], ids=["kernel", "clock"])


@pytest.fixture
def product(tmp_path: Path) -> Product:
    (tmp_path / "recipe").mkdir()
    write(tmp_path / "recipe", GOOD)
    return Product(
        name="thing",
        folder=tmp_path / "recipe",
        store=tmp_path / "cache" / "things",
        duration="a moment",
        work_mb=0,
        step="  CC ",
        steps=2,
    )


def write(recipe: Path, script: str) -> None:
    (recipe / "build.sh").write_text(f"#!/bin/bash\n{script}\n")
    (recipe / "build.sh").chmod(0o755)


def test_it_is_built_once_for_each_recipe(product: Product) -> None:
    assert product.present() is None
    first = product.ensure(lambda _: None)
    write(product.folder, "exit 1")
    other = product.present()
    write(product.folder, GOOD)

    assert (first / "thing").read_text() == "made\n"
    assert other is None
    assert product.ensure(lambda _: None) == first == product.present()


def test_a_build_that_fails_says_why_and_leaves_only_its_log(product: Product) -> None:
    write(product.folder, 'echo all of it >"$1/log"; echo "error: no such line"; exit 1')
    with pytest.raises(EnvironmentLacks, match="thing could not be built: its log ends with\n    error: no such"):
        product.ensure(lambda _: None)
    assert sorted(path.name for path in product.store.iterdir()) == ["failed-build.log", "lock"]
    assert (product.store / "failed-build.log").read_text() == "all of it\n"

    write(product.folder, GOOD)
    product.ensure(lambda _: None)
    assert not (product.store / "failed-build.log").exists()


def test_a_build_that_fails_before_it_has_a_log_says_why(product: Product) -> None:
    write(product.folder, "echo no such program; exit 1")
    with pytest.raises(EnvironmentLacks, match="    no such program\n"):
        product.ensure(lambda _: None)
    assert (product.store / "failed-build.log").read_text() == "no such program\n"


def test_what_a_killed_build_left_goes(product: Product) -> None:
    (product.store / "building-other").mkdir(parents=True)
    product.ensure(lambda _: None)
    assert not list(product.store.glob("building-*"))


def test_too_little_room_is_said_first(product: Product) -> None:
    write(product.folder, "exit 99")
    with pytest.raises(EnvironmentLacks, match=f"building the thing takes {1 << 40} MB in /var/tmp; "):
        replace(product, work_mb=1 << 40).ensure(lambda _: None)


def test_it_says_how_far_it_is(product: Product) -> None:
    write(product.folder, f"{GOOD}; sleep 2.5")
    said: list[str] = []
    product.ensure(said.append)
    assert said == [
        "building the thing; once, a moment",
        "compiling the thing: 2 of some 2 parts, less than a minute left",
    ]


@pytest.mark.parametrize(
    ("elapsed_s", "steps", "left"),
    [
        (60, 130, "about 9 min"),
        (600, 1300, "less than a minute"),
        (30, 650, "less than a minute"),
        (9, 1400, "less than"),
    ],
)
def test_the_time_that_is_left_goes_by_the_steps_until_now(elapsed_s: float, steps: int, left: str) -> None:
    assert time_left(elapsed_s, steps, 1300).startswith(left)


@pytest.mark.parametrize(
    ("readings", "share", "left_s"),
    [
        # Half of two processors: 1200 s of which 120 are used, at one second of processor time in a second.
        ([(0, 0), (120, 120)], 0.3, 1080),
        # Beside other work a tenth of that; the first parts are quick ones, and no promise.
        ([(0, 100), (200, 120)], 0.3, 10800),
        # A slower machine: half of its parts took more than the whole was said to take.
        ([(0, 1300), (200, 1500)], 0.5, 1500),
        # More than was said, and all parts done.
        ([(0, 1300), (200, 1500)], 1.1, 0),
    ],
)
def test_the_time_that_is_left_goes_by_the_processor_time_that_a_build_has_had_lately(
    readings: list[tuple[float, float]], share: float, left_s: float
) -> None:
    assert seconds_left(readings, 1200, share) == pytest.approx(left_s)


@pytest.mark.parametrize("readings", [[], [(0, 1)], [(0, 1), (20, 1)]])
def test_without_processor_time_it_goes_by_the_steps(readings: list[tuple[float, float]]) -> None:
    assert seconds_left(readings, 1200, 0.5) is None


def test_a_build_that_computes_is_seen_to(product: Product) -> None:
    pace = Pace(whole_s=1000)
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; sleep 5"
    running = subprocess.Popen(["sh", "-c", f"({busy}) & wait"])
    pace.processes.append(running.pid)
    try:
        pace.look(0, 1)
        until = time.monotonic() + 60
        while sum(map(proc.used_s, proc.family([running.pid]))) < 0.1 and time.monotonic() < until:
            time.sleep(0.1)
        pace.look(20, 1)
        assert pace.time_left(20, 1, 10).startswith("about ")
        assert int(pace.time_left(20, 1, 10).split()[1]) > 100
    finally:
        running.terminate()
        running.wait()


def test_who_waits_for_another_build_says_so_and_uses_it(product: Product) -> None:
    product.store.mkdir(parents=True)
    waits = threading.Event()
    with (product.store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said: list[str] = []
        other = threading.Thread(target=lambda: product.ensure(lambda line: (said.append(line), waits.set())[0]))
        other.start()
        assert waits.wait(30)
    other.join(30)
    assert said[0] == "waiting for another minigts to finish building the thing"
    assert product.present() is not None


def test_who_has_it_does_not_wait_for_a_build_of_another(product: Product) -> None:
    ready = product.ensure(lambda _: None)
    with (product.store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert product.ensure(lambda _: None) == ready


def test_in_a_store_of_several_recipes_a_build_waits_for_no_other_s_and_leaves_its_directory_alone(
    product: Product,
) -> None:
    own = replace(product, shares_store=True)
    (own.store / "building-other").mkdir(parents=True)
    (own.store / "building-killed").mkdir()
    with (own.store / "other.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = own.ensure(lambda _: None)
    assert sorted(path.name for path in own.store.iterdir()) == sorted(
        [ready.name, f"{ready.name}.lock", "building-other", "other.lock"]
    )


def test_it_can_be_removed(product: Product) -> None:
    product.ensure(lambda _: None)
    product.remove()
    assert product.present() is None


@BOTH
def test_what_the_lab_runs_has_a_recipe_and_a_place_of_its_own(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", "/cache")
    product = module.product()  # type: ignore[attr-defined]
    assert all((product.folder / part).exists() for part in ("build.sh", "compile.sh", *product.parts))
    assert product.store.parent == Path("/cache")


def test_the_two_do_not_share_a_lock() -> None:
    assert kernel_build.product().store != clock_build.product().store


def test_what_cargo_leaves_in_the_folder_makes_no_other_clock(tmp_path: Path) -> None:
    product = replace(clock_build.product(), folder=tmp_path / "clock", store=tmp_path / "clocks", work_mb=0)
    shutil.copytree(clock_build.product().folder, product.folder, ignore=shutil.ignore_patterns("target"))
    shutil.copy(clock_build.product().folder.with_name("rust.sh"), tmp_path)
    write(product.folder, ":")
    first = product.ensure(lambda _: None)
    (product.folder / "target").mkdir()
    (product.folder / "target" / "program").write_text("a developer's")
    assert product.present() == first

    main = product.folder / "src" / "main.rs"
    main.write_text(f"{main.read_text()}\n")
    assert product.present() is None


@pytest.mark.parametrize("made", [lambda: clock_build.product().key, image.key], ids=["clock", "image"])
def test_what_compiles_both_rust_programs_is_a_part_of_each_recipe(
    made: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, copy = paths.project_root() / "provision", tmp_path / "provision"
    copy.mkdir()
    for name in ("agent", "clock", "image"):
        shutil.copytree(own / name, copy / name, ignore=shutil.ignore_patterns("target"))
    for file in (each for each in own.iterdir() if each.is_file()):
        shutil.copy(file, copy)
    before = made()
    monkeypatch.setattr(paths, "project_root", lambda: tmp_path)
    assert made() == before
    with (copy / "rust.sh").open("a") as script:
        script.write("# changed\n")
    assert made() != before


CONFIG = paths.project_root() / "provision" / "kernel" / "config"


def test_every_line_of_the_configuration_is_a_setting_or_a_comment_and_said_once() -> None:
    lines = [line for line in CONFIG.read_text().splitlines() if line and not line.startswith("#")]
    names = [line.partition("=")[0] for line in lines]
    assert all(line.partition("=")[2] for line in lines)
    assert len(names) == len(set(names))
