"""Figures and pages from results directories alone. No hosts are asked, no processes are started."""

from __future__ import annotations

from minigts.report.render import render
from minigts.report.style import missing

__all__ = ["missing", "render"]
