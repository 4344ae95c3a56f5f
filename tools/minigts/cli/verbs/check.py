"""`minigts check`: a lab, measured against its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.options import AsJson, LabName
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import findings as shown_findings

if TYPE_CHECKING:
    from minigts.lab import Lab

verb = Verb(LABS, 100)


@verb.command()
def check(
    lab: LabName = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the certificate, without `expect:`.")] = False,
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Prove the overlay, too: from every host to the next, by a capture.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a lab against its plan: settings, RTT, loss and rate of links and paths. Exit 1 outside the tolerance.

    Changes nothing. A link that `minigts link` has cut is named, and neither it nor a path over it is measured. With
    --overlay it proves, as a join does, that every host's packets reach the next and cross the links as they should.

    Example:  minigts check

    Example:  minigts check --quick --overlay
    """
    from minigts import lab as labs
    from minigts.fidelity.expectations import check as check_all
    from minigts.fidelity.measure import certify

    opened = labs.open_lab(lab)
    with console.progress() as say:
        certificate = certify(opened, say) if quick else check_all(opened, say)
    if as_json:
        typer.echo(certificate.model_dump_json(indent=2))
    else:
        shown_findings.show_certificate_unless_hidden(certificate, opened)
    if overlay:
        _prove_overlay(opened)
    raise typer.Exit(0 if certificate.ok else 1)


def _prove_overlay(lab: Lab) -> None:
    """Raises CommandFailed, or a group of such, where something does not arrive, or not as it should."""
    from minigts import overlays

    with console.progress() as say:
        said = overlays.verify(lab, say)
    seen = sorted({words.get("ENCAPSULATION", "") for words in said.values()})
    console.note(f"the overlay carries what it should from {len(said)} hosts to the next: {', '.join(seen)}")
