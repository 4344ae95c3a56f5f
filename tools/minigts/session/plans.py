"""The plan of a topology, and notes on how it will run on this machine. `minigts plan` uses this module, so it imports
neither labs nor overlays.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from minigts.providers import DEFAULT, registry
from minigts.providers.base import OwnProcesses, Provider
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import Loaded, loaded, parsed
from minigts.topology.time import Time
from minigts.topology.user_files import UserFiles


def planned(
    topology: Path | str,
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    known_overlays: Collection[str] | None = None,
) -> Plan:
    """The plan of a topology file, or of a text if `topology` has several lines.

    Its time is `time`; None: the file's, and without that the provider's best. `known_overlays` are names of overlays,
    which are read if it is None. Raises InputError with every problem and its line.
    """
    return read(topology, provider=provider, time=time, known_overlays=known_overlays).plan


def read(
    topology: Path | str,
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    known_overlays: Collection[str] | None = None,
) -> Loaded:
    """As `planned`, with what the topology says beyond its plan."""
    if known_overlays is None:
        from minigts import overlays  # noqa: PLC0415  `minigts plan` starts faster without

        known_overlays = overlays.known()
    known, best = tuple(known_overlays), registry.best_time(provider)
    if isinstance(topology, str) and "\n" in topology:
        return parsed(topology, "topology", known_overlays=known, time=time, best=best, beside=UserFiles(Path.cwd()))
    return loaded(topology, known_overlays=known, time=time, best=best)


def foreseen(plan: Plan, provider: Provider, overlay: str) -> tuple[str, ...]:
    """Notes on how the plan will run on this machine, a sentence each; none where the provider cannot tell."""
    return provider.forecast(plan, overlay) if isinstance(provider, OwnProcesses) else ()
