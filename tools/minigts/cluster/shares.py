"""A share of a campaign's jobs or of an exploration's seeds, for whoever has many processes and no scheduler: jobs of a
batch system, of a CI. The list of jobs follows from the files alone, so each process knows which are its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from minigts.errors import InputError

MOST = 100_000
"""The most shares of one campaign."""
_WRITTEN = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)


@dataclass(frozen=True)
class JobShare:
    """One of `of` shares; `number` is from 1 on."""

    number: int
    of: int

    @classmethod
    def parse(cls, written: str) -> JobShare:
        """`2/16`. Raises InputError."""
        found = _WRITTEN.fullmatch(written)
        number, of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= of <= MOST:
            raise InputError(f"--share {written[:40]}: write which one of how many, as in 2/16; the first is 1/16")
        return cls(number, of)

    def has(self, job: int) -> bool:
        """Whether the job, numbered from 1 on, is of this share. Neighbours are of different shares, since they take
        about as long."""
        return (job - 1) % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
