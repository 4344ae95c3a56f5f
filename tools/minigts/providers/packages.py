"""What `packages:` of a topology's hosts means to providers: which a host wants."""

from __future__ import annotations

from minigts.topology.parts import Host


def of(host: Host) -> tuple[str, ...]:
    """The packages that a host asks for, in one order for all that ask for the same."""
    return tuple(sorted({each.name for each in host.software.packages})) if host.software is not None else ()
