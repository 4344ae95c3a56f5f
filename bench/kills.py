"""What is left behind or lost when a process is killed at a random moment?

A trial starts a verb on a small lab of its own, and kills that verb's process, one of the lab's kernels or its
supervisor at a random moment of the verb's duration. Then it checks: are the samples of a killed run still there, and
can the run be finished; does the next `up` give a lab that works; and when that lab is down, is any process, socket,
file or shared memory left? A trial whose verb ended before its moment is begun again and not counted. A trial follows
from the seed and its number. Exit 1 when a trial found a fault.

With `--hostile`, every lab has a host whose kernel is taken over by its guest: it wipes its environment, leaves
orphaned processes, and forks until it is refused. Its processes are found by their session, which they cannot leave.

As root the bench runs in its own process and mount namespaces, so that it can hit only the trials' processes. Each
trial is a line of `kills-<seed>.jsonl` with all output; the next call does the trials that have no line.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.providers.uml.run import supervisor
from tests.live import hostile
from tests.live.program import Program, Traces, processes_of

VERBS = ("up", "run", "down", "link", "restart", "keep", "save")
"""The verbs that are killed; `keep` is `down --keep`."""
PARTS = {"kernel": b"\0uml_dir=", "supervisor": f"\0{supervisor.__name__}\0".encode()}
"""The other victims, and a part of their command lines."""
VICTIMS = (*VERBS, *PARTS)
MEANWHILE = ("up", "run", "exec", "restart")
"""The verbs during which one of those is killed."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TRIES = 6
FORKS = 300
"""Processes of a taken kernel: more than a host may have, and few enough for a minute on a busy machine."""
SAVED = "saved-here"
OWN_CODE, UNBORN = str(stage.PROJECT / "tools" / "minigts"), "Fatal Python error"
"""A module in a traceback of the program; the message of an interpreter that was interrupted before it ran any."""
LIMIT_S = 300.0
"""The time limit of a command in seconds; far more than any takes, since the machine may be busy."""
TOPOLOGIES = {
    "pair": "name: pair\ntime: real\npair: {hosts: [a, b], link: {rtt: 17.7ms, rate: 100mbit}}\n",
    "chain": "name: chain\ntime: real\nchain: {hosts: [a, m, b], link: {rtt: 4ms, rate: 100mbit}}\n",
}
EXPERIMENT = """\
name: echoes
title: A few echoes
description: Enough samples for a run to be killed between them.
topology: {topology}
overlays: [none]
seed: 2017
repetitions: 6
measurements:
  - {{name: echo, tool: ping, paths: [every-pair], options: {{count: 10, interval: 20ms}}}}
"""
WORKS = "ping -c 1 -W 20 {other} && tc qdisc show | grep netem"
"""Run on every host of a lab that is up: it reaches an end of the chain, and its links are shaped."""
APART = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--")
WITHIN = 'mount -t tmpfs tmpfs /dev/shm && "$@"; exit $?'
"""The shell stays as the namespace's first process, which collects orphaned processes."""


@dataclass(frozen=True)
class Draw:
    """A trial's plan. `share` is the moment of the kill, as a share of the duration of the verb `during`; `mend` is the
    verb that is tried first afterwards."""

    seed: int
    number: int
    victim: str
    kind: str
    during: str
    topology: str
    share: float
    mend: str
    hostile: bool = False
    """Whether one of the trial's labs has a host with a taken kernel."""


@dataclass
class Pace:
    """How long verbs take now: their duration on an idle machine, times the present slowness."""

    usual_s: dict[str, float] = field(
        default_factory=lambda: {
            "up": 5.0,
            "run": 16.0,
            "down": 0.3,
            "link": 0.6,
            "restart": 2.5,
            "exec": 3.5,
            "keep": 0.8,
            "save": 1.2,
        }
    )
    slower: float = 1.0

    def seconds(self, verb: str) -> float:
        return self.usual_s[verb] * self.slower

    def learn(self, verb: str, seconds: float) -> None:
        """Learn from an undisturbed verb. Every trial has an `up`, which shows how slow the machine is."""
        if verb == "up":
            self.slower = seconds / self.usual_s[verb]
        else:
            self.usual_s[verb] = seconds / self.slower


@dataclass
class Trial:
    """A trial's result: `faults` is empty for a clean one. `transcript` has every command with its output and exit
    code."""

    draw: Draw
    moment_s: float = 0.0
    samples: int = 0
    """The samples that a killed run had measured; each was there unchanged after the run was finished."""
    faults: list[str] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)


