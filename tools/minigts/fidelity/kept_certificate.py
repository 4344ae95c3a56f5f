"""The certificate in a lab's directory, and whether it still holds."""

from __future__ import annotations

from datetime import datetime

from minigts import lab as labs
from minigts import paths
from minigts.fidelity.certificate import (
    Certificate,
)
from minigts.lab import Lab, Record, events
from minigts.language import documents
from minigts.topology.plan.plan import Plan

FILE = paths.CERTIFICATE

LIMIT_BYTES = 16 << 20

OF_A_CERTIFICATE = documents.Bounds(elements=500_000, bytes=LIMIT_BYTES)


def keep(lab: Lab, certificate: Certificate) -> None:
    """Write the certificate to the lab's directory."""
    lab.put(FILE, certificate.model_dump_json(indent=1) + "\n")


def valid_certificate(lab: Lab) -> Certificate | None:
    """The lab's certificate of all links; None when its links have been changed since it was measured, and where only
    a sample was measured."""
    certificate = last(lab)
    whole = certificate is not None and not certificate.sample
    return certificate if certificate is not None and whole and holds_still(certificate, lab) else None


def last(lab: Lab) -> Certificate | None:
    """The certificate that was measured last, even if links have been changed since; None where none can be read."""
    try:
        return documents.model(paths.read_whole(lab.rundir / FILE, LIMIT_BYTES), Certificate, OF_A_CERTIFICATE)
    except (OSError, ValueError):
        return None


def holds_still(certificate: Certificate, lab: Lab) -> bool:
    """Whether links are set as they were when the certificate was measured, and no host has been restarted since."""
    if _started_since(lab, certificate.measured_at):
        return False
    record = lab.read_record()
    now = (record.emulator_overhead_ms, unmeasured_links(lab.plan, record), change_words(lab.plan, record))
    return (certificate.emulator_overhead_ms, certificate.cut, certificate.changed) == now


def _started_since(lab: Lab, moment: datetime) -> bool:
    """Whether a host or switch was started after `moment`."""
    started = [each for each in events.read(lab.rundir) if each.get("event") in ("started", "restarted")]
    return any(str(each.get("time")) > moment.isoformat(timespec="milliseconds") for each in started)


def change_words(plan: Plan, record: Record) -> tuple[str, ...]:
    return tuple(f"{name} ({change.in_words})" for name, change in labs.changed_links(plan, record).items())


def unmeasured_links(plan: Plan, record: Record) -> tuple[str, ...]:
    dead = labs.dead_links(plan, record) | labs.other_ways(plan, record).keys()
    return tuple(link.name for link in plan.links if link.name in dead)
