"""Reads a results folder for the report; the labs of a sweep become one run in which the topology's values vary.

Files are only read; a broken one raises one InputError.

Only samples.csv is required. Other files (manifest.json, summary.csv, claims.json, run.log) may be missing; one that
cannot be read is an error with file and line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from minigts import paths
from minigts.errors import InputError
from minigts.experiment_language.claims import Published
from minigts.experiment_language.figures import EXPERIMENT, Figure
from minigts.experiment_language.model import AnyMeasurement
from minigts.judge.verdicts import Word, combine
from minigts.results import folder, manifest, schema, store, sweeps
from minigts.results.schema import ClaimVerdict, LeftOut, Manifest
from minigts.results.tables import NothingYet, Samples, SeriesRow, SummaryRow, read_samples, read_series, read_summary
from minigts.topology.plan.plan import Plan

FILES = (schema.SAMPLES, schema.SUMMARY, schema.SERIES, schema.CLAIMS, schema.MANIFEST, schema.LOG, schema.RAW)
TOLD = frozenset(
    {
        "version",
        "experiment",
        "plan",
        "provider",
        "started",
        "ended",
        "samples_planned",
        "skipped",
        "left_out",
        "packages",
    }
)
"""The manifest's keys that have their own place on the page, or are too long for it."""
NAMED = 5
"""The most labs in which a claim does not hold that are named."""


@dataclass(frozen=True)
class ReportResults:
    """Everything that the report may show. `manifest` is None where the folder has none."""

    directory: Path
    manifest: Manifest | None
    samples: Samples
    summary: tuple[SummaryRow, ...] = ()
    series: tuple[SeriesRow, ...] = ()
    claims: tuple[ClaimVerdict, ...] = ()
    files: tuple[str, ...] = field(default=())
    labs: tuple[str, ...] = ()
    """The folders of a sweep's labs with samples; empty for a single run."""
    several: tuple[str, ...] = ()
    """The names of the experiments that are shown together; empty for those of one."""
    experiment: str = ""
    """The path of the experiment's file relative to the folder's parent; empty for one of minigts' own."""

    @property
    def name(self) -> str:
        """The experiment's name; empty without a manifest."""
        return self.manifest.experiment.name if self.manifest else ""

    @property
    def title(self) -> str:
        return (self.manifest.experiment.title if self.manifest else "") or self.name or self.directory.name

    @property
    def description(self) -> str:
        return self.manifest.experiment.description if self.manifest else ""

    @property
    def plan(self) -> Plan | None:
        return self.manifest.plan if self.manifest else None

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self.manifest.left_out if self.manifest else ()

    @property
    def provider(self) -> str:
        return self.manifest.provider if self.manifest else ""

    @property
    def started(self) -> str | None:
        return self.manifest.started if self.manifest else None

    @property
    def measurements(self) -> tuple[AnyMeasurement, ...]:
        return self.manifest.experiment.measurements if self.manifest else ()

    @property
    def published(self) -> tuple[Published, ...]:
        return self.manifest.experiment.published if self.manifest else ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        return self.manifest.experiment.figures if self.manifest else ()

    @property
    def missing_samples(self) -> int:
        """The number of good samples that the experiment still lacks."""
        planned = self.manifest.samples_planned if self.manifest else 0
        return max(0, planned - (self.samples.total - self.samples.failed))

    @property
    def incomplete(self) -> bool:
        return self.manifest is not None and (bool(self.missing_samples) or self.manifest.ended is None)


def provenance(found: Manifest | None) -> dict[str, JsonValue]:
    """The manifest's keys as in its file, without those that have their own place on the page, and without defaults."""
    return {} if found is None else found.model_dump(mode="json", exclude=set(TOLD), exclude_unset=True)


def runs(directory: Path) -> dict[str, Path]:
    """The run in `directory`, or the runs of a campaign, by the names of their experiments; a second run of the same
    experiment gets a number. Raises InputError when there are none."""
    found: dict[str, Path] = {}
    for each in store.runs_in(directory):
        known = _manifest(each)
        name = (
            ", ".join(filter(None, (known.experiment.name, known.experiment.variant)))
            if known
            else folder.plain(each.name)
        )
        found[numbered_name(name, found)] = each
    if not found:
        raise InputError(f"{directory}: holds no results; `minigts run` writes samples.csv and manifest.json")
    return found


def numbered_name(name: str, taken: Iterable[str]) -> str:
    """The name of an experiment's results; of a second run `NAME (2)`."""
    number = sum(each == name or each.startswith(f"{name} (") for each in taken)
    return f"{name} ({number + 1})" if number else name


