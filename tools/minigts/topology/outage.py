"""The ways in which a link is down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outage:
    """The way in which a link is down."""

    silent: bool = False
    """Whether both ends keep their carrier."""
    end: str | None = None
    """The only end that loses its carrier, as where one fibre of two breaks; None: both do."""

    @property
    def in_words(self) -> str:
        """`cut`, `down`, `down at ams`"""
        if self.silent:
            return "cut"
        return "down" if self.end is None else f"down at {self.end}"

    @property
    def in_a_command(self) -> str:
        """`down --silent`: how `minigts link` is told."""
        if self.silent:
            return "down --silent"
        return "down" if self.end is None else f"down --end {self.end}"


SILENT = Outage(silent=True)
