"""An experiment, run from Python as `minigts run` runs its file; its results as objects."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from minigts.api.labs import Lab
from minigts.experiments.run import OnProgress, Outcome
from minigts.lab import Progress
from minigts.providers import DEFAULT
from minigts.report import render
from minigts.report.read import Results as Read
from minigts.report.read import is_sweep, labs_of, read, read_sweep
from minigts.results import store
from minigts.results.schema import Claim, Manifest
from minigts.results.tables import NothingYet, SummaryRow
from minigts.session import campaign
from minigts.topology.time import Time


@dataclass(frozen=True)
class Results:
    """A results folder: what was measured, and what became of the claims.

    Of a sweep and of a campaign it has the rows and claims of all its runs, which `runs` has one by one.
    """

    directory: Path
    manifest: Manifest | None
    """Of a sweep that of its first lab, with the values of all; None for a campaign of several experiments."""
    summary: tuple[SummaryRow, ...]
    """A row for the samples that differ in nothing but their repetition: median and interval, by overlay and path. A
    sweep's rows have their lab's values among their settings."""
    claims: tuple[Claim, ...]
    """A sweep's has the gravest verdict of its labs."""
    failed: int
    """Samples that no attempt brought a result for."""
    runs: tuple[Results, ...] = ()
    """Of a sweep its labs', of a campaign its experiments'; none of a run alone."""

    def report(self) -> Path:
        """Draw the figures and write report.html; where it lies."""
        return render(self.directory)


@dataclass(frozen=True)
class _Telling:
    """Tells `say` all that goes on; see `session.campaign.Watcher`."""

    say: Progress

    def note(self, line: str) -> None:
        self.say(line)

    def outcome(self, outcome: Outcome, directory: Path) -> None:
        """It is in the results."""

    @contextmanager
    def preparing(self) -> Iterator[Progress]:
        yield self.say

    @contextmanager
    def measuring(self) -> Iterator[tuple[Progress, OnProgress]]:
        yield self.say, lambda progress: self.say(progress.doing)


def run_experiment(
    experiment: Path | str | Sequence[Path | str] | Mapping[str, JsonValue],
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    lab: Lab | None = None,
    quick: bool = False,
    paper: bool = False,
    only: Sequence[str] = (),
    replicates: int | None = None,
    on: str | None = None,
    results: Path | str = "results",
    say: Progress = lambda _text: None,
) -> Results:
    """Run an experiment as `minigts run` does: a file, or a mapping with what such a file would say, whose `topology`
    is seen from the working directory; or several of them, a folder or a sequence of files, as one campaign.

    In the lab given, which has to be of its topology and stays up; else in labs of its own, one for each topology and
    each value of a sweep. With `on`, in virtual time, an engine's workers measure: `local`, `local:N`, a Dask
    scheduler's address, a file. `replicates` takes the place of the file's own number. `say` is told what goes on.

    Raises InputError with every problem, EnvironmentLacks, HostFailed. What was measured until then lies in the results
    folder. Of several labs one that fails ends none of the others: `say` is told why, and its samples are missing.
    """
    means = campaign.Means(provider) if lab is None else campaign.Means(lab.provider, lab.name)
    with _files(experiment) as files:
        asked = campaign.Asked(
            files=files,
            paper=paper,
            quick=quick,
            only=tuple(only),
            time=time if lab is None else lab.time,
            replicates=replicates,
            means=replace(means, on=on),
        )
        with campaign.opened(asked, say) as opened:
            return open_results(opened.measure(Path(results), _Telling(say)).folder)


def open_results(directory: Path | str) -> Results:
    """The results in a folder that `minigts run` has made: a run's, a sweep's or a campaign's. Raises InputError."""
    place = Path(directory)
    if is_sweep(place):
        return _as_read(read_sweep(place), [*_each_of(labs_of(place))])
    if not store.is_campaign(place):
        return _as_read(read(place), ())
    runs = [*_each_of(sorted(each for each in place.iterdir() if each.is_dir()))]
    return Results(
        directory=place,
        manifest=None,
        summary=tuple(row for each in runs for row in each.summary),
        claims=tuple(claim for each in runs for claim in each.claims),
        failed=sum(each.failed for each in runs),
        runs=tuple(runs),
    )


def _each_of(directories: Sequence[Path]) -> Iterator[Results]:
    """Those that have samples."""
    for each in directories:
        if store.runs_in(each):
            with suppress(NothingYet):
                yield open_results(each)


def _as_read(found: Read, runs: Sequence[Results]) -> Results:
    return Results(found.directory, found.manifest, found.summary, found.claims, found.samples.failed, tuple(runs))


@contextmanager
def _files(experiment: Path | str | Sequence[Path | str] | Mapping[str, JsonValue]) -> Iterator[tuple[Path, ...]]:
    if isinstance(experiment, Mapping):
        with tempfile.TemporaryDirectory() as directory:
            written = Path(directory) / "experiment.yaml"
            written.write_text(json.dumps(experiment, indent=1, ensure_ascii=False), encoding="utf-8")
            yield (written,)
    elif isinstance(experiment, (str, Path)):
        yield (Path(experiment),)
    else:
        yield tuple(map(Path, experiment))
