"""A Compose file as its user has it, for one host: its services in the order in which they start, as containers.

What a lab honours is in the models here. All else that the Compose Specification knows is refused by name, with what
would be right: nothing is left out silently but keys that begin with `x-`. Pure.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError

from minigts.language.fields import Strict, matching, text, unknown, whole
from minigts.language.problems import Finding, Location, Misplaced, listed, shown
from minigts.language.quantities import is_whole_number
from minigts.language.source import Language
from minigts.language.tree import Data, Tree
from minigts.language.validation import findings_of, validated
from minigts.topology.containers import (
    ENGINES_IMAGE,
    LONGEST_TEXT,
    MOST_ENTRIES,
    MOST_TIMES,
    REFERENCE,
    VARIABLE,
    Beside,
    Health,
    ServiceSpec,
    is_path,
)
from minigts.topology.fields import NAME, NAME_HINT

LANGUAGE = Language(
    name="Compose file",
    opening="`services:`",
    largest_bytes=256_000,
    instead_of_aliases="write out what it stands for",
)
_NOTED = ("version", "name")
_ORDER_ONLY = (
    "a lab starts services in order and waits for nothing else: write service_started, and let the program try again, "
    "or `restart: on-failure`"
)
_HOSTS = "is the host's: say `memory` and `cpus` of it in the topology"
_RIGHTS = "containers of a lab have the rights that the engine gives by itself, no more and no fewer: leave it out"
_NAMES = "is not set by service: in a lab containers find each other by name, and nothing else: leave it out"
_HANDED = "write a volume, as in ./secret.txt:/run/secrets/secret:ro"
_ONE_NETWORK = "all containers of a lab share its overlay's network: leave it out"
_REASONS: Mapping[str, tuple[str, ...]] = {
    "a lab builds no images: build it with your own engine, name what is built as `image:`": ("build",),
    "a lab has a file for each host, which starts each service once: leave it out": ("deploy", "scale", "provider"),
    "all services of the file are started: take out those that are not to be, and this": ("profiles",),
    "write out here what it brings": ("extends", "include"),
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
    "the engine keeps what a container says: `minigts logs HOST`; leave it out": ("logging", "attach"),
    "nobody types there: `minigts exec --container` runs a command in it; leave it out": ("stdin_open", "tty"),
    "a lab takes images as they are when it comes up: leave it out": ("pull_policy", "platform"),
    "containers go with their overlay, at once: leave it out": ("stop_signal", "stop_grace_period"),
    "nothing of the kind runs: write what is to be done into the service's own command": (
        *("post_start", "pre_stop", "develop", "models", "annotations", "label_file"),
    ),
    "write a named volume, as in data:/tmp": ("tmpfs", "volumes_from"),
}
_REFUSED = {key: reason for reason, keys in _REASONS.items() for key in keys}
_OF_VOLUMES = "a volume is a directory of the host's: write its name and nothing below it"
_OF_NETWORKS = "all containers of a lab share its overlay's network: write the name and nothing below it"
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:us|ms|s|m|h))+", re.ASCII)
_UNITS_NS = {"us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PORTS = re.compile(r"([0-9]{1,5}):([0-9]{1,5})", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_.-]{1,64}(?::[A-Za-z0-9_.-]{1,64})?", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", re.ASCII)
_ENTRY = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*(?:=(.*))?", re.ASCII)
_QUOTED = re.compile(r"""(?:'([^']*)'|"([^"\\$]*)")\s*(?:\#.*)?""", re.ASCII)


@dataclass(frozen=True)
class Host:
    """The host that a file is for. `directory` leads from the topology's directory to the file's, `text_of` reads a
    file by its path from there; it raises ValueError."""

    variables: Mapping[str, str]
    images: Mapping[str, str]
    directory: str
    text_of: Callable[[str], str]


