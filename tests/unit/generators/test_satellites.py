"""Shells of satellites against other formulas: Kepler's period, chords, slant ranges, and what a schedule plays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from minigts.errors import InputError
from minigts.formats import network
from minigts.formats.geography import EARTH_KM, LIGHT_KM_MS, Site
from minigts.generators.satellites import (
    ATMOSPHERE_KM,
    LEAST_ELEVATION,
    STEP_MS,
    Constellation,
    delay_ms,
    elevation,
    least_height_km,
    satellites,
    station_place,
)
from minigts.topology.read.load import parse

IRIDIUM = Constellation(6, 11, 780, 86.4, phasing=3, pattern="star")
SMALL = Constellation(3, 4, 8000, 53, phasing=1)


@pytest.mark.parametrize(("altitude_km", "minutes"), [(550, 95.5), (780, 100.3), (35_786, 1435.0)])
def test_the_period_is_keplers(altitude_km: float, minutes: float) -> None:
    assert Constellation(1, 8, altitude_km, 0).period_s / 60 == pytest.approx(minutes, abs=1.5)
    later = Constellation(1, 8, altitude_km, 60).period_s
    assert Constellation(1, 8, altitude_km, 60).place(0, 3, later) == pytest.approx(
        Constellation(1, 8, altitude_km, 60).place(0, 3, 0.0), abs=1e-6
    )


@pytest.mark.parametrize("at_s", [0.0, 100.0, 2345.6])
def test_the_way_along_a_plane_is_a_chord_at_any_time(at_s: float) -> None:
    chord_km = 2 * (EARTH_KM + 780) * math.sin(math.pi / 11)
    pair = IRIDIUM.place(2, 4, at_s), IRIDIUM.place(2, 5, at_s)
    assert delay_ms(*pair) == pytest.approx(chord_km / LIGHT_KM_MS, abs=0.001)
    assert least_height_km(*pair) == pytest.approx((EARTH_KM + 780) * math.cos(math.pi / 11) - EARTH_KM, abs=1e-6)


def test_planes_of_a_star_are_far_apart_at_the_equator_and_near_at_the_pole() -> None:
    polar = Constellation(6, 12, 780, 90, pattern="star")
    equator, pole = polar.place(0, 0, 0.0), polar.place(0, 3, 0.0)
    assert math.dist(equator, polar.place(1, 0, 0.0)) == pytest.approx(2 * polar.radius_km * math.sin(math.pi / 12))
    assert math.dist(pole, polar.place(1, 3, 0.0)) == pytest.approx(0.0, abs=1e-6)


def test_the_last_plane_of_a_delta_meets_the_first_as_all_others() -> None:
    shell = Constellation(5, 4, 8000, 53, phasing=2)
    pairs = [(one, other) for one, other in shell.neighbours() if one[0] != other[0]]
    assert len(pairs) == 20

    def furthest(plane: int) -> float:
        of = [pair for pair in pairs if pair[0][0] == plane]
        moments = range(0, int(shell.period_s), 20)
        return max(math.dist(shell.place(*one, t), shell.place(*other, t)) for one, other in of for t in moments)

    assert furthest(4) == pytest.approx(furthest(0), rel=1e-3)


@pytest.mark.parametrize("degrees", [5.0, 25.0, 60.0, 90.0])
def test_elevation_and_slant_range_fit(degrees: float) -> None:
    radius = EARTH_KM + 780
    lean = math.radians(degrees)
    slant_km = math.sqrt(radius**2 - (EARTH_KM * math.cos(lean)) ** 2) - EARTH_KM * math.sin(lean)
    between = math.acos((EARTH_KM**2 + radius**2 - slant_km**2) / (2 * EARTH_KM * radius))
    station = station_place(Site("here", 0.0, 0.0), 0.0)
    satellite = (radius * math.cos(between), radius * math.sin(between), 0.0)
    assert elevation(station, satellite) == pytest.approx(degrees, abs=1e-4)
    assert delay_ms(station, satellite) == pytest.approx(slant_km / LIGHT_KM_MS, abs=0.001)


def test_a_station_is_back_after_a_sidereal_day() -> None:
    vienna = Site("Vienna", 48.21, 16.37)
    assert station_place(vienna, 86_164.1) == pytest.approx(station_place(vienna, 0.0), abs=0.2)


def played(made: network.Network, link: int, at_s: float) -> float | None:
    """The delay of a link at a moment, None while it is down, by the schedule's steps in their order."""
    ends = made.links[link].ends
    ways = made.links[link].delay_ms
    assert ways is not None
    now: float = ways[0]
    for step in made.schedule:
        begin = float(str(step["at"]).rstrip("s"))
        if step["link"] != f"{ends[0]}-{ends[1]}" or begin > at_s:
            continue
        if "down" in step and at_s < begin + float(str(step["down"]).rstrip("s")):
            return None
        changed = step.get("set")
        if isinstance(changed, Mapping):
            now = float(str(changed["delay"]).removesuffix("ms"))
    return now


