"""The user's own containers on a host, in a topology and in a plan.

An image is a file, by its path relative to the topology file; or, as in containers-transports(5), `docker-daemon:NAME`,
an image of the machine's own engine, or `docker://REGISTRY/NAME`, one of a registry.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from minigts.language.fields import Strict, choice, matching
from minigts.language.problems import Finding, Location, quote
from minigts.topology.fields import NAME, NAME_HINT, Name, unprintable

ENGINES_IMAGE, REGISTRYS_IMAGE = "docker-daemon:", "docker://"
"""The prefixes of images that are not files; see containers-transports(5)."""
LONGEST_TEXT, MOST_ENTRIES, MOST_CONTAINERS = 4000, 100, 20
MOST_TIMES = 1000
"""The most failed health checks in a row after which a container counts as unhealthy."""
Restart = Literal["no", "on-failure", "always", "unless-stopped"]

REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
"""The name of a shell's variable, and of `$NAME` in a Compose file."""
CONTAINERS_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}", re.ASCII)
"""The name of a container's variable. Some programs need names such as `discovery.type`, which no shell can set."""
CONTAINERS_VARIABLE_HINT = "write letters, digits, underscores, dots and hyphens, no digit first"
_VOLUME_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{1,62}", re.ASCII)
_PORTS = re.compile(r"([0-9]{1,5})(?::([0-9]{1,5}))?", re.ASCII)


