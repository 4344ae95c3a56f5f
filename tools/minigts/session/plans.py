"""The plan of a topology, and notes on how it will run on this machine. `minigts plan` uses this module, so it imports
neither labs nor overlays.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from minigts.artifacts import kernels
from minigts.providers import DEFAULT, registry
from minigts.providers.base import OwnProcesses, Provider
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import Loaded, load_file, parse_text
from minigts.topology.time import Time
from minigts.topology.user_files import UserFiles


def planned(
    topology: Path | str,
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    known_overlays: Collection[str] | None = None,
    kernel: str | None = None,
) -> Plan:
    """The plan of a topology file, or of a text if `topology` has several lines.

    Its time is `time`; None: the file's, and without that the provider's best. `known_overlays` are names of overlays,
    which are read if it is None. `kernel` takes the place of the file's `kernel:`. Raises InputError with every problem
    and its line.
    """
    return read(topology, provider=provider, time=time, known_overlays=known_overlays, kernel=kernel).plan


def read(
    topology: Path | str,
    *,
    provider: str = DEFAULT,
    time: Time | None = None,
    known_overlays: Collection[str] | None = None,
    kernel: str | None = None,
    any_kernel: bool = False,
) -> Loaded:
    """As `planned`, with what the topology says beyond its plan. With `any_kernel` it may name kernels that are not on
    this machine, of which no lab can be made here."""
    if known_overlays is None:
        from minigts import overlays  # noqa: PLC0415  `minigts plan` starts faster without

        known_overlays = overlays.known_names()
    known, best = tuple(known_overlays), registry.best_time(provider)
    values, wrong = kernels.values(kernel), None if any_kernel else kernels.wrong
    if isinstance(topology, str) and "\n" in topology:
        beside = UserFiles(Path.cwd())
        return parse_text(
            topology,
            "topology",
            known_overlays=known,
            time=time,
            best=best,
            values=values,
            beside=beside,
            wrong_kernel=wrong,
        )
    return load_file(topology, known_overlays=known, time=time, best=best, values=values, wrong_kernel=wrong)


def foreseen(plan: Plan, provider: Provider, overlay: str) -> tuple[str, ...]:
    """Notes on how the plan will run on this machine, a sentence each; none where the provider cannot tell."""
    return provider.forecast(plan, overlay) if isinstance(provider, OwnProcesses) else ()