def test_the_schedule_plays_what_the_orbits_say() -> None:
    made = satellites(SMALL, ["vienna", "Sao Paulo"], 3000, 50)
    names = {f"s{p + 1}-{s + 1}": (p, s) for p in range(3) for s in range(4)}
    cities = {"vienna": Site("Vienna", 48.21, 16.37), "sao-paulo": Site("Sao Paulo", -23.55, -46.63)}
    for at_s in (0, 500, 1450, 2950):
        for number, link in enumerate(made.links):
            one, other = link.ends
            satellite = SMALL.place(*names[other], at_s)
            is_ground = one in cities
            near = station_place(cities[one], at_s) if is_ground else SMALL.place(*names[one], at_s)
            hidden = least_height_km(near, satellite) < ATMOSPHERE_KM and not is_ground
            wanted = None if hidden else math.dist(near, satellite) / LIGHT_KM_MS
            if is_ground:
                every = [elevation(near, SMALL.place(*key, at_s)) for key in names.values()]
                best = elevation(near, satellite)
                wanted = wanted if best == max(every) and best >= LEAST_ELEVATION else None
            found = played(made, number, at_s)
            assert (found is None) == (wanted is None), (link.ends, at_s)
            assert found is None or found == pytest.approx(wanted, abs=STEP_MS + 0.001), (link.ends, at_s)


def test_it_is_a_topology_with_one_ground_link_up_at_a_time() -> None:
    made = satellites(SMALL, ["vienna"], 1200, 20)
    plan = parse(network.text(made), "shell.yaml", time="virtual")
    assert plan.routing == "ospf" and len(plan.hosts) == 13 and plan.schedule
    ground = [number for number, link in enumerate(made.links) if link.ends[0] == "vienna"]
    assert all(sum(played(made, each, at_s) is not None for each in ground) <= 1 for at_s in range(0, 1200, 20))


def test_sixty_six_satellites_fit_a_file() -> None:
    made = satellites(IRIDIUM, ["vienna", "new-york"], 600, 10)
    assert len(made.machines) == 68
    assert sum(link.ends[0].startswith("s") for link in made.links) == 66 + 55
    assert len(network.text(made).encode()) < 256_000


WRONG = {
    "--each 4, --altitude 550": lambda: satellites(Constellation(3, 4, 550, 53), [], 60, 10),
    "--altitude 100": lambda: satellites(Constellation(3, 12, 100, 53), [], 60, 10),
    "--phasing 3: from 0 to 2": lambda: satellites(Constellation(3, 12, 550, 53, phasing=3), [], 60, 10),
    "6000 satellites and stations": lambda: satellites(Constellation(100, 60, 550, 53), [], 60, 10),
    "no city 'viena'; cities are .*did you mean 'vienna'": lambda: satellites(SMALL, ["viena"], 60, 10),
    "a city is there twice": lambda: satellites(SMALL, ["vienna", "Vienna"], 60, 10),
    "--every 0": lambda: satellites(SMALL, [], 60, 0),
    "Vienna sees no satellite 25 degrees high": lambda: satellites(Constellation(1, 12, 780, 0), ["vienna"], 60, 10),
}


@pytest.mark.parametrize("message", WRONG)
def test_numbers_that_make_no_shell_are_refused(message: str) -> None:
    with pytest.raises(InputError, match=message):
        WRONG[message]()


def test_a_lower_satellite_serves_where_that_is_asked_for() -> None:
    """A polar shell of 66, as Iridium's: Vienna sees one at first, and none 25 degrees high."""
    with pytest.raises(InputError, match="Vienna sees no satellite 25 degrees high"):
        satellites(IRIDIUM, ["vienna"], 120, 10)
    seen = satellites(replace(IRIDIUM, least_elevation=8), ["vienna"], 120, 10, light=True)
    assert any("vienna" in link.ends for link in seen.links)
    assert parse(network.text(seen), "shell.yaml", time="virtual").sharing == {each.name for each in seen.machines}