@dataclass(frozen=True)
class Composed:
    services: tuple[ServiceSpec, ...]
    findings: tuple[Finding, ...]
    notes: tuple[tuple[str, str], ...]
    """Keys at the top, and what becomes of them."""
    images: frozenset[str] = frozenset()
    """As the file calls them."""


def read(tree: Tree, host: Host) -> Composed:
    """The services of the document, in the order in which they start; what is wrong with it, at its place there."""
    findings: list[Finding] = []
    data = _without_extensions(tree.data)
    if isinstance(data, dict):
        data = {key: _substituted(value, (key,), host.variables, findings) for key, value in data.items()}
    notes = tuple((key, "changes nothing in a lab") for key in _NOTED if isinstance(data, dict) and key in data)
    data = _without_refused(data, findings)
    document, wrong = validated(data, _Document)
    findings.extend(wrong)
    if document is None:
        return Composed((), tuple(findings), notes)
    _check(document, findings)
    made = [_service(name, service, host, findings) for name, service in document.services.items()]
    _require_names_apart(made, findings)
    ordered = _in_order(document, {spec.name: spec for spec in made if spec is not None}, findings)
    images = frozenset(service.image for service in document.services.values())
    return Composed(ordered, tuple(findings), notes, images)


def substituted(written: str, variables: Mapping[str, str]) -> str:
    """The text with its `$NAME` and `${NAME:-default}` filled in, as the Compose Specification has it, *Interpolation*;
    but a variable that is not there, and has no default, is an error. Raises ValueError."""
    filled, rest = "", written
    while "$" in rest:
        before, _, rest = rest.partition("$")
        filled += before
        if rest.startswith("$"):
            filled, rest = f"{filled}$", rest[1:]
        elif rest.startswith("{"):
            inside, rest = _braced(rest, written)
            filled += _value_of(inside, written, variables)
        elif name := VARIABLE.match(rest):
            filled, rest = filled + _required(name[0], variables), rest[name.end() :]
        else:
            raise ValueError(f"{shown(written)} has a $ that begins no variable: write $$ for the character itself")
    return filled + rest


def _braced(rest: str, written: str) -> tuple[str, str]:
    """What stands in the braces that `rest` begins with, and what comes behind them."""
    depth = 0
    for index, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:index], rest[index + 1 :]
    raise ValueError(f"{shown(written)} has a brace that does not end: write it as in ${{PORT:-8080}}")


def _value_of(inside: str, written: str, variables: Mapping[str, str]) -> str:
    name = VARIABLE.match(inside)
    action = inside[name.end() :] if name else ""
    if name is None or (action and not re.match(r":?[-?+]", action)):
        raise ValueError(f"{shown(written)} names no variable: write it as in ${{PORT:-8080}}")
    if not action:
        return _required(name[0], variables)
    value = variables.get(name[0])
    empty_is_none = action.startswith(":")
    kind, word = action[empty_is_none], action[1 + empty_is_none :]
    there = value is not None and not (empty_is_none and not value)
    if kind == "+":
        return substituted(word, variables) if there else ""
    if there:
        return value or ""
    if kind == "?":
        said = f": {substituted(word, variables)}" if word else ""
        raise ValueError(f"this host has no variable {name[0]}, which is required{said}")
    return substituted(word, variables)


def _required(name: str, variables: Mapping[str, str]) -> str:
    if name not in variables:
        raise ValueError(
            f"this host has no variable {name}: write it under the host's `environment:`, or a default, as in "
            f"${{{name}:-1}}; your shell's variables are not taken"
        )
    return variables[name]


def _substituted(data: Data, where: Location, variables: Mapping[str, str], findings: list[Finding]) -> Data:
    if isinstance(data, dict):
        return {key: _substituted(each, (*where, key), variables, findings) for key, each in data.items()}
    if isinstance(data, list):
        return [_substituted(each, (*where, index), variables, findings) for index, each in enumerate(data)]
    if data is None or "$" not in data:
        return data
    try:
        return substituted(data, variables)
    except (ValueError, RecursionError) as error:
        findings.append((where, str(error)))
        return data


