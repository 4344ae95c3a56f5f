"""A kernel that sends arbitrary messages to the real clock, through its real sockets: do the other kernels go on in
time? Half of the lies are told over links with a rate, half over links without.

Then kernels start and end one after the other, each in another way: does the clock hold afterwards what it held before?
It needs cargo, and no hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from bench import stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import EnvironmentLacks
from minigts.machine import shell

CRATE = stage.PROJECT / "provision" / "clock"
COLUMNS = (">seed", ">messages", ">pages", ">kernels", ">ended", ">longest wait", ">memory")
OF_STARTS = (">seed", ">starts", ">ways", ">ended", ">memory before", ">most", ">after")
LIES, STARTS = "nobody_is_held_up", "the_clock_holds_what_it_held_before"
"""The names of tests in provision/clock/tests/hostile."""
LIES_A_SECOND, STARTS_A_SECOND = 200.0, 5.0
"""For a time limit on a very busy machine."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("--lies", type=int, default=1_000_000, help="the number of messages and changes of memory")
    arguments.add_argument("--starts", type=int, default=10_000, help="the number of kernels that start and end")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--clock", type=Path, help="a clock to try instead of the compiled one")
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    program = shutil.which("cargo")
    if program is None:
        raise EnvironmentLacks("cargo is not installed: the kernel that lies is a Rust program")
    env = {
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(paths.cache_root() / "cargo")),
        "LIES": str(given.lies),
        "STARTS": str(given.starts),
        "SEED": str(given.seed),
        **({} if given.clock is None else {"CLOCK": str(given.clock.resolve())}),
    }
    lies, lies_fail = _tried(program, LIES, 600 + given.lies / LIES_A_SECOND, env)
    starts, starts_fail = _tried(program, STARTS, 600 + given.starts / STARTS_A_SECOND, env)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "lies.json").write_text(json.dumps(lies + starts, indent=1) + "\n", encoding="utf-8")
    names = ("seed", "messages", "pages", "liars", "ended")
    rows = [
        (*(str(each[name]) for name in names), f"{each['slowest_ms']} ms", f"{each['largest_mb']} MB") for each in lies
    ]
    tables.show_table("", COLUMNS, rows)
    names, sizes = ("seed", "starts", "ways", "named"), ("memory_before", "memory_most", "memory_after")
    rows = [
        (*(str(each[name]) for name in names), *(f"{each[name] / 1e6:.1f} MB" for name in sizes)) for each in starts
    ]
    tables.show_table("", OF_STARTS, rows)
    raise SystemExit(lies_fail or starts_fail)


def _tried(program: str, test: str, timeout_s: float, env: dict[str, str]) -> tuple[list[dict[str, Any]], bool]:
    """What tests of that name found, and whether one failed."""
    answer = shell.run(
        [
            *(program, "test", "--release", "--manifest-path", str(CRATE / "Cargo.toml"), "--test", "hostile"),
            *(test, "--", "--nocapture"),
        ],
        timeout_s=timeout_s,
        env=env,
        check=False,
    )
    if answer.code != 0:
        console.note(answer.stdout[-4000:] + answer.stderr[-4000:])
    return [json.loads(line) for line in re.findall(r"{.*}$", answer.stdout, re.MULTILINE)], answer.code != 0


if __name__ == "__main__":
    main()
