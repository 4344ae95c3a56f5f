"""What a file may say of a host, key by key: the one list of it, with what becomes of each key elsewhere.

A host's Compose file is one such key: where it lies, and where the images are that it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

from minigts.language.fields import Strict, matching, quantity, text, truth
from minigts.language.problems import listed, shown
from minigts.language.quantities import BYTE_NS, CALL_NS, FRAME_NS, MEMORY_MB, Words
from minigts.language.tree import Data
from minigts.topology import sysctls as tuning
from minigts.topology.containers import IMAGE, MOST_ENTRIES, REFERENCE, ContainerSpec
from minigts.topology.fields import HOST_NAME, LEAST_SHARE, LONGEST_LOCATION, MOST_CPUS, MOST_ROUTES
from minigts.topology.plan.elements import Host
from minigts.topology.software import (
    ENVIRONMENT,
    FILES,
    IMAGE_OF_HOST,
    PACKAGES,
    RUN,
    BelowTopology,
    Commands,
    Environment,
    Files,
    Packages,
)
from minigts.topology.time import Time

_Reference: TypeAlias = Annotated[str, *matching("an image's name, as in redis:7", REFERENCE)]


class ComposeSpec(Strict):
    """A Compose file, used unchanged."""

    file: BelowTopology
    """Path of the file, relative to the topology file's directory and inside it."""
    images: dict[_Reference, Annotated[str, *IMAGE]] = Field({}, max_length=MOST_ENTRIES)
    """Sources of images, by their names in the Compose file. Default: this machine's own engine has each image."""


class _OrItsPath:
    """The JSON Schema of a path or the mapping."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "examples": ["compose.yaml"]}, handler(core)]}


A_FILE = (BeforeValidator(lambda value: {"file": value} if isinstance(value, str) else value), _OrItsPath)
"""Annotations of a field that takes the mapping, or the file's path alone."""


DEFAULT_MEMORY_MB = 512
"""What a host has whose file says nothing of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Feature:
    """Something that a host may need and not every lab supports. A provider declares which features it supports."""

    name: str
    asks: Callable[[Host], str]
    """The setting by which a planned host needs it, as in a file: `cpus: 0.5`; empty when it does not need it."""
    place: Callable[[Host], object] = lambda _: ""
    """The setting's place in the file, where the plan has it."""
    only: Time | None = None
    """The only time in which it applies; None means both."""
    written: Callable[[Data], bool] = lambda _: False
    """Whether the key's value in a file needs it. Only features of one time have this."""
    untimely: str = ""
    """Why it is refused in a file of the other time, and what to write instead."""
    instead: str = ""
    """What to write where no available provider supports it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Elsewhere:
    """How a key is reported when a lab is written in another tool's format, which has no word for it."""

    what: str
    why: str
    has: Callable[[Host], object]
    lost: bool
    """Whether it affects the network, so that a file without it describes another lab."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostSetting:
    """The properties of one key of a host."""

    by_hand: bool = False
    """Whether `minigts add host` takes it. Other keys have their defaults there."""
    from_start: Callable[[Host], object] | None = None
    """Whether a planned host has something of it that only a host has which is there from the lab's start on. None: a
    host that is added to a lab may have it."""
    features: tuple[Feature, ...] = ()
    elsewhere: Elsewhere | None = None


def _processors(value: object) -> float:
    if isinstance(value, str) and re.fullmatch(r"0\.[0-9]{1,2}", value, re.ASCII) and float(value) >= LEAST_SHARE:
        return float(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value, re.ASCII) and 1 <= int(value) <= MOST_CPUS:
        return int(value)
    wanted = f"write a whole number from 1 to {MOST_CPUS}, or a share of one, from {LEAST_SHARE} to 0.99, as in 0.5"
    raise ValueError(f"{shown(value)} is not a number of processors: {wanted}")


_PROCESSORS = WithJsonSchema({"type": "number", "minimum": LEAST_SHARE, "maximum": MOST_CPUS})
_SOFTWARE = HostSetting(
    elsewhere=Elsewhere(
        what="its software and containers",
        why="no other format has them as we do",
        has=lambda host: host.software is not None or host.containers,
        lost=False,
    )
)


def _of_whole_kernel(host: Host) -> str:
    names = [each.name for each in host.sysctls if tuning.is_of_whole_kernel(each.name)]
    return f"sysctls: {listed(names)}" if names else ""


_ECN = Words("a choice of ECN", tuple(tuning.ECN_VALUES))


def _ecn(host: Host) -> str | None:
    return next((each.value for each in host.sysctls if each.name == tuning.ECN), None)


def _asks_accurate_ecn(host: Host) -> bool:
    return _ecn(host) == tuning.ECN_VALUES["accurate"]


def _routes(value: object) -> dict[str, str]:
    example = "a mapping of hosts or networks to neighbours, as in {h3: h2, 10.9.0.0/16: h2}"
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{shown(value)} is no routes: write {example}")
    if len(value) > MOST_ROUTES:
        raise ValueError(f"{len(value)} routes; at most {MOST_ROUTES} are possible")
    for to, via in value.items():
        if not isinstance(to, str) or not (HOST_NAME.fullmatch(to) or _is(IPv4Network, to)):
            raise ValueError(f"{shown(to)} is no destination of a route: write a host's name or a network, {example}")
        if not isinstance(via, str) or not (HOST_NAME.fullmatch(via) or _is(IPv4Address, via)):
            raise ValueError(f"{to}: {shown(via)} is no neighbour: write its name, or its address on the link")
    return dict(value)


def _is(kind: Callable[[str], object], text: str) -> bool:
    """Whether `text` is one in canonical form."""
    try:
        return len(text) <= len("255.255.255.255/32") and "." in text and str(kind(text)) == text
    except ValueError:
        return False


_ROUTES = WithJsonSchema(
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "examples": ["h2", "10.20.0.2"]}}
)


class Spec(BaseModel):
    """The base of the models of a topology file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ProcessorSpec(Spec):
    """Time that frames on the host's ports, one after the other, and system calls take of its processor, in virtual
    time."""

    frame: Annotated[int, *quantity(FRAME_NS, whole=True)] = Field(
        0, description="Time for each frame, in or out, of any size. Default: 0ns."
    )
    byte: Annotated[float, *quantity(BYTE_NS)] = Field(
        0.0, description="Time for each byte of a frame, Ethernet header included. Default: 0ns."
    )
    call: Annotated[int, *quantity(CALL_NS, whole=True)] = Field(
        0, description="Time for each system call of the host's programs. Default: 0ns."
    )


