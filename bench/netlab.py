"""netlab's topologies on minigts, such as its own integration tests: each is brought up with each device and validated.

It needs netlab (`pip install networklab`) and a folder of topologies, such as tests/integration of netlab's repository.
The device is that of the nodes that name none. Topologies of the folders alternate, so that a part of them covers all.
Each result is a line of a file, so that a later run goes on where an earlier one has ended; the tables of all results
come last. With `--create` nothing is brought up: it is counted which topologies have only devices that minigts has.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from pydantic import BaseModel

from bench import stage
from minigts import paths
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import CommandTimeout, InputError
from minigts.language import documents
from minigts.machine import shell

DEVICES = ("frr", "bird", "dnsmasq", "linux")
OUTCOMES = ("passed", "warned", "failed", "up", "not up", "refused")
"""`up` is a topology that has nothing to validate, `refused` netlab's own word: the device, or what it would run on,
has not what the topology wants."""
CREATED_AS = ("of these devices", "of others", "refused")
"""The outcomes of `--create`."""
MINIGTS = (sys.executable, "-P", "-m", "minigts")
CREATED = "Checking virtualization provider"
"""What netlab says once it has made of a topology all that it makes."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"^(?!Fatal error in netlab)[A-Z]\w+ in [\w.-]+: |minigts: .*(?!plain user)|[Ee]rror: |^failed")
_MARK = re.compile(r"^\[(PASS|FAIL|WARNING)\] +(.*)", re.MULTILINE)


class Result(BaseModel):
    """What came out of one topology with one device. `checks` are netlab's lines that passed, `faults` those that
    failed, or the error."""

    test: str
    device: str
    outcome: str
    checks: int = 0
    faults: list[str] = []
    seconds: float = 0.0


def topologies(directory: Path) -> Iterator[Path]:
    """The tests, relative to the directory: first the first of each folder, then the second."""
    folders: dict[Path, list[Path]] = {}
    for path in sorted(directory.rglob("*.yml")):
        is_test = path.parent != directory and not path.stem.startswith("x-") and "defaults" not in path.stem
        if is_test and re.search(r"^(nodes|links):", path.read_text(encoding="utf-8"), re.MULTILINE):
            folders.setdefault(path.parent, []).append(path.relative_to(directory))
    yield from filter(None, chain.from_iterable(zip_longest(*folders.values())))


def plain(text: str) -> str:
    return _COLOUR.sub("", text)


def errors(text: str) -> list[str]:
    """The lines with which netlab and minigts say that something failed."""
    found = [line.strip() for line in plain(text).splitlines() if _ERROR.search(line)]
    return found[:4] or plain(text).strip().splitlines()[-2:]


def perform(directory: Path, test: Path, device: str, log: Path, longest_s: float) -> Result:
    """Bring one up, validate it, and take it down; what was printed is left in `log`."""
    began, place, said = time.monotonic(), directory / test.parent, []

    def run(*argv: str) -> shell.Completed:
        done = shell.run(argv, timeout_s=longest_s, check=False, cwd=place)
        said.append(f"$ {' '.join(argv)}\n{plain(done.stdout + done.stderr)}\n")
        return done

    def result(outcome: str, checks: int = 0, faults: Sequence[str] = ()) -> Result:
        seconds = round(time.monotonic() - began, 1)
        return Result(
            test=str(test.with_suffix("")),
            device=device,
            outcome=outcome,
            checks=checks,
            faults=[*faults],
            seconds=seconds,
        )

    try:
        try:
            up = run(*MINIGTS, "netlab", "up", "-d", device, test.name)
            if "is already running in directory" in up.stdout + up.stderr:
                raise InputError("netlab has another lab up: see netlab status --all")
            if up.code != 0:
                began_to = CREATED in up.stdout
                return result("not up" if began_to else "refused", faults=errors(up.stderr + up.stdout))
            seen = run(*MINIGTS, "netlab", "validate", "--skip-missing")
        finally:
            run(*MINIGTS, "netlab", "down", "--cleanup", "--force")
    except CommandTimeout as error:
        return result("not up", faults=[str(error)[:200]])
    finally:
        log.mkdir(parents=True, exist_ok=True)
        name = f"{test.with_suffix('')}-{device}".replace("/", "-")
        (log / f"{name}.log").write_text("\n".join(said), encoding="utf-8")
    marks = _MARK.findall(plain(seen.stdout))
    faults = [words for mark, words in marks if mark != "PASS"]
    kind = {0: "passed", 2: "up", 3: "warned"}.get(seen.code, "failed")
    return result(
        kind,
        sum(mark == "PASS" for mark, _ in marks),
        faults if faults or kind in ("passed", "up") else errors(seen.stderr),
    )


