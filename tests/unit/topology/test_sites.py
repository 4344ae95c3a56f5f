"""GTS's sites, and where the delay of a link comes from."""

from __future__ import annotations

from itertools import combinations

import pytest

from minigts.errors import InputError
from minigts.formats.geography import distance_km, fibre_ms
from minigts.topology import sites
from minigts.topology.plan.elements import Link
from minigts.topology.plan.plan import plan_json
from minigts.topology.read.load import parse

PAIR = (
    "name: t\n{delays}hosts: {{a: {{location: {first}}}, b: {{location: {second}}}}}\nlinks: [{{ends: [a, b]{own}}}]\n"
)


def link(first: str, second: str, own: str = "", delays: str = "delays: sites\n") -> Link:
    return parse(PAIR.format(first=first, second=second, own=own, delays=delays), "t.yaml").links[0]


@pytest.mark.parametrize(
    ("first", "second", "own", "rtt_ms", "source"),
    [
        ("AMS", "BRA", "", 17.7, "measured"),
        ("BRA", "AMS", "", 17.7, "measured"),
        ("AMS", "BRA", ", delay: 3ms", 6, "file"),
        ("AMS", "BRA", ", rtt: 0ms", 0, "file"),
        ("AMS", "AMS", "", 0, "same site"),
        ("AMS", "LON", "", 2 * fibre_ms(358), "distance"),
    ],
)
def test_the_nearest_source_wins(first: str, second: str, own: str, rtt_ms: float, source: str) -> None:
    found = link(first, second, own)
    assert found.delay_from == source
    assert found.rtt_ms == pytest.approx(rtt_ms, abs=0.03)


def test_without_the_word_a_location_is_a_label() -> None:
    text = PAIR.format(first="AMS", second="BRA", own="", delays="")
    plan = parse(text, "t.yaml")
    assert (plan.links[0].rtt_ms, plan.links[0].delay_from) == (0, None)
    assert "delay_from" not in plan_json(plan)


def test_what_is_no_site_is_an_error_with_its_line() -> None:
    with pytest.raises(InputError, match=r"t\.yaml:3: hosts\.a\.location: no site 'Here'; sites are AMS, BRA"):
        link("Here", "BRA")


def test_an_end_without_a_location_makes_no_delay() -> None:
    plan = parse("name: t\ndelays: sites\npair: {hosts: [a, b]}\n", "t.yaml")
    assert (plan.links[0].rtt_ms, plan.links[0].delay_from) == (0, "no site")


@pytest.mark.parametrize(("first", "second"), list(combinations(sites.SITES, 2)))
def test_no_two_sites_are_nearer_than_light_in_fibre(first: str, second: str) -> None:
    km = distance_km(sites.SITES[first], sites.SITES[second])
    assert 200 < km < 2500
    assert sites.rtt_ms(first, second)[0] >= 2 * fibre_ms(km, detour=1)


def test_the_detour_is_that_of_the_two_pairs_that_went_straightest() -> None:
    detours = sorted(
        measured / 2 / fibre_ms(distance_km(*(sites.SITES[name] for name in pair)), detour=1)
        for pair, measured in sites.MEASURED_RTT_MS.items()
    )
    assert detours[:2] == pytest.approx([1.84, 1.98], abs=0.01)
    assert detours[2] > 3
