"""A link with the delays of a file: the shares of its values in virtual time, and the same table in netem."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import quiet, state_directory, take_down
from minigts import lab as labs
from minigts.errors import InputError
from minigts.fidelity import measure
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.read.load import load

LIMIT_S = 120.0
VALUES_MS = (10.0, 11.0, 12.0, 12.5, 13.0, 20.0, 21.0, 22.0, 40.0, 60.0)
TOPOLOGY = (
    "name: listed\nhosts: {ams: , bra: }\n"
    "links: [{ends: [ams, bra], jitter: {table: {to: delays.txt, from: none}, order: free}}]\n"
)
COUNT = 400
FURTHEST = math.sqrt(math.log(2e4) / (2 * COUNT))
"""By how much two distributions may differ where one is drawn from the other, but for a chance of 1e-4 (Massart 1990):
0.11."""
OWN_MS = 1.0
"""What the hosts themselves add at the most, in real time on a busy machine in most cases."""


def made(time: str, directory: Path) -> Lab:
    (directory / "delays.txt").write_text("".join(f"{each}\n" for each in VALUES_MS))
    (directory / "listed.yaml").write_text(TOPOLOGY)
    return labs.up(load(directory / "listed.yaml", time=time), "uml", None, quiet)  # type: ignore[arg-type]


@pytest.fixture(params=["virtual", pytest.param("real", marks=[pytest.mark.uml, pytest.mark.nightly])])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    with state_directory(tmp_path / "state"):
        up = made(request.param, tmp_path)
    yield up
    take_down(up)


def furthest(found: list[float], values: list[float], slack_ms: float) -> float:
    """The greatest distance of the two distributions, where a figure may be above a value by so much."""
    found, values = sorted(found), sorted(values)
    return max(
        max(
            bisect_right(values, at) / len(values) - bisect_right(found, at + slack_ms) / len(found),
            bisect_right(found, at) / len(found) - bisect_right(values, at) / len(values),
        )
        for at in values
    )


@pytest.mark.virtual
@pytest.mark.nightly
def test_each_value_has_its_share(lab: Lab) -> None:
    assert [row.note for row in measure.settings(lab, quiet) if not row.ok] == []
    address = lab.plan.address_over(lab.plan.path("ams", "bra"))
    lab.provider.run("ams", ["ping", "-c", "2", address], timeout_s=LIMIT_S)  # ARP has its delay, too
    argv = ["ping", "-i", "0.07", "-c", str(COUNT), address]
    said = user_text(lab.provider.run("ams", argv, timeout_s=LIMIT_S).stdout)
    rtts_ms = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", said)]
    assert len(rtts_ms) == COUNT
    exact = lab.time == "virtual"
    distance = furthest(rtts_ms, list(VALUES_MS), 0.2 if exact else OWN_MS)
    assert distance < (FURTHEST if exact else FURTHEST + 0.1)
    if exact:
        # ping cuts off what is below 0.1 ms, and a quantile is rounded to a part of a microsecond.
        assert all(any(abs(rtt - each) < 0.15 for each in VALUES_MS) for rtt in rtts_ms)


@pytest.mark.virtual
def test_it_is_set_to_another_distribution_and_back(lab: Lab) -> None:
    """Each change is read back (`update_settings`)."""
    for word in ("normal", "table"):
        labs.update_settings(lab, "ams-bra", {"jitter_distribution": word, "jitter_ms": 2.0}, "ams")
    with pytest.raises(InputError, match="no table of delays"):
        labs.update_settings(lab, "ams-bra", {"jitter_distribution": "table", "jitter_ms": 2.0}, "bra")
