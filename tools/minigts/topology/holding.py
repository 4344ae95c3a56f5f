"""Check that images and volumes of containers lie where a topology may take files from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from minigts.language.problems import Finding, Location, shown
from minigts.language.tree import Tree
from minigts.topology.containers import ContainerSpec, is_file, is_path
from minigts.topology.draft import Draft, DraftHost
from minigts.topology.taking import Beside, CannotBeTaken


def strays(
    tree: Tree, drafted: Draft, composed: Mapping[str, Sequence[ContainerSpec]], beside: Beside | None
) -> Iterator[Finding]:
    """Findings for paths of containers that lead elsewhere. `drafted` has the topology's own containers, `composed`
    those of Compose files. With `beside` None, or without contents, nothing is checked."""
    if beside is None or not beside.contents:
        return
    for host in drafted.hosts:
        where = _place(tree, host, "containers")
        for number, spec in enumerate(host.containers):
            for below, source in _paths(spec):
                yield from _stray(beside, (*where, number, *below), source, "")
        for spec in composed.get(host.name, ()):
            for _, source in _paths(spec):
                yield from _stray(beside, _place(tree, host, "compose"), source, f"service {shown(spec.name)}: ")


def _paths(spec: ContainerSpec) -> Iterator[tuple[Location, str]]:
    """The container's paths on this machine, each with its place in the container's settings."""
    if is_file(spec.image):
        yield ("image",), spec.image
    for number, (source, _, _) in enumerate(spec.volumes):
        if is_path(source):
            yield ("volumes", number), source


def _stray(beside: Beside, where: Location, source: str, of: str) -> Iterator[Finding]:
    try:
        beside.require(source)
    except CannotBeTaken as problem:
        yield where, f"{of}{shown(source)} {problem}"


def _place(tree: Tree, host: DraftHost, key: str) -> Location:
    """The place from which the host has that key: its own settings, or the defaults."""
    own = host.where if host.where[0] == "hosts" else (host.where[0], "host")
    return next((place for where in (own, ("defaults", "host")) if (place := (*where, key)) in tree.lines), own)
