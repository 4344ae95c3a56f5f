"""A lab in virtual time: the same again whatever the machine does, no cost while nobody asks, and no hang."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from contract.test_attach import CHILD, Terminal
from live.conftest import MakeLab, quiet
from live.exact import EXACT_MS
from live.program import TOPOLOGIES, Program, start_time, with_children
from minigts import lab as labs
from minigts import overlays
from minigts.dataplane.round_trip import echo_ms
from minigts.errors import CommandFailed, CommandTimeout
from minigts.foreign import user_text
from minigts.lab import Lab, calibration, shown_links
from minigts.providers.uml.run.supervisor import Launch
from minigts.providers.uml.virtual import VirtualUmlProvider
from minigts.topology.plan.plan import Plan

pytestmark = pytest.mark.virtual
LIMIT_S = 60.0
TICKS_S = os.sysconf("SC_CLK_TCK")


def run(lab: Lab, host: str, *argv: str) -> str:
    return user_text(lab.provider.run(host, argv, timeout_s=LIMIT_S).stdout)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """How many kernels run side by side in labs that come up from now on; 0: all."""
    as_ordered = VirtualUmlProvider._launch

    def order(number: int) -> None:
        def launch(
            self: VirtualUmlProvider, plan: Plan, progress: Callable[[str], None], kept_programs: str | None
        ) -> Launch:
            ordered = as_ordered(self, plan, progress, kept_programs)
            assert ordered.clock is not None
            return replace(ordered, clock=replace(ordered.clock, at_once=number))

        monkeypatch.setattr(VirtualUmlProvider, "_launch", launch)

    return order


def transcript(lab: Lab) -> Iterator[tuple[float, str]]:
    """What a lab says to the same questions, each with the lab's time when it has been answered."""

    def asked(host: str, *argv: str) -> tuple[float, str]:
        said = run(lab, host, *argv)
        return lab.provider.now_s(), said

    lon, ham = lab.plan.host("lon").address, lab.plan.host("ham").address
    yield lab.provider.now_s(), "up"
    overlays.join(lab, "none", quiet)
    yield lab.provider.now_s(), "joined"
    yield asked("ams", calibration.PROBE, lon, "40", "0.004")
    yield asked("bra", "ping", "-n", "-i", "0.01", "-c", "20", ham)
    yield asked("ams", "netperf", "-4", "-H", lon, "-t", "TCP_RR", "-l", "-40", "-P", "0")
    for port in ("5301", "5302"):
        yield asked("lon", "iperf3", "-s", "-1", "-D", "-p", port)
    with lab.provider.together() as pool:
        streams = [
            partial(run, lab, host, "iperf3", "-c", lon, "-p", port, "-t", "2", "-f", "k")
            for host, port in (("ams", "5301"), ("mil", "5302"))
        ]
        pings = partial(run, lab, "lju", "ping", "-n", "-i", "0.01", "-c", "100", ham)
        said = pool.all([*streams, pings])
    yield lab.provider.now_s(), "\n".join(said)


def test_kernels_side_by_side_say_what_they_say_one_by_one(make_lab: MakeLab, at_once: Callable[[int], None]) -> None:
    """To the nanosecond: round trips, streams that share a link, and the time at which each has ended."""
    at_once(1)
    alone = list(transcript(make_lab(TOPOLOGIES / "chain6.yaml", "one-by-one")))
    at_once(0)
    beside = list(transcript(make_lab(TOPOLOGIES / "chain6.yaml", "side-by-side")))
    assert [moment_s for moment_s, _ in alone] == [moment_s for moment_s, _ in beside]
    assert [said for _, said in alone] == [said for _, said in beside]
    assert len(re.findall(r"time=", alone[3][1])) == 20


def test_who_listens_to_a_command_that_has_ended_does_not_keep_time_going(lab: Lab) -> None:
    """A client asks to be told of more after each line, and the command may end while it asks."""
    script = "for n in 1 2 3; do echo $n; done"

    def listen(host: str) -> None:
        lab.provider.run(host, ["sh", "-c", script], timeout_s=LIMIT_S, on_output=lambda _: None)

    with ThreadPoolExecutor(6) as clients:
        list(clients.map(listen, ["ams", "bra"] * 60))
    now_s = lab.provider.now_s()
    time.sleep(0.2)
    assert lab.provider.now_s() == now_s


@pytest.mark.timeout(600)
def test_who_listens_to_a_long_answer_hears_all_of_it(lab: Lab) -> None:
    """It comes in many frames, and the client asks for more of it while one is half-way through the host's console."""
    heard: list[bytes] = []
    argv = ["seq", "-w", "60000"]
    said = user_text(lab.provider.run("ams", argv, timeout_s=LIMIT_S, on_output=heard.append).stdout)
    assert len(heard) > 10
    whole = b"".join(heard)
    assert whole.decode().split() == [f"{number:05}" for number in range(1, 60001)]
    assert whole.startswith(said.encode())  # of what is handed over as it comes the beginning is kept


