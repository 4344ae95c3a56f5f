"""Results folders that somebody broke: a generator of mutants, and what minigts must do with each.

    PYTHONPATH=tools:tests/unit python -P tests/unit/fuzz_results.py NUMBER [SEED]

judges so many and prints a summary; the same seed gives the same mutants. tests/unit/results/test_results_fuzz.py
judges a few.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import synthetic
from experiment_lab import Replay, begin, chain, small
from killed_run import Stage

from minigts.errors import MinigtsError
from minigts.experiments import run_folders
from minigts.experiments.derive import derive
from minigts.experiments.run import run_together
from minigts.foreign import UNPRINTABLE
from minigts.report import comparison_page, render
from minigts.report.compare import compare, headline
from minigts.report.page import Story, run_page
from minigts.report.read import read, runs
from minigts.report.render import contents

HERE = Path(__file__).parent
MOST_S = 2.0
MOST_MB = 300
HANGS_S = 600
"""Of the wall's clock, on which a busy machine may starve us; what it costs is judged by processor time."""
DRAWN_EVERY = 100
"""Drawing takes a second: so many accepted mutants are drawn as pages with figures."""
NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**5000, 10**15, -(10**300), 0.5, 1e308, -1e308, 1e-320, 1e16),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "nan", "-inf", "1e999", "0x10", "9" * 5000, "1_000", "١"),
    *("../../../../evil", "/etc/passwd", "..", ".", "a/b", "x; touch /tmp/pwned #", "$(id)", "`id`", "%s%n", "{0}"),
    *("\0", "a\0b", "\ud800", "\udcff", "\x1b[2J", "\x9b", "\u202e", "é" * 300, "x" * 100_000, "\n", "\r\n", "'\"<b>&"),
    *("none", "swarm", "ams", "bra", "latency", "uml", "first-to-each", "10.0.0.1", "0.0.0.0/0", "eth1", "2s", "90%"),
    *([], {}, [[]], [None], {"": ""}, {"a": {"b": {}}}, [0] * 1000, {"name": "x"}, "sum-of-segments", "1000000s"),
)
CELLS = (
    *(str(value) for value in NASTY if not isinstance(value, int) or abs(value) < 10**4000),
    *('"', '"\n"', ",", "\r", "true", "false", "no", "1e15", "1.0000000001e15", "-0", "1e-400", "1" * 400, "9" * 4301),
)


@dataclass(frozen=True)
class Mutant:
    """A broken folder, what was done to it, and the whole one that it comes from."""

    folder: Path
    done: tuple[str, ...]
    whole: Path


@dataclass(frozen=True)
class Judgement:
    """What became of a mutant. `wrong` is empty when minigts did what it must."""

    accepted: bool
    seconds: float
    peak_mb: float
    wrong: str


def whole_folders(place: Path) -> tuple[Path, ...]:
    """Folders as runs leave them: a small run with its raw files, the recorded old one, two made up, a campaign."""
    small_run = place / "small"
    small_run.mkdir(parents=True)
    begin(small_run, small(), chain())
    run_together([small_run], Replay(), Stage(), lambda _progress: None)  # type: ignore[arg-type]
    (small_run / "certificate.json").write_text('{"verdict": "passed", "rows": []}')
    old = Path(shutil.copytree(HERE / "report_sample", place / "old"))
    kinds = {kind.name: kind for kind in synthetic.KINDS}
    star = synthetic.write(place / "star", kinds["star"], repetitions=2, tainted_every=7)
    host = synthetic.write(place / "host", kinds["overlay-host"], repetitions=2)
    campaign = place / "campaign"
    for each in (host, star):
        shutil.copytree(each, campaign / each.name)
    for manifest in place.rglob("manifest.json"):
        document = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(document | {"provider": "uml"}, indent=1))
    return small_run, old, star, host, campaign


def mutants(wholes: Sequence[Path], place: Path, chance: random.Random) -> Iterator[Mutant]:
    """One after the other, each in the place of the last."""
    for number in range(sys.maxsize):
        whole = chance.choice(wholes)
        folder = place / f"mutant-{number}"
        shutil.copytree(whole, folder)
        done = tuple(broken_at_random(folder, chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
        yield Mutant(folder, done, whole)
        _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


def broken_at_random(folder: Path, chance: random.Random) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return "nothing left"
    important = [path for path in files if path.parent.name != "raw"]
    path = chance.choice(important if important and chance.random() < 0.75 else files)
    ways: list[Callable[[Path, random.Random], str]] = [_bytes, _file]
    if path.suffix == ".json":
        ways += [_document] * 6
    if path.suffix == ".csv":
        ways += [_table] * 6
    way = chance.choice(ways)
    return f"{path.relative_to(folder)}: {way(path, chance)}"


def _bytes(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data) + 1)
    match chance.randrange(5):
        case 0 if data:
            at = chance.randrange(len(data))
            data[at] = chance.randrange(256)
        case 1:
            del data[at:]
        case 2:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 20)))
        case 3:
            data[at:at] = data[at : at + chance.randrange(1, 3000)]
        case _:
            del data[at : at + chance.randrange(1, 200)]
    path.write_bytes(data)
    return f"bytes at {at}"


