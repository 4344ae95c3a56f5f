"""Prints a topology's plan on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.cli.views import tables

if TYPE_CHECKING:
    from minigts.topology.link_settings import Shaping
    from minigts.topology.plan.elements import Direction, Link, Port
    from minigts.topology.plan.elements import Path as PathOfPlan
    from minigts.topology.plan.plan import Plan

INDENT = 2
ROWS_SHOWN, PORTS_SHOWN = 66, 40
"""The most rows that are printed of hosts, links or pairs (twelve hosts have 66 pairs), and the most ports of one host.
"""


def show_plan(plan: Plan, hiding: str | None = None) -> None:
    """Print a drawing, hosts, links, and the prediction for each pair. With `hiding`, the reason why a lesson's figures
    are hidden, it prints neither pairs nor round trips."""
    out = console.out()
    out.print(f"{plan.name}, in {plan.time} time", style="bold", markup=False, soft_wrap=True)
    out.print()
    if len(plan.machines) <= ROWS_SHOWN:
        from minigts.topology import draw

        inside = min(out.width - INDENT, draw.WIDTH)
        for line in draw.draw(plan, round_trips=hiding is None, width=inside):
            out.print(f"  {line}", markup=False, soft_wrap=True)
    else:
        out.print(f"  {len(plan.machines)} machines: too many to draw", markup=False, soft_wrap=True)
    out.print()
    columns = ("host", "location", "address", *ipv6_column(plan), "on its links", ">cpus", ">memory")
    tables.show_table("hosts", columns, _planned_machines(plan), optional=("cpus", "memory", "location"))
    _further(plan.machines, "machines")
    for words in _sentences(plan):
        out.print(f"{words}\n", markup=False, soft_wrap=True)
    if plan.groups:
        groups = ((group.name, ", ".join(group.hosts)) for group in plan.groups)
        tables.show_table("groups, each with an overlay network of its own", ("group", "hosts"), groups)
    by_sites = any(link.delay_from for link in plan.links)
    by_vlan = any(each.vlans for each in plan.switches)
    by_chance = any(_impairments(plan, link) for link in plan.links)
    by_cost = any(x.cost is not None for x in plan.links)
    links = (
        (
            x.name,
            _subnets(plan, x),
            *([x.vlans_in_words] if by_vlan else []),
            *(_ipv6_cell(plan, None if plan.ipv6 is None else plan.ipv6.subnet(x.name))),
            *([console.ms(x.rtt_ms)] if hiding is None else []),
            *(both(x, show) for show in (delay, rate, loss)),
            _queues(plan, x),
            *([_impairments(plan, x)] if by_chance else []),
            *([x.delay_from or ""] if by_sites else []),
            *([cost(x)] if by_cost else []),
            *([x.relationship or ""] if plan.has_relationships else []),
        )
        for x in plan.links[:ROWS_SHOWN]
    )
    vlans = ["VLAN"] if by_vlan else []
    round_trip = [">RTT"] if hiding is None else []
    columns = ("link", "subnet", *vlans, *ipv6_column(plan), *round_trip, ">delay", ">rate", ">loss", ">queue")
    by_routers = [f">{plan.protocol_title} cost" if plan.has_routers else ">cost"] if by_cost else []
    by_whom = ["second end is"] if plan.has_relationships else []
    also = ["of its packets"] if by_chance else []
    columns = (*columns, *also, *(["delay from"] if by_sites else []), *by_routers, *by_whom)
    tables.show_table("links", columns, links, optional=("queue", "subnet", "delay from", "IPv6", "VLAN"))
    _further(plan.links, "links")
    if hiding is not None:
        return
    paths = [*islice(plan.walk_paths(), ROWS_SHOWN)]
    expected = (
        (
            f"{p.source} – {p.target}",
            str(p.hops),
            *([ways(p)] if plan.has_several_ways else []),
            rtt(p),
            at_most,
            limit,
            console.yes(p.reachable),
        )
        for p in paths
        for at_most, limit in [tcp_at_most(plan, p)]
    )
    by_ways = ["ways"] if plan.has_several_ways else []
    columns = ("pair", ">hops", *by_ways, ">RTT", ">TCP at most", "limit", "routed")
    tables.show_table("expected", columns, expected, optional=("routed", "limit"))
    _further(range(plan.pairs), "pairs")


def _planned_machines(plan: Plan) -> Iterator[tuple[str, ...]]:
    for each in plan.machines[:ROWS_SHOWN]:
        if each.role == "switch":
            addresses = ", ".join(f"{plan.address_of(own)} VLAN {own.vlan}" for own in each.vlans)
        else:
            ports = each.on_segments
            addresses = ", ".join(f"{plan.address_of(port)} {port_label(port)}" for port in ports[:PORTS_SHOWN])
            addresses += f" and {left} more" if (left := len(ports) - PORTS_SHOWN) > 0 else ""
        known = (each.name, each.location or "", plan.address_of(each), *ipv6_address(plan, each.name))
        yield (*known, addresses, f"{each.cpus:g}", f"{each.memory_mb} MB")


def _sentences(plan: Plan) -> Iterator[str]:
    """What hosts and switches have besides their links."""
    from minigts.topology import host_settings
    from minigts.topology.read.model import LAB_SETTINGS

    yield from filter(None, (setting.sentence(plan) for setting in LAB_SETTINGS.values()))
    yield from host_settings.sentences(plan.hosts)
    yield from _of_switches(plan)


def _of_switches(plan: Plan) -> Iterator[str]:
    """Sentences about the spanning trees of switches, and about rings that a controller decides on."""
    roots = plan.tree().roots
    for root in dict.fromkeys(roots.values()):
        inside = [each.name for each in plan.switches if roots.get(each.name) == root]
        off = [link.name for link in plan.links if link.name in plan.blocked and link.ends[0] in inside]
        what = f"blocked by the spanning tree: {', '.join(off)}" if off else "it blocks no link"
        yield f"the spanning tree of {', '.join(inside)} has the root {root}; {what}"
    if plan.told:
        yield (
            "a controller decides how frames go over the ring of switches: the plan has the shortest way, and the "
            "certificate does not measure these links"
        )


def port_label(port: Port) -> str:
    """`eth1`, or with the name that its file gives it `eth1 (uplink)`."""
    return port.name if port.altname is None else f"{port.name} ({port.altname})"


def show_path(plan: Plan, path: PathOfPlan) -> None:
    """Print the figures of a path, and every way that it takes, by its links."""
    at_most, limit = tcp_at_most(plan, path)
    columns = ("pair", ">hops", "ways", ">RTT", ">TCP at most", "limit")
    figures = (f"{path.source} – {path.target}", str(path.hops), ways(path), rtt(path), at_most, limit)
    tables.show_table("expected", columns, [figures])
    rows = [("there", ", ".join(links)) for links in path.each_there]
    rows += [("back", ", ".join(links)) for links in path.each_back]
    tables.show_table("ways", ("", "links"), rows)


def cost(link: Link) -> str:
    """`10`, or of two directions `10, back 30`."""
    to, back = link.costs or ("", "")
    return str(to) if to == back else f"{to}, back {back}"


def ways(path: PathOfPlan) -> str:
    """How many ways there are, and what they are where there is one each way: `4`, `1, back by mil-lju, lju-bra`."""
    from minigts.topology.routes.several import number_of_ways

    there, back = number_of_ways(path.each_there), number_of_ways(path.each_back)
    if not path.ways_there:
        return there
    if len(path.each_there) == len(path.each_back) == 1:
        return f"by {', '.join(path.links)}, back by {', '.join(path.each_back[0])}"
    return there if there == back else f"{there}, back {back}"


def rtt(path: PathOfPlan) -> str:
    """`2 ms`, or of ways that differ `2 to 6 ms`."""
    return console.ms(path.rtt_ms) if path.rtt_most_ms is None else f"{path.rtt_ms:g} to {console.ms(path.rtt_most_ms)}"


def _further(all_of_them: Sequence[object], what: str) -> None:
    """Print how many rows were left out."""
    if (left := len(all_of_them) - ROWS_SHOWN) > 0:
        console.out().print(f"{left} further {what}: minigts plan --json FILE\n", markup=False, soft_wrap=True)


def _queues(plan: Plan, link: Link) -> str:
    there, back = map(_queue, plan.directions(link))
    return there if there == back else f"{there}, back {back}"


def _queue(way: Shaping) -> str:
    """`151.4 kB`, or in another unit `100 packets: 151.4 kB`."""
    from minigts.topology.facts.links.queue import PACKETS, TIME

    if way.queue_bytes is None:
        return ""
    declared = next(
        (each.value_words(size) for each in (PACKETS, TIME) if (size := getattr(way, each.field)) is not None), ""
    )
    return f"{declared}{declared and ': '}{way.queue_bytes / 1000:,.1f} kB"


def ipv6_column(plan: Plan) -> list[str]:
    """The heading of the column of IPv6 addresses beside those of IPv4; empty for a plan without either."""
    return _ipv6_cell(plan, "IPv6")


def ipv6_address(plan: Plan, machine: str) -> list[str]:
    """A machine's cell in that column; an empty text for a switch."""
    beside = plan.ipv6_of(machine)
    return _ipv6_cell(plan, None if beside is None else beside.address)


