"""Where the topology figure puts hosts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import pytest

from minigts.report.topology_figure import DOWN, ROW, positions
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.elements import Host, HostPort, Link
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.addresses import mac


def plan(count: int, *pairs: tuple[int, int]) -> Plan:
    """A plan of hosts h0, h1, … and the links named by their numbers."""
    links = tuple(
        Link(
            name=f"h{a}-h{b}",
            index=index,
            ends=(f"h{a}", f"h{b}"),
            subnet=f"10.{1 + index // 250}.{index % 250}.0/30",
            rtt_ms=1.0,
            rate_mbit=None,
            loss_percent=0.0,
        )
        for index, (a, b) in enumerate(pairs)
    )
    hosts = tuple(
        Host(
            name=f"h{index}",
            index=index,
            location=None,
            cpus=1,
            memory_mb=128,
            address=f"10.255.0.{index + 1}",
            ports=ports(f"h{index}", links),
        )
        for index in range(count)
    )
    return Plan(name="p", description="", routing="routed", overlay="none", hosts=hosts, links=links)


def ports(host: str, links: Sequence[Link]) -> tuple[HostPort, ...]:
    """A host's ends of its links, as a plan must have them."""
    own = [(link, link.ends.index(host)) for link in links if host in link.ends]
    return tuple(
        HostPort(
            name=f"eth{number}",
            mac=mac(link.index, end),
            mtu=1500,
            link=link.name,
            peer_host=link.ends[1 - end],
            address=link.subnet.replace(".0/30", f".{1 + end}"),
            prefix=30,
            peer_address=link.subnet.replace(".0/30", f".{2 - end}"),
            outgoing=Shaping(),
            incoming=Shaping(),
        )
        for number, (link, end) in enumerate(own, start=1)
    )


def chain(count: int) -> Plan:
    return plan(count, *((index, index + 1) for index in range(count - 1)))


def star(clients: int) -> Plan:
    return plan(clients + 1, *((0, index) for index in range(1, clients + 1)))


def test_chain_is_a_row() -> None:
    assert list(positions(chain(6)).values()) == [(float(index), 0.0) for index in range(6)]


def test_long_chain_turns_back() -> None:
    placed = positions(chain(ROW + 2))
    assert placed[f"h{ROW}"] == (ROW - 1.0, -DOWN)
    assert placed[f"h{ROW + 1}"] == (ROW - 2.0, -DOWN)


def test_chain_in_any_order_of_the_file_is_a_row() -> None:
    placed = positions(plan(3, (0, 2), (2, 1)))
    assert [placed[name][0] for name in ("h0", "h2", "h1")] == [0.0, 1.0, 2.0]


def test_pairs_stand_beneath_each_other() -> None:
    placed = positions(plan(4, (0, 1), (2, 3)))
    assert placed == {"h0": (0.0, 0.0), "h1": (1.0, 0.0), "h2": (0.0, -1.0), "h3": (1.0, -1.0)}


def test_star_keeps_clients_at_one_distance() -> None:
    placed = positions(star(9))
    assert len({round(math.dist(placed["h0"], placed[f"h{index}"]), 6) for index in range(1, 10)}) == 1


def test_one_host_alone() -> None:
    assert positions(plan(1)) == {"h0": (0.0, 0.0)}


@pytest.mark.parametrize(
    "drawn",
    [
        chain(2),
        chain(40),
        star(3),
        star(12),
        plan(4, (0, 1), (1, 2), (2, 3), (3, 0)),
        plan(5, (0, 1), (1, 2), (1, 3)),
    ],
    ids=["pair", "chain40", "star3", "star12", "ring", "tree"],
)
def test_no_two_hosts_touch(drawn: Plan) -> None:
    placed = positions(drawn)
    assert len(placed) == len(drawn.hosts)
    assert min(math.dist(a, b) for a, b in combinations(placed.values(), 2)) > 0.9


def test_what_hangs_on_a_row_stands_around_it() -> None:
    placed = positions(plan(7, (0, 1), (0, 2), (0, 3), (3, 4), (3, 5), (3, 6)))
    assert placed["h0"][1] == pytest.approx(placed["h3"][1])
    assert all(placed[leaf][0] < placed["h0"][0] for leaf in ("h1", "h2"))
    assert all(placed[leaf][0] > placed["h3"][0] for leaf in ("h4", "h5", "h6"))
    assert min(math.dist(placed[a], placed[b]) for a, b in combinations(placed, 2)) > 0.8
