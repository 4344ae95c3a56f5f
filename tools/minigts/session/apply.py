"""Another plan for the lab that runs, of an edited file or by hand: what it would change, and the change itself.

Links that stay are set first, under traffic; then hosts and links come and go. After either step the lab's record says
what the lab is, so a second call goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from minigts import lab as labs
from minigts import overlays
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.lab import Lab, Record, edit, lifecycle
from minigts.machine.progress import Progress
from minigts.providers.base import Edits
from minigts.session.bring_up import Ready
from minigts.topology.difference import Difference, difference, plan_with_settings
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import Loaded
from minigts.topology.renumber import renumber_plan


@dataclass(frozen=True)
class Pending:
    """What `up` of a file changes of the lab that is up."""

    lab: Lab
    """The lab as it is up."""
    difference: Difference
    altered: bool
    """Whether the lab has other addresses afterwards than a new one of the file, so that it cannot be kept."""
    interrupted: bool
    """Whether a command was interrupted while it added or removed hosts or links, which is completed first."""
    ends: tuple[str, ...] = ()
    """A line for each link that the file changes and that has been set otherwise by hand: that ends."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is going to happen, a line each; not what is refused."""
        first = ("first an alteration that was interrupted is completed",) if self.interrupted else ()
        return (*first, *self.difference.lines, *self.ends)

    @property
    def is_empty(self) -> bool:
        made = self.difference
        return made.is_empty and not self.interrupted and plan_with_settings(made) == made.before

    def require(self) -> None:
        """Raise InputError with all that cannot be applied."""
        if refused := self.difference.refused:
            them = "\n".join(f"- {each}" for each in refused)
            name = self.lab.name
            raise InputError(
                f"lab {name} is up, and this cannot change while it is, so nothing was changed:\n{them}\n"
                f"to bring it up anew: minigts down {name}, then minigts up; or choose another name with --lab NAME"
            )


def pending(wanted: Ready, file: Loaded) -> Pending | None:
    """What leads from the lab that is up to the file; None where no lab of that name is up. Nothing is changed.

    Raises InputError when the lab is up on another provider or with another share, or hosts do not answer.
    """
    there = Lab(wanted.lab.rundir)
    record = there.read_record_if_any()
    states = {} if record is None else lifecycle.states_of_running(there, record)
    if record is None or not states:
        return None
    lifecycle.require_provider(there, record, wanted.lab)
    lifecycle.require_share(there, record, wanted.share)
    before = (there.plan_with(record.becoming) if record.becoming else None) or there.plan
    made = difference(before, renumber_plan(file.plan, before, file.subnets, file.addresses, file.ports))
    made = replace(
        made, overlay=_other_overlay(there, wanted), refused=(*made.refused, *_hindrances(there, record, made))
    )
    altered = not made.after.makes_same_lab(file.plan)
    found = Pending(there, made, altered, bool(record.becoming), tuple(_ends(record, made)))
    if not found.is_empty and not record.becoming:
        _require_answers(states)
    return found


def apply(found: Pending, progress: Progress) -> tuple[Lab, edit.Started]:
    """Apply what is pending; return the lab as it is then, and the machines that were started. The caller joins the
    overlay, and measures. Raises InputError before anything is changed, EnvironmentLacks, HostFailed."""
    found.require()
    lab, made = found.lab, found.difference
    if found.interrupted:
        lab = overlays.finish(lab, progress)
    settings = plan_with_settings(made)
    if settings != lab.plan:
        lab = edit.declare(lab, settings, progress, altered=found.altered or made.comes_or_goes)
    if not made.comes_or_goes:
        return lab, frozenset()
    return overlays.alter(lab, made.after, progress, altered=found.altered)


def alter(lab: Lab, after: Plan, progress: Progress) -> tuple[Lab, edit.Started]:
    """Give a lab that is up plan `after`, which was made of its own (`topology.edit`), as `up` of a file does; return
    what `apply` does. Raises InputError or EnvironmentLacks before anything is changed, HostFailed."""
    record = lab.read_record()
    _require_alterable(lab, record, after)
    _require_answers(lifecycle.states_of_running(lab, record))
    return apply(Pending(lab, difference(lab.plan, after), altered=True, interrupted=False), progress)


def _other_overlay(there: Lab, wanted: Ready) -> tuple[str, str] | None:
    """The overlay that is joined, and the one that will be; None where they are the same."""
    try:
        joined = overlays.joined_overlay(there)
    except MinigtsError:  # of an alteration that was interrupted
        return None
    had = "none" if joined is None else joined.name
    return None if wanted.overlay in (None, had) else (had, str(wanted.overlay))


def _ends(record: Record, made: Difference) -> Iterator[str]:
    for name in made.set_links:
        if (change := record.changed.get(name)) is not None:
            yield f"~ link {name} is set by the file again: no longer {change.in_words}"


def _hindrances(there: Lab, record: Record, made: Difference) -> Iterator[str]:
    """Why hosts and links cannot come and go in this lab now."""
    if not made.comes_or_goes or record.becoming:
        return
    try:
        _require_alterable(there, record, made.after)
    except (InputError, EnvironmentLacks) as error:
        yield str(error)


def _require_alterable(there: Lab, record: Record, after: Plan) -> None:
    overlays.require_alterable(there, record)
    if (joined := overlays.joined_overlay(there)) is not None:
        overlays.require_fit(after, joined.name)
    if isinstance(there.provider, Edits):
        there.provider.require_room_for(after)


def _require_answers(states: dict[str, str]) -> None:
    if dead := [name for name, state in states.items() if state != "answers"]:
        raise InputError(f"{dead[0]} does not answer, so nothing was changed: minigts restart {dead[0]}")


def request_for_lab(wanted: Ready, lab: Lab) -> Ready:
    """The request for the lab as it is up, in its own numbers."""
    return replace(wanted, lab=labs.Lab.known(lab.rundir, lab.plan, wanted.lab.provider))
