"""Other tools' files, read as `minigts import` reads them; and what a reader passes over without a word.

A place of a file is heard when the network or a note is another one without it, or with another value there. What
stands below a key that is a note as a whole belongs to that note.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minigts.errors import InputError
from minigts.formats import containerlab, detect, gts_language, netlab, network, recognised
from minigts.language.problems import Location, path_of
from minigts.language.source import read_text
from minigts.language.tree import Data, Tree, read_tree
from minigts.topology.read import compose_file, load

Tool = Literal["containerlab", "netlab", "GraphML", "GML", "Compose", "GTS", "Kathará", "CORE"]
TOOLS: tuple[Tool, ...] = ("containerlab", "netlab", "GraphML", "GML", "Compose", "GTS", "Kathará", "CORE")
_NO_YAML: tuple[Tool, ...] = ("GTS", "GraphML", "GML", "Kathará", "CORE")
_MOST_BYTES = 4_000_000
_SIGNS: tuple[tuple[Tool, re.Pattern[str]], ...] = (
    ("containerlab", re.compile(r"^[ \t]*topology[ \t]*:[ \t]*(?:#.*)?$", re.MULTILINE)),
    ("Compose", re.compile(r"^services[ \t]*:", re.MULTILINE)),
    ("netlab", re.compile(r"\A(?!.*^apiVersion:).*^(?:nodes|defaults\.device)[ \t]*:", re.MULTILINE | re.DOTALL)),
)
"""What stands in a file of YAML, also in one that no reader of ours can read: the first that fits."""
_AS_IT_IS_ANYWAY: tuple[tuple[Tool, str], ...] = (("Compose", "expose"),)
"""Keys that ask for what every lab has: each port of a container is open to the others."""


@dataclass(frozen=True)
class Taken:
    """What came of a file: all that a reader made of it, and its notes."""

    made: object
    notes: tuple[str, ...]


def tool_of(path: Path) -> Tool | None:
    """Whose file it is; None for what none of them would read."""
    ending = path.suffix.lower()
    if ending in gts_language.SUFFIXES:
        return "GTS"
    if path.name == recognised.KATHARA:
        return "Kathará"
    if ending not in (*recognised.YAML, *recognised.GRAPHML, *recognised.GML) or path.stat().st_size > _MOST_BYTES:
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    if ending in recognised.GRAPHML:
        return "CORE" if recognised.is_scenario(text) else "GraphML" if "<graphml" in text else None
    if ending in recognised.GML:
        return "GML"
    return next((tool for tool, sign in _SIGNS if sign.search(text)), None)


def read(tool: Tool, path: Path, *, leave_out: bool = False) -> Taken:
    """Raises InputError with every reason why it cannot be taken over."""
    text = read_text(path, compose_file.LANGUAGE if tool == "Compose" else detect.language_of(path))
    if tool == "Compose":
        return _composed(read_tree(text, str(path), compose_file.LANGUAGE), path)
    return _fitting(detect.read(text, str(path), leave_out=leave_out), path)


def _fitting(read: network.Network, path: Path) -> Taken:
    load.require_fit(read, str(path))
    return Taken(network.text(read).split("\nname:", 1)[-1], read.notes)


def _composed(tree: Tree, path: Path) -> Taken:
    def text_of(name: str) -> str:
        try:
            return (path.parent / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from None

    host = compose_file.ComposeHost("a", ("a",), {}, {}, ".", text_of)
    found = compose_file.read(tree, host)
    problems = [*tree.problems, *(tree.problem(str(path), finding) for finding in found.findings)]
    if problems:
        raise InputError(problems)
    return Taken(found.services, tuple(f"{key}: {said}" for key, said in found.notes))


def unheard(tool: Tool, path: Path, taken: Taken, most: int) -> list[str]:
    """Places of a file, of at most so many, that change nothing by being there nor by what they say. Of
    files of YAML: a note on GraphML speaks of a key wherever it stands."""
    if tool in _NO_YAML:
        return []
    return _Looking(tool, path, taken, most).found()


class _Looking:
    """Goes from key to key: what is only a note is not looked into."""

    def __init__(self, tool: Tool, path: Path, taken: Taken, most: int) -> None:
        self._tool, self._path, self._taken, self._left = tool, path, taken, most
        language = compose_file.LANGUAGE if tool == "Compose" else detect.LANGUAGE
        self._tree = read_tree(read_text(path, language), str(path), language)

    def found(self) -> list[str]:
        return list(self._below((), self._tree.data))

    def _below(self, where: Location, data: Data) -> Iterator[str]:
        keys = [*data] if isinstance(data, dict) else [*range(len(data))] if isinstance(data, list) else []
        for key in random.Random(0).sample(keys, len(keys)):
            if self._left <= 0:
                return
            if (self._tool, key) in _AS_IT_IS_ANYWAY:
                continue
            self._left -= 1
            place: Location = (*where, key)
            value = data[key]  # type: ignore[index, call-overload]  # the one or the other
            without = self._read(self._changed(place, None))
            if without is None or without.made != self._taken.made:
                yield from self._below(place, value)
            elif without == self._taken and value is not None and not self._says(place, value):
                yield f"{path_of(place)}: {value!s:.60}"

    def _says(self, place: Location, value: Data) -> bool:
        """Whether another value there makes a difference."""
        return any(self._read(self._changed(place, other)) != self._taken for other in _others(value))

    def _changed(self, place: Location, other: Data) -> Data:
        """The document without what stands there, or with another value."""
        changed = copy.deepcopy(self._tree.data)
        at: Data = changed
        for key in place[:-1]:
            at = at[key]  # type: ignore[index, call-overload]
        if other is None:
            del at[place[-1]]  # type: ignore[union-attr, arg-type]
        else:
            at[place[-1]] = other  # type: ignore[index, call-overload]
        return changed

    def _read(self, data: Data) -> Taken | None:
        tree = Tree(data, dict(self._tree.lines), [], self._tree.notes)
        try:
            if self._tool == "Compose":
                return _composed(tree, self._path)
            reader = containerlab if self._tool == "containerlab" else netlab
            return _fitting(reader.read(tree, str(self._path)), self._path)
        except InputError:
            return None


def _others(value: Data) -> Iterator[Data]:
    match value:
        case str():
            yield f"{value}7"
        case list():
            yield [*value, "something-else"]
        case dict():
            yield {**value, "something-else": "7"}
