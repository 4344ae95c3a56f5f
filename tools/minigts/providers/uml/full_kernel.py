"""The full kernel: what Debian's own lacks, and time that hosts share. Compiled once, by provision/kernel.

Debian's comes with the image and is what hosts run in real time until somebody builds this one; from then on every lab
that is brought up has it. Virtual time needs it. Its name is a hash of the recipe alone, so a change of the image
leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts.product import Product


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
        """Of the Debian package with the source."""
        return (self.directory / "version").read_text().strip()


def product() -> Product:
    """How it is built: the compiler, the kernel's source and its objects take the room."""
    return Product(
        name="full kernel",
        folder=paths.project_root() / "provision" / "kernel",
        store=paths.cache_root() / "kernels",
        duration="five to ten minutes on two processors",
        work_mb=3500,
        step="  CC ",
        steps=1300,
    )


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
