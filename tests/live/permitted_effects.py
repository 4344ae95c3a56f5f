"""The effects that a hostile kernel may have, each with its reason. Any other fails tests/live/test_effects.py."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Permitted:
    """Regular expressions for a call, its descriptor and the change, all of which must match whole."""

    call: str
    by: str
    changed: str
    reason: str

    def covers(self, call: str, by: str, changed: str) -> bool:
        pairs = ((self.call, call), (self.by, by), (self.changed, changed))
        return all(re.fullmatch(shape, text) for shape, text in pairs)


PERMITTED: tuple[Permitted, ...] = ()


def reason(call: str, by: str, changed: str) -> str:
    """Why it may do that; empty if it may not."""
    return next((each.reason for each in PERMITTED if each.covers(call, by, changed)), "")