def _ipv6_cell(plan: Plan, text: str | None) -> list[str]:
    return [text or ""] if len(plan.addressings) > 1 else []


def _subnets(plan: Plan, link: Link) -> str:
    first = plan.addressings[0]
    return ", ".join(first.network(subnet) for _, subnet in link.segments)


def both(of: Link | PathOfPlan, show: Callable[[Direction], str]) -> str:
    """The value of both directions, `50 Mbit/s`; of directions that differ each: `50 Mbit/s, back 1 Mbit/s`."""
    there, back = (show(way) for way in of.ways)
    return there if there == back else f"{there}, back {back}"


def delay(way: Direction) -> str:
    return console.ms(way.delay_ms)


def rate(way: Direction) -> str:
    return console.mbit(way.rate_mbit)


def loss(way: Direction) -> str:
    return f"{way.loss_percent:g} %"


def _impairments(plan: Plan, link: Link) -> str:
    """What else a link does to packets, as in `10 % overtake, back 1 % corrupt`; empty for most links."""
    there, back = (", ".join(_also(way)) for way in plan.directions(link))
    return there if there == back else f"{there or 'nothing'}, back {back or 'nothing'}"


def _also(way: Shaping) -> Iterator[str]:
    from minigts.topology.link_settings import other_than_default

    for each in other_than_default(way):
        if each.rare and not each.of_other_unit:
            yield each.rare.format(each.display(getattr(way, each.field)))


