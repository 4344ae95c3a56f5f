"""Another user of this machine, for tests that root runs: an id that nobody has, and files that they can read."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from minigts.providers.uml.build import clock_build, image, kernel_build

from .program import PROJECT, Program

Ignore = Callable[[str, list[str]], Iterable[str]]
NEEDLESS = shutil.ignore_patterns(
    *("__pycache__", "tests", "mypy*", "hypothesis*", "pip", "setuptools", "nox", "virtualenv*", "_pytest", "ruff*"),
)
"""What the program does without."""
PARTS = {"images": image, "kernels": kernel_build, "clocks": clock_build}


def free_id() -> int:
    """A user's and group's id that nobody has."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(number for number in range(61000, 65000) if number not in taken)


def python() -> Path:
    """An interpreter that they can run, of the same version as this one, so that it takes the same packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(version, path="/usr/bin:/usr/local/bin")
    for candidate in (Path(sys.executable), *([Path(found)] if found else [])):
        real = candidate.resolve()
        if all(place.stat().st_mode & 0o001 for place in (real, *real.parents)):
            return real
    import pytest  # noqa: PLC0415 - a bench that uses this module has none

    return pytest.skip(f"{sys.executable} lies where a plain user cannot go, and there is no {version} in /usr/bin")


def link(source: Path, target: Path, ignore: Ignore | None = None) -> None:
    """The same files under another name, or copies with their holes and times where links are not possible."""

    def link_file(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            argv = ["cp", "--reflink=auto", "--sparse=always", "--preserve=timestamps,mode", one, other]
            subprocess.run(argv, check=True)

    shutil.copytree(source, target, symlinks=True, copy_function=link_file, ignore=ignore)


def give(place: Path, user: int) -> None:
    """Make them the owner of a directory with all that is in it."""
    for path in (place, *place.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


@contextmanager
def made_for(user: int, places: Iterable[str] = tuple(PARTS)) -> Iterator[Program]:
    """The program for a user who is nobody else, in a directory that they can read: interpreter, packages, checkout
    and image may lie where only root can go, and are linked or copied there. Of what is built it has these `places`."""
    interpreter = python()
    home = Path(tempfile.mkdtemp(prefix="minigts-plain-"))
    for place in places:
        built = PARTS[place].ensure(lambda _: None).directory
        linked = home / "cache" / place / built.name
        link(built, linked, NEEDLESS)
        for directory in (linked, *(each for each in linked.rglob("*") if each.is_dir())):
            directory.chmod(0o755)
    for folder in ("tools", "provision", "topologies"):
        shutil.copytree(PROJECT / folder, home / "project" / folder, ignore=NEEDLESS)
    shutil.copy(PROJECT / "pyproject.toml", home / "project")
    packages = home / "packages"
    link(Path(sysconfig.get_path("purelib")), packages, NEEDLESS)
    caches = [home / "cache", *(home / "cache" / place for place in places)]
    for directory in (home, home / "state", home / "compiled", *caches):
        directory.mkdir(exist_ok=True)
        os.chown(directory, user, user)
    program = Program(
        home / "state",
        python=interpreter,
        project=home / "project",
        user=user,
        environment={
            "HOME": str(home),
            "MINIGTS_CACHE": str(home / "cache"),
            "PYTHONPATH": f"{home / 'project' / 'tools'}:{packages}",
            "PYTHONPYCACHEPREFIX": str(home / "compiled"),
        },
    )
    try:
        yield program
    finally:
        program.run("down", "--all")
        shutil.rmtree(home)
