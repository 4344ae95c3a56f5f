"""How near a lab in virtual time comes to what its plan predicts."""

from __future__ import annotations

EXACT_MS = 0.002
"""A guest's clock ticks in steps of 256 ns, and a program reads it twice."""
