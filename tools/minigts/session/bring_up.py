"""Brings a lab up: first it checks the request and this machine, then it starts hosts, certificate and overlay.

A lab comes up with the overlay that was asked for; without one with the overlay that a kept lab had; without that with
the topology's. A restored lab has no topology file: without a request it has the overlay with which it was saved, if
any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from minigts import lab as labs
from minigts import overlays
from minigts.errors import MinigtsError, noting_failures
from minigts.fidelity.certificate import Certificate
from minigts.fidelity.current_certificate import current_certificate
from minigts.fidelity.sample import Extent
from minigts.judge.silence import Silence
from minigts.lab import Lab, edit
from minigts.lab.record import KEPT
from minigts.language.tree import Data
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT, course
from minigts.providers.base import ChecksMemory, OwnProcesses, Provider, Share
from minigts.topology.plan.plan import Plan

RUN_AS_ROOT = "minigts: the hosts' kernels run as root, since you are; a plain user is enough, and safer"


@dataclass(frozen=True)
class Request:
    """Which lab is wanted."""

    plan: Plan
    provider: str = DEFAULT
    name: str | None = None
    """The lab's name; None: the plan's name."""
    overlay: str | None = None
    """The overlay; None: the one that a kept lab had, without that the plan's."""
    share: Share | None = None
    """How much of this machine the whole lab may use; None: as before, which for a new lab is all of it."""
    defaults: Data = None
    """The topology file's `defaults:`, as written."""


@dataclass(frozen=True)
class Ready:
    """A request that has passed all checks that are possible before anything is started."""

    lab: Lab
    overlay: str | None
    """The overlay to join; None: none."""
    share: Share | None
    is_new: bool
    """Whether nothing has the lab's name, be it up, kept or half made."""
    defaults: Data = None


@dataclass(frozen=True)
class Brought:
    """A lab that is up, as it was requested."""

    lab: Lab
    certificate: Certificate | None
    """The certificate; None where none was requested."""
    remark: str = ""
    """For a certificate of an earlier `up`: when it was measured, and whether it still holds."""
    silences: tuple[Silence, ...] = ()
    """The plain hosts that do not answer each other."""
    storm: tuple[str, ...] = ()
    """The links on which frames have gone round in a loop of bridges."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user has to know of a lab that is up, and may not be as wanted."""
        storm = (labs.storm_in_words(self.storm),) if self.storm else ()
        return (*storm, *(each.in_words for each in self.silences))


def _nobody_asks(_certificate: Certificate, _remark: str) -> None:
    pass


def ready(request: Request) -> Ready:
    """Make all checks that are possible before anything is started; nothing is changed. Raises InputError for an
    impossible name, overlay or time, EnvironmentLacks when this machine lacks something."""
    course.course_request()
    return _ready(request, _usual_overlay(request.plan))


def _usual_overlay(plan: Plan) -> str | None:
    """The overlay that `up` joins. Of a lab with light hosts, of which there may be a thousand, plain hosts get their
    measuring ends with the first measurement."""
    return None if plan.sharing and plan.overlay in overlays.UNDERLAYS else plan.overlay


def bring_up(
    wanted: Ready,
    say: Progress,
    *,
    certified: bool = True,
    left_up: bool = False,
    extent: Extent = "full",
    strict: bool = False,
    show: Callable[[Certificate, str], None] = _nobody_asks,
) -> Brought:
    """Bring the lab up: hosts and links, with `certified` its certificate of that extent, and its overlay.

    A failure after the hosts are up takes a new lab down again; with `left_up` the lab stays up for inspection, and the
    error says so. `show` is given the certificate, and the remark on it, before the overlay is joined, which may fail.
    That plain hosts do not answer each other is a failure with `strict`; otherwise the lab is up, and it is said.
    Raises what `lab.bring_up`, `current_certificate` and `overlays.join` raise.
    """
    if wanted.overlay is not None:
        overlays.carry(wanted.lab, wanted.overlay, say)
    lab = labs.bring_up(wanted.lab, say, wanted.share)
    if wanted.defaults is not None:
        edit.keep_defaults(lab, wanted.defaults)
    with _left_up(wanted) if left_up else _taken_down(wanted):
        return _completed(wanted, lab, say, show, certified=certified, extent=extent, strict=strict)


