"""One seed: its lab is brought up, the test runs beside it while faults are played, and what came of it is gathered."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from minigts.errors import EnvironmentLacks
from minigts.explore import attempt, seed_labs, stalls
from minigts.explore.attempt import Anew, SeedResult, Stop
from minigts.explore.holding import Holder
from minigts.explore.player import Halt
from minigts.explore.tails import Tails
from minigts.explore.work import SeedOfWork
from minigts.lab import Lab, pcapng
from minigts.lab.pcapng import CapturedFrame
from minigts.machine.progress import Progress
from minigts.providers.base import Tapped
from minigts.results.folder import write


def take(
    seed: SeedOfWork, name: str, say: Progress, stalled: Progress | None = None, *, again: bool = False
) -> SeedResult:
    """Take a seed in a new lab of that name, which is taken down; `stalled` (default: `say`) is told where a seed is
    that hardly gets on. `again` is as for `lab_of`. Raises what a lab raises; InputError for a test that cannot be
    started."""
    begun = time.monotonic()
    with seed_labs.lab_of(seed, name, say, again=again) as lab:
        found = run_seed(lab, seed, say, stalled=stalled)
    real_s = round(time.monotonic() - begun, 3)
    return replace(found, outcome=found.outcome.model_copy(update={"real_s": real_s}))


def run_seed(
    lab: Lab,
    seed: SeedOfWork,
    say: Progress,
    stop: Stop | None = None,
    capture: Path | None = None,
    stalled: Progress | None = None,
    kept: bool = False,
    halt: Halt | None = None,
) -> SeedResult:
    """As `take`, in a lab that is up; with `stop` the test is ended at that moment, and time stands still. With
    `capture` all frames on all links are written to that file. With `kept` labs of tails stay up; `halt` is for a seed
    without tails. Raises EnvironmentLacks where links cannot be tapped."""
    with tempfile.TemporaryDirectory(prefix="minigts-seed-") as directory, ExitStack() as stack:
        place = Path(directory).resolve()
        seed.exploration.test.lay(place)
        say(f"{seed.name}: {seed.exploration.test.in_words}")
        tails = None
        if seed.tails and (branch_s := seed.exploration.draw_branch_s(seed.number)) is not None:
            tails = Tails(lab, seed, place, branch_s, Holder(place, stack), stop, say, kept)

        def tell(line: str) -> None:
            if tails is None or not tails.begun:
                (stalled or say)(line)

        with _captured(lab, capture), stalls.watch(lab, seed.name, tell):
            ran = attempt.run(lab, seed, place, None if tails is not None else stop, tails or Anew(lab, seed, halt))
        if tails is not None and seed.ends_with_tails:
            stop = Stop(tails.branch_s)
        result = attempt.result_of(lab, seed, ran, place, stop)
    return result if tails is None else replace(result, tails=tuple(tails.results))


@contextmanager
def _captured(lab: Lab, file: Path | None) -> Iterator[None]:
    """Within the context every frame is noted; at its end all are written to the file, as pcapng."""
    if file is None:
        yield
        return
    if not isinstance(lab.provider, Tapped):
        raise EnvironmentLacks(f"provider {lab.provider.name} in {lab.time} time has no links that can be tapped")
    with closing(lab.provider.tap()) as tap:
        yield
        names = [(machine.name, port.name) for machine in lab.plan.machines for port in machine.ports]
        numbers = {name: number for number, name in enumerate(names)}
        frames = (
            CapturedFrame(each.time_ns, numbers[each.machine, each.interface], len(each.content), each.content)
            for each in tap.end()
        )
        write(file, pcapng.whole([" ".join(name) for name in names], frames))
