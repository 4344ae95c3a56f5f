"""What a file may say of a host: all its keys, each from its own file (`facts/hosts`), with what becomes of each
elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from minigts.language.problems import path_of
from minigts.language.spec import Spec
from minigts.language.tree import Data
from minigts.topology.facts.hosts.asn import Asn
from minigts.topology.facts.hosts.containers import Compose, Containers
from minigts.topology.facts.hosts.cpus import Cpus
from minigts.topology.facts.hosts.disk import Disk
from minigts.topology.facts.hosts.ecn import Ecn
from minigts.topology.facts.hosts.gateway import Gateway
from minigts.topology.facts.hosts.kernel import Kernel
from minigts.topology.facts.hosts.light import Light
from minigts.topology.facts.hosts.location import Location
from minigts.topology.facts.hosts.memory import Memory
from minigts.topology.facts.hosts.processor import Processor
from minigts.topology.facts.hosts.routes import Routes
from minigts.topology.facts.hosts.routing import Routing
from minigts.topology.facts.hosts.software import EnvironmentKey, FilesKey, Image, PackagesKey, Run
from minigts.topology.facts.hosts.sysctls import Sysctls
from minigts.topology.host_setting import HostSetting, PlannedNetwork
from minigts.topology.plan.elements import Host
from minigts.topology.time import Time

_Entries = tuple[Any, ...]


class HostSpec(Spec):
    """The settings of a host. None is required: `ams:` alone declares a host."""

    location: Location = None
    cpus: Cpus = None
    memory: Memory = None
    disk: Disk = None
    kernel: Kernel = None
    light: Light = None
    processor: Processor = None
    gateway: Gateway = None
    routes: Routes = None
    routing: Routing = None
    asn: Asn = None
    sysctls: Sysctls = None
    ecn: Ecn = None
    image: Image = None
    packages: PackagesKey = None
    files: FilesKey = None
    environment: EnvironmentKey = None
    run: Run = None
    containers: Containers = None
    compose: Compose = None


HOST_SETTINGS: Mapping[str, HostSetting] = {
    key: each for key, info in HostSpec.model_fields.items() for each in info.metadata if isinstance(each, HostSetting)
}
"""The settings by key, in the order of `HostSpec`."""
FEATURES = tuple(feature for each in HOST_SETTINGS.values() for feature in each.features)
BY_HAND = tuple(key for key, each in HOST_SETTINGS.items() if each.by_hand)


def field_of(key: str) -> str:
    """The field of a planned host that follows from this key."""
    return HOST_SETTINGS[key].field or key


def keys_of(field: str) -> tuple[str, ...]:
    """The keys from which this field of a planned host follows; itself for one that follows from none."""
    return tuple(key for key in HOST_SETTINGS if field_of(key) == field) or (field,)


def planned_fields(spec: HostSpec) -> dict[str, object]:
    """The fields of a planned host that follow from its own keys alone. Where several keys have the same field, it has
    the entries of all of them, sorted by their names."""
    found: dict[str, object] = {}
    for key, setting in HOST_SETTINGS.items():
        if setting.planned is not None:
            value, field = setting.planned(getattr(spec, key)), field_of(key)
            found[field] = _joined(found[field], value) if field in found else value
    return found


def _joined(some: Any, more: Any) -> _Entries:
    return tuple(sorted((*some, *more), key=lambda entry: entry.name))


def misfits(network: PlannedNetwork) -> Iterator[str]:
    """Yield a sentence for each setting of a planned host that cannot hold in the network."""
    for key, setting in HOST_SETTINGS.items():
        try:
            yield from (
                f"host {host}: {path_of((key, *where))}: {why}" for host, where, why in setting.misfits(network)
            )
        except (KeyError, ValueError):
            yield f"{key} of hosts: links and addresses do not hang together"


def sentences(hosts: Sequence[Host]) -> Iterator[str]:
    """What `minigts plan` says of the hosts' settings that are in no table."""
    for setting in HOST_SETTINGS.values():
        yield from setting.sentences(hosts)


def merge(layers: tuple[HostSpec | None, ...]) -> HostSpec:
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