def used_ticks(processes: dict[int, str]) -> int:
    """Processor time that they have had, in clock ticks; all of them run."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
    assert [start_time(pid) for pid in processes] == list(processes.values())
    return sum(int(fields[11]) + int(fields[12]) for fields in stats)


def test_a_lab_that_nobody_asks_stands_still_and_costs_nothing(lab: Lab) -> None:
    run(lab, "ams", "true")
    processes = {pid: start_time(pid) for pid in with_children(lab.provider.processes())}
    assert len(processes) > 2 * len(lab.plan.hosts), "a supervisor, a clock, six kernels and what runs in them"
    now_s, ticks = lab.provider.now_s(), used_ticks(processes)
    time.sleep(2)
    assert lab.provider.now_s() == now_s
    assert used_ticks(processes) - ticks <= 0.02 * TICKS_S


def test_a_command_takes_its_own_time_and_none_of_this_machines(lab: Lab) -> None:
    began_s, here_s = lab.provider.now_s(), time.monotonic()
    result = lab.provider.run("ams", ["sleep", "1000"], timeout_s=2000)
    assert result.seconds == pytest.approx(1000, abs=0.1)
    assert lab.provider.now_s() - began_s == pytest.approx(1000, abs=0.1)
    assert time.monotonic() - here_s < 100


def test_at_a_terminal_a_second_is_a_second(lab: Lab) -> None:
    kind = type(lab.provider)
    script = "echo ready; read go; sleep 1; echo over; read stop"
    words = [kind.__module__, kind.__name__, str(lab.rundir), "ams", "sh", "-c", script]
    terminal = Terminal([sys.executable, "-c", CHILD, *words])
    try:
        terminal.sees("ready")
        here_s, began_s = time.monotonic(), lab.provider.now_s()
        terminal.type("go\r")
        terminal.sees("over")
        lasted_s, here_s = lab.provider.now_s() - began_s, time.monotonic() - here_s
        terminal.type("stop\r")
        assert terminal.code() == 0
    finally:
        terminal.close()
    assert 1 <= lasted_s <= here_s + 0.1
    now_s = lab.provider.now_s()
    time.sleep(0.2)
    assert lab.provider.now_s() == now_s


def test_calls_side_by_side_share_their_time(lab: Lab) -> None:
    began_s = lab.provider.now_s()
    with lab.provider.together() as pool:
        same = pool.all([partial(run, lab, "ams", "sleep", "3"), partial(run, lab, "ams", "sleep", "5")])
        after_first_s = lab.provider.now_s()
        pool.all([partial(run, lab, "ams", "sleep", "7"), partial(run, lab, "lon", "sleep", "7")])
    assert same == ["", ""]
    assert after_first_s - began_s == pytest.approx(5, abs=0.1)
    assert lab.provider.now_s() - after_first_s == pytest.approx(7, abs=0.1)


def test_what_is_asked_at_one_moment_starts_in_the_order_of_the_calls(lab: Lab) -> None:
    """Whichever thread is the slower one here: the order decides which program draws which random numbers."""

    def asked(late_s: float) -> int:
        time.sleep(late_s)
        return int(run(lab, "ams", "sh", "-c", "sleep 1; echo $$"))

    for late in ((0.2, 0.0, 0.1), (0.0, 0.1, 0.2), (0.1, 0.2, 0.0)):
        with lab.provider.together() as pool:
            processes = pool.all([partial(asked, late_s) for late_s in late])
        assert processes == sorted(processes), late


def test_a_host_started_again_has_its_disk_and_its_links(make_lab: MakeLab) -> None:
    lab = make_lab("name: again\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n")
    run(lab, "h2", "sh", "-c", "echo kept >/var/lib/kept")
    before_s = lab.provider.now_s()

    labs.restart(lab, "h2")

    assert lab.provider.now_s() > before_s
    assert run(lab, "h2", "cat", "/var/lib/kept") == "kept\n"
    path = lab.plan.path("h1", "h3")
    calibration.probe(lab.provider, "h1", lab.plan.host("h3").address, count=1)
    rtts_ms = calibration.probe(lab.provider, "h1", lab.plan.host("h3").address, count=20).rtts_ms
    assert rtts_ms == pytest.approx([echo_ms(lab.plan, path)] * 20, abs=EXACT_MS, rel=0)


DEAF = "trap '' TERM INT HUP; while :; do :; done"
SEVERAL = "while :; do :; done & python3 -c 'while True: pass' & wait; exit 1"
SPINNING = [
    pytest.param(["sh", "-c", DEAF], id="one that is deaf"),
    pytest.param(["sh", "-c", SEVERAL], id="several", marks=pytest.mark.nightly),
]
"""Each of them has 10 s of this machine's processor in which next to no time passes, and then passes it. One without
system calls is in `test_virtual_kernel`."""


@pytest.mark.parametrize("argv", SPINNING)
@pytest.mark.nightly
def test_a_program_that_spins_is_ended_by_its_limit_and_the_lab_goes_on(lab: Lab, argv: list[str]) -> None:
    with pytest.raises((CommandTimeout, CommandFailed)):
        lab.provider.run("bra", ["env", "SPINS=1", *argv], timeout_s=5)
    assert run(lab, "bra", "sh", "-c", "grep -lz ^SPINS= /proc/[0-9]*/environ 2>/dev/null || echo none") == "none\n"
    path, address = lab.plan.path("ams", "lju"), lab.plan.host("lju").address
    calibration.probe(lab.provider, "ams", address, count=1)  # who is where comes with a first packet
    rtts_ms = calibration.probe(lab.provider, "ams", address, count=10).rtts_ms
    assert rtts_ms == pytest.approx([echo_ms(lab.plan, path)] * 10, abs=EXACT_MS, rel=0)


@pytest.mark.nightly
def test_a_program_that_computes_goes_on_and_exec_says_that_time_passes_with_it(lab: Lab) -> None:
    """iperf3's sending thread waits in user mode for another of its threads, which waits for a moment of the clock."""
    run(lab, "bra", "iperf3", "-s", "-D")
    address = lab.plan.host("bra").address
    done = Program(lab.rundir.parents[1]).run(
        "exec", "--lab", lab.name, "ams", "--", "iperf3", "-c", address, "-n", "1M"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"iperf3\[\d+\] on ams has computed for 10 s of processor time", done.stderr), done.stderr