class HostSpec(Spec):
    """The settings of a host. None is required: `ams:` alone declares a host."""

    location: Annotated[
        Annotated[str, text("a location", LONGEST_LOCATION, one_line=True)] | None, HostSetting(by_hand=True)
    ] = Field(
        None,
        description="Location of the host, such as AMS, for figures and tables; with delays: sites, also for links.",
    )
    cpus: Annotated[
        Annotated[float, BeforeValidator(_processors), _PROCESSORS] | None,
        HostSetting(
            from_start=lambda host: host.cpus != 1,
            features=(
                Feature(
                    name="a share of a processor",
                    asks=lambda host: f"cpus: {host.cpus}" if host.cpus < 1 else "",
                    only="real",
                    written=lambda value: str(value).startswith("0."),
                    untimely="a share of a processor exists only in real time, and this lab runs in virtual time, "
                    "where processors are free: write `time: real`, or say --time real; or give the host a modelled "
                    "`processor:`",
                    instead="write `cpus: 1`",
                ),
                Feature(
                    name="several processors",
                    asks=lambda host: f"cpus: {host.cpus}" if host.cpus > 1 else "",
                    instead="write `cpus: 1`",
                ),
            ),
        ),
    ] = Field(
        None,
        description="Processors of the host, more than one only on vagrant; or in real time a share of one, from 0.05 "
        "to 0.99. Default: 1.",
    )
    memory: Annotated[
        Annotated[int, *quantity(MEMORY_MB, whole=True)] | None,
        HostSetting(
            by_hand=True,
            features=(
                Feature(
                    name="memory of its own",
                    asks=lambda host: "" if host.memory_mb == DEFAULT_MEMORY_MB else f"memory: {host.memory_mb}MB",
                    instead="leave `memory` out",
                ),
            ),
        ),
    ] = Field(None, description="Memory of the host, from 128MB (MB counts 2^20 bytes). Default: 512MB.")
    processor: Annotated[
        ProcessorSpec | None,
        HostSetting(
            from_start=lambda host: host.processor is not None,
            features=(
                Feature(
                    name="a modelled processor",
                    asks=lambda host: "" if host.processor is None else "processor:",
                    only="virtual",
                    written=lambda value: value is not None,
                    untimely="a modelled processor exists only in virtual time, and this lab runs in real time: write "
                    "`time: virtual`, or say --time virtual",
                ),
            ),
            elsewhere=Elsewhere(
                what="processor", why="no other format has it", has=lambda host: host.processor, lost=True
            ),
        ),
    ] = Field(
        None,
        description="A modelled processor, in virtual time only: frames and calls take time. Default: none, they take "
        "nothing.",
    )
    gateway: Annotated[
        Annotated[bool, *truth("the host has a way out of the lab")] | None,
        HostSetting(
            from_start=lambda host: host.gateway,
            features=(
                Feature(
                    name="a way out",
                    asks=lambda host: "gateway: true" if host.gateway else "",
                    only="real",
                    written=lambda value: value == "true",
                    untimely="a way out exists only in real time, and this lab runs in virtual time: what lies "
                    "outside does not follow the lab's clock; write `time: real`, or say --time real",
                ),
            ),
            elsewhere=Elsewhere(
                what="gateway",
                why="every other format has a way out of its own",
                has=lambda host: host.gateway,
                lost=False,
            ),
        ),
    ] = Field(
        None,
        description="Whether the host reaches the networks of this machine, in real time on uml only. Default: false.",
    )
    routes: Annotated[
        Annotated[dict[str, str], BeforeValidator(_routes), _ROUTES] | None,
        HostSetting(
            from_start=lambda host: host.own_routes,
            elsewhere=Elsewhere(
                what="routes", why="no other format has them as we do", has=lambda host: host.own_routes, lost=True
            ),
        ),
    ] = Field(
        None,
        description="Static routes of the host: by a host's name or an IPv4 network the neighbour by which packets to "
        "it go. Default: the best ways.",
    )
    sysctls: Annotated[
        Annotated[dict[str, str], *tuning.WRITTEN] | None,
        HostSetting(
            by_hand=True,
            features=(Feature(name="sysctls of a kernel of its own", asks=_of_whole_kernel),),
            elsewhere=Elsewhere(
                what="sysctls",
                why="each format has them otherwise, or not at all",
                has=lambda host: any(each.name != tuning.ECN for each in host.sysctls),
                lost=True,
            ),
        ),
    ] = Field(
        None,
        description="Settings of the host's kernel by their names: buffers, queues, TCP's congestion control. Default: "
        "Linux's own.",
    )
    ecn: Annotated[
        Annotated[str, BeforeValidator(_ECN.parse), WithJsonSchema(_ECN.schema)] | None,
        HostSetting(
            by_hand=True,
            features=(
                Feature(
                    name="accurate ECN",
                    asks=lambda host: "ecn: accurate" if _asks_accurate_ecn(host) else "",
                    only="virtual",
                    written=lambda value: value == "accurate",
                    untimely="accurate ECN exists only in virtual time, whose kernel has it, and this lab runs in real "
                    "time: write `ecn: on`",
                ),
            ),
            elsewhere=Elsewhere(
                what="ecn", why="no other format has it as we do", has=lambda host: _ecn(host) is not None, lost=True
            ),
        ),
    ] = Field(
        None,
        description="Whether TCP asks for ECN: on (RFC 3168), accurate (AccECN) or off, which does not accept it "
        "either. Default: Linux's own: it accepts ECN and does not ask.",
    )
    image: Annotated[
        Annotated[str, *IMAGE] | None,
        HostSetting(
            from_start=lambda host: host.software is not None and host.software.root is not None,
            features=(
                Feature(
                    name="an image of its own",
                    asks=lambda host: "image:" if host.software is not None and host.software.root else "",
                    place=lambda host: host.software and host.software.root and host.software.root.place,
                ),
            ),
            elsewhere=_SOFTWARE.elsewhere,
        ),
    ] = Field(None, description=IMAGE_OF_HOST)
    packages: Annotated[
        Packages | None,
        HostSetting(
            from_start=lambda host: host.software is not None and host.software.packages,
            features=(
                Feature(
                    name="packages",
                    asks=lambda host: "packages:" if host.software is not None and host.software.packages else "",
                    place=lambda host: host.software and host.software.packages[0].place,
                ),
            ),
            elsewhere=_SOFTWARE.elsewhere,
        ),
    ] = Field(None, description=PACKAGES)
    files: Annotated[Files | None, _SOFTWARE] = Field(None, description=FILES)
    environment: Annotated[Environment | None, _SOFTWARE] = Field(None, description=ENVIRONMENT)
    run: Annotated[Commands | None, _SOFTWARE] = Field(None, description=RUN)
    containers: Annotated[
        tuple[ContainerSpec, ...] | None,
        HostSetting(from_start=lambda host: host.containers, elsewhere=_SOFTWARE.elsewhere),
    ] = Field(None, description="Containers of your own on the host, in the lab's overlay. Default: none.")
    compose: Annotated[Annotated[ComposeSpec, *A_FILE] | None, _SOFTWARE] = Field(
        None, description="A Compose file whose services are containers on the host. Default: none."
    )


