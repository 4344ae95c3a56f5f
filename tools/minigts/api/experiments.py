"""An experiment, run from Python as `minigts run` runs its file; its results as objects."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from minigts.api.labs import Lab
from minigts.cluster import in_turn
from minigts.errors import InputError
from minigts.experiments import campaign, run, trust
from minigts.lab import Progress
from minigts.providers import DEFAULT
from minigts.report import render
from minigts.report.read import read
from minigts.results.schema import Claim, Manifest
from minigts.results.tables import SummaryRow
from minigts.topology.time import Time


@dataclass(frozen=True)
class Results:
    """A results folder: what was measured, and what became of the claims."""

    directory: Path
    manifest: Manifest | None
    summary: tuple[SummaryRow, ...]
    """A row for the samples that differ in nothing but their repetition: median and interval, by overlay and path."""
    claims: tuple[Claim, ...]
    failed: int
    """Samples that no attempt brought a result for."""

    def report(self) -> Path:
        """Draw the figures and write report.html; where it lies."""
        return render(self.directory)


def run_experiment(
    experiment: Path | str | Mapping[str, JsonValue],
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    lab: Lab | None = None,
    quick: bool = False,
    paper: bool = False,
    only: Sequence[str] = (),
    replicates: int | None = None,
    results: Path | str = "results",
    say: Progress = lambda _text: None,
) -> Results:
    """Run an experiment: a file, or a mapping with what such a file would say, whose `topology` is seen from the
    working directory.

    In the lab given, which has to be of its topology and stays up; else in one of its own. In virtual time
    `replicates` takes the place of the file's own number. Raises InputError with every problem, EnvironmentLacks,
    HostFailed. What was measured until then lies in the results folder.
    """
    with _file(experiment) as file:
        prepared = campaign.prepare(
            file,
            paper=paper,
            quick=quick,
            only=only,
            time=lab.time if lab is not None else time,
            provider=provider if lab is None else lab.provider,
            replicates=replicates,
        )
    several = prepared.experiment.replicates > 1
    if several and lab is not None:
        raise InputError("each replicate is a lab of its own: give no lab, or `replicates=1`")
    trust.remember([prepared], provider if lab is None else lab.provider)
    (directory,) = campaign.begin(Path(results), [prepared], provider if lab is None else lab.provider)
    with campaign.alone_in(directory):
        if prepared.samples and several:
            in_turn.perform(directory, [directory], say, lambda progress: say(progress.doing))
            run.finish(directory)
        elif prepared.samples:
            named = None if lab is None else lab.name
            with campaign.lab_for(prepared.plan, provider, named, keep=False, say=say) as opened:
                campaign.describe_lab([directory], opened, say, fresh=lab is None)
                campaign.take([directory], opened, say, lambda progress: say(progress.doing))
        else:
            run.finish(directory)
    return open_results(directory)


def open_results(directory: Path | str) -> Results:
    """The results in a folder that `minigts run` has made. Raises InputError."""
    found = read(Path(directory))
    return Results(Path(directory), found.manifest, found.summary, found.claims, found.samples.failed)


@contextmanager
def _file(experiment: Path | str | Mapping[str, JsonValue]) -> Iterator[Path]:
    if not isinstance(experiment, Mapping):
        yield Path(experiment)
        return
    with tempfile.TemporaryDirectory() as directory:
        written = Path(directory) / "experiment.yaml"
        written.write_text(json.dumps(experiment, indent=1, ensure_ascii=False), encoding="utf-8")
        yield written
