"""Image, kernel and clock of a lab's hosts by their digests, and packages by version, for the manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from minigts import paths
from minigts.artifacts import checksums, digests, kernels, overlay_programs
from minigts.machine.progress import Progress
from minigts.providers.base import Provenance, Provider
from minigts.results.schema import PartFacts
from minigts.topology.plan.plan import Plan

LOCK = "packages.lock"
"""The file beside an image with a line `NAME VERSION` for each of its Debian packages."""
_KEY = re.compile("[0-9a-f]{16}")


def parts(provider: Provider, say: Progress, plan: Plan | None = None) -> dict[str, PartFacts]:
    """The parts of the lab that is up, or those of a new lab here, with a `plan` of a lab of that plan; empty for a
    provider without such parts."""
    if not isinstance(provider, Provenance):
        return {}
    made_of, named = provider.part_directories(), {kernels.part(name) for name in kernels.names()}
    if plan is not None:
        own = {kernels.part(each.kernel) if each.kernel else kernels.PART for each in plan.machines}
        made_of = {word: each for word, each in made_of.items() if word in own or word not in {kernels.PART, *named}}
    found = {}
    for word, directory in made_of.items():
        say(f"computing the digest of the {word}")
        found[word] = _facts(directory)
    return found


def programs(key: str) -> PartFacts | None:
    """An overlay's own programs by their key; None where there is no such key, or they are not on this machine."""
    directory = paths.cache_entry(overlay_programs.store() / key)
    return _facts(directory) if key and directory.is_dir() else None


def packages(provider: Provider) -> dict[str, str]:
    """The Debian packages of the hosts' image with their versions; empty where there is no list."""
    for directory in provider.part_directories().values() if isinstance(provider, Provenance) else ():
        if (directory / LOCK).is_file():
            return read_lock((directory / LOCK).read_text(encoding="utf-8"))
    return {}


def read_lock(text: str) -> dict[str, str]:
    """`iperf3 3.18-2` → {"iperf3": "3.18-2"}"""
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


def differences(
    there: Mapping[str, PartFacts],
    here: Mapping[str, PartFacts],
    packages_there: Mapping[str, str],
    packages_here: Mapping[str, str],
) -> tuple[str, ...]:
    """A line for each part that differs here from `there`, where a run was made; none when all are the same."""
    if not there:
        return ("it does not say which image, kernel and clock it was made with",)
    lines = [difference(word, own, here.get(word)) for word, own in there.items() if not own.is_same_as(here.get(word))]
    names = sorted(packages_there.keys() | packages_here.keys()) if packages_there and packages_here else []
    changed = [name for name in names if packages_there.get(name) != packages_here.get(name)]
    if changed:
        shown = ", ".join(
            f"{name} {packages_there.get(name, 'not there')} → {packages_here.get(name, 'not here')}"
            for name in changed
        )
        lines.append(f"{len(changed)} of {len(names)} packages have another version here: {shown}")
    return tuple(lines)


def difference(word: str, there: PartFacts, here: PartFacts | None) -> str:
    """How a part differs here, in a sentence."""
    if here is None:
        return f"its {word} is {there.key} ({there.sha256[:16]}); here none is built"
    if here.key == there.key:
        return (
            f"its {word} has the same recipe, {there.key}, and other bytes: {there.sha256[:16]} there, "
            f"{here.sha256[:16]} here"
        )
    return f"its {word} is of another recipe: {there.key} there, {here.key} here"


def _facts(directory: Path) -> PartFacts:
    proof = digests.proof(directory)
    total = checksums.total(checksums.entries(directory))
    return PartFacts(key=_key(directory), sha256=total, proven=None if proof is None else proof.proven)


def _key(directory: Path) -> str:
    """The key in the name of the directory, or of the nearest one around it."""
    named = (each.name for each in (directory, *directory.parents) if _KEY.fullmatch(each.name))
    return next(named, directory.name)[:100]
