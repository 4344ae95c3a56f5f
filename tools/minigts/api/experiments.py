"""Runs experiments from Python as `minigts run` does, and reads their results as objects."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from minigts.api.labs import Lab
from minigts.experiments.run import OnProgress, RunOutcome
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT
from minigts.report import render
from minigts.report.read import ReportResults as Read
from minigts.report.read import is_sweep, labs_of, read, read_sweep
from minigts.results import store
from minigts.results.schema import ClaimVerdict, Manifest
from minigts.results.tables import NothingYet, SummaryRow
from minigts.session import campaign
from minigts.topology.time import Time


@dataclass(frozen=True)
class Results:
    """A results folder: measurements, and verdicts on claims.

    A sweep and a campaign have the rows and claims of all their runs; `runs` has the results of each run.
    """

    directory: Path
    manifest: Manifest | None
    """The run's manifest; a sweep's is its first lab's with the values of all; None for several experiments."""
    summary: tuple[SummaryRow, ...]
    """A row for all samples that differ only in their repetition: median and interval, by overlay and path. A sweep's
    rows have their lab's values among their settings."""
    claims: tuple[ClaimVerdict, ...]
    """The claims with their verdicts; a sweep's claim has the worst verdict of its labs."""
    failed: int
    """The number of samples for which every attempt failed."""
    runs: tuple[Results, ...] = ()
    """The results of a sweep's labs, or of a campaign's experiments; empty for a single run."""

    def report(self) -> Path:
        """Draw the figures and write report.html; return its path."""
        return render(self.directory)


@dataclass(frozen=True)
class _Telling:
    """Passes the progress to `say`; see `session.campaign.CampaignWatcher`."""

    say: Progress

    def note(self, line: str) -> None:
        self.say(line)

    def outcome(self, outcome: RunOutcome, directory: Path) -> None:
        """Nothing is said: the outcome is in the results."""

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
    """Run an experiment as `minigts run` does: a file, or a mapping with a file's content, whose `topology` is relative
    to the working directory; or several as one campaign: a folder, or a sequence of files.

    It runs in `lab`, which has to be of its topology and stays up; by default in new labs, one for each topology and
    each value of a sweep. With `on`, in virtual time, an engine's workers measure: `local`, `local:N`, a Dask
    scheduler's address, or a file. `replicates` replaces the file's number. `say` is called with each step.

    Raises InputError with every problem, EnvironmentLacks, HostFailed; earlier samples are then in the results folder.
    Of several labs a failed one does not end the others: `say` is told why, and its samples are missing.
    """
    means = campaign.Means(provider) if lab is None else campaign.Means(lab.provider, lab.name)
    with _files(experiment) as files:
        asked = campaign.CampaignRequest(
            files=files,
            paper=paper,
            quick=quick,
            only=tuple(only),
            time=time if lab is None else lab.time,
            replicates=replicates,
            means=replace(means, on=on),
        )
        with campaign.open_campaign(asked, say) as opened:
            return open_results(opened.measure(Path(results), _Telling(say)).folder)


def open_results(directory: Path | str) -> Results:
    """The results of a run, a sweep or a campaign in a folder that `minigts run` has made. Raises InputError."""
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
    """The results of the directories that have samples."""
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
