"""The full kernel, with virtual time and features that Debian's lacks. The recipe provision/kernel compiles it once.

Debian's kernel comes with the image; in real time hosts run it until the full kernel is built, and every new lab runs
the full kernel from then on. Virtual time needs it. Its key is a hash of its recipe alone, without the table of sources
and the README, so a change of these or of the image does not rebuild it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from minigts import paths
from minigts.artifacts import sources
from minigts.artifacts.build import Product
from minigts.machine.progress import Progress

NOT_COMPILED = {sources.TABLE, "README.md"}
"""Files of the recipe's folder that do not change the kernel."""


@dataclass(frozen=True)
class FullKernel:
    """A directory with `linux`, a static program, `modules/` for /usr/lib/modules, and `version`."""

    directory: Path

    @property
    def modules(self) -> Path:
        """A directory named for the kernel's release, by which modprobe knows the built-in modules."""
        return next((self.directory / "modules").iterdir())

    @property
    def version(self) -> str:
        """The version of the Debian package with the source: `7.2.13-1`, or `7.4.2-1 (unproven)`."""
        return (self.directory / "version").read_text().strip()

    @property
    def proven(self) -> bool:
        return not self.version.endswith(sources.UNPROVEN)


def product() -> Product:
    """The full kernel as a product. Its compiler, source and objects need the room."""
    folder = recipe()
    return Product(
        name="full kernel",
        folder=folder,
        store=paths.cache_root() / "kernels",
        duration="five to ten minutes on two processors",
        work_mb=3500,
        step="  CC ",
        steps=1550,
        parts=tuple(sorted(path.name for path in folder.iterdir() if path.name not in NOT_COMPILED)),
    )


def recipe() -> Path:
    return paths.project_root() / "provision" / "kernel"


def present() -> FullKernel | None:
    """The kernel of this recipe, if it has been built."""
    directory = product().present()
    return None if directory is None else FullKernel(directory)


def ensure(progress: Progress) -> FullKernel:
    """The kernel of this recipe, built now if necessary. Raises EnvironmentLacks."""
    return FullKernel(product().ensure(progress))


def remove() -> None:
    """Remove the kernel of this recipe, if it has been built."""
    product().remove()
