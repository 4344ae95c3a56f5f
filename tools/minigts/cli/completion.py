"""Completions for a shell: names of labs, hosts, links, overlays and providers.

A shell waits for them at each press of the tab key. So this module reads plans as plain JSON and imports none of the
packages that check them. A plan that cannot be read yields no names; the verb itself reports the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from minigts import paths
from minigts.language import documents
from minigts.topology import overlay_names

PLAN_LIMIT_BYTES = 4 << 20
OF_A_PLAN = documents.Bounds(elements=1_000_000, bytes=PLAN_LIMIT_BYTES)
"""The bounds of a plan that is read. A plan of eighty hosts in a row is about that large and takes a tenth of a second.
"""


def labs() -> list[str]:
    """Names of the labs that are up or kept."""
    try:
        return sorted(path.parent.name for path in paths.labs_root().glob(f"*/{paths.LAB}"))
    except OSError:
        return []


def hosts(ctx: typer.Context) -> list[str]:
    """Names of the hosts and switches of the lab that `--lab` names; without `--lab`, of all labs."""
    return _unique(name for plan in _plans(ctx) for kind in ("hosts", "switches") for name in _names(plan, kind))


def links(ctx: typer.Context) -> list[str]:
    """Names of the links, and of the hosts, since two hosts name a link, too. The labs are chosen as in `hosts`."""
    return _unique(name for plan in _plans(ctx) for name in _names(plan, "links")) + hosts(ctx)


def link_names(ctx: typer.Context) -> list[str]:
    """Names of the links. The labs are chosen as in `hosts`."""
    return _unique(name for plan in _plans(ctx) for name in _names(plan, "links"))


def settings() -> list[str]:
    """`WORD=` for each setting of a link that can change while the lab is up."""
    from minigts.topology.link_settings import SETTABLE

    return [f"{what}=" for what in SETTABLE]


def neighbours(ctx: typer.Context) -> list[str]:
    """Names of the neighbours of the host that the argument before names."""
    first = ctx.params.get("first") or ctx.params.get("link")
    pairs = [link["ends"] for plan in _plans(ctx) for link in plan.get("links", ())]
    return _unique(end for pair in pairs if first in pair for end in pair if end != first)


def host_or_nothing(ctx: typer.Context) -> list[str]:
    """Names of hosts for the first word of a verb such as `exec`; nothing for the words of the command."""
    return [] if ctx.params.get("words") or ctx.params.get("every") else hosts(ctx)


def places(ctx: typer.Context, incomplete: str) -> list[str]:
    """Paths on this machine that begin with `incomplete`, and `HOST:` for each host."""
    here = Path(incomplete)
    above, begun = (here, "") if incomplete.endswith("/") else (here.parent, here.name)
    try:
        found = sorted(path for path in above.iterdir() if path.name.startswith(begun))
    except OSError:
        found = []
    shown = [f"{path}/" if path.is_dir() else str(path) for path in found if begun or path.name[0] != "."]
    return [f"{host}:" for host in hosts(ctx)] + ([] if ":" in incomplete else shown)


def kernels() -> list[str]:
    """Names of the kernels that are built, and `standard`."""
    from minigts.artifacts import kernels as found

    return list(found.words())


def overlays() -> list[str]:
    """Names of the overlays with their variants."""
    return [*overlay_names.known_names()]


def providers() -> list[str]:
    """Names of the providers, by their folders; `agent` is no provider but code that they share."""
    folders = (paths.import_root() / "minigts" / "providers").glob("*/provider.py")
    return sorted({path.parent.name for path in folders} - {"agent"})


def formats() -> list[str]:
    """The formats that `export` writes."""
    return ["gts", "dot", "mermaid"]


def states() -> list[str]:
    """The states of a link."""
    return ["up", "down"]


def _plans(ctx: typer.Context) -> list[dict[str, Any]]:
    chosen = ctx.params.get("lab")
    found = []
    for name in labs():
        if chosen in (None, name):
            try:
                content = documents.document(
                    paths.read_whole(paths.labs_root() / name / paths.PLAN, PLAN_LIMIT_BYTES), OF_A_PLAN
                )
            except (OSError, ValueError):
                continue
            found.append(content if isinstance(content, dict) else {})
    return found


def _names(plan: dict[str, Any], kind: str) -> list[str]:
    return [str(each["name"]) for each in plan.get(kind, ())]


def _unique(names: Any) -> list[str]:
    return list(dict.fromkeys(names))
