"""The Debian packages that a host asks for with `packages:`."""

from __future__ import annotations

from minigts.topology.parts import Host


def of(host: Host) -> tuple[str, ...]:
    """The names of the packages that a host asks for, sorted, each once."""
    return tuple(sorted({each.name for each in host.software.packages})) if host.software is not None else ()
