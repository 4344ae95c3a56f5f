"""All overlays compared, over two hosts and, where they cross hops, over a chain of six.

For each, from the first host to the last, it measures the time to join, the MTU, the packets that `verify` captures on
the links, the round trip that the overlay adds, TCP and UDP at a shaped rate, the processor time of each host for a
megabyte, TCP's retransmissions, and the time to heal: after a link that was cut is restored, and after a host that was
killed has been started.

All seconds are of the lab's own clock. In real time, the default, that is this machine's; a lab in virtual time has no
other load in its figures, and a folder of its own.

Existing figures are not measured again: the table grows step by step, and `--again` starts anew. `--page` writes it
into a page of the documentation, between its marks.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from bench import stage
from minigts import lab as labs
from minigts import overlays
from minigts.cli import console
from minigts.errors import CommandFailed, MinigtsError
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.machine import proc
from minigts.overlays import Endpoint
from minigts.providers.base import OwnProcesses
from minigts.results import manifest
from minigts.tools import iperf3_tcp, iperf3_udp
from minigts.topology import overlay_names
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.time import Time

UDP_MBIT = 40
IP_AND_UDP = 28
ECHOES = 250
CUT_S = 10.0
"""How long a link is cut, in seconds: longer than most overlays' timers, so that they have to find the neighbour again.
"""
HEALS_WITHIN_S = 120
HEADS = (
    "overlay",
    "joins, s",
    "MTU",
    "on the wire",
    "RTT added, ms",
    "TCP, Mbit/s",
    "of `none`",
    "sent again",
    "UDP, Mbit/s (lost)",
    "CPU, ms a MB: sender",
    "receiver",
    "each between",
    "heals: link, s",
    "host, s",
)


@dataclass(frozen=True)
class Row:
    """One overlay on one topology. `cpu_ms_mb` is for TCP, by host; `refused` says why there are no figures."""

    overlay: str
    hops: int
    taken: str
    refused: str = ""
    join_s: float = 0.0
    mtu: int = 0
    encapsulation: str = ""
    underlay_rtt_ms: float = 0.0
    rtt_ms: float = 0.0
    tcp_mbit: float = 0.0
    retransmits: int = 0
    udp_mbit: float = 0.0
    udp_lost_percent: float = 0.0
    cpu_ms_mb: tuple[float, ...] = ()
    heal_s: float | None = None
    """Seconds to heal after a cut link. None: not within HEALS_WITHIN_S."""
    restart_s: float | None = None
    """Seconds to heal after a killed host. None: not within HEALS_WITHIN_S."""
    load_1min: float | None = None
    """The machine's load afterwards: other programs on its processors affect all figures. None: not recorded."""
    kernel: str = ""
    """The kernel of the hosts."""


def plan_at(topology: Path, rate: str, time: Time) -> Plan:
    """The topology with this rate on all links, for a lab in this time."""
    text = re.sub(r"\brate: *[\w.]+", f"rate: {rate}", topology.read_text(encoding="utf-8"))
    return parse(text, str(topology), known_overlays=overlays.known_names(), time=time)


def take(lab: Lab, name: str) -> Row:
    """All figures of one overlay, which is joined for them and left afterwards."""
    first, last = lab.plan.hosts[0].name, lab.plan.hosts[-1].name
    kernel = user_text(lab.provider.run(first, ["uname", "-r"], timeout_s=10).stdout).strip()
    row = Row(name, lab.plan.path(first, last).hops, manifest.now(), kernel=kernel)
    underlay_ms = lowest_rtt_ms(lab, (), first, lab.plan.hosts[-1].address)
    started = lab.provider.now_s()
    try:
        ends = overlays.join(lab, name, console.note)
        joined_s = lab.provider.now_s() - started
        figures = measure(lab, name, ends[first], ends[last])
    except CommandFailed as error:
        return replace(row, refused=reason(error))
    finally:
        overlays.leave(lab, console.note)
    load = manifest.noise().load_1min
    return replace(row, join_s=round(joined_s, 1), underlay_rtt_ms=underlay_ms, load_1min=load, **figures)


