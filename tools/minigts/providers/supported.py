"""What a topology asks for that not every provider has: each declares what it supports, and all else is refused
here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minigts.errors import EnvironmentLacks
from minigts.providers import registry
from minigts.providers.base import CARRIERS, Supports
from minigts.topology.host_settings import FEATURES
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.model import LAB_SETTINGS

LAB_FEATURES = tuple(feature for each in LAB_SETTINGS.values() for feature in each.features)
PORT_0 = "an interface eth0"


@dataclass(frozen=True)
class RequiredFeature:
    """A feature that a plan asks for."""

    feature: str
    by: str
    """Who asks, such as `ams, bra with `cpus: 0.5``, after the place in the file if that is known."""
    instead: str = ""
    """What to write instead; empty if there is nothing."""


def names() -> tuple[str, ...]:
    """The names of all features, in the order of the settings that ask for them."""
    of_links = (name for each in LINK_SETTINGS for name in (each.feature, *each.features.values()) if name is not None)
    of_labs = (feature.name for feature in LAB_FEATURES)
    return tuple(dict.fromkeys((*(feature.name for feature in FEATURES), *of_links, *of_labs, PORT_0, CARRIERS)))


def required_features(plan: Plan) -> Iterator[RequiredFeature]:
    """The features that the plan asks for."""
    for feature in FEATURES:
        hosts = [host for host in plan.hosts if feature.asks(host)]
        if hosts:
            words = " and ".join(dict.fromkeys(f"`{feature.asks(host)}`" for host in hosts))
            place = feature.place(hosts[0])
            by = f"{f'{place}: ' if place else ''}{', '.join(host.name for host in hosts)} with {words}"
            yield RequiredFeature(feature.name, by, feature.instead)
    yield from _asked_by_links(plan)
    if first := [each.name for each in plan.machines if any(port.number == 0 for port in each.ports)]:
        yield RequiredFeature(PORT_0, f"{', '.join(first)} with `interfaces: eth0`", "write eth1 or another port")
    if pulled := dict.fromkeys(moment.link for moment in plan.schedule if moment.carrier_lost):
        yield RequiredFeature(
            CARRIERS, f"{', '.join(pulled)} with `schedule: [{{down: …}}]`", "write `cut:` for `down:`"
        )
    for of_lab in LAB_FEATURES:
        if words := of_lab.asks(plan):
            yield RequiredFeature(
                of_lab.name, f"{', '.join(host.name for host in plan.hosts)} with `{words}`", of_lab.instead
            )


def _asked_by_links(plan: Plan) -> Iterator[RequiredFeature]:
    for setting in (each for each in LINK_SETTINGS if each.feature is not None):
        ways = ((link.name, way) for link in plan.links for way in plan.directions(link))
        links = dict.fromkeys(name for name, way in ways if getattr(way, setting.field) != setting.default)
        if links and setting.feature is not None:
            yield RequiredFeature(setting.feature, f"{', '.join(links)} with `{setting.word}`")
    for setting in (each for each in LINK_SETTINGS if each.features):
        for value, needed in setting.features.items():
            has = ((link.name, getattr(way, setting.field)) for link in plan.links for way in plan.directions(link))
            if asking := dict.fromkeys(name for name, its in has if its == value):
                yield RequiredFeature(needed, f"{', '.join(asking)} with `{setting.word}: {value}`")


def require(plan: Plan, provider: str, supports: Supports) -> None:
    """Raise EnvironmentLacks when the plan asks for a feature that the provider does not support.

    The message says who asks, why this provider lacks the feature, and which others have it.
    """
    for each in required_features(plan):
        refuse(each, provider, supports)


def refuse(what: RequiredFeature, provider: str, supports: Supports) -> None:
    """Raise EnvironmentLacks unless the feature is supported."""
    if what.feature in supports.features:
        return
    why = supports.why_not.get(what.feature, "it does not declare it")
    others = dict.fromkeys(each.name for each in registry.every(Path()) if what.feature in each.supports.features)
    able = f"provider {next(iter(others))} does" if len(others) == 1 else f"providers {' and '.join(others)} do"
    hints = [*([able] if others else []), *([what.instead] if what.instead else [])]
    hint = f"; {', or '.join(hints)}" if hints else ""
    raise EnvironmentLacks(f"{what.by}: provider {provider} does not support {what.feature}, since {why}{hint}")


def packages_of(host: Host) -> tuple[str, ...]:
    """The names of the packages that a host asks for, sorted, each once."""
    return tuple(sorted({each.name for each in host.software.packages})) if host.software is not None else ()
