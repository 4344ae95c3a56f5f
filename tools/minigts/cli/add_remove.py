"""What the verbs `add` and `remove` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from minigts.cli import console

if TYPE_CHECKING:
    from minigts.topology.plan.plan import Plan
    from minigts.topology.read.model import Defaults


def alter(lab: str | None, change: Callable[[Plan, Defaults], Plan]) -> frozenset[str]:
    """Change the lab to the plan that `change` makes of its own and the defaults of its file. Returns the machines that
    were started."""
    from minigts import lab as labs
    from minigts.lab.edit import defaults_of
    from minigts.session import apply

    opened = labs.open_lab(lab)
    after = change(opened.plan, defaults_of(opened))
    with console.progress() as say:
        _, started = apply.alter(opened, after, say)
    return started


def again(started: frozenset[str]) -> str:
    names = ", ".join(sorted(started))
    return f"; started again: {names}" if names else ""
