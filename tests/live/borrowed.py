"""A lab of the user's that tests use because they were asked to, and give back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from minigts import lab as labs
from minigts import overlays
from minigts.fidelity import measure
from minigts.lab import Lab


def quiet(_text: str) -> None:
    """Progress that nobody reads."""


@contextmanager
def borrowed(name: str) -> Iterator[Lab]:
    """The lab of that name. Afterwards its links, its calibration, its certificate and its overlay are what they were;
    a link that was cut is cut.
    """
    lab = labs.open_lab(name)
    record, certificate, overlay = lab.record, measure.last(lab), overlays.joined(lab)
    try:
        yield lab
    finally:
        lab.write(record)
        labs.set_links(lab, record.settings)
        if certificate is None:
            (lab.rundir / measure.FILE).unlink(missing_ok=True)
        else:
            measure.keep(lab, certificate)
        if overlay is None:
            overlays.leave(lab, quiet)
        else:
            overlays.join(lab, overlay.name, quiet)
