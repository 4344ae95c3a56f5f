"""How long a chain of six takes to come up: plain, with Swarm, and with Mininet on the same machine.

Each is the command as a user types it, from its start to its last line. The phases are those that the command reports.
Mininet is `mn --topo linear,6` with Linux bridges and without shaping, in its own namespaces: it changes neither the
machine's network nor its settings or processes.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import MinigtsError
from minigts.machine import shell
from minigts.providers.uml.build import image

PHASES = (
    ("program", "starting "),
    ("boot", "configuring "),
    ("configure", "measuring "),
    ("calibrate", "certificate: "),
    ("certify", ": installing"),
    ("overlay", "is up"),
)
"""Each phase's name, and the line of the command that ends the phase."""
UP = "up"
MININET = ("mn", "--topo", "linear,6", "--switch", "lxbr", "--controller", "none", "--test", "none")
APART = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
SETTLED = (
    "mount -t sysfs sysfs /sys && mount -o bind,ro /proc/sys /proc/sys && ip link set lo up && "
    'mount -t tmpfs tmpfs /var/run && exec "$@"'
)
"""Mininet raises limits of the machine and ends processes by name; in these namespaces it can do neither."""


@dataclass(frozen=True)
class Heard:
    """A line of a command's output, and the seconds until it came."""

    seconds: float
    text: str


def listen(argv: Sequence[str]) -> list[Heard]:
    """Run a command to its end; return the lines of its stderr. Raises MinigtsError when the command fails."""
    started = time.monotonic()
    read_end, write_end = os.pipe()
    process = shell.start(argv, output=subprocess.DEVNULL, errors=write_end, new_session=False)
    os.close(write_end)
    heard = []
    while data := os.read(read_end, 65536):
        heard.append(Heard(time.monotonic() - started, data.decode(errors="replace")))
    os.close(read_end)
    if process.wait() != 0:
        raise MinigtsError(f"{' '.join(argv)} failed:\n{''.join(each.text for each in heard)}")
    return heard


def said_at(heard: Sequence[Heard], words: str) -> float:
    return next(each.seconds for each in heard if words in each.text)


def phases(heard: Sequence[Heard]) -> dict[str, float]:
    """Seconds of each phase. `up` is the sum of the first four: hosts that answer, with shaped and calibrated links."""
    found, before = {}, 0.0
    for name, words in PHASES:
        now = said_at(heard, words)
        found[name], before = round(now - before, 3), now
    return {**found, UP: round(said_at(heard, PHASES[-3][1]), 3), "all": round(before, 3)}


def bring_up(topology: Path, overlay: str) -> dict[str, float]:
    program, name = [sys.executable, "-P", "-m", "minigts"], f"bench-{os.getpid()}"
    try:
        heard = listen([*program, "up", str(topology), "--overlay", overlay, "--lab", name])
    finally:
        shell.run([*program, "down", name], timeout_s=120, check=False)
    return phases(heard)


def why_no_mininet() -> str:
    """What Mininet lacks to run here; empty if it lacks nothing."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [program for program in ("mn", "brctl", "unshare") if shutil.which(program) is None]
    return f"{', '.join(absent)} not installed (apt-get install mininet bridge-utils)" if absent else ""


def mininet() -> dict[str, float]:
    """Seconds until Mininet starts to remove the network again, which `--test none` does at once."""
    heard = listen([*APART, "sh", "-c", SETTLED, "sh", *MININET])
    words = "".join(each.text for each in heard)
    if not re.search(r"Starting 6 switches", words):
        raise MinigtsError(f"mn did not start six switches:\n{words}")
    return {"all": round(said_at(heard, "*** Stopping"), 3)}


def summary(runs: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "min": round(min(run[name] for run in runs), 3),
            "median": round(statistics.median(run[name] for run in runs), 3),
        }
        for name in runs[0]
    }


def show(found: dict[str, Any]) -> None:
    rows = (
        (what, phase, f"{seconds['min']:.2f}", f"{seconds['median']:.2f}", str(len(each["runs"])))
        for what, each in found.items()
        for phase, seconds in each["seconds"].items()
    )
    tables.show_table("Seconds until it is up", ("", "phase", ">min", ">median", ">runs"), rows)


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Ratios of medians: of Swarm's bring-up to the plain chain's, with shaped and calibrated links, and of that to
    Mininet's."""

    def median(what: str, phase: str) -> float:
        return float(found[what]["seconds"][phase]["median"])

    pairs = {}
    if "swarm" in found:
        pairs["swarm / plain"] = (("swarm", "all"), ("plain", UP))
    if "mininet" in found:
        pairs["plain / mininet"] = (("plain", UP), ("mininet", "all"))
    return {what: round(median(*over) / median(*under), 2) for what, (over, under) in pairs.items()}


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--swarm-runs", type=int, default=2)
    chosen = arguments.parse_args()
    image.ensure(console.note)
    figures = stage.Figures("bringup", chosen.topology)
    lacking = why_no_mininet()
    plain, beside = [], []
    for count in range(chosen.runs):  # in turn, so that a busy moment meets both
        console.note(f"run {count + 1} of {chosen.runs}")
        plain.append(bring_up(chosen.topology, "none"))
        if not lacking:
            beside.append(mininet())
    swarm = [bring_up(chosen.topology, "swarm") for _ in range(chosen.swarm_runs)]
    every = {"plain": plain, "swarm": swarm, "mininet": beside}
    found: dict[str, Any] = {what: {"runs": runs, "seconds": summary(runs)} for what, runs in every.items() if runs}
    show(found)
    compared = ratios(found)
    for what, ratio in compared.items():
        console.out().print(f"{what} = {ratio:g}")
    if lacking:
        console.note(f"mininet: not measured, {lacking}")
    figures.write(chosen.out, {**found, "ratios": compared, "mininet_command": " ".join(MININET)})


if __name__ == "__main__":
    stage.perform(main)
