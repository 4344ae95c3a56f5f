"""A kernel that sends arbitrary messages to the real clock, through its real sockets: do the other kernels go on in
time?

Half of the lies are told over links with a rate, half over links without. It needs cargo, and no hosts.
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

CRATE = stage.PROJECT / "provision" / "clock"
COLUMNS = (">seed", ">messages", ">pages", ">kernels", ">ended", ">longest wait", ">memory")
LIES_A_SECOND = 200.0
"""A time limit in seconds for a very busy machine."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--lies", type=int, default=1_000_000, help="the number of messages and changes of memory")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--clock", type=Path, help="a clock to try instead of the compiled one")
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    program = shutil.which("cargo")
    if program is None:
        raise EnvironmentLacks("cargo is not installed: the kernel that lies is a Rust program")
    chosen = {} if given.clock is None else {"CLOCK": str(given.clock.resolve())}
    answer = shell.run(
        [
            *(program, "test", "--release", "--manifest-path", str(CRATE / "Cargo.toml"), "--test", "hostile"),
            *("--", "--nocapture"),
        ],
        timeout_s=600 + given.lies / LIES_A_SECOND,
        env={
            "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(paths.cache_root() / "cargo")),
            "LIES": str(given.lies),
            "SEED": str(given.seed),
            **chosen,
        },
        check=False,
    )
    found = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "lies.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    names = ("seed", "messages", "pages", "liars", "ended")
    rows = [
        (*(str(each[name]) for name in names), f"{each['slowest_ms']} ms", f"{each['largest_mb']} MB") for each in found
    ]
    tables.show_table("", COLUMNS, rows)
    if answer.code != 0:
        console.note(answer.stdout[-4000:] + answer.stderr[-4000:])
    raise SystemExit(answer.code != 0)


if __name__ == "__main__":
    main()
