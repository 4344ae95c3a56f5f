"""Proves incidents one by one: each is absent, present, mended by the record of how it was made, and not solved by
somebody who does nothing.

Incidents of one board follow each other in one lab, since each ends with a lab in which nobody complains: that is
measured before the first and after each, and is the proof that the next one is absent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from pydantic import BaseModel

from minigts.arena import scores, stage, tournament
from minigts.arena.families import FAMILIES, Incident
from minigts.arena.page import cells, heading
from minigts.arena.scores import ArenaAnswer, NamedFault
from minigts.errors import MinigtsError
from minigts.lab import Lab
from minigts.lessons import breaks
from minigts.machine.progress import Progress


class IncidentProof(BaseModel):
    """What was seen of one incident. `problem` is empty where all is as it should be."""

    incident: str
    board: str
    kinds: tuple[str, ...]
    oddities: tuple[str, ...]
    whats: tuple[str, ...] = ()
    """What users complain of."""
    complaints: int = 0
    ticket: str = ""
    nothing_points: float = 0.0
    nothing_solved: bool = False
    reference_points: float = 0.0
    reference_solved: bool = False
    real_s: float = 0.0
    problem: str = ""


def prove(lab: Lab, incident: Incident, say: Progress) -> IncidentProof:
    """Make, judge, mend and judge again; the lab is then as it was. The lab has nobody who complains."""
    began = time.monotonic()
    record = stage.make(lab, incident, "reference", say)
    judge = partial(scores.score, incident.faults, before=record.complaints, calls=0, lab_s=0.0)
    nothing = judge(ArenaAnswer(), lasting=incident.faults, now=record.complaints)
    stage.mend(lab, record)
    with lab.provider.together():
        lasting = [each for each in incident.faults if breaks.shows(lab, each)]
        now = stage.complaints(lab, incident)
    named = tuple(NamedFault(what=each.kind.name, where=each.hosts[0]) for each in incident.faults)
    reference = judge(ArenaAnswer(faults=named), lasting=lasting, now=now)
    stage.clear(lab, record)
    problems = [
        *([f"{len(now)} complaints when mended: {now[0]}"] if now else []),
        *([f"{lasting[0].kind.name} lasts when mended"] if lasting else []),
        *(["the reference does not solve it"] if not reference.solved else []),
        *(["doing nothing solves it"] if nothing.solved and incident.faults else []),
        *(["doing nothing does not solve it"] if not nothing.solved and not incident.faults else []),
    ]
    return _about(incident).model_copy(
        update={
            "complaints": len(record.complaints),
            "whats": tuple(dict.fromkeys(each.what for each in record.complaints)),
            "ticket": record.ticket,
            "nothing_points": nothing.points,
            "nothing_solved": nothing.solved,
            "reference_points": reference.points,
            "reference_solved": reference.solved,
            "real_s": round(time.monotonic() - began, 1),
            "problem": "; ".join(problems),
        }
    )


def _about(incident: Incident, problem: str = "") -> IncidentProof:
    kinds, oddities = (tuple(each.kind.name for each in some) for some in (incident.faults, incident.oddities))
    return IncidentProof(incident=incident.name, board=incident.board, kinds=kinds, oddities=oddities, problem=problem)


def prove_on(board: str, incidents: Sequence[Incident], say: Progress) -> Iterator[IncidentProof]:
    """All incidents of a board, in one lab; a lab in which one has gone wrong is followed by a new one."""
    with ExitStack() as stack:
        lab: Lab | None = None
        for incident in incidents:
            try:
                if lab is None:
                    lab = stack.enter_context(tournament.lab_of(incident, say))
                    stage.equip(lab, incident)
                    with lab.provider.together():
                        stage.settle(lab, incident, mended=True)
                        if before := stage.complaints(lab, incident):
                            raise MinigtsError(f"a new lab of board {board} has complaints: {before[0]}")
                proof = prove(lab, incident, say)
            except (MinigtsError, ExceptionGroup) as error:
                proof = _about(incident, " ".join(str(error).split())[:500])
            yield proof
            if proof.problem:
                stack.close()
                lab = None


def table(proofs: Sequence[IncidentProof]) -> Iterator[str]:
    """A row for each family, and for all."""
    yield from heading("family", "incidents", "boards", "kinds", "proven", "reference solves", "doing nothing solves")
    for family in (*FAMILIES, "all"):
        found = [each for each in proofs if family in ("all", each.incident.partition("/")[0])]
        if found:
            yield cells(
                family,
                len(found),
                len({each.board for each in found}),
                len({kind for each in found for kind in each.kinds}),
                sum(not each.problem for each in found),
                sum(each.reference_solved for each in found),
                sum(each.nothing_solved for each in found),
            )
