"""A topology in which some values of the file are replaced: one lab of a sweep. Pure.

A place is the path to a value: `chain.hosts`, `defaults.link.rtt`, `links.ams-bra.rate`. It consists of keys; in a list
an entry has its number from 0, and a link its name or ends. A list without an entry means all of them: `links.rtt`.
A word that stands for a mapping, as `routing: ospf` does, is one where a place leads into it: `routing.engine`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence

from minigts.errors import InputError
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.language.tree import Data, Tree

_ALONE: Mapping[str, str] = {"routing": "protocol"}
"""Keys of the file that may have a word alone, each with the key of the mapping for which the word stands."""


def put_values(tree: Tree, values: Mapping[str, str]) -> Tree:
    """The document with `values` at their places. A missing key is added; the language's checks refuse an unknown one.
    Raises InputError for a place in a value that is no mapping, and for an unknown entry.
    """
    data = copy.deepcopy(tree.data)
    for place, value in values.items():
        _put(data, place, place.split("."), value)
    return Tree(data, tree.lines, tree.problems, tree.notes)


def _put(data: Data, place: str, words: Sequence[str], value: str) -> None:
    first, *rest = words
    if isinstance(data, list):
        for entry, left in _entries(data, place, words):
            _put(entry, place, left, value)
        return
    if not isinstance(data, dict):
        raise InputError(f"{place}: there is no mapping that could have {quote(first)}")
    if not rest:
        data[first] = value
        return
    if data.get(first) is None:
        data[first] = {}
    elif isinstance(data[first], str) and first in _ALONE:
        data[first] = {_ALONE[first]: data[first]}
    _put(data[first], place, rest, value)


def _entries(data: list[Data], place: str, words: Sequence[str]) -> Iterator[tuple[Data, Sequence[str]]]:
    """The entries that the place means, each with the rest of the place."""
    first, *rest = words
    names: dict[str, list[Data]] = {}
    for entry in data:
        for name in _names(entry):
            names.setdefault(name, []).append(entry)
    if rest and first in names:
        if len(names[first]) > 1:
            raise InputError(
                f"{place}: {len(names[first])} entries are called {first}; write the number of one, from 0"
            )
        yield names[first][0], rest
    elif rest and first.isdecimal():
        if int(first) >= len(data):
            raise InputError(f"{place}: there are {len(data)} entries, from 0 to {len(data) - 1}")
        yield data[int(first)], rest
    elif not rest:
        yield from ((entry, words) for entry in data)
    else:
        wanted = f"{list_names([*names]) or 'a number from 0'}{did_you_mean(first, names)}"
        raise InputError(f"{place}: no entry {quote(first)}; write {wanted}")


def _names(entry: Data) -> Iterator[str]:
    """The names of an entry of `links:`."""
    if not isinstance(entry, dict):
        return
    if isinstance(name := entry.get("name"), str):
        yield name
    elif isinstance(ends := entry.get("ends"), list) and len(ends) == 2:
        yield "-".join(map(str, ends))
