"""A shell of satellites on circular orbits (Walker), and stations on the ground, as links over time. Pure.

The Earth is a sphere that turns; orbits are circles around its centre, with the period of Kepler's third law. P planes
are spread evenly over 360 degrees of the equator (delta) or over 180 (star), and S satellites evenly over each plane. A
satellite of the next plane is ahead by `phasing` / (P S) of a round. Each satellite has links to the one before and
behind it and to those of the same number in the planes beside, over which light takes the distance in a vacuum. In a
star the first plane and the last one, which meet head-on, have none. A station has a link to the satellite that stands
highest, as long as one stands high enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from minigts.errors import InputError
from minigts.formats.geography import EARTH_KM, LIGHT_KM_MS, Site
from minigts.formats.limits import MOST_HOSTS
from minigts.formats.network import Network, NetworkLink, NetworkMachine, number, subnets_for
from minigts.generators.internet import CITIES
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.language.tree import Data

EARTH_KM3_S2 = 398_600.4418
"""The Earth's gravitational parameter (WGS 84)."""
TURN_RAD_S = 7.2921159e-5
"""How fast the Earth turns against the stars (the same)."""
ATMOSPHERE_KM = 80.0
"""How high a beam between satellites passes at the least."""
LEAST_ELEVATION = 25.0
"""The degrees above the horizon from which a station uses a satellite."""
STEP_MS = 0.1
"""A delay is set anew once it differs by this from the one that is set."""
MOST_CHANGES = 20_000
"""As many as a schedule has."""
Pattern = Literal["delta", "star"]
_Place = tuple[float, float, float]