def _without_extensions(data: Data) -> Data:
    if isinstance(data, dict):
        return {key: _without_extensions(each) for key, each in data.items() if not key.startswith("x-")}
    return [_without_extensions(each) for each in data] if isinstance(data, list) else data


def _without_refused(data: Data, findings: list[Finding]) -> Data:
    """The document without the keys that a lab cannot honour, of which there is a finding each."""
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


def _each(
    value: object, parse: Callable[[object], Any], wanted: str, *, mapping: Callable[[str, object], Any] | None = None
) -> tuple[Any, ...]:
    """Every entry of a list, or of a mapping where that may be. Raises Misplaced."""
    entries: list[tuple[str | int, Callable[[], Any]]]
    if isinstance(value, list):
        entries = [(index, partial(parse, one)) for index, one in enumerate(value)]
    elif isinstance(value, dict) and mapping is not None:
        entries = [(key, partial(mapping, key, one)) for key, one in value.items()]
    else:
        raise ValueError(f"{shown(value)} where {wanted} is wanted")
    findings: list[Finding] = []
    made = []
    for place, read_one in entries:
        try:
            made.append(read_one())
        except Misplaced as error:
            findings.extend(((place, *below), message) for below, message in error.findings)
        except ValueError as error:
            findings.append(((place,), str(error)))
    if findings:
        raise Misplaced(findings)
    return tuple(made)


def _image(value: object) -> str:
    if not isinstance(value, str) or not REFERENCE.fullmatch(value):
        raise ValueError(f"{shown(value)} names no image: write it as in redis:7")
    return value


