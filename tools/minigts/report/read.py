"""A results directory, read into types. Reads files and nothing else; a broken one gives one InputError.

Only samples.csv is needed. What else is absent (manifest.json, summary.csv, claims.json, run.log) is not
reported on; what is there but cannot be read is an error that names file and line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError

from minigts.errors import InputError, Problem
from minigts.judge.verdicts import Word, current
from minigts.report.samples import Cell, Samples, Settings, key_of, table
from minigts.report.samples import read as read_samples
from minigts.topology.plan import Plan

NEEDED = (
    *("overlay", "measurement", "source", "target", "hops", "kind", "n"),
    *("mean", "stdev", "median", "low", "high", "unit"),
)
Quantity = Literal["latency", "tcp", "udp"]


@dataclass(frozen=True)
class SummaryRow:
    """One line of summary.csv: all samples of one measurement between two hosts over one overlay.

    `measurement` is the name that the experiment gave it, `quantity` what it is. Latency is a round trip in ms,
    tcp and udp are in Mbit/s. `low` and `high` end the 95 % interval of the median;
    they and `stdev` are None for a single sample.
    """

    overlay: str
    measurement: str
    quantity: Quantity
    source: str
    target: str
    hops: int
    kind: str
    n: int
    mean: float
    stdev: float | None
    median: float
    low: float | None
    high: float | None
    unit: str
    predicted: float | None
    published: float | None
    tainted: int = 0
    settings: Settings = ()
    cell: Cell = field(default_factory=Cell, compare=False, repr=False)

    @property
    def doubtful(self) -> bool:
        """Whether every sample was taken while the machine was starved, so that the figures rest on those."""
        return self.tainted > 0 and not self.cell.good

    @property
    def below(self) -> float:
        """How far the interval reaches below the median; 0 without an interval."""
        return 0.0 if self.low is None else self.median - self.low

    @property
    def above(self) -> float:
        return 0.0 if self.high is None else self.high - self.median


class Claim(BaseModel):
    """One entry of claims.json: what was claimed, and whether it held here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    claim: str
    verdict: Annotated[Word, BeforeValidator(current)] = "undecided"
    overlay: str = ""
    text: str = ""
    detail: str = ""
    why: str = ""


class Measurement(BaseModel):
    """A measurement's name in the summary, and the tool that made it. The rest is kept for comparing."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    tool: str = ""
    vary: dict[str, JsonValue] = {}


class Line(BaseModel):
    """A value drawn across a figure's panel."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    at: float
    text: str = ""
    y: str | None = None


class Figure(BaseModel):
    """A figure that the experiment's file asks for; docs/results.md."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    of: str | tuple[str, ...]
    title: str = ""
    x: str | None = None
    y: tuple[str, ...] = ()
    relative_to: str | None = None
    overlays: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()

    @property
    def measurements(self) -> tuple[str, ...]:
        """The names of what it shows."""
        return (self.of,) if isinstance(self.of, str) else self.of


class Printed(BaseModel):
    """A published value; `where` says of what, as `{overlay: swarm, sessions: 9}`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    where: dict[str, str] = {}
    value: float


