"""The clock: the program that gives a lab's kernels their time and carries their links. Compiled once, by
provision/clock, with Debian's compiler and Debian's packages of what it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts.product import Product


@dataclass(frozen=True)
class Clock:
    """A directory with `clock`, which needs no library, and `crates.lock`, the versions that are in it."""

    directory: Path

    @property
    def program(self) -> Path:
        return self.directory / "clock"


def product() -> Product:
    """How it is built. What a developer's own cargo leaves in the folder is no part of it."""
    return Product(
        name="clock of virtual time",
        folder=paths.project_root() / "provision" / "clock",
        store=paths.cache_root() / "clocks",
        duration="a minute or two",
        work_mb=1500,
        step="   Compiling ",
        steps=26,
        parts=("build.sh", "compile.sh", "../rust.sh", "Cargo.toml", "Cargo.lock", "src"),
    )


def present() -> Clock | None:
    """The clock of this recipe, if it has been built."""
    directory = product().present()
    return None if directory is None else Clock(directory)


def ensure(progress: Callable[[str], None]) -> Clock:
    """The clock of this recipe, built now if it must be. Raises EnvironmentLacks."""
    return Clock(product().ensure(progress))


def remove() -> None:
    """Remove the clock of this recipe, if it is there."""
    product().remove()
