"""A lab's name, its run directory, the records in it, and its lock.

A run directory is `<state root>/labs/<name>`; it holds plan.json, lab.json and the provider's own files. `checked_name`
alone judges names, and `require_own` alone says which directories may be removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Annotated, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from minigts import paths
from minigts.errors import HostFailed, InputError, MinigtsError
from minigts.lab import events
from minigts.language import documents
from minigts.providers import registry
from minigts.providers.base import Provider, Share
from minigts.topology import link_settings
from minigts.topology.fields import HostName, QueueBytes
from minigts.topology.link_settings import BY_FIELD
from minigts.topology.parts import Host, Machine, Switch
from minigts.topology.plan import Plan
from minigts.topology.setting import Amount
from minigts.topology.time import Time

T = TypeVar("T")
M = TypeVar("M", bound=Machine)
Content = TypeVar("Content", bound=BaseModel)
Progress = Callable[[str], None]

MARKER = "minigts-lab"
"""The first file that is made in a run directory: a directory without it and without lab.json is no lab."""
RECORD, PLAN = paths.LAB, paths.PLAN
OVERHEAD_KEYS = AliasChoices("emulator_overhead_ms", "own_latency_ms")
"""The key of the emulator's own latency in lab.json and certificate.json, and its key in older files."""
KEPT: Literal["kept"] = "kept"
"""The state of a lab whose hosts' disks wait for `up` (lab/kept.py)."""
LIMIT_BYTES, PLAN_LIMIT_BYTES = 4 << 20, 128 << 20
"""The largest record and the largest plan that are read: older plans had all routes and paths, 61 MB for a chain of 250
hosts. A plan is parsed only when its digest is the recorded one."""
OF_A_PLAN = documents.Bounds(elements=3_000_000, bytes=PLAN_LIMIT_BYTES)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)


class Settings(BaseModel):
    """How an experiment has set all links of a lab while it measures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unlimited: bool = False
    """No link has a rate."""
    queue_bytes: QueueBytes | None = None
    """Size of the queue in front of every rate; None: as declared."""
    gro: Literal["on", "off"] = "off"
    """Generic receive offload of every port."""

    @property
    def in_words(self) -> str:
        """`no rate, generic receive offload on`"""
        words = ["no rate"] if self.unlimited else []
        words += [f"queues of {self.queue_bytes} bytes"] if self.queue_bytes is not None else []
        words += ["generic receive offload on"] if self.gro == "on" else []
        return ", ".join(words) or "as declared"


DECLARED = Settings()


class Amounts(link_settings.Amounts):
    """The fields of a link direction's shaping that differ from the plan. None: as declared."""

    @property
    def given(self) -> dict[str, Amount]:
        """The values that are not as declared, by field."""
        return {name: value for name in Amounts.model_fields if (value := getattr(self, name)) is not None}

    @property
    def in_words(self) -> str:
        """`delay 50 ms, loss 1 %`"""
        return ", ".join(
            f"{BY_FIELD[name].word} {BY_FIELD[name].in_words(value)}" for name, value in self.given.items()
        )


class Change(Amounts):
    """How one link is set instead of as declared, until it is set again. Its own fields are of both directions, those
    in `one_way` of one.
    """

    one_way: dict[HostName, Amounts] = Field(default={})
    """The fields of one direction, by the host or switch that sends."""

    def sent_by(self, end: str) -> dict[str, Amount]:
        """The fields that are set of the direction in which `end` sends, with their values."""
        return self.given | self.one_way.get(end, Amounts()).given

    def sent_to(self, end: str) -> dict[str, Amount]:
        """The fields that are set of the direction in which `end` receives, with their values."""
        return self.given | next((each.given for name, each in self.one_way.items() if name != end), {})

    def adjusted(self, senders: Mapping[str, bool], update: Mapping[str, Amount | None]) -> Change:
        """This change with `update` added in the directions whose sender is true in `senders`. A value of None sets a
        field as declared."""
        sent = {end: {**self.sent_by(end), **(update if chosen else {})} for end, chosen in senders.items()}
        given = [{(name, value) for name, value in each.items() if value is not None} for each in sent.values()]
        both = set.intersection(*given)
        one_way = {end: dict(own - both) for end, own in zip(sent, given, strict=True) if own - both}
        return Change.model_validate({**dict(both), "one_way": one_way})

    @property
    def in_words(self) -> str:
        """`delay 50 ms, loss 1 %; from bra: delay 3 ms`"""
        of_one = (f"from {name}: {each.in_words}" for name, each in self.one_way.items())
        return "; ".join(words for words in (super().in_words, *of_one) if words)


