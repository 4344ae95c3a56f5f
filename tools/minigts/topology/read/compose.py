"""Read the hosts' Compose files, and add their services to the containers that a topology declares itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from minigts.errors import InputError, Problem
from minigts.language.problems import Finding, Location, quote
from minigts.language.source import Language
from minigts.language.tree import Tree, read_tree
from minigts.topology.containers import ContainerSpec
from minigts.topology.read import compose_file
from minigts.topology.read.declared import Draft, DraftHost
from minigts.topology.software import Software
from minigts.topology.user_files import FileRefused, UserFiles

_VARIABLES = Language("file of variables", "NAME=VALUE", 256_000, "")


@dataclass(frozen=True)
class Composing:
    """The containers of Compose files by host. `findings` are of the topology, `problems` of the Compose files."""

    containers: Mapping[str, tuple[ContainerSpec, ...]]
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    def compose(self, drafted: Draft) -> Draft:
        """The draft with these containers after each host's own."""
        if not self.containers:
            return drafted
        hosts = (
            replace(host, containers=(*host.containers, *self.containers.get(host.name, ()))) for host in drafted.hosts
        )
        return replace(drafted, hosts=tuple(hosts))


def compose(
    tree: Tree, drafted: Draft, software: Mapping[str, Software], file: str, beside: UserFiles | None
) -> Composing:
    """Read the Compose files of a document's hosts, with the variables in `software`. Without `beside` none is read."""
    containers: dict[str, tuple[ContainerSpec, ...]] = {}
    findings: list[Finding] = []
    problems: dict[Problem, None] = {}
    notes: dict[str, None] = {}
    for host in drafted.hosts:
        if host.spec.compose is None or beside is None:
            continue
        takers = _takers(drafted, host.spec.compose.file)
        name = str(Path(file).parent / host.spec.compose.file)
        try:
            document = _document(beside, host.spec.compose.file, name)
            variables = {each.name: each.value for each in software.get(host.name, Software()).environment}
            found = compose_file.read(document, _host(host, takers, variables, beside))
            problems |= dict.fromkeys(document.problems)
            problems |= dict.fromkeys(document.problem(name, each) for each in found.findings)
            notes |= dict.fromkeys(f"{name}:{document.line((key,))}: {key}: {said}" for key, said in found.notes)
            containers[host.name] = found.services
            findings.extend(_unused(tree, host, found.images))
        except FileRefused as problem:
            findings.append((_place(tree, host), f"{quote(host.spec.compose.file)} {problem}"))
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
    return Composing(containers, tuple(findings), tuple(problems), tuple(notes))


def _document(beside: UserFiles, source: str, name: str) -> Tree:
    """Raises FileRefused, InputError."""
    return read_tree(beside.text(source, compose_file.LANGUAGE), name, compose_file.LANGUAGE)


def _takers(drafted: Draft, file: str) -> tuple[str, ...]:
    return tuple(
        host.name for host in drafted.hosts if host.spec.compose is not None and host.spec.compose.file == file
    )


def _host(
    host: DraftHost, takers: tuple[str, ...], variables: Mapping[str, str], beside: UserFiles
) -> compose_file.ComposeHost:
    assert host.spec.compose is not None  # that is why it is read
    folder = str(PurePosixPath(host.spec.compose.file).parent)

    def text_of(path: str) -> str:
        """Read a file of variables. They go into the plan, so the file must lie in the topology's directory."""
        try:
            return beside.text(str(PurePosixPath(folder, path)), _VARIABLES)
        except FileRefused as problem:
            raise ValueError(f"{quote(path)} {problem}") from None
        except InputError as error:
            raise ValueError(f"{quote(path)}: {error.problems[0].message}") from None

    return compose_file.ComposeHost(host.name, takers, variables, host.spec.compose.images, folder, text_of)


def _place(tree: Tree, host: DraftHost) -> Location:
    own = host.where if host.where[0] == "hosts" else (host.where[0], "host")
    return next((place for where in (own, ("defaults", "host")) if (place := (*where, "compose")) in tree.lines), own)


def _unused(tree: Tree, host: DraftHost, used: frozenset[str]) -> Iterator[Finding]:
    """Findings for sources of images that the Compose file does not name."""
    assert host.spec.compose is not None  # that is why it is read
    for name in host.spec.compose.images:
        if name not in used:
            where = (*_place(tree, host), "images", name)
            yield where, f"{quote(name)} is no image of {quote(host.spec.compose.file)}; it names {_all(used)}"


def _all(names: frozenset[str]) -> str:
    return ", ".join(quote(name) for name in sorted(names)) or "none"