@contextmanager
def bare(plan: Plan, provider: str, name: str, say: Progress, laid: Collection[str] = ()) -> Iterator[Lab]:
    """A lab of hosts and links without certificate and overlay, for these overlays; it is taken down at the end of the
    context."""
    lab = overlays.lab_for(plan, provider, name, laid, say)
    try:
        yield lab
    finally:
        labs.down(lab)


def restore(saved: str, name: str | None, overlay: str | None, say: Progress) -> Brought:
    """Bring up a lab from a saved one, called `name`; None: as it was called. Raises InputError, EnvironmentLacks,
    HostFailed; nothing is left of a lab whose hosts do not come up."""
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
        return _completed(wanted, lab, say, _nobody_asks, certified=True)


def require_room(plan: Plan, provider: Provider, names: Collection[str]) -> None:
    """Raise EnvironmentLacks when the memory does not suffice for a lab with each of the overlays, one at a time."""
    if isinstance(provider, ChecksMemory):
        provider.require_room(plan, sorted(names))


def root_note(provider: Provider) -> tuple[str, ...]:
    """A note for a user who brings hosts up as root without need; none for others."""
    return (RUN_AS_ROOT,) if os.geteuid() == 0 and isinstance(provider, OwnProcesses) else ()


def _ready(request: Request, otherwise: str | None) -> Ready:
    """As `ready`; `otherwise` is the overlay to join where none was asked for, and a kept lab had none."""
    if request.overlay is not None:
        overlays.find(request.overlay)
    lab = labs.future_lab(request.plan, request.provider, request.name)
    is_new, state = not lab.rundir.is_dir(), lab.read_state()
    overlay = request.overlay or (_kept_overlay(lab) if state == KEPT else None) or otherwise
    if overlay is not None:
        overlays.require(lab.plan, lab.provider, overlay)
    if is_new or state == KEPT:  # a lab that is up has its memory already
        require_room(lab.plan, lab.provider, [overlay or overlays.UNDERLAY])
    return Ready(lab, overlay, request.share, is_new, request.defaults)


def _completed(
    wanted: Ready,
    lab: Lab,
    say: Progress,
    show: Callable[[Certificate, str], None],
    *,
    certified: bool,
    extent: Extent = "full",
    strict: bool = False,
) -> Brought:
    """Measure the certificate of a lab whose hosts are up, and join its overlay."""
    certificate, remark = current_certificate(lab, say, extent) if certified else (None, "")
    if certificate is not None:
        show(certificate, remark)
    silences: tuple[Silence, ...] = ()
    if wanted.overlay is not None:
        before = overlays.joined_overlay(lab)
        try:
            overlays.join(lab, wanted.overlay, say)
            if strict and before is not None and before.ends:
                overlays.settle(lab, say)
        except overlays.NotReached as error:
            if strict:
                raise
            silences = error.silences
    labs.flush(lab)
    return Brought(lab, certificate, remark, silences, tuple(labs.storms(lab)))


def _kept_overlay(lab: Lab) -> str | None:
    """The overlay that a kept lab had, by its records; None: none."""
    joined = overlays.joined_overlay(Lab(lab.rundir))
    return None if joined is None else joined.name


@contextmanager
def _left_up(wanted: Ready) -> Iterator[None]:
    try:
        yield
    except (MinigtsError, ExceptionGroup) as error:
        joined = wanted.overlay is None or isinstance(error, overlays.NotReached)
        without = "" if joined else f", without overlay {wanted.overlay},"
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
