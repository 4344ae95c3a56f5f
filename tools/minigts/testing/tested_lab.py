"""Which lab pytest tests: of the topology that was named, else the lab that is up, else of the project's topology."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from minigts import api
from minigts.errors import InputError, MinigtsError
from minigts.explore import variables
from minigts.language.problems import did_you_mean, list_names
from minigts.machine import beneath
from minigts.providers import DEFAULT, registry
from minigts.providers.agent import halting
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

NAMED = variables.LAB
"""The environment variable with the name of the lab to test, for when several are up."""


@dataclass(frozen=True)
class Target:
    """The plan and provider to test: in `lab`, which is up already, or in one that is brought up for the tests."""

    plan: Plan
    provider: str
    lab: api.Lab | None = None
    file: str = ""
    """The topology's file from which a lab is brought up; empty without one."""

    @property
    def overlay(self) -> str:
        """The overlay that is joined on the lab, or will be."""
        return self.plan.overlay if self.lab is None else self.lab.overlay or ""

    def __str__(self) -> str:
        return self.provider

    def headline(self) -> str:
        """A line for the head of pytest's report. Raises MinigtsError when the lab does not answer."""
        if self.lab is None:
            return f"{_near(self.file)} is brought up on {self.provider} in {self.plan.time} time, and taken down again"
        return f"lab {self.lab.name}, which is up and is given back as it was: {facts(self.lab)}"


def _near(file: str) -> str:
    """The path relative to the working directory, if it lies below that."""
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file


def facts(lab: api.Lab) -> str:
    """`chain6 on uml in virtual time, kernel 7.2.13-minigts, overlay swarm`"""
    where = f"{lab.plan.name} on {lab.provider} in {lab.time} time"
    return f"{where}, kernel {lab.kernel}, overlay {lab.overlay or 'none joined'}"


def targets(
    *, named: Path | None, providers: Sequence[str], time: Time | None, fallback: Path | None, adopting: bool
) -> tuple[Target, ...]:
    """The targets of the tests, one for each provider.

    The topology is `named`; a lab that is up with its plan is used. Without `named` it is the lab that is up, and
    without that the topology `fallback`. With `adopting` False no lab that is up is used. Raises InputError for
    problems of a file, several labs without a name, and when there is nothing to test.
    """
    found = [lab for lab in api.all_labs() if adopting]
    if named is None and found and not providers:
        return (_adopted(_chosen(found)),)
    file = named or fallback
    if file is None:
        raise InputError("no lab is up: bring one up with minigts up, or name a topology with --minigts FILE")
    wanted = providers or (DEFAULT,)
    unknown = [name for name in wanted if name not in registry.names()]
    if unknown:
        hint = did_you_mean(unknown[0], registry.names())
        raise InputError(f"--minigts-on: no provider {unknown[0]!r}; there are {list_names(registry.names())}{hint}")
    return tuple(_target(file, provider, time, found) for provider in wanted)


def _adopted(lab: api.Lab) -> Target:
    return Target(lab.plan, lab.provider, lab)


def _chosen(found: Sequence[api.Lab]) -> api.Lab:
    names = [lab.name for lab in found]
    name = os.environ.get(NAMED)
    if name and name not in names:
        raise InputError(f"{NAMED}={name}: no such lab is up; there are {list_names(names)}{did_you_mean(name, names)}")
    if not name and len(found) > 1:
        raise InputError(f"several labs are up ({', '.join(names)}): say which to test, as in {NAMED}={names[0]}")
    return next(lab for lab in found if name in (None, "", lab.name))


def _target(file: Path, provider: str, time: Time | None, found: Sequence[api.Lab]) -> Target:
    plan = api.planned(file, provider=provider, time=time)
    registry.make(provider, Path(), plan.time)  # raises InputError for a provider without that time
    running = [lab for lab in found if (lab.provider, lab.plan) == (provider, plan)]
    name = os.environ.get(NAMED)
    named = [lab for lab in running if name in (None, "", lab.name)]
    return Target(plan, provider, named[0] if named else None, str(file))


@contextmanager
def lab_of(target: Target) -> Iterator[api.Lab]:
    """The target's lab: one that is up is restored at the end; a new one is brought up, and taken down at the end. A
    lab that is explored is left as it is, since others change it, too."""
    if target.lab is not None and is_explored():
        halting.add_move(partial(_move, target.lab))
        yield target.lab
        return
    if target.lab is not None:
        with target.lab.given_back() as lent:
            yield lent
        return
    name = f"{target.plan.name}-tests-{os.getpid()}"  # an experiment that a test runs has a lab of this process, too
    with api.up(target.plan, provider=target.provider, name=name) as made:
        yield made


def _move(lab: api.Lab, rundir: Path) -> None:
    """Have a lab be the fork in that run directory, whose plan and provider are the same."""
    known = lab._lab
    vars(known)["rundir"] = rundir
    vars(known.provider)["rundir"] = rundir


def is_explored() -> bool:
    """Whether the tests run under `minigts explore`."""
    return variables.COURSE in os.environ


def logs_of(lab: api.Lab, host: str, into: Path, lines: int) -> str:
    """The last lines of a host's console and kernel log; a sentence with the reason where they cannot be read."""
    try:
        lab.diagnose(host, into)
        found = beneath.texts(into)
    except (MinigtsError, OSError) as error:
        return f"its console cannot be read: {error}"
    return "\n".join(f"{name}: {line}" for name, text in found.items() for line in text.splitlines()[-lines:])
