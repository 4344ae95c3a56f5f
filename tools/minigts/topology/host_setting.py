"""The description of a key of hosts, for every module that needs it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minigts.language.tree import Data
from minigts.topology.plan.elements import Host
from minigts.topology.time import Time


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
