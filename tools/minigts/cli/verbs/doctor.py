"""`minigts doctor`: what this machine can run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from minigts.cli import console
from minigts.cli.options import AsJson
from minigts.cli.verbs import PROJECT, Verb
from minigts.cli.views import labs as shown_labs

if TYPE_CHECKING:
    from minigts.providers.doctor import Diagnosis

verb = Verb(PROJECT, 440)


@verb.command()
def doctor(as_json: AsJson = False) -> None:
    """Show what this machine can run, what is missing and what is slow. Exit 3 if the default provider cannot run.

    Example:  minigts doctor
    """
    from minigts.providers import doctor as providers_doctor
    from minigts.providers import registry

    diagnoses = providers_doctor.examine(registry.names())
    if as_json:
        console.print_json([_facts(each) for each in diagnoses])
    else:
        shown_labs.show_diagnoses(diagnoses)
    raise typer.Exit(0 if providers_doctor.default_can_run(diagnoses) else 3)


def _facts(diagnosis: Diagnosis) -> dict[str, object]:
    """The facts for --json. `built` is always true; it stays for programs that read it while some providers were not
    built yet."""
    about = {"provider": diagnosis.provider, "about": diagnosis.about, "built": True}
    return {**about, "findings": [asdict(each) for each in diagnosis.findings], "verdict": diagnosis.verdict}
