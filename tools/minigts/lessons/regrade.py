"""Repeats a student's work: in a new lab, links are set as the student has set them, and the lesson's steps read the
files that were handed in. Everything happens in guests, and no text of a submission is run as a command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from minigts import lab as labs
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.lab import Lab
from minigts.lessons import evidence, model, verdicts
from minigts.lessons.evidence_file import EvidenceFile
from minigts.lessons.folder import StudentWork
from minigts.lessons.verdicts import Evidence, LessonVerdict
from minigts.machine.progress import Progress
from minigts.overlays import policy
from minigts.session.bring_up import Request, bring_up, ready
from minigts.topology.plan.link_names import link_named

STEP_S = 60.0


def regrade(
    work: StudentWork, measured: EvidenceFile, files: Mapping[str, bytes], say: Progress
) -> tuple[LessonVerdict, ...]:
    """Bring up the topology that was handed out, repeat the work, measure, judge, and take the lab down. A failure
    becomes a verdict; raises EnvironmentLacks when this machine cannot run the lab."""
    plan = work.numbered.plan(work.seed)
    name = f"again-{os.getpid()}"
    try:
        lab = bring_up(ready(Request(plan, name=name)), say, certified=False).lab
        try:
            _set(lab, measured)
            for step in work.numbered.lesson.again:
                _take(lab, step, files)
            shown = evidence.measure(lab, work)
        finally:
            labs.down(lab)
    except EnvironmentLacks:
        raise
    except MinigtsError as error:
        shown = Evidence({}, (" ".join(str(error).split())[:300],))
    return verdicts.judge(work, shown)


def _set(lab: Lab, measured: EvidenceFile) -> None:
    for name, change in measured.changed.items():
        first, second = link_named(lab.plan, name).ends
        labs.replace_settings(lab, first, second, change)
    for name in sorted(measured.cut):
        first, second = link_named(lab.plan, name).ends
        labs.set_links_up(lab, first, second, up=False)


def _take(lab: Lab, step: model.Again, files: Mapping[str, bytes]) -> None:
    content = b"" if step.file is None else files.get(step.file, b"")
    if step.policy is not None:
        hosts = [host.name for host in lab.plan.hosts]
        policy.apply(lab, policy.parse(_text(step.policy, content), step.policy, hosts))
    elif step.on is not None and step.run is not None:
        lab.provider.run(step.on, ("sh", "-c", step.run), timeout_s=STEP_S, stdin=content)


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{name}: not UTF-8 text") from None
