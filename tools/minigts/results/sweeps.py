"""The tables of a sweep: the tables of its labs, joined, in the sweep's own folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from minigts import paths
from minigts.language.spreadsheets import no_formula
from minigts.results import tables
from minigts.results.folder import disk_error, inside
from minigts.results.schema import FLOWS, SAMPLES, SERIES, SUMMARY

ALL = "all-"
"""The prefix of their names, as a folder with a samples.csv would be that of a run."""
TABLES = (SAMPLES, SUMMARY, SERIES, FLOWS)


def write_together(directory: Path, labs: Sequence[Path]) -> tuple[str, ...]:
    """Write all-samples.csv, all-summary.csv, all-series.csv and all-flows.csv of a sweep, with the labs in that order,
    and return the names written. A lab without a table has no rows in it. Raises MinigtsError, InputError."""
    written = []
    for name in TABLES:
        own = [lab for lab in labs if inside(lab, name).is_file()]
        if not own:
            continue
        target = inside(directory, ALL + name)
        try:
            with paths.replacing(target) as file:
                paths.users_file(file)
                for line in _lines(own, name):
                    file.write(line)
        except OSError as error:
            raise disk_error(target, error) from error
        written.append(target.name)
    return tuple(written)


def _lines(labs: Sequence[Path], name: str) -> Iterator[bytes]:
    """The lines of all labs below the headings of all; a lab's cells are empty for headings that it lacks."""
    columns = list(dict.fromkeys(heading for lab in labs for heading in _header(lab, name)))
    yield _line(columns)
    for lab in labs:
        lines = tables.rows(inside(lab, name), (), tables.MOST_SAMPLES, tables.LARGEST_SAMPLES_BYTES)
        header = next(lines)[1]
        for _, row in lines:
            cells = dict(zip(header, row, strict=True))
            yield _line([cells.get(column, "") for column in columns])


def _header(lab: Path, name: str) -> Sequence[str]:
    return next(tables.rows(inside(lab, name), (), tables.MOST_SAMPLES, tables.LARGEST_SAMPLES_BYTES))[1]


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([no_formula(cell, numbers=True) for cell in cells])
    return text.getvalue().encode()
