"""The format of a file: by its name's ending, and where several share one by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from minigts.errors import InputError, Problem
from minigts.formats import (
    as_relationships,
    containerlab,
    core_emulator,
    dot_mermaid,
    gml,
    graphml,
    gts,
    gts_language,
    kathara,
    netlab,
    recognised,
)
from minigts.formats.beside import FileDirectory
from minigts.formats.network import Network, Written
from minigts.formats.variables import Filled, TooLong, Unclosed, substitution
from minigts.language.source import Language
from minigts.language.tree import read_tree

LANGUAGE = Language(
    name="testbed's file",
    opening="`name:` and `topology:` or `nodes:`",
    largest_bytes=256_000,
    instead_of_aliases="",
)
_GRAPHML = Language(
    name="GraphML file", opening="`<graphml>`", largest_bytes=4_000_000, instead_of_aliases="write out what is meant"
)
"""The largest file of the Topology Zoo has 321 kB. XML is read a hundred times as fast as YAML."""
_GML = Language(
    name="GML file", opening="`graph [`", largest_bytes=4_000_000, instead_of_aliases="write out what is meant"
)
_KATHARA = Language(name="lab.conf", opening='`pc1[0]="A"`', largest_bytes=256_000, instead_of_aliases="")
_SYSTEMS = Language(
    name="file of AS relationships",
    opening="`1|2|-1`",
    largest_bytes=32_000_000,
    instead_of_aliases="",
)
"""The Internet's half a million relationships have some 10 MB."""
_TOPOLOGY = re.compile(r"^topology:", re.MULTILINE)
"""How a containerlab file is known that cannot be read."""
_GRAPHS = (*recognised.GRAPHML, *recognised.GML)
WRITERS: Mapping[str, Callable[[Network], Written]] = {
    "gts": gts.write,
    "dot": dot_mermaid.dot,
    "mermaid": dot_mermaid.mermaid,
}
"""The writers by the word of `minigts export --as`."""


def language_of(file: str | PurePath) -> Language:
    """The language, with its limits, by which a file of that name is opened."""
    ending = PurePath(file).suffix.lower()
    if ending in gts_language.SUFFIXES:
        return gts_language.LANGUAGE
    if PurePath(file).name == kathara.FILE:
        return _KATHARA
    if as_relationships.is_named_so(file):
        return _SYSTEMS
    return _GRAPHML if ending in recognised.GRAPHML else _GML if ending in recognised.GML else LANGUAGE


def read(
    text: str, file: str, *, leave_out: bool = False, part: int | None = None, largest: int | None = None
) -> Network:
    """The network of a file in another tool's format. Raises InputError with every problem, each with its line. A
    setting that affects the network and cannot be honoured is one, unless `leave_out`. Of a graph in several parts,
    which no link joins, `part` is the number of one, 1 for the largest; of autonomous systems the `largest` so many are
    taken. A lab.conf is read with what lies beside it."""
    ending = PurePath(file).suffix.lower()
    recognised.require_no_program(text, file)
    if as_relationships.is_named_so(file):
        if part is not None:
            raise InputError([Problem(file, 0, "only graphs (GraphML, GML) are taken in parts: leave out --part")])
        return as_relationships.read(text, file, leave_out=leave_out, largest=largest)
    if largest is not None:
        raise InputError([Problem(file, 0, "only AS relationships have a largest part by customers: leave out --ases")])
    if ending in _GRAPHS and not (ending == ".xml" and recognised.is_scenario(text)):
        read_graph = gml.read if ending in recognised.GML else graphml.read
        return read_graph(text, file, leave_out=leave_out, part=part)
    if part is not None:
        raise InputError([Problem(file, 0, "only graphs (GraphML, GML) are taken in parts: leave out --part")])
    if ending == ".xml":
        return core_emulator.read(text, file, leave_out=leave_out)
    if PurePath(file).name == kathara.FILE:
        directory = Path(file).parent if Path(file).is_file() else None
        return kathara.read(text, file, FileDirectory(directory), leave_out=leave_out)
    if ending in gts_language.SUFFIXES:
        return gts.read(text, file)
    if ending not in recognised.YAML:
        endings = recognised.known_endings()
        raise InputError([Problem(file, 0, f"no format is known by the ending {ending!r}; endings are {endings}")])
    return _of_yaml(text, file, leave_out)


def _filled_in(text: str, file: str) -> Filled:
    """A containerlab file with the variables of the caller's environment. Raises InputError where it has a `${` without
    `}`, or becomes too long."""
    try:
        return substitution(text, os.environ, LANGUAGE.largest_bytes)
    except (Unclosed, TooLong) as error:
        if _TOPOLOGY.search(text) is None:
            return Filled(text)
        raise InputError([Problem(file, error.line if isinstance(error, Unclosed) else 0, str(error))]) from error


def _of_yaml(text: str, file: str, leave_out: bool) -> Network:
    filled = _filled_in(text, file)
    tree = read_tree(filled.text, file, LANGUAGE)
    if recognised.tool_of_document(tree.data) == "containerlab":
        return containerlab.read(tree, file, leave_out=leave_out, filled=filled)
    tree = read_tree(text, file, LANGUAGE) if filled.text != text else tree
    match recognised.tool_of_document(tree.data):
        case "netlab":
            return netlab.read(tree, file, leave_out=leave_out)
        case "Compose":
            raise InputError([Problem(file, 1, recognised.COMPOSE)])
    wanted = "containerlab's file has `topology:`, netlab's has `nodes:`"
    if isinstance(tree.data, dict) and recognised.OURS & tree.data.keys():
        wanted += "; this one is a topology of minigts' already"
    raise InputError([Problem(file, 1, f"neither containerlab's nor netlab's: {wanted}")])
