"""What two runs were made with, compared: topology, experiment, versions, machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from minigts.language.figures import digits
from minigts.report import phrasing
from minigts.report.read import provenance
from minigts.results.schema import Manifest

GROUPS = ("topology", "experiment", "lab", "version", "machine")
_VERSIONS = ("minigts", "commit", "tools", "parts")
_LINK = ("rtt_ms", "rate_mbit", "loss_percent")
_BACK = ("delay_ms", "rate_mbit", "loss_percent")
_NOT_COMPARED = frozenset(
    {"noise_before", "noise_after", "certificate", "readback", "guard", "overlays", "emulator", "claims_sha256"}
)
"""What differs between any two runs, or follows from what is compared."""
_WORDS = frozenset({"title", "description", "text", "claims", "published", "figures", "quick", "paper"})
"""Parts of an experiment that change nothing of what is measured."""


@dataclass(frozen=True)
class Change:
    """One setting that differs; a value that only one run has is empty in the other."""

    group: str
    what: str
    a: str
    b: str


def changes(a: Manifest | None, b: Manifest | None) -> tuple[Change, ...]:
    """Every setting in which the two differ, topology first."""
    first, second = dict(_settings(a)), dict(_settings(b))
    found = [
        Change(*key, first.get(key, ""), second.get(key, ""))
        for key in dict.fromkeys((*first, *second))
        if first.get(key, "") != second.get(key, "")
    ]
    return tuple(sorted(found, key=lambda change: GROUPS.index(change.group)))


def _settings(manifest: Manifest | None) -> Iterator[tuple[tuple[str, str], str]]:
    if manifest is None:
        return
    yield from _topology(manifest)
    experiment = manifest.experiment.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for name, value in experiment.items():
        if name not in _WORDS:
            yield from ((("experiment", what.removeprefix("measurements.")), text) for what, text in _flat(name, value))
    yield ("lab", "provider"), manifest.provider
    yield ("lab", "time"), phrasing.clock(manifest.plan)
    for name, value in provenance(manifest).items():
        if name in _NOT_COMPARED:
            continue
        group = "version" if name in _VERSIONS else "machine" if name == "machine" else "lab"
        yield from (((group, what.removeprefix(f"{group}.")), text) for what, text in _flat(name, value))
    yield from ((("version", f"package {name}"), version) for name, version in manifest.packages.items())
    for overlay, facts in manifest.overlays.items():
        mtus = {str(endpoint.mtu) for endpoint in facts.endpoints.values()}
        yield ("lab", f"MTU of {overlay}"), ", ".join(sorted(mtus))


def _topology(manifest: Manifest) -> Iterator[tuple[tuple[str, str], str]]:
    plan = manifest.plan
    yield ("topology", "name"), plan.name
    yield ("topology", "hosts"), ", ".join(host.name for host in plan.hosts)
    for host in plan.hosts:
        yield ("topology", f"{host.name}: cpus, memory"), f"{host.cpus}, {host.memory_mb} MB"
        for each in host.sysctls:
            yield ("topology", f"{host.name}: {each.name}"), each.value
    for group in plan.groups:
        yield ("topology", f"group {group.name}"), ", ".join(group.hosts)
    for link in plan.links:
        for name in _LINK:
            if (value := getattr(link, name, None)) is not None:
                yield ("topology", f"{' – '.join(link.ends)}: {name.replace('_', ' ')}"), digits(value, 9)
        for name in _BACK if link.back is not None else ():
            if (value := getattr(link.back, name, None)) is not None:
                yield ("topology", f"{' – '.join(link.ends)}: {name.replace('_', ' ')}, back"), digits(value, 9)


def _flat(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """A tree's leaves by their dotted names; a list of named things by those names."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif (
        isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(each, Mapping) for each in value)
    ):
        for index, each in enumerate(value):
            label = each.get("name", index) if isinstance(each, Mapping) else index
            yield from _flat(f"{name}.{label}", each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
