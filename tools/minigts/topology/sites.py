"""GTS's sites, and the delay of a link between two of them, for a topology that says `delays: sites`. Pure.

Three sources, the nearest wins: the file's own `delay` or `rtt`; the round trip that was measured in 2016; else the
time that light takes through fibre between the two cities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from minigts.formats.geography import Site, distance_km, fibre_ms
from minigts.language.problems import Finding, quote
from minigts.language.tree import Data
from minigts.topology.read.declared import Draft, DraftLink
from minigts.topology.read.per_direction import BothWays

DelaySource: TypeAlias = Literal["file", "measured", "distance", "same site", "no site"]
"""Where a link's delay comes from. `no site`: an end without a location, so no delay."""


SITES: Mapping[str, Site] = {
    "AMS": Site("Amsterdam", 52.37, 4.90),
    "BRA": Site("Bratislava", 48.15, 17.11),
    "CPH": Site("Copenhagen", 55.68, 12.57),
    "HAM": Site("Hamburg", 53.55, 9.99),
    "LJU": Site("Ljubljana", 46.06, 14.51),
    "LON": Site("London", 51.51, -0.13),
    "MAD": Site("Madrid", 40.42, -3.70),
    "MIL": Site("Milan", 45.46, 9.19),
    "PAR": Site("Paris", 48.86, 2.35),
    "PRG": Site("Prague", 50.08, 14.44),
}
"""GTS's sites, at the centres of their cities."""

MEASURED_RTT_MS: Mapping[frozenset[str], float] = {
    frozenset(("AMS", "MIL")): 36.5,
    frozenset(("AMS", "LJU")): 30.3,
    frozenset(("AMS", "BRA")): 17.7,
    frozenset(("MIL", "LJU")): 62.1,
    frozenset(("MIL", "BRA")): 13.0,
    frozenset(("BRA", "LJU")): 47.4,
}
"""Mean round trips between GTS's sites in 2016, between containers over libnetwork: the study's (Zismer, *Performance
of Docker Overlay Networks*, University of Amsterdam, 2016; `docs/evidence/documents.md`)."""

_WORD = "sites"


def rtt_ms(first: str, second: str) -> tuple[float, DelaySource]:
    """The round trip between two sites, and where it comes from. Raises KeyError for what is no site."""
    one, other = SITES[first], SITES[second]
    if first == second:
        return 0.0, "same site"
    if (measured := MEASURED_RTT_MS.get(frozenset((first, second)))) is not None:
        return measured, "measured"
    return 2 * fibre_ms(distance_km(one, other)), "distance"


def uses_sites(data: Data) -> bool:
    """Whether the document says `delays: sites`."""
    return isinstance(data, dict) and data.get("delays") == _WORD


def add_site_delays(drafted: Draft) -> Draft:
    """The draft with delays between sites for the links that have none of their own."""
    where = {machine.name: machine.location for machine in drafted.machines}
    return replace(drafted, links=tuple(add_site_delay(link, where) for link in drafted.links))


def add_site_delay(link: DraftLink, where: Mapping[str, str | None]) -> DraftLink:
    """The link with its delay between sites. `where` has the location of each machine."""
    if link.own_delay:
        return replace(link, delay_from="file")
    first, second = (where.get(end) for end in link.ends)
    if first is None or second is None or first not in SITES or second not in SITES:
        return replace(link, delay_from="no site")
    both_ms, source = rtt_ms(first, second)
    to, back = (way.model_copy(update={"delay_ms": round(both_ms / 2, 6)}) for way in link.ways)
    return replace(link, ways=BothWays(to, back), delay_from=source)


def check(drafted: Draft) -> Iterator[Finding]:
    """Findings for machines whose location is no site, and whose links need one for their delay."""
    asking: Collection[str] = {end for link in drafted.links if link.delay_from == "no site" for end in link.ends}
    for machine in drafted.machines:
        if machine.name in asking and (problem := no_site(machine.location)) is not None:
            yield (*machine.where, "location"), problem


def no_site(location: str | None) -> str | None:
    """Why a link's delay cannot come from that location; None for a site, and without a location."""
    if location is None or location in SITES:
        return None
    return f"no site {quote(location)}; sites are {', '.join(SITES)}; or give its links a delay"
