"""Reads an experiment's file with its line numbers, and reports every problem at once, as `file:line: where: what`."""

from __future__ import annotations

from pathlib import Path

from minigts import paths
from minigts.errors import InputError, Problem
from minigts.experiment_language.model import Experiment
from minigts.formats import recognised
from minigts.language.source import Language, read_text
from minigts.language.tree import Data, read_tree
from minigts.language.validation import read_model

LANGUAGE = Language(
    name="experiment",
    opening="`name:`",
    largest_bytes=100_000,
    instead_of_aliases="write out what is meant",
)
"""An experiment is a page of text; a longer file is no experiment."""

STAND_INS: dict[str, Data] = {
    "name": "x",
    "title": "",
    "topology": "x",
    "overlays": ["none"],
    "seed": "1",
    "repetitions": "1",
}
"""Values for the keys that every experiment has, where those in the file are refused and the rest is checked."""


def load(path: Path) -> Experiment:
    """The experiment in `path`. Raises InputError with every problem found."""
    return parse(read_text(path, LANGUAGE), str(path))


def parse(text: str, name: str) -> Experiment:
    """The experiment in `text`; `name` is the file's name in messages. Raises InputError."""
    tree = read_tree(text, name, LANGUAGE)
    recognised.require_no_topology(tree.data, name)
    return read_model(tree, name, Experiment, Experiment.wrong_as_written, STAND_INS)


def topology_file(written: str, path: Path) -> Path:
    """The topology file that the experiment in `path` names: searched from the working directory, beside `path`, from
    the project around it, and among minigts' own files, in this order.

    Raises InputError when there is no such file.
    """
    beside = path.resolve().parent
    places = [Path(written), beside / written, beside.parent / written]
    for place in places:
        if _is_file(place):
            return place
    own = paths.own_file(Path(written), "topologies")
    if own is not None:
        return own
    looked = " or ".join(str(place) for place in places)
    line = read_tree(read_text(path, LANGUAGE), str(path), LANGUAGE).line(("topology",))
    raise InputError([Problem(str(path), line, f"topology: no file {looked}")])


def _is_file(place: Path) -> bool:
    try:
        return place.is_file()
    except OSError:  # a name too long for any file
        return False