HOST_SETTINGS: Mapping[str, HostSetting] = {
    key: each for key, info in HostSpec.model_fields.items() for each in info.metadata if isinstance(each, HostSetting)
}
"""The settings by key, in the order of `HostSpec`."""
FEATURES = tuple(feature for each in HOST_SETTINGS.values() for feature in each.features)
BY_HAND = tuple(key for key, each in HOST_SETTINGS.items() if each.by_hand)


def merged(layers: tuple[HostSpec | None, ...]) -> HostSpec:
    """The settings of a host from its layers, the nearest first: each key from the first layer that has it."""
    near = [layer for layer in layers if layer is not None]
    given = {
        key: next((value for each in near if (value := getattr(each, key)) is not None), None) for key in HOST_SETTINGS
    }
    return HostSpec.model_construct(**given)  # each of them has been accepted


def untimely_keys(settings: Mapping[str, Data], time: Time) -> Iterator[tuple[str, str]]:
    """Yield each key of a host's settings in a file that does not apply to a lab of `time`, and why."""
    for key, setting in HOST_SETTINGS.items():
        for feature in setting.features:
            if feature.only not in (None, time) and feature.written(settings.get(key)):
                yield key, feature.untimely


def untimely_hosts(host: Host, time: Time) -> Iterator[str]:
    """Yield a message for each feature that a planned host needs and that does not apply to a lab of `time`."""
    for feature in FEATURES:
        if feature.only not in (None, time) and feature.asks(host):
            yield f"{host.name}: {feature.name} exists only in {feature.only} time, and the plan has {time} time"