class Record(BaseModel):
    """lab.json: the lab's provider, its state, and how its links and machines differ from the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    provider: Annotated[str, Field(pattern=r"\A[a-z][a-z0-9-]{0,39}\z")]
    created: datetime
    time: Time | None = None
    """The plan's time; None in older records, where the plan has to be read for it."""
    state: Literal["starting", "up", "kept"] = "starting"
    """In state `kept` none of its processes is meant to run, and its hosts' disks wait for `up` (lab/kept.py)."""
    plan_sha256: str = ""
    """The digest of plan.json as it was written, by which another file is noticed."""
    emulator_overhead_ms: Annotated[float, Field(ge=0, validation_alias=OVERHEAD_KEYS)] = 0.0
    """The emulator's own one-way latency over a link, taken off every link's delay."""
    cut: frozenset[str] = frozenset()
    """The names of links that have been cut."""
    changed: dict[str, Change] = {}
    """How each changed link is set, by the link's name."""
    settings: Settings = DECLARED
    unsettled: frozenset[str] = frozenset()
    """Hosts and switches that a command is setting, or was setting when it was interrupted: they may differ from this
    record."""
    share: Share = Share()
    """How much of this machine the whole lab may use. Default: no limit."""
    off: frozenset[str] = frozenset()
    """Hosts and switches whose power was cut, until they are started."""
    paused: frozenset[str] = frozenset()
    """Hosts and switches for which no time passes until they are resumed."""
    unjoined: frozenset[str] = frozenset()
    """Hosts that were restarted and have not joined the overlay again."""
    altered: bool = False
    """Whether hosts or links were added or removed, so that no topology file describes the lab."""

    @property
    def silent(self) -> frozenset[str]:
        """Machines that are off or paused: they carry nothing, and cannot be asked."""
        return self.off | self.paused

    def require_on(self, names: Iterable[str]) -> None:
        """Raises HostFailed for machines whose power is cut, or that are paused."""
        paused = sorted(self.paused.intersection(names := [*names]))
        if paused:
            words = f"{' and '.join(paused)} {'is' if len(paused) == 1 else 'are'} paused"
            raise HostFailed(f"{words}: minigts resume {paused[0]}")
        off = sorted(self.off.intersection(names))
        if off:
            raise HostFailed(f"{' and '.join(off)} {'is' if len(off) == 1 else 'are'} off: minigts start {off[0]}")

    def since(self, before: Record | None) -> Iterator[events.Event]:
        """The events that lead from record `before` to this one; None: there was no record."""
        if before is None or before.created != self.created:
            yield {"event": "begun", "provider": self.provider, "lab_time": self.time}
            return
        if self.state != before.state:
            yield {"event": self.state}
        yield from self._machines_since(before)
        yield from self._links_since(before)

    def _machines_since(self, before: Record) -> Iterator[events.Event]:
        for name in sorted(self.off - before.off):
            yield {"event": "killed", "host": name}
        for name in sorted(before.off - self.off):
            yield {"event": "started", "host": name}
        for name in sorted(self.paused - before.paused):
            yield {"event": "paused", "host": name}
        for name in sorted(before.paused - self.paused):
            yield {"event": "resumed", "host": name}
        if self._links == before._links and self.plan_sha256 == before.plan_sha256:
            for name in sorted(self.unsettled - before.unsettled - before.silent):
                yield {"event": "restarted", "host": name}

    def _links_since(self, before: Record) -> Iterator[events.Event]:
        for name in sorted(self.cut - before.cut):
            yield {"event": "cut", "link": name}
        for name in sorted(before.cut - self.cut):
            yield {"event": "whole", "link": name}
        for name in sorted(self.changed.keys() | before.changed.keys()):
            if (change := self.changed.get(name)) != before.changed.get(name):
                yield {"event": "set", "link": name, "how": change.in_words if change else "as declared"}
        if self.settings != before.settings:
            yield {"event": "set by an experiment", "how": self.settings.in_words}
        if self.emulator_overhead_ms != before.emulator_overhead_ms:
            yield {"event": "calibrated", "emulator_overhead_ms": self.emulator_overhead_ms}

    @property
    def _links(self) -> tuple[object, ...]:
        """All fields that say how links are set."""
        return self.cut, self.changed, self.settings, self.emulator_overhead_ms


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
            raise self.damaged(PLAN, "is missing")
        if digest and hashlib.sha256(content).hexdigest() != digest:
            raise self.damaged(PLAN, "is not the one that the lab was made of")
        return self._parsed(PLAN, content, Plan)

    @property
    def anew(self) -> Lab:
        """The same lab without remembered values: its plan is read again, since hosts or links may have changed."""
        return Lab(self.rundir)

    @cached_property
    def time(self) -> Time:
        """Whether the lab runs in real or virtual time. It is read from the record, which is smaller than the plan."""
        return self._first.time or self.plan.time

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

    def write_plan(self, plan: Plan) -> str:
        """Write plan.json; return its SHA-256, for the record."""
        content = plan.model_dump_json(indent=1) + "\n"
        self.put(PLAN, content)
        return hashlib.sha256(content.encode()).hexdigest()

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

    def damaged(self, name: str, reason: str) -> MinigtsError:
        """The error for a file that cannot be used; it names the command that takes the lab down."""
        return MinigtsError(f"lab {self.name}: its {name} {reason}; take it down with: minigts down {self.name}")

    def _content(self, name: str) -> bytes | None:
        try:
            return paths.read_whole(self.rundir / name, PLAN_LIMIT_BYTES if name == PLAN else LIMIT_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self.damaged(name, f"cannot be read ({error.strerror or error})") from error

    def _parsed(self, name: str, content: bytes, model: type[Content]) -> Content:
        try:
            return documents.model(content, model, OF_A_PLAN if name == PLAN else documents.USUAL)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))[:60]
            # By `ascii`, since what a damaged file holds must not reach a terminal.
            raise self.damaged(name, f"is damaged ({ascii(where)[1:-1] or 'file'}: {first['type']})") from error
        except documents.Unreadable as error:
            raise self.damaged(name, f"is damaged: it {error}") from error

    @cached_property
    def provider(self) -> Provider:
        named = self._first.provider
        if named not in registry.names():
            raise self.damaged(RECORD, f"names a provider that there is not, {named[:60]!a}")
        return registry.make(named, self.rundir, self.time)

    def machines_on(self, record: Record) -> tuple[Host | Switch, ...]:
        """The hosts and switches that are neither off nor paused, by that record."""
        return tuple(machine for machine in self.plan.machines if machine.name not in record.silent)

    def state_of_hosts(self, record: Record | None = None) -> dict[str, str]:
        """For each host and switch `answers`, `off`, `paused`, or why it does not answer; `record` says which are on
        (default: the record on disk)."""
        by = record or self.read_record()

        def ask(machine: Host | Switch) -> str:
            try:
                self.provider.run(machine.name, ["true"], timeout_s=5)
            except MinigtsError as error:
                return str(error)
            return "answers"

        answers = self.on_each(self.machines_on(by), ask)
        paused = dict.fromkeys(by.paused, "paused")
        return {each.name: answers.get(each.name, paused.get(each.name, "off")) for each in self.plan.machines}

    def on_every_host(self, work: Callable[[Host], T]) -> dict[str, T]:
        """`on_each` of the hosts that are on, by the record on disk."""
        return self.on_each([each for each in self.machines_on(self.read_record()) if isinstance(each, Host)], work)

    def on_every_machine(self, work: Callable[[Host | Switch], T]) -> dict[str, T]:
        """`on_each` of the hosts and switches that are on, by the record on disk."""
        return self.on_each(self.machines_on(self.read_record()), work)

    def on_each(self, machines: Sequence[M], work: Callable[[M], T]) -> dict[str, T]:
        """Do `work` for these machines in parallel; return the results by name. The first error is raised once all have
        ended."""
        with self.provider.together() as company:
            results = company.all([partial(work, machine) for machine in machines])
        return dict(zip((machine.name for machine in machines), results, strict=True))


