"""The names that a topology's `overlay:` may have, read in a moment: a shell asks for them at every press of a key.

Of an overlay's file `overlay.yaml` this reads nothing but the names of its variants, each of which stands on a line of
its own. What the file says otherwise is read, and checked, by `overlays.catalogue`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from minigts import paths
from minigts.topology.frames import Family

FILE = "overlay.yaml"
UNDERLAY = "none"
SUFFIX = "-v6"
"""The suffix of overlays that use IPv6."""
UNDERLAYS = (UNDERLAY, UNDERLAY + SUFFIX)
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


def needs_ipv6(overlay: str) -> bool:
    """Whether that overlay can only be laid over a lab with IPv6."""
    return overlay.endswith(SUFFIX)


def why_unknown(overlay: str, known: Collection[str]) -> str | None:
    """Why there is no overlay such as `swarm-v6`: swarm exists, but uses IPv4 alone. None for other names."""
    plain = overlay.removesuffix(SUFFIX)
    if overlay in known or plain == overlay or plain not in known:
        return None
    able = ", ".join(sorted(name for name in known if needs_ipv6(name)))
    why = "its hosts and programs know each other by IPv4 addresses"
    return f"overlay {plain} uses IPv4 alone, since {why}; overlays over IPv6 are {able}"


def why_unfit(overlay: str, families: Collection[Family], lab: str) -> str | None:
    """Why an overlay cannot be laid over a lab with addresses of these versions of IP, which the sentence calls `lab`;
    None where it can, and for unknown names."""
    if needs_ipv6(overlay):
        why = f"overlay {overlay!r} uses IPv6, and {lab} has none: write `ipv6: true` there"
        return None if "ipv6" in families else why
    if "ipv4" in families or overlay == UNDERLAY or overlay not in (known := known_names()):
        return None
    able = ", ".join(sorted(name for name in known if name == UNDERLAY or needs_ipv6(name)))
    return f"overlay {overlay} uses IPv4; overlays that do without are {able}, and {lab} has no IPv4 addresses"