def measure(lab: Lab, name: str, source: Endpoint, target: Endpoint) -> dict[str, Any]:
    said = overlays.verify(lab, console.note)
    rtt_ms = lowest_rtt_ms(lab, source.prefix, source.host, target.address)
    console.note(f"{name}: TCP and UDP")
    before = used_s(lab)
    tcp_text = iperf3(lab, source, target, "-t", "8", "-O", "2")
    spent = [seconds - before[host] for host, seconds in used_s(lab).items()]
    payload = str(target.mtu - IP_AND_UDP)
    udp = iperf3_udp.parse(iperf3(lab, source, target, "-t", "5", "-u", "-b", f"{UDP_MBIT}M", "-l", payload))
    tcp = iperf3_tcp.parse(tcp_text)
    console.note(f"{name}: cutting a link")
    return {
        "mtu": target.mtu,
        "encapsulation": "+".join(sorted({each["ENCAPSULATION"] for each in said.values()})),
        "rtt_ms": rtt_ms,
        "tcp_mbit": round(tcp.received_mbit, 2),
        "retransmits": tcp.retransmits,
        "udp_mbit": round(udp.received_mbit, 2),
        "udp_lost_percent": round(udp.lost_percent, 3),
        "cpu_ms_mb": tuple(round(1000 * seconds / megabytes(tcp_text), 2) for seconds in spent),
        "heal_s": heal_s(lab, source, target),
        "restart_s": restart_s(lab, name, source, target),
    }


def lowest_rtt_ms(lab: Lab, prefix: Sequence[str], source: str, address: str) -> float:
    """The lowest round trip on a path in use: a host that was idle answers late."""
    argv = [*prefix, "ping", "-n", "-q", "-c", str(ECHOES), "-i", f"{lab.provider.pace_s:g}", address]
    said = user_text(lab.provider.run(source, argv, timeout_s=60).stdout)
    return float(said.splitlines()[-1].split(" = ")[1].split("/")[0])


def iperf3(lab: Lab, source: Endpoint, target: Endpoint, *options: str) -> str:
    argv = [*source.prefix, "iperf3", "-J", "-c", target.address, *options]
    return user_text(lab.provider.run(source.host, argv, timeout_s=60).stdout)


def megabytes(iperf3_json: str) -> float:
    """All data sent, in MB, including the seconds that the rate leaves out."""
    return sum(interval["sum"]["bytes"] for interval in json.loads(iperf3_json)["intervals"]) / 1e6


def used_s(lab: Lab) -> dict[str, float]:
    """Processor time of this machine that each host has used so far, in the plan's order."""
    if not isinstance(lab.provider, OwnProcesses):
        raise MinigtsError(f"provider {lab.provider.name} does not tell its hosts' processor time")
    kernels = lab.provider.kernels()
    return {host.name: sum(map(proc.used_s, proc.family([kernels[host.name]]))) for host in lab.plan.hosts}


def heal_s(lab: Lab, source: Endpoint, target: Endpoint) -> float | None:
    """Seconds from the restoration of a cut link until the ends reach each other and `verify` succeeds.

    None when they do not.
    """
    ends = lab.plan.links[0].ends
    labs.set_links_up(lab, *ends, up=False)
    lab.provider.sleep_until(lab.provider.now_s() + CUT_S)
    uncut = reaches(lab, source, target, 2)
    labs.set_links_up(lab, *ends, up=True)
    started = lab.provider.now_s()
    if uncut:
        raise MinigtsError(f"{source.host} still reaches {target.host} over a link that is cut")
    return healthy_s(lab, source, target, started)


def restart_s(lab: Lab, name: str, source: Endpoint, target: Endpoint) -> float | None:
    """Seconds from the kill of the second host until it has booted, the overlay's programs have started, the ends reach
    each other, and `verify` succeeds. None when that fails."""
    host = lab.plan.hosts[1].name
    console.note(f"{name}: killing {host} and starting it again")
    started = lab.provider.now_s()
    labs.restart(lab, host)
    try:
        ends = overlays.rejoin(lab, host, console.note)
    except CommandFailed as error:
        console.note(f"{name}: {reason(error)}")
        return None
    return healthy_s(lab, ends[source.host], ends[target.host], started)


def healthy_s(lab: Lab, source: Endpoint, target: Endpoint, started: float) -> float | None:
    """Seconds from `started` until the ends reach each other and `verify` succeeds; None when they do not in time."""
    if not reaches(lab, source, target, HEALS_WITHIN_S):
        return None
    healed_s = round(lab.provider.now_s() - started, 1)
    overlays.verify(lab, console.note)
    return healed_s


def reaches(lab: Lab, source: Endpoint, target: Endpoint, within_s: int) -> bool:
    """Whether an echo request is answered in time. They are sent one by one, since `ping -w` gives up as soon as a
    router reports that there is no route."""
    echoes = 'until ping -n -q -c 1 -W 1 "$0"; do sleep 0.2; done'
    argv = ["timeout", str(within_s), *source.prefix, "sh", "-c", echoes, target.address]
    return lab.provider.run(source.host, argv, timeout_s=within_s + 10, check=False).code == 0


