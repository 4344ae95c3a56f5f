"""The course of a seed, as a test of `minigts explore` sees it."""

from __future__ import annotations

import os
import random
from pathlib import Path

from minigts import api
from minigts.explore import variables


class Course:
    """The seed under which a test runs, and what it notes of its course. Without `minigts explore` the seed is 0, and
    the folder is a temporary one."""

    def __init__(self, lab: api.Lab, otherwise: Path) -> None:
        self._lab = lab
        self.seed = int(os.environ.get(variables.SEED) or 0)
        self.folder = Path(os.environ.get(variables.COURSE) or otherwise)
        """The folder for the test's own files, such as a history; they are kept when the test fails."""
        self.random = random.Random(f"test/{self.seed}")
        """Random numbers of the seed, the same each time."""

    @property
    def now_s(self) -> float:
        """The lab's time in seconds."""
        return self._lab.now_s

    def sleep(self, seconds: float) -> None:
        """Let the lab's time pass."""
        self._lab.sleep(seconds)

    def note(self, text: str) -> None:
        """Add a line to the course's time line."""
        self._lab.note(text)
