"""Would `minigts validate` notice? The clock, or what sets links up, gets one fault at a time that bends physics, and
the laws are tried with it.

A copy of the checkout gets the faults. First the laws run without any; a law that fails then does not count. A fault
that no law notices is printed: it is a hole in the validation, or changes nothing that can be seen.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import stage
from minigts.cli import console
from minigts.cli.views import tables
from minigts.errors import InputError
from minigts.report import laws

WIRE = "provision/clock/src/wire.rs"
CHANGED = "provision/clock/src/changed.rs"
VARIATION = "provision/clock/src/variation.rs"
LEFT_OUT = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", "target", ".hypothesis", ".venv")
LIMIT_S = 3600
FIGURE = re.compile(r"\([^()]* to [^()]*\) (.+), where (.+) was expected")
"""In a claim's outcome the figure, after where it was measured, and its range."""


@dataclass(frozen=True)
class Fault:
    """A place in a file, which it has once, and what stands there instead; `of` is the cheapest of the experiments
    whose laws it bends, as far as is known beforehand."""

    name: str
    file: str
    place: str
    instead: str
    of: tuple[str, ...]


FAULTS = (
    Fault(
        "a wire is 1 % slow",
        WIRE,
        "|rate| ns_at(rate, bytes)",
        "|rate| ns_at(rate, bytes * 101) / 100",
        ("hops-and-timers",),
    ),
    Fault(
        "a rate is counted without the frame's header",
        WIRE,
        "|rate| ns_at(rate, bytes)",
        "|rate| ns_at(rate, bytes.saturating_sub(SHORTEST_FRAME))",
        ("hops-and-timers",),
    ),
    Fault(
        "a rate counts a frame's checksum of 4 bytes, too",
        WIRE,
        "|rate| ns_at(rate, bytes)",
        "|rate| ns_at(rate, bytes + 4)",
        ("hops-and-timers",),
    ),
    Fault(
        "a delay is 10 µs long",
        WIRE,
        "return self.settings.delay_ns;",
        "return self.settings.delay_ns + 10_000;",
        ("hops-and-timers",),
    ),
    Fault(
        "a delay is a thousandth long",
        WIRE,
        "return self.settings.delay_ns;",
        "return self.settings.delay_ns + self.settings.delay_ns / 1000;",
        ("hops-and-timers",),
    ),
    Fault(
        "a queue takes one frame less",
        WIRE,
        "self.queued(now) + bytes <= queue",
        "self.queued(now) + bytes + 1514 <= queue",
        ("queues",),
    ),
    Fault(
        "a queue takes twice its bytes",
        WIRE,
        "self.queued(now) + bytes <= queue",
        "self.queued(now) + bytes <= 2 * queue",
        ("queues",),
    ),
    Fault(
        "all wires have one seed",
        "tools/minigts/dataplane/wire.py",
        "seed=direction.seed,",
        "seed=direction.seed and 1,",
        ("independent-links",),
    ),
    Fault(
        "random numbers are spread evenly, as no dice are",
        WIRE,
        "let mut mixed = self.0;",
        "return self.0;\n        #[allow(unreachable_code)]\n        let mut mixed = self.0;",
        ("independent-links",),
    ),
    Fault(
        "a tenth more frames are lost",
        WIRE,
        "return self.chance.happens(loss);",
        "return self.chance.happens(loss + loss / 10);",
        ("independent-links",),
    ),
    Fault(
        "losses come in pairs, of the same share",
        WIRE,
        "return self.chance.happens(loss);",
        "let again = self.in_burst;\n            self.in_burst = !again && self.chance.happens(loss / 2);\n"
        "            return again || self.in_burst;",
        ("independent-links",),
    ),
    Fault(
        "bursts are twice as long",
        WIRE,
        "happens(if in_burst { burst_ends } else",
        "happens(if in_burst { burst_ends / 2 } else",
        ("losses-and-delays",),
    ),
    Fault(
        "jitter is 10 % wider",
        WIRE,
        "let more = (quantile * jitter_ns as i128)",
        "let more = (quantile * (jitter_ns + jitter_ns / 10) as i128)",
        ("losses-and-delays",),
    ),
    Fault(
        "Pareto's delays stand for normal ones",
        VARIATION,
        "[normal, pareto, both]\n",
        "[pareto.clone(), pareto, both]\n",
        ("losses-and-delays",),
    ),
    Fault(
        "the last of a table's values never comes",
        VARIATION,
        "share * table.len() as u64 / ALL",
        "share * (table.len() as u64 - 1) / ALL",
        ("own-delays",),
    ),
    Fault(
        "a delay does not depend on the one before",
        WIRE,
        "let share = self.correlated.next(share, jitter_correlation);",
        "let share = self.correlated.next(share, 0 * jitter_correlation);",
        ("losses-and-delays",),
    ),
    Fault(
        "frames overtake where their order is kept",
        WIRE,
        "if self.settings.jitter_overtakes == 0 {",
        "if self.settings.jitter_overtakes == 2 {",
        ("losses-and-delays",),
    ),
    Fault(
        "credit leaves at twice its peak",
        WIRE,
        "|peak| ns_at(peak, bytes)",
        "|peak| ns_at(peak, bytes) / 2",
        ("queues",),
    ),
    Fault(
        "a credit is a tenth larger",
        WIRE,
        "u128::from(self.settings.credit_bytes) * 8",
        "u128::from(self.settings.credit_bytes + self.settings.credit_bytes / 10) * 8",
        ("queues",),
    ),
    Fault(
        "a policer lets frames pass that are a millisecond early",
        WIRE,
        "_ if self.settings.excess_drops != 0 => left == now,",
        "_ if self.settings.excess_drops != 0 => left <= now + 1_000_000,",
        ("policer",),
    ),
    Fault(
        "a changed rate does not reach what waits",
        CHANGED,
        "self.leaves_as(other) && self.of_the_line() == other.of_the_line()",
        "true || self.leaves_as(other) && self.of_the_line() == other.of_the_line()",
        ("changing-rates",),
    ),
    Fault(
        "the frame that is leaving is sent anew as the rate changes",
        CHANGED,
        "credit - ns(first.leaving.reached).max(0).saturating_mul(rate.into())",
        "credit - whole + 0 * ns(first.leaving.reached).max(0).saturating_mul(rate.into())",
        ("changing-rates",),
    ),
    Fault(
        "a declared rate is set in units of 1024",
        "tools/minigts/topology/facts/links/rate.py",
        'WireField(name="rate_bps", value=lambda way: way.rate_bps,',
        'WireField(name="rate_bps", value=lambda way: way.rate_bps and way.rate_bps * 1024 // 1000,',
        ("hops-and-timers",),
    ),
    Fault(
        "CoDel's target is twice the declared one",
        "tools/minigts/topology/disciplines.py",
        "words=lambda ms: (word, microseconds(ms)),",
        'words=lambda ms: (word, microseconds(2 * ms if word == "target" else ms)),',
        ("codel-target",),
    ),
)


