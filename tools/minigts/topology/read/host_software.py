"""What each host is to have of the user's own: from its nearest settings; files are looked at, and told by a digest.

Images and volumes of hosts' containers are looked for where a topology may take files from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from minigts.foreign import printable
from minigts.language.host_paths import checked_target
from minigts.language.problems import Finding, Location, path_of, quote
from minigts.language.tree import Data, Tree
from minigts.topology.containers import ContainerSpec, is_file, is_path
from minigts.topology.host_settings import HostSpec
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft, DraftHost
from minigts.topology.routing_engines import DEFAULT_ENGINE, ENGINES, PROTOCOLS, written_engine, written_protocol
from minigts.topology.software import (
    LONGEST_FILE_NAME,
    Command,
    File,
    FileSpec,
    Package,
    Place,
    Root,
    Software,
    Variable,
)
from minigts.topology.user_files import FileRefused, UserFiles, digest


def misplaced_paths(
    tree: Tree, drafted: Draft, composed: Mapping[str, Sequence[ContainerSpec]], beside: UserFiles | None
) -> Iterator[Finding]:
    """Findings for paths of containers that lead elsewhere. `drafted` has the topology's own containers, `composed`
    those of Compose files. With `beside` None, or without contents, nothing is checked."""
    if beside is None or not beside.contents:
        return
    for host in drafted.hosts:
        where = _place_of_key(tree, host, "containers")
        for number, spec in enumerate(host.containers):
            for below, source in _paths(spec):
                yield from _stray(beside, (*where, number, *below), source, "")
        for spec in composed.get(host.name, ()):
            for _, source in _paths(spec):
                yield from _stray(beside, _place_of_key(tree, host, "compose"), source, f"service {quote(spec.name)}: ")


def _paths(spec: ContainerSpec) -> Iterator[tuple[Location, str]]:
    """The container's paths on this machine, each with its place in the container's settings."""
    if is_file(spec.image):
        yield ("image",), spec.image
    for number, (source, _, _) in enumerate(spec.volumes):
        if is_path(source):
            yield ("volumes", number), source


def _stray(beside: UserFiles, where: Location, source: str, of: str) -> Iterator[Finding]:
    try:
        beside.require(source)
    except FileRefused as problem:
        yield where, f"{of}{quote(source)} {problem}"


def _place_of_key(tree: Tree, host: DraftHost, key: str) -> Location:
    """The place from which the host has that key: its own settings, or the defaults."""
    own = host.where if host.where[0] == "hosts" else (host.where[0], "host")
    return next((place for where in (own, ("defaults", "host")) if (place := (*where, key)) in tree.lines), own)


@dataclass(frozen=True)
class Gathered:
    """The software by host, for hosts that have any, and what is wrong with it."""

    software: Mapping[str, Software]
    findings: tuple[Finding, ...]

    def apply(self, plan: Plan) -> Plan:
        """The plan with this software on its hosts."""
        if not self.software:
            return plan
        hosts = (host.model_copy(update={"software": self.software.get(host.name)}) for host in plan.hosts)
        return plan.model_copy(update={"hosts": tuple(hosts)})


def collect_software(tree: Tree, drafted: Draft, file: str, beside: UserFiles | None) -> Gathered:
    """Gather the software of a document's hosts. With `beside` None, or without contents, no file is read.

    Each key is taken as a whole from the nearest settings that have it.
    """
    layers = _Layers(tree, file, beside if beside is not None and beside.contents else None)
    software = {host.name: layers.software_of(host) for host in drafted.hosts}
    nothing = Software()
    return Gathered({name: each for name, each in software.items() if each != nothing}, tuple(layers.findings))


class _Layers:
    """The settings of hosts by their place in the file; each is validated once."""

    def __init__(self, tree: Tree, file: str, beside: UserFiles | None) -> None:
        self._tree, self._file, self._beside = tree, file, beside
        self._specs: dict[Location, HostSpec | None] = {}
        self._files: dict[Location, tuple[File, ...]] = {}
        self.findings: list[Finding] = []

    def software_of(self, host: DraftHost) -> Software:
        own = host.where if host.where[0] == "hosts" else (host.where[0], "host")
        given = [(where, spec) for where in (own, ("defaults", "host")) if (spec := self._spec(where)) is not None]
        packages = next(((at, spec.packages) for at, spec in given if spec.packages is not None), ((), ()))
        of_engine = self._package_of_engine(host, given, packages[1])
        files = next((at for at, spec in given if spec.files is not None), None)
        environment = next((spec.environment for _, spec in given if spec.environment is not None), {})
        run = next(((at, spec.run) for at, spec in given if spec.run is not None), ((), ()))
        image = next(((at, spec.image) for at, spec in given if spec.image is not None), None)
        if image is not None and packages[1]:
            where = (*packages[0], "packages")
            self.findings.append((where, "are Debian's, and this host has its own image: install them in that image"))
        elif image is not None and of_engine:
            why = f"this host has its own image, which takes no Debian package, as {of_engine[0].name} is: write"
            self.findings.append(((*image[0], "image"), f"{why} `routing: {{engine: {DEFAULT_ENGINE}}}` for it"))
        return Software(
            root=None if image is None else self._root(*image),
            packages=(
                *(
                    Package(name=name, place=self._place((*packages[0], "packages", index)))
                    for index, name in enumerate(packages[1])
                ),
                *of_engine,
            ),
            files=() if files is None else self._files_at(files),
            environment=tuple(Variable(name=name, value=value) for name, value in environment.items()),
            run=tuple(
                Command(text=text, place=self._place((*run[0], "run", index))) for index, text in enumerate(run[1])
            ),
        )

    def _package_of_engine(
        self, host: DraftHost, given: Sequence[tuple[Location, HostSpec]], written: Sequence[str]
    ) -> tuple[Package, ...]:
        """The package of the host's routing program, where the lab has a protocol and the file does not name the
        package itself."""
        document = self._tree.data
        assert isinstance(document, dict), "a document with hosts is a mapping"
        engine = written_engine(document) or DEFAULT_ENGINE if host.spec.routing is None else host.spec.routing.engine
        package = ENGINES[engine].package
        if written_protocol(document) not in PROTOCOLS or not package:
            return ()
        if package in {name.partition("=")[0] for name in written}:
            return ()
        own = next((at for at, spec in given if spec.routing is not None), ())
        return (Package(name=package, place=self._place((*own, "routing"))),)

    def _root(self, where: Location, image: str) -> Root:
        if is_file(image):
            if self._beside is not None:
                try:
                    self._beside.require(image)
                except FileRefused as problem:
                    self.findings.append(((*where, "image"), f"{quote(image)} {problem}"))
            image = os.path.normpath(Path(self._file).absolute().parent / image)
        return Root(image=image, place=self._place((*where, "image")))

    def _spec(self, where: Location) -> HostSpec | None:
        if where not in self._specs:
            self._specs[where] = _accepted(_at(self._tree.data, where))
        return self._specs[where]

    def _files_at(self, where: Location) -> tuple[File, ...]:
        if where not in self._files:
            spec = self._spec(where)
            specs = () if spec is None else spec.files or ()
            places = ((*where, "files", index) for index in range(len(specs)))
            found = (self._file_of(each, place) for each, place in zip(specs, places, strict=True))
            self._files[where] = tuple(each for each in found if each is not None)
        return self._files[where]

    def _file_of(self, spec: FileSpec, where: Location) -> File | None:
        """The file as the plan has it; None, and a finding, where it cannot be taken."""
        source, found = Path("/", spec.source), ""
        if self._beside is not None:
            try:
                source = self._beside.place(spec.source)
                if spec.mode is not None and source.is_dir():
                    raise FileRefused("is a directory, whose files keep their modes: leave `mode` out")
                found = digest(source)
            except FileRefused as problem:
                self.findings.append(((*where, "source"), f"{quote(spec.source)} {problem}"))
                return None
        name = PurePosixPath(spec.source).name
        try:
            target = checked_target(f"{spec.target}{name}" if spec.target.endswith("/") else spec.target)
        except ValueError as problem:
            self.findings.append(((*where, "target"), str(problem)))
            return None
        return File(source=str(source), target=target, mode=spec.mode, sha256=found, place=self._place(where))

    def _place(self, where: Location) -> Place:
        return Place(file=printable(self._file)[:LONGEST_FILE_NAME], line=self._tree.line(where), path=path_of(where))


def _at(data: Data, where: Location) -> Data:
    for key in where:
        data = data.get(str(key)) if isinstance(data, dict) else None
    return data


def _accepted(data: Data) -> HostSpec | None:
    try:
        return HostSpec.model_validate(data) if data is not None else None
    except ValidationError:
        return None
