"""Turn a port's declared shaping into `ip`, `tc` and `ethtool` commands, and read it back from `tc`.

Where each part sits, and why, when links are not carried by wires (`wire`):

- **rate**: on the sender's own interface, as `tbf`, with the declared queue in front of it. There it bounds what
  the sender's TCP has below the socket (TCP small queues, back-pressure), as a network card of that rate does.
- **delay, jitter, loss**, and all else that a link does: on the receiver's side. Frames that arrive at `eth1` are
  redirected to an `ifb` device, `ifb-eth1`, whose root qdisc is `netem`. Held there, a frame has left the sender: its
  TCP sees neither a long local queue nor a local drop, as on a real line (ipmininet's docs/tc.rst warns of the
  contrary).
- **another queue discipline** than a FIFO: below that `tbf`, as its child (`topology/disciplines.py`).
  Where wires have rate and delay, these two are the only parts on the host, and this `tbf` lets one frame at a time
  pass, as a network card does that reports each frame that has left. So the queue is in front of the wire.
- **never both in one qdisc**: netem's own rate would queue what waits for the rate and what waits for the delay in
  one line with one limit.

`tcpdump` on a receiving port sees frames before the delay, as they come off the wire; on a sending port, after the
rate. Every command may be repeated and the state is the same. Sources: tc-tbf(8), tc-netem(8), tc-u32(8),
tc-mirred(8).
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from minigts.errors import InputError
from minigts.language import documents
from minigts.topology import disciplines
from minigts.topology.frames import ETHERNET_HEADER_BYTES
from minigts.topology.link_setting import Argv, Setting
from minigts.topology.link_settings import (
    AT_RECEIVER,
    AT_SENDER,
    LINK_SETTINGS,
    TABLES,
    Shaping,
    other_than_default,
)
from minigts.topology.own_delays import netem_file, netem_scale
from minigts.topology.plan.elements import HostPort, Port

_ONE_WORD = re.compile(r"[A-Za-z0-9%+,./:=_-]+", re.ASCII)
_BURST_FRAMES = 10
_BURST_MS = 4.0
_PLAIN_QUEUE_PACKETS = 1000
_TAG_BYTES = 4
_LATE_MS = 0.004
"""How late tbf may look for a frame in virtual time: a kernel sets no timer below 0.5 us, and each reading of the clock
takes 0.256 us (TIMER_MIN_DELTA and timer_read of arch/um/kernel/time.c)."""
# tc counts tbf's burst in ticks of 64 ns.
_RELATIVE = 0.01
_NETEMS_LEAST_MS = 1e-6
_LARGEST_FRAME = 65535


def batch_line(*words: str) -> str:
    """A line for `ip -batch` and `tc -batch`, which split lines at blanks, even within quotes.

    Raises InputError for a word that would be split.
    """
    for word in words:
        if not _ONE_WORD.fullmatch(word):
            raise InputError(f"{word!r} cannot be a word of a command on a host")
    return " ".join(words)


def ifb(port: Port) -> str:
    """The device that holds what arrives at `port`."""
    return f"ifb-{port.name}"


def holds_arrivals(shaping: Shaping) -> bool:
    """Whether the receiving side needs its netem at all."""
    return polices(shaping) or any(not each.at_sender and each.tc is not None for each in other_than_default(shaping))


def _for_netem(shaping: Shaping, delay_ms: float) -> Shaping:
    """The shaping in netem's numbers: with so much delay, and the jitter by which it scales a table."""
    jitter_ms = shaping.jitter_ms * netem_scale(shaping.jitter_table)
    return shaping.model_copy(update={"delay_ms": delay_ms, "jitter_ms": jitter_ms})


def added_delay_ms(shaping: Shaping, emulator_overhead_ms: float) -> float:
    """The delay in ms that netem adds so that the whole link takes `delay_ms` one way; the emulator takes the rest."""
    return max(0.0, shaping.delay_ms - emulator_overhead_ms)


