"""The verbs of a policy. What a verb needs is imported inside it, so that `--help` is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import screen
from minigts.cli.app import app
from minigts.cli.labs import LABS, LabName

policy_app = typer.Typer(no_args_is_help=True, help="Which containers may reach which.")
app.add_typer(policy_app, name="policy", rich_help_panel=LABS)

PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="A policy file; docs/policy.md shows every key.")]


@policy_app.command("apply")
def policy_apply(file: PolicyFile, lab: LabName = None) -> None:
    """Put a policy in force between a lab's containers, in place of the one that is.

    Example:  minigts policy apply web-only.yaml
    """
    from minigts import lab as labs
    from minigts.overlays import policy

    opened = labs.open_lab(lab)
    wanted = policy.load(file, [host.name for host in opened.plan.hosts])
    policy.apply(opened, wanted)
    screen.note(f"policy {wanted.name} is in force on lab {opened.name}")


@policy_app.command("remove")
def policy_remove(lab: LabName = None) -> None:
    """Take the policy that is in force off a lab. Leaving the overlay does so, too.

    Example:  minigts policy remove
    """
    from minigts import lab as labs
    from minigts.overlays import policy

    opened = labs.open_lab(lab)
    policy.remove(opened)
    screen.note(f"no policy is in force on lab {opened.name}")
