"""Makes an incident in a lab, keeps how it was made, and undoes it by that record: the reference solution."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from minigts.arena import boards, expectations, families, workloads
from minigts.arena.expectations import Complaint
from minigts.arena.families import Incident
from minigts.arena.tickets import ticket
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab
from minigts.lessons import breaks
from minigts.lessons.breaks import INCIDENT, LessonFault
from minigts.machine.progress import Progress
from minigts.overlays import policy

CALLS = "incident-calls.jsonl"
"""The file of a run directory with the calls so far."""
LOCK = "incident-calls.lock"
"""Held during a call: one follows the other."""
ANSWERED = "incident-answered.json"
"""Where the record of an incident is once it has its answer."""
CARRIED = "incident-manifest.yaml"
"""What the lab's cluster was given to carry."""
TRANSCRIPT = "incident-transcript.jsonl"
"""The whole transcript of the last incident that was answered."""


class IncidentRecord(BaseModel):
    """incident.json: which incident a lab has, what undoes each fault and oddity, and what users complain of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str
    seed: int
    agent: str
    undo_faults: tuple[str, ...]
    undo_oddities: tuple[str, ...]
    complaints: tuple[Complaint, ...]
    ticket: str
    began_s: float
    """The lab's time when the ticket came."""

    @property
    def incident(self) -> Incident:
        return families.draw(self.family, self.seed)


def make(lab: Lab, incident: Incident, agent: str, say: Progress) -> IncidentRecord:
    """Make the incident in a lab of its board. Raises MinigtsError for one that has not its effect, InputError for a
    lab that has an incident already."""
    if (lab.rundir / INCIDENT).exists():
        raise InputError(f"lab {lab.name} has an incident already: minigts arena answer --lab {lab.name}")
    equip(lab, incident)
    with lab.provider.together():
        undo_oddities = tuple(_put(lab, each) for each in incident.oddities)
        undo_faults = tuple(_put(lab, each) for each in incident.faults)
        settle(lab, incident)
        for each in (*incident.oddities, *incident.faults):
            if not breaks.shows(lab, each):
                raise MinigtsError(f"{incident.name}: {each.kind.name} on {each.place.host} has no effect")
        say("asking what users would complain of")
        found = complaints(lab, incident)
        if bool(found) != bool(incident.faults):
            raise MinigtsError(f"{incident.name}: there are {len(found)} complaints, and {len(incident.faults)} faults")
        record = IncidentRecord(
            family=incident.family,
            seed=incident.seed,
            agent=agent,
            undo_faults=undo_faults,
            undo_oddities=undo_oddities,
            complaints=found,
            ticket=ticket(incident.plan, found, incident.name) + _board_words(incident),
            began_s=lab.provider.now_s(),
        )
    lab.put(INCIDENT, record.model_dump_json(indent=1) + "\n")
    for name in (CALLS, ANSWERED):
        (lab.rundir / name).unlink(missing_ok=True)
    return record


def equip(lab: Lab, incident: Incident) -> None:
    """Put the policy of the incident's board in force, where it has one that is not yet; let its cluster carry what it
    should."""
    wanted = boards.policy_of(incident.board)
    if wanted is not None and policy.policy_in_force(lab) != wanted:
        policy.apply(lab, wanted)
    manifest, kept = boards.BOARDS[incident.board].manifest, lab.rundir / CARRIED
    if manifest and not kept.exists():
        workloads.equip(lab, manifest)
        settle(lab, incident, mended=True)
        lab.put(CARRIED, manifest)


def complaints(lab: Lab, incident: Incident) -> tuple[Complaint, ...]:
    """All that does not hold now for the users of the incident's board."""
    of_cluster = workloads.cluster_complaints(lab) if boards.BOARDS[incident.board].manifest else ()
    return (*expectations.complaints(lab), *of_cluster)


def _board_words(incident: Incident) -> str:
    board = boards.BOARDS[incident.board]
    if board.manifest:
        about = f"kubectl works on {incident.plan.hosts[0].name}, and users are in the pods of namespace minigts"
        named = "An answer names an object in place of a host where that is what is wrong: service/NAME."
        return f"\n\n{named} The cluster should carry this ({about}):\n\n{board.manifest}"
    if not board.policy:
        return ""
    return f"\n\nThe policy of the containers, of whose rules the first that fits holds:\n\n{board.policy}"


def _put(lab: Lab, fault: LessonFault) -> str:
    if breaks.shows(lab, fault):
        raise MinigtsError(f"{fault.kind.name} on {fault.place.host} is there before it was made")
    return breaks.inflict(lab, fault)


def settle(lab: Lab, incident: Incident, *, mended: bool = False) -> None:
    """Let so much of the lab's time pass that a change is followed everywhere; a cluster in which all should be as it
    was gets the time that this takes."""
    board = boards.BOARDS[incident.board]
    if wait_s := board.settles_s:
        lab.provider.sleep_until(lab.provider.now_s() + wait_s)
    if mended and board.heals_s:
        workloads.heal(lab, board.heals_s)


def mend(lab: Lab, record: IncidentRecord) -> None:
    """Undo the faults by what their makers have printed, the last first; oddities stay."""
    incident = record.incident
    with lab.provider.together():
        for fault, undo in reversed(list(zip(incident.faults, record.undo_faults, strict=True))):
            breaks.repair(lab, fault.place, undo)
        settle(lab, incident, mended=True)


def clear(lab: Lab, record: IncidentRecord) -> None:
    """Undo the oddities, and forget the incident."""
    with lab.provider.together():
        for oddity, undo in reversed(list(zip(record.incident.oddities, record.undo_oddities, strict=True))):
            breaks.repair(lab, oddity.place, undo)
    for name in (INCIDENT, CALLS, ANSWERED):
        (lab.rundir / name).unlink(missing_ok=True)


def read(lab: Lab) -> IncidentRecord | None:
    """The lab's incident that has no answer yet; None: it has none."""
    return lab.read(INCIDENT, IncidentRecord)


def require(lab: Lab) -> IncidentRecord:
    """The same. Raises InputError when it has none."""
    if (record := read(lab)) is None:
        raise InputError(f"lab {lab.name} has no incident that waits for an answer: minigts arena start FAMILY/SEED")
    return record
