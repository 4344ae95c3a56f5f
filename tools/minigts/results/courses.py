"""The courses of a run's labs in virtual time, in the folder `courses`: a file LAB.json for each lab.

    lab-1.json            the course (providers/course.py) with its marks, and what the run did when
    lab-1.recording       every event of the lab, where these were recorded (MINIGTS_RECORD)

The labs of a run are numbered in the order in which they were made, or by their jobs: `lab-1`, `job-3`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.providers.course import NS_PER_S, RecordedCourse
from minigts.results import store
from minigts.results.folder import disk_error, inside, read_model, read_text, write
from minigts.results.schema import COURSES, CourseFacts

ENDING, RECORDING = ".json", ".recording"
MOST_PHASES = 100_000
LONGEST_DOING = 200
BEFORE = "the lab came up and was measured"
"""What was done before the first phase."""


class Phase(BaseModel):
    """What was done from the moment `at_s` on, in seconds of the lab's clock, such as a sample."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    at_s: float
    doing: Annotated[str, Field(max_length=LONGEST_DOING)]


class LabCourse(BaseModel):
    """The course of a lab, and what was done in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    course: RecordedCourse
    phases: Annotated[tuple[Phase, ...], Field(max_length=MOST_PHASES)] = ()

    def doing(self, moment_ns: int) -> str:
        """What was done at that moment."""
        begun = [phase.doing for phase in self.phases if phase.at_s * NS_PER_S <= moment_ns]
        return begun[-1] if begun else BEFORE

    def facts(self, lab: str) -> CourseFacts:
        course = self.course
        return CourseFacts(lab=lab, fingerprint=course.fingerprint, seconds=course.seconds, events=course.events)


def text_of(found: LabCourse) -> str:
    """The content of a lab's file: a line for each mark would be long, so it is one line for the whole."""
    return found.model_dump_json() + "\n"


def next_name(directory: Path) -> str:
    """The name of the next lab of a run, `lab-2`."""
    taken = names(directory)
    return next(name for number in range(1, len(taken) + 2) if (name := f"lab-{number}") not in taken)


def names(directory: Path) -> list[str]:
    """The names of the labs whose courses a run's folder has, in their order."""
    place = inside(directory, COURSES)
    found = [path.name.removesuffix(ENDING) for path in place.glob(f"*{ENDING}")] if place.is_dir() else []
    return sorted(found, key=lambda name: (name.rstrip("0123456789"), len(name), name))


def keep(directory: Path, name: str, found: LabCourse, recording: Path | None = None) -> None:
    """Write a lab's course, and a copy of its recording. Raises MinigtsError when the disk is full or refuses."""
    write(inside(directory, COURSES, name + ENDING), text_of(found))
    if recording is not None:
        path = inside(directory, COURSES, name + RECORDING)
        try:
            with recording.open("rb") as source, paths.replacing(path) as target:
                paths.users_file(target)
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise disk_error(path, error) from error


def read(directory: Path, name: str) -> LabCourse:
    """A lab's course. Raises InputError for a broken file."""
    return read_model(inside(directory, COURSES, name + ENDING), LabCourse)


def recording_of(directory: Path, name: str) -> Path | None:
    """The file of a lab's recording; None if there is none."""
    path = inside(directory, COURSES, name + RECORDING)
    return path if path.is_file() else None


def labs(directory: Path) -> Mapping[str, tuple[Path, str]]:
    """Of a run, or of all labs of a sweep: the run's folder and the lab's name there, by the lab's name in words."""
    return {
        (name if run == directory else f"{run.name} {name}"): (run, name)
        for run in store.runs_in(directory)
        for name in names(run)
    }


def add_course(known: Sequence[CourseFacts], facts: CourseFacts) -> tuple[CourseFacts, ...]:
    """A manifest's entries with this one, in place of an earlier one of the same lab."""
    return (*(each for each in known if each.lab != facts.lab), facts)


def files_of(directory: Path) -> Mapping[str, str]:
    """All files of the folder, by their names in the run's folder."""
    place = inside(directory, COURSES)
    if not place.is_dir():
        return {}
    found = sorted(path.name for path in place.iterdir())
    return {f"{COURSES}/{name}": read_text(inside(directory, COURSES, name)) for name in found}
