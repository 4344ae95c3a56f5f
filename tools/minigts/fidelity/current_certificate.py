"""The certificate of a lab that `up` has returned: the old one if it still holds, or a new one; with a sentence that
says which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from minigts.fidelity import kept_certificate, measure
from minigts.fidelity.certificate import Certificate, CertificateRow
from minigts.fidelity.sample import Extent
from minigts.lab import Lab
from minigts.machine.progress import Progress


class CurrentCertificate(NamedTuple):
    certificate: Certificate
    said: str
    """Whether the certificate is old or was measured again, and why; empty for a lab's first certificate."""


def current_certificate(lab: Lab, say: Progress, extent: Extent = "full") -> CurrentCertificate:
    """The lab's certificate. An old one holds if no link has been changed and no host restarted since, and if every
    host's settings still show what they showed then; otherwise the lab is measured again. Where all links are asked
    for, no quick certificate holds. Raises what `certify` raises.
    """
    old = kept_certificate.last(lab)
    anew = partial(measure.certify, lab, say, extent=extent)
    if old is None:
        return CurrentCertificate(anew(bringing_up=True), "")
    made = f"the certificate of {_moment(old)}"
    if old.sample and extent == "full":
        return CurrentCertificate(anew(), f"measured anew: {made} was a quick one, of {len(old.sample)} links")
    if not kept_certificate.holds_still(old, lab):
        why = "links have been changed, or hosts restarted, since"
        return CurrentCertificate(anew(), f"measured anew: {why} {made}")
    now = {row.subject: row for row in measure.settings(lab, say)}
    then = {row.subject: row for row in old.rows if row.quantity == "settings"}
    changed = [name for name, row in now.items() if (row.ok, row.note) != _of(then.get(name)) and not row.ok]
    mended = [name for name, row in then.items() if not row.ok and name in now and now[name].ok]
    if changed or mended:
        whys = [f"{name}: {now[name].note}" for name in changed] + [f"{name} is as it should be" for name in mended]
        why = "; ".join(whys)
        return CurrentCertificate(anew(), f"measured anew: the lab has changed since {made} ({why})")
    return CurrentCertificate(old, f"this is {made}, not measured now; links and hosts show what they showed then")


def _of(row: CertificateRow | None) -> tuple[bool | None, str] | None:
    return None if row is None else (row.ok, row.note)


def _moment(certificate: Certificate) -> str:
    """`2026-11-26 07:12:03, 5 minutes ago`."""
    at = certificate.measured_at
    age = max(timedelta(0), datetime.now(UTC) - at)
    for unit, seconds in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if (count := int(age.total_seconds() // seconds)) or unit == "second":
            break
    return f"{at.astimezone().strftime('%Y-%m-%d %H:%M:%S')}, {count} {unit}{'' if count == 1 else 's'} ago"