def create(directory: Path, test: Path, device: str, longest_s: float) -> Result:
    """Have netlab make all of one, and look which devices its nodes have."""
    began, place = time.monotonic(), directory / test.parent
    told = ("-p", "clab", "-d", device, "-o", "json:nodes=nodes.json", test.name)
    done = shell.run(["netlab", "create", *told], timeout_s=longest_s, check=False, cwd=place)
    made = place / "nodes.json"
    if done.code != 0 or not made.exists():
        outcome, faults = "refused", errors(done.stderr + done.stdout)
    else:
        devices = set(re.findall(r'^    "device": "([^"]+)"', made.read_text(encoding="utf-8"), re.MULTILINE))
        faults = sorted(devices - {*DEVICES})
        outcome = CREATED_AS[bool(faults)]
    made.unlink(missing_ok=True)
    seconds = round(time.monotonic() - began, 1)
    return Result(test=str(test.with_suffix("")), device=device, outcome=outcome, faults=faults, seconds=seconds)


def read(file: Path) -> list[Result]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [documents.model(line, Result) for line in lines]


def show(results: Sequence[Result], outcomes: Sequence[str]) -> None:
    """Tables by folder and device, and what did not pass."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for each in results:
        counts.setdefault((str(Path(each.test).parent), each.device), Counter())[each.outcome] += 1
    rows = [
        (folder, device, *(str(found[outcome] or "") for outcome in outcomes))
        for (folder, device), found in sorted(counts.items())
    ]
    tables.show_table("netlab's topologies", ("folder", "device", *(f">{each}" for each in outcomes)), rows)
    for each in results:
        if each.outcome in ("failed", "warned", "not up"):
            console.out().print(
                f"{each.test} {each.device}: {each.outcome}: {'; '.join(each.faults)[:300]}", markup=False
            )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("tests", type=Path, metavar="DIR", help="a folder of topologies")
    arguments.add_argument("--device", action="append", choices=DEVICES, help="the device under test, or several")
    arguments.add_argument("--only", default="", metavar="REGEX", help="only those whose FOLDER/NAME has this")
    arguments.add_argument("--create", action="store_true", help="bring nothing up: which devices have they?")
    arguments.add_argument("--for", type=float, default=1e9, dest="longest_s", metavar="S", help="begin no test later")
    arguments.add_argument("--each", type=float, default=1500.0, metavar="S", help="longest time of a command")
    arguments.add_argument("--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the folder of the results")
    given = arguments.parse_args()
    file, began = given.out / ("netlab-created.jsonl" if given.create else "netlab.jsonl"), time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    there = {(each.test, each.device) for each in read(file)}
    with tempfile.TemporaryDirectory(prefix="minigts-bench-netlab-") as place:
        copy = Path(place).resolve() / "integration"
        os.environ[paths.FILES] = str(copy)  # a lab's files may be links to those of its neighbours
        shutil.copytree(given.tests, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        for test in topologies(copy):
            for device in given.device or DEVICES:
                name = str(test.with_suffix(""))
                if (name, device) in there or not re.search(given.only, name):
                    continue
                if time.monotonic() - began > given.longest_s:
                    break
                console.note(f"{name} with {device}")
                found = (
                    create(copy, test, device, given.each)
                    if given.create
                    else perform(copy, test, device, given.out / "netlab-logs", given.each)
                )
                console.note(f"{found.outcome}, {found.seconds:.0f} s: {'; '.join(found.faults)[:200]}")
                with file.open("a", encoding="utf-8") as results:
                    results.write(found.model_dump_json() + "\n")
    show(read(file), CREATED_AS if given.create else OUTCOMES)


if __name__ == "__main__":
    stage.perform(main)