def tcp_at_most(plan: Plan, path: PathOfPlan) -> tuple[str, str]:
    """The highest rate of TCP over a path, and what limits it: `47.8 Mbit/s` and `rate`; of directions that differ
    both. On links without a rate the hosts' buffers limit it, unless these carry more than any link may. Where losses
    let less through in the mean, the limit says how much."""
    from minigts.topology.fields import MOST_MBIT
    from minigts.topology.tcp import buffers, goodput, window_between
    from minigts.topology.tcp_and_loss import tcp_by_loss

    source, target = (buffers(plan.host(name).sysctls) for name in (path.source, path.target))
    ways = []
    for way, ends in zip(path.ways, ((source, target), (target, source)), strict=True):
        most_mbit, least_mbit = way.tcp_ceiling_mbit, way.tcp_least_mbit
        if way.rate_mbit is None:
            by_buffers = goodput(MOST_MBIT, window_between(*ends), path.rtt_ms)
            most_mbit, least_mbit = by_buffers if by_buffers.most_mbit < MOST_MBIT else (None, None)
        at_most, limit = _tcp(way, most_mbit, least_mbit)
        if (lossy_mbit := tcp_by_loss(plan, path, way)) < (most_mbit or MOST_MBIT):
            limit = f"loss: some {console.mbit(lossy_mbit)} in the mean"
        ways.append((at_most, limit))
    (there, why), (back, why_back) = ways
    if there == back:
        return there, why
    return f"{there}, back {back}", why if why == why_back else f"{why}, back {why_back}"


def _tcp(way: Direction, most_mbit: float | None, least_mbit: float | None) -> tuple[str, str]:
    if way.unacknowledged:
        return "acknowledgements may limit it", "acknowledgements"
    if least_mbit is not None:
        return f"{round(least_mbit, 1):g} to {console.mbit(most_mbit)}", "hosts' buffers"
    return console.mbit(most_mbit), "rate" if most_mbit is not None else "nothing"
