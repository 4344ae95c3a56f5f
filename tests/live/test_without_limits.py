"""TCP that nothing limits in virtual time is refused, since it would hardly end; what limits it lets it end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minigts import api
from minigts.errors import InputError
from minigts.lab import Lab

TEXT = """
name: limits
hosts: {a: , b: , c: , d: {processor: {frame: 500us}}}
links: [{ends: [a, b]}, {ends: [a, c], rate: 20mbit}, {ends: [d, b]}]
"""


@pytest.mark.virtual
@pytest.mark.timeout(600)
def test_tcp_without_any_limit_is_refused_and_with_one_it_ends(make_lab: Callable[..., Lab]) -> None:
    lab = api.Lab(make_lab(TEXT))
    with pytest.raises(InputError, match=r"a to b: nothing limits TCP: .* neither a rate nor a delay"):
        lab.throughput("a", "b")
    lab.link("a", "b").change(delay="10us")
    with pytest.raises(InputError, match=r"no rate, and a round trip of 0\.02 ms"):
        lab.throughput("a", "b")
    assert lab.throughput("a", "c", seconds=1).reaches_ceiling
    assert 10 < lab.throughput("d", "b", seconds=1).mbit < 25
    lab.link("a", "b").change(rate="20mbit")
    assert lab.throughput("a", "b", seconds=1).reaches_ceiling
