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
from minigts.topology.link_settings import Shaping
from minigts.topology.read.draft import Draft, DraftLink
from minigts.topology.read.per_direction import BothWays
from minigts.topology.user_files import FileRefused, UserFiles

_LANGUAGE = Language("table of delays", "a delay in each line", own_delays.LARGEST_BYTES, "")


def with_tables(tree: Tree, drafted: Draft, beside: UserFiles | None) -> tuple[Draft, tuple[Finding, ...]]:
    """The draft with the distributions of its links' files, and the findings. Without `beside` no file is read, and such
    links have no jitter."""
    if beside is None or all(link.tables is None for link in drafted.links):
        return drafted, ()
    found: dict[str, own_delays.OwnDelays | str] = {}
    findings: dict[Finding, None] = {}
    links = []
    for link in drafted.links:
        for source in link.tables or ():
            found[source] = found[source] if source in found else _read(beside, source)
        made = link if link.tables is None else _with_own(link, link.tables, found)
        if isinstance(made, str):
            findings[_place(tree, link), made] = None
        links.append(link if isinstance(made, str) else made)
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
    link: DraftLink, tables: BothWays[str], found: Mapping[str, own_delays.OwnDelays | str]
) -> DraftLink | str:
    """The link with both directions' delays by their tables. What the link does not say itself, mean and standard
    deviation, is that of the measured delays."""
    ways: list[Shaping] = []
    for way, source in zip(link.ways, tables, strict=True):
        table = found[source]
        if isinstance(table, str):
            return table
        update = {"jitter_distribution": "table", "jitter_table": table.quantiles}
        if table.sd_ms is None and not way.jitter_ms:
            return f"{source} is a table for netem, which has no unit: say the standard deviation, as in sd: 2ms"
        own = {} if way.jitter_ms else {"jitter_ms": table.sd_ms}
        own |= {} if link.own_delay or table.mean_ms is None else {"delay_ms": table.mean_ms}
        ways.append(way.model_copy(update={**update, **own}))
    measured = all(not isinstance(table := found[each], str) and table.mean_ms is not None for each in tables)
    return replace(link, ways=BothWays(*ways), own_delay=link.own_delay or measured)


def _place(tree: Tree, link: DraftLink) -> Location:
    """Where the table is written: of the link itself, or of the defaults that it has it from."""
    places = (link.where, (link.where[0], "link"), ("defaults", "link"))
    return next((place for each in places if (place := (*each, "jitter", "table")) in tree.lines), link.where)
