"""`minigts reproduce`: run a bundle's experiments again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.cli.verbs.compare import compare_runs
from minigts.cli.verbs.run import OnScreen, show_report
from minigts.cli.views import findings as shown_findings
from minigts.errors import InputError

verb = Verb(EXPERIMENTS, 410)


@verb.command()
def reproduce(
    file: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="A bundle that `minigts bundle` has made.", show_default=False)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the bundle, list what differs here and what would be measured.")
    ] = False,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
    taken: Annotated[
        Path | None,
        typer.Option(
            "--files", metavar="DIR", help="The folder with the files for the hosts, placed as next to the topology."
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Allow it the files, packages and ways out that it lists.")
    ] = False,
) -> None:
    """Run a bundle's experiments again here, with the same plan, seed and time; then compare the two runs.

    The plan is made again from the bundle's topology, and has to equal the bundle's plan. If the bundle needs files,
    images, packages or ways out, it lists them, and runs only with --trust. Hosts get only files of --files.

    First it lists the program, image, kernel, clock and packages that differ here. In virtual time the tables are the
    same byte for byte, unless one of these or the labs of the run explain a difference. Exit 1 if nothing explains it,
    if a figure differs by an amount that matters, or if a sample has no result.

    Example:  minigts reproduce multihop-20261121-100000.zip
    """
    from contextlib import ExitStack

    from minigts.experiments import reproduction
    from minigts.experiments import trust as trusts
    from minigts.results import bundle as bundles
    from minigts.results import folder, gate
    from minigts.session import campaign

    if taken is not None and not taken.is_dir():
        raise InputError(f"--files {taken}: there is no such directory")
    with ExitStack() as stack:
        stack.enter_context(folder.made_directory(results))
        found = stack.enter_context(bundles.unpack(file, results))
        original = reproduction.read(found, taken)
        wanted = trusts.wants(original.prepared, original.provider)
        allowed = None if dry_run else gate.examine_bundle(file, original.prepared).allow(wanted, trusted=trust)
        for line in wanted if dry_run else ():
            console.note(f"it needs --trust for: {line}")
        for each in original.prepared:
            _tell(each.experiment.name, len(each.samples), each.plan.time, each.experiment.seed, original.provider)
        if not dry_run:
            console.note_all(campaign.require_room(original.prepared, original.provider))
        with console.progress() as say:
            different = reproduction.differences(original, say, build=not dry_run)
        for line in different or ["program, image, kernel, clock and packages are the same here"]:
            console.note(f"minigts: {line}")
        if allowed is None:
            shown_findings.show_samples(original.prepared)
            return
        directories = stack.enter_context(campaign.begin_folders(results, allowed, original.provider))
        together = campaign.folder_of(directories)
        first = found.rename(together.with_name(f"{together.name}-original"))
        console.note(f"the bundle's content is in {first}")
        means, watcher = campaign.Means(original.provider), OnScreen()
        complete = campaign.measure(directories, allowed, means, watcher).complete
        show_report(together)
    held = complete
    if not complete:
        console.note("minigts: not every sample has a result")
    if all(each.plan.time == "virtual" for each in original.prepared):
        reasons = (*different, *reproduction.explanations(first, together))
        held &= _say_which_bytes_differ(bundles.tables(first), bundles.tables(together), reasons)
    compare_runs(first, together, None, otherwise=0 if held else 1)


def _tell(name: str, samples: int, time: str, seed: int, provider: str) -> None:
    console.note(f"{name}: {samples} samples in {time} time, seed {seed}, on {provider}")


def _say_which_bytes_differ(first: dict[str, bytes], second: dict[str, bytes], reasons: Sequence[str]) -> bool:
    """Say which tables have other bytes, and what explains it; return whether they are the same or it is explained."""
    differ = [name for name in first if first[name] != second.get(name)]
    if not differ:
        console.note(f"the same bytes: {', '.join(first)}")
        return True
    if not reasons:
        console.note(
            f"not the same bytes: {', '.join(differ)}. Nothing explains it: program, image, kernel, clock, packages "
            "and labs are the same here, so the tables should be, too"
        )
        return False
    console.note(f"not the same bytes: {', '.join(differ)}. What differs here may explain it, so the figures decide:")
    for line in reasons:
        console.note(f"  {line}")
    return True