def checked_name(name: str) -> str:
    """`name`, if a lab can have it. Raises InputError otherwise."""
    if not _NAME.fullmatch(name):
        shown = ascii(name) if len(name) <= 80 else f"{name[:80]!a}…"
        raise InputError(
            f"{shown} is no name of a lab: write at most 64 letters, digits, hyphens, underscores and dots, as in "
            f"pair-2, with a letter, a digit or an underscore first"
        )
    return name


def lab_named(name: str) -> Lab:
    """The lab of that name, whether it exists or not. Raises InputError for an invalid name."""
    return Lab(paths.labs_root() / checked_name(name))


def all_labs() -> list[Lab]:
    """Every lab of this user that has a run directory, up or not, in the order of names."""
    directory = paths.labs_root()
    rundirs = sorted(directory.iterdir()) if directory.is_dir() else []
    return [Lab(path) for path in rundirs if _NAME.fullmatch(path.name) and why_foreign(path) is None]


def open_lab(name: str | None = None, *, also_kept: bool = False) -> Lab:
    """The lab called `name`; without a name the only lab that is not kept, or with `also_kept` the only kept one.
    Raises InputError, which lists the labs."""
    if name is not None:
        lab = lab_named(name)
        require_own(lab.rundir)
    labs = {lab.name: lab for lab in all_labs()}
    if name is not None and name in labs:
        if not also_kept and labs[name].read_state() == KEPT:
            raise InputError(_is_kept(name))
        return labs[name]
    if not labs:
        raise InputError("no lab is up; bring one up with: minigts up topologies/chain6.yaml")
    known = ", ".join(labs)
    if name is None:
        # A kept lab is chosen only where no other exists.
        states = {name: lab.read_state() for name, lab in labs.items()}
        chosen = [lab for name, lab in labs.items() if states[name] != KEPT] or list(labs.values())
        is_kept = states[chosen[0].name] == KEPT
        if len(chosen) > 1:
            how = KEPT if is_kept else "up"
            raise InputError(
                f"several labs are {how} ({', '.join(each.name for each in chosen)}): say which with --lab"
            )
        if not also_kept and is_kept:
            raise InputError(f"no lab is up; {_is_kept(chosen[0].name)}")
        return chosen[0]
    close = get_close_matches(name, labs, 1)
    raise InputError(f"no lab {name!r}{f'; did you mean {close[0]!r}?' if close else ''} Labs are: {known}")