def _command(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        words = _each(value, _text, "a list")
    else:
        try:
            words = tuple(shlex.split(_text(value)))
        except ValueError as error:
            raise ValueError(f"{shown(value)} is no command: {error}") from error
    if not words:
        raise ValueError("an empty command: leave it out for the image's own")
    return words


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError(f"{shown(value)} is no text of at most {LONGEST_TEXT} characters")
    return value


def _pairs(value: object) -> dict[str, str | None]:
    """`A=1` or `A` in a list, or a mapping; None: of the host's own."""

    def named(name: str, content: object) -> tuple[str, str | None]:
        if not VARIABLE.fullmatch(name):
            raise ValueError(f"{shown(name)} is no variable's name: write letters, digits and underscores")
        return name, None if content is None else _text(content)

    def parse(one: object) -> tuple[str, str | None]:
        name, equals, content = _text(one).partition("=")
        return named(name, content if equals else None)

    return dict(_each(value, parse, "a mapping or a list of NAME=VALUE", mapping=named))


def _labels(value: object) -> dict[str, str]:
    def named(name: str, content: object) -> tuple[str, str]:
        if not _LABEL.fullmatch(name):
            raise ValueError(f"{shown(name)} is no label: write letters, digits, dots, hyphens and slashes")
        return name, _text("" if content is None else content)

    def parse(one: object) -> tuple[str, str]:
        name, _, content = _text(one).partition("=")
        return named(name, content)

    return dict(_each(value, parse, "a mapping or a list of NAME=VALUE", mapping=named))


def _env_files(value: object) -> tuple[str, ...]:
    def parse(one: object) -> str:
        if not isinstance(one, dict):
            return _text(one)
        _require_keys(one, ("path",))
        return _text(one.get("path"))

    return _each(value if isinstance(value, list) else [value], parse, "a file, or a list of them")


def _truth(value: object) -> bool:
    if value not in ("true", "false"):
        raise ValueError(f"{shown(value)} is neither true nor false")
    return value == "true"


def _require_keys(one: Mapping[str, object], known: Sequence[str]) -> None:
    findings = [((key,), unknown("key", "keys here", key, known)) for key in one if key not in known]
    if findings:
        raise Misplaced(findings)


def _ports(value: object) -> tuple[str, ...]:
    return _each(value, _port, "a list of ports")


def _port(one: object) -> str:
    if isinstance(one, dict):
        _require_keys(one, ("target", "published", "protocol", "name"))
        one = f"{one.get('published') or ''}:{one.get('target') or ''}/{one.get('protocol') or 'tcp'}"
    written = _text(one)
    ports, _, protocol = written.partition("/")
    if protocol not in ("", "tcp"):
        raise ValueError(
            f"{shown(written)}: a host passes on TCP alone; over the overlay containers have every protocol"
        )
    if is_whole_number(ports) or ports.startswith(":"):
        number = ports.removeprefix(":")
        raise ValueError(f"{shown(written)} leaves the host's port to chance: write both, as in {number}:{number}")
    if not _PORTS.fullmatch(ports):
        raise ValueError(
            f"{shown(written)} is no port: write the host's and the container's, one each, without an address, as in "
            "8080:80"
        )
    return ports


def _volumes(value: object) -> tuple[str, ...]:
    return _each(value, _volume, "a list of volumes")


def _volume(one: object) -> str:
    """As in a topology, `SOURCE:TARGET:ro`."""
    if isinstance(one, dict):
        kind = one.get("type")
        if kind not in ("bind", "volume"):
            raise ValueError(f"{shown(kind)} is no kind of volume that a lab has: write bind or volume")
        _require_keys(one, ("type", "source", "target", "read_only"))
        source, target = _text(one.get("source")), _text(one.get("target"))
        if (kind == "bind") != _from_here(source):
            wanted = "a path, as in ./site" if kind == "bind" else "a name, as in data"
            raise ValueError(f"{shown(source)} is no source of the kind {kind}: write {wanted}")
        mode = "ro" if _truth(one.get("read_only", "false")) else "rw"
    else:
        source, _, rest = _text(one).partition(":")
        target, _, mode = rest.partition(":")
        if not rest:
            raise ValueError(f"{shown(one)} has no name: write one in front, as in data:{source}")
        if mode in ("z", "Z", "ro,z", "ro,Z"):
            raise ValueError(f"{shown(one)}: hosts have no SELinux: leave {mode.rpartition(',')[2]} out")
    if source.startswith("~"):
        raise ValueError(f"{shown(source)}: a lab knows nobody's home: write a path from the file on, as in ./site")
    if _from_here(source) and not is_path(source):
        source = f"./{source}"
    return f"{source}:{target}{':ro' if mode == 'ro' else f':{mode}' if mode else ''}"


def _from_here(source: str) -> bool:
    return source in (".", "..") or source.startswith(("/", "./", "../", "~"))


def _depends(value: object) -> tuple[str, ...]:
    def named(name: str, settings: object) -> str:
        if isinstance(settings, dict):
            _require_keys(settings, ("condition", "required", "restart"))
            if settings.get("condition", "service_started") != "service_started":
                raise Misplaced([(("condition",), f"{shown(settings['condition'])}: {_ORDER_ONLY}")])
            for key, usual in (("required", "true"), ("restart", "false")):
                if settings.get(key, usual) != usual:
                    raise Misplaced([((key,), f"only {usual} is possible: leave it out")])
        return name

    return _each(value, _text, "a list of services", mapping=named)


def _networks(value: object) -> dict[str, tuple[str, ...]]:
    """The names that the service has besides, by network."""

    def named(name: str, settings: object) -> tuple[str, tuple[str, ...]]:
        if settings is None:
            return name, ()
        if not isinstance(settings, dict):
            raise ValueError(f"{shown(settings)} where a mapping is wanted, as in {{aliases: [db]}}")
        for key in settings:
            if key != "aliases":
                raise Misplaced([((key,), "only `aliases` are honoured: the overlay gives addresses; leave it out")])
        try:
            return name, _each(settings.get("aliases"), _name, "a list of names")
        except Misplaced as error:
            raise Misplaced([(("aliases", *below), message) for below, message in error.findings]) from error

    return dict(_each(value, lambda one: (_text(one), ()), "a list or a mapping of networks", mapping=named))


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(f"{shown(value)} is not {NAME_HINT}")
    return value


def _duration_ns(value: object) -> int:
    if not isinstance(value, str) or len(value) > 40 or not _DURATION.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a duration: write it as in 1m30s or 500ms")
    parts = re.findall(r"([0-9.]+)([a-z]+)", value)
    found = round(sum(float(number) * _UNITS_NS[unit] for number, unit in parts))
    if not 10**6 <= found <= 24 * 3600 * 10**9:
        raise ValueError(f"{shown(value)} is out of range: a duration is from 1ms to 24h")
    return found


def _test(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return "CMD-SHELL", _text(value)
    words = _each(value, _text, "a list")
    if not words or words[0] not in ("NONE", "CMD", "CMD-SHELL") or (len(words) < 2) != (words[0] == "NONE"):
        raise ValueError('a test is a text, or a list as in ["CMD", "redis-cli", "ping"]')
    return words


def _nothing_below(reason: str) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, dict):
            below: list[Finding] = [
                ((name, key), reason) for name, each in value.items() if isinstance(each, dict) for key in each
            ]
            below += [((name,), reason) for name, each in value.items() if each and not isinstance(each, dict)]
            if below:
                raise Misplaced(below)
            return dict.fromkeys(value)
        return value

    return BeforeValidator(check)


_DurationNs: TypeAlias = Annotated[int, BeforeValidator(_duration_ns)]


class _Health(Strict):
    test: Annotated[tuple[str, ...], BeforeValidator(_test)] = ()
    interval: _DurationNs = 0
    timeout: _DurationNs = 0
    start_period: _DurationNs = 0
    retries: Annotated[int, *whole("a number of tries", 1, MOST_TIMES)] = 0
    disable: Annotated[bool, BeforeValidator(_truth)] = False


class _Service(Strict):
    image: Annotated[str, BeforeValidator(_image)]
    command: Annotated[tuple[str, ...], BeforeValidator(_command)] | None = None
    entrypoint: Annotated[tuple[str, ...], BeforeValidator(_command)] | None = None
    environment: Annotated[dict[str, str | None], BeforeValidator(_pairs)] = Field({}, max_length=MOST_ENTRIES)
    env_file: Annotated[tuple[str, ...], BeforeValidator(_env_files)] = ()
    ports: Annotated[tuple[str, ...], BeforeValidator(_ports)] = ()
    expose: Annotated[tuple[str, ...], BeforeValidator(lambda value: _each(value, _text, "a list of ports"))] = ()
    """Nothing is to be done: every port of a container is open to the others."""
    volumes: Annotated[tuple[str, ...], BeforeValidator(_volumes)] = ()
    restart: Annotated[str, text("a restart policy", 40)] | None = None
    depends_on: Annotated[tuple[str, ...], BeforeValidator(_depends)] = ()
    networks: Annotated[dict[str, tuple[str, ...]], BeforeValidator(_networks)] | None = None
    container_name: Annotated[str, BeforeValidator(_name)] | None = None
    hostname: Annotated[str, BeforeValidator(_name)] | None = None
    healthcheck: _Health | None = None
    working_dir: Annotated[str, *matching("a directory from the root, as in /srv", re.compile(r"/[^\n]{0,999}"))] = ""
    user: Annotated[str, *matching("a user: write a name or a number, as in 1000:1000", _USER)] = ""
    labels: Annotated[dict[str, str], BeforeValidator(_labels)] = Field({}, max_length=MOST_ENTRIES)


class _Document(Strict):
    services: dict[str, _Service]
    networks: Annotated[dict[str, None], _nothing_below(_OF_NETWORKS)] | None = None
    volumes: Annotated[dict[str, None], _nothing_below(_OF_VOLUMES)] | None = None
    version: str | None = None
    name: str | None = None


def _check(document: _Document, findings: list[Finding]) -> None:
    """What is named and not there, and networks that keep services apart."""
    if not document.services:
        findings.append((("services",), "there are none: write one, as in web: {image: nginx:1.27}"))
    networks = ["default", *(document.networks or ())]
    joined: dict[str, set[str]] = {}
    for name, service in document.services.items():
        where: Location = ("services", name)
        if not NAME.fullmatch(name):
            findings.append((where, f"{shown(name)} is not {NAME_HINT}"))
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
            hint = f"; declared are {listed(declared)}" if declared else ""
            finding = f"no volume {shown(source)}: declare it under `volumes:` at the top of the file{hint}"
            yield (*where, index), finding


def _service(name: str, service: _Service, host: Host, findings: list[Finding]) -> ServiceSpec | None:
    """None for what is no container of a lab's, of which there is a finding."""
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
    beside = Beside(
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
    """A path from the Compose file on, as one from the topology's file on."""
    source, colon, rest = volume.partition(":")
    if not is_path(source) or source.startswith("/"):
        return volume
    path = os.path.normpath(os.path.join(directory, source))  # noqa: PTH118
    return f"{path if path.startswith('../') else f'./{path}'}{colon}{rest}"


def _environment(where: Location, service: _Service, host: Host, findings: list[Finding]) -> dict[str, str]:
    """Of its files first, then its own. A name without a value has that of the host's variable."""
    found: dict[str, str | None] = {}
    for path in service.env_file:
        try:
            found |= dict(_entries(path, host.text_of(path)))
        except ValueError as error:
            findings.append(((*where, "env_file"), str(error)))
    found |= service.environment
    taken = {name: host.variables.get(name) if value is None else value for name, value in found.items()}
    for name in (each for each, value in taken.items() if value is None):
        finding = f"this host has no variable {name}: write it under the host's `environment:`, or a value here"
        findings.append(((*where, "environment"), finding))
    return {name: value for name, value in taken.items() if value is not None}


def _entries(path: str, content: str) -> Iterator[tuple[str, str | None]]:
    """`NAME=VALUE`, a line each; in quotes as it is. What Compose would fill in or escape is refused: ValueError."""
    for number, line in enumerate(content.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(stripped)
        if entry is None:
            raise ValueError(f"{path}:{number}: {shown(stripped)} is no variable: write NAME=VALUE")
        value = None if entry[2] is None else entry[2].strip()
        if value is None:
            yield entry[1], None
        elif quoted := _QUOTED.fullmatch(value):
            yield entry[1], quoted[1] if quoted[2] is None else quoted[2]
        elif re.search(r"[\\$]|^['\"]", value):
            wanted = "a lab fills in nothing here: write the value in single quotes, in one line"
            raise ValueError(f"{path}:{number}: {shown(stripped)}: {wanted}")
        else:
            yield entry[1], re.split(r"\s+#", value)[0].rstrip()


def _require_names_apart(specs: Iterable[ServiceSpec | None], findings: list[Finding]) -> None:
    known: dict[str, str] = {spec.name: spec.name for spec in specs if spec is not None}
    for spec in (each for each in specs if each is not None):
        for name in spec.beside.names:
            if known.setdefault(name, spec.name) != spec.name:
                finding = f"{shown(name)} is {known[name]}'s name, too; give each container names of its own"
                findings.append((("services", spec.name), finding))


def _in_order(document: _Document, made: Mapping[str, ServiceSpec], findings: list[Finding]) -> tuple[ServiceSpec, ...]:
    """Each behind those that it depends on; else as they stand in the file."""
    left = {name: {*service.depends_on} & {*document.services} for name, service in document.services.items()}
    ordered: list[str] = []
    while left:
        ready = next((name for name, waits in left.items() if waits <= {*ordered}), None)
        if ready is None:
            finding = f"none of {listed([*left])} can start first: each waits for another of them, or itself"
            findings.append((("services", next(iter(left)), "depends_on"), finding))
            break
        ordered.append(ready)
        del left[ready]
    return tuple(made[name] for name in ordered if name in made)
