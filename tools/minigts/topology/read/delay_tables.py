"""Read the files with which links bring their own distributions of delays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from minigts.errors import InputError
from minigts.language.problems import Finding, Location
from minigts.language.source import Language
from minigts.language.tree import Tree
from minigts.topology import own_delays
from minigts.topology.facts.links.jitter import OWN
from minigts.topology.read.declared import Draft, DraftLink, OwnTable
from minigts.topology.read.per_direction import BothWays
from minigts.topology.user_files import FileRefused, UserFiles

_LANGUAGE = Language("table of delays", "a delay in each line", own_delays.LARGEST_BYTES, "")


def read_tables(tree: Tree, drafted: Draft, beside: UserFiles | None) -> tuple[Draft, tuple[Finding, ...]]:
    """The draft with the distributions of its links' files, and the findings. Without `beside` no file is read, and
    such links have no jitter."""
    if beside is None or all(link.tables is None for link in drafted.links):
        return drafted, ()
    found: dict[str, own_delays.OwnDelays | str] = {}
    findings: dict[Finding, None] = {}
    links = []
    for link in drafted.links:
        for table in link.tables or ():
            if table is not None and table.source not in found:
                found[table.source] = _read(beside, table.source)
        try:
            links.append(link if link.tables is None else _with_own(link, link.tables, found))
        except ValueError as error:
            findings[_place(tree, link), str(error)] = None
            links.append(link)
    return replace(drafted, links=tuple(links)), tuple(findings)


def _read(beside: UserFiles, source: str) -> own_delays.OwnDelays | str:
    """What the file says, or why it cannot be taken."""
    try:
        text = beside.text(source, _LANGUAGE)
        return own_delays.read(text, netem=PurePosixPath(source).suffix == own_delays.NETEM_SUFFIX)
    except InputError as error:
        return f"{source}: {error.problems[0].message if error.problems else error}"
    except (FileRefused, ValueError) as error:
        return f"{source} {error}"


def _with_own(
    link: DraftLink,
    tables: BothWays[OwnTable | None],
    found: Mapping[str, own_delays.OwnDelays | str],
) -> DraftLink:
    """The link with each direction's delays by its table. What the link does not say itself, mean and standard
    deviation, is that of the measured delays. Raises ValueError where a file is wrong."""
    ways, measured = [], False
    for way, table in zip(link.ways, tables, strict=True):
        if table is None:
            ways.append(way)
            continue
        own = found[table.source]
        if isinstance(own, str):
            raise ValueError(own)
        if own.sd_ms is None and not table.scaled:
            unit = "is a table for netem, which has no unit: say the standard deviation, as in sd: 2ms"
            raise ValueError(f"{table.source} {unit}")
        update: dict[str, object] = {"jitter_distribution": OWN, "jitter_table": own.quantiles}
        update |= {} if table.scaled else {"jitter_ms": own.sd_ms}
        update |= {} if link.own_delay or own.mean_ms is None else {"delay_ms": own.mean_ms}
        measured |= own.mean_ms is not None
        ways.append(way.model_copy(update=update))
    return replace(link, ways=BothWays(*ways), own_delay=link.own_delay or measured)


def _place(tree: Tree, link: DraftLink) -> Location:
    """Where the table is written: of the link itself, or of the defaults that it has it from."""
    places = (link.where, (link.where[0], "link"), ("defaults", "link"))
    return next((place for each in places if (place := (*each, "jitter", "table")) in tree.lines), link.where)
