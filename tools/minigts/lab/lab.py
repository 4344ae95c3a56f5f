"""A lab: what is known of it without asking it, from its run directory, and its provider, who can be asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from minigts import paths
from minigts.errors import HostFailed, MinigtsError
from minigts.lab import events
from minigts.lab.record import NEXT_PLAN, PLAN, RECORD, Record
from minigts.language import documents
from minigts.providers import registry
from minigts.providers.base import HasCourse, Provider
from minigts.providers.course import RecordedCourse
from minigts.topology.plan.elements import Host, Machine, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.time import Time

T = TypeVar("T")
M = TypeVar("M", bound=Machine)
Content = TypeVar("Content", bound=BaseModel)
LIMIT_BYTES, PLAN_LIMIT_BYTES = 4 << 20, 128 << 20
"""The largest record and the largest plan that are read. A chain of a thousand hosts has 2 MB, and a schedule may be
long. A plan is parsed only when its digest is the recorded one."""
OF_A_PLAN = documents.Bounds(elements=3_000_000, bytes=PLAN_LIMIT_BYTES)


@dataclass(frozen=True)
class Lab:
    """A lab, up or not, identified by its run directory.

    Its plan, time and provider stay the same as long as it is up: they are read on first use and remembered. Everything
    else may change: each command reads it once with `read_record` and hands the record on.
    """

    rundir: Path

    @classmethod
    def known(cls, rundir: Path, plan: Plan, provider: Provider) -> Lab:
        """A lab whose plan and provider the caller knows, so that they need not be read."""
        lab = cls(rundir)
        vars(lab).update(plan=plan, time=plan.time, provider=provider)
        return lab

    @property
    def name(self) -> str:
        return self.rundir.name

    @cached_property
    def plan(self) -> Plan:
        """The plan of the lab. Raises MinigtsError when plan.json is not the one that the lab was made of."""
        try:
            return self.read_plan(self._first)
        except MinigtsError:  # hosts or links may have been added or removed since the record was first read
            return self.read_plan(self.read_record())

    def read_plan(self, record: Record) -> Plan:
        """The plan that the lab with this record was made of. Raises MinigtsError when plan.json is another."""
        digest, content = record.plan_sha256, self._content(PLAN)
        if content is None:
            raise self.damage_error(PLAN, "is missing")
        if digest and hashlib.sha256(content).hexdigest() != digest:
            if (following := self.plan_with(digest)) is not None:  # the command that took it ended just then
                return following
            raise self.damage_error(PLAN, "is not the one that the lab was made of")
        return self._parsed(PLAN, content, Plan)

    def plan_with(self, digest: str) -> Plan | None:
        """The plan with that digest, of the two that a lab has while it is altered; None where neither has it."""
        for name in (NEXT_PLAN, PLAN):
            content = self._content(name)
            if content is not None and hashlib.sha256(content).hexdigest() == digest:
                return self._parsed(name, content, Plan)
        return None

    @property
    def reopened(self) -> Lab:
        """The same lab without remembered values: its plan is read again, since hosts or links may have changed."""
        return Lab(self.rundir)

    @cached_property
    def time(self) -> Time:
        """Whether the lab runs in real or virtual time. It is read from the record, which is smaller than the plan."""
        return self._first.time

    @cached_property
    def _first(self) -> Record:
        """The record as it was first read, for values that stay the same as long as the lab is up."""
        return self.read_record()

    def read_record(self) -> Record:
        """lab.json as it stands on disk now. Raises MinigtsError when the lab has no readable record."""
        record = self.read_record_if_any()
        if record is None:
            if not self.rundir.is_dir():
                raise MinigtsError(f"lab {self.name} has been taken down")
            raise MinigtsError(f"lab {self.name} was never complete: minigts down {self.name}")
        return record

    def read_record_if_any(self) -> Record | None:
        """As `read_record`; None where there is no lab, or no record yet. Raises MinigtsError for a damaged record."""
        record = self.read(RECORD, Record)
        if record is not None:
            vars(self).setdefault("_first", record)
        return record

    def read_state(self) -> Literal["starting", "up", "kept", ""]:
        """The state in the lab's record; empty where no record can be read."""
        try:
            return self.read_record().state
        except MinigtsError:
            return ""

    def write(self, record: Record, before: Record | None = None) -> None:
        """Write lab.json, and add the changes since `before` to the lab's events. `before` is the record on disk; None:
        it is read."""
        if before is None:
            with suppress(MinigtsError):
                before = self.read_record_if_any()
        self.put(RECORD, record.model_dump_json(indent=2) + "\n")
        self.note(*record.since(before))

    def note(self, *happened: events.Event) -> None:
        """Add to the lab's events."""
        if happened:
            events.note(self.rundir, happened, self._own_time_s())

    def _own_time_s(self) -> float | None:
        """The virtual clock in seconds; None in real time, or when the clock does not run. Reading it does not advance
        it."""
        try:
            return self.provider.now_s() if self.time == "virtual" else None
        except MinigtsError:
            return None

    def write_plan(self, plan: Plan, name: str = PLAN) -> str:
        """Write plan.json, or the file `name` in its form; return its SHA-256, for the record."""
        content = plan.model_dump_json(indent=1) + "\n"
        self.put(name, content)
        return hashlib.sha256(content.encode()).hexdigest()

    def settle_plan(self, record: Record) -> None:
        """Complete `take_next_plan` where it was interrupted. The caller holds the lab's lock."""
        content = self._content(PLAN)
        if content is not None and hashlib.sha256(content).hexdigest() == record.plan_sha256:
            return
        if record.plan_sha256 and self.plan_with(record.plan_sha256) is not None:
            self.take_next_plan()

    def take_next_plan(self) -> None:
        """Put the plan that was written as NEXT_PLAN in place of plan.json. The record names it already, so that the
        lab has a plan whenever this is interrupted."""
        (self.rundir / NEXT_PLAN).replace(self.rundir / PLAN)

    def read(self, name: str, model: type[Content]) -> Content | None:
        """The JSON file `name` in the run directory; None when there is none. Raises MinigtsError if it is damaged."""
        content = self._content(name)
        return None if content is None else self._parsed(name, content, model)

    def put(self, name: str, content: str) -> None:
        """Write the file `name` in the run directory. Raises MinigtsError when the lab has been taken down."""
        try:
            paths.write_whole(self.rundir / name, content)
        except FileNotFoundError as error:
            raise MinigtsError(f"lab {self.name} has been taken down") from error

    def damage_error(self, name: str, reason: str) -> MinigtsError:
        """The error for a file that cannot be used; it names the command that takes the lab down."""
        return MinigtsError(f"lab {self.name}: its {name} {reason}; take it down with: minigts down {self.name}")

    def _content(self, name: str) -> bytes | None:
        try:
            return paths.read_whole(self.rundir / name, PLAN_LIMIT_BYTES if name == PLAN else LIMIT_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self.damage_error(name, f"cannot be read ({error.strerror or error})") from error

    def _parsed(self, name: str, content: bytes, model: type[Content]) -> Content:
        try:
            return documents.model(content, model, OF_A_PLAN if name == PLAN else documents.USUAL)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))[:60]
            # By `ascii`, since what a damaged file holds must not reach a terminal.
            raise self.damage_error(name, f"is damaged ({ascii(where)[1:-1] or 'file'}: {first['type']})") from error
        except documents.Unreadable as error:
            raise self.damage_error(name, f"is damaged: it {error}") from error

    @cached_property
    def provider(self) -> Provider:
        named = self._first.provider
        if named not in registry.names():
            raise self.damage_error(RECORD, f"names a provider that there is not, {named[:60]!a}")
        return registry.make(named, self.rundir, self.time)

    def course(self) -> RecordedCourse | None:
        """The course of the lab up to now; None in real time, and where the clock does not answer, as it has ended."""
        if not isinstance(self.provider, HasCourse):
            return None
        try:
            return self.provider.course()
        except HostFailed:
            return None

    def machines_on(self, record: Record) -> tuple[Host | Switch, ...]:
        """The hosts and switches that are neither off nor paused, by that record."""
        return tuple(machine for machine in self.plan.machines if machine.name not in record.silent)

    def state_of_hosts(self, record: Record | None = None) -> dict[str, str]:
        """For each host and switch `answers`, `off`, `paused`, or why it does not answer; `record` says which are on
        (default: the record on disk)."""
        by = record or self.read_record()
        silent: dict[str, str] = {}

        def ask(machine: Host | Switch) -> str:
            """Of hosts that share a kernel none is asked once one has not answered: each would take as long."""
            kernel = self.provider.kernel_of(machine.name)
            if kernel in silent:
                return f"{machine.name} shares a kernel, and {silent[kernel]}"
            try:
                self.provider.run(machine.name, ["true"], timeout_s=5)
            except MinigtsError as error:
                return silent.setdefault(kernel, str(error))
            return "answers"

        answers = self.work_through(self.machines_on(by), ask)
        paused = dict.fromkeys(by.paused, "paused")
        return {each.name: answers.get(each.name, paused.get(each.name, "off")) for each in self.plan.machines}

    def work_on_hosts(self, work: Callable[[Host], T]) -> dict[str, T]:
        """`on_each` of the hosts that are on, by the record on disk."""
        return self.work_on([each for each in self.machines_on(self.read_record()) if isinstance(each, Host)], work)

    def work_on_machines(self, work: Callable[[Host | Switch], T]) -> dict[str, T]:
        """`on_each` of the hosts and switches that are on, by the record on disk."""
        return self.work_on(self.machines_on(self.read_record()), work)

    def work_on(self, machines: Sequence[M], work: Callable[[M], T]) -> dict[str, T]:
        """Do `work` for these machines in parallel; return the results by name. The first error is raised once all have
        ended."""
        with self.provider.together() as pool:
            results = pool.all([partial(work, machine) for machine in machines])
        return dict(zip((machine.name for machine in machines), results, strict=True))

    def work_through(self, machines: Sequence[M], work: Callable[[M], T]) -> dict[str, T]:
        """As `work_on`, of work that waits for nothing but the machine's own processor: those that share a kernel have
        it done one after the other. So a thousand light hosts need no thousand threads."""
        sharing: dict[str, list[M]] = {}
        for machine in machines:
            sharing.setdefault(self.provider.kernel_of(machine.name), []).append(machine)

        with self.provider.together() as pool:

            def work_in_turn(kernel: str) -> dict[str, T]:
                found: dict[str, T] = {}
                errors: list[Exception] = []
                for machine in sharing[kernel]:
                    if pool.is_broken_off:
                        break
                    try:
                        found[machine.name] = work(machine)
                    except Exception as error:
                        errors.append(error)
                if errors:
                    raise errors[0]
                return found

            done = pool.all([partial(work_in_turn, kernel) for kernel in sharing])
        results = {name: result for each in done for name, result in each.items()}
        return {machine.name: results[machine.name] for machine in machines}
