"""The routing protocols that hosts may speak, and the programs that speak them: which can what, and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from minigts.language.tree import Data

EngineName: TypeAlias = Literal["bird", "frr"]
DEFAULT_ENGINE: EngineName = "bird"
FIRST_ASN = 64512
"""The first number of an autonomous system for private use (RFC 6996): the n-th host, from 0, has the n-th."""
HIGHEST_ASN = 4_294_967_294
"""The highest that RFC 7300 allows."""
PROTOCOLS: Mapping[str, str] = {"ospf": "OSPF", "bgp": "BGP", "isis": "IS-IS"}
"""The protocols by which hosts find their routes, with the name of each in sentences."""


@dataclass(frozen=True)
class Engine:
    """A routing program."""

    title: str
    protocols: tuple[str, ...]
    package: str = ""
    """The Debian package that its hosts get; empty where the image has it."""


ENGINES: Mapping[str, Engine] = {
    "bird": Engine("BIRD", ("ospf", "bgp")),
    "frr": Engine("FRR", ("ospf", "bgp", "isis"), "frr"),
}


def written_protocol(document: Mapping[str, Data]) -> str | None:
    """The routing mode of a topology's document, whichever way it is written; None where it has none."""
    written = document.get("routing")
    mode = written.get("protocol") if isinstance(written, dict) else written
    return mode if isinstance(mode, str) else None


def written_engine(settings: Mapping[str, Data]) -> str | None:
    """The engine of a document or of a host's settings; None where it has none, or none of these."""
    written = settings.get("routing")
    name = written.get("engine") if isinstance(written, dict) else None
    return name if isinstance(name, str) and name in ENGINES else None


def why_not(engine: str, protocol: str) -> str:
    """Why the engine does not speak that protocol, and what would be right; empty where it does."""
    if protocol not in PROTOCOLS or protocol in ENGINES[engine].protocols:
        return ""
    able = next(name for name, each in ENGINES.items() if protocol in each.protocols)
    spoken = " and ".join(PROTOCOLS[each] for each in ENGINES[engine].protocols)
    return (
        f"{ENGINES[engine].title} has no {PROTOCOLS[protocol]}, but {spoken}: write "
        f"`routing: {{protocol: {protocol}, engine: {able}}}`"
    )
