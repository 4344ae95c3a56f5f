"""Bytes from guests and clients that reach ever more code of the clock and the agent: does any of it end badly?

A search changes inputs at random and keeps those that reach something new, by the compiler's own counters (`-C
instrument-coverage`). It needs cargo, and no hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from bench import stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import EnvironmentLacks
from minigts.machine import shell

CRATES = ("clock", "agent")
FLAGS = "-C instrument-coverage --cfg coverage"
COLUMNS = ("what is read", ">inputs", ">kept", ">pieces of code reached")
INPUTS_A_SECOND = 20.0
"""The least speed, on a very busy machine; it sets the time limit."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--inputs", type=int, default=20_000, help="the number of inputs for each reader of bytes")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    program = shutil.which("cargo")
    if program is None:
        raise EnvironmentLacks("cargo is not installed: the programs to be tried are written in Rust")
    target = Path(os.environ.get("CARGO_TARGET_DIR", str(paths.cache_root() / "cargo"))) / "reach"
    found, ended = [], 0
    for crate in CRATES:
        manifest = stage.PROJECT / "provision" / crate / "Cargo.toml"
        answer = shell.run(
            [program, "test", "--manifest-path", str(manifest), "--test", "fuzz", "--", "--nocapture"],
            timeout_s=900 + 5 * given.inputs / INPUTS_A_SECOND,
            env={
                "CARGO_TARGET_DIR": str(target),
                "RUSTFLAGS": FLAGS,
                "LLVM_PROFILE_FILE": os.devnull,
                "INPUTS": str(given.inputs),
                "SEED": str(given.seed),
            },
            check=False,
        )
        found += [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
        if answer.code != 0:
            ended = 1
            console.note(answer.stdout[-4000:] + answer.stderr[-4000:])
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "reach.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    rows = [(each["of"], *(str(each[name]) for name in ("inputs", "kept", "reached"))) for each in found]
    tables.show_table("", COLUMNS, rows)
    raise SystemExit(ended)


if __name__ == "__main__":
    main()
