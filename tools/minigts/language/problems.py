"""Problems in a file, and their messages: a place, a sentence, a hint; never more text than a person reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import TypeAlias

from minigts.errors import InputError, Problem

Location: TypeAlias = tuple[str | int, ...]
"""A place in the data: `("links", 2, "ends", 1)`."""
Finding: TypeAlias = tuple[Location, str]
"""A place in the file, and what is wrong there."""

MOST_PROBLEMS = 100
_MOST_FINDINGS = 1000
"""A bound on the time, since each finding may be compared with every known word for a hint."""
_MOST_KNOWN = 500
_LONGEST = 40
_LISTED = 12
_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)


class Misplaced(ValueError):
    """Findings of a check of several values, each at its place below the checked value."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(f"{path_of(where)}: {message}" for where, message in self.findings))


def quote(value: object) -> str:
    """A value from a file as a message shows it: in a few words at the most."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    text = _digits(value) if isinstance(value, int) else str(value)
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def _digits(value: int) -> str:
    """A whole number in digits, or in words where it is longer than any quantity (Python's limit is 4300 digits)."""
    return str(value) if value.bit_length() <= 128 else "a number of many digits"


def list_names(names: Sequence[str]) -> str:
    """`h1, h2, h3`, shortened when there are many; a word that is no name is in quotation marks."""
    if len(names) <= _LISTED:
        return ", ".join(map(_in_a_list, names)) or "(none)"
    return f"{', '.join(map(_in_a_list, names[: _LISTED - 2]))}, … and {len(names) - _LISTED + 2} more"


def _in_a_list(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'rate'?` when something known is close, otherwise nothing."""
    close = get_close_matches(word[:60], list(islice(known, _MOST_KNOWN)), n=1)
    return f"; did you mean {quote(close[0])}?" if close else ""


def path_of(location: Location) -> str:
    """`("links", 2, "ends", 1)` as `links[2].ends[1]`; the document itself as the empty string."""
    parts = []
    for part in location:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            plain = re.fullmatch(r"[\w-]{1,40}", part)
            parts.append(("." if parts else "") + (part if plain else quote(part)))
    return "".join(parts)


def require_none(problems: Iterable[Problem], file: str) -> None:
    """Raise InputError when there are problems: each once, by line, and `MOST_PROBLEMS` at the most."""
    ordered = sorted(set(problems))
    if len(ordered) > MOST_PROBLEMS:
        left, last = len(ordered) - MOST_PROBLEMS, ordered[MOST_PROBLEMS - 1].line
        ordered = [*ordered[:MOST_PROBLEMS], Problem(file, last, f"… and {left} more problems from here on")]
    if ordered:
        raise InputError(ordered)


def enough(findings: Iterable[Finding]) -> Iterable[Finding]:
    """The first findings, as many as are worth computing."""
    return islice(findings, _MOST_FINDINGS)
