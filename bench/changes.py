"""Does a lab stay intact while it is changed again and again, under traffic?

In each round, links are set at random under a TCP stream from the first host to the last, which must not break. Then
links are cut and restored, hosts are killed, started, restarted, paused and resumed, and more hosts are added and
removed, at random, while echo requests run. After each round every link is read back and compared with the record. At
the end, with the original hosts, the certificate is made, and the lab's use of resources is compared with that at the
beginning: files in its run directory, open files and memory of its own processes. The changes follow from the seed.

Exit 1 when a fault was found. In virtual time; the machine's load affects only the duration.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench import stage
from minigts import lab as labs
from minigts.cli import console
from minigts.cli.views import tables
from minigts.dataplane import wire
from minigts.fidelity import measure
from minigts.lab import Lab, current, edit, shown_links
from minigts.lab.record import Amounts
from minigts.machine.proc import family
from minigts.providers.base import OwnProcesses
from minigts.topology.edit import add_host, remove_host
from minigts.topology.plan import link_names
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

APART_S = 0.25
"""Seconds of the lab's time between two changes."""
LIMIT_S = 3600.0
GENTLE, HARSH = 30, 20
"""Changes of links, and cuts, kills, restarts, pauses, added and removed hosts, in each round."""
MOST_GUESTS = 3
"""Hosts that may be in the lab in addition to those of its topology."""


@dataclass
class Found:
    """The changes so far, and the faults found."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    streams: int = 0
    echoes: int = 0


class Rounds:
    """Changes one lab. `chance` decides what and where."""

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        self._lab, self._chance, self.found = lab, chance, Found()
        self._first, *self._others = [host.name for host in lab.plan.hosts]
        self._guests: list[str] = []

    def gentle(self, count: int) -> None:
        """Set links under a stream, which has to end normally."""
        last = self._lab.plan.host(self._others[-1])
        self._lab.provider.run(last.name, ["iperf3", "-s", "-1", "-D"], timeout_s=LIMIT_S)
        seconds = max(2, round(count * APART_S) + 1)
        argv = ["iperf3", "-c", last.address, "-t", str(seconds), "-J"]
        with self._lab.provider.together() as pool:
            stream = pool.start(partial(self._lab.provider.run, self._first, argv, timeout_s=LIMIT_S, check=False))
            for _ in range(count):
                self._pause()
                self._set()
            told = stream.result()
        self.found.streams += 1
        self._expect(told.code == 0 and '"error"' not in told.stdout, f"the stream broke: {told.stdout[-200:]!r}")

    def harsh(self, count: int) -> None:
        """Cut, kill, restart and pause while echo requests run; at the end all links are restored and all hosts on."""
        last = self._lab.plan.host(self._others[-1])
        power = (self._kill, self._start, self._restart, self._halt, self._resume)
        kinds = (self._cut, self._whole, *power, self._add, self._remove)
        argv = ["ping", "-q", "-i", "0.05", "-w", str(max(2, round(count * APART_S))), last.address]
        with self._lab.provider.together() as pool:
            echoes = pool.start(partial(self._lab.provider.run, self._first, argv, timeout_s=LIMIT_S, check=False))
            for _ in range(count):
                self._pause()
                self._chance.choice(kinds)()
            self.found.echoes += "transmitted" in echoes.result().stdout
        for name in sorted(self._lab.read_record().paused):
            self._count("resume", partial(labs.resume, self._lab, name))
        for name in sorted(self._lab.read_record().off):
            self._count("start", partial(labs.restart, self._lab, name))
        self._count("heal", lambda: labs.heal(self._lab))

    def look(self) -> None:
        """Compare every link with the record, and check that every host answers."""
        shown = shown_links.read_wires(self._lab) or {}
        for machine in self._lab.plan.machines:
            for port in machine.ports:
                now = current.port_now(self._lab.plan, port, self._lab.read_record())
                for text in wire.differences(now, shown[machine.name][port.name].wire):
                    self._expect(False, f"{machine.name}: {text}")
        for name, state in self._lab.state_of_hosts().items():
            self._expect(state == "answers", f"{name}: {state}")
        self._expect(not self._lab.read_record().unsettled, "machines are unsettled")

    def _set(self) -> None:
        link = self._chance.choice(self._lab.plan.links)
        update = self._chance.choice(
            (
                {"delay_ms": self._chance.uniform(0.1, 40)},
                {"rate_mbit": self._chance.uniform(5, 50)},
                {"loss_percent": self._chance.choice([0.0, 0.1, 0.5])},
                {"loss_percent": 0.5, "burst_packets": self._chance.uniform(1, 4)},
                {"jitter_ms": self._chance.uniform(0, 0.1)},
                {"delay_ms": 5.0, "reorder_percent": self._chance.uniform(0, 1)},
                {"duplicate_percent": self._chance.uniform(0, 2)},
                {"corrupt_percent": self._chance.uniform(0, 0.1)},
                {"slot_ms": self._chance.uniform(0, 2)},
                {"queue_bytes": float(self._chance.randrange(20_000, 200_000))},
                dict.fromkeys(Amounts.model_fields),
            )
        )
        sender = self._chance.choice([None, *link.ends])
        self._count("set", lambda: labs.update_settings(self._lab, link.name, update, sender))

    def _cut(self) -> None:
        link = self._chance.choice(self._lab.plan.links)
        self._count("cut", lambda: labs.set_links_up(self._lab, *link.ends, up=False))

    def _whole(self) -> None:
        name = self._chance.choice(
            labs.cut_links(self._lab.plan, self._lab.read_record()) or [self._lab.plan.links[0].name]
        )
        link = link_names.link_named(self._lab.plan, name)
        self._count("whole", lambda: labs.set_links_up(self._lab, *link.ends, up=True))

    def _kill(self) -> None:
        if on := self._awake():
            name = self._chance.choice(on)
            self._count("kill", lambda: labs.kill(self._lab, name))

    def _halt(self) -> None:
        if on := self._awake():
            self._count("pause", partial(labs.pause, self._lab, self._chance.choice(on)))

    def _resume(self) -> None:
        for name in sorted(self._lab.read_record().paused)[:1]:
            self._count("resume", partial(labs.resume, self._lab, name))

    def _awake(self) -> list[str]:
        return [name for name in self._others if name not in self._lab.read_record().silent]

    def _start(self) -> None:
        for name in sorted(self._lab.read_record().off)[:1]:
            self._count("start", partial(labs.restart, self._lab, name))

    def _restart(self) -> None:
        if on := self._awake():
            name = self._chance.choice(on)
            self._count("restart", lambda: labs.restart(self._lab, name))

    def _add(self) -> None:
        if len(self._guests) < MOST_GUESTS and not self._lab.read_record().paused:
            name = f"guest{self.found.done['add'] + 1}"
            rtt = f"{self._chance.uniform(1, 20):.3f}ms"
            self._alter(
                "add",
                add_host(self._lab.plan, name, self._chance.choice(self._others), {"rtt": rtt, "rate": "50mbit"}),
            )
            self._guests.append(name)

    def _remove(self) -> None:
        if self._guests and not self._lab.read_record().paused:
            self._alter("remove", remove_host(self._lab.plan, self._guests.pop(0)))

    def alone(self) -> Lab:
        """The lab without guests."""
        while self._guests:
            self._remove()
        return self._lab

    def _alter(self, what: str, after: Plan) -> None:
        self._count(what, lambda: edit.alter(self._lab, after, lambda _: None))
        self._lab = self._lab.reopened

    def _count(self, what: str, change: Callable[[], object]) -> None:
        change()
        self.found.done[what] += 1

    def _pause(self) -> None:
        provider = self._lab.provider
        provider.sleep_until(provider.now_s() + self._chance.uniform(0, 2 * APART_S))

    def _expect(self, good: bool, text: str) -> None:
        if not good:
            self.found.wrong.append(text)
            console.note(f"WRONG: {text}")


def taken(lab: Lab) -> dict[str, float]:
    """The open files and memory of the lab's own processes: the clock and the supervisor, but no kernel."""
    assert isinstance(lab.provider, OwnProcesses), "uml is"
    own = sorted({*family(lab.provider.processes())} - {*family(lab.provider.kernels().values())})
    memory = sum(_status(pid, "VmRSS:") for pid in own)
    clock, others = ([pid for pid in own if (_name(pid) == "clock") is wanted] for wanted in (True, False))
    below = sum(len(names) for _, _, names in os.walk(lab.rundir))
    return {
        "processes": len(own),
        "memory_mb": round(memory / 1024, 1),
        "open_files_of_the_clock": _open_files(clock),
        "open_files_of_others": _open_files(others),
        "files": below,
    }


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _open_files(pids: list[int]) -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)


