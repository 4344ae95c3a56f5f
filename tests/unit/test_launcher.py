"""The launcher, started for real, mostly with the user's own virtual environment, which is made once."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PARTS = ("minigts", "requirements.lock", "requirements-dev.lock")
pytestmark = pytest.mark.timeout(600)


def launch(
    launcher: Path, *arguments: str, cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launcher, *arguments],
        cwd=cwd,
        env={**os.environ, "MINIGTS_APT": "no", "MINIGTS_CACHE": "", **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def started() -> Path:
    """The project's own launcher, whose environment is there."""
    assert launch(PROJECT / "minigts", "--help").returncode == 0
    return PROJECT / "minigts"


@pytest.fixture
def copy(started: Path, tmp_path: Path) -> Path:
    """A project with the launcher and the locks of this one, so with its environment, and a program that tells."""
    package = tmp_path / "project" / "tools" / "minigts"
    package.mkdir(parents=True)
    for part in PARTS:
        shutil.copy2(PROJECT / part, tmp_path / "project" / part)
    (package / "system-packages").write_text("no-such-program  no-such-package  all\n")
    (package / "__main__.py").write_text(
        "import os, sys\nprint(os.environ['MINIGTS_PROJECT'], sys.argv[1:])\nsys.exit(7)\n"
    )
    return tmp_path / "project" / "minigts"


def test_it_becomes_the_program_with_its_arguments_and_exit_code(copy: Path) -> None:
    done = launch(copy, "plan", "a b", "", "*")
    assert (done.returncode, done.stdout) == (7, f"{copy.parent} ['plan', 'a b', '', '*']\n")
    assert done.stderr == ""


def test_it_works_from_anywhere_and_through_a_symlink(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gts").symlink_to(copy)
    (tmp_path / "bin" / "minigts.py").write_text("raise SystemExit('a module of the working directory was taken')\n")
    done = launch(tmp_path / "bin" / "gts", "plan", cwd=tmp_path / "bin")
    assert done.stdout == f"{copy.parent} ['plan']\n"


@pytest.mark.parametrize("verb", ["up", "run", "image", "test"])
def test_a_missing_package_is_named_and_the_program_starts_all_the_same(copy: Path, verb: str) -> None:
    done = launch(copy, verb)
    assert done.returncode == 7
    assert "no-such-package" in done.stderr


@pytest.mark.parametrize(("verb", "asked"), [("run", False), ("test", True)])
def test_what_only_tests_need_is_asked_for_by_tests_alone(copy: Path, verb: str, asked: bool) -> None:
    (copy.parent / "tools" / "minigts" / "system-packages").write_text("no-such-program  for-tests  test\n")
    assert ("for-tests" in launch(copy, verb).stderr) is asked


def test_what_only_one_provider_needs_is_asked_for_when_it_is_set_up(copy: Path) -> None:
    with (copy.parent / "tools" / "minigts" / "system-packages").open("a") as lines:
        lines.write(f"no-such-machine  machine-package  vagrant\n{copy.parent}/mini*  launcher-package  vagrant\n")
    assert "machine-package" not in launch(copy, "up").stderr
    said = launch(copy, "setup", "vagrant").stderr
    assert "no-such-package" in said
    assert "machine-package" in said
    assert "launcher-package" not in said
    assert "machine-package" not in launch(copy, "setup", "uml").stderr


@pytest.mark.parametrize("arguments", [["plan"], ["doctor"], ["report"], ["down"], ["run", "--help"], ["--help"], []])
def test_other_verbs_ask_for_no_packages(copy: Path, arguments: list[str]) -> None:
    assert launch(copy, *arguments).stderr == ""


def test_an_unfit_python_is_refused_with_exit_code_3(copy: Path, tmp_path: Path) -> None:
    done = launch(copy, "plan", MINIGTS_PYTHON="false")
    assert done.returncode == 3
    assert "3.11" in done.stderr


def test_a_cache_that_cannot_be_written_is_named(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = launch(copy, "plan", XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 3
    assert "XDG_CACHE_HOME" in done.stderr


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A launcher whose locks list nothing: its environment is made in seconds, and in a cache of its own."""
    package = tmp_path / "bare" / "tools" / "minigts"
    package.mkdir(parents=True)
    shutil.copy2(PROJECT / "minigts", tmp_path / "bare" / "minigts")
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / "bare" / lock).touch()
    (package / "system-packages").touch()
    (package / "__main__.py").write_text("import sys\nprint(sys.prefix)\n")
    return tmp_path / "bare" / "minigts"


def test_two_first_starts_at_once_make_one_environment(bare: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: launch(bare, "plan", XDG_CACHE_HOME=str(tmp_path / "cache")), range(2)))
    assert [done.returncode for done in both] == [0, 0]
    assert both[0].stdout == both[1].stdout
    assert "".join(done.stderr for done in both).count("making a virtual environment") == 1


def test_an_interrupted_set_up_is_done_again(bare: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    environment = Path(launch(bare, "plan", XDG_CACHE_HOME=cache).stdout.strip())
    (environment / "requirements.lock.done").unlink()
    (environment / "unfinished").touch()
    (environment / "half-written").touch()
    done = launch(bare, "plan", XDG_CACHE_HOME=cache)
    assert (done.returncode, done.stdout.strip()) == (0, str(environment))
    assert not (environment / "half-written").exists()
    assert not (environment / "unfinished").exists()


def test_a_second_start_costs_little(copy: Path) -> None:
    def seconds() -> float:
        since = time.monotonic()
        launch(copy, "plan")
        return time.monotonic() - since

    assert min(seconds() for _ in range(5)) < 0.5


def test_signals_reach_the_program(copy: Path) -> None:
    main = copy.parent / "tools" / "minigts" / "__main__.py"
    main.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen([copy, "plan"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(timeout=10) == -15
