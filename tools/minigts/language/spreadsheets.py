"""Text that a spreadsheet shows, and does not evaluate."""

from __future__ import annotations

import re

_FORMULA = re.compile("(^|[;|\t\r\n])(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])")
"""The place where a formula begins: at a text's beginning, and after a character at which a spreadsheet splits
fields."""
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?", re.ASCII)


def no_formula(text: str, *, numbers: bool = False) -> str:
    """`=1+1` as `'=1+1`, and `a;=1` as `a;'=1`: with an apostrophe it is text. With `numbers` `-1` stays as it is."""
    return text if numbers and _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'", text)
