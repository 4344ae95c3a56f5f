"""The tool whose file a file is: by its name's ending, and where several share one by its content. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal, TypeAlias

from minigts.errors import InputError, Problem
from minigts.formats import gts_language
from minigts.language.tree import Data

KATHARA, PYTHON = "lab.conf", (".py",)
SYSTEMS = (".as-rel.txt", ".as-rel2.txt")
"""How the names of CAIDA's files of AS relationships end."""
GRAPHML, GML, YAML = (".graphml", ".xml"), (".gml",), (".yaml", ".yml")
OURS = frozenset({"hosts", "chain", "pair", "star", "ring", "clos", "switches"})
"""Keys of minigts' own topologies."""
COMPOSE = "this file is Compose's: a host of a topology takes it, as in `hosts: {a: {compose: compose.yaml}}`"
MEASURES = "measurements"
"""The key that experiments have, and topologies lack."""
_WHERE_XML_BEGINS = 10_000


Tool: TypeAlias = Literal["containerlab", "netlab", "Compose"]


def tool_of_document(data: Data) -> Tool | None:
    """The tool whose YAML document it is; None for a topology of minigts, and for anything else."""
    if not isinstance(data, dict) or not OURS.isdisjoint(data) or "apiVersion" in data:
        return None
    if isinstance(data.get("topology"), dict):
        return "containerlab"
    if isinstance(data.get("services"), dict):
        return "Compose"
    links = data.get("links")
    ours = isinstance(links, list) and any(isinstance(each, dict) and "ends" in each for each in links)
    groups = data.get("groups")
    makes_nodes = isinstance(groups, dict) and _makes_nodes(groups)
    named = not data.keys().isdisjoint({"nodes", "defaults.device"}) or makes_nodes
    return "netlab" if not ours and named else None


def _makes_nodes(groups: Mapping[str, Data]) -> bool:
    """Whether netlab's groups make nodes of their members, so that a file needs no `nodes:`."""
    groups_of_their_own = (each for each in groups.values() if isinstance(each, dict))
    return "_auto_create" in groups or any("_auto_create" in each for each in groups_of_their_own)


def require_ours(data: Data, file: str) -> None:
    """Raise InputError, with what to do, for another tool's file where a topology is wanted, and for an experiment."""
    if isinstance(data, dict) and MEASURES in data and OURS.isdisjoint(data):
        named = f"; the topology that it names is {data['topology']}" if isinstance(data.get("topology"), str) else ""
        raise InputError([Problem(file, 1, f"this file is an experiment: minigts run {file} measures it{named}")])
    tool = tool_of_document(data)
    if tool == "Compose":
        raise InputError([Problem(file, 1, COMPOSE)])
    if tool is not None:
        raise InputError([Problem(file, 1, _import(f"{tool}'s", file))])


def require_no_topology(data: Data, file: str) -> None:
    """Raise InputError, with what to do, for a topology where an experiment is wanted."""
    if isinstance(data, dict) and MEASURES not in data and not OURS.isdisjoint(data):
        by_one = f"an experiment, which says what is measured of it, names it by `topology: {file}`"
        raise InputError([Problem(file, 1, f"this file is a topology: minigts up {file} brings it up; {by_one}")])


def require_our_ending(file: str) -> None:
    """Raise InputError for GraphML, GML, Kathará's lab.conf and programs, by the name of a file, before it is read."""
    by_ending = {GRAPHML[0]: "GraphML", GML[0]: "GML", **dict.fromkeys(SYSTEMS, "one of AS relationships")}
    what = next((each for ending, each in by_ending.items() if file.lower().endswith(ending)), None)
    what = what or ("Kathará's" if PurePath(file).name == KATHARA else None)
    if what is not None:
        raise InputError([Problem(file, 0, _import(what, file))])
    if PurePath(file).suffix.lower() in PYTHON:
        raise InputError([Problem(file, 0, _PROGRAM)])


_PROGRAM = (
    "this file is a program in Python, as Mininet's networks are, and no data that could be read: it makes its network "
    "as it runs. Write its hosts, switches and links as a topology (docs/topology-language.md)"
)


def require_no_program(text: str, file: str) -> None:
    """Raise InputError for a program in Python, by its file's name, and for a script of Mininet's by its text, too."""
    imports = "import" in text[:_WHERE_XML_BEGINS] and "mininet." in text[:_WHERE_XML_BEGINS]
    known = PurePath(file).suffix.lower() in (*GRAPHML, *GML, *YAML) or PurePath(file).name == KATHARA
    if PurePath(file).suffix.lower() in PYTHON or (imports and not known):
        raise InputError([Problem(file, 1, _PROGRAM)])


def is_scenario(text: str) -> bool:
    """Whether XML is a scenario of CORE's, by its beginning."""
    return "<scenario" in text[:_WHERE_XML_BEGINS] and "<graphml" not in text[:_WHERE_XML_BEGINS]


def require_no_xml(text: str, file: str) -> None:
    """Raise InputError for XML, by the beginning of its text."""
    if text.lstrip()[:1] != "<":
        return
    if "<graphml" in text[:_WHERE_XML_BEGINS] and PurePath(file).suffix.lower() in GRAPHML:
        raise InputError([Problem(file, 1, _import("GraphML", file))])
    if is_scenario(text) and PurePath(file).suffix.lower() == ".xml":
        raise InputError([Problem(file, 1, _import("CORE's", file))])
    raise InputError([Problem(file, 1, "this file is XML, and no topology of minigts', which is YAML")])


def _import(what: str, file: str) -> str:
    command = f"minigts import {file} -o lab.yaml"
    return f"this file is {what}, and no topology of minigts': `{command}` makes one of it; then give that one"


def known_endings() -> str:
    return ", ".join((*gts_language.SUFFIXES, *GRAPHML, *GML, *YAML, *SYSTEMS)) + f"; and {KATHARA}"
