"""In a replicate each program begins some milliseconds late, by chance (topology/chance.py). Pure."""

from __future__ import annotations

from dataclasses import replace

from minigts.experiments.matrix import Sample
from minigts.experiments.procedure import WATCH, Call, Procedure
from minigts.topology import chance

_LATE = 'sleep "$0"; exec "$@"'


def begun_late(todo: Procedure, sample: Sample) -> Procedure:
    """The same procedure with a late start of each program that sends; unchanged where there are no replicates."""
    if not sample.replicate:
        return todo
    beside = tuple(
        call if call.name == WATCH else _late(call, sample, f"{number} {call.name}")
        for number, call in enumerate(todo.beside)
    )
    return replace(todo, client=_late(todo.client, sample, "client"), beside=beside)


def _late(call: Call, sample: Sample, what: str) -> Call:
    late_s = chance.late_s(sample.replicate, sample.id, what)
    return replace(call, argv=("sh", "-c", _LATE, f"{late_s:.6f}", *call.argv))
