"""Every provider, by the name that a user writes. A new provider needs a folder and a line here."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from pathlib import Path

from minigts.errors import InputError
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.providers.base import Provider
from minigts.topology.time import Time


def _later(place: str) -> Callable[[Path], Provider]:
    """A function that makes a provider of the class at `place`, and imports the class's module only when called."""

    def make_one(rundir: Path) -> Provider:
        made: Provider = pkgutil.resolve_name(f"{__package__}.{place}")(rundir)
        return made

    return make_one


_PROVIDERS = {
    "uml": _later("uml.provider:UmlProvider"),
    "vagrant": _later("vagrant.provider:VagrantProvider"),
    "mininet": _later("mininet.provider:MininetProvider"),
}
_IN_VIRTUAL_TIME = {"uml": _later("uml.virtual:VirtualUmlProvider")}
"""The providers whose labs can have their own clock."""


def names() -> tuple[str, ...]:
    return tuple(_PROVIDERS)


def best_time(name: str) -> Time:
    """The default time of that provider's labs. Raises InputError for an unknown name."""
    _require(name)
    return "virtual" if name in _IN_VIRTUAL_TIME else "real"


def has_virtual_time(name: str) -> bool:
    """Whether labs of the provider called `name` can have their own clock."""
    return name in _IN_VIRTUAL_TIME


def make(name: str, rundir: Path, time: Time = "real") -> Provider:
    """The provider called `name` for the lab in `rundir`, in that time. Raises InputError for an unknown name, and for
    a time that the provider lacks.
    """
    _require(name)
    if time == "real":
        return _PROVIDERS[name](rundir)
    if name not in _IN_VIRTUAL_TIME:
        able = " or ".join(_IN_VIRTUAL_TIME)
        raise InputError(f"provider {name} has no virtual time: say --time real, or choose --provider {able}")
    return _IN_VIRTUAL_TIME[name](rundir)


def every(rundir: Path) -> tuple[Provider, ...]:
    """Every provider for the lab in `rundir`, once for each time that it has."""
    makers = (*_IN_VIRTUAL_TIME.values(), *_PROVIDERS.values())
    return tuple(maker(rundir) for maker in makers)


def _require(name: str) -> None:
    if name not in _PROVIDERS:
        hint = did_you_mean(name, _PROVIDERS)
        raise InputError(f"no provider {quote(name)}; providers are {list_names([*_PROVIDERS])}{hint}")