@dataclass(frozen=True)
class Failed:
    """A law that did not hold, and of its figures the one that uses most of its range."""

    law: str
    figure: str
    """`2.24 ms, 101.1 % of 2.21 ms by the formula`."""
    range: str
    """`99.95 to 100.1 %`."""


@dataclass(frozen=True)
class Trial:
    """What the laws said of a fault. `failed` has the laws that failed with it and hold without."""

    fault: str
    failed: tuple[Failed, ...]
    seconds: float
    refused: str = ""
    """What minigts said where nothing was measured; then nothing was noticed."""

    @property
    def noticed(self) -> str:
        """By which laws it was noticed, in words."""
        if not self.failed and self.refused:
            return f"no law: minigts did not measure, {self.refused}"
        return ", ".join(each.law for each in self.failed) or "NOT NOTICED"

    @property
    def row(self) -> str:
        """A row of docs/evidence/faults.md: fault, laws, and the first one's figure and range."""
        one = self.failed[0] if self.failed else Failed("", "", "")
        return f"| {self.fault} | {self.noticed} | {one.figure} | {one.range} |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    arguments.add_argument("numbers", nargs="*", type=int, metavar="N", help="faults by their numbers; all by default")
    arguments.add_argument("--every-law", action="store_true", help="try all laws, not only those that a fault bends")
    arguments.add_argument("--quick", action="store_true", help="try them in their quick form")
    arguments.add_argument(
        "--out", type=Path, default=stage.RESULTS, metavar="DIR", help="the directory for the figures"
    )
    given = arguments.parse_args()
    if wrong := [number for number in given.numbers if not 1 <= number <= len(FAULTS)]:
        arguments.error(f"no fault {wrong[0]}; there are 1 to {len(FAULTS)}")
    chosen = [FAULTS[number - 1] for number in given.numbers] or list(FAULTS)
    given.out.mkdir(parents=True, exist_ok=True)
    found: list[Trial] = []
    for trial in tried(chosen, every=given.every_law, quick=given.quick):
        found.append(trial)
        (given.out / "physics.json").write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
        (given.out / "physics.md").write_text("".join(f"{each.row}\n" for each in found))
    tables.show_table(
        "faults that bend physics", ("fault", "noticed by"), [(each.fault, each.noticed) for each in found]
    )
    raise SystemExit(any(not each.failed for each in found))


