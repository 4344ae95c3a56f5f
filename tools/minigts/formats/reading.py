"""Which format a file is in: by its name's ending, and where several share one by what stands in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from minigts.errors import InputError, Problem
from minigts.formats import containerlab, graphml, gts, netlab, pictures
from minigts.formats.limits import GTS_SUFFIXES
from minigts.formats.network import Network
from minigts.language.source import Language
from minigts.language.tree import read_tree

LANGUAGE = Language(
    name="testbed's file",
    opening="`name:` and `topology:` or `nodes:`",
    largest_bytes=100_000,
    instead_of_aliases="write out what is meant",
)
_GRAPHML, _YAML = (".graphml", ".xml"), (".yaml", ".yml")
WRITERS: Mapping[str, Callable[[Network], tuple[str, tuple[str, ...]]]] = {
    "gts": gts.write,
    "containerlab": containerlab.write,
    "netlab": netlab.write,
    "dot": pictures.dot,
    "mermaid": pictures.mermaid,
}
"""By the word that `minigts export --as` takes: a file's text, and notes of what it cannot say."""


def read(text: str, file: str) -> Network:
    """The network of a file in another tool's format. Raises InputError with every problem, each with its line."""
    ending = PurePath(file).suffix.lower()
    if ending in GTS_SUFFIXES:
        return gts.read(text, file)
    if ending in _GRAPHML:
        return graphml.read(text, file)
    if ending not in _YAML:
        endings = ", ".join((*GTS_SUFFIXES, *_GRAPHML, *_YAML))
        raise InputError([Problem(file, 0, f"no format is known by the ending {ending!r}; endings are {endings}")])
    tree = read_tree(text, file, LANGUAGE)
    if isinstance(tree.data, dict) and "topology" in tree.data:
        return containerlab.read(tree, file)
    if isinstance(tree.data, dict) and "nodes" in tree.data:
        return netlab.read(tree, file)
    wanted = "containerlab's file has `topology:`, netlab's has `nodes:`"
    if isinstance(tree.data, dict) and {"hosts", "chain", "pair", "star"} & tree.data.keys():
        wanted += "; this one is a topology of minigts' already"
    raise InputError([Problem(file, 1, f"neither containerlab's nor netlab's: {wanted}")])
