"""Every provider, by the name a user writes. A new one is a folder and a line here."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from minigts.errors import InputError
from minigts.providers.base import Provider
from minigts.providers.mininet.provider import MininetProvider
from minigts.providers.uml.provider import UmlProvider
from minigts.providers.vagrant.provider import VagrantProvider

_PROVIDERS: dict[str, Callable[[Path], Provider]] = {
    "uml": UmlProvider,
    "vagrant": VagrantProvider,
    "mininet": MininetProvider,
}


def names() -> tuple[str, ...]:
    return tuple(_PROVIDERS)


def make(name: str, rundir: Path) -> Provider:
    """The provider called `name` for the lab in `rundir`. Raises InputError for a name that is not there."""
    try:
        return _PROVIDERS[name](rundir)
    except KeyError:
        close = get_close_matches(name, _PROVIDERS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"no provider {name!r}{hint} Providers are {', '.join(_PROVIDERS)}") from None
