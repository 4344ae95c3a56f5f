"""Distances on the earth, and the time that light takes for them in fibre. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

EARTH_KM = 6371.0
LIGHT_KM_MS = 299.792458
REFRACTION = 1.468
"""The group index of fibre of ITU-T G.652 at 1550 nm, from its makers' data sheets."""
DETOUR = 1.8
"""How many times longer fibre is than the distance. The figure is minigts' own: AMS-BRA and MIL-BRA, the two most
direct of GTS's measured pairs, have round trips for 1.8 and 2.0; traffic of the other pairs went by a third city."""
_DIGITS = 2


@dataclass(frozen=True)
class Site:
    """A place by its name, and by degrees north and east."""

    city: str
    north: float
    east: float


def distance_km(first: Site, second: Site) -> float:
    """The distance along the earth's surface (the haversine formula)."""
    north, east = math.radians(second.north - first.north), math.radians(second.east - first.east)
    cosines = math.cos(math.radians(first.north)) * math.cos(math.radians(second.north))
    half = math.sin(north / 2) ** 2 + cosines * math.sin(east / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(min(1.0, half)))


def fibre_ms(km: float, detour: float = DETOUR) -> float:
    """The one-way delay of fibre between places at this distance, to the hundredth of a millisecond."""
    return round(km * detour * REFRACTION / LIGHT_KM_MS, _DIGITS)