def left_out(directory: Path) -> tuple[LeftOut, ...]:
    """The parts that the run in `directory` has left out, whether or not it has samples. Raises InputError."""
    known = _manifest(directory)
    return known.left_out if known else ()


def wholly_left_out(directory: Path) -> bool:
    """Whether the run in `directory` took no sample because no part of it says anything in its time."""
    return _nothing_wanted(_manifest(directory))


def _nothing_wanted(known: Manifest | None) -> bool:
    return known is not None and bool(known.left_out) and not known.samples_planned


def read(directory: Path, known: Manifest | None = None) -> ReportResults:
    """The results in `directory`; `known` is its manifest if it has been read already. Raises InputError for a missing
    directory or a broken file, NothingYet without samples."""
    if not directory.is_dir():
        raise InputError(f"{directory}: no such results directory")
    known = known or _manifest(directory)
    if _nothing_wanted(known):
        reason = "no measurement of it says anything in the time that was asked for, so none was taken"
        raise NothingYet(f"{directory}: {reason}")
    measurements = known.experiment.measurements if known else ()
    settings = tuple(dict.fromkeys(name for measurement in measurements for name in measurement.vary))
    samples = read_samples(directory, settings, known.experiment.vary if known else ())
    tools = {measurement.name: measurement.instrument for measurement in measurements}
    return ReportResults(
        directory=directory,
        manifest=known,
        samples=samples,
        summary=read_summary(directory, tools, settings, samples),
        series=read_series(directory, settings),
        claims=_claims(directory),
        files=tuple(name for name in FILES if (directory / name).exists()),
        experiment=_of_a_users(directory, known),
    )


def _of_a_users(directory: Path, known: Manifest | None) -> str:
    """`rows-20261121-100000/experiment.yaml`; empty where the folder has no such file, or it is one of minigts' own."""
    file = folder.inside(directory, schema.EXPERIMENT)
    if known is None or not file.is_file():
        return ""
    own = paths.own_file(Path(f"{known.experiment.name}.yaml"), "experiments")
    try:
        ours = own is not None and own.read_bytes() == folder.read_bytes(file)
    except OSError:
        ours = False
    return "" if ours else f"{directory.resolve().name}/{file.name}"


def _manifest(directory: Path) -> Manifest | None:
    return manifest.read(directory) if os.path.lexists(directory / manifest.FILE) else None


def _claims(directory: Path) -> tuple[ClaimVerdict, ...]:
    path = folder.inside(directory, schema.CLAIMS)
    if not os.path.lexists(path):
        return ()
    value, text = folder.read_json(path)
    return folder.validate_value(path, schema.Claims, value, text).root


def is_sweep(directory: Path) -> bool:
    """Whether the directory has the runs of a sweep's labs inside, and is no run itself."""
    if not directory.is_dir() or store.is_run(directory):
        return False
    return any(run.parent == directory and store.is_cell(run) for run in store.runs_in(directory))


def read_sweep(directory: Path) -> ReportResults:
    """The results of all labs together. A row's settings begin with its lab's values; a claim has the worst verdict of
    its labs, and says in how many it holds. Raises InputError, also when no lab has samples yet.
    """
    runs = labs_of(directory)
    found: list[ReportResults] = []
    waiting = [manifest.read(run) for run in runs]
    for run, known in zip(runs, waiting, strict=True):
        try:
            found.append(read(run, known))
        except NothingYet:
            continue
    if not found:
        raise NothingYet(f"{directory}: holds no samples yet in {len(runs)} labs")
    return ReportResults(
        directory=directory,
        manifest=_together(waiting),
        samples=_counted(each.samples for each in found),
        summary=tuple(row for each in found for row in _placed(each)),
        claims=tuple(_claims_of_labs(found)),
        files=tuple(name for each in sweeps.TABLES if (directory / (name := sweeps.ALL + each)).exists()),
        labs=tuple(each.directory.name for each in found),
        experiment=f"{directory.resolve().name}/{found[0].experiment}" if found[0].experiment else "",
    )


def together(named: Mapping[str, ReportResults]) -> ReportResults:
    """Several experiments as one, in which the experiment varies: each row's settings begin with its name. Raises
    InputError for results without a manifest."""
    every = list(named.values())
    manifests = [each.manifest for each in every if each.manifest is not None]
    if len(manifests) < len(every):
        alone = next(each.directory for each in every if each.manifest is None)
        raise InputError(f"{alone}: holds no manifest.json, so only figures of it alone are possible")
    first = manifests[0]
    update = {
        "measurements": tuple(_joined(manifests, tuple(named))),
        "published": tuple(entry for each in every for entry in each.published),
    }
    overlays = {name: facts for each in reversed(manifests) for name, facts in each.overlays.items()}
    experiment = first.experiment.model_copy(update=update)
    return ReportResults(
        directory=every[0].directory,
        manifest=first.model_copy(update={"experiment": experiment, "overlays": overlays}),
        samples=_counted(each.samples for each in every),
        summary=tuple(_of(name, row) for name, each in named.items() for row in each.summary),
        series=tuple(_of(name, row) for name, each in named.items() for row in each.series),
        several=tuple(named),
    )


