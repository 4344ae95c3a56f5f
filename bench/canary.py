"""Is anything of a user's changed, read or used up by a hostile guest and a taken kernel in the user's own lab?

For some minutes two of a lab's three hosts are hostile, in many ways chosen at random, while the user uses verbs
(tests/live/canary.py has the ways). After each round the user's files, processes and limits, the cache and devices are
compared with what they were. Each round is a line of `canary-<seed>.jsonl`. Exit 1 when a round found a fault.

As root only, and in process and mount namespaces of its own: devices, /proc/cpuinfo and the cache are copies there.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
from pathlib import Path

from bench import stage
from minigts.cli import console
from minigts.errors import EnvironmentLacks
from tests.live import private_ground


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--minutes", type=float, default=1.0)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--user", choices=("plain", "root"), default="plain")
    made.add_argument("--time", choices=("virtual", "real"), default="real")
    made.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the rounds")
    given = made.parse_args()
    if os.geteuid() != 0:
        raise EnvironmentLacks("only root can trace a kernel in namespaces of its own: sudo bench/run canary")
    done = private_ground.run("canary", given.user, given.time, str(given.minutes * 60), str(given.seed))
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / f"canary-{given.seed}.jsonl"
    kept.write_text(done.stdout, encoding="utf-8")
    rounds = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    acts, verbs = (sum(len(each[name]) for each in rounds) for name in ("acts", "verbs"))
    console.note(f"{len(rounds)} rounds, {acts} hostile acts, {verbs} verbs; {kept}")
    faults = collections.Counter(fault for each in rounds for fault in each["faults"])
    for fault, times in faults.most_common():
        console.note(f"{times:4d} x {fault}")
    raise SystemExit(bool(faults) or done.returncode != 0)


if __name__ == "__main__":
    stage.perform(main)
