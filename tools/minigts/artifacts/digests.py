"""The digests that the built parts are expected to have, from provision/digests, and whether they have them.

They are those of builds with the packages of the recipes' locks. A part with just these bytes is proven: figures of one
such machine are those of another. A part with other bytes, or of another recipe, is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.artifacts import checksums
from minigts.artifacts.checksums import Entry

PARTS = {"images": "image", "kernels": "kernel", "clocks": "clock"}
"""The parts that digests are expected of, by their directories in the cache."""
_PLACES = {**PARTS, "named-kernels": "kernel"}
"""Further directories with such parts: a kernel by name is held against the standard one."""
UNLOCKED = "unlocked"
"""The file of a part that was not built with the packages of its lock; it says why, a line for each lock."""
_REASON_BYTES = 100_000


@dataclass(frozen=True)
class Proof:
    """What came of comparing a part with the digests."""

    differing: tuple[str, ...] = ()
    """The part's files with other bytes than expected, and those that only one side has; sorted."""
    reason: str = ""
    """Why the part was not built with the packages of its lock; empty where it was, or where that is not known."""

    @property
    def proven(self) -> bool:
        return not self.differing

    def __str__(self) -> str:
        """`proven`, or `unproven: other bytes in linux, version`."""
        if self.proven:
            return "proven"
        shown = ", ".join(self.differing[:3]) + (f" and {len(self.differing) - 3} more" if self.differing[3:] else "")
        return f"unproven: other bytes in {shown}{f'; {self.reason}' if self.reason else ''}"


def file() -> Path:
    """The file with the digests: a line `SHA-256  PART/FILE` each, as sha256sum(1) writes and checks them."""
    return paths.project_root() / "provision" / "digests"


def expected_digests() -> Mapping[str, str]:
    """The digests by `PART/FILE`, such as `kernel/linux`."""
    lines = file().read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def proof(directory: Path) -> Proof | None:
    """Whether the part in this directory of the cache, or a folder of a part such as an image's `boot`, has the
    expected digests; None for what no digests are expected of."""
    place = _place(directory)
    if place is None:
        return None
    kept = directory / UNLOCKED
    reason = paths.read_whole(kept, _REASON_BYTES).decode() if kept.is_file() else ""
    return compare(place, checksums.entries(directory), expected_digests(), "; ".join(reason.splitlines()))


def compare(place: str, entries: Iterable[Entry], wanted: Mapping[str, str], reason: str = "") -> Proof:
    """Compare the entries of a part's directory, or of a folder of it, with the digests; `place` is its name in them,
    such as `kernel` or `image/boot`. Pure."""
    there = {each.name: each.sha256 for each in entries}
    due = {name.removeprefix(f"{place}/"): digest for name, digest in wanted.items() if name.startswith(f"{place}/")}
    differing = sorted(name for name in there.keys() | due.keys() if there.get(name) != due.get(name))
    return Proof(tuple(differing), reason)


def _place(directory: Path) -> str | None:
    """`image/boot` for the directory `<cache root>/images/KEY/boot`; None for a directory that is of no part."""
    roots = (paths.cache_root(), paths.shared_cache())
    root = next((each for each in roots if each is not None and directory.is_relative_to(each)), None)
    if root is None:
        return None
    store, *words = directory.relative_to(root).parts or ("",)
    return str(PurePosixPath(_PLACES[store], *words[1:])) if store in _PLACES and words else None
