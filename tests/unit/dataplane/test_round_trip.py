"""What a round trip takes over wires, against sums done by hand."""

from __future__ import annotations

import pytest

from minigts.dataplane import round_trip
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

CHAIN = "name: row\ntime: virtual\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n"
UNLIMITED = "name: two\ntime: virtual\npair: {link: {rtt: 10ms}}\n"
MODELLED = """\
name: slow
time: virtual
defaults: {host: {processor: {frame: 20us, byte: 2ns}}}
chain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}
"""


def plan(text: str) -> Plan:
    return parse(text, "test.yaml")


def test_it_is_the_delays_and_each_frames_own_time_on_each_link() -> None:
    row = plan(CHAIN)
    own_ns = 98 * 8 * 20  # a bit takes 20 ns
    assert round_trip.frames_ns(row, row.path("h1", "h3"), 98) == 20_000_000 + 4 * own_ns
    assert round_trip.echo_ms(row, row.path("h1", "h3")) == pytest.approx(20 + 4 * own_ns / 1e6)
    assert round_trip.echo_ms(row, row.path("h1", "h2"), added_bytes=50) == pytest.approx(10 + 2 * 148 * 160 / 1e6)


def test_without_a_rate_frames_take_no_time_of_their_own() -> None:
    two = plan(UNLIMITED)
    assert round_trip.frames_ns(two, two.path("h1", "h2"), 1514) == 10_000_000


def test_a_part_of_a_nanosecond_counts_as_a_whole_one() -> None:
    odd = plan("name: two\ntime: virtual\npair: {link: {rtt: 10ms, rate: 30mbit}}\n")
    assert round_trip.frames_ns(odd, odd.path("h1", "h2"), 98) == 10_000_000 + 2 * 26_134


def test_modelled_processors_take_their_time_of_every_frame_at_every_port() -> None:
    row, free = plan(MODELLED), plan(CHAIN)
    frame_ns = 20_000 + 2 * 98
    added_ns = round_trip.frames_ns(row, row.path("h1", "h3"), 98) - round_trip.frames_ns(
        free, free.path("h1", "h3"), 98
    )
    assert added_ns == 2 * 4 * frame_ns


@pytest.mark.parametrize(
    ("link", "payload_bytes", "expected_s"),
    [
        ("rtt: 10ms", 56, 0.0),
        ("rtt: 10ms, rate: 50mbit", 56, 98 * 8 / 50e6),
        ("rtt: 10ms, rate: 50mbit", 1472, 1514 * 8 / 50e6),
        ("rate: {to: 50mbit, from: 1mbit}", 56, 98 * 8 / 1e6),
    ],
)
def test_an_echo_is_as_long_as_the_lowest_rate_either_way_makes_it(
    link: str, payload_bytes: int, expected_s: float
) -> None:
    two = plan(f"name: two\npair: {{link: {{{link}}}}}\n")
    found_s = round_trip.echo_s_at_lowest_rate(two, two.path("h1", "h2"), payload_bytes)
    assert found_s == pytest.approx(expected_s)
