"""The labs of seeds: a new one for each, or a fork of one that is brought up once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from minigts import lab as labs
from minigts.explore import host_files
from minigts.explore.work import Exploration, SeedOfWork
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.providers import registry
from minigts.providers.base import Forks
from minigts.session import bring_up
from minigts.topology.plan.plan import Plan


@contextmanager
def lab_of(
    seed: SeedOfWork, name: str, say: Progress, kept: Callable[[], bool] = lambda: False, *, again: bool = False
) -> Iterator[Lab]:
    """A seed's lab, with its overlay and without a certificate; at the end it is taken down, unless `kept` says so. A
    seed that is taken `again` and again has a fork of one lab, which goes on as that one would."""
    asked = seed.exploration
    if asked.forks:
        lab = labs.fork(_origin_of(asked, asked.plan_of_origin, origin_name(name), say), name, seed.number)
    elif again and isinstance(registry.make(asked.provider, Path(), asked.plan.time), Forks):
        lab = labs.fork(_origin_of(asked, asked.plan_of(seed.number), origin_name(name), say), name)
    else:
        lab = _new_lab(asked, asked.plan_of(seed.number), name, say)
    try:
        yield lab
    finally:
        if not kept():
            labs.down(lab)


def _new_lab(asked: Exploration, plan: Plan, name: str, say: Progress) -> Lab:
    with tempfile.TemporaryDirectory(prefix="minigts-files-") as directory:
        whole = host_files.plan_with_files(plan, asked.host_files, Path(directory).resolve() / "files")
        request = bring_up.Request(whole, asked.provider, name, asked.overlay)
        return bring_up.bring_up(bring_up.ready(request), say, certified=False).lab


_origins: dict[str, tuple[Exploration, Plan, Lab]] = {}
"""The labs that seeds of this process fork, by their names."""


def _origin_of(asked: Exploration, plan: Plan, name: str, say: Progress) -> Lab:
    """The lab that seeds fork, which is brought up for the first of them."""
    if name in _origins:
        *before, lab = _origins[name]
        if before == [asked, plan] and lab.read_state() == "up":
            return lab
        labs.down(_origins.pop(name)[-1])
    lab = _new_lab(asked, plan, name, say)
    _origins[name] = (asked, plan, lab)
    return lab


def origin_name(name: str) -> str:
    """The name of the lab that the seed's lab of that name is a fork of: `job-6f02ab-000417-…`, with no seed's number.
    A worker's labs are taken down with it by their names."""
    prefix, campaign, _, *where = name.split("-")
    return "-".join([prefix, campaign, "origin", *where])


def end_origins() -> None:
    """Take down the labs that seeds of this process fork."""
    while _origins:
        labs.down(_origins.popitem()[1][-1])
