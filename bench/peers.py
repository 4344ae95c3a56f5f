"""The same work by several programs, in turn: a chain of hosts comes up with shaped links, answers a ping, goes down.

uml virtual, uml real   bare hosts of minigts, a kernel each; every link 50 Mbit/s and a round trip of 10 ms
namespaces              `ip netns`, veth and tbf by a script (peers.sh); 50 Mbit/s, no delay, which needs netem
one kernel              the same within one User-Mode Linux kernel, which has netem: 50 Mbit/s, 10 ms
mininet, mininet tc     `mn --topo linear,N` with Linux bridges; without shaping, and with `--link tc,bw=50`

Each is a separate process, timed from its start, with the loading of its program. A program that is not installed is
left out with a message. The peers run in network, mount and process namespaces of the bench.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import memory, stage
from bench.hosts import CALIBRATING
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import MinigtsError
from minigts.lab import Lab
from minigts.machine import proc, shell
from minigts.session.bring_up import bare
from minigts.topology.read.load import parse
from minigts.topology.user_files import UserFiles

CHAIN = "name: peers\ntime: {time}\nchain: {{hosts: {hosts}, link: {{rtt: 10ms, rate: 50mbit}}}}\n"
SINGLE = "name: peers\ntime: real\nhosts: {one: {memory: 512MB}}\n"
SCRIPT = Path(__file__).with_name("peers.sh")
PATIENCE_S = 300
APART = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "sh", "-c")
OWN = 'mount -t sysfs sysfs /sys && ip link set lo up && mount -t tmpfs tmpfs /var/run && exec "$@"'
OWN_AND_HARMLESS = OWN.replace("ip link", "mount -o bind,ro /proc/sys /proc/sys && ip link")
"""Mininet raises limits of the machine and ends processes by name; in these namespaces it can do neither."""
HEADS = (
    "",
    ">hosts",
    ">up and shaped, s",
    ">first ping, s",
    ">down, s",
    ">processor, s",
    ">MiB a host",
    ">ping / uml virtual",
)


@dataclass(frozen=True)
class Run:
    """Seconds from the start until hosts are up with shaped links, until the ping is answered, and for taking down;
    processor seconds until the ping; and the memory of the programs then, in MiB for each host."""

    up_s: float
    ping_s: float
    down_s: float
    processor_s: float
    mib: float


@dataclass(frozen=True)
class Peer:
    """A program and its dialogue: its command for a number of hosts, its output when they are up and when the ping is
    answered, and the lines that it needs as input."""

    command: Callable[[int], Sequence[str]]
    up: str
    ping: str
    pinged: str
    end: str
    begin: str = ""
    programs: Sequence[str] = ()
    """Programs that it needs besides this environment; then it needs root, too."""
    lacking: Callable[[], str] = field(default=lambda: "")

    def missing(self) -> str:
        """What it lacks to run here; empty if it lacks nothing."""
        absent = [program for program in self.programs if shutil.which(program) is None]
        if absent:
            return f"{', '.join(absent)} not installed"
        return "needs root" if self.programs and os.geteuid() != 0 else self.lacking()


class Talk:
    """A process that reads lines and answers until it ends. `said` is all of its output."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._said, self._seen = "", 0
        # If this bench is killed, their input ends, and each takes down what it has made.
        self._process = shell.start(argv, output=subprocess.PIPE, stdin=subprocess.PIPE)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str, *, last: bool = False) -> None:
        """Send a line; after the last one the process gets no more input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        if last:
            self._process.stdin.close()

    def hear(self, words: str) -> str:
        """Wait for a line of output with these words, and return it. Raises MinigtsError when none comes."""
        found = self._wait(re.compile(words))
        self._seen = found.end()
        return found[0]

    def _wait(self, words: re.Pattern[str]) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := words.search(self._said, self._seen)):
            if not self._read(deadline):
                raise MinigtsError(f"{' '.join(self._argv)} never said {words.pattern!r}:\n{self._said[-2000:]}")
        return found

    def _read(self, deadline: float) -> bool:
        """Whether there was more output before the deadline."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(self._process.stdout.fileno(), 65536) if ready else b""
        self._said += data.decode(errors="replace")
        return bool(data)

    def wait(self) -> None:
        """Wait for its end. Raises MinigtsError when it fails."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        if self._process.wait(PATIENCE_S) != 0:
            raise MinigtsError(f"{' '.join(self._argv)} failed:\n{self._said[-2000:]}")

    def finish(self) -> None:
        """End the process if it still runs; its lab goes down first."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S / 10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextmanager
def talking(argv: Sequence[str]) -> Iterator[Talk]:
    """A process that ends with the context, however that ends; its namespaces end with it."""
    talk = Talk(argv)
    try:
        yield talk
    finally:
        talk.finish()


def measure(peer: Peer, hosts: int) -> Run:
    started = time.monotonic()
    with talking(peer.command(hosts)) as talk:
        if peer.begin:
            talk.tell(peer.begin)
        talk.hear(peer.up)
        up_s = time.monotonic() - started
        talk.tell(peer.ping.format(hosts=hosts))
        said = talk.hear(peer.pinged)
        ping_s = time.monotonic() - started
        processor_s, mib = held(said, talk.pid)
        ends = time.monotonic()
        talk.tell(peer.end, last=True)
        talk.wait()
        return Run(up_s, ping_s, time.monotonic() - ends, processor_s, mib / hosts)