def _is_kept(name: str) -> str:
    return f"lab {name} is kept, and not up: bring it up with minigts up and its topology"


def why_foreign(rundir: Path) -> str | None:
    """What `rundir` is instead of a lab, in words; None when it is a lab, or does not exist.

    An empty directory is a lab whose making was interrupted at once.
    """
    try:
        mode = rundir.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(mode):
        return f"a symbolic link to {ascii(str(rundir.readlink()))[1:-1]}"
    if not stat.S_ISDIR(mode):
        return "no directory"
    if any(os.path.lexists(rundir / name) for name in (MARKER, RECORD)):
        return None
    with suppress(FileNotFoundError):
        if any(rundir.iterdir()):
            return f"a directory without {RECORD}"
    return None


def require_own(rundir: Path) -> None:
    """Raises InputError unless `rundir` lies in the labs' directory, and is a lab of minigts or does not exist."""
    name = checked_name(rundir.name)
    if rundir.parent != paths.labs_root():
        raise InputError(f"{rundir} does not lie in {paths.labs_root()}: it is left alone")
    foreign = why_foreign(rundir)
    if foreign is not None:
        raise InputError(
            f"{rundir} is {foreign}, and no lab of minigts: it is left alone; move it away, or choose another name "
            f"than {name}"
        )


@contextmanager
def exclusive(rundir: Path) -> Iterator[None]:
    """Hold the lock of a lab: one command at a time changes it; others wait.

    The lock ends with the process that holds it, and its file with the lab. It cannot be nested.
    """
    path = rundir.parent / f".{rundir.name}.lock"
    with _locked(path):
        try:
            yield
        finally:
            if not os.path.lexists(rundir):
                # Only the holder removes the file: a process that waits for it notices, and makes a new one.
                path.unlink(missing_ok=True)


def _locked(path: Path) -> IO[bytes]:
    """The lock's open file, once this process holds it. If the file is replaced meanwhile, the new one is locked."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b")
        except FileNotFoundError:  # its directory was removed in between
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_still(path, lock):
                return lock
        except BaseException:
            lock.close()
            raise
        lock.close()


def _is_still(path: Path, lock: IO[bytes]) -> bool:
    try:
        named = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(named, os.fstat(lock.fileno()))
