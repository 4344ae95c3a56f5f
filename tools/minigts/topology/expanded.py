"""A plan with its routes and paths, as `minigts plan --json` prints it. The same plan gives the same bytes.

It is written in pieces, since the document of a thousand hosts in a row has some gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic_core import to_json as as_json

from minigts.topology.parts import Host
from minigts.topology.plan import Plan
from minigts.topology.stored import WITH_ROUTES

_INDENT = 2


def to_json(plan: Plan) -> str:
    """The whole document."""
    return "".join(pieces(plan))


def pieces(plan: Plan, *, with_paths: bool = True) -> Iterator[str]:
    """The document in pieces; its list of paths is empty unless `with_paths`."""
    document: dict[str, object] = {}
    for name, value in plan.model_dump(mode="json").items():
        document[name] = value
        if name == "links":
            paths = (path for host in plan.hosts for path in plan.paths_from(host.name))
            document["paths"] = (path.model_dump(mode="json") for path in paths) if with_paths else []
    document["version"] = WITH_ROUTES
    document["hosts"] = (_with_routes(plan, host) for host in plan.hosts)
    if plan.ipv6 is not None:
        hosts = (
            {**host.model_dump(mode="json"), "routes": [dict(route) for route in plan.ipv6_routes_of(host.name)]}
            for host in plan.ipv6.hosts
        )
        document["ipv6"] = {**plan.ipv6.model_dump(mode="json"), "hosts": hosts}
    yield from _written(document, 0)
    yield "\n"


def _with_routes(plan: Plan, host: Host) -> dict[str, object]:
    """The host's document, with routes after the address."""
    found: dict[str, object] = {}
    for name, value in host.model_dump(mode="json").items():
        found[name] = value
        if name == "address":
            found["routes"] = [dict(route) for route in plan.routes_of(host.name)]
    return found


def _written(value: object, depth: int) -> Iterator[str]:
    """As pydantic writes it with that indent; an iterator becomes a list."""
    margin = " " * _INDENT * depth
    if isinstance(value, dict) and value:
        members = ((as_json(key).decode() + ": ", member) for key, member in value.items())
        yield from _listed(members, "{}", depth)
    elif isinstance(value, Iterator):
        yield from _listed((("", each) for each in value), "[]", depth)
    else:
        yield as_json(value, indent=_INDENT).decode().replace("\n", f"\n{margin}")


def _listed(members: Iterable[tuple[str, object]], brackets: str, depth: int) -> Iterator[str]:
    margin = " " * _INDENT * depth
    lead = brackets[0]
    for label, member in members:
        yield f"{lead}\n{margin}{' ' * _INDENT}{label}"
        yield from _written(member, depth + 1)
        lead = ","
    yield brackets if lead == brackets[0] else f"\n{margin}{brackets[1]}"