def reason(error: CommandFailed) -> str:
    """The last output of the script that failed; iperf3's errors are in its JSON."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(error.stdout)["error"])
    said = (error.stderr or error.stdout).strip().splitlines()
    return said[-1].removeprefix("error: ") if said else str(error)


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of Markdown; the overlay `none` is what the others' TCP is a share of."""
    plain = next((row.tcp_mbit for row in rows if row.overlay == overlays.UNDERLAY and not row.refused), None)
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    measured = [row for row in rows if not row.refused]
    usual = statistics.mode(row.kernel for row in measured) if measured else ""
    marks = {row.overlay: "" if row.kernel == usual else "¹" for row in measured}
    lines += [f"| `{row.overlay}`{marks[row.overlay]} | {' | '.join(cells(row, plain))} |" for row in measured]
    others = sorted({row.kernel for row in measured} - {usual})
    if others:
        lines += ["", f"¹ hosts with kernel {', '.join(others)} (`minigts kernel build`); all others with {usual}."]
    refused = [f"- `{row.overlay}`: {row.refused}" for row in rows if row.refused]
    loads = [row.load_1min for row in rows if row.load_1min is not None]
    if loads:
        lines += ["", f"Load of the machine after each: {min(loads):.1f} to {max(loads):.1f} (1-minute average)."]
    return [*lines, *(["", "Not on this topology:", "", *refused] if refused else [])]


def cells(row: Row, plain_mbit: float | None) -> tuple[str, ...]:
    sender, *between, receiver = row.cpu_ms_mb
    return (
        f"{row.join_s:g}",
        str(row.mtu),
        row.encapsulation,
        f"{row.rtt_ms - row.underlay_rtt_ms:+.2f}",
        f"{row.tcp_mbit:.1f}",
        f"{row.tcp_mbit / plain_mbit:.0%}" if plain_mbit else "",
        str(row.retransmits),
        f"{row.udp_mbit:.1f} ({row.udp_lost_percent:g} %)",
        f"{sender:.1f}",
        f"{receiver:.1f}",
        f"{sum(between) / len(between):.1f}" if between else "",
        *(f"not in {HEALS_WITHIN_S}" if seconds is None else f"{seconds:g}" for seconds in (row.heal_s, row.restart_s)),
    )


def read(directory: Path) -> list[Row]:
    """The existing rows, in the overlays' order."""
    found = {path.stem: Row(**json.loads(path.read_text())) for path in directory.glob("*.json")}
    first_plain = sorted(found, key=lambda name: (name != overlays.UNDERLAY, name))
    return [found[name] for name in first_plain]


def write_page(page: Path, section: str, lines: Sequence[str]) -> None:
    """Put the lines between the section's marks in a page. Raises MinigtsError when it has none."""
    begin, end = f"<!-- {section}: begin -->\n", f"<!-- {section}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise MinigtsError(f"{page} has no marks {begin.strip()} and {end}")
    page.write_text(f"{before}{begin}\n{chr(10).join(lines)}\n\n{end}{after}", encoding="utf-8")


def main() -> None:
    arguments = stage.parser(__doc__, "pair.yaml")
    arguments.add_argument("overlay", nargs="*", help="only these overlays; default: all")
    arguments.add_argument("--time", choices=get_args(Time), default="real", help="the kind of the lab's time")
    arguments.add_argument("--rate", default="50mbit", help="the rate of every link")
    arguments.add_argument("--again", action="store_true", help="measure existing figures again")
    arguments.add_argument("--page", type=Path, help="a page with marks for this topology's table")
    chosen = arguments.parse_args()
    plan = plan_at(chosen.topology, chosen.rate, chosen.time)
    directory = chosen.out / "overlays" / (plan.name if plan.time == "real" else f"{plan.name}-{plan.time}")
    directory.mkdir(parents=True, exist_ok=True)
    all_names = overlays.known_names()
    wanted = chosen.overlay or [name for name in all_names if plan.ipv6 or not overlay_names.needs_ipv6(name)]
    left = [name for name in wanted if chosen.again or not (directory / f"{name}.json").exists()]
    if left:
        with stage.lab_of(plan) as lab:
            for name in left:
                row = take(lab, name)
                (directory / f"{name}.json").write_text(json.dumps(asdict(row), indent=1) + "\n")
    lines = table(read(directory))
    console.out().print("\n".join(lines), markup=False, soft_wrap=True)
    if chosen.page:
        write_page(chosen.page, directory.name, lines)


if __name__ == "__main__":
    stage.perform(main)
