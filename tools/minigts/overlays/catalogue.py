"""Which overlays there are: the folders under provision/overlays, their variants, and where their programs come from.

A folder may have, beside its scripts,

- variants    a word a line; the overlay `flannel` with the variant `udp` is known as `flannel-udp`, and plain `flannel`
              means the first line
- engines     on which hosts it runs, a word a line: `docker`, those with a container engine, which is meant without the
              file; `namespace`, those that are namespaces themselves (see namespace.sh)
- build/      makes programs that no package holds: see programs.py
- given       names of programs, a line each, that only the user can bring: see given.py
- upon        the name of another folder, whose scripts and programs this one's scripts use
- policy      says how the overlay enforces rules between containers: see policy.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minigts import given, paths, programs
from minigts.errors import InputError


@dataclass(frozen=True)
class Overlay:
    """A folder of scripts and the variant they are run for; the variant is empty where the folder lists none."""

    name: str
    folder: Path
    variant: str

    @property
    def engines(self) -> tuple[str, ...]:
        """What a host must have, one of them; see `Provider.engine`."""
        listed = self.folder / "engines"
        return tuple(listed.read_text().split()) if listed.exists() else ("docker",)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its own folder, and the one that its scripts use."""
        upon = self.folder / "upon"
        return (self.folder, scripts() / upon.read_text().strip()) if upon.exists() else (self.folder,)

    def programs(self, progress: Callable[[str], None]) -> Path | None:
        """A directory with what its hosts need beyond their image, made or taken now; None when that is nothing.

        Its name says what it holds. Raises EnvironmentLacks, MinigtsError.
        """
        for folder in self.folders:
            if (folder / "build").is_dir():
                return programs.ensure(folder / "build", progress)
            if (folder / "given").exists():
                return given.take(folder.name, (folder / "given").read_text().split(), progress)
        return None


def scripts() -> Path:
    return paths.project_root() / "provision" / "overlays"


def known() -> tuple[str, ...]:
    """Names of the overlays there are, with their variants, in alphabetical order."""
    return tuple(sorted(_all()))


def find(name: str) -> Overlay:
    """Raises InputError, which says which there are."""
    found = _all().get(name)
    if found is None:
        raise InputError(f"no overlay {name!r}; overlays are {', '.join(known())}")
    return found


def _all() -> dict[str, Overlay]:
    found: list[Overlay] = []
    for folder in (path.parent for path in scripts().glob("*/join.sh")):
        listed = folder / "variants"
        first, *others = listed.read_text().split() if listed.exists() else [""]
        found.append(Overlay(folder.name, folder, first))
        found += [Overlay(f"{folder.name}-{variant}", folder, variant) for variant in others]
    return {overlay.name: overlay for overlay in found}
