"""Which machine explains that echo requests have no answer."""

from __future__ import annotations

import pytest

from minigts.judge.silence import explain_silence
from minigts.topology.read.load import parse

CHAIN = "name: chain\nchain: {hosts: [a, b, c, d]}\n"
STAR = "name: star\nhosts: {a: , b: , c: }\nswitches: {s: }\nlinks: [{ends: [a, s]}, {ends: [b, s]}, {ends: [c, s]}]\n"


@pytest.mark.parametrize(
    ("silent", "machines"),
    [
        (["a-b", "c-b", "d-b"], [("b",)]),  # it drops echo requests
        (["a-c", "a-d", "c-a", "d-a"], [("b",)]),  # it does not forward
        (["a-b", "b-a", "b-c", "c-b", "a-c", "c-a", "a-d", "d-a", "b-d", "d-b"], [("b",)]),  # it is a bridge
        (["a-d"], [("b", "c")]),
        (["a-b", "d-c"], [("b",), ("c",)]),
        (["a-b"], [("b",)]),
    ],
)
def test_one_machine_explains_as_much_as_it_can(silent: list[str], machines: list[tuple[str, ...]]) -> None:
    pairs = [tuple(each.split("-")) for each in silent]
    found = explain_silence(parse(CHAIN, "chain.yaml"), [(first, second) for first, second in pairs], {})
    assert [each.machines for each in found] == machines
    assert sorted(pair for each in found for pair in each.pairs) == sorted(pairs)


def test_a_switch_is_asked_after_where_all_behind_it_are_silent() -> None:
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    (found,) = explain_silence(parse(STAR, "star.yaml"), pairs, {})
    assert found.in_words == "not reached: b from a, c from b, c from a: does s forward or filter?"
