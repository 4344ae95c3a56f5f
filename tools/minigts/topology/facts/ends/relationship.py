"""What the two ends of a link are to each other in business: customer, peer or provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.language.problems import Finding, path_of
from minigts.topology.end_setting import EndSetting
from minigts.topology.host_setting import Elsewhere
from minigts.topology.read.declared import DraftLink
from minigts.topology.routes import valley_free
from minigts.topology.routes.valley_free import RELATIONSHIPS, Bond, Relationships


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    """All links have one, or none; nobody is its own customer's customer."""
    first = next((link for link in links if link.relationship is not None), None)
    if first is None:
        return
    joined: dict[frozenset[str], DraftLink] = {}
    for link in links:
        if link.relationship is None and link.whole:
            remedy = "say what its second end is to its first: customer, peer or provider"
            yield link.where, f"no relationship, and {path_of(first.where)} has one: {remedy}"
            return
        if link.costs is not None:
            yield (
                link.where,
                "both cost and relationship are given, and each says which route is best: give one of them",
            )
            return
        if (other := joined.setdefault(frozenset(link.ends), link)) is not link:
            why = f"{path_of(other.where)} joins {' and '.join(link.ends)} already"
            yield link.where, f"{why}, and with relationships two hosts share one link at the most"
    if ring := _ring(links):
        customers = ", ".join(
            f"{one} is a customer of {other}" for one, other in zip(ring, (*ring[1:], ring[0]), strict=True)
        )
        yield first.where[:1], f"{customers}: such routes may never settle; let one of them be a peer"


def _ring(links: Sequence[DraftLink]) -> list[str]:
    names = list(dict.fromkeys(name for link in links for name in link.ends))
    numbers = {name: number for number, name in enumerate(names)}
    bonds = [Bond((numbers[link.ends[0]], numbers[link.ends[1]]), link.relationship) for link in links]
    return [names[each] for each in Relationships(len(names), bonds).customer_ring()]


Relationship: TypeAlias = Annotated[
    Annotated[valley_free.Relationship, choice("a relationship", *RELATIONSHIPS)] | None,
    EndSetting(
        problems=_problems,
        elsewhere=Elsewhere(
            what="relationship",
            why="no other format has it",
            has=lambda of: of.link.relationship is not None,
            lost=True,
        ),
        page="""\
optional, on all links or none, with [`routing: bgp`](#routing) · `customer`, `peer` or `provider` · default: none ·
`relationship: customer`

What the second end is to the first: in `{ends: [isp, shop], relationship: customer}` shop buys transit of isp. Each host
is then an autonomous system, and its BGP has the policies by which the Internet's networks trade
([relationships](routing-protocols.md#customers-peers-and-providers)): routes of customers are preferred to those of
peers, and these to those of providers; peers and providers are told of own and customers' addresses alone. Round trips
and costs decide nothing. Not with `cost`, `ecmp` or an overlay; two hosts share one link at the most; nobody may be a
customer of its own customers. Two hosts between which no such way leads do not reach each other, and `minigts plan`
counts these pairs.
""",
    ),
    Field(
        description="With routing bgp: what the second end is to the first, customer, peer or provider. Routes are "
        "chosen and announced by it. Default: none."
    ),
]
