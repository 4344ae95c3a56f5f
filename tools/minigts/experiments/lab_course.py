"""Keeps the course of a run's lab in virtual time: what was done when, and at the end the lab's fingerprint."""

from __future__ import annotations

from pathlib import Path

from minigts.experiments.run import OnProgress, RunProgress
from minigts.lab import Lab
from minigts.providers.base import HasCourse
from minigts.results import courses
from minigts.results import manifest as manifests
from minigts.results.courses import LONGEST_DOING, MOST_PHASES, LabCourse, Phase


class Watched:
    """A run's `OnProgress` that also notes at which moment of the lab's clock each step begins."""

    def __init__(self, lab: Lab, on_progress: OnProgress) -> None:
        self._lab, self._on_progress = lab, on_progress
        self._phases: list[Phase] = []

    def __call__(self, at: RunProgress) -> None:
        doing = at.doing[:LONGEST_DOING]
        is_new = not self._phases or self._phases[-1].doing != doing
        if is_new and len(self._phases) < MOST_PHASES and isinstance(self._lab.provider, HasCourse):
            self._phases.append(Phase(at_s=self._lab.provider.now_s(), doing=doing))
        self._on_progress(at)

    def keep(self, directory: Path, name: str) -> None:
        """Write the lab's course up to now into a run's folder, under that name, and its fingerprint into the manifest.
        Nothing is written of a lab in real time, or whose clock does not answer: it has ended."""
        provider, course = self._lab.provider, self._lab.course()
        if course is None or not isinstance(provider, HasCourse):
            return
        found = LabCourse(course=course, phases=tuple(self._phases))
        courses.keep(directory, name, found, None if course.recording is None else provider.recording())
        manifest = manifests.read(directory)
        entries = courses.add_course(manifest.courses, found.facts(name))
        manifests.write(directory, manifest.model_copy(update={"courses": entries}))
