"""The plan of a topology, and what this machine makes of it before anything is started. `minigts plan` asks here, so
neither labs nor overlays are loaded for it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from minigts.providers import DEFAULT, registry
from minigts.providers.base import Foresees, Provider
from minigts.topology.load import load, parse
from minigts.topology.plan import Plan
from minigts.topology.taking import Beside
from minigts.topology.time import Time


def planned(
    topology: Path | str,
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    known_overlays: Collection[str] | None = None,
) -> Plan:
    """The plan of a topology: a file's, or, where `topology` has several lines, of the text itself.

    Its time is `time`, else the file's, else the provider's best. `known_overlays` are their names, for who has read
    them already. Raises InputError with every problem and its line.
    """
    if known_overlays is None:
        from minigts import overlays  # noqa: PLC0415  `minigts plan` does without

        known_overlays = overlays.known()
    known, best = tuple(known_overlays), registry.best_time(provider)
    if isinstance(topology, str) and "\n" in topology:
        return parse(topology, "topology", known_overlays=known, time=time, best=best, beside=Beside(Path.cwd()))
    return load(topology, known_overlays=known, time=time, best=best)


def foreseen(plan: Plan, provider: Provider, overlay: str) -> tuple[str, ...]:
    """What this machine makes of the plan, where that is known beforehand; a sentence each."""
    return provider.foresight(plan, overlay) if isinstance(provider, Foresees) else ()
