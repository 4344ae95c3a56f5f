"""The description of a key of hosts, for every module that needs it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from minigts.language.problems import Finding, Location
from minigts.language.tree import Data
from minigts.topology.plan.elements import Host, Link, Switch
from minigts.topology.time import Time

T_contra = TypeVar("T_contra", contravariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Feature(Generic[T_contra]):
    """Something that a host, or a lab, may need and not every lab supports. A provider declares which features it
    supports."""

    name: str
    asks: Callable[[T_contra], str]
    """The setting by which a planned host needs it, as in a file: `cpus: 0.5`; empty when it does not need it."""
    place: Callable[[T_contra], object] = lambda _: ""
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
class Elsewhere(Generic[T_contra]):
    """How a key is reported when a lab is written in another tool's format, which has no word for it."""

    what: str
    why: str
    has: Callable[[T_contra], object]
    lost: bool
    """Whether it affects the network, so that a file without it describes another lab."""
    words: Callable[[T_contra], str] | None = None
    """What it is, where that depends on the value. Default: `what`."""


class PlannedNetwork(NamedTuple):
    """The parts of a plan on which a host's setting may depend."""

    hosts: Sequence[Host]
    switches: Sequence[Switch]
    links: Sequence[Link]
    routing: str
    ecmp: bool


class Misfit(NamedTuple):
    """Why a host's setting cannot hold in a network."""

    host: str
    where: Location
    """The place below the host's key."""
    why: str


def _nothing(*_: object) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True, kw_only=True, eq=False)
class HostSetting:
    """The properties of one key of a host."""

    page: str
    """Its section of the reference page, with those of the keys below it, but for what `reference_page` adds."""
    by_hand: bool = False
    """Whether `minigts add host` takes it. Other keys have their defaults there."""
    from_start: Callable[[Host], object] | None = None
    """Whether a planned host has something of it that only a host has which is there from the lab's start on. None: a
    host that is added to a lab may have it."""
    features: tuple[Feature[Host], ...] = ()
    elsewhere: Elsewhere[Host] | None = None
    field: str = ""
    """The field of a planned host that follows from it. Default: the key."""
    planned: Callable[[Any], object] | None = None
    """The value of that field for the value in a file, or for None; None where more than the key decides it. Where
    several keys have the same field, it has the sorted entries of all of them."""
    problems: Callable[[Any, Mapping[str, Data]], Iterator[Finding]] = _nothing
    """What is wrong with its value in this document, with the places below the key."""
    resolved: Callable[[Any, Host, Sequence[Host]], tuple[object, Sequence[Finding]]] | None = None
    """The value of its field that depends on the other hosts, and what is wrong with it, with the places below the
    key."""
    misfits: Callable[[PlannedNetwork], Iterator[Misfit]] = _nothing
    """What of the hosts' settings cannot hold in a network. Raises KeyError and ValueError where its addresses do not
    hang together."""
    sentences: Callable[[Sequence[Host]], Iterator[str]] = _nothing
    """What `minigts plan` says of the hosts that have it."""