def _words(value: object) -> str:
    """Text that can be a program's argument. Raises ValueError."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError(f"{quote(value)} is no text of at most {LONGEST_TEXT} characters")
    if (bad := unprintable(value)) is not None:
        raise ValueError(f"holds the control character U+{ord(bad):04X}")
    return value


def _image(value: object) -> str:
    text = _words(value)
    for transport in (ENGINES_IMAGE, REGISTRYS_IMAGE):
        if text.startswith(transport):
            if not REFERENCE.fullmatch(text.removeprefix(transport)):
                raise ValueError(f"{quote(text)} names no image: write it as in {transport}nginx:1.27")
            return text
    if not re.search(r"\.(tar|tar\.[a-z0-9]+|tgz)$", text):
        raise ValueError(
            f"{quote(text)} is no image: write a file, as in images/web.tar; an image of your own engine, as in "
            f"{ENGINES_IMAGE}web:1; or one of a registry, as in {REGISTRYS_IMAGE}REGISTRY/web:1"
        )
    return text


def _command(value: object) -> list[str]:
    if isinstance(value, list):
        return [_words(word) for word in value]
    try:
        words = shlex.split(_words(value))
    except ValueError as error:
        raise ValueError(f"{quote(value)} is no command: {error}") from error
    if not words:
        raise ValueError("an empty command: leave `command:` out for the image's own")
    return words


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{quote(value)} where a mapping is wanted, as in {{LEVEL: debug}}")
    for name in value:
        if not isinstance(name, str) or not CONTAINERS_VARIABLE.fullmatch(name):
            raise ValueError(f"{quote(name)} is no variable's name: {CONTAINERS_VARIABLE_HINT}")
    return {str(name): _words(text) for name, text in value.items()}


def _port(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65535:
        raise ValueError(f"{text} is no port: write a number from 1 to 65535")
    return number


def _published(value: object) -> tuple[int, int]:
    """`8080:80` → (8080, 80); `80` → (80, 80)."""
    found = _PORTS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{quote(value)} is no port: write the host's TCP port and the container's, as in 8080:80")
    return _port(found[1]), _port(found[2] or found[1])


def _volume(value: object) -> tuple[str, str, bool]:
    """`./site:/srv:ro` → ("./site", "/srv", True)."""
    text = _words(value)
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target.startswith("/") or mode not in ("", "ro", "rw") or ".." in target.split("/"):
        raise ValueError(
            f"{quote(text)} is no volume: write a file or directory here, or a name for one on the host, and its path "
            "in the container, as in ./site:/srv:ro or data:/var/lib/data"
        )
    if not is_path(source) and not _VOLUME_NAME.fullmatch(source):
        raise ValueError(f"{quote(source)} is neither a path, which begins with / or ./, nor a volume's name")
    return source, target, mode == "ro"


def is_file(image: str) -> bool:
    """Whether an image is a file on this machine, and not in an engine or a registry."""
    return not image.startswith((ENGINES_IMAGE, REGISTRYS_IMAGE))


def is_path(source: str) -> bool:
    """Whether a volume's source is a path on this machine, and not a volume's name."""
    return source.startswith(("/", "./", "../"))


_PUBLISHED = (
    BeforeValidator(_published),
    WithJsonSchema({"type": ["string", "integer"], "pattern": f"^{_PORTS.pattern}$", "examples": ["8080:80"]}),
)
_VOLUME = (BeforeValidator(_volume), WithJsonSchema({"type": "string", "examples": ["./site:/srv:ro"]}))
IMAGE = (BeforeValidator(_image), WithJsonSchema({"type": "string", "examples": ["images/web.tar"]}))


class ContainerSpec(Strict):
    """A container on a host, in the lab's overlay."""

    name: Annotated[str, *matching(NAME_HINT, NAME)]
    """Name of the container. Others reach it as NAME.HOST, and as NAME where only one host has that name."""
    image: Annotated[str, *IMAGE]
    """A file (an archive of `docker save`, an OCI archive, or a root file system as a tar), docker-daemon:NAME from the
    machine's own engine, or docker://REGISTRY/NAME from a registry."""
    command: (
        Annotated[
            tuple[str, ...],
            BeforeValidator(_command),
            WithJsonSchema(
                {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
            ),
        ]
        | None
    ) = Field(None, min_length=1, max_length=MOST_ENTRIES)
    """Command as a list of words, or as one line that is split as a shell does. Default: the image's own."""
    environment: Annotated[
        dict[str, str],
        BeforeValidator(_environment),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
    ] = Field({}, max_length=MOST_ENTRIES)
    """Variables by name. Default: only the image's."""
    ports: tuple[Annotated[tuple[int, int], *_PUBLISHED], ...] = Field((), max_length=MOST_ENTRIES)
    """TCP ports of the host that lead into the container: HOST:CONTAINER, or one number for both."""
    volumes: tuple[Annotated[tuple[str, str, bool], *_VOLUME], ...] = Field((), max_length=MOST_ENTRIES)
    """SOURCE:TARGET, with :ro for a read-only volume. SOURCE is a file or directory beside the topology, which is
    copied to the host, or a name for a directory on the host."""
    restart: Annotated[Restart, choice("a restart policy", *get_args(Restart))] = "no"
    """When the engine restarts the container: no, on-failure, always, unless-stopped, as in Docker."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _held_by(parse: Any) -> BeforeValidator:
    """Validate a plan's value by the parser of the file's value."""

    def check(value: object) -> object:
        parse(value)
        return value

    return BeforeValidator(check)


_Words: TypeAlias = Annotated[str, BeforeValidator(_words)]
Image: TypeAlias = Annotated[str, _held_by(_image)]
_Nanoseconds: TypeAlias = Annotated[int, Field(ge=0, le=24 * 3600 * 10**9)]
_PortNumber: TypeAlias = Annotated[int, Field(ge=1, le=65535)]


class PublishedPort(_Frozen):
    """A TCP port of the host that leads to one of the container's."""

    port: _PortNumber
    container_port: _PortNumber


class Volume(_Frozen):
    source: _Words
    """An absolute path on this machine, which is copied to the host; or a volume's name."""
    target: _Words
    read_only: bool = False


class Health(_Frozen):
    """A container's health check (Docker Engine API, HealthConfig). 0, or an empty test, means the image's value."""

    test: Annotated[tuple[_Words, ...], Field(max_length=MOST_ENTRIES)] = ()
    interval_ns: _Nanoseconds = 0
    timeout_ns: _Nanoseconds = 0
    start_period_ns: _Nanoseconds = 0
    retries: Annotated[int, Field(ge=0, le=MOST_TIMES)] = 0


class ComposeSettings(_Frozen):
    """A container's settings that only a Compose file has. An empty one means the image's value, or none."""

    entrypoint: Annotated[tuple[_Words, ...], Field(max_length=MOST_ENTRIES)] = ()
    working_directory: _Words = ""
    user: _Words = ""
    hostname: Name | Literal[""] = ""
    names: Annotated[tuple[Name, ...], Field(max_length=MOST_ENTRIES)] = ()
    """Further names, by which only containers on the same host reach it."""
    labels: Annotated[tuple[_Words, ...], Field(max_length=MOST_ENTRIES)] = ()
    """Each `NAME=VALUE`."""
    health: Health | None = None
    after: Annotated[tuple[_Words, ...], Field(max_length=MOST_ENTRIES, exclude_if=lambda after: not after)] = ()
    """Containers on other hosts that start before it, each as NAME.HOST."""


class ServiceSpec(ContainerSpec):
    """A container that comes from a Compose file."""

    beside: ComposeSettings
    """Its settings that a topology file cannot have."""


class PlannedContainer(_Frozen):
    """See `ContainerSpec`. Paths are absolute."""

    name: Name
    image: Image
    command: Annotated[tuple[_Words, ...], Field(max_length=MOST_ENTRIES)] = ()
    """An empty command means the image's own."""
    environment: Annotated[tuple[_Words, ...], Field(max_length=MOST_ENTRIES)] = ()
    """Each `NAME=VALUE`."""
    ports: tuple[PublishedPort, ...] = ()
    volumes: tuple[Volume, ...] = ()
    restart: Restart = "no"
    beside: Annotated[ComposeSettings | None, Field(exclude_if=lambda beside: beside is None)] = None
    """Settings of a Compose service. None, which is not stored, where the topology declares the container."""


def plan_containers(specs: Sequence[ContainerSpec], directory: str) -> tuple[PlannedContainer, ...]:
    """A host's containers as the plan has them; paths are relative to `directory`. Pure."""

    def place(path: str) -> str:
        return os.path.normpath(os.path.join(directory, path))  # noqa: PTH118

    return tuple(
        PlannedContainer(
            name=spec.name,
            image=place(spec.image) if is_file(spec.image) else spec.image,
            command=spec.command or (),
            environment=tuple(f"{name}={value}" for name, value in spec.environment.items()),
            ports=tuple(PublishedPort(port=port, container_port=inside) for port, inside in spec.ports),
            volumes=tuple(
                Volume(source=place(source) if is_path(source) else source, target=target, read_only=read_only)
                for source, target, read_only in spec.volumes
            ),
            restart=spec.restart,
            beside=spec.beside if isinstance(spec, ServiceSpec) and spec.beside != ComposeSettings() else None,
        )
        for spec in specs
    )


def check(declared: Mapping[str, tuple[Location, Sequence[ContainerSpec]]]) -> Iterator[Finding]:
    """Find names and ports that clash. `declared` has each host's containers and their place in the file."""
    for host, (where, specs) in declared.items():
        if len(specs) > MOST_CONTAINERS:
            yield where, f"{len(specs)} containers on {host}; at most {MOST_CONTAINERS} are possible"
        for name, count in Counter(spec.name for spec in specs).items():
            if count > 1:
                yield where, f"container {quote(name)} is declared {count} times on {host}"
            if name in declared or name == "localhost":
                yield where, f"container {quote(name)} has a host's name; choose another"
        for port, count in Counter(port for spec in specs for port, _ in spec.ports).items():
            if count > 1:
                yield where, f"port {port} of {host} leads to {count} containers; give each a port of its own"


def waves(hosts: Mapping[str, Sequence[PlannedContainer]]) -> list[dict[str, list[str]]]:
    """The containers, as NAME.HOST, in groups that start one after the other; each group has them by host, in the
    host's order. There are several groups where containers start after those of other hosts."""
    waits = {f"{one.name}.{host}": one.beside.after if one.beside else () for host, own in hosts.items() for one in own}
    found: list[dict[str, list[str]]] = []
    started: set[str] = set()
    while left := [name for name in waits if name not in started]:
        ready = [name for name in left if not {*waits[name]} & {*left}] or left
        found.append({})
        for name in ready:
            found[-1].setdefault(name.rpartition(".")[2], []).append(name)
        started.update(ready)
    return found


def names(hosts: Mapping[str, Sequence[PlannedContainer]]) -> dict[str, tuple[str, str]]:
    """Host and container by each name that is valid in the whole lab: NAME.HOST; NAME where only one host has it."""
    found = {f"{one.name}.{host}": (host, one.name) for host, several in hosts.items() for one in several}
    times = Counter(name for _, name in found.values())
    return found | {name: (host, name) for host, name in found.values() if times[name] == 1}
