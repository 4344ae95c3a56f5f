"""A topology file to its plan, or to every problem in it at once.

A file is checked in three steps whose findings are reported together: the text (`language.tree`), each value
(`model`), the whole (`checks`). Whatever the file holds, the outcome is a plan or an `InputError`.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from pathlib import Path

from minigts.language.problems import require_none
from minigts.language.source import Language, read_text
from minigts.language.tree import Data, read_tree
from minigts.language.validation import problems, validated
from minigts.topology.build import build
from minigts.topology.checks import check
from minigts.topology.draft import draft
from minigts.topology.gathering import gather
from minigts.topology.model import Topology
from minigts.topology.plan import Plan
from minigts.topology.time import ANYWHERE, Time

LARGEST_BYTES = 256_000
"""A full mesh of a hundred hosts fits; the pure-Python YAML parser takes some two seconds for as much."""
LANGUAGE = Language(
    name="topology",
    opening="`name:` and `hosts:`",
    largest_bytes=LARGEST_BYTES,
    instead_of_aliases="put what links or hosts share under `defaults:`",
)


def load(
    path: str | Path,
    *,
    known_overlays: Collection[str] | None = None,
    time: Time | None = None,
    best: Time = ANYWHERE,
) -> Plan:
    """The plan of the topology file `path`. `known_overlays` are the names `overlay:` may have; None allows any.

    `time` is the lab's time instead of the file's; `best` that of a file which says none, when nothing else does.

    Raises InputError with every problem, each with its line.
    """
    text, directory = read_text(path, LANGUAGE), Path(path).parent
    return parse(text, str(path), known_overlays=known_overlays, time=time, best=best, directory=directory)


def parse(
    text: str,
    file: str,
    *,
    known_overlays: Collection[str] | None = None,
    time: Time | None = None,
    best: Time = ANYWHERE,
    directory: Path | None = None,
) -> Plan:
    """As `load`, from text; `file` is the name that messages carry, and where files lie that it names. Pure but for the
    files in `directory` that hosts are to have; without one they are not looked at, and no lab can be made of such a
    plan.
    """
    tree = read_tree(text, file, LANGUAGE)
    drafted = draft(tree.data)
    topology, findings = validated(tree.data, Topology)
    time = time or _written_time(tree.data) or best
    gathered = gather(tree, drafted, file, directory)
    whole = check(tree.data, drafted, known_overlays, time)
    require_none(problems(tree, file, chain(findings, whole, gathered.findings)), file)
    assert topology is not None  # without one there are findings
    return gathered.into(build(topology, drafted, time, str(Path(file).absolute().parent)))


def _written_time(data: Data) -> Time | None:
    """Also of a file in which something else is wrong; a word that is no time counts as virtual, which allows more."""
    written = data.get("time") if isinstance(data, dict) else None
    return None if written is None else "real" if written == "real" else "virtual"
