"""Makes figures and pages from results directories alone, without hosts and without other processes."""

from __future__ import annotations

from minigts.report.render import render
from minigts.report.style import missing

__all__ = ["missing", "render"]
