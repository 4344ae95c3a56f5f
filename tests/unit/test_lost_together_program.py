"""The program that sees whether two links lose their packets independently."""

from __future__ import annotations

import random
import struct

import pytest
from host_programs import loaded

LOST_TOGETHER = loaded("lost_together")


def lost(count: int, seed: int) -> list[bool]:
    chance = random.Random(seed)
    return [chance.random() < 0.5 for _ in range(count)]


@pytest.mark.parametrize(("identifier", "number"), [(0, 0), (1, 3999), (1, 0xFFFF)])
def test_a_request_has_the_sum_that_makes_its_words_zero(identifier: int, number: int) -> None:
    packet = LOST_TOGETHER.request(identifier, number)
    total = sum(struct.unpack("!4H", packet))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert packet[0] == 8 and packet[4:] == struct.pack("!HH", identifier, number)


def test_independent_links_have_small_coefficients() -> None:
    found = LOST_TOGETHER.analysis(lost(4000, 1), lost(4000, 2))
    assert abs(found["together_r"]) < 0.064 and abs(found["next_r"]) < 0.064
    assert 47.76 < found["lost_percent"] < 52.24


@pytest.mark.parametrize("shift", [-3, 0, 2])
def test_links_with_the_same_random_numbers_are_told_though_one_is_some_packets_ahead(shift: int) -> None:
    one = lost(4003, 1)
    other = one[shift:] if shift >= 0 else [False] * -shift + one
    together = LOST_TOGETHER.analysis(one[:4000], other[:4000])["together_r"]
    assert together == pytest.approx(1, abs=0.01)


def test_a_loss_that_depends_on_the_one_before_is_told() -> None:
    in_turn = [bool(number % 2) for number in range(4000)]
    assert LOST_TOGETHER.analysis(in_turn, lost(4000, 2))["next_r"] == pytest.approx(-1, abs=0.01)


def test_links_that_lose_nothing_have_no_coefficient() -> None:
    none = [False] * 100
    assert LOST_TOGETHER.analysis(none, none) == {"lost_percent": 0, "together_r": 0, "next_r": 0}
