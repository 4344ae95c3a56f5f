"""An ordinary desktop's libvirt, as far as it can be had here: its daemons are root's, its socket is open to a group,
its consoles are written by root; and whoever uses it is a plain user of that group, with files of their own.

The daemons are minigts' own, in namespaces without a way out. The user's commands run in these too, where the bridge is
in sight and libvirt answers at qemu:///system, with no right but a user's. What needs quoting is in the names of their
directories.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from live.conftest import quiet, state_directory
from live.other_user import free_id, give, link
from live.program import PROJECT
from minigts.providers.agent import lab_processes
from minigts.providers.uml.build import image
from minigts.providers.vagrant import box, prerequisites, private_libvirt

USER = "student"
PATH = "/usr/local/bin:/usr/bin:/bin"
LIMIT_S = 600.0
PARTS = ("tools", "provision", "topologies", "experiments", "tests")
FILES = ("minigts", "Vagrantfile", "pyproject.toml", "requirements.lock", "requirements-dev.lock")


@dataclass(frozen=True)
class Desktop:
    """A user of that libvirt. `home` and `project`, a copy of this checkout, are theirs."""

    keeper: int
    user: int
    group: int
    """Of those who may use libvirt; the user's own has the user's number."""
    home: Path
    project: Path

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "minigts"

    def run(
        self, *argv: str, member: bool = True, limit_s: float = LIMIT_S, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the user in the project's directory, to its end, whatever its exit code."""
        groups = f"--groups={self.group}" if member else "--clear-groups"
        rights = ("setpriv", f"--reuid={self.user}", f"--regid={self.user}", groups, "--no-new-privs")
        settings = {"HOME": str(self.home), "USER": USER, "LOGNAME": USER, "PATH": PATH}
        settings |= {"LANG": "C.UTF-8", "MINIGTS_APT": "no", "PYTHONDONTWRITEBYTECODE": "1", **environ}
        words = [f"{name}={value}" for name, value in settings.items()]
        command = (*rights, "env", "-i", "-C", str(self.project), *words, *argv)
        return self.as_root(*command, limit_s=limit_s)

    def succeeds(self, *argv: str, limit_s: float = LIMIT_S, **environ: str) -> str:
        """Run it, demand exit code 0, and return what it said on stdout."""
        done = self.run(*argv, limit_s=limit_s, **environ)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout[-6000:]}{done.stderr[-6000:]}"
        return done.stdout

    def as_root(self, *argv: str, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        """Run a command as root where the daemons are."""
        inside = ("nsenter", "--target", str(self.keeper), "--mount", "--net", "--pid", "--")
        return subprocess.run(
            [*inside, *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )

    def virsh(self, *argv: str) -> list[str]:
        """What libvirt says to root, without its headings."""
        done = self.as_root("virsh", "-c", "qemu:///system", *argv)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if line.strip()]


def lacks() -> str:
    """Why there cannot be one here; empty when there can."""
    if os.geteuid() != 0:
        return "only root can be a libvirt's root and another user"
    if not (Path(sys.prefix) / "made").exists():
        return f"{sys.prefix} was not made by ./minigts, and cannot be handed on"
    return "; ".join(private_libvirt.missing())


@contextmanager
def desktop() -> Iterator[Desktop]:
    """One with nothing in it. When it ends, so do its machines."""
    prerequisites.prepare(quiet)
    place, user = Path(tempfile.mkdtemp(prefix="minigts-desktop-")), free_id()
    group = user + 1000
    place.chmod(0o755)
    home = place / "it's, a home"
    project = home / "my lab's checkout"
    try:
        _hand_on(home / ".cache" / "minigts")
        _copy_checkout(project)
        give(home, user)
        with state_directory(place / "root"):
            private_libvirt.start(group=str(group))
            try:
                made = Desktop(_inmost(), user, group, home, project)
                _make_known(made, place)
                yield made
            finally:
                private_libvirt.stop()
    finally:
        shutil.rmtree(place)


def _inmost() -> int:
    """A process of it that is in its process namespace too; the one that made the namespaces is not."""
    ours = Path("/proc/self/ns/pid").stat().st_ino
    return next(
        pid
        for pid in lab_processes.marked_pids(private_libvirt.directory())
        if Path(f"/proc/{pid}/ns/pid").stat().st_ino != ours
    )


def _hand_on(cache: Path) -> None:
    """Root's cache to the user: the packages of Python, the image, and the box with its keys."""
    made = box.present()
    assert made is not None
    packages = Path(sys.prefix)
    link(packages, cache / packages.name)
    if (picture := image.present()) is not None:
        link(picture.directory, cache / "images" / picture.directory.name)
    link(made.directory, cache / "boxes" / made.directory.name)
    shutil.copytree(box.keys_folder(), cache / "ssh")
    moved = cache / "boxes" / made.directory.name / "catalogue.json"
    catalogue = json.loads(moved.read_text())
    moved.unlink()  # it is the other one's, too
    catalogue["versions"][0]["providers"][0]["url"] = moved.with_name("minigts.box").as_uri()
    moved.write_text(json.dumps(catalogue))


def _copy_checkout(project: Path) -> None:
    for part in PARTS:
        shutil.copytree(PROJECT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy2(PROJECT / name, project / name)


def _make_known(made: Desktop, place: Path) -> None:
    """Where the daemons are the user has a name and a home, which SSH asks for; this machine's own files stay as they
    are."""
    for name, line in (
        ("passwd", f"{USER}:x:{made.user}:{made.user}::{made.home}:/bin/bash"),
        ("group", f"{USER}:x:{made.user}:"),
    ):
        copy = place / name
        copy.write_text(f"{Path('/etc', name).read_text().rstrip()}\n{line}\n")
        copy.chmod(0o644)
        done = made.as_root("mount", "--bind", str(copy), f"/etc/{name}")
        assert done.returncode == 0, done.stderr
