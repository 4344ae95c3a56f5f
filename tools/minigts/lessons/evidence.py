"""What a lab shows of a lesson: the lesson's own measurements, and the student's work done again from data."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping

from minigts import lab as labs
from minigts import overlays
from minigts.errors import CommandFailed, InputError, MinigtsError
from minigts.lab import Lab
from minigts.lessons.folder import Work
from minigts.lessons.model import Measurement, Step
from minigts.lessons.verdicts import Evidence
from minigts.overlays import policy
from minigts.topology.plan import Plan

SCRIPT_TIMEOUT_S = 30.0
SETTINGS = {"delay": "delay_ms", "rate": "rate_mbit", "queue": "queue_bytes"}
_LINE = re.compile(r"([a-z][a-z0-9_]{0,39}) (-?[0-9]{1,15}(?:\.[0-9]{1,9})?)")


def measure(lab: Lab, work: Work) -> Evidence:
    """All measurements of the lesson in this lab, which stays as it is."""
    if why := _another(lab.plan, work):
        return Evidence({}, (why,))
    figures: dict[str, float] = {}
    lacking: list[str] = []
    for each in work.numbered.lesson.measure:
        try:
            figures |= _measured(lab, work, each)
        except MinigtsError as error:
            lacking.append(f"{', '.join(each.gives)}: {str(error).splitlines()[0][:200]}")
    return Evidence(figures, tuple(lacking))


def _another(plan: Plan, work: Work) -> str | None:
    """Why this is not the lesson's lab; None when it is."""
    ours = work.numbered.plan(work.seed)
    same = ("hosts", "switches", "links", "routing", "time")
    if all(getattr(plan, name) == getattr(ours, name) for name in same):
        return None
    return (
        f"lab {plan.name} is not of this folder's topology.yaml as it was handed out: minigts down, then minigts up "
        "topology.yaml; what is to be changed is changed in the lab, by minigts set"
    )


def _measured(lab: Lab, work: Work, measurement: Measurement) -> dict[str, float]:
    ends = _ends(lab)
    prefix: tuple[str, ...] = ()
    if measurement.inside == "container":
        if measurement.on not in ends:
            raise MinigtsError("no overlay is joined on the lab, so there are no containers")
        prefix = ends[measurement.on].network
    script = "".join(f"{name}={shlex.quote(value)}\n" for name, value in _variables(lab, work)) + measurement.run
    argv = (*prefix, "sh", "-c", script)
    result = lab.provider.run(measurement.on, argv, timeout_s=measurement.timeout_s, check=False)
    read = {found[1]: float(found[2]) for line in result.stdout.splitlines() if (found := _LINE.fullmatch(line))}
    figures = {name: read[name] for name in measurement.gives if name in read and math.isfinite(read[name])}
    if len(figures) < len(measurement.gives):
        why = (result.stderr.strip() or result.stdout.strip() or "nothing was said")[-200:]
        raise MinigtsError(f"the measurement on {measurement.on} has not given it: {' '.join(why.split())}")
    return figures


def _ends(lab: Lab) -> Mapping[str, overlays.Endpoint]:
    joined = overlays.joined(lab)
    return joined.endpoints() if joined is not None and joined.ends else {}


def _variables(lab: Lab, work: Work) -> Iterator[tuple[str, str]]:
    for name, value in {**work.numbered.figures(work.seed), **work.answers}.items():
        yield name, f"{value:.15g}"
    for host in lab.plan.hosts:
        yield host.name.replace("-", "_"), host.address
    for name, end in _ends(lab).items():
        yield f"{name.replace('-', '_')}_container", end.address


def do_again(lab: Lab, work: Work) -> None:
    """What of the student's work is data, in a lab of ours: links set, a policy, a script that runs in a host alone and
    for a bounded time. Raises MinigtsError for what cannot be done."""
    for step in work.numbered.lesson.work:
        _do(lab, work, step)


def _do(lab: Lab, work: Work, step: Step) -> None:
    if step.link is not None and step.answer is not None:
        if step.answer not in work.answers:
            raise InputError(f"{step.answer}: no answer")
        labs.adjust_link(lab, step.link, {SETTINGS[step.what]: work.answers[step.answer]})
    elif step.cut is not None:
        link = next(each for each in lab.plan.links if each.name == step.cut)
        labs.set_link(lab, *link.ends, up=False)
    elif step.policy is not None:
        content = _file(work, step.policy)
        policy.apply(lab, policy.parse(content, step.policy, [host.name for host in lab.plan.hosts]))
    elif step.script is not None and step.on is not None:
        _run_in_host(lab, step.on, _file(work, step.script), step.script)


def _file(work: Work, name: str) -> str:
    if name not in work.files:
        raise InputError(f"{name}: is missing")
    return work.files[name]


def _run_in_host(lab: Lab, host: str, script: str, name: str) -> None:
    bounded = ("timeout", "-k", "1", f"{SCRIPT_TIMEOUT_S:g}", "bash", "-s")
    try:
        lab.provider.run(host, bounded, timeout_s=2 * SCRIPT_TIMEOUT_S, stdin=script.encode())
    except CommandFailed as error:
        last = " ".join(error.stderr.split())[-200:]
        raise MinigtsError(f"{name}: ended with code {error.code} on {host}: {last}") from error
