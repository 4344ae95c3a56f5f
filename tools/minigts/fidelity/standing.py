"""The certificate that a lab stands on when `up` has returned it: its own, if that is of the lab as it is now, or a new
one; and which of the two, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from minigts.fidelity import measure
from minigts.fidelity.certificate import Certificate, Row
from minigts.fidelity.measure import Say
from minigts.lab import Lab


class Standing(NamedTuple):
    certificate: Certificate
    said: str
    """When it was measured and of what, where that was before; empty for the first one of a lab."""


def standing(lab: Lab, say: Say) -> Standing:
    """An old certificate is taken when links are set and hosts have been started as they were then, and when what every
    host shows now is as it should be, as it was then. Else the lab is measured anew. Raises what `certify` raises.
    """
    old = measure.last(lab)
    if old is None:
        return Standing(measure.certify(lab, say, bringing_up=True), "")
    made = f"the certificate of {_moment(old)}"
    if not measure.holds_still(old, lab):
        why = "links have been set otherwise, or hosts started again, since"
        return Standing(measure.certify(lab, say), f"measured anew: {why} {made}")
    now = {row.subject: row for row in measure.settings(lab, say)}
    then = {row.subject: row for row in old.rows if row.quantity == "settings"}
    changed = [name for name, row in now.items() if (row.ok, row.note) != _of(then.get(name)) and not row.ok]
    mended = [name for name, row in then.items() if not row.ok and name in now and now[name].ok]
    if changed or mended:
        whys = [f"{name}: {now[name].note}" for name in changed] + [f"{name} is as it should be" for name in mended]
        why = "; ".join(whys)
        return Standing(measure.certify(lab, say), f"measured anew, since the lab has changed since {made} ({why})")
    return Standing(old, f"this is {made}, not measured now; links and hosts show what they showed then")


def _of(row: Row | None) -> tuple[bool | None, str] | None:
    return None if row is None else (row.ok, row.note)


def _moment(certificate: Certificate) -> str:
    """`2026-11-26 07:12:03, 5 minutes ago`."""
    at = certificate.measured_at
    if at is None:
        return "a time unknown"
    age = max(timedelta(0), datetime.now(UTC) - at)
    for unit, seconds in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if (count := int(age.total_seconds() // seconds)) or unit == "second":
            break
    return f"{at.astimezone().strftime('%Y-%m-%d %H:%M:%S')}, {count} {unit}{'' if count == 1 else 's'} ago"
