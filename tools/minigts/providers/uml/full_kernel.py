"""The full kernel: what Debian's own lacks, and time that hosts share. Compiled once, by provision/kernel.

Debian's comes with the image and is what hosts run in real time until somebody builds this one; from then on every lab
that is brought up has it. Virtual time needs it. Its name is a hash of the recipe alone, so a change of the image
leaves it as it is, and so does a line more among the sources that the recipe was proven on, or in its README.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts import sources
from minigts.artifacts.product import Product

NOT_COMPILED = {sources.TABLE, "README.md"}
"""Files of the recipe's folder that no kernel differs by."""


@dataclass(frozen=True)
class FullKernel:
    """A directory with `linux`, which needs no library, `modules/` for /usr/lib/modules, and `version`."""

    directory: Path

    @property
    def modules(self) -> Path:
        """One directory, named for the kernel's release: with it modprobe knows what is built in."""
        return next((self.directory / "modules").iterdir())

    @property
    def version(self) -> str:
        """Of the Debian package with the source: `7.2.13-1`; or `7.4.2-1 (unproven)`."""
        return (self.directory / "version").read_text().strip()

    @property
    def proven(self) -> bool:
        return not self.version.endswith(sources.UNPROVEN)


def product() -> Product:
    """How it is built: the compiler, the kernel's source and its objects take the room."""
    folder = recipe()
    return Product(
        name="full kernel",
        folder=folder,
        store=paths.cache_root() / "kernels",
        duration="five to ten minutes on two processors",
        work_mb=3500,
        step="  CC ",
        steps=1300,
        parts=tuple(sorted(path.name for path in folder.iterdir() if path.name not in NOT_COMPILED)),
    )


def recipe() -> Path:
    return paths.project_root() / "provision" / "kernel"


def present() -> FullKernel | None:
    """The kernel of this recipe, if it has been built."""
    directory = product().present()
    return None if directory is None else FullKernel(directory)


def ensure(progress: Callable[[str], None]) -> FullKernel:
    """The kernel of this recipe, built now if it must be. Raises EnvironmentLacks."""
    return FullKernel(product().ensure(progress))


def remove() -> None:
    """Remove the kernel of this recipe, if it is there."""
    product().remove()
