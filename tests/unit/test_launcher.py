"""The launcher, started for real, with virtual environments of the tests' own: nothing is made in the user's cache."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import minigts
from minigts.cli import help_from_source
from minigts.cli.app import app
from minigts.providers import registry

PROJECT = Path(__file__).parents[2]
PARTS = ("minigts", "requirements.lock", "requirements-dev.lock", "provision/install-packages.sh")
pytestmark = [
    pytest.mark.touched("minigts", "requirements.lock", "requirements-dev.lock", "tools/minigts/cli"),
    pytest.mark.timeout(600),
]


def launch(
    launcher: Path, *arguments: str, cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launcher, *arguments],
        cwd=cwd,
        env={**os.environ, "MINIGTS_APT": "no", **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def parts(project: Path) -> Path:
    """Copy what the launcher reads into `project`; the folder of the package there."""
    package = project / "tools" / "minigts"
    shutil.copytree(PROJECT / "tools" / "minigts" / "cli", package / "cli")
    for name in registry.names():
        (package / "providers" / name).mkdir(parents=True)
        (package / "providers" / name / "provider.py").touch()
    shutil.copy2(PROJECT / "tools" / "minigts" / "__init__.py", package)
    (project / "provision").mkdir()
    for part in PARTS:
        shutil.copy2(PROJECT / part, project / part)
    return package


def of_nothing(project: Path) -> Path:
    """A project with this launcher, one environment for users and tests, in which is nothing, and no program; its
    package."""
    package = parts(project)
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (project / lock).write_text("# nothing\n")
    (package / "__main__.py").write_text("")
    return package


@pytest.fixture(scope="module")
def cache_of_copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the environment of each such project, which is named for its lock."""
    cache = tmp_path_factory.mktemp("cache of copies")
    project = tmp_path_factory.mktemp("first") / "project"
    of_nothing(project)
    done = launch(project / "minigts", "schema", MINIGTS_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    return cache


@pytest.fixture
def copy(cache_of_copies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The launcher of a project whose environment is there, with a program that tells what it is given."""
    package = of_nothing(tmp_path / "project")
    monkeypatch.setenv("MINIGTS_CACHE", str(cache_of_copies))
    (package / "providers" / "uml" / "system-packages").write_text("no-such-program  no-such-package\n")
    (package / "__main__.py").write_text(
        "import os, sys\nprint(os.environ['MINIGTS_PROJECT'], sys.argv[1:])\nsys.exit(7)\n"
    )
    return tmp_path / "project" / "minigts"


def test_it_becomes_the_program_with_its_arguments_and_exit_code(copy: Path) -> None:
    done = launch(copy, "plan", "a b", "", "*")
    assert (done.returncode, done.stdout) == (7, f"{copy.parent} ['plan', 'a b', '', '*']\n")
    assert done.stderr == ""


def test_a_cache_where_nothing_may_run_is_named_with_another_one(copy: Path, cache_of_copies: Path) -> None:
    """As where it is mounted noexec: Python starts, since it is elsewhere, and cannot load its packages' libraries."""
    (pip,) = cache_of_copies.glob("venv-*/bin/pip")
    before = pip.stat().st_mode
    try:
        pip.chmod(0o644)
        done = launch(copy, "plan")
    finally:
        pip.chmod(before)
    assert done.returncode == 3
    assert f"{cache_of_copies} is mounted noexec" in done.stderr and "MINIGTS_CACHE=" in done.stderr


def test_it_works_from_anywhere_and_through_a_symlink(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gts").symlink_to(copy)
    (tmp_path / "bin" / "minigts.py").write_text("raise SystemExit('a module of the working directory was taken')\n")
    done = launch(tmp_path / "bin" / "gts", "plan", cwd=tmp_path / "bin")
    assert done.stdout == f"{copy.parent} ['plan']\n"


@pytest.mark.parametrize("words", ["up", "run x.yaml", "-v up x", "image build", "image box", "kernel build", "test"])
def test_a_missing_package_is_named_and_the_program_starts_all_the_same(copy: Path, words: str) -> None:
    done = launch(copy, *words.split())
    assert done.returncode == 7
    assert "no-such-package" in done.stderr


def test_what_only_a_plain_user_needs_is_not_asked_of_root(copy: Path) -> None:
    listed = "no-such-program  for-users  user\nnor-this-one  for-all\n"
    (copy.parent / "tools" / "minigts" / "providers" / "uml" / "system-packages").write_text(listed)
    stderr = launch(copy, "up").stderr
    assert "for-all" in stderr
    assert ("for-users" in stderr) == (os.geteuid() != 0)


@pytest.mark.parametrize(("verb", "asked"), [("run", False), ("test", True)])
def test_what_only_tests_need_is_asked_for_by_tests_alone(copy: Path, verb: str, asked: bool) -> None:
    (copy.parent / "tests").mkdir()
    (copy.parent / "tests" / "system-packages").write_text("no-such-program  for-tests\n")
    assert ("for-tests" in launch(copy, verb).stderr) is asked


def test_what_only_one_provider_needs_is_asked_for_when_it_is_set_up(copy: Path) -> None:
    listed = f"# a comment\nno-such-machine  machine-package\n\n{copy.parent}/mini*  launcher-package\n"
    (copy.parent / "tools" / "minigts" / "providers" / "vagrant" / "system-packages").write_text(listed)
    assert "machine-package" not in launch(copy, "up").stderr
    said = launch(copy, "setup", "vagrant").stderr
    assert "no-such-package" in said
    assert "machine-package" in said
    assert "launcher-package" not in said
    assert "machine-package" not in launch(copy, "setup", "uml").stderr


ASKING_NOTHING = (
    *(
        "plan",
        "doctor",
        "report",
        "down",
        "run x.yaml --dry-run",
        "setup uml --key",
        "image path",
        "image",
        "kernel path",
        "kernel remove",
    ),
    *("", "--help", "-h", "up --help", "up x.yaml -h", "run -h", "-v run --help", "test --help", "test -h tests"),
    *("image build -h", "setup vagrant --help", "setup", "setup nonsense", "setup ../x", "upp", "--version", "up-"),
)


@pytest.mark.parametrize("words", ASKING_NOTHING)
def test_other_verbs_and_help_ask_for_no_packages(copy: Path, words: str) -> None:
    assert launch(copy, *words.split()).stderr == ""


@pytest.mark.parametrize("words", ["test tests/unit --help", "test -- -h"])
def test_what_a_verb_hands_on_is_no_call_for_help(copy: Path, words: str) -> None:
    assert "no-such-package" in launch(copy, *words.split()).stderr


def test_a_path_that_python_cannot_search_is_refused(tmp_path: Path) -> None:
    parts(tmp_path / "a:b")
    done = launch(tmp_path / "a:b" / "minigts", "plan")
    assert done.returncode == 3
    assert "colon" in done.stderr


def test_an_unfit_python_is_refused_with_exit_code_3(copy: Path, tmp_path: Path) -> None:
    done = launch(copy, "plan", MINIGTS_PYTHON="false")
    assert done.returncode == 3
    assert "3.11" in done.stderr


def test_the_environment_of_the_shared_cache_serves_all_and_nothing_is_made(
    copy: Path, cache_of_copies: Path, cache: Path
) -> None:
    places = {"MINIGTS_CACHE": str(cache), "MINIGTS_SHARED_CACHE": str(cache_of_copies)}
    done = launch(copy, "plan", **places)
    assert (done.returncode, done.stderr) == (7, "")
    assert not cache.exists()


@pytest.mark.parametrize("verb", ["up", "run", "setup uml", "test --minigts x.yaml"])
def test_no_package_is_asked_for_where_all_is_built(copy: Path, verb: str) -> None:
    build = copy.parent / "tools" / "minigts" / "providers" / "uml" / "build"
    build.mkdir()
    (build / "build_all.py").write_text("def uncompiled_products():\n    return ()\n")
    (build / "image.py").write_text("def present():\n    return 'there'\n")
    assert launch(copy, *verb.split()).stderr == ""
    assert "no-such-package" in launch(copy, "kernel", "build", "mine").stderr
    (build / "image.py").write_text("def present():\n    return None\n")
    assert "no-such-package" in launch(copy, *verb.split()).stderr


def test_setting_up_for_all_fills_the_shared_cache(bare: Path, cache: Path) -> None:
    """Readable for all, whatever the umask."""
    shared = cache.with_name("a cache for all")
    shared.mkdir(mode=0o755)
    done = subprocess.run(
        ["bash", "-c", 'umask 077; exec "$@"', "bash", bare, "setup", "uml", "--shared"],
        env={**os.environ, "MINIGTS_APT": "no", "MINIGTS_CACHE": str(cache), "MINIGTS_SHARED_CACHE": str(shared)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == shared
    assert (Path(done.stdout.strip()) / "made").stat().st_mode & 0o044 == 0o044
    assert not cache.exists()


def test_a_shared_cache_that_cannot_be_written_is_named(bare: Path) -> None:
    done = launch(bare, "setup", "uml", "--shared", MINIGTS_SHARED_CACHE="/proc/no/such/place")
    assert done.returncode == 3
    assert "cannot write to /proc/no/such/place; run this as root, or name a directory of yours" in done.stderr


def test_a_cache_that_cannot_be_written_is_named(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = launch(copy, "plan", MINIGTS_CACHE="", XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 3
    assert "XDG_CACHE_HOME" in done.stderr


def make_bare(place: Path) -> Path:
    """A launcher whose locks list nothing: its environments are made in seconds. There are spaces in its path."""
    package = parts(place / "a bare project")
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (place / "a bare project" / lock).write_text(f"# {lock}\n")
    (package / "__main__.py").write_text("import sys\nprint(sys.prefix)\n")
    return place / "a bare project" / "minigts"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_bare(tmp_path)


@dataclass(frozen=True)
class FirstStarts:
    """Four at once, and the cache that they have made their environment in. It is that of every bare launcher, for an
    environment is named for its lock; a test leaves there what it has found."""

    cache: Path
    said: list[subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def first_starts(tmp_path_factory: pytest.TempPathFactory) -> FirstStarts:
    place = tmp_path_factory.mktemp("first")
    launcher, cache = make_bare(place), place / "a new cache"
    with ThreadPoolExecutor() as pool:
        return FirstStarts(
            cache, list(pool.map(lambda _: launch(launcher, "plan", MINIGTS_CACHE=str(cache)), range(4)))
        )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where nothing is yet."""
    return tmp_path / "a new cache"


HELP = ("", "-h", "--help", "up --help", "up x.yaml -h", "-v run --help", "test --help", "test -h", "image", "image -h")


@pytest.mark.parametrize("words", HELP)
def test_help_comes_without_an_environment_and_makes_none(bare: Path, cache: Path, words: str) -> None:
    done = launch(bare, *words.split(), MINIGTS_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: minigts ")
    assert done.stderr == ""
    assert not cache.exists()


@pytest.mark.parametrize(
    ("words", "named"), [("upp", "did you mean 'up'"), ("--versions", "--version"), ("image x", "x")]
)
def test_a_verb_that_is_none_is_refused_and_nothing_made(bare: Path, cache: Path, words: str, named: str) -> None:
    done = launch(bare, *words.split(), MINIGTS_CACHE=str(cache))
    assert done.returncode == 2
    assert named in done.stderr
    assert not cache.exists()


def test_the_version_comes_without_an_environment_and_makes_none(bare: Path, cache: Path) -> None:
    done = launch(bare, "--version", MINIGTS_CACHE=str(cache))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"minigts {minigts.__version__}\n", "")
    assert not cache.exists()


def test_a_benchs_help_makes_no_environment(bare: Path, cache: Path) -> None:
    done = launch(bare, "--help", MINIGTS_CACHE=str(cache), MINIGTS_MODULE="bench.idle")
    assert done.returncode == 3
    assert "minigts doctor" in done.stderr
    assert not cache.exists()


def test_verbs_read_from_the_source_are_those_of_the_program() -> None:
    def read(verb: help_from_source.SourceVerb) -> dict[str, Any]:
        return {name: read(each) for name, each in verb.verbs.items()}

    def real(command: Any) -> dict[str, Any]:
        below = getattr(command, "commands", {})
        return {name: real(each) for name, each in below.items() if not each.hidden}

    source, program = help_from_source.verbs(), typer.main.get_command(app)
    assert read(source) == real(program)
    assert [*source.verbs] == [name for name, each in program.commands.items() if not each.hidden]  # type: ignore[attr-defined]
    for name, verb in source.verbs.items():
        command = program.commands[name]  # type: ignore[attr-defined]
        assert verb.about.splitlines()[0] == (command.help or "").splitlines()[0]
        assert verb.verbs or verb.greedy == (
            not command.make_context(name, [], resilient_parsing=True).allow_interspersed_args
        )
    options = {word for each in program.params for word in each.opts}
    assert options == {*help_from_source.ROOT_OPTIONS}


def test_first_starts_at_once_make_one_environment(first_starts: FirstStarts) -> None:
    said = first_starts.said
    assert [done.returncode for done in said] == [0] * 4
    assert len({done.stdout for done in said}) == 1
    assert "".join(done.stderr for done in said).count("making a virtual environment") == 1


@pytest.mark.nightly
def test_a_set_up_killed_again_and_again_is_done_in_the_end(bare: Path, cache: Path) -> None:
    environment = {**os.environ, "MINIGTS_CACHE": str(cache)}
    for moment_s in (0.1, 0.4, 0.8, 1.5):
        with subprocess.Popen([bare, "plan"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
            time.sleep(moment_s)
            first.kill()
    done = launch(bare, "plan", MINIGTS_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip()) / "made").exists()


@pytest.mark.nightly
def test_an_interrupted_set_up_is_done_again_from_nothing(bare: Path, first_starts: FirstStarts) -> None:
    cache = first_starts.cache
    environment = Path(launch(bare, "plan", MINIGTS_CACHE=str(cache)).stdout.strip())
    (environment / "made").unlink()
    (environment / "half-written").touch()
    done = launch(bare, "plan", MINIGTS_CACHE=str(cache))
    assert (done.returncode, done.stdout.strip()) == (0, str(environment))
    assert not (environment / "half-written").exists()


@pytest.mark.nightly
def test_tests_have_an_environment_of_their_own_which_serves_where_it_is_the_only_one(
    bare: Path, first_starts: FirstStarts
) -> None:
    """That of users is left alone: others may run from it."""
    cache = first_starts.cache
    users = Path(launch(bare, "plan", MINIGTS_CACHE=str(cache)).stdout.strip())
    before = sorted(users.rglob("*"))
    assert launch(bare, "test", "--help", MINIGTS_CACHE=str(cache)).stdout.strip() == str(users)
    for own in (("--minigts", "my.yaml"), ("--minigts=my.yaml", "test_my.py")):
        assert launch(bare, "test", *own, MINIGTS_CACHE=str(cache)).stdout.strip() == str(users)
    assert [path for path in cache.iterdir() if path.is_dir()] == [users]
    developers = Path(launch(bare, "test", MINIGTS_CACHE=str(cache)).stdout.strip())
    try:
        assert developers != users
        assert sorted(users.rglob("*")) == before
        assert launch(bare, "plan", MINIGTS_CACHE=str(cache)).stdout.strip() == str(users)
        aside = users.rename(cache.parent / "aside")
        alone = launch(bare, "plan", MINIGTS_CACHE=str(cache))
        aside.rename(users)
        assert (alone.stdout.strip(), alone.stderr) == (str(developers), "")
    finally:
        shutil.rmtree(developers)


@pytest.mark.nightly
def test_a_list_of_packages_may_be_chosen(bare: Path, first_starts: FirstStarts) -> None:
    """As docs/site/build does; no other environment serves for it."""
    shutil.copy(bare.parent / "requirements.lock", bare.parent / "other.lock")
    with (bare.parent / "other.lock").open("a") as lock:
        lock.write("# another\n")
    cache = first_starts.cache
    users = launch(bare, "plan", MINIGTS_CACHE=str(cache)).stdout.strip()
    others = launch(bare, MINIGTS_CACHE=str(cache), MINIGTS_LOCK="other.lock", MINIGTS_MODULE="minigts").stdout.strip()
    assert others not in (users, "")
    shutil.rmtree(others)


def test_that_environment_has_all_that_users_have() -> None:
    users, developers = (
        set(re.findall(r"^[\w.-]+==\S+", (PROJECT / lock).read_text(), re.MULTILINE))
        for lock in ("requirements.lock", "requirements-dev.lock")
    )
    assert users
    assert users <= developers


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
@pytest.mark.parametrize("size", ["4k", "12m"])
@pytest.mark.nightly
def test_a_full_disk_is_said_and_nothing_half_made_is_used(bare: Path, tmp_path: Path, size: str) -> None:
    (tmp_path / "full").mkdir()
    script = f'mount -t tmpfs -o size={size} none "$1" && "$2" plan; code=$?; ls "$1"/venv-*/made; exit $code'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", tmp_path / "full", bare],
        env={**os.environ, "MINIGTS_CACHE": str(tmp_path / "full"), "MINIGTS_APT": "no", "PYTHONPYCACHEPREFIX": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "is full" in done.stderr
    assert done.stdout == ""


def test_a_second_start_costs_little(copy: Path) -> None:
    """Of processor time, which a busy machine takes no more of."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        launch(copy, "plan")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.5


def test_signals_reach_the_program(copy: Path) -> None:
    main = copy.parent / "tools" / "minigts" / "__main__.py"
    main.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen([copy, "plan"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(timeout=60) == -15