def burst_bytes(rate_mbit: float, mtu: int, queue_bytes: int) -> int:
    """How much tbf lets through at once, in bytes.

    Tokens beyond the burst are lost, so the burst must cover the time that tbf's timer is late, or the rate falls
    short. Hosts share processors: a host that is ready waits for another's time slice, about 3 ms. 4 ms cover that
    and are little beside the RTTs worth emulating; ten full frames are the floor for low rates. The burst is at
    most the queue: tbf splits a segmentation-offload packet only when it exceeds the burst, and drops it whole
    when it exceeds the queue.
    """
    wanted = max(_BURST_FRAMES * (mtu + ETHERNET_HEADER_BYTES), math.ceil(rate_mbit * 1000 / 8 * _BURST_MS))
    return min(wanted, queue_bytes)


def frame_burst_bytes(rate_mbit: float, mtu: int) -> int:
    """The burst of tbf in front of a wire that has the rate itself: one full frame with a VLAN's tag, so that one frame
    is on its way out while the others wait, and what the rate sends in the time by which tbf may be late. Without that,
    the rate would fall short: by 3 % at 1 Gbit/s.
    """
    return mtu + ETHERNET_HEADER_BYTES + _TAG_BYTES + math.ceil(rate_mbit * 1000 / 8 * _LATE_MS)


def _burst(port: Port, *, carried: bool) -> int:
    """The burst of a port's tbf: as declared, else so much as makes up for a late timer."""
    way, rate_mbit = port.outgoing, port.outgoing.rate_mbit or 0.0
    if way.rate_burst_bytes:
        return way.rate_burst_bytes
    return frame_burst_bytes(rate_mbit, port.mtu) if carried else burst_bytes(rate_mbit, port.mtu, way.queue_bytes or 0)


@dataclass(frozen=True)
class Arrivals:
    """How ports set what they do to arriving frames, by the ports' names."""

    anew: Collection[str] = ()
    """These get a new netem, which loses what is in the old one; see `keeps_a_table`."""
    kept: Collection[str] = ()
    """These stay as they are: their netem goes on with its random numbers, where it would begin them again if it were
    set again."""


ALL_SET = Arrivals()


def script(
    ports: Iterable[Port], emulator_overhead_ms: float = 0.0, arrivals: Arrivals = ALL_SET, *, carried: bool = False
) -> str:
    """A script that sets up ports of one host, to be run as root there by `sh -e`; one `tc` process for all of them. A
    second run changes nothing, but that random numbers begin anew.

    `emulator_overhead_ms` is the emulator's own one-way latency over each of their links, taken off the delay.
    `carried` is for ports that send into wires, which have the rate, too.
    """
    chosen = tuple(ports)
    if not chosen:
        return ""
    lines = _batch(chosen, emulator_overhead_ms, arrivals, carried=carried)
    return devices(chosen) + "\n".join(["tc -batch - <<'END'", *lines, "END", ""])


