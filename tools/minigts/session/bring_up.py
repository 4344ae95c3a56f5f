"""A lab brought up: what is asked of the machine and the request first, then hosts, certificate and overlay.

Which overlay a lab comes up with is one rule: the one that was asked for; else the one that a kept lab had; else the
topology's. A saved lab that is restored has no topology file beside it: without a request it has what it had, and
nothing where it had nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from minigts import lab as labs
from minigts import overlays
from minigts.errors import MinigtsError, noting_failures
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.standing import standing
from minigts.lab import Lab, Progress
from minigts.lab.record import KEPT
from minigts.providers import DEFAULT
from minigts.providers.base import Metered, Provider, Share, Sized
from minigts.topology.plan import Plan

RUN_AS_ROOT = "minigts: the hosts' kernels run as root, since you are; a plain user is enough, and safer"


@dataclass(frozen=True)
class Request:
    """Which lab is wanted."""

    plan: Plan
    provider: str = DEFAULT
    name: str | None = None
    """The lab's; None: the plan's."""
    overlay: str | None = None
    """None: the one that a kept lab had, else the plan's."""
    share: Share | None = None
    """What all of it together may take of the machine; None: as before, which for a new lab is all."""


@dataclass(frozen=True)
class Ready:
    """A request that nothing stands against which could be known without starting anything."""

    lab: Lab
    overlay: str | None
    """What is joined; None: nothing."""
    share: Share | None
    is_new: bool
    """Whether nothing has the lab's name, be it up, kept or half made."""


@dataclass(frozen=True)
class Brought:
    """A lab that is up, as it was wanted."""

    lab: Lab
    certificate: Certificate | None
    """None where none was wanted."""
    remark: str = ""
    """Of a certificate that was measured before: when, and whether it holds still."""


def ready(request: Request) -> Ready:
    """Ask everything that can be refused before anything is started; nothing is changed. Raises InputError for a name,
    an overlay or a time that cannot be, EnvironmentLacks when this machine has not what it takes."""
    return _ready(request, request.plan.overlay)


def bring_up(wanted: Ready, say: Progress, *, certified: bool = True, left_up: bool = False) -> Brought:
    """Bring it up: hosts and links, its certificate unless it is not to be `certified`, its overlay.

    What fails once the hosts are up takes a new lab down again; with `left_up` every lab stays up, to be looked at, and
    the error says so. Raises what `lab.bring_up`, `standing` and `overlays.join` raise.
    """
    lab = labs.bring_up(wanted.lab, say, wanted.share)
    with _left_up(wanted) if left_up else _taken_down(wanted):
        return _completed(wanted, lab, say, certified=certified)


@contextmanager
def bare(plan: Plan, provider: str, name: str, say: Progress) -> Iterator[Lab]:
    """A lab of hosts and links alone, for what joins overlays and measures by itself; it is taken down at the end."""
    lab = labs.up(plan, provider, name, say)
    try:
        yield lab
    finally:
        labs.down(lab)


def restore(saved: str, name: str | None, overlay: str | None, say: Progress) -> Brought:
    """Bring up a lab from a saved one, under its own name or another. Raises InputError, EnvironmentLacks, HostFailed;
    nothing is left of a lab whose hosts do not come up."""
    found = labs.saved_named(saved)
    if overlay is not None:
        overlays.find(overlay)
    made = labs.restore(saved, name, say)
    try:
        request = Request(made.plan, found.provider, made.name, overlay or found.overlay)
        wanted = _ready(request, None)
        lab = labs.bring_up(wanted.lab, say)
    except BaseException as error:
        with noting_failures(error):
            labs.down(made)
        raise
    with _left_up(wanted):
        return _completed(wanted, lab, say, certified=True)


def require_room(plan: Plan, provider: Provider, names: Collection[str]) -> None:
    """Raise EnvironmentLacks when there is not the memory for a lab with each of the overlays, one at a time."""
    if isinstance(provider, Sized):
        provider.require_room(plan, sorted(names))


def as_root(provider: Provider) -> tuple[str, ...]:
    """A line for whoever brings hosts up as root and need not."""
    return (RUN_AS_ROOT,) if os.geteuid() == 0 and isinstance(provider, Metered) else ()


def _ready(request: Request, otherwise: str | None) -> Ready:
    """`otherwise` is joined where none was asked for, and none was kept."""
    if request.overlay is not None:
        overlays.find(request.overlay)
    lab = labs.wanted(request.plan, request.provider, request.name)
    is_new, state = not lab.rundir.is_dir(), lab.read_state()
    overlay = request.overlay or (_kept_overlay(lab) if state == KEPT else None) or otherwise
    if overlay is not None:
        overlays.require(lab.plan, lab.provider, overlay)
    if is_new or state == KEPT:  # one that is up has its memory
        require_room(lab.plan, lab.provider, [overlay or overlays.UNDERLAY])
    return Ready(lab, overlay, request.share, is_new)


def _completed(wanted: Ready, lab: Lab, say: Progress, *, certified: bool) -> Brought:
    """A lab whose hosts are up, with its certificate and its overlay."""
    certificate, remark = standing(lab, say) if certified else (None, "")
    if wanted.overlay is not None:
        overlays.join(lab, wanted.overlay, say)
    return Brought(lab, certificate, remark)


def _kept_overlay(lab: Lab) -> str | None:
    """What was joined on a lab when it was kept, by its own records; None where nothing was."""
    joined = overlays.joined(Lab(lab.rundir))
    return None if joined is None else joined.name


@contextmanager
def _left_up(wanted: Ready) -> Iterator[None]:
    try:
        yield
    except (MinigtsError, ExceptionGroup) as error:
        without = "" if wanted.overlay is None else f", without overlay {wanted.overlay},"
        name = wanted.lab.name
        error.add_note(f"lab {name} is left up{without} to be looked at; it is taken down by: minigts down {name}")
        raise


@contextmanager
def _taken_down(wanted: Ready) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if wanted.is_new:
            with noting_failures(error):
                labs.down(wanted.lab)
        raise