def draws(seed: int, times: int, victims: Sequence[str] = VICTIMS, *, hostile: bool = False) -> list[Draw]:
    """`times` trials, spread evenly over these victims and all signals, with a hostile host in each or in none."""
    chance = random.Random(seed)
    found: list[Draw] = []
    for _ in range(-(-times // (len(SIGNALS) * len(victims)))):
        pairs = list(itertools.product(victims, SIGNALS))
        chance.shuffle(pairs)
        for victim, number in pairs:
            found.append(
                Draw(
                    seed,
                    len(found),
                    victim,
                    number.name,
                    victim if victim in VERBS else chance.choice(MEANWHILE),
                    chance.choice(list(TOPOLOGIES)),
                    chance.random(),
                    chance.choice(("up", "down")),
                    hostile,
                )
            )
    return found[:times]


class Ground:
    """A trial's place: a program with state, results and temporary files of its own."""

    def __init__(self, place: Path, draw: Draw, trial: Trial) -> None:
        self.results, self.temporary = place / "results", place / "tmp"
        self.topology = place / f"{draw.topology}.yaml"
        self.experiment = place / "echoes.yaml"
        self.temporary.mkdir(parents=True)
        self.topology.write_text(TOPOLOGIES[draw.topology])
        self.experiment.write_text(EXPERIMENT.format(topology=self.topology))
        environment = {"TMPDIR": str(self.temporary)}
        if draw.hostile:
            environment["MINIGTS_CACHE"] = str(hostile.cache(place / "cache"))
        self.program = Program(place / "state", environment=environment)
        self.traces = Traces.before(self.program.state)
        self._hostile: dict[int, str] | None = {} if draw.hostile else None
        self._trial, self._chance = trial, random.Random(f"{draw.seed} {draw.number}")

    @property
    def hosts(self) -> tuple[str, ...]:
        return ("a", "b") if self.topology.stem == "pair" else ("a", "m", "b")

    def argv(self, verb: str) -> tuple[str, ...]:
        first, second = self.hosts[:2]
        return {
            "up": ("up", str(self.topology), "--overlay", "none"),
            "run": ("run", str(self.experiment), "--results", str(self.results)),
            "down": ("down",),
            "link": ("link", first, second, self._chance.choice(("up", "down"))),
            "keep": ("down", "--keep"),
            "save": ("save", SAVED),
            "restart": ("restart", self._chance.choice(self.hosts)),
            "exec": ("exec", first, "--", "ping", "-c", "30", "-i", "0.1", self.hosts[-1]),
        }[verb]

    def end(self, started: subprocess.Popen[str], argv: Sequence[str]) -> tuple[int, str]:
        """Wait for a command's end; return its exit code and its stderr. A traceback is a fault."""
        try:
            stdout, stderr = started.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            started.kill()
            stdout, stderr = started.communicate()
            self._trial.faults.append(f"`{argv[0]}` did not end in {LIMIT_S:g} s")
        self._trial.transcript.append(f"$ minigts {' '.join(argv)}\n{stdout}{stderr}= {started.returncode}")
        if "Traceback" in stderr and OWN_CODE in stderr:
            self._trial.faults.append(f"`{argv[0]}` ended with a traceback")
        return started.returncode, stderr

    def succeeds(self, *argv: str) -> bool:
        code, stderr = self.end(self.program.start(*argv), argv)
        if code:
            last = (stderr.strip() or "nothing said").splitlines()[-1]
            self._trial.faults.append(f"`{' '.join(argv[:1])}` afterwards ended with code {code}: {last}")
        return code == 0

    def holds_no_half_lab(self) -> None:
        """Check that a verb that was asked to end has taken down what it had begun."""
        argv = ("status", "--json")
        started = self.program.start(*argv)
        listed = json.loads(started.communicate(timeout=LIMIT_S)[0])
        self._trial.faults += [f"half a lab stayed: {lab}" for lab in listed if lab.get("state") != "up"]

    def take_a_kernel(self) -> None:
        """Make the first host of a lab that is up hostile, if this trial is."""
        if self._hostile is None or hostile.left(self._hostile):
            return
        try:
            came, ours = hostile.outlive(self.program, self.topology.stem, self.hosts[0], FORKS)
        except (AssertionError, KeyError, ValueError) as error:
            self._trial.faults.append(f"the kernel of {self.hosts[0]} was not taken: {str(error)[-300:]}")
            return
        self._hostile.update(ours)
        self._trial.transcript.append(f"taken: {came}, {len(ours)} processes")

    def part(self, victim: str) -> int | None:
        """The process id of one of the lab's kernels, or of its supervisor, if it runs."""
        found = [pid for pid in sorted(processes_of(self.program.state)) if PARTS[victim] in _command_line(pid)]
        return self._chance.choice(found) if found else None

    def look(self, what: str) -> None:
        """Record each thing that is left now as a fault."""
        left = [*self.traces.left(but="failed"), *(f"temporary file {path.name}" for path in self.temporary.iterdir())]
        left += [f"process {pid} of a taken kernel" for pid in hostile.left(self._hostile or {})]
        self._trial.faults += [f"{what}: {each} left" for each in left]

    def clear(self) -> None:
        """End what is left of this trial, so that it does not spoil the next."""
        for _ in range(100):
            left = processes_of(self.program.state)
            for pid in left:
                self.send(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.05)

    def send(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a process of this trial; a process that has got the same id meanwhile gets none."""
        with contextlib.suppress(OSError), _process(pid) as opened:
            if f"MINIGTS_STATE={self.program.state}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(opened, number)


def _command_line(pid: int) -> bytes:
    try:
        return b"\0" + Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def _process(pid: int) -> Iterator[int]:
    opened = os.pidfd_open(pid)
    try:
        yield opened
    finally:
        os.close(opened)


def perform(draw: Draw, pace: Pace) -> Trial | None:
    """The trial's result; None when the verb ended before every kill."""
    trial = Trial(draw)
    for attempt in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="minigts-kills-", ignore_cleanup_errors=True) as place:
            ground = Ground(Path(place), draw, trial)
            try:
                if kill(ground, draw, trial, pace, random.Random(f"{draw.seed} {draw.number} {attempt}")):
                    look_after(ground, draw, trial, pace)
                    return trial
                ground.succeeds("down", "--all")
            finally:
                ground.clear()
        if trial.faults:
            return trial
        trial.transcript.clear()
    return None


def kill(ground: Ground, draw: Draw, trial: Trial, pace: Pace, chance: random.Random) -> bool:
    """Start the verb and kill the victim; False if the verb ended before."""
    if draw.during not in ("up", "run"):
        _up(ground, pace)
        ground.take_a_kernel()
    trial.moment_s = pace.seconds(draw.during) * (draw.share if chance.random() < 0.5 else chance.random())
    argv, since = ground.argv(draw.during), time.monotonic()
    started = ground.program.start(*argv)
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(trial.moment_s)
    victim, number = _victim(ground, draw, started), signal.Signals[draw.kind]
    ground.traces.look()
    if victim is not None:
        ground.send(victim, number)
    code, stderr = ground.end(started, argv)
    if victim is None or (victim == started.pid and code == 0):
        pace.learn(draw.during, time.monotonic() - since)
        return False
    if victim == started.pid and code not in (-number, 128 + number) and UNBORN not in stderr:
        trial.faults.append(f"`{draw.during}` ended with code {code} after {draw.kind}")
    if victim == started.pid and number != signal.SIGKILL and draw.during in ("up", "run"):
        ground.holds_no_half_lab()
    return True


def _victim(ground: Ground, draw: Draw, started: subprocess.Popen[str]) -> int | None:
    """The victim's process id, waited for while the verb runs; None when the verb has ended."""
    while started.poll() is None:
        if draw.victim in VERBS:
            return started.pid
        pid = ground.part(draw.victim)
        if pid is not None:
            return pid
        time.sleep(0.02)
    return None


def look_after(ground: Ground, draw: Draw, trial: Trial, pace: Pace) -> None:
    if draw.during == "run":
        _finish_run(ground, trial)
    if draw.mend == "down":
        _down(ground, "after `down`")
    _up(ground, pace)
    if draw.mend == "up" and draw.during == "link":
        ground.succeeds("link", *ground.hosts[:2], "up")
    for host in ground.hosts:
        other = ground.hosts[0] if host == ground.hosts[-1] else ground.hosts[-1]
        argv = ("exec", "--lab", ground.topology.stem, host, "--", "sh", "-c", WORKS.format(other=other))
        code, _ = ground.end(ground.program.start(*argv), argv)
        if code:
            trial.faults.append(f"after the next `up`, {host} does not reach {other}, or its links are not shaped")
    ground.traces.look()
    ground.take_a_kernel()
    _down(ground, "after the next `up` and `down`")


def _up(ground: Ground, pace: Pace) -> None:
    since, there = time.monotonic(), ground.program.rundir(ground.topology.stem).exists()
    if ground.succeeds(*ground.argv("up")) and not there:
        pace.learn("up", time.monotonic() - since)


def _down(ground: Ground, when: str) -> None:
    """Take all labs down, restore and delete the saved lab if there is one, and look for what is left."""
    ground.succeeds("down", "--all")
    if (ground.program.state / "saved" / SAVED).exists():
        ground.succeeds("restore", SAVED)
        ground.succeeds("down", "--all")
        ground.succeeds("saved", "--delete", SAVED)
    with contextlib.suppress(FileNotFoundError):
        (ground.program.state / "saved").rmdir()  # it is empty by now
    ground.look(when)


def _finish_run(ground: Ground, trial: Trial) -> None:
    """Check that the samples are still there byte for byte after the run has been resumed, and the rest, too."""
    for directory in ground.results.glob("*") if ground.results.exists() else ():
        before = _raw(directory)
        trial.samples = _good(before)
        if not (directory / "manifest.json").exists():
            trial.faults += [f"{len(before)} samples without a manifest"] if before else []
            continue
        if not ground.succeeds("run", "--resume", str(directory)):
            continue
        after = _raw(directory)
        planned = json.loads((directory / "manifest.json").read_text())["samples_planned"]
        if _good(after) != planned:
            trial.faults.append(f"{_good(after)} samples of {planned} after `run --resume`")
        trial.faults += [f"{name} lost or changed" for name in before if after.get(name) != before[name]]
        trial.faults += [f"temporary file {path.name} left" for path in directory.rglob(".*")]


def _raw(directory: Path) -> dict[str, bytes]:
    """The raw files of a run, by name."""
    return {path.name: path.read_bytes() for path in (directory / "raw").glob("[!.]*.json")}


def _good(names: Iterable[str]) -> int:
    return sum(re.search(r"\.(failed|tainted)-\d+\.json$", name) is None for name in names)


def markdown(trials: Sequence[Mapping[str, Any]]) -> str:
    """A table of victims and signals."""
    lines = ["| killed | by | tried | clean | what was wrong |", "|---|---|---|---|---|"]
    for victim, number in itertools.product(VICTIMS, SIGNALS):
        own = [each for each in trials if (each["draw"]["victim"], each["draw"]["kind"]) == (victim, number.name)]
        wrong = [f"{each['draw']['number']}: {'; '.join(each['faults'])}" for each in own if each["faults"]]
        if own:
            clean = len(own) - len(wrong)
            lines.append(f"| {victim} | {number.name} | {len(own)} | {clean} | {'<br>'.join(wrong)} |")
    clean = sum(not each["faults"] for each in trials)
    lines.append(f"| all | | {len(trials)} | {clean} | |")
    return "\n".join(lines)


def go_apart() -> None:
    """As root, run this bench again in its own namespaces."""
    if os.geteuid() == 0 and shutil.which(APART[0]):
        argv = [*APART, "sh", "-c", WITHIN, "sh", sys.executable, "-P", "-m", "bench.kills", *sys.argv[1:], "--here"]
        os.execvp(argv[0], argv)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--times", type=int, default=200, metavar="N", help="the number of kills (default: 200)")
    arguments.add_argument("--victims", nargs="+", choices=VICTIMS, default=VICTIMS, help="the victims")
    arguments.add_argument("--hostile", action="store_true", help="every lab has a host whose kernel is taken over")
    arguments.add_argument("--seed", type=int, default=2017)
    arguments.add_argument(
        "--at-most", type=float, default=86_400.0, metavar="S", help="begin no trial after S seconds"
    )
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    arguments.add_argument("--here", action="store_true", help="without namespaces of its own")
    chosen = arguments.parse_args()
    # A bench that was started in the background ignores SIGINT, and so would every program that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not chosen.here:
        go_apart()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = chosen.out / f"kills-{chosen.seed}.jsonl"
    trials = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    pace = Pace()
    until_s = time.monotonic() + chosen.at_most
    done = {trial["draw"]["number"] for trial in trials}
    for draw in (
        each
        for each in draws(chosen.seed, chosen.times, chosen.victims, hostile=chosen.hostile)
        if each.number not in done
    ):
        if time.monotonic() > until_s:
            break
        performed = perform(draw, pace)
        if performed is None:
            console.note(f"{draw.number}: {draw.during} was over before each of {TRIES} kills; not counted")
            continue
        trial = asdict(performed)
        trials.append(trial)
        with kept.open("a") as lines:
            lines.write(json.dumps(trial) + "\n")
        told = "; ".join(trial["faults"]) or "clean"
        console.note(f"{draw.number}: {draw.kind} to {draw.victim} in {draw.during}, {trial['moment_s']:.2f} s: {told}")
    sys.stdout.write(markdown(trials) + "\n")
    sys.exit(any(trial["faults"] for trial in trials))


if __name__ == "__main__":
    stage.perform(main)
