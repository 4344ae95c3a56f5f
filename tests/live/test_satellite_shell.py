"""A shell of satellites is played: round trips are those of its orbits, and a station goes over to another one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.foreign import user_text
from minigts.formats import network
from minigts.formats.geography import LIGHT_KM_MS, Site
from minigts.generators.satellites import Constellation, delay_ms, satellites, station_place
from minigts.lab import Lab, schedule_player
from minigts.topology.read.load import parse

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(1200),
    pytest.mark.touched("tools/minigts/generators/satellites.py"),
]
EQUATOR = Constellation(1, 9, 2500, 0)
NAIROBI = Site("Nairobi", -1.29, 36.82)
LENGTH_S = 450
"""After some 430 s the second satellite stands as low in the east as the first does in the west."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    text = network.text(satellites(EQUATOR, ["nairobi"], LENGTH_S, 10))
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(parse(text, "shell.yaml", time="virtual"), "uml", None, quiet)
    yield made
    take_down(made)


def one_way_ms(index: int, at_s: float) -> float:
    return delay_ms(station_place(NAIROBI, at_s), EQUATOR.place(0, index, at_s))


def test_a_station_follows_its_satellite_and_goes_over_to_the_next(shell: Lab) -> None:
    assert {link.ends[1] for link in shell.plan.links if link.ends[0] == "nairobi"} == {"s1-1", "s1-2"}
    first, second = (shell.plan.own_address(name) for name in ("s1-1", "s1-2"))
    last_s = LENGTH_S - 10
    script = f"ping -n -c 2 -i 0.3 {second}; sleep {last_s}; ping -n -c 2 -i 0.3 {first}; ping -n -c 2 -i 0.3 {second}"

    def pings() -> str:
        return user_text(shell.provider.run("nairobi", ["sh", "-c", script], timeout_s=600.0).stdout)

    said = schedule_player.play(shell, shell.plan.schedule, lambda _: None, pings)
    least_ms = [float(each) for each in re.findall(r"mdev = ([0-9.]+)/", said or "")]
    along_ms = 2 * 2 * EQUATOR.radius_km * math.sin(math.pi / 9) / LIGHT_KM_MS
    there_ms = 2 * one_way_ms(0, last_s)
    assert least_ms == pytest.approx([2 * one_way_ms(1, 0.0), there_ms, there_ms + along_ms], abs=0.3)
