"""Makes a lesson's measurements in a lab, by which the student's work is judged."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping

from minigts import overlays
from minigts.errors import CommandTimeout, MinigtsError
from minigts.foreign import one_line, parser_text
from minigts.lab import Lab
from minigts.lessons import breaks
from minigts.lessons.folder import StudentWork
from minigts.lessons.model import Measurement
from minigts.lessons.verdicts import MENDED, Evidence
from minigts.topology.plan.plan import Plan

_LINE = re.compile(r"([a-z][a-z0-9_]{0,39}) (-?[0-9]{1,15}(?:\.[0-9]{1,20})?)")


def measure(lab: Lab, work: StudentWork) -> Evidence:
    """Make all measurements of the lesson in this lab, which stays as it is; failures are in `lacking`."""
    if why := another(lab.plan, work):
        return Evidence({}, (why,))
    if work.numbered.lesson.find:
        return _of_fault(lab, work)
    figures: dict[str, float] = {}
    lacking: list[str] = []
    for each in work.numbered.lesson.measure:
        try:
            figures |= _measured(lab, work, each)
        except MinigtsError as error:
            lacking.append(f"{', '.join(each.gives)}: {str(error).splitlines()[0][:200]}")
    return Evidence(figures, tuple(lacking))


def _of_fault(lab: Lab, work: StudentWork) -> Evidence:
    """Whether the lab was broken as the student's seed says, and is mended by hand."""
    broken, fault = breaks.read(lab), work.numbered.fault(work.seed)
    if broken is None or (broken.what, broken.place.host) != (fault.kind.name, fault.place.host):
        return Evidence({}, (f"it was not broken yet: minigts lesson {work.numbered.number} break",))
    if broken.mended:
        return Evidence({}, ("it was mended by `minigts break --mend`: break it again, and mend it yourself",))
    try:
        return Evidence({MENDED: 0.0 if breaks.shows(lab, fault) else 1.0})
    except MinigtsError as error:
        return Evidence({}, (f"{MENDED}: {str(error).splitlines()[0][:200]}",))


def another(plan: Plan, work: StudentWork) -> str | None:
    """Why this is not the lesson's lab; None when it is."""
    ours = work.numbered.plan(work.seed)
    same = ("hosts", "switches", "links", "routing", "time")
    if all(getattr(plan, name) == getattr(ours, name) for name in same):
        return None
    return (
        f"lab {plan.name} is not of this folder's topology.yaml as it was handed out: run minigts down, then minigts "
        "up topology.yaml; make changes in the lab, by minigts set"
    )


def _measured(lab: Lab, work: StudentWork, measurement: Measurement) -> dict[str, float]:
    ends = _ends(lab)
    prefix: tuple[str, ...] = ()
    if measurement.inside == "container":
        if measurement.on not in ends:
            raise MinigtsError("no overlay is joined on the lab, so there are no containers")
        prefix = ends[measurement.on].network
    variables = (("here", measurement.on), *_variables(lab, work))
    named = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables)
    script = named + work.numbered.lesson.shell + measurement.run
    argv = (*prefix, "sh", "-c", script)
    try:
        result = lab.provider.run(measurement.on, argv, timeout_s=measurement.timeout_s, check=False)
    except CommandTimeout:
        raise MinigtsError(f"the measurement on {measurement.on} has taken over {measurement.timeout_s} s") from None
    read = {
        found[1]: float(found[2]) for found in map(_LINE.fullmatch, parser_text(result.stdout).splitlines()) if found
    }
    figures = {name: read[name] for name in measurement.gives if name in read and math.isfinite(read[name])}
    if len(figures) < len(measurement.gives):
        why = one_line((result.stderr.strip() or result.stdout.strip())[-200:]) or "it printed nothing"
        raise MinigtsError(f"the measurement on {measurement.on} gave no figure: {why}")
    return figures


def _ends(lab: Lab) -> Mapping[str, overlays.Endpoint]:
    joined = overlays.joined_overlay(lab)
    return joined.endpoints() if joined is not None and joined.ends else {}


def _variables(lab: Lab, work: StudentWork) -> Iterator[tuple[str, str]]:
    yield from work.numbered.draw_values(work.seed).items()
    for name, value in {**work.numbered.figures(work.seed), **work.answers}.items():
        yield name, f"{value:.15g}"
    for host in lab.plan.hosts:
        yield host.name.replace("-", "_"), lab.plan.own_address(host.name)
    for name, end in _ends(lab).items():
        yield f"{name.replace('-', '_')}_container", end.address
