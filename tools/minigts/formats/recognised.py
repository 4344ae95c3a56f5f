"""Which tool's file a file is: by its name's ending, and where several share one by what stands in it. Pure."""

from __future__ import annotations

from pathlib import PurePath

from minigts.errors import InputError, Problem
from minigts.formats import gts_language
from minigts.language.tree import Data

GRAPHML, YAML = (".graphml", ".xml"), (".yaml", ".yml")
OURS = frozenset({"hosts", "chain", "pair", "star", "switches"})
"""Keys that topologies of ours begin with."""


def of_document(data: Data) -> str | None:
    """`containerlab` or `netlab`; None for a topology of ours, and for what is neither."""
    if not isinstance(data, dict) or not OURS.isdisjoint(data):
        return None
    if isinstance(data.get("topology"), dict):
        return "containerlab"
    links = data.get("links")
    ours = isinstance(links, list) and any(isinstance(each, dict) and "ends" in each for each in links)
    return "netlab" if not ours and not data.keys().isdisjoint({"nodes", "defaults.device"}) else None


def require_ours(data: Data, file: str) -> None:
    """Raises InputError, with what to do, for another tool's file where a topology of ours is wanted."""
    if (tool := of_document(data)) is not None:
        raise InputError([Problem(file, 1, _import(f"{tool}'s", file))])


def require_our_ending(file: str) -> None:
    """The same by the name of a file."""
    if PurePath(file).suffix.lower() in GRAPHML:
        raise InputError([Problem(file, 0, _import("GraphML", file))])


def _import(what: str, file: str) -> str:
    command = f"minigts import {file} -o lab.yaml"
    return f"this file is {what}, and no topology of minigts': `{command}` makes one of it; then give that one"


def known_endings() -> str:
    return ", ".join((*gts_language.SUFFIXES, *GRAPHML, *YAML))
