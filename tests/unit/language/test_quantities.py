from __future__ import annotations

import re

import pytest

from minigts.language.quantities import LOAD_PERCENT, LOSS_PERCENT, MEMORY_MB, RATE_MBIT, SIZE_BYTES, TIME_MS, Quantity
from minigts.topology.read.load import parse


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (TIME_MS, "10ms", 10.0),
        (TIME_MS, "21.75ms", 21.75),
        (TIME_MS, "250us", 0.25),
        (TIME_MS, "1s", 1000.0),
        (TIME_MS, "0ms", 0.0),
        (TIME_MS, "1 ms", 1.0),
        (RATE_MBIT, "100mbit", 100.0),
        (RATE_MBIT, "1gbit", 1000.0),
        (RATE_MBIT, "500kbit", 0.5),
        (RATE_MBIT, "2.5Gbit", 2500.0),
        (LOSS_PERCENT, "0.1%", 0.1),
        (LOSS_PERCENT, "100%", 100.0),
        (SIZE_BYTES, "100kB", 100_000.0),
        (SIZE_BYTES, "64KiB", 65_536.0),
        (MEMORY_MB, "512MB", 512.0),
        (MEMORY_MB, "2GiB", 2048.0),
    ],
)
def test_written_quantity_is_read(kind: Quantity, written: str, value: float) -> None:
    assert kind.parse(written) == value


@pytest.mark.parametrize(
    ("kind", "written", "message"),
    [
        (TIME_MS, "10", "'10' lacks its unit: write a time as in 10ms"),
        (RATE_MBIT, "0", "'0' lacks its unit: write a rate as in 100mbit"),
        (RATE_MBIT, "0mbit", "out of range"),
        (RATE_MBIT, "100mbps", "unknown unit 'mbps'"),
        (TIME_MS, "-1ms", "out of range: a time is from 0ms to 10s"),
        (LOSS_PERCENT, "100.1%", "out of range: a loss is from 0% to 100%"),
        (LOAD_PERCENT, "40.5%", "'40.5%' is no whole number: write a share as in 40%"),
        (SIZE_BYTES, "100kb", "unknown unit 'kb'"),
        (MEMORY_MB, "127MB", "from 128MB"),
        (TIME_MS, "1e3ms", "is not a time"),
        (TIME_MS, "nanms", "is not a time"),
        (TIME_MS, "١ms", "is not a time"),
        (TIME_MS, "", "is not a time"),
        (TIME_MS, None, "nothing is not a time"),
        (TIME_MS, ["1ms"], "a list is not a time"),
        (TIME_MS, "9" * 10_000 + "ms", "is not a time"),
    ],
)
def test_wrong_quantity_is_explained(kind: Quantity, written: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        kind.parse(written)
    assert len(str(caught.value)) < 200


def test_a_fraction_is_kept_in_a_time_and_rounded_where_whole_units_are_counted() -> None:
    plan = parse("name: x\nhosts: {a: {memory: 1.3GB}, b: }\nlinks: [{ends: [a, b], rtt: 21.75ms}]\n", "x.yaml")
    assert [host.memory_mb for host in plan.hosts] == [1331, 512]
    assert [link.rtt_ms for link in plan.links] == [21.75]


@pytest.mark.parametrize("kind", [TIME_MS, RATE_MBIT, LOSS_PERCENT, SIZE_BYTES, MEMORY_MB], ids=lambda kind: kind.what)
def test_schema_pattern_agrees_with_the_parser(kind: Quantity) -> None:
    assert re.search(kind.pattern, kind.example)
    assert not re.search(kind.pattern, kind.example.rstrip("%abcdefghijklmnopqrstuvwxyzMBG"))
