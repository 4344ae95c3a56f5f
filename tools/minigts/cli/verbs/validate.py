"""`minigts validate`: hold labs against laws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from minigts import paths
from minigts.cli import console
from minigts.cli.options import KernelOption
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.verbs.run import OnScreen
from minigts.cli.views import findings as shown_findings
from minigts.cli.views.tables import show_table
from minigts.errors import InputError

verb = Verb(EXPERIMENTS, 375)

FOLDER = Path("experiments/validation")
"""The folder of the laws among the project's own files."""
HARDWARE = Path("experiments/hardware/two-computers.yaml")


@verb.command()
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME…",
            help="Experiments of experiments/validation, as loss-law, or your files.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer values and replicates, for a few minutes: `quick:` in the files, and those alone that have it.",
        ),
    ] = False,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="ENGINE", help="Labs in parallel, as in `minigts run`: local, local:N, a file."),
    ] = None,
    kernel: KernelOption = None,
    measured: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Measure nothing; make the page of this results folder."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the page goes. Default: validation.md in the results folder."),
    ] = None,
    renewed: Annotated[
        Path | None,
        typer.Option(
            "--renew",
            metavar="FILE",
            help="Renew what is measured in this page of an earlier call, and leave the rest.",
        ),
    ] = None,
    on_hardware: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write scripts for two computers there; once they have run, compare with a lab.",
        ),
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
) -> None:
    """Hold labs in virtual time against laws and references: TCP's laws of loss, queueing theory, timers, headers.

    Each law is a claim with `law:` in an experiment's file, with the range in which it has to hold and where that range
    comes from. The result is a table here, and a page with the figures, which docs/evidence/validation.md is.

    What a lab cannot show of itself, two computers and a cable can: --on-hardware DIR writes a script for each, which
    measure what experiments/hardware/two-computers.yaml asks for. Once they have run, the same command reads their
    answers in DIR, measures a lab, and shows both.

    Exit 1 if a law could not be decided or failed, unless the experiment's file explains why, or if a sample has no
    result.

    Example:  minigts validate --quick

    Example:  minigts validate loss-law --page laws.md
    """
    from minigts.report import laws
    from minigts.session import campaign

    if on_hardware is not None:
        if names or quick or any(each is not None for each in (on, kernel, measured, page, renewed)):
            raise InputError("--on-hardware goes with --results alone")
        _on_hardware(on_hardware, results)
        return
    if page is not None and renewed is not None:
        raise InputError("--page writes a page anew, --renew changes one: give one of them")
    before = None if renewed is None else laws.read_page(renewed)
    complete, folder = True, measured
    if folder is None:
        files = _files(names or (), quick=quick)
        asked = campaign.CampaignRequest(files=files, quick=quick, kernel=kernel, means=campaign.Means(on=on))
        with campaign.open_campaign(asked, console.note) as opened:
            done = opened.measure(results, OnScreen())
        complete, folder = done.complete, done.folder
    elif names or quick or on is not None or kernel is not None:
        raise InputError("--from takes what was measured; it goes without names, --quick, --kernel and --on")
    found = laws.groups(folder)
    made = laws.page(found)
    rows = ((each.law, each.shown, each.share, each.experiment) for each in made.table)
    show_table("laws", ("law", "verdict", ">distance", "experiment"), rows)
    whole = made if before is None else before.renew(made)
    typer.echo(laws.write_page(whole, renewed or page or folder / laws.PAGE))
    explained = all(law.explained for group in found for law in group.laws)
    raise typer.Exit(0 if complete and explained else 1)


def _files(names: Sequence[str], *, quick: bool) -> tuple[Path, ...]:
    folder = paths.project_root() / FOLDER
    if not names:
        return quick_experiments() if quick else (folder,)
    known = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    unknown = [name for name in names if name not in known and not Path(name).is_file()]
    if unknown:
        raise InputError(f"{unknown[0]}: no such file, and no experiment of validation; there are {', '.join(known)}")
    return tuple(known.get(name, Path(name)) for name in names)


def law_file(name: Path) -> Path | None:
    """The experiment of validation that `name` is the name of, as tcp-timers; None where it names a file, or none."""
    found = paths.project_root() / FOLDER / f"{name}.yaml"
    return found if name.name == str(name) and not name.exists() and found.is_file() else None


def quick_experiments() -> tuple[Path, ...]:
    """The experiments of validation that say what `--quick` leaves of them. The laws of others are of so many
    replicates that no few minutes decide them."""
    files = sorted((paths.project_root() / FOLDER).glob("*.yaml"))
    found = tuple(file for file in files if "\nquick:" in file.read_text(encoding="utf-8"))
    if left := [file.stem for file in files if file not in found]:
        console.note(f"left out, since no quick form decides their laws: {', '.join(left)}")
    return found


def _on_hardware(directory: Path, results: Path) -> None:
    """Write the scripts; or read what they have measured, measure a lab, and show both."""
    from minigts.experiments import hardware, prepare
    from minigts.report.read import read
    from minigts.session import campaign

    file = paths.project_root() / HARDWARE
    [asked] = prepare.prepare_all([file], paper=False, quick=False, only=(), time="real")
    answers = directory / hardware.ANSWERS
    if not answers.is_dir():
        for line in hardware.write_scripts(asked, directory):
            typer.echo(line)
        return
    there = hardware.read_back(asked, answers, results)
    with campaign.open_campaign(campaign.CampaignRequest(files=(file,), time="virtual"), console.note) as opened:
        here = opened.measure(results, OnScreen()).folder
    shown_findings.show_claims(read(there).claims, "two computers")
    shown_findings.show_claims(read(here).claims, "a lab")
    console.note(f"minigts: minigts compare {there} {here} compares all figures")
    typer.echo(there)