def _joined(manifests: Sequence[Manifest], names: tuple[str, ...]) -> Iterator[AnyMeasurement]:
    """The measurements of all experiments, each with the values of all and with the experiments' names."""
    every = [measurement for each in manifests for measurement in each.experiment.measurements]
    for name in dict.fromkeys(each.name for each in every):
        alike = [each for each in every if each.name == name]
        keys = dict.fromkeys(key for each in alike for key in each.vary)
        vary = {key: tuple(value for each in alike for value in each.vary.get(key, ())) for key in keys}
        yield alike[0].model_copy(update={"vary": {EXPERIMENT: names, **vary}})


_R = TypeVar("_R", SummaryRow, SeriesRow)


def _of(experiment: str, row: _R) -> _R:
    return replace(row, settings=((EXPERIMENT, experiment), *row.settings))


def _in_order(name: str) -> list[tuple[float, str]]:
    """A key for sorting numbers by value: `chain.hosts=9` before `chain.hosts=10`."""
    return [(float(part), "") if number else (0.0, part) for part, number in _digits_and_words(name)]


def _digits_and_words(name: str) -> Iterator[tuple[str, bool]]:
    for index, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", name)):
        yield part, index % 2 == 1


def _together(labs: Sequence[Manifest]) -> Manifest:
    """The first lab's manifest, with the values of all labs."""
    first = labs[0]
    swept = {
        place: tuple(dict.fromkeys(lab.experiment.vary[place][0] for lab in labs)) for place in first.experiment.vary
    }
    measurements = tuple(
        each.model_copy(update={"vary": {**swept, **each.vary}}) for each in first.experiment.measurements
    )
    ended = [lab.ended for lab in labs]
    update = {
        "experiment": first.experiment.model_copy(update={"vary": swept, "measurements": measurements}),
        "samples_planned": sum(lab.samples_planned for lab in labs),
        "skipped": {name: why for lab in labs for name, why in lab.skipped.items()},
        "started": min(lab.started for lab in labs),
        "ended": None if None in ended else max(filter(None, ended)),
    }
    return first.model_copy(update=update)


def _counted(several: Iterator[Samples]) -> Samples:
    total = Samples()
    for each in several:
        total.total += each.total
        total.failed += each.failed
        total.repeated += each.repeated
        total.retaken += each.retaken
        total.tainted += each.tainted
        for own, further in ((total.errors, each.errors), (total.taints, each.taints), (total.notes, each.notes)):
            own.update(further)
    return total


def _placed(lab: ReportResults) -> Iterator[SummaryRow]:
    assert lab.manifest is not None  # a run of a sweep is known by its manifest
    values = tuple(lab.manifest.experiment.values.items())
    for row in lab.summary:
        yield replace(row, settings=(*values, *row.settings))


def labs_of(directory: Path) -> list[Path]:
    """The folders of a sweep's labs, in the order of their values."""
    return sorted(store.runs_in(directory), key=lambda run: _in_order(run.name))


def _claims_of_labs(labs: Sequence[ReportResults]) -> Iterator[ClaimVerdict]:
    told: dict[tuple[str, str], list[tuple[str, ClaimVerdict]]] = {}
    for lab in labs:
        for claim in lab.claims:
            told.setdefault((claim.claim, claim.overlay), []).append((lab.directory.name, claim))
    for several in told.values():
        counts = Counter(claim.verdict for _, claim in several)
        gravest = combine([claim.verdict for _, claim in several])
        good: tuple[Word, ...] = ("held", "vacuous")
        named = [word for word in good if counts[word]] or [*good[:1]]
        held = f"{', '.join(f'{word} in {counts[word]}' for word in named)} of {len(several)} labs"
        others = [
            f"{name} ({claim.verdict}: {claim.detail})"
            for name, claim in several
            if claim.verdict not in ("held", "vacuous")
        ]
        more = [f"{len(others) - NAMED} more"] if len(others) > NAMED else []
        detail = "; not in ".join([held, *([", ".join([*others[:NAMED], *more])] if others else [])])
        yield several[0][1].model_copy(update={"verdict": gravest, "detail": detail})