SUM = "print(sum(range(600_000_000)))"
"""Some fifteen seconds of a processor without a call to the kernel."""


@pytest.mark.nightly
def test_programs_that_compute_for_long_end_of_themselves_with_what_is_right(lab: Lab) -> None:
    """Side by side on two hosts: a long sum, and a measurement that ends by an alarm of the clock."""
    signing = ["openssl", "speed", "-seconds", "1", "-bytes", "1024", "sha256"]
    with lab.provider.together() as pool:
        summed, signed = pool.all([partial(run, lab, "bra", "python3", "-c", SUM), partial(run, lab, "mil", *signing)])
    assert summed == "179999999700000000\n"
    # Of the processor time that it divides by it has used none: only with `-elapsed` is its figure one.
    assert re.search(r"^sha256 +(inf|\d+\.\d+)k$", signed, re.MULTILINE), signed


QUEUE = 256
"""So many frames are put before a host's port."""
WITHOUT_RATES = """
name: free
hosts: {h1: {}, h2: {}, h3: {}}
links:
  - {ends: [h1, h2], rtt: 10ms}
  - {ends: [h2, h3], rtt: 10ms}
"""


def test_links_without_a_rate_lose_nothing_that_is_sent_at_once(make_lab: MakeLab) -> None:
    """TCP sends bursts of more frames than a port has buffers, all at the same moment."""
    lab = make_lab(WITHOUT_RATES)
    for host in ("h2", "h3"):
        run(lab, host, "iperf3", "-s", "-D")
        said = json.loads(run(lab, "h1", "iperf3", "-c", lab.plan.host(host).address, "-t", "1", "-J"))
        assert said["end"]["sum_sent"]["retransmits"] == 0
        assert said["end"]["sum_sent"]["bytes"] > 20e6
    wires = shown_links.read_wires(lab)
    assert wires is not None
    assert {(each.dropped, each.overrun, each.lost) for ports in wires.values() for each in ports.values()} == {
        (0, 0, 0)
    }


def test_what_a_host_does_not_take_is_lost_and_said_to_be_the_hosts_doing(make_lab: MakeLab) -> None:
    lab = make_lab(WITHOUT_RATES)
    port, address = lab.plan.host("h2").ports[0], lab.plan.far_address(lab.plan.links[0])
    calibration.probe(lab.provider, "h1", address, count=1)
    run(lab, "h2", "ip", "link", "set", port.name, "down")
    run(lab, "h1", "ip", "neigh", "replace", address, "lladdr", port.mac, "dev", "eth1")
    lab.provider.run(
        "h1", ["ping", "-q", "-c", "600", "-i", "0.001", "-W", "1", address], timeout_s=LIMIT_S, check=False
    )
    wires = shown_links.read_wires(lab)
    assert wires is not None
    sent = wires["h1"]["eth1"]
    assert (sent.dropped, sent.lost) == (0, 0)
    assert 600 - QUEUE <= sent.overrun <= 600, "as much as its port holds is not missed"