def devices(ports: Iterable[Port]) -> str:
    """A script for `sh -e` that sets up only the devices that these ports need."""
    chosen = tuple(ports)
    # GRO merges frames before they are forwarded, and VXLAN over several hops then collapses to a few Mbit/s.
    lines = [f"ethtool -K {shlex.quote(port.name)} gro off" for port in chosen]
    held = [ifb(port) for port in chosen if holds_arrivals(port.incoming)]
    tables = dict(netem_file(port.incoming.jitter_table) for port in chosen if port.incoming.jitter_table)
    if tables:
        lines += [f"mkdir -p /{TABLES}"]
        lines += [f"cat >/{TABLES}/{name}.dist <<'END'\n{table}END" for name, table in tables.items()]
    if held:
        # `ip link add` has no form that accepts a device which is there already.
        lines += ["added="]
        added = ((name, shlex.quote(f"{batch_line('link', 'add', name, 'type', 'ifb')}\n")) for name in held)
        lines += [f'[ -e {shlex.quote(f"/sys/class/net/{name}")} ] || added="$added"{line}' for name, line in added]
        lines += ['[ -z "$added" ] || ip -batch - <<END', "$added", "END"]
        # Its router solicitations would each use one of the random numbers that decide which packets are lost.
        silence = (shlex.quote(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6") for name in held)
        lines += [f"[ ! -e {path} ] || echo 1 >{path}" for path in silence]
        lines += ["ip -batch - <<'END'", *(batch_line("link", "set", "dev", name, "up") for name in held), "END"]
    return "".join(f"{line}\n" for line in lines)


def changes(ports: Iterable[Port], emulator_overhead_ms: float, arrivals: Arrivals = ALL_SET) -> str:
    """Input for `tc -j -batch -` that sets ports whose devices exist, and shows all queueing disciplines. `arrivals` is
    as in `script`."""
    return "\n".join([*_batch(ports, emulator_overhead_ms, arrivals), "qdisc show"])


def keeps_a_table(before: Shaping | None, after: Shaping) -> bool:
    """Whether a netem that is changed from `before`, or from anything, would go on with the table of a distribution
    that `after` has not: it has no word for a uniform one, and keeps what it is not told."""
    uniform = bool(after.jitter_ms) and after.jitter_distribution == "uniform"
    return uniform and (before is None or before.jitter_distribution != "uniform")


def _batch(
    ports: Iterable[Port], emulator_overhead_ms: float, arrivals: Arrivals, *, carried: bool = False
) -> list[str]:
    lines = []
    for port in ports:
        told = _rate(port, carried=carried)
        if port.name not in arrivals.kept:
            if port.name in arrivals.anew:
                lines.append(batch_line("qdisc", "replace", "dev", ifb(port), "root", "pfifo"))
            told += _arriving_frames(port, emulator_overhead_ms)
        lines += [batch_line(*words) for words in told]
    return lines


def delays_again(ports: Iterable[Port], emulator_overhead_ms: float) -> str:
    """Input for `tc -j -batch -` that sets the delay of shaped ports again, and shows all queueing disciplines."""
    held = [port for port in ports if holds_arrivals(port.incoming)]
    return "\n".join([*(batch_line(*_delay(port, emulator_overhead_ms)) for port in held), "qdisc show", ""])


def _arriving_frames(port: Port, emulator_overhead_ms: float) -> tuple[Argv, ...]:
    return _redirect(port, emulator_overhead_ms) if holds_arrivals(port.incoming) else _no_redirect(port)


def _rate(port: Port, *, carried: bool) -> tuple[Argv, ...]:
    way = port.outgoing
    if way.rate_mbit is None or way.queue_bytes is None or way.polices:
        return (_plain_queue(port),)
    rate, *others = (each.tc.words(way) for each in AT_SENDER if each.tc is not None)
    buckets = ("burst", str(_burst(port, carried=carried)), *_peak(port, carried=carried))
    tbf = ("tbf", *rate, *buckets, *chain.from_iterable(others))
    set_port = ("qdisc", "replace", "dev", port.name)
    if (name := disciplines.inner_discipline(way, carried=carried)) is None:
        # Its handle is another one than below: a tbf that keeps its handle keeps the discipline in it, too.
        return ((*set_port, "root", "handle", "2:", *tbf),)
    discipline = disciplines.words(way, port.mtu + ETHERNET_HEADER_BYTES, name)
    return (*set_port, "root", "handle", "1:", *tbf), (*set_port, "parent", disciplines.CHILD, *discipline)


def _peak(port: Port, *, carried: bool) -> Argv:
    """The words of tbf for a peak: with it a second bucket, of as many bytes as make up for a late timer."""
    bucket = _peak_burst(port, carried=carried)
    return () if bucket is None else ("peakrate", f"{port.outgoing.peak_bps}bit", "mtu", str(bucket))


def _peak_burst(port: Port, *, carried: bool) -> int | None:
    """The `mtu` of a port's tbf in bytes; None without a peak."""
    way = port.outgoing
    if way.rate_peak_mbit is None:
        return None
    if carried:
        return frame_burst_bytes(way.rate_peak_mbit, port.mtu)
    return burst_bytes(way.rate_peak_mbit, port.mtu, max(way.rate_burst_bytes, port.mtu + ETHERNET_HEADER_BYTES))


def _plain_queue(port: Port) -> Argv:
    # Named, so that an unlimited link does not depend on the host's default (fq_codel marks and drops by itself).
    limit = str(_PLAIN_QUEUE_PACKETS)
    return ("qdisc", "replace", "dev", port.name, "root", "pfifo", "limit", limit)


def _redirect(port: Port, emulator_overhead_ms: float) -> tuple[Argv, ...]:
    to_ifb = ("action", "mirred", "egress", "redirect", "dev", ifb(port))
    is_arp, always = ("u16", "0x0806", "0xffff", "at", "-2"), ("u32", "0", "0")
    return (
        _delay(port, emulator_overhead_ms),
        ("qdisc", "replace", "dev", port.name, "clsact"),
        (*_arriving(port, 1, is_arp), *(("action", "ok") if spares_arp(port.incoming) else to_ifb)),
        (*_arriving(port, 2, always), *_police(port), *to_ifb),
    )


def polices(shaping: Shaping) -> bool:
    """Whether the receiving side drops by rate or size."""
    return shaping.polices or shaping.blackhole_bytes is not None


def largest_frame(shaping: Shaping) -> int:
    """The `mtu` of the action `police`, in bytes: it compares it with the whole frame."""
    hole = shaping.blackhole_bytes
    return _LARGEST_FRAME if hole is None else hole + ETHERNET_HEADER_BYTES


def _police(port: Port) -> Argv:
    """The action that drops arriving frames beyond a policer's rate, and packets that fall into a black hole. For the
    rate it counts IP packets, and the overhead that it is told: the Ethernet header (tcf_police_act, Linux 7.2)."""
    arriving = port.incoming
    if not polices(arriving):
        return ()
    bucket: Argv = ()
    if arriving.polices:
        bucket = ("rate", f"{arriving.rate_bps}bit", "burst", str(arriving.rate_burst_bytes))
        bucket += ("overhead", str(ETHERNET_HEADER_BYTES))
    return ("action", "police", *bucket, "mtu", str(largest_frame(arriving)), "conform-exceed", "drop/pipe")


def _arriving(port: Port, number: int, match: Argv) -> Argv:
    # u32 with its handle given can be replaced in place; matchall cannot (EEXIST). Both rules are in one table, since
    # a second one's number changes when the kernel loads a module for it.
    rule = ("pref", "1", "handle", f"800::{number}", "protocol", "all", "u32", "match", *match)
    return ("filter", "replace", "dev", port.name, "ingress", *rule)


def spares_arp(shaping: Shaping) -> bool:
    """Whether ARP bypasses netem, since netem spoils packets at random. Kernels send ARP at any time, each frame uses
    one of the seed's random numbers, and the same file would no longer spoil the same packets. A link that is cut loses
    ARP as well.
    """
    return shaping.loss_percent < 100 and shaping.spoils


def _delay(port: Port, emulator_overhead_ms: float) -> Argv:
    return ("qdisc", "replace", "dev", ifb(port), "root", "netem", *_netem(port.incoming, emulator_overhead_ms))


def _no_redirect(port: Port) -> tuple[Argv, ...]:
    # Deleting needs something to delete: put it there first, and the pair may be repeated.
    return (("qdisc", "replace", "dev", port.name, "clsact"), ("qdisc", "del", "dev", port.name, "clsact"))


def _netem(shaping: Shaping, emulator_overhead_ms: float) -> Argv:
    # netem refuses to reorder without a delay, also where the emulator itself takes all of it.
    least_ms = _NETEMS_LEAST_MS if shaping.reorder_percent else 0.0
    delay_ms = max(least_ms, added_delay_ms(shaping, emulator_overhead_ms))
    added = _for_netem(shaping, delay_ms)
    told = chain.from_iterable(each.tc.words(added) for each in AT_RECEIVER if each.tc is not None)
    # netem begins its numbers anew whenever it is set, so a setting that changes nothing is left out (`Arrivals`).
    seed = () if shaping.seed is None else ("seed", str(shaping.seed))
    return (*told, "limit", str(shaping.delay_packets), *seed)


@dataclass(frozen=True)
class ReadBack:
    """The settings that a host shows on one port. `redirected` says whether arriving frames go to the ifb device."""

    settings: Mapping[str, Any]
    """The values by field of `Shaping`; None where the queueing discipline is not there, or does not show it."""
    burst_bytes: int | None = None
    """The burst of the rate's tbf."""
    peak_burst_bytes: int | None = None
    """That of its peak; None where it has no peak."""
    redirected: bool = False
    delay_packets: int | None = None
    seed: int | None = None
    """netem's seed; None, too, where the kernel's netem takes none (before Linux 6.7)."""


def read_back(port: Port, tc_json_text: str) -> ReadBack:
    """The settings of `port` in the output of `tc -j qdisc show` (all devices). Raises ValueError for other output.

    An item of it: `{"kind":"tbf","dev":"eth1","root":true,"options":{"rate":6250000,"burst":25000,"lat":3775}}`:
    bytes a second, bytes, microseconds. netem's delay is in seconds, its loss a share of 1.
    """
    try:
        shown = _read_back(port, documents.document(tc_json_text or "[]"))
        figures = (*shown.settings.values(), shown.burst_bytes, shown.peak_burst_bytes, shown.delay_packets, shown.seed)
        if not all(math.isfinite(each) for each in figures if each is not None and not isinstance(each, str)):
            raise ValueError("a figure in the output of tc -j qdisc show is none")
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not the output of tc -j qdisc show: {error!r}") from error
    return shown


def _read_back(port: Port, qdiscs: list[dict[str, Any]]) -> ReadBack:
    tbf = _options(qdiscs, port.name, "tbf")
    netem = _options(qdiscs, ifb(port), "netem")
    if tbf is not None and "minburst" in tbf and port.outgoing.peak_bps is not None:
        tbf = {**tbf, "peakrate": port.outgoing.peak_bps / 8}
    discipline = {True: tbf, False: netem}
    scale = netem_scale(port.incoming.jitter_table)
    settings = {
        each.field: None
        if each.tc is None or each.tc.read is None or (options := discipline[each.at_sender]) is None
        else each.tc.read(options)
        for each in LINK_SETTINGS
    }
    if (jitter_ms := settings["jitter_ms"]) is not None:
        settings["jitter_ms"] = jitter_ms / scale
    return ReadBack(
        settings=settings | disciplines.shown_fields(_child(port, qdiscs), port.outgoing),
        burst_bytes=None if tbf is None else int(tbf["burst"]),
        peak_burst_bytes=None if tbf is None or "minburst" not in tbf else int(tbf["minburst"]),
        redirected=_options(qdiscs, port.name, "clsact") is not None,
        delay_packets=None if netem is None else int(netem["limit"]),
        seed=(netem or {}).get("seed"),
    )


def dropped_packets(port: Port, tc_json_text: str) -> int:
    """The number of arriving packets that the delay of `port` has dropped; it must drop none where no loss is declared.

    The text is that of `tc -s -j qdisc show`. Where a loss is declared, 0 is returned, since the kernel counts it here,
    too. Drops of the queue in front of the rate do not count.
    """
    if port.incoming.loss_percent:
        return 0
    qdiscs = documents.document(tc_json_text or "[]")
    return sum(int(qdisc.get("drops", 0)) for qdisc in qdiscs if qdisc.get("dev") == ifb(port))


def _child(port: Port, qdiscs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The queue discipline below the tbf of a port; None where tbf has a FIFO of its own, which is not shown."""
    return next(
        (each for each in qdiscs if (each.get("dev"), each.get("parent")) == (port.name, disciplines.CHILD)), None
    )


def _options(qdiscs: list[dict[str, Any]], device: str, kind: str) -> dict[str, Any] | None:
    matching = (qdisc for qdisc in qdiscs if (qdisc.get("dev"), qdisc.get("kind")) == (device, kind))
    first = next(matching, None)
    return None if first is None else first.get("options", {})


def differences(
    port: Port, tc_json_text: str, emulator_overhead_ms: float = 0.0, *, carried: bool = False
) -> list[str]:
    """How the shaping that a host shows differs from what `script` sets, a sentence each; empty when equal.

    Differences within tc's own rounding do not count. Raises ValueError when the text is not tc's output.
    """
    shown, qdiscs = read_back(port, tc_json_text), documents.document(tc_json_text or "[]")
    way, frame_bytes = port.outgoing, port.mtu + ETHERNET_HEADER_BYTES
    name = disciplines.inner_discipline(way, carried=carried)
    problems = [
        *_rate_differences(port, shown, carried=carried),
        *(() if name is None else disciplines.differences(way, frame_bytes, _child(port, qdiscs), name)),
        *_delay_differences(port, shown, emulator_overhead_ms),
        *_foreign(port, qdiscs, has_child=name is not None),
    ]
    return [f"{port.name}: {problem}" for problem in problems]


def arrivals_differ(port: Port, tc_json_text: str, emulator_overhead_ms: float) -> bool:
    """Whether what a host shows of the frames that arrive at `port` differs from what `script` sets. Raises ValueError
    as `differences` does."""
    return bool(_delay_differences(port, read_back(port, tc_json_text), emulator_overhead_ms))


def _foreign(port: Port, qdiscs: list[dict[str, Any]], *, has_child: bool) -> Iterator[str]:
    """Queueing disciplines that `script` does not set, on the port and on the device that delays its arrivals.
    `has_child`: it sets one below the port's tbf."""
    limited = port.outgoing.rate_mbit is not None and port.outgoing.queue_bytes is not None
    root = "tbf" if limited and not port.outgoing.polices else "pfifo"
    own = {port.name: (root, "clsact"), ifb(port): ("netem", ""), **dict.fromkeys(_tagged(port), ("noqueue", ""))}
    for qdisc in qdiscs:
        device, kind = str(qdisc.get("dev")), str(qdisc.get("kind"))
        if device not in own or (device == ifb(port) and not holds_arrivals(port.incoming)):
            continue
        wanted, beside = own[device]
        if device == port.name and qdisc.get("parent") == disciplines.CHILD and has_child:
            continue  # it is compared with the one of the link
        on = "" if device == port.name else f" on {device}"
        if "parent" not in qdisc and kind not in (wanted, "tbf"):  # a tbf is reported with the rate
            yield f"the queueing discipline{on} is {kind}, should be {wanted}"
        elif "parent" in qdisc and kind != beside:
            yield f"a queueing discipline {kind}{on} that is not the lab's, beside {wanted}"
        elif kind == "pfifo" and qdisc.get("options", {}).get("limit", _PLAIN_QUEUE_PACKETS) != _PLAIN_QUEUE_PACKETS:
            yield f"the queue holds {qdisc['options']['limit']} packets, should hold {_PLAIN_QUEUE_PACKETS}"


def _tagged(port: Port) -> list[str]:
    """The interfaces of a trunk, one for each VLAN: `script` sets nothing on them."""
    return [each.name for each in port.on_segments if each.name != port.name] if isinstance(port, HostPort) else []


def removal_script(ports: Iterable[Port]) -> str:
    """A script for `sh` that removes every queueing discipline from these ports, before `script` sets theirs again."""
    lines = []
    for port in ports:
        places = [(name, parent) for name in (port.name, *_tagged(port)) for parent in ("root", "ingress", "clsact")]
        for device, parent in (*places, (ifb(port), "root")):
            lines.append(f"tc qdisc del dev {shlex.quote(device)} {parent} 2>/dev/null || true")
    return "".join(f"{line}\n" for line in lines)


def _rate_differences(port: Port, shown: ReadBack, *, carried: bool) -> list[str]:
    declared, shown_mbit = port.outgoing.rate_mbit, shown.settings["rate_mbit"]
    declared = None if port.outgoing.polices else declared  # where frames arrive
    if declared is None or shown_mbit is None:
        same = declared is None and shown_mbit is None
        return [] if same else [_differ("rate", _or_none(shown_mbit, "Mbit/s"), _or_none(declared, "Mbit/s"))]
    rate, *others = (_setting_differences(each, port.outgoing, shown) for each in AT_SENDER)
    burst = _burst(port, carried=carried)
    slack = _RELATIVE * burst + declared / 8  # what a microsecond holds
    peak, peak_slack = _peak_burst(port, carried=carried) or 0, (port.outgoing.rate_peak_mbit or 0.0) / 8
    return [
        *rate,
        *_compare("burst", shown.burst_bytes or 0, burst, "bytes", slack),
        *_compare("the peak's burst", shown.peak_burst_bytes or 0, peak, "bytes", _RELATIVE * peak + peak_slack),
        *chain.from_iterable(others),
    ]


def _delay_differences(port: Port, shown: ReadBack, emulator_overhead_ms: float) -> list[str]:
    declared = port.incoming
    if not holds_arrivals(declared):
        return ["a queueing discipline clsact that is not the lab's: nothing is held here"] if shown.redirected else []
    if not shown.redirected:
        return ["arriving frames are not redirected, so delay and loss have no effect"]
    if shown.settings["delay_ms"] is None:
        return [f"no netem on {ifb(port)}"]
    added = declared.model_copy(update={"delay_ms": added_delay_ms(declared, emulator_overhead_ms)})
    return [
        *chain.from_iterable(_setting_differences(each, added, shown) for each in AT_RECEIVER),
        *_compare("delay's limit", shown.delay_packets or 0, declared.delay_packets, "packets", 0),
        *([] if None in (declared.seed, shown.seed) else _compare("seed", shown.seed or 0, declared.seed or 0, "", 0)),
    ]


def _setting_differences(setting: Setting, wanted: Shaping, shown: ReadBack) -> list[str]:
    """The difference of one setting, if any; no kernel shows a setting that `tc` does not read."""
    if setting.tc is None or setting.tc.read is None:
        return []
    there, should = shown.settings[setting.field], getattr(wanted, setting.field)
    if isinstance(should, str):
        return [] if there == should else [_differ(setting.word, f"{there}", should)]
    return _compare(setting.word, there or 0, should or 0, setting.unit, setting.tc.slack(wanted))


def _compare(what: str, shown: float, wanted: float, unit: str, slack: float) -> list[str]:
    """One sentence when `shown` is off by more than `slack`."""
    same = abs(shown - wanted) <= slack
    return [] if same else [_differ(what, f"{shown:.10g} {unit}".strip(), f"{wanted:.10g} {unit}".strip())]


def _or_none(value: float | None, unit: str) -> str:
    return "none" if value is None else f"{value:.10g} {unit}"


def _differ(what: str, shown: str, wanted: str) -> str:
    return f"{what} is {shown}, should be {wanted}"
