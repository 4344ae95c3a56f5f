"""A Compose file, unchanged: its services become containers of a host, in the order in which they start.

The models here have the keys that a lab supports. Every other key of the Compose Specification is refused with a
remedy; only keys that begin with `x-` are ignored silently, but `x-minigts` of a service, which names its host. Pure.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError

from minigts.language.fields import Strict, matching, text, unknown, whole
from minigts.language.problems import Finding, Location, list_names, quote
from minigts.language.source import Language
from minigts.language.tree import Data, Tree
from minigts.language.validation import findings_of, validate
from minigts.topology.containers import (
    ENGINES_IMAGE,
    MOST_ENTRIES,
    MOST_TIMES,
    ComposeSettings,
    Health,
    ServiceSpec,
    is_path,
)
from minigts.topology.fields import NAME, NAME_HINT
from minigts.topology.read import compose_values

LANGUAGE = Language(
    name="Compose file",
    opening="`services:`",
    largest_bytes=256_000,
    instead_of_aliases="write out what it stands for",
)
_NOTED = ("version", "name")
EXTENSION = "x-minigts"
"""The key of a service that names the host on which it runs."""
_HOSTS = "is a setting of the host: write `memory` and `cpus` of the host in the topology"
_RIGHTS = "containers of a lab have the engine's default rights: leave it out"
_NAMES = "cannot be set: containers of a lab resolve only each other's names: leave it out"
_HANDED = "write a volume, as in ./secret.txt:/run/secrets/secret:ro"
_ONE_NETWORK = "all containers of a lab share its overlay's network: leave it out"
_REASONS: Mapping[str, tuple[str, ...]] = {
    "a lab builds no images: build it with your own engine, and name the result as `image:`": ("build",),
    "a host starts each service of its file once: leave it out": ("deploy", "scale", "provider"),
    "a lab starts all services of the file: remove this key, and the services that you do not want": ("profiles",),
    "copy into this file what it refers to": ("extends", "include"),
    _HANDED: ("secrets", "configs"),
    _ONE_NETWORK: ("network_mode", "mac_address", "isolation"),
    "services find each other by name, and `depends_on` says what starts first": ("links", "external_links"),
    _NAMES: ("extra_hosts", "dns", "dns_opt", "dns_search", "domainname"),
    _HOSTS: (
        *("cpus", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota", "cpu_rt_period", "cpu_rt_runtime"),
        *("cpu_shares", "cpuset", "mem_limit", "mem_reservation", "mem_swappiness", "memswap_limit", "pids_limit"),
        *("blkio_config", "oom_kill_disable", "oom_score_adj", "ulimits", "sysctls", "shm_size", "storage_opt"),
    ),
    _RIGHTS: (
        *("privileged", "cap_add", "cap_drop", "devices", "device_cgroup_rules", "security_opt", "credential_spec"),
        *("group_add", "userns_mode", "cgroup", "cgroup_parent", "pid", "ipc", "uts", "gpus", "use_api_socket"),
        *("read_only", "runtime", "init"),
    ),
    "the engine keeps a container's output, see `minigts logs HOST`: leave it out": ("logging", "attach"),
    "a container has no terminal, see `minigts exec --container`: leave it out": ("stdin_open", "tty"),
    "a lab takes images as they are when it comes up: leave it out": ("pull_policy", "platform"),
    "a lab ends containers at once, with their overlay: leave it out": ("stop_signal", "stop_grace_period"),
    "a lab does not support it: do the work in the service's own command": (
        *("post_start", "pre_stop", "develop", "models", "annotations", "label_file"),
    ),
    "write a named volume, as in data:/tmp": ("tmpfs", "volumes_from"),
}
_REFUSED = {key: reason for reason, keys in _REASONS.items() for key in keys}
_OF_VOLUMES = "a volume is a directory of the host's: write its name and nothing below it"
_OF_NETWORKS = "all containers of a lab share its overlay's network: write the name and nothing below it"
_USUAL_VOLUME = {"driver": "local", "external": "false"}
_USUAL_NETWORK = {
    "driver": "bridge",
    **dict.fromkeys(("external", "internal", "attachable", "enable_ipv6"), "false"),
    "enable_ipv4": "true",
}
"""Defaults of an engine, which a file may state."""
_USER = re.compile(r"[A-Za-z0-9_.-]{1,64}(?::[A-Za-z0-9_.-]{1,64})?", re.ASCII)


@dataclass(frozen=True)
class ComposeHost:
    """A host of a Compose file. `directory` is the file's directory, relative to the topology's. `text_of` reads a
    file by its path relative to `directory`; it raises ValueError. `takers` are all hosts that take the file."""

    name: str
    takers: tuple[str, ...]
    variables: Mapping[str, str]
    images: Mapping[str, str]
    directory: str
    text_of: Callable[[str], str]


@dataclass(frozen=True)
class Composed:
    services: tuple[ServiceSpec, ...]
    findings: tuple[Finding, ...]
    notes: tuple[tuple[str, str], ...]
    """Top-level keys without effect, each with a remark."""
    images: frozenset[str] = frozenset()
    """The names of images in the file."""


def read(tree: Tree, host: ComposeHost) -> Composed:
    """The document's services on the host, in the order in which they start, and all findings but those of services
    on other hosts, whose variables may differ."""
    findings: list[Finding] = []
    placed = _placements(tree.data, host.takers, findings)
    elsewhere = {name for name, other in placed.items() if other in host.takers and other != host.name}
    found = _read(tree, host, placed, findings)
    own = tuple(each for each in found.findings if each[0][:1] != ("services",) or not elsewhere & {*each[0][1:2]})
    return replace(found, findings=own)


def _read(tree: Tree, host: ComposeHost, placed: Mapping[str, str], findings: list[Finding]) -> Composed:
    data = _without_extensions(tree.data)
    if isinstance(data, dict):
        data = {key: _substituted(value, (key,), host.variables, findings) for key, value in data.items()}
    notes = tuple((key, "changes nothing in a lab") for key in _NOTED if isinstance(data, dict) and key in data)
    data = _without_refused(data, findings)
    document, wrong = validate(data, _Document)
    findings.extend(wrong)
    if document is None:
        return Composed((), tuple(findings), notes)
    _check(document, findings)
    made = [_service(name, service, host, findings) for name, service in document.services.items()]
    _require_names_apart(made, findings)
    ordered = _in_order(document, {spec.name: spec for spec in made if spec is not None}, findings)
    if placed.keys() == document.services.keys():
        own = (spec for spec in ordered if placed[spec.name] == host.name)
        ordered = tuple(_after(spec, _from_afar(spec.name, document, placed)) for spec in own)
    images = frozenset(service.image for service in document.services.values())
    return Composed(ordered, tuple(findings), notes, images)


def _placements(data: Data, takers: Sequence[str], findings: list[Finding]) -> dict[str, str]:
    """The host of each service, where the file names hosts; empty where it names none. One that names a host for some
    services names one for each."""
    services = data.get("services") if isinstance(data, dict) else None
    placed, unplaced = dict[str, str](), list[str]()
    for name, service in services.items() if isinstance(services, dict) else ():
        if not isinstance(service, dict) or EXTENSION not in service:
            unplaced.append(name)
            continue
        where, written = ("services", name, EXTENSION), service[EXTENSION]
        host = written.get("host") if isinstance(written, dict) and [*written] == ["host"] else None
        if not isinstance(host, str):
            findings.append((where, f"write the service's host, as in {EXTENSION}: {{host: {takers[0]}}}"))
        elif host not in takers:
            findings.append(((*where, "host"), unknown("host", "hosts that take this file", host, takers)))
        placed[name] = host if isinstance(host, str) else ""
    for name in unplaced if placed else ():
        finding = f"{quote(next(iter(placed)))} names its host: write {EXTENSION}: {{host: …}} for each service"
        findings.append((("services", name), finding))
    return placed


def _from_afar(name: str, document: _Document, placed: Mapping[str, str]) -> tuple[str, ...]:
    """The services on other hosts on which a service depends, directly or by others."""
    found, left = set[str](), [name]
    while left:
        for other in document.services[left.pop()].depends_on:
            if other in document.services and other not in found:
                found.add(other)
                left.append(other)
    return tuple(f"{other}.{placed[other]}" for other in sorted(found) if placed[other] != placed[name])


def _after(spec: ServiceSpec, others: tuple[str, ...]) -> ServiceSpec:
    return spec.model_copy(update={"beside": spec.beside.model_copy(update={"after": others})})


def _substituted(data: Data, where: Location, variables: Mapping[str, str], findings: list[Finding]) -> Data:
    if isinstance(data, dict):
        return {key: _substituted(each, (*where, key), variables, findings) for key, each in data.items()}
    if isinstance(data, list):
        return [_substituted(each, (*where, index), variables, findings) for index, each in enumerate(data)]
    if data is None or "$" not in data:
        return data
    try:
        return compose_values.substitute(data, variables)
    except (ValueError, RecursionError) as error:
        findings.append((where, str(error)))
        return data


def _without_extensions(data: Data) -> Data:
    if isinstance(data, dict):
        return {key: _without_extensions(each) for key, each in data.items() if not key.startswith("x-")}
    return [_without_extensions(each) for each in data] if isinstance(data, list) else data


def _without_refused(data: Data, findings: list[Finding]) -> Data:
    """The document without the keys that a lab does not support; each gives a finding."""
    if not isinstance(data, dict):
        return data
    services = data.get("services")
    if isinstance(services, dict):
        kept = {name: _keys_kept(each, ("services", name), findings) for name, each in services.items()}
        data = {**data, "services": kept}
    return _keys_kept(data, (), findings)


def _keys_kept(data: Data, where: Location, findings: list[Finding]) -> Data:
    if not isinstance(data, dict):
        return data
    findings.extend(((*where, key), _REFUSED[key]) for key in data if key in _REFUSED)
    return {key: each for key, each in data.items() if key not in _REFUSED}


_DurationNs: TypeAlias = Annotated[int, BeforeValidator(compose_values.duration_ns)]


class _Health(Strict):
    test: Annotated[tuple[str, ...], BeforeValidator(compose_values.test)] = ()
    interval: _DurationNs = 0
    timeout: _DurationNs = 0
    start_period: _DurationNs = 0
    retries: Annotated[int, *whole("a number of tries", 1, MOST_TIMES)] = 0
    disable: Annotated[bool, BeforeValidator(compose_values.truth)] = False


class _Service(Strict):
    image: Annotated[str, BeforeValidator(compose_values.image)]
    command: Annotated[tuple[str, ...], BeforeValidator(compose_values.command)] | None = None
    entrypoint: Annotated[tuple[str, ...], BeforeValidator(compose_values.command)] | None = None
    environment: Annotated[dict[str, str | None], BeforeValidator(compose_values.pairs)] = Field(
        {}, max_length=MOST_ENTRIES
    )
    env_file: Annotated[tuple[str, ...], BeforeValidator(compose_values.env_files)] = ()
    ports: Annotated[tuple[str, ...], BeforeValidator(compose_values.ports)] = ()
    expose: Annotated[tuple[str, ...], BeforeValidator(compose_values.exposed_ports)] = ()
    """Without effect: every port of a container is open to the others."""
    volumes: Annotated[tuple[str, ...], BeforeValidator(compose_values.volumes)] = ()
    restart: Annotated[str, text("a restart policy", 40)] | None = None
    depends_on: Annotated[tuple[str, ...], BeforeValidator(compose_values.depends)] = ()
    networks: Annotated[dict[str, tuple[str, ...]], BeforeValidator(compose_values.networks)] | None = None
    container_name: Annotated[str, BeforeValidator(compose_values.a_name)] | None = None
    hostname: Annotated[str, BeforeValidator(compose_values.a_name)] | None = None
    healthcheck: _Health | None = None
    working_dir: Annotated[str, *matching("a directory from the root, as in /srv", re.compile(r"/[^\n]{0,999}"))] = ""
    user: Annotated[str, *matching("a user: write a name or a number, as in 1000:1000", _USER)] = ""
    labels: Annotated[dict[str, str], BeforeValidator(compose_values.labels)] = Field({}, max_length=MOST_ENTRIES)


class _Document(Strict):
    services: dict[str, _Service]
    networks: Annotated[dict[str, None], compose_values.nothing_below(_OF_NETWORKS, _USUAL_NETWORK)] | None = None
    volumes: Annotated[dict[str, None], compose_values.nothing_below(_OF_VOLUMES, _USUAL_VOLUME)] | None = None
    version: str | None = None
    name: str | None = None


def _check(document: _Document, findings: list[Finding]) -> None:
    """Find names that are not declared, and services that share no network."""
    if not document.services:
        findings.append((("services",), "there are none: write one, as in web: {image: nginx:1.27}"))
    networks = ["default", *(document.networks or ())]
    joined: dict[str, set[str]] = {}
    for name, service in document.services.items():
        where: Location = ("services", name)
        if not NAME.fullmatch(name):
            findings.append((where, f"{quote(name)} is not {NAME_HINT}"))
        findings.extend(_missing((*where, "depends_on"), "service", service.depends_on, [*document.services]))
        findings.extend(_missing((*where, "networks"), "network", service.networks or (), networks))
        findings.extend(_undeclared((*where, "volumes"), service, [*(document.volumes or ())]))
        joined[name] = {"default"} if service.networks is None else {*service.networks}
    for one, other in itertools.combinations(joined, 2):
        if not joined[one] & joined[other]:
            finding = f"shares no network with {other}; containers of a lab all reach each other: give both one network"
            findings.append((("services", one, "networks"), finding))


def _missing(where: Location, kind: str, named: Iterable[str], known: Sequence[str]) -> Iterator[Finding]:
    yield from ((where, unknown(kind, f"{kind}s", each, known)) for each in named if each not in known)


def _undeclared(where: Location, service: _Service, declared: Sequence[str]) -> Iterator[Finding]:
    for index, volume in enumerate(service.volumes):
        source = volume.partition(":")[0]
        if not is_path(source) and source not in declared:
            hint = f"; declared are {list_names(declared)}" if declared else ""
            finding = f"no volume {quote(source)}: declare it under `volumes:` at the top of the file{hint}"
            yield (*where, index), finding


def _service(name: str, service: _Service, host: ComposeHost, findings: list[Finding]) -> ServiceSpec | None:
    """The container of a service; None, and a finding, where it is not valid."""
    where: Location = ("services", name)
    written = {
        "name": name,
        "image": host.images.get(service.image, f"{ENGINES_IMAGE}{service.image}"),
        "command": None if service.command is None else [*service.command],
        "environment": _environment(where, service, host, findings),
        "ports": [*service.ports],
        "volumes": [_placed(volume, host.directory) for volume in service.volumes],
        "restart": service.restart or "no",
    }
    also = [service.container_name, service.hostname, *itertools.chain(*(service.networks or {}).values())]
    beside = ComposeSettings(
        entrypoint=service.entrypoint or (),
        working_directory=service.working_dir,
        user=service.user,
        hostname=service.hostname or "",
        names=tuple(dict.fromkeys(each for each in also if each and each != name)),
        labels=tuple(f"{label}={value}" for label, value in service.labels.items()),
        health=None if service.healthcheck is None else _health(service.healthcheck),
    )
    try:
        return ServiceSpec.model_validate({**written, "beside": beside})
    except ValidationError as error:
        findings.extend((_own_place(where, below), said) for below, said in findings_of(error, ServiceSpec))
        return None


def _own_place(where: Location, below: Location) -> Location:
    return where if below[:1] == ("name",) else (*where, *below)


def _health(written: _Health) -> Health:
    return Health(
        test=("NONE",) if written.disable else written.test,
        interval_ns=written.interval,
        timeout_ns=written.timeout,
        start_period_ns=written.start_period,
        retries=written.retries,
    )


def _placed(volume: str, directory: str) -> str:
    """The volume, its path relative to the topology's directory instead of the Compose file's."""
    source, colon, rest = volume.partition(":")
    if not is_path(source) or source.startswith("/"):
        return volume
    path = os.path.normpath(os.path.join(directory, source))  # noqa: PTH118
    return f"{path if path.startswith('../') else f'./{path}'}{colon}{rest}"


def _environment(where: Location, service: _Service, host: ComposeHost, findings: list[Finding]) -> dict[str, str]:
    """Variables of the service's files, overridden by its own. A name without a value has the host's value."""
    found: dict[str, str | None] = {}
    for path in service.env_file:
        try:
            found |= dict(compose_values.entries(path, host.text_of(path)))
        except ValueError as error:
            findings.append(((*where, "env_file"), str(error)))
    found |= service.environment
    taken = {name: host.variables.get(name) if value is None else value for name, value in found.items()}
    for name in (each for each, value in taken.items() if value is None):
        finding = f"this host has no variable {name}: write it under the host's `environment:`, or a value here"
        findings.append(((*where, "environment"), finding))
    return {name: value for name, value in taken.items() if value is not None}


def _require_names_apart(specs: Iterable[ServiceSpec | None], findings: list[Finding]) -> None:
    known: dict[str, str] = {spec.name: spec.name for spec in specs if spec is not None}
    for spec in (each for each in specs if each is not None):
        for name in spec.beside.names:
            if known.setdefault(name, spec.name) != spec.name:
                finding = f"{quote(name)} is {known[name]}'s name, too; give each container names of its own"
                findings.append((("services", spec.name), finding))


def _in_order(document: _Document, made: Mapping[str, ServiceSpec], findings: list[Finding]) -> tuple[ServiceSpec, ...]:
    """The services in the file's order, but each after those on which it depends."""
    left = {name: {*service.depends_on} & {*document.services} for name, service in document.services.items()}
    ordered: list[str] = []
    while left:
        ready = next((name for name, waits in left.items() if waits <= {*ordered}), None)
        if ready is None:
            finding = f"none of {list_names([*left])} can start first: each waits for another of them, or itself"
            findings.append((("services", next(iter(left)), "depends_on"), finding))
            break
        ordered.append(ready)
        del left[ready]
    return tuple(made[name] for name in ordered if name in made)
