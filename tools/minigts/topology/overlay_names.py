"""The names that a topology's `overlay:` may have, read in a moment: a shell asks for them at every press of a key.

Of an overlay's file `overlay.yaml` this reads nothing but the names of its variants, each of which stands on a line of
its own. What the file says otherwise is read, and checked, by `overlays.catalogue`.
"""

from __future__ import annotations

import re
from pathlib import Path

from minigts import paths

FILE = "overlay.yaml"
UNDERLAY = "none"
UNDERLAYS = (UNDERLAY, "none-v6")
"""The names that stand for plain hosts, by their IPv4 addresses and by their IPv6 addresses."""
_VARIANTS = re.compile(r"^variants:[^\S\n]*(?:#.*)?\n((?:[ #].*\n|\n)+)", re.MULTILINE)
_VARIANT = re.compile(r"^ +([a-z][a-z0-9-]*): *(?:[{#]|$)", re.MULTILINE)


def folder() -> Path:
    """Where each overlay has its folder."""
    return paths.project_root() / "provision" / "overlays"


def known_names() -> tuple[str, ...]:
    """Of all overlays there are, with their variants, in alphabetical order."""
    return tuple(
        sorted(name for file in folder().glob(f"*/{FILE}") for name in names(file.parent.name, variants(file)))
    )


def names(overlay: str, of_variants: tuple[str, ...]) -> tuple[str, ...]:
    """Of one folder's overlays: the first variant is known by the folder's name, another, udp, as `flannel-udp`."""
    return (overlay, *(f"{overlay}-{variant}" for variant in of_variants[1:]))


def variants(file: Path) -> tuple[str, ...]:
    """Those that stand there, a line each; none where there is but one overlay."""
    written = _VARIANTS.search(file.read_text(encoding="utf-8"))
    return tuple(_VARIANT.findall(_outermost(written[1]))) if written else ()


def _outermost(block: str) -> str:
    """The lines of a block of YAML that are indented least."""
    lines = [line for line in block.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return "\n".join(line for line in lines if len(line) - len(line.lstrip()) == least)
