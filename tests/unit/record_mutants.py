"""Breaks the records of a lab again and again, and runs verbs over each: `record_mutants.py ROUNDS SEED`.

It prints one JSON object. Meant for a process namespace of its own: verbs end processes by what records say.
"""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tc_hosts
from mutants import TOKENS, mutated
from typer.testing import CliRunner

from minigts import lab as labs
from minigts import overlays
from minigts.cli.app import app
from minigts.providers import registry
from minigts.providers.agent import lab_processes
from minigts.topology.read.load import parse

PLAN = parse("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms, rate: 50mbit}}\n", "two.yaml")
RECORDS = ("lab.json", "plan.json", "overlay.json", "policy.json", "supervisor.json", "launch.json")
VERBS = (
    ("status",),
    ("status", "--json"),
    ("exec", "--lab", "two", "ams", "--", "true"),
    ("check", "--lab", "two", "--quick"),
    ("explain", "ams-bra", "--lab", "two"),
    ("link", "--lab", "two", "ams", "bra", "down"),
    ("restart", "--lab", "two", "ams"),
    ("policy", "remove", "--lab", "two"),
    ("up", "two.yaml", "--lab", "two", "--provider", "tc-hosts", "--overlay", "none"),
    ("down", "two"),
)
MOST_SHOWN = 5
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 2**31, 2**63, 10**400, 1.5, -0.5, "", "x", "../../x", "a/b", "\0", "\x1b[31m", "é"),
    *([], {}, [[]], {"x": 1}, "uml", "vagrant", "mininet", "none", "up", "starting", "9" * 3000, ["x"] * 50),
)


class Ending(tc_hosts.TcHosts):
    """Ends processes by the run directory's records, as providers with hosts do."""

    pace_s = 0.0

    def down(self) -> None:
        super().down()
        assert lab_processes.end(self.rundir, 1.0) == []


class Mutant:
    """A lab with everything that a running one has written down, to be broken and made whole again."""

    def __init__(self, place: Path) -> None:
        self.rundir = place / "state" / "labs" / "two"
        self.whole = place / "whole"
        lab = labs.up(PLAN, Ending.name, "two", lambda _: None)
        own = {"ADDRESS": "10.0.0.1", "MTU": "1500"}
        joined = overlays.Joined(name="none", programs="", ends={"ams": own, "bra": own})
        lab.put("overlay.json", joined.model_dump_json())
        rule = {"deny": {"from": "any", "to": "all"}}
        closed = {"name": "closed", "groups": {"all": ["ams", "bra"]}, "rules": [rule]}
        lab.put("policy.json", json.dumps({"overlay": "none", "policy": closed}))
        lab_processes.record(self.rundir)
        launch = {"boot_directory": "/b", "base": "/i", "machines": [], "links": [], "instead": []}
        lab.put(lab_processes.LAUNCH, json.dumps(launch))
        shutil.copytree(self.rundir, self.whole)
        self.network = tc_hosts.NETWORKS[self.rundir]

    def restore(self) -> None:
        if self.rundir.exists():
            shutil.rmtree(self.rundir)
        shutil.copytree(self.whole, self.rundir)
        tc_hosts.NETWORKS[self.rundir] = copy.deepcopy(self.network)

    def break_one(self, chance: random.Random) -> str:
        """Break one record, now and then a second; what was done, in words."""
        chosen = chance.sample(RECORDS, 2 if chance.random() < 0.1 else 1)
        return ", ".join(f"{name} {_break(self.rundir / name, chance)}" for name in chosen)


def _break(path: Path, chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.08:
        path.unlink()
        return _instead(path, chance)
    if kind < 0.5:
        text = mutated(path.read_text(), chance)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return f"mutated: {text[:200]!r}"
    document = json.loads(path.read_text())
    done = [_change(document, chance) for _ in range(chance.randint(1, 3))]
    path.write_text(json.dumps(document))
    return "; ".join(done)


def _instead(path: Path, chance: random.Random) -> str:
    """Something else in the file's place, or nothing."""
    match chance.randrange(6):
        case 0:
            path.mkdir()
            (path / "deep").mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to("/dev/zero")
        case 3:
            path.symlink_to("nowhere")
        case 4:
            path.write_bytes(b"\xff\xfe" * 10)
        case _:
            return "gone"
    return f"is now {oct(path.lstat().st_mode)}"


def _change(document: Any, chance: random.Random) -> str:
    """Give one value below a JSON document another, take a key away, or add one."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        places += [(node, key) for key in keys]
        waiting += [node[key] for key in keys]
    node, key = chance.choice(places) if places else ({}, "x")
    if isinstance(node, dict) and key in node and chance.random() < 0.2:
        del node[key]
        return f"without {key!r}"
    value = copy.deepcopy(chance.choice([*VALUES, *TOKENS]))
    if isinstance(node, dict) and chance.random() < 0.1:
        key = f"{key}x"
    node[key] = value
    return f"{key!r} is {str(value)[:60]!r}"


def main(rounds: int, seed: int, place: Path) -> None:
    os.environ["MINIGTS_STATE"] = str(place / "state")
    os.chdir(place)
    (place / "two.yaml").write_text("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms, rate: 50mbit}}\n")
    registry._PROVIDERS[Ending.name] = Ending  # type: ignore[index]
    bystander = subprocess.Popen(["sleep", "100000"])
    chance, runner, mutant = random.Random(seed), CliRunner(), Mutant(place)
    slowest, failures, codes = (0.0, 0.0, ""), [], dict.fromkeys(range(4), 0)
    for number in range(rounds):
        mutant.restore()
        done = mutant.break_one(chance)
        for verb in VERBS if number % 10 == 0 else (*chance.sample(VERBS[:-1], 3), VERBS[-1]):
            wall, cpu = time.monotonic(), time.process_time()
            result = runner.invoke(app, verb)
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
            slowest = max(slowest, (cpu, wall, f"{' '.join(verb)}: {done}"))
            known = result.exception is None or isinstance(result.exception, SystemExit)
            if not known or result.exit_code not in codes or "\x1b" in result.output:
                failures.append(f"{' '.join(verb)} after {done}: {result.exception!r} {result.output[-300:]!r}")
            codes[result.exit_code] = codes.get(result.exit_code, 0) + 1
        if mutant.rundir.exists():
            failures.append(f"still there after down: {done}")
    report = {
        "rounds": rounds,
        "bystander": bystander.poll(),
        "exit codes": codes,
        "slowest": slowest,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "failures": len(failures),
        "first": failures[:MOST_SHOWN],
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
