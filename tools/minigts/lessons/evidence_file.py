"""evidence.json of a student's folder: the figures that a check has measured, and how the lab's links were set then.

The student may have written it by hand: it is read within bounds, and proves nothing.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.lab import Change, Lab
from minigts.lessons.folder import StudentWork
from minigts.lessons.verdicts import MENDED, Evidence
from minigts.results.folder import read_model

FILE = "evidence.json"
MOST = 100
"""The most figures, links, and reasons for missing figures in a file."""
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class EvidenceFile(BaseModel):
    """The content of evidence.json, of one check of a lab."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    measured: datetime
    figures: Annotated[dict[_Name, float], Field(max_length=MOST)] = {}
    lacking: Annotated[tuple[Annotated[str, Field(max_length=500)], ...], Field(max_length=MOST)] = ()
    changed: Annotated[dict[_Name, Change], Field(max_length=MOST)] = {}
    """How each changed link was set, by the link's name."""
    cut: Annotated[frozenset[_Name], Field(max_length=MOST)] = frozenset()

    @property
    def digest(self) -> str:
        """A sum of what was measured, and when, however the file is written."""
        return hashlib.sha256(repr((self.measured.timestamp(), sorted(self.figures.items()))).encode()).hexdigest()

    def evidence(self, work: StudentWork) -> Evidence:
        """The figures of this file that the lesson measures."""
        measured = {name for each in work.numbered.lesson.measure for name in each.gives}
        if work.numbered.lesson.find:
            measured.add(MENDED)
        return Evidence({name: value for name, value in self.figures.items() if name in measured}, self.lacking)


def write(folder: Path, lab: Lab, shown: Evidence) -> None:
    """Write the figures of a check and the lab's links, in place of an earlier check's."""
    record = lab.read_record()
    lacking = tuple(why[:500] for why in shown.lacking[:MOST])
    kept = EvidenceFile(
        measured=datetime.now(UTC),
        figures=dict(shown.figures),
        lacking=lacking,
        changed=record.changed,
        cut=record.cut,
    )
    paths.write_for_user(folder / FILE, kept.model_dump_json(indent=1) + "\n")


def read(folder: Path) -> EvidenceFile:
    """The content of evidence.json. Raises InputError."""
    return read_model(folder / FILE, EvidenceFile)