def _file(path: Path, chance: random.Random) -> str:
    kind = chance.choice(
        ("gone", "twice", "folder", "empty", "zeros", "out", "loop", "device", "pipe", "deep", "large")
    )
    if kind == "twice":
        name = chance.choice((f"{path.stem}.failed-1.json", f"{path.stem}.tainted-2.json", "x.json"))
        shutil.copy(path, path.with_name(name))
        return f"copied to {name}"
    path.unlink()
    instead: dict[str, Callable[[], object]] = {
        "folder": path.mkdir,
        "empty": path.touch,
        "zeros": lambda: path.write_bytes(b"\0" * 1000),
        "out": lambda: path.symlink_to("/etc/passwd"),
        "loop": lambda: path.symlink_to(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "pipe": lambda: os.mkfifo(path),
        "deep": lambda: path.write_text("[" * 100_000),
        "large": lambda: _sparse(path),
    }
    instead.get(kind, lambda: None)()
    return kind


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(101_000_000)


def _document(path: Path, chance: random.Random) -> str:
    try:
        document = json.loads(path.read_text())
    except (ValueError, RecursionError):
        return _bytes(path, chance)
    done = []
    for _ in range(chance.choice((1, 1, 2, 4))):
        holder, key, place = _place(document, chance)
        if holder is None:
            document = copy.deepcopy(chance.choice(NASTY))
            done.append("document")
            break
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 1 | 2 if isinstance(holder, dict):
                holder[chance.choice(("unknown", "", "name", "a.b", "\x1b", "\ud800", "é" * 300))] = copy.deepcopy(
                    holder[key]
                )
            case 3:
                other, at, _ = _place(document, chance)
                holder[key] = copy.deepcopy(other[at] if other is not None else chance.choice(NASTY))
            case _:
                holder[key] = copy.deepcopy(chance.choice(NASTY))
        done.append(place)
    try:
        text = json.dumps(document, ensure_ascii=chance.random() < 0.7)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        sys.set_int_max_str_digits(0)
        text = json.dumps(document)
        sys.set_int_max_str_digits(4300)
        path.write_text(text)
    return f"document at {', '.join(done)}"


def _place(document: Any, chance: random.Random) -> tuple[Any, Any, str]:
    """Somewhere in the document: what holds it, and its key there."""
    holder, key, place = None, None, ""
    here = document
    while isinstance(here, dict | list) and here:
        keys = list(here) if isinstance(here, dict) else range(len(here))
        holder, key = here, chance.choice(keys)
        here, place = holder[key], f"{place}.{str(key)[:20]!r}"
        if chance.random() < 0.12:
            break
    return holder, key, place


def _table(path: Path, chance: random.Random) -> str:
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        try:
            rows = list(csv.reader(stream))
        except csv.Error:
            rows = []
    if not rows or not rows[0]:
        return _bytes(path, chance)
    done = []
    for _ in range(chance.choice((1, 1, 2, 5))):
        row = chance.choice(rows)
        at = chance.randrange(len(row) + 1)
        match chance.randrange(6):
            case 0:
                rows.insert(chance.randrange(len(rows) + 1), list(row))
            case 1 if len(rows) > 1:
                rows.remove(row)
            case 2:
                _put(rows, at, [[] for _ in rows])
            case 3:
                _put(rows, at, [[*each[at : at + 1], chance.choice(CELLS)] for each in rows])
            case 4:
                _put(rows[1:], at, [[chance.choice(CELLS)] for _ in rows[1:]])
            case _:
                _put([row], at, [[chance.choice(CELLS)]])
        done.append(f"column {at}")
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    path.write_bytes(text.getvalue().encode("utf-8", "surrogatepass"))
    return f"table at {', '.join(done)}"


def _put(rows: list[list[str]], at: int, cells: list[list[str]]) -> None:
    """What stands in column `at` of each row, anew: no cell, one or several."""
    for row, own in zip(rows, cells, strict=True):
        row[at : at + 1] = own


class Hangs(Exception):
    """A mutant that nothing came of."""


def _alarm(_number: int, _frame: object) -> None:
    raise Hangs(f"nothing came of it in {HANGS_S} s")


def judge(mutant: Mutant, *, drawn: bool = False) -> Judgement:
    """Report, compare and reopen it as the command line does; if it is to be `drawn`, with figures and pages.

    Each must succeed or raise minigts' own error, in bounds of time and memory, and touch nothing outside the folder.
    """
    signal.signal(signal.SIGALRM, _alarm)
    around = sorted(path.name for path in mutant.folder.parent.iterdir())
    wrong, accepted, slowest = [], False, 0.0
    _forget_peak()
    before_mb = _memory_mb("VmRSS")
    steps: list[tuple[str, Callable[[], object]]] = [
        ("drawing", lambda: render(mutant.folder) if drawn else None),
        ("report", lambda: [_told(each, paged=drawn) for each in runs(mutant.folder).values()]),
        ("compare", lambda: _compared(mutant)),
        ("resume", lambda: [derive(each) for each in run_folders.reopen(mutant.folder)[0]]),
    ]
    for name, step in steps:
        started = time.process_time()
        signal.alarm(HANGS_S)
        try:
            step()
            accepted |= name == "report"
        except MinigtsError as error:
            wrong += [f"{name}: {reason}" for reason in unfit(error)]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong.append(f"{name}: {''.join(traceback.format_exception(error)[-6:])}")
        finally:
            signal.alarm(0)
        seconds = time.process_time() - started
        if name != "drawing":
            slowest = max(slowest, seconds)
    peak_mb = _memory_mb("VmHWM") - (before_mb if not drawn else _memory_mb("VmHWM"))
    if slowest > MOST_S:
        wrong.append(f"took {slowest:.1f} s")
    if peak_mb > MOST_MB:
        wrong.append(f"took {peak_mb:.0f} MB")
    if sorted(path.name for path in mutant.folder.parent.iterdir()) != around:
        wrong.append("something was written outside the folder")
    return Judgement(accepted, slowest, peak_mb, "\n".join(wrong))


def _told(folder: Path, *, paged: bool) -> None:
    data = read(folder)
    _, latency, told = contents(data)
    if paged:
        run_page(Story(data, told, [], latency))


def _compared(mutant: Mutant) -> None:
    found = compare(mutant.folder, mutant.whole)
    headline(found)
    comparison_page.tables(found)
    comparison_page.notes(found)


def unfit(error: MinigtsError) -> Iterator[str]:
    text = str(error)
    if not text:
        yield "an error without words"
    if len(text) > 20_000 or len(text.splitlines()) > 60:
        yield f"an error of {len(text)} characters"
    if UNPRINTABLE.search(text):
        yield f"an error that changes a terminal: {text[:300]!r}"
    if "Traceback" in text:
        yield "an error with a traceback in it"


def _memory_mb(what: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


def _forget_peak() -> None:
    """proc(5): 5 sets the peak of the resident set to what it is now."""
    Path("/proc/self/clear_refs").write_text("5")


def main(number: int, seed: int = 1) -> int:
    counts: Counter[str] = Counter()
    say = sys.stdout.write
    slowest, largest = (0.0, ""), (0.0, "")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        wholes = whole_folders(Path(place) / "whole")
        (Path(place) / "mutants").mkdir()
        made = mutants(wholes, Path(place) / "mutants", random.Random(seed))
        for count, mutant in zip(range(number), made, strict=False):
            found = judge(mutant, drawn=count % DRAWN_EVERY == 0)
            counts["accepted" if found.accepted else "refused"] += 1
            slowest = max(slowest, (found.seconds, "; ".join(mutant.done)))
            largest = max(largest, (found.peak_mb, "; ".join(mutant.done)))
            if found.wrong:
                counts["wrong"] += 1
                say(f"--- mutant {count} of {mutant.whole.name}: {'; '.join(mutant.done)}\n{found.wrong}"[:6000] + "\n")
            if count % 500 == 499:
                say(f"{count + 1}: {dict(counts)}, slowest {slowest[0]:.2f} s, largest {largest[0]:.0f} MB\n")
            sys.stdout.flush()
    say(f"{number} mutants of results folders, seed {seed}: {dict(counts)}\n")
    say(f"slowest {slowest[0]:.2f} s ({slowest[1][:200]!r}), largest {largest[0]:.0f} MB ({largest[1][:200]!r})\n")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *map(int, sys.argv[2:])))
