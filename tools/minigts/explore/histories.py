"""Judges histories: what clients asked of a service, and what it answered, with times of one clock.

An operation is a mapping, such as a line of JSON that a client has printed. Of a register it has `client`, `key`, `op`
(`read`, `write`, or `cas`, which writes `value` if the register holds `from`, and `held` says whether it did), `value`,
`sent` and `answered` in nanoseconds, and `answer`: `ok`, `fail` if it was not done, or `info` if nobody knows.

Linearizability is judged by Porcupine (github.com/anishathalye/porcupine), by a program that provision/checker builds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from minigts import paths
from minigts.artifacts.build import Product
from minigts.errors import MinigtsError
from minigts.lab.events import Event
from minigts.language import documents
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.topology.plan import reseed
from minigts.topology.plan.plan import Plan

Operation: TypeAlias = Mapping[str, object]
LIMIT_S = 60.0
"""How long the search for an order of the operations may take; it is a search that may take for ever."""
SPARE_S = 30.0
PROGRAM = "checker"
NS_PER_S = 1e9
RATE = "clock rate"
"""The event that a host's clocks have another rate from then on: `percent` faster than the lab's."""


@dataclass(frozen=True)
class RegisterVerdict:
    """Whether a history of registers is linearizable: there is an order of its operations, each between its sending and
    its answer, in which each read has what was written last."""

    verdict: str
    """`linearizable`, `not linearizable`, or `unknown`: it could not be told in time."""
    operations: int
    """How many operations count: all but those that were not done, and reads without an answer."""
    keys: tuple[str, ...]
    """The keys whose operations are not linearizable."""

    @property
    def holds(self) -> bool:
        return self.verdict == "linearizable"


@dataclass(frozen=True)
class SetVerdict:
    """What became of the values that were added to a set."""

    acknowledged: int
    lost: tuple[str, ...]
    """Values that were acknowledged and are not there."""
    unexpected: tuple[str, ...]
    """Values that are there, and were refused or never added."""

    @property
    def holds(self) -> bool:
        return not self.lost and not self.unexpected


@dataclass(frozen=True)
class Heard:
    """A line of a client, and when it was printed: nanoseconds of the lab's clock."""

    at_ns: int
    client: str
    told: Mapping[str, object]


@dataclass
class _Start:
    """A start of a host's kernel: when it was, and the rates of its clocks since then, each from a moment on. It is 0
    while the host is paused. Moments are nanoseconds of the lab's clock."""

    at_ns: int
    rate: float = 1.0
    """What it is when the host is not paused."""
    rates: list[tuple[int, float]] = field(default_factory=list)

    def turn(self, at_ns: int, *, paused: bool) -> None:
        self.rates.append((at_ns, 0.0 if paused else self.rate))


class HostClocks:
    """Turns times of hosts' clocks (CLOCK_MONOTONIC) into the lab's, in virtual time. A host's clock begins with its
    kernel, at first with the lab's and the phase that its replicate has drawn, falls behind by each pause, and may run
    fast or slow for a while. `happened` are the lab's events. In real time a host's clock is taken as it is."""

    def __init__(self, plan: Plan, happened: Iterable[Event]) -> None:
        phases_s = reseed.phases_s(plan) if plan.time == "virtual" else {}
        self._starts = {each.name: [_Start(round(phases_s.get(each.name, 0.0) * NS_PER_S))] for each in plan.machines}
        for event in happened:
            host, lab_s = str(event.get("host")), event.get("lab_s")
            if not isinstance(lab_s, float | int) or host not in self._starts:
                continue
            at_ns = round(lab_s * NS_PER_S)
            last, percent = self._starts[host][-1], event.get("percent")
            if event["event"] in ("started", "restarted"):
                self._starts[host].append(_Start(at_ns))
            elif event["event"] in ("paused", "resumed"):
                last.turn(at_ns, paused=event["event"] == "paused")
            elif event["event"] == RATE and isinstance(percent, float | int):
                last.rate = 1 + percent / 100
                last.turn(at_ns, paused=False)

    def starts_ns(self, host: str) -> list[int]:
        """When the host's kernels were started, the first one first."""
        return [start.at_ns for start in self._starts[host]]

    def start_at(self, host: str, at_ns: int) -> int:
        """The number of the start, from 0, of the kernel that ran, or runs last, at that time of the lab's clock."""
        return max(0, sum(start.at_ns <= at_ns for start in self._starts[host]) - 1)

    def lab_ns(self, host: str, own_ns: int, start: int = 0, *, of_log: bool = False) -> int:
        """The lab's time at which the clock of that start of the host showed `own_ns`; `of_log`: the clock of its
        kernel's log, which keeps its own rate."""
        one = self._starts[host][start]
        since_ns, rate = one.at_ns, 1.0
        for next_ns, next_rate in one.rates:
            passed_ns = round(rate * (next_ns - since_ns))
            if own_ns < passed_ns:
                break
            own_ns -= passed_ns
            since_ns, rate = next_ns, bool(next_rate) if of_log else next_rate
        return since_ns + round(own_ns / (rate or 1.0))


