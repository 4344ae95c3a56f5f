"""The shorthands of a topology file."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from minigts.language.fields import whole
from minigts.language.problems import quote
from minigts.language.spec import Spec
from minigts.topology.fields import HOST_NAME, MOST_HOSTS
from minigts.topology.host_settings import HostSpec
from minigts.topology.read.links import HostName, LinkSettings, two_ends

MOST_UPLINKS = 1024
"""Links between leaves and spines, as between 32 and 32; the default block has as many subnets."""


def _names_or_count(least: int, letter: str, what: str = "hosts") -> Callable[[object], list[object]]:
    """Names as they are, or a number N for `letter`1 … `letter`N; `what` says in errors whose names they are."""

    def parse(value: object) -> list[object]:
        if isinstance(value, list):
            if not least <= len(value) <= MOST_HOSTS:
                raise ValueError(f"{len(value)} names given; from {least} to {MOST_HOSTS} are possible")
            return value
        text = value if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value, re.ASCII) else ""
        if not text or not least <= int(text) <= MOST_HOSTS:
            wanted = f"write a number from {least} to {MOST_HOSTS}, or a list of names"
            raise ValueError(f"{quote(value)} does not say which {what}: {wanted}")
        return [f"{letter}{number}" for number in range(1, int(text) + 1)]

    return parse


def _names_schema(least: int) -> WithJsonSchema:
    names = {"type": "array", "items": {"type": "string", "pattern": f"^{HOST_NAME.pattern}$"}, "minItems": least}
    return WithJsonSchema({"anyOf": [{"type": "integer", "minimum": least, "maximum": MOST_HOSTS}, names]})


class _Shorthand(Spec):
    link: LinkSettings | None = Field(None, description="Settings of every link of the shape.")
    host: HostSpec | None = Field(None, description="Settings of every host of the shape.")


class Chain(_Shorthand):
    """Hosts in a row, each joined to the next."""

    hosts: Annotated[tuple[HostName, ...], BeforeValidator(_names_or_count(2, "h")), _names_schema(2)] = Field(
        description="How many hosts (h1, h2, …), or their names in order."
    )
    segments: tuple[LinkSettings | None, ...] | None = Field(
        None, description="Settings of each segment in order, one fewer than hosts; they override `link`."
    )

    @model_validator(mode="after")
    def _one_for_each_segment(self) -> Self:
        wanted = len(self.hosts) - 1
        if self.segments is not None and len(self.segments) != wanted:
            raise ValueError(f"{len(self.segments)} segments given; {wanted + 1} hosts in a row have {wanted}")
        return self


class Ring(_Shorthand):
    """Hosts in a ring: each is joined to the next, the last to the first."""

    hosts: Annotated[tuple[HostName, ...], BeforeValidator(_names_or_count(3, "h")), _names_schema(3)] = Field(
        description="How many hosts (h1, h2, …), three or more, or their names in order."
    )
    segments: tuple[LinkSettings | None, ...] | None = Field(
        None,
        description="Settings of each segment in order, as many as hosts; the last joins the last host to the first. "
        "They override `link`.",
    )

    @model_validator(mode="after")
    def _one_for_each_segment(self) -> Self:
        wanted = len(self.hosts)
        if self.segments is not None and len(self.segments) != wanted:
            raise ValueError(f"{len(self.segments)} segments given; {wanted} hosts in a ring have {wanted}")
        return self


class Pair(_Shorthand):
    """Two hosts and one link."""

    hosts: Annotated[
        tuple[HostName, HostName],
        BeforeValidator(two_ends),
        WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}),
    ] = Field(("h1", "h2"), description="The names of the two hosts. Default: [h1, h2].")


class Star(_Shorthand):
    """A centre, joined to every client."""

    clients: Annotated[tuple[HostName, ...], BeforeValidator(_names_or_count(1, "c")), _names_schema(1)] = Field(
        description="How many clients (c1, c2, …), or their names in order."
    )
    centre: HostName = Field("centre", description="Name of the host in the middle. Default: centre.")


_SPINES, _LEAVES = _names_or_count(1, "spine", "spines"), _names_or_count(1, "leaf", "leaves")


class Clos(_Shorthand):
    """Hosts on leaves, each leaf joined to every spine. Leaves and spines are hosts that forward."""

    spines: Annotated[tuple[HostName, ...], BeforeValidator(_SPINES), _names_schema(1)] = Field(
        description="How many spines (spine1, spine2, …), or their names in order."
    )
    leaves: Annotated[tuple[HostName, ...], BeforeValidator(_LEAVES), _names_schema(1)] = Field(
        description="How many leaves (leaf1, leaf2, …), or their names in order."
    )
    hosts: Annotated[int, *whole("the number of hosts on each leaf", 0, MOST_HOSTS)] = Field(
        description="How many hosts each leaf has: h1, h2, … on the first leaf, the following ones on the next."
    )
    uplink: LinkSettings | None = Field(
        None, description="Settings of the links between leaves and spines; they override `link`."
    )

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        spines, leaves = len(self.spines), len(self.leaves)
        if (count := spines + leaves + leaves * self.hosts) > MOST_HOSTS:
            sum_of = f"{spines} spines, {leaves} leaves and {leaves} times {self.hosts} hosts"
            raise ValueError(f"{sum_of} are {count}; at most {MOST_HOSTS} are possible")
        if (count := spines * leaves) > MOST_UPLINKS:
            joined = f"{count} links join {leaves} leaves to {spines} spines"
            raise ValueError(f"{joined}; at most {MOST_UPLINKS} are possible")
        return self
