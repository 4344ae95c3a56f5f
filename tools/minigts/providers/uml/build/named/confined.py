"""Runs a script of the recipe in the Debian root in which named kernels are compiled (provision/named-kernel)."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts import kernels
from minigts.artifacts.build import BUILD_TIMEOUT_S, WORK_DIRECTORY, Product
from minigts.errors import CommandFailed
from minigts.machine import shell

LARGEST_BYTES = 400_000_000
TREE = "tree"


def root() -> Product:
    """The root, with the packages of the standard kernel's lock."""
    return Product(
        name="compilers of named kernels",
        folder=kernels.recipe() / "root",
        store=paths.cache_root() / "kernel-roots",
        duration="some two minutes",
        work_mb=1500,
        step="Setting up ",
        steps=125,
        parts=("build.sh", "../../kernel/packages.lock"),
    )


@dataclass(frozen=True)
class Workplace:
    """A directory for one step: what is in it is the script's /tmp. What a script has left there is a stranger's."""

    work: Path
    tree: Path
    root: Path

    def run(self, script: str, *words: str, log: Path | None = None, broken_off: threading.Event | None = None) -> int:
        """Run a script of the recipe, or one that was given, to its end; return its exit code. Its output goes to
        `log`, or is dropped. Raises BrokenOff, CommandTimeout."""
        if not (self.work / script).exists():
            self.give(script, (kernels.recipe() / script).read_bytes())
        written = log or self.work.parent / "log"
        argv = ["/bin/bash", "-c", 'exec >"$0" 2>&1; exec "$@"', str(written)]
        argv += [str(kernels.recipe() / "confined.sh"), str(self.root), str(self.work), str(self.tree)]
        try:
            shell.run_group(
                [*argv, "/bin/bash", f"/tmp/{script}", *words],
                timeout_s=BUILD_TIMEOUT_S,
                umask=shell.FOR_OTHERS,
                broken_off=broken_off,
            )
        except CommandFailed as error:
            return error.code
        return 0

    def give(self, path: str, content: bytes) -> None:
        """Write a file for a script that has not run yet."""
        target = self.work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def read(self, path: str, most_bytes: int = LARGEST_BYTES) -> bytes:
        """What a script has left in a file. Raises OSError, also where a link leads elsewhere on the way."""
        directory = os.open(self.work, os.O_PATH | os.O_DIRECTORY)
        try:
            *above, name = path.split("/")
            for each in above:
                lower = os.open(each, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
                os.close(directory)
                directory = lower
            return paths.read_whole(Path(f"/proc/self/fd/{directory}/{name}"), most_bytes)
        finally:
            os.close(directory)

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a directory that a script has left, sorted; none where it is a link."""
        place = self.work / path
        return () if place.is_symlink() or not place.is_dir() else tuple(sorted(each.name for each in place.iterdir()))


@contextmanager
def place(root_directory: Path, tree: Path) -> Iterator[Workplace]:
    """A new, empty place, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="minigts-kernel.", dir=WORK_DIRECTORY) as above:
        work = Path(above) / "work"
        for each in (work, work / "out", work / TREE):
            each.mkdir()
        try:
            yield Workplace(work, tree, root_directory)
        finally:
            paths.remove_tree(work)


def lines(content: bytes) -> Sequence[str]:
    return content.decode(errors="replace").splitlines()