def tried(faults: Sequence[Fault], *, every: bool, quick: bool) -> Iterator[Trial]:
    """Try the laws with each fault; `every` of them, or those that it bends."""
    with tempfile.TemporaryDirectory(prefix="minigts-physics-") as scratch:
        wanted = () if every else tuple(dict.fromkeys(name for fault in faults for name in fault.of))
        sound, said = failing(stage.PROJECT, wanted, Path(scratch) / "sound", quick=quick)
        if sound is None:
            raise SystemExit(f"without any fault: {said}")
        weak = {each.law for each in sound}
        for name in sorted(weak):
            console.note(f"without any fault {name} fails; it does not count")
        for number, fault in enumerate(faults):
            began = time.monotonic()
            bent = Path(scratch) / f"bent-{number}"
            shutil.copytree(stage.PROJECT, bent, ignore=LEFT_OUT, symlinks=True)
            file = bent / fault.file
            file.write_text(with_fault(fault, file.read_text()))
            failed, said = failing(bent, () if every else fault.of, bent / "results", quick=quick)
            new = () if failed is None else tuple(each for each in failed if each.law not in weak)
            trial = Trial(fault.name, new, round(time.monotonic() - began), said if failed is None else "")
            console.note(f"{fault.name}: {trial.noticed}")
            yield trial
            shutil.rmtree(bent)


def with_fault(fault: Fault, text: str) -> str:
    """The file's text with the fault. Raises ValueError unless its place is there once."""
    if text.count(fault.place) != 1:
        raise ValueError(f"{fault.file} has {text.count(fault.place)} places for: {fault.name}")
    return text.replace(fault.place, fault.instead)


def failing(
    checkout: Path, names: Sequence[str], results: Path, *, quick: bool
) -> tuple[tuple[Failed, ...] | None, str]:
    """The laws that did not hold by `minigts validate` of a checkout, the furthest from its range first; None and what
    it said, where it made no results."""
    results.mkdir()
    argv = [str(checkout / "minigts"), "validate", *names, *(["--quick"] if quick else []), "--results", str(results)]
    environment = {name: value for name, value in os.environ.items() if name not in ("MINIGTS_MODULE", "PYTHONPATH")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    folders = [each for each in results.iterdir() if each.is_dir()]
    if done.returncode not in (0, 1) or not folders:
        return None, (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    try:
        found = [law for each in folders for group in laws.groups(each) for law in group.laws if law.verdict != "held"]
    except InputError:  # no sample has a result, so no law was judged
        return None, (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return tuple(failed(law) for law in sorted(found, key=lambda law: -(law.used or 0))), ""


def failed(law: laws.Law) -> Failed:
    """A law that did not hold, with its furthest figure."""
    outcomes = [each for held in law.claims for each in held.outcomes if each.verdict != "held"]
    furthest = max(outcomes, key=lambda each: each.used or 0)
    said = FIGURE.search(furthest.detail)
    return Failed(law.name, *said.groups()) if said else Failed(law.name, furthest.detail, "")


if __name__ == "__main__":
    sys.exit(main())
