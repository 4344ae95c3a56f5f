"""`minigts policy`: which containers may reach which."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import LabName
from minigts.cli.verbs import LABS, Verb

verb = Verb(LABS, 520, help="Which containers may reach which.")

PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="A policy file; docs/policy.md shows every key.")]


@verb.command("apply")
def policy_apply(file: PolicyFile, lab: LabName = None) -> None:
    """Enforce a policy between a lab's containers, in place of the current one.

    Example:  minigts policy apply web-only.yaml
    """
    from minigts import lab as labs
    from minigts.overlays import policy

    opened = labs.open_lab(lab)
    wanted = policy.load(file, [host.name for host in opened.plan.hosts])
    policy.apply(opened, wanted)
    console.note(f"policy {wanted.name} is in force on lab {opened.name}")


@verb.command("remove")
def policy_remove(lab: LabName = None) -> None:
    """Remove the policy from a lab. Leaving the overlay removes it, too.

    Example:  minigts policy remove
    """
    from minigts import lab as labs
    from minigts.overlays import policy

    opened = labs.open_lab(lab)
    policy.remove(opened)
    console.note(f"no policy is in force on lab {opened.name}")