class Published(BaseModel):
    """Where a measurement's published values or trend were printed, and the trend in words. `metric` is a column of
    samples.csv, empty for the value."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    measurement: str
    source: str = ""
    trend: str = ""
    metric: str = ""
    values: tuple[Printed, ...] = ()


class Experiment(BaseModel):
    """What the report needs of the experiment's file as it stood when it ran. The rest is kept for comparing."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = ""
    title: str = ""
    description: str = ""
    topology: str = ""
    seed: int | None = None
    repetitions: int | None = None
    measurements: tuple[Measurement, ...] = ()
    published: tuple[Published, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of what is varied, each once, in the file's order."""
        return tuple(dict.fromkeys(name for measurement in self.measurements for name in measurement.vary))


class Manifest(BaseModel):
    """manifest.json. Every key may be absent; a key unknown here is kept, and shown under provenance."""

    model_config = ConfigDict(extra="allow", frozen=True)

    experiment: Experiment = Experiment()
    plan: Plan | None = None
    provider: str = ""
    started: str | None = None
    ended: str | None = None
    samples_planned: int | None = None
    skipped: dict[str, str] = {}
    """Overlays that could not be joined, and why."""

    @property
    def extra(self) -> dict[str, JsonValue]:
        return dict(self.__pydantic_extra__ or {})


@dataclass(frozen=True)
class Results:
    """Everything the report may draw or say."""

    directory: Path
    manifest: Manifest
    samples: Samples
    summary: tuple[SummaryRow, ...] = ()
    claims: tuple[Claim, ...] = ()
    files: tuple[str, ...] = field(default=())

    @property
    def missing_samples(self) -> int | None:
        """How many good samples the experiment still wants; None when the manifest does not say."""
        planned = self.manifest.samples_planned
        return None if planned is None else max(0, planned - (self.samples.total - self.samples.failed))

    @property
    def incomplete(self) -> bool:
        return bool(self.missing_samples) or (self.manifest.started is not None and self.manifest.ended is None)


def runs(directory: Path) -> dict[str, Path]:
    """The run in `directory`, or the runs of a campaign, by the name of their experiment; a second run of the same
    experiment has a number behind it. Raises InputError when there are none."""
    if not directory.is_dir():
        raise InputError(f"{directory}: no such results directory")
    inside = [directory] if _is_run(directory) else sorted(each for each in directory.iterdir() if _is_run(each))
    found: dict[str, Path] = {}
    for each in inside:
        name = _manifest(each / "manifest.json").experiment.name or each.name
        number = sum(taken == name or taken.startswith(f"{name} (") for taken in found)
        found[f"{name} ({number + 1})" if number else name] = each
    if not found:
        raise InputError(f"{directory}: holds no results; `minigts run` writes samples.csv and manifest.json")
    return found


def is_campaign(directory: Path) -> bool:
    """Whether runs lie inside, and none is there itself."""
    return directory.is_dir() and not _is_run(directory) and any(map(_is_run, directory.iterdir()))


def _is_run(directory: Path) -> bool:
    return any((directory / name).is_file() for name in ("samples.csv", "manifest.json"))


def read(directory: Path) -> Results:
    """The results in `directory`. Raises InputError: no such directory, no samples yet, or a broken file."""
    if not directory.is_dir():
        raise InputError(f"{directory}: no such results directory")
    manifest = _manifest(directory / "manifest.json")
    samples = read_samples(directory / "samples.csv", manifest.experiment.settings)
    return Results(
        directory=directory,
        manifest=manifest,
        samples=samples,
        summary=_summary(directory / "summary.csv", manifest.experiment, samples),
        claims=_claims(directory / "claims.json"),
        files=tuple(name for name in FILES if (directory / name).exists()),
    )


FILES = ("samples.csv", "summary.csv", "claims.json", "manifest.json", "run.log", "raw")


def _summary(path: Path, experiment: Experiment, samples: Samples) -> tuple[SummaryRow, ...]:
    """The rows of summary.csv, each with its samples' numbers."""
    if not path.exists():
        return ()
    tools = {measurement.name: measurement.tool for measurement in experiment.measurements}
    rows = table(path, NEEDED)
    header = next(rows)[1]
    return tuple(
        _summary_row(path, line, dict(zip(header, row, strict=True)), tools, experiment.settings, samples)
        for line, row in rows
    )


def _quantity(row: Mapping[str, str], tools: Mapping[str, str]) -> Quantity:
    """What a row measures: a time is latency; a rate is UDP when its tool, or else its name, says so."""
    if row["unit"] == "ms":
        return "latency"
    return "udp" if "udp" in tools.get(row["measurement"], row["measurement"]).casefold() else "tcp"


def _summary_row(
    path: Path, line: int, row: Mapping[str, str], tools: Mapping[str, str], settings: Sequence[str], samples: Samples
) -> SummaryRow:
    """One row, typed. Raises InputError naming the field that is no number."""

    def number(key: str) -> float:
        try:
            value = float(row[key])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InputError([Problem(str(path), line, f"{key}: {row[key]!r} is not a number")])
        return value

    def optional(key: str) -> float | None:
        return number(key) if row.get(key, "").strip() else None

    n = int(number("n"))
    return SummaryRow(
        overlay=row["overlay"],
        measurement=row["measurement"],
        quantity=_quantity(row, tools),
        source=row["source"],
        target=row["target"],
        hops=int(number("hops")),
        kind=row["kind"],
        n=n,
        mean=number("mean"),
        stdev=optional("stdev") if n > 1 else None,
        median=number("median"),
        low=optional("low") if n > 1 else None,
        high=optional("high") if n > 1 else None,
        unit=row["unit"],
        predicted=optional("predicted"),
        published=optional("published"),
        tainted=int(optional("tainted") or 0),
        settings=tuple((name, row[name]) for name in settings if row.get(name)),
        cell=samples.cells.get(key_of(row, settings), Cell()),
    )


def _json(path: Path) -> JsonValue:
    try:
        value: JsonValue = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise InputError([Problem(str(path), error.lineno, f"is not JSON: {error.msg}")]) from error
    except (UnicodeDecodeError, OSError, RecursionError) as error:
        raise InputError([Problem(str(path), 0, f"cannot be read: {error}")]) from error
    return value


def _manifest(path: Path) -> Manifest:
    if not path.exists():
        return Manifest()
    try:
        return Manifest.model_validate(_json(path))
    except ValidationError as error:
        raise InputError(_problems(path, error)) from error


def _claims(path: Path) -> tuple[Claim, ...]:
    if not path.exists():
        return ()
    value = _json(path)
    entries = value.get("claims", []) if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise InputError([Problem(str(path), 0, "is not a list of claims")])
    try:
        return tuple(Claim.model_validate(entry) for entry in entries)
    except ValidationError as error:
        raise InputError(_problems(path, error)) from error


def _problems(path: Path, error: ValidationError) -> list[Problem]:
    return [
        Problem(str(path), 0, f"{'.'.join(map(str, entry['loc'])) or 'document'}: {entry['msg']}")
        for entry in error.errors()
    ]