@dataclass(frozen=True)
class Constellation:
    """The satellites' orbits."""

    planes: int
    each: int
    altitude_km: float
    inclination: float
    phasing: int = 0
    pattern: Pattern = "delta"
    least_elevation: float = LEAST_ELEVATION
    """How high above its horizon a station's satellite stands at the least, in degrees."""

    @property
    def radius_km(self) -> float:
        return EARTH_KM + self.altitude_km

    @property
    def rad_s(self) -> float:
        """How fast a satellite goes round."""
        return math.sqrt(EARTH_KM3_S2 / self.radius_km**3)

    @property
    def period_s(self) -> float:
        return 2 * math.pi / self.rad_s

    def place(self, plane: int, index: int, at_s: float) -> _Place:
        """Where a satellite is, in km from the Earth's centre, in axes that do not turn."""
        round_ = 2 * math.pi if self.pattern == "delta" else math.pi
        node = round_ * plane / self.planes
        along = 2 * math.pi * (index / self.each + self.phasing * plane / (self.planes * self.each)) + self.rad_s * at_s
        tilt = math.radians(self.inclination)
        up, side = math.sin(along) * math.sin(tilt), math.sin(along) * math.cos(tilt)
        return (
            self.radius_km * (math.cos(node) * math.cos(along) - math.sin(node) * side),
            self.radius_km * (math.sin(node) * math.cos(along) + math.cos(node) * side),
            self.radius_km * up,
        )

    def neighbours(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """The pairs of satellites with a link, each by plane and number in it."""
        for plane in range(self.planes):
            for index in range(self.each):
                if self.each > 2 or index + 1 < self.each:
                    yield (plane, index), (plane, (index + 1) % self.each)
        for plane in range(self.planes):
            last = plane + 1 == self.planes
            if not last or (self.pattern == "delta" and self.planes > 2):
                for index in range(self.each):
                    # All around, the planes' lead adds up to `phasing` satellites.
                    ahead = self.phasing if last else 0
                    yield (plane, index), ((plane + 1) % self.planes, (index + ahead) % self.each)


class _Window(NamedTuple):
    begin_s: float
    end_s: float


def station_place(site: Site, at_s: float) -> _Place:
    """Where a station is, as `Constellation.place`."""
    north, east = math.radians(site.north), math.radians(site.east) + TURN_RAD_S * at_s
    flat = EARTH_KM * math.cos(north)
    return flat * math.cos(east), flat * math.sin(east), EARTH_KM * math.sin(north)


def elevation(station: _Place, satellite: _Place) -> float:
    """The degrees at which a satellite stands above a station's horizon; negative below it."""
    towards = tuple(far - near for near, far in zip(station, satellite, strict=True))
    sine = sum(one * other for one, other in zip(station, towards, strict=True)) / (EARTH_KM * math.hypot(*towards))
    return math.degrees(math.asin(max(-1.0, min(1.0, sine))))


def least_height_km(one: _Place, other: _Place) -> float:
    """How high the straight line between two places passes above the Earth's surface at its lowest."""
    along = tuple(far - near for near, far in zip(one, other, strict=True))
    squared = sum(each * each for each in along)
    share = -sum(near * each for near, each in zip(one, along, strict=True)) / squared if squared else 0.0
    share = min(1.0, max(0.0, share))
    return math.hypot(*(near + share * each for near, each in zip(one, along, strict=True))) - EARTH_KM


def delay_ms(one: _Place, other: _Place) -> float:
    """How long light takes from one place to the other, in a vacuum, to the microsecond."""
    return round(math.dist(one, other) / LIGHT_KM_MS, 3)


def satellites(
    shell: Constellation, stations: Sequence[str], length_s: int, every_s: int, *, light: bool = False
) -> Network:
    """The shell and stations in these cities, as light hosts or not, with a schedule of `length_s`.

    Raises InputError."""
    sites = _sites(stations)
    _require_a_lab(shell, len(sites), length_s, every_s)
    moments = range(0, length_s, every_s)
    names = {(p, s): f"s{p + 1}-{s + 1}" for p in range(shell.planes) for s in range(shell.each)}
    places = [{key: shell.place(*key, at_s) for key in names} for at_s in moments]
    links: list[NetworkLink] = []
    steps: list[tuple[float, int, Mapping[str, Data]]] = []

    def add(ends: tuple[str, str], delays: Sequence[float | None]) -> None:
        """A link with its delay at each moment, None where it is down."""
        there = [each for each in delays if each is not None]
        if not there:
            return
        links.append(NetworkLink(ends, delay_ms=(there[0], there[0])))
        for at_s, step in _steps(delays, moments, length_s):
            steps.append((at_s, len(links), {"at": f"{number(at_s)}s", "link": f"{ends[0]}-{ends[1]}", **step}))

    for one, other in shell.neighbours():
        both = [(now[one], now[other]) for now in places]
        seen = [None if least_height_km(*pair) < ATMOSPHERE_KM else delay_ms(*pair) for pair in both]
        add((names[one], names[other]), seen)
    for site in sites:
        name = _host_name(site)
        serving = [
            _highest(station_place(site, at_s), now, shell.least_elevation)
            for at_s, now in zip(moments, places, strict=True)
        ]
        if None in serving:
            alone = f"for {sum(each is None for each in serving) * every_s} s of {length_s} s none stands high enough"
            if all(each is None for each in serving):
                raise InputError(
                    f"--stations: {site.city} sees no satellite {shell.least_elevation:g} degrees high: {alone}"
                )
        for key, satellite in names.items():
            add((name, satellite), [each[1] if each and each[0] == key else None for each in serving])
    if len(steps) > MOST_CHANGES:
        why = f"{len(steps)} changes, and a schedule has at most {MOST_CHANGES}"
        raise InputError(f"{why}: take a smaller --length, or a larger --every")
    machines = [NetworkMachine(name) for name in names.values()]
    machines += [NetworkMachine(_host_name(site), location=site.city) for site in sites]
    return Network(
        f"satellites-{shell.planes}-{shell.each}",
        tuple(machines),
        tuple(links),
        description=f"{shell.planes} planes of {shell.each} satellites, {shell.altitude_km:g} km high, inclined by "
        f"{shell.inclination:g} degrees, phasing {shell.phasing}, {shell.pattern}: a round takes {shell.period_s:.0f} "
        f"s. `minigts play` plays {length_s} s of it.",
        routing="ospf",
        subnets=subnets_for(len(links)),
        light=light,
        schedule=tuple(step for _, _, step in sorted(steps, key=lambda each: each[:2])),
    )


def _highest(
    station: _Place, now: Mapping[tuple[int, int], _Place], least: float
) -> tuple[tuple[int, int], float] | None:
    """The satellite that stands highest above a station, with its delay; None where all are too low."""
    height, key = max((elevation(station, place), each) for each, place in now.items())
    return None if height < least else (key, delay_ms(station, now[key]))


def _steps(
    delays: Sequence[float | None], moments: Sequence[int], length_s: int
) -> Iterator[tuple[float, Mapping[str, Data]]]:
    """What a schedule does to a link with these delays, None where it is down."""
    now_ms = next(each for each in delays if each is not None)
    down_since: int | None = None
    for at_s, each in zip(moments, delays, strict=True):
        if each is None:
            down_since = at_s if down_since is None else down_since
            continue
        if down_since is not None:
            yield down_since, {"down": f"{at_s - down_since}s"}
            down_since = None
        if abs(each - now_ms) >= STEP_MS:
            now_ms = each
            yield at_s, {"set": {"delay": f"{number(each)}ms"}}
    if down_since is not None:
        yield down_since, {"down": f"{length_s - down_since}s"}


def _sites(stations: Sequence[str]) -> list[Site]:
    known = {_host_name(each): each for each in CITIES}
    found = []
    for written in stations:
        name = written.strip().lower().replace(" ", "-")
        if name not in known:
            why = f"no city {quote(written)}; cities are {list_names(list(known))}{did_you_mean(name, list(known))}"
            raise InputError(f"--stations: {why}")
        found.append(known[name])
    if len({*found}) < len(found):
        raise InputError("--stations: a city is there twice")
    return found


def _host_name(site: Site) -> str:
    return site.city.lower().replace(" ", "-")


def _require_a_lab(shell: Constellation, stations: int, length_s: int, every_s: int) -> None:
    bounds = (
        ("--planes", shell.planes, 1, MOST_HOSTS),
        ("--each", shell.each, 2, MOST_HOSTS),
        ("--altitude", shell.altitude_km, 200, 36_000),
        ("--inclination", shell.inclination, 0, 180),
        ("--phasing", shell.phasing, 0, shell.planes - 1),
        ("--elevation", shell.least_elevation, 0, 89),
        ("--length", length_s, 1, 86_400),
        ("--every", every_s, 1, length_s),
    )
    for option, value, least, most in bounds:
        if not least <= value <= most:
            raise InputError(f"{option} {value:g}: from {least:g} to {most:g}")
    if (count := shell.planes * shell.each + stations) > MOST_HOSTS:
        raise InputError(f"{count} satellites and stations; a lab has at most {MOST_HOSTS}")
    if shell.radius_km * math.cos(math.pi / shell.each) < EARTH_KM + ATMOSPHERE_KM:
        why = "the Earth is between a satellite and the next one of its plane"
        raise InputError(f"--each {shell.each}, --altitude {shell.altitude_km:g}: {why}: take more or higher ones")
