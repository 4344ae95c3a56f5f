"""The clock: the program that gives a lab's kernels their time and carries their links. It is compiled once by the
recipe provision/clock, with Debian's compiler and libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts.build import Product
from minigts.machine.progress import Progress


@dataclass(frozen=True)
class ClockBuild:
    """A directory with `clock`, a static program, and `crates.lock`, the versions of its crates."""

    directory: Path

    @property
    def program(self) -> Path:
        return self.directory / "clock"


def product() -> Product:
    """The clock as a product. The `target` directory of a developer's cargo is no part of its recipe."""
    return Product(
        name="clock of virtual time",
        folder=paths.project_root() / "provision" / "clock",
        store=paths.cache_root() / "clocks",
        duration="a minute or two",
        work_mb=1500,
        step="   Compiling ",
        steps=26,
        parts=("build.sh", "compile.sh", "../rust.sh", "packages.lock", "Cargo.toml", "Cargo.lock", "src"),
    )


def present() -> ClockBuild | None:
    """The clock of this recipe, if it has been built."""
    directory = product().present()
    return None if directory is None else ClockBuild(directory)


def ensure(progress: Progress) -> ClockBuild:
    """The clock of this recipe, built now if necessary. Raises EnvironmentLacks."""
    return ClockBuild(product().ensure(progress))


def remove() -> None:
    """Remove the clock of this recipe, if it has been built."""
    product().remove()
