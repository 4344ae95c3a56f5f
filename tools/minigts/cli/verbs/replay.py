"""`minigts replay`: a seed of an exploration again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.views import seeds as shown
from minigts.errors import InputError
from minigts.foreign import printable

if TYPE_CHECKING:
    from minigts.explore.replaying import Replayed

verb = Verb(EXPERIMENTS, 374)


@verb.command()
def replay(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="A results folder of `minigts explore`, or a bundle of one.")
    ],
    seed: Annotated[str, typer.Option("--seed", metavar="N[/T]", help="The seed, or as 5/2 a tail of it.")],
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="End the test then, as 12.3s after its begin; the lab stays up."),
    ] = None,
    back: Annotated[
        str | None,
        typer.Option(
            "--back",
            metavar="TIME",
            help="Leave a fork of the lab up that is as it was so long before the test's end, as 5s, with all that the "
            "test has started; the lab stays up, too.",
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab up at the end.")] = False,
    capture: Annotated[
        Path | None,
        typer.Option("--capture", metavar="FILE", help="Write all frames on all links to this pcapng file."),
    ] = None,
    lines: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="TEXT",
            help="Print only lines of the time line with this text, such as fault, a host's name or a log's; may be "
            "repeated.",
        ),
    ] = None,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink",
            help="Find faults of the seed, and acts of its test, that suffice to fail, and how short they may be.",
        ),
    ] = False,
    shrunk: Annotated[bool, typer.Option("--shrunk", help="Play only what --shrink has found.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Allow the test of a bundle, or of somebody else's folder, to run here.")
    ] = False,
) -> None:
    """Have a seed of an exploration again: the same lab, the same test, the same faults at the same moments.

    It prints the time line and compares it with the recorded one. In virtual time the two are the same, byte for byte,
    if minigts and the parts of labs are the same; exit 1 if they are not.

    With --until the test is ended at that moment, and the lab stands still there: look at it by `minigts shell`,
    `exec`, `logs` and `capture`. Time passes again as soon as a command waits for a host.

    Example:  minigts replay results/explore-ring-20261127-170000 --seed 417

    A bundle is unpacked in this directory, into a folder of its name. Its test is a program that runs on this machine
    as you, so that takes --trust; without it, what would run is listed. The same holds for a folder that you have not
    made on this machine, or in which explore.json was edited.

    --capture has every frame as it leaves a host, also those that links lose, with the lab's time to the nanosecond. No
    host notices, so the events are the same.

    Example:  minigts replay results/explore-ring-20261127-170000 --seed 417 --until 12.3s
    """
    from minigts.explore import bundling, folder, permission, replaying
    from minigts.explore.attempt import Stop

    if shrink and (until is not None or keep or shrunk or capture is not None):
        raise InputError("replay: --shrink runs the seed many times: leave --until, --keep, --capture and --shrunk out")
    number, tail = seed_and_tail(seed)
    if tail and (shrink or shrunk or capture is not None or back is not None):
        raise InputError("replay: a tail is taken as a whole: leave --shrink, --shrunk, --capture and --back out")
    if back is not None and (shrink or until is not None):
        raise InputError("replay: --back counts from the test's end: leave --until and --shrink out")
    if results.is_file():
        results = bundling.unpack(results, Path.cwd(), trusted=trust)
        console.note(f"the bundle's content is in {results.name}; from now on name that folder")
    allowed = permission.open_exploration(results, trusted=trust)
    outcome = replaying.find_outcome(results, allowed.content, number, tail)
    if back is not None and allowed.content.plan.time == "real":
        raise InputError("replay: --back: a lab in real time does not fork")
    back_s = None if back is None else _duration_s(back)
    only = folder.shrunk(results, number) if shrunk else None
    if shrunk and only is None:
        raise InputError(f"{results}: seed {seed} was not shrunk yet: minigts replay {results} --seed {seed} --shrink")
    stop = None if until is None else Stop(_moment_s(until))
    with console.progress() as say:
        other = replaying.other_parts(allowed.content, say)
    if other:
        console.note(f"minigts: {', '.join(other)} of the labs are others here than they were, so events may be, too")
    console.note(f"recorded: {shown.seed_line(outcome)}")
    with console.progress() as say:
        if shrink:
            left = replaying.shrink(results, allowed, number, say)
        else:
            again = replaying.replay(
                results,
                allowed,
                number,
                stop=stop,
                kept=keep or stop is not None or back is not None,
                only=only,
                say=say,
                capture=capture,
                tail=tail,
                back_s=back_s,
            )
    if shrink:
        typer.echo("\n".join(left) or "no fault is needed: it fails without any")
        typer.echo(f"have only these: minigts replay {results} --seed {seed} --shrunk")
        return
    raise typer.Exit(_show(again, lines or [""], stop is not None, keep=keep, shrunk=shrunk))


def seed_and_tail(written: str) -> tuple[int, int]:
    """`5` → (5, 0), `5/2` → (5, 2). Raises InputError."""
    seed, slash, tail = written.partition("/")
    words = (seed, tail) if slash else (seed, "1")
    if not all(word.isascii() and word.isdigit() and len(word) < 20 for word in words) or (slash and int(tail) == 0):
        raise InputError(f"--seed {written[:40]}: write the number of a seed, as in 5, or of a tail of it, as in 5/2")
    return int(seed), int(tail) if slash else 0


def _duration_s(back: str) -> float:
    from minigts.language.quantities import DURATION_S

    try:
        return DURATION_S.parse(back)
    except ValueError as error:
        raise InputError(f"--back: {error}") from error


def _moment_s(until: str) -> float:
    from minigts.language.quantities import MOMENT_S

    try:
        return MOMENT_S.parse(until)
    except ValueError as error:
        raise InputError(f"--until: {error}") from error


def _show_labs(again: Replayed, kept: bool) -> None:
    """Print which labs are up, and how they are taken down."""
    if again.earlier:
        console.note(f"lab {again.earlier} is as it was before the end; its programs go on when a command waits")
        console.note(f"lab {again.lab} is as at the end; both are taken down by: {_down(again.earlier, again.lab)}")
    elif kept:
        down = _down(again.lab, *([again.origin] if again.origin else []))
        console.note(f"lab {again.lab} is up and stands still; it is taken down by: {down}")


def _down(*labs: str) -> str:
    return "; ".join(f"minigts down {name}" for name in labs)


def _show(again: Replayed, only: Sequence[str], stopped: bool, *, keep: bool, shrunk: bool) -> int:
    """Print what came of the seed this time, of its time line `only` lines with these texts; return the exit code."""
    from minigts.explore import timeline

    for line in timeline.entry_lines(timeline.merge_entries(timeline.read(again.taken.timeline), again.said)):
        if any(text in line for text in only):
            typer.echo(printable(line))
    _show_labs(again, stopped or keep)
    if not stopped:
        console.note(f"this time: {shown.seed_line(again.taken.outcome)}")
    if shrunk:
        return 0
    if again.time == "real":
        console.note("minigts: in real time the same seed draws the same faults, and other events")
        return 0
    for line in again.course:
        console.note(f"course: {printable(line)}")
    if again.difference:
        console.note(f"minigts: the time line is not the recorded one: {printable(again.difference)}")
        return 1
    if again.other_files:
        console.note(f"minigts: not the same bytes as recorded: {', '.join(again.other_files)}")
        return 1
    console.note("the time line is the recorded one, byte for byte" + (", up to there" if stopped else ""))
    return 0
