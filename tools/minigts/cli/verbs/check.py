"""`minigts check`: compare a lab with its plan by measurement."""

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
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure only the certificate, not the topology's `expect:`.")
    ] = False,
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Verify the overlay, too, by a capture from every host to the next.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a lab against its plan: settings, RTT, loss and rate of links and paths. Exit 1 outside the tolerance.

    It changes nothing. A link that `minigts link` has cut is named; neither the link nor paths over it are measured.
    With --overlay it verifies, as joining the overlay does, that packets of every host reach the next one in the
    overlay's encapsulation.

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
    """Verify the overlay and print its encapsulation. Raises CommandFailed, or a group of such, when packets do not
    arrive, or arrive in another way."""
    from minigts import overlays

    with console.progress() as say:
        said = overlays.verify(lab, say)
    seen = sorted({words.get("ENCAPSULATION", "") for words in said.values()})
    console.note(f"the overlay carries packets of {len(said)} hosts to the next as it should: {', '.join(seen)}")