def line_of(client: str, line: bytes) -> tuple[int, dict[str, object]]:
    """What a client has printed: the time of its host's clock (`at`), and the rest. Raises MinigtsError."""
    try:
        told = dict(documents.document(line))
        at_ns = told.pop("at")
        if type(at_ns) is not int:
            raise ValueError("its `at` is no whole number")
    except (ValueError, TypeError, KeyError) as error:
        shown = line[:200].decode(errors="replace")
        raise MinigtsError(f"{client} has printed {shown!r}, which is no line of a client: {error}") from error
    return at_ns, told


def operations(lines: Iterable[Heard]) -> list[dict[str, object]]:
    """The operations of clients. A client prints a line of JSON right before it sends a request, such as `{"at": 5000,
    "op": "write", "key": "x", "value": "1"}`, and one when it is answered, `{"at": 7000, "answer": "ok"}`: `at` is its
    time.monotonic_ns(). What the second line has is added to the first. One that is never answered is `info`.
    """
    found: list[dict[str, object]] = []
    unanswered: dict[str, dict[str, object]] = {}
    for line in sorted(lines, key=lambda line: (line.at_ns, line.client)):
        if "answer" in line.told and line.client in unanswered:
            unanswered.pop(line.client).update({**line.told, "answered": line.at_ns})
        else:
            unanswered[line.client] = {"client": line.client, **line.told, "sent": line.at_ns}
            found.append(unanswered[line.client])
    for left in unanswered.values():
        left.update({"answer": "info", "answered": left["sent"]})
    return found


def moment_ns(operation: Operation, name: str) -> int:
    """The moment at which an operation was `sent` or `answered`."""
    moment = operation[name]
    assert isinstance(moment, int)
    return moment


def product() -> Product:
    """The program that judges registers, as it is built."""
    return Product(
        name="checker of histories",
        folder=paths.project_root() / "provision" / "checker",
        store=paths.cache_root() / "checkers",
        duration="some seconds, or minutes where this machine has no Go",
        work_mb=1500,
        step="go: downloading ",
        steps=1,
        parts=("build.sh", "compile.sh", "go.mod", "go.sum", "main.go"),
    )


def judge_registers(
    history: Iterable[Operation], say: Progress, *, figure: Path | None = None, limit_s: float = LIMIT_S
) -> RegisterVerdict:
    """Judge a history of registers, one for each key. If it is not linearizable, `figure` gets Porcupine's picture of
    the first such key, a page of HTML. Raises EnvironmentLacks when the program cannot be built, MinigtsError for
    operations that are none.
    """
    program = product().ensure(say) / PROGRAM
    numbers: dict[object, int] = {}
    lines = []
    for operation in history:
        number = numbers.setdefault(operation.get("client"), len(numbers))
        lines.append(json.dumps({**operation, "client": number}))
    argv = [str(program), f"{limit_s:g}", *([str(figure)] if figure is not None else [])]
    done = shell.run(argv, timeout_s=limit_s + SPARE_S, check=False, stdin="\n".join(lines).encode())
    if done.code:
        raise MinigtsError(f"the history cannot be judged: {done.stderr.strip()}")
    told = documents.document(done.stdout)
    return RegisterVerdict(told["verdict"], told["operations"], tuple(told["keys"]))


def judge_set(history: Iterable[Operation], there: Collection[str]) -> SetVerdict:
    """Judge a history of values that were added to one set, which holds `there` at the end: operations with `value` and
    `answer`."""
    answers = {str(each["value"]): each["answer"] for each in history}
    acknowledged = {value for value, answer in answers.items() if answer == "ok"}
    possible = {value for value, answer in answers.items() if answer != "fail"}
    return SetVerdict(len(acknowledged), tuple(sorted(acknowledged - {*there})), tuple(sorted({*there} - possible)))
