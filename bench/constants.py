"""Would `minigts validate` notice another kernel? A constant of Linux's becomes a tenth larger or smaller, one at a
time, and the laws that rest on it are tried on that kernel.

Each kernel is built by name from the standard kernel's sources (`minigts kernel build bent`): the first build compiles
all, the others what the constant is in. First the laws run on the standard kernel; a law that fails there does not
count. A constant that no law notices is printed: the laws that rest on it are wider than a tenth of it.
"""

from __future__ import annotations

import argparse
import difflib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import bent, stage
from bench.bent import Failed, Fault, Trial
from minigts.artifacts.kernels import KernelRequest
from minigts.cli import console
from minigts.providers.uml.build.named import build, source

NAME = "bent"
CUBIC = "net/ipv4/tcp_cubic.c"
RENO = "net/ipv4/tcp_cong.c"
BBR = "net/ipv4/tcp_bbr.c"
TCP = "include/net/tcp.h"

CONSTANTS = (
    Fault(
        "a delayed acknowledgement comes after 44 ms, not 40",
        "net/ipv4/tcp_output.c",
        "timeout = jiffies + ato;",
        "timeout = jiffies + ato * 11 / 10;",
        ("tcp-timers",),
    ),
    Fault(
        "the least time-out is 220 ms, not 200",
        TCP,
        "#define TCP_RTO_MIN\t((unsigned)(HZ / 5))",
        "#define TCP_RTO_MIN\t((unsigned)(HZ * 22 / 100))",
        ("tcp-timers",),
    ),
    Fault(
        "the first time-out is 1.1 s, not 1 s",
        TCP,
        "#define TCP_TIMEOUT_INIT ((unsigned)(1*HZ))",
        "#define TCP_TIMEOUT_INIT ((unsigned)(HZ * 11 / 10))",
        ("tcp-timers",),
    ),
    Fault(
        "a time-out is 2.2 times the one before, not twice",
        "net/ipv4/tcp_timer.c",
        "min(icsk->icsk_rto << 1, tcp_rto_max(sk));",
        "min(icsk->icsk_rto * 22 / 10, tcp_rto_max(sk));",
        ("tcp-timers",),
    ),
    Fault(
        "a connection begins with 11 segments, not 10",
        TCP,
        "#define TCP_INIT_CWND\t\t10",
        "#define TCP_INIT_CWND\t\t11",
        ("tcp-mechanics",),
    ),
    Fault(
        "a segment has nine tenths of what the MTU allows",
        "net/ipv4/tcp_output.c",
        "mss_now = pmtu - icsk->icsk_af_ops->net_header_len - sizeof(struct tcphdr);",
        "mss_now = pmtu * 9 / 10 - icsk->icsk_af_ops->net_header_len - sizeof(struct tcphdr);",
        ("tcp-mechanics", "waiting"),
    ),
    Fault(
        "HyStart ends slow start at a delay of 11/80 more, not 1/8",
        CUBIC,
        "HYSTART_DELAY_THRESH(ca->delay_min >> 3)",
        "HYSTART_DELAY_THRESH(ca->delay_min * 11 / 80)",
        ("tcp-mechanics",),
    ),
    Fault(
        "ARP asks again after 1.1 s, not 1 s",
        "net/ipv4/arp.c",
        "[NEIGH_VAR_RETRANS_TIME] = 1 * HZ,",
        "[NEIGH_VAR_RETRANS_TIME] = 11 * HZ / 10,",
        ("hops-and-timers",),
    ),
    Fault(
        "Neighbour Discovery asks again after 1.1 s, not 1 s",
        "net/ipv6/ndisc.c",
        "[NEIGH_VAR_RETRANS_TIME] = ND_RETRANS_TIMER,",
        "[NEIGH_VAR_RETRANS_TIME] = ND_RETRANS_TIMER * 11 / 10,",
        ("hops-and-timers",),
    ),
    Fault(
        "CoDel's interval is 110 ms, not 100",
        "include/net/codel_impl.h",
        "params->interval = MS2TIME(100);",
        "params->interval = MS2TIME(110);",
        ("disciplines",),
    ),
    Fault(
        "CoDel's target is 5.5 ms, not 5",
        "include/net/codel_impl.h",
        "params->target = MS2TIME(5);",
        "params->target = MS2TIME(5) * 11 / 10;",
        ("codel-target",),
    ),
    Fault(
        "RED marks a tenth more",
        "include/net/red.h",
        "return !(((qavg - p->qth_min) >> p->Wlog) * v->qcount < v->qR);",
        "return !(((qavg - p->qth_min) >> p->Wlog) * v->qcount * 11 / 10 < v->qR);",
        ("red-share",),
    ),
    Fault(
        "fq_codel gives a flow a tenth more bytes a round",
        "net/sched/sch_fq_codel.c",
        "WRITE_ONCE(flow->deficit, flow->deficit + q->quantum);",
        "WRITE_ONCE(flow->deficit, flow->deficit + q->quantum * 11 / 10);",
        ("disciplines",),
    ),
    Fault(
        "BBR probes with 1.375 times its rate, not 1.25",
        BBR,
        "BBR_UNIT * 5 / 4,\t/* probe",
        "BBR_UNIT * 11 / 8,\t/* probe",
        ("bbr-probes",),
    ),
    Fault(
        "BBR has 2.2 products under way, not two",
        BBR,
        "bbr_cwnd_gain  = BBR_UNIT * 2;",
        "bbr_cwnd_gain  = BBR_UNIT * 22 / 10;",
        ("bbr-probes",),
    ),
    Fault(
        "Reno keeps 0.45 of its window after a loss, not 0.5",
        RENO,
        "return max(tcp_snd_cwnd(tp) >> 1U, 2U);",
        "return max(tcp_snd_cwnd(tp) * 45 / 100, 2U);",
        ("fast-links",),
    ),
    Fault(
        "Reno adds 0.9 segments a round trip, not one",
        RENO,
        "tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);",
        "tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp) * 10 / 9, acked);",
        ("window-growth",),
    ),
    Fault(
        "CUBIC keeps 0.63 of its window after a loss, not 0.7",
        CUBIC,
        "int beta __read_mostly = 717;",
        "int beta __read_mostly = 645;",
        ("beside-ns3", "marks", "cubic-constants"),
    ),
    Fault(
        "CUBIC's C is 0.44, not 0.4",
        CUBIC,
        "bic_scale __read_mostly = 41;",
        "bic_scale __read_mostly = 45;",
        ("beside-ns3", "cubic-constants"),
    ),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument(
        "numbers", nargs="*", type=int, metavar="N", help="constants by their numbers; all by default"
    )
    arguments.add_argument("--quick", action="store_true", help="try the laws in their quick form, where they have one")
    arguments.add_argument(
        "--sound", type=Path, metavar="DIR", help="results of the laws on the standard kernel, in place of a first run"
    )
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    try:
        chosen = bent.chosen(CONSTANTS, given.numbers)
    except ValueError as error:
        arguments.error(str(error))
    options = ["--quick"] if given.quick else []
    bent.report(tried(chosen, given.sound, options), "constants", "constants that are a tenth off", given.out)


def tried(constants: Sequence[Fault], sound: Path | None, options: Sequence[str]) -> Iterator[Trial]:
    """Try the laws that rest on each constant, on a kernel that has another one."""
    sources = source.proven(console.note)
    with tempfile.TemporaryDirectory(prefix="minigts-constants-") as scratch:
        weak = {each.law for each in _without(constants, sound, Path(scratch) / "sound", options)}
        for name in sorted(weak):
            console.note(f"on the standard kernel {name} fails; it does not count")
        for number, constant in enumerate(constants):
            began = time.monotonic()
            patch = Path(scratch) / f"{number}.patch"
            patch.write_text(patch_of(constant, dict(sources.contents([constant.file]))[constant.file].decode()))
            build.build(NAME, KernelRequest(patches=(str(patch),)), console.note)
            results = Path(scratch) / f"results-{number}"
            failed, said = bent.failing(stage.PROJECT, constant.of, results, options=["--kernel", NAME, *options])
            new = () if failed is None else tuple(each for each in failed if each.law not in weak)
            yield Trial(constant.name, new, round(time.monotonic() - began), said if failed is None else "")


def _without(constants: Sequence[Fault], sound: Path | None, scratch: Path, options: Sequence[str]) -> Sequence[Failed]:
    """The laws that do not hold on the standard kernel either."""
    if sound is not None:
        return bent.failed_in(sound) or ()
    names = tuple(dict.fromkeys(name for constant in constants for name in constant.of))
    failed, said = bent.failing(stage.PROJECT, names, scratch, options=options)
    if failed is None:
        raise SystemExit(f"on the standard kernel: {said}")
    return failed


def patch_of(constant: Fault, text: str) -> str:
    """The change to the constant's file, as `diff -u` writes it."""
    before, after = (each.splitlines(keepends=True) for each in (text, bent.with_fault(constant, text)))
    return "".join(difflib.unified_diff(before, after, f"a/{constant.file}", f"b/{constant.file}"))


if __name__ == "__main__":
    stage.perform(main)