def held(said: str, pid: int) -> tuple[float, float]:
    """Processor seconds so far, and MiB: those that minigts reports for its lab, whose processes are no children of
    this one; for any other program, those of itself and all processes below it."""
    if said.startswith("{"):
        figures = json.loads(said)
        return figures["processor_s"], figures["mib"]
    family = list(proc.family([pid]))
    return sum(map(proc.used_s, family)), memory.shares(family)["Pss"] / memory.MIB


def alone(what: str, hosts: int) -> None:
    """minigts in this bench: a process that brings a lab up, pings, answers lines, and takes the lab down."""
    inside = what == "inside"
    plan = parse(SINGLE if inside else CHAIN.format(time=what, hosts=hosts), "peers", beside=UserFiles(stage.PROJECT))

    def say(text: str) -> None:
        if text.startswith(CALIBRATING) and not inside:  # in virtual time there is nothing to calibrate
            announce("up")

    with bare(plan, "uml", f"bench-{os.getpid()}", say) as lab:
        first, last = plan.hosts[0].name, plan.hosts[-1]
        ping = ["ping", "-n", "-c", "1", "-w", "60", str(last.address)]
        if inside:
            by_hand(lab, "make", hosts)
        if inside or plan.time == "virtual":
            announce("up")
        sys.stdin.readline()
        by_hand(lab, "ping", hosts) if inside else lab.provider.run(first, ping, timeout_s=PATIENCE_S)
        family = memory.family(memory.supervisor_of(lab), memory.children())
        processor_s = sum(map(proc.used_s, family)) + proc.used_s(os.getpid())
        announce(json.dumps({"processor_s": processor_s, "mib": memory.memory(lab)["all"]}))
        sys.stdin.readline()


def announce(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def by_hand(lab: Lab, verb: str, hosts: int) -> None:
    """Run peers.sh on the only host of a lab."""
    argv = ["sh", "-c", SCRIPT.read_text(encoding="utf-8"), "sh", verb, str(hosts), "5ms"]
    lab.provider.run(lab.plan.hosts[0].name, argv, timeout_s=PATIENCE_S)


def minigts(what: str) -> Peer:
    return Peer(
        lambda hosts: (sys.executable, "-P", "-m", "bench.peers", "--alone", what, "--hosts", str(hosts)),
        up=r"^up$|\nup\n",
        ping="ping",
        pinged=r"\{.*\}",
        end="end",
    )


def mininet(*link: str) -> Peer:
    switches = ("--switch", "lxbr", "--controller", "none")
    return Peer(
        lambda hosts: (*APART, OWN_AND_HARMLESS, "sh", "mn", "--topo", f"linear,{hosts}", *switches, *link),
        up=r"Starting CLI",
        ping="h1 ping -n -c 1 -w 10 h{hosts}",
        pinged=r"[1-9]\d* received",
        end="exit",
        programs=("mn", "brctl", "unshare", "ping"),
    )


PEERS: Mapping[str, Peer] = {
    "uml virtual": minigts("virtual"),
    "uml real": minigts("real"),
    "one kernel": minigts("inside"),
    "namespaces": Peer(
        lambda hosts: (*APART, OWN, "sh", "sh", str(SCRIPT), "obey", str(hosts)),
        begin="make",
        up="done make",
        ping="ping",
        pinged="done ping",
        end="remove",
        programs=("ip", "tc", "unshare", "ping"),
    ),
    "mininet": mininet(),
    "mininet tc": mininet("--link", "tc,bw=50"),
}


def medians(runs: Sequence[Run]) -> dict[str, float]:
    return {name: round(statistics.median(asdict(run)[name] for run in runs), 3) for name in asdict(runs[0])}


def rows(found: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for hosts, peers in found.items():
        whole = peers["uml virtual"]["median"]["ping_s"] if "uml virtual" in peers else None
        for name, each in peers.items():
            middle = each["median"]
            figures = (f"{middle[what]:.2f}" for what in ("up_s", "ping_s", "down_s", "processor_s"))
            share = f"{middle['ping_s'] / whole:.2f}" if whole else ""
            yield name, hosts, *figures, f"{middle['mib']:.1f}", share


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--hosts", nargs="+", type=int, default=[2, 6, 20])
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS))
    arguments.add_argument("--alone", metavar="TIME", help="used by the bench itself")
    chosen = arguments.parse_args()
    if chosen.alone:
        alone(chosen.alone, chosen.hosts[0])
        return
    figures = stage.Figures("peers", chosen.topology)
    why = {name: PEERS[name].missing() for name in chosen.only}
    here = {name: PEERS[name] for name in chosen.only if not why[name]}
    found = {}
    for hosts in chosen.hosts:
        runs: dict[str, list[Run]] = {}
        for count in range(chosen.runs):  # in turn, so that a busy moment meets all
            console.note(f"{hosts} hosts, run {count + 1} of {chosen.runs}")
            for name, peer in here.items():
                try:
                    runs.setdefault(name, []).append(measure(peer, hosts))
                except MinigtsError as error:
                    console.note(f"{name}: {error}")
        found[str(hosts)] = {
            name: {"runs": [asdict(run) for run in each], "median": medians(each)}
            for name, each in runs.items()
            if each
        }
    tables.show_table(f"A chain, up, pinged and gone: medians of {chosen.runs}", HEADS, rows(found))
    for name, reason in why.items():
        if reason:
            console.note(f"{name}: not measured, {reason}")
    figures.write(chosen.out, {"hosts": found, "left_out": {name: each for name, each in why.items() if each}})


if __name__ == "__main__":
    stage.perform(main)
