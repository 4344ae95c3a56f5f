"""`minigts explore`: one test under many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console, files
from minigts.cli.options import KernelOption, Provider, ShareOption, TimeOption, read_plan, read_share
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.views import seeds as shown
from minigts.errors import InputError
from minigts.providers import DEFAULT

if TYPE_CHECKING:
    from minigts.cluster.engine import EngineFile
    from minigts.explore.exploration import ExplorationRequest
    from minigts.explore.outcome import Outcome
    from minigts.topology.time import Time

verb = Verb(EXPERIMENTS, 372)

HERE = "here"
"""The word of --on for seeds that this process takes, one after the other."""


@verb.command()
def explore(
    topology: Annotated[
        Path | None, typer.Argument(metavar="TOPOLOGY", help="A topology file, such as topologies/chain6.yaml.")
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEST…", help="A pytest file and its options, or a command, after --."),
    ] = None,
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="N|A-B", help="How many, from 1 on; or the first and the last seed.")
    ] = "100",
    faults: Annotated[
        Path | None, typer.Option("--faults", metavar="FILE", help="A plan of faults, of which each seed draws some.")
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="FILE", help="A file that the test needs beside it; may be repeated."),
    ] = None,
    longest: Annotated[
        str, typer.Option("--longest", metavar="TIME", help="How long the test may take, by the lab's time.")
    ] = "1h",
    overlay: Annotated[
        str | None,
        typer.Option("--overlay", help="The overlay. Default: the topology's.", autocompletion=completion.overlays),
    ] = None,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ENGINE",
            help="Who takes the seeds: local, local:N, a Dask scheduler's address or a file, as of `run`; or here, one "
            "after the other. Default: as many side by side as there are processors.",
        ),
    ] = None,
    share: ShareOption = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take the seeds that a results folder lacks.")
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the faults of the first seeds; start nothing.")
    ] = False,
    kernel: KernelOption = None,
    forks: Annotated[
        bool,
        typer.Option(
            "--forks", help="Bring one lab up, and take each seed in a fork of it, from the end of its start on."
        ),
    ] = False,
    tails: Annotated[
        int,
        typer.Option(
            "--tails",
            metavar="N",
            min=0,
            max=1000,
            help="Take N tails of each seed, too: right before one of its faults its lab forks, and the test goes on "
            "in each fork under other draws. Default: none.",
        ),
    ] = 0,
    trust: Annotated[
        bool, typer.Option("--trust", help="--resume: allow the test of a folder that you have not made here to run.")
    ] = False,
) -> None:
    """Run a test under many seeds, each in a lab of its own, and say which seeds fail and how.

    A seed draws the hosts' random numbers, the phases of their clocks, by how many milliseconds each of the test's
    commands is late, what links lose and how they vary, and of a plan the faults: partitions, hosts that are killed or
    paused, slow and lossy links, clocks that are off, full disks. In virtual time the same seed gives the same events
    on any machine, and `minigts replay` has them again.

    Each seed is kept as it ends, so nothing is lost when the program is ended. With --share a process takes a part of
    the seeds, and `minigts merge` puts the parts together. Exit 1 if a seed did not pass.

    Example:  minigts explore topologies/ring.yaml test_writes.py --faults faults.yaml --seeds 1000

    Example:  minigts explore topologies/ring.yaml --seeds 20 -- ./check.sh --fast
    """
    from dataclasses import replace
    from datetime import UTC, datetime

    from minigts.explore import exploration, folder, permission
    from minigts.results.folder import exclusive, make

    part = read_share(share)
    if resume is not None:
        if topology is not None or test or faults is not None:
            raise InputError(
                "explore: --resume goes on with what its folder holds: leave topology, test and faults out"
            )
        place, allowed = resume, permission.open_exploration(resume, trusted=trust)
    else:
        asked = request_of(topology, test, seeds, faults, beside, longest, overlay, provider, time, kernel, forks)
        asked = replace(asked, tails=tails)
        if dry_run:
            shown.show_faults(asked)
            return
        engine_for(on, asked.plan.time)  # what is wrong with it is said before anything is built
        with console.progress() as say:
            allowed = exploration.check_exploration(asked, say)
        make(results)
        place = folder.create(results, allowed.content, datetime.now(UTC))
    found = allowed.content
    engine = engine_for(on, found.plan.time)
    with exclusive(place), console.progress() as say:
        try:
            exploration.run(place, allowed, engine, _OnScreen(say), part)
        except BaseException:
            again = f"{place}{f' --share {share}' if share is not None else ''}"
            console.note(f"minigts: the seeds that have ended are kept; go on with: minigts explore --resume {again}")
            raise
    ended, of_tails = folder.outcomes(place).values(), folder.tail_outcomes(place).values()
    shown.show_outcomes(place, found, ended, of_tails)
    typer.echo(place)
    raise typer.Exit(1 if any(each.is_bad for each in (*ended, *of_tails)) else 0)


def request_of(
    topology: Path | None,
    test: list[str] | None,
    seeds: str,
    faults: Path | None,
    beside: list[Path] | None,
    longest: str,
    overlay: str | None,
    provider: str,
    time: Time | None,
    kernel: str | None = None,
    forks: bool = False,
) -> ExplorationRequest:
    """What the options ask for. Raises InputError."""
    from minigts.explore import faults as plans
    from minigts.explore import program
    from minigts.explore.exploration import ExplorationRequest
    from minigts.language.quantities import DURATION_S
    from minigts.language.source import read_text

    if topology is None or not test:
        raise InputError("explore: name a topology and a test, as in: minigts explore my.yaml test_my.py; or --resume")
    plan = read_plan(topology, provider, time, kernel)
    first, last = _range(seeds)
    try:
        longest_s = DURATION_S.parse(longest)
    except ValueError as error:
        raise InputError(f"--longest: {error}") from error
    text = ""
    if faults is not None:
        text = read_text(faults, plans.LANGUAGE)
        plans.parse(text, str(faults), plan)
    read = program.read(test, beside or [])
    name = files.find_file(topology, files.TOPOLOGIES).stem
    where = str(faults) if faults is not None else ""
    return ExplorationRequest(name, plan, provider, read, first, last, longest_s, text, where, overlay, forks=forks)


def _range(seeds: str) -> tuple[int, int]:
    """`100` → (1, 100), `200-300` → (200, 300). Raises InputError."""
    from minigts.topology.plan.stored import HIGHEST_SEED

    first, dash, last = seeds.partition("-")
    words = (first, last) if dash else ("1", first)
    if not all(word.isascii() and word.isdigit() and len(word) <= len(str(HIGHEST_SEED)) for word in words):
        raise InputError(f"--seeds {seeds[:40]}: write how many, as in 1000, or the first and the last, as in 200-300")
    low, high = map(int, words)
    if not 1 <= low <= high <= HIGHEST_SEED:
        raise InputError(f"--seeds {seeds[:40]}: seeds are from 1 to {HIGHEST_SEED}, the smaller one first")
    return low, high


def engine_for(on: str | None, time: Time) -> str | EngineFile | None:
    """The engine that takes the seeds; None: this process does. Raises InputError, EnvironmentLacks."""
    import os

    from minigts.cluster import engine

    if on == HERE:
        return None
    if time == "real":
        if on is not None:
            raise InputError("explore: in real time labs side by side would disturb each other: leave --on out")
        return None
    if on is not None:
        return engine.check_engine(on)
    if (os.cpu_count() or 1) == 1:
        return None
    if lacking := engine.missing():
        console.note(f"minigts: the seeds are taken one after the other: {lacking[0]}")
        return None
    return engine.LOCAL


class _OnScreen:
    """Shows an exploration's progress; see `explore.exploration.Watcher`."""

    def __init__(self, say: console.Say) -> None:
        self._say = say

    def step(self, line: str) -> None:
        self._say(line)

    def note(self, line: str) -> None:
        console.note(f"minigts: {line}")

    def take_outcome(self, outcome: Outcome, done: int, total: int) -> None:
        self._say(f"{done} of {total} seeds: {shown.seed_line(outcome)}")
