"""The part of a plan that plan.json and manifest.json store; the rest follows from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from minigts.formats.limits import MOST_NOTES
from minigts.topology import ipv6 as v6
from minigts.topology.addressing import DEFAULT_SUBNETS
from minigts.topology.fields import (
    MOST_HOSTS,
    MOST_LINKS,
    Description,
    Expectation,
    Name,
    Network,
    Note,
    OwnSeed,
)
from minigts.topology.parts import Frozen, Group, Host, Link, Switch, Tolerances
from minigts.topology.schedule import MOST_MOMENTS, Moment
from minigts.topology.time import Time

VERSION: Literal[2] = 2
MOST_REPLICATES = 1000
WITH_ROUTES = 1
"""The version of documents with routes and paths, which older plans have, and which `minigts plan --json` prints."""


class Stored(Frozen):
    version: Literal[2] = VERSION
    name: Name
    description: Description
    routing: Literal["routed", "neighbours", "ospf", "bgp"]
    time: Time = "real"
    overlay: Name
    groups: Annotated[tuple[Group, ...], Field(max_length=MOST_HOSTS)] = ()
    """Groups with an overlay each; without groups one overlay spans all hosts. A host is in one group at the most."""
    hosts: Annotated[tuple[Host, ...], Field(min_length=1, max_length=MOST_HOSTS)]
    switches: Annotated[tuple[Switch, ...], Field(max_length=MOST_HOSTS)] = ()
    links: Annotated[tuple[Link, ...], Field(max_length=MOST_LINKS)]
    expect: tuple[Expectation, ...] = ()
    """The file's `expect:` entries, as written."""
    tolerances: Tolerances = Tolerances()
    ipv6: Annotated[v6.Ipv6 | None, Field(exclude_if=lambda beside: beside is None)] = None
    """The IPv6 addresses of hosts and ports. None, which is not stored, where IPv6 is off on links."""
    subnets: Annotated[Network, Field(exclude_if=lambda block: block == DEFAULT_SUBNETS)] = DEFAULT_SUBNETS
    """The block from which segments without a subnet of their own get one. The default is not stored."""
    seed: Annotated[OwnSeed, Field(exclude_if=lambda seed: not seed)] = 0
    """The seed of the random numbers of its links, and of links that are added. The default, 0, is not stored."""
    schedule: Annotated[tuple[Moment, ...], Field(max_length=MOST_MOMENTS, exclude_if=lambda each: not each)] = ()
    """What its links do over time when the schedule is played. An empty one is not stored."""
    notes: Annotated[tuple[Note, ...], Field(max_length=MOST_NOTES + 1, exclude_if=lambda notes: not notes)] = ()
    """What its file, in another language, has and a lab ignores. An empty list is not stored."""
    replicate: Annotated[int, Field(ge=0, le=MOST_REPLICATES, exclude_if=lambda number: not number)] = 0
    """The number of the replicate (topology/chance.py). 0, which is not stored, is the lab as declared, with every
    host's clock in step."""

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, document: Any) -> Any:
        """Leave routes and paths out of a document of the first version: they are computed again."""
        if not isinstance(document, dict) or document.get("version") != WITH_ROUTES:
            return document
        kept = {key: value for key, value in document.items() if key != "paths"}
        if isinstance(beside := kept.get("ipv6"), dict):
            kept["ipv6"] = {**beside, "hosts": _without_routes(beside.get("hosts"))}
        return {**kept, "version": VERSION, "hosts": _without_routes(kept.get("hosts"))}

    @property
    def machines(self) -> tuple[Host | Switch, ...]:
        """Everything that runs: the hosts, then the switches."""
        return (*self.hosts, *self.switches)


def _without_routes(hosts: Any) -> Any:
    if not isinstance(hosts, list):
        return hosts
    return [
        {key: value for key, value in host.items() if key != "routes"} if isinstance(host, dict) else host
        for host in hosts
    ]