def _status(pid: int, what: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(what)), 0)


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--changes", type=int, default=1000, help="the least number of changes")
    arguments.add_argument("--seed", type=int, default=2017, help="the seed of the changes")
    chosen = arguments.parse_args()
    figures = stage.Figures("changes", chosen.topology)
    began = time.monotonic()
    with stage.lab_of(load(chosen.topology, time="virtual")) as lab:
        rounds = Rounds(lab, random.Random(chosen.seed))
        rounds.look()
        before = taken(lab)
        while sum(rounds.found.done.values()) < chosen.changes:
            rounds.gentle(GENTLE)
            rounds.harsh(HARSH)
            rounds.look()
            console.note(f"{sum(rounds.found.done.values())} changes, {len(rounds.found.wrong)} wrong, {taken(lab)}")
        now = rounds.alone()
        after, lab_s = taken(now), now.provider.now_s()
        for link in now.plan.links:
            labs.update_settings(now, link.name, dict.fromkeys(Amounts.model_fields))
        certificate = measure.certify(now, console.note)
        found = rounds.found
        if not certificate.ok:
            found.wrong.append(f"the certificate: {certificate.verdict}")
    told = {
        "seed": chosen.seed,
        "changes": dict(sorted(found.done.items())),
        "streams": found.streams,
        "wrong": found.wrong,
        "certificate": certificate.verdict,
        "before": before,
        "after": after,
        "lab_s": round(lab_s, 3),
        "seconds": round(time.monotonic() - began, 1),
    }
    tables.show_table(
        "Changes", ("what", ">how often"), ((what, str(count)) for what, count in sorted(found.done.items()))
    )
    tables.show_table(
        "What the lab takes", ("what", ">before", ">after"), ((k, str(before[k]), str(after[k])) for k in before)
    )
    figures.write(chosen.out, told)
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    stage.perform(main)
