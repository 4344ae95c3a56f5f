"""What is known of a lab without asking it: its name, its run directory, the records in it, and its lock.

A run directory is `<state root>/labs/<name>`; it holds plan.json and lab.json beside what the provider puts there.
Names are only names: `checked_name` is the one place where they are judged, and `require_own` the one that says what
may be removed.
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
"""The first thing that is made in a run directory: what lacks it, and lab.json, is no lab."""
RECORD, PLAN = paths.LAB, paths.PLAN
OVERHEAD_KEYS = AliasChoices("emulator_overhead_ms", "own_latency_ms")
"""What lab.json and certificate.json call the emulator's own latency, and what those of before called it."""
KEPT: Literal["kept"] = "kept"
"""The state of a lab whose hosts' disks wait for `up` (lab/kept.py)."""
LIMIT_BYTES, PLAN_LIMIT_BYTES = 4 << 20, 128 << 20
"""Of every record; plans of before had all routes and paths, 61 MB for 250 hosts in a row. A plan is parsed when its
digest is the recorded one."""
OF_A_PLAN = documents.Bounds(elements=3_000_000, bytes=PLAN_LIMIT_BYTES)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)


class Settings(BaseModel):
    """How an experiment has set every link of a lab for as long as it measures, instead of as declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unlimited: bool = False
    """No link has a rate."""
    queue_bytes: QueueBytes | None = None
    """In front of every rate; None: as declared."""
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
    """What a direction of a link is set to instead of what is declared, by field of a plan's shaping. None: as
    declared."""

    @property
    def given(self) -> dict[str, Amount]:
        """Those that are not as declared, by field."""
        return {name: value for name in Amounts.model_fields if (value := getattr(self, name)) is not None}

    @property
    def in_words(self) -> str:
        """`delay 50 ms, loss 1 %`"""
        return ", ".join(
            f"{BY_FIELD[name].word} {BY_FIELD[name].in_words(value)}" for name, value in self.given.items()
        )


class Change(Amounts):
    """How one link is set instead of as declared, until it is set otherwise: in both directions, but for what `one_way`
    says of one of them.
    """

    one_way: dict[HostName, Amounts] = Field(default={})
    """By the end that sends."""

    def sent_by(self, end: str) -> dict[str, Amount]:
        """What is set of the direction in which that end sends, by field of a plan's shaping."""
        return self.given | self.one_way.get(end, Amounts()).given

    def sent_to(self, end: str) -> dict[str, Amount]:
        """The same of the other direction."""
        return self.given | next((each.given for name, each in self.one_way.items() if name != end), {})

    def adjusted(self, senders: Mapping[str, bool], update: Mapping[str, Amount | None]) -> Change:
        """With these fields set so as well, None to be as declared again, of what those of the two ends send."""
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
    """lab.json: what the lab is of, and everything in which its links differ from the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    provider: Annotated[str, Field(pattern=r"\A[a-z][a-z0-9-]{0,39}\z")]
    created: datetime
    time: Time | None = None
    """The plan's; None in records of before, whose plan has to be read for it."""
    state: Literal["starting", "up", "kept"] = "starting"
    """kept: nothing of it runs, or is meant to, and its hosts' disks wait for `up` (lab/kept.py)."""
    plan_sha256: str = ""
    """Of plan.json as it was written, so that another one is not taken for it."""
    emulator_overhead_ms: Annotated[float, Field(ge=0, validation_alias=OVERHEAD_KEYS)] = 0.0
    """The emulator's own one-way latency over a link, taken off every link's delay."""
    cut: frozenset[str] = frozenset()
    """The names of links that have been cut."""
    changed: dict[str, Change] = {}
    """By link how it is set instead of as declared."""
    settings: Settings = DECLARED
    unsettled: frozenset[str] = frozenset()
    """Machines that a command is setting, or was setting when it was broken off: they may not be as recorded."""
    share: Share = Share()
    """What all of it together may take of the machine."""
    off: frozenset[str] = frozenset()
    """Machines whose power somebody has cut, and that wait to be started."""
    paused: frozenset[str] = frozenset()
    """Machines for which no time passes until somebody resumes them."""
    unjoined: frozenset[str] = frozenset()
    """Hosts that were started again and are not on the overlay again yet."""
    altered: bool = False
    """Whether hosts or links were added or removed, so that no topology file says what the lab is."""

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
        """What has happened when this is recorded after `before`; None: nothing was."""
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
        """All that is recorded of how links are."""
        return self.cut, self.changed, self.settings, self.emulator_overhead_ms


@dataclass(frozen=True)
class Lab:
    """A lab, up or not, told apart by its run directory.

    Its plan, its time and its provider stay the same as long as it is up: they are read when they are first asked for,
    and remembered. All else of it changes, and is read by `read_record`, once an act, which hands the record on.
    """

    rundir: Path

    @classmethod
    def known(cls, rundir: Path, plan: Plan, provider: Provider) -> Lab:
        """One of which nothing has to be read: who makes a lab knows its plan and its provider."""
        lab = cls(rundir)
        vars(lab).update(plan=plan, time=plan.time, provider=provider)
        return lab

    @property
    def name(self) -> str:
        return self.rundir.name

    @cached_property
    def plan(self) -> Plan:
        """Raises MinigtsError when plan.json is not what the lab was made of."""
        try:
            return self.read_plan(self._first)
        except MinigtsError:  # hosts or links may have come or gone since the record was first read
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
        """The same lab, of which nothing is remembered: hosts or links may have been added or removed since."""
        return Lab(self.rundir)

    @cached_property
    def time(self) -> Time:
        """What the lab goes by. Read from its record, which is less than its plan."""
        return self._first.time or self.plan.time

    @cached_property
    def _first(self) -> Record:
        """The record as it was first read: for what stays the same as long as the lab is up."""
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
        """The same; None where there is no lab, or one of which nothing is recorded yet. Raises MinigtsError when the
        record is damaged."""
        record = self.read(RECORD, Record)
        if record is not None:
            vars(self).setdefault("_first", record)
        return record

    def read_state(self) -> Literal["starting", "up", "kept", ""]:
        """Of its record; empty where there is none that can be read."""
        try:
            return self.read_record().state
        except MinigtsError:
            return ""

    def write(self, record: Record, before: Record | None = None) -> None:
        """Write lab.json, and note what has changed since `before`, which is what stands there; None: it is read."""
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
        """By the lab's own clock, while that runs. To ask for it lets no time pass."""
        try:
            return self.provider.now_s() if self.time == "virtual" else None
        except MinigtsError:
            return None

    def write_plan(self, plan: Plan) -> str:
        """Write plan.json; its SHA-256, for the record."""
        content = plan.model_dump_json(indent=1) + "\n"
        self.put(PLAN, content)
        return hashlib.sha256(content.encode()).hexdigest()

    def read(self, name: str, model: type[Content]) -> Content | None:
        """The record `name` in the run directory; None when it is not there. Raises MinigtsError when it is damaged."""
        content = self._content(name)
        return None if content is None else self._parsed(name, content, model)

    def put(self, name: str, content: str) -> None:
        """Write the file `name` in the run directory. Raises MinigtsError when the lab has been taken down."""
        try:
            paths.write_whole(self.rundir / name, content)
        except FileNotFoundError as error:
            raise MinigtsError(f"lab {self.name} has been taken down") from error

    def damaged(self, name: str, reason: str) -> MinigtsError:
        """The one sentence about a record that cannot be used, with what to do."""
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
        """Hosts and switches but those whose power is cut, or that are paused, by that record."""
        return tuple(machine for machine in self.plan.machines if machine.name not in record.silent)

    def state_of_hosts(self, record: Record | None = None) -> dict[str, str]:
        """For each host and switch `answers`, `off`, `paused`, or why it does not answer; by that record, or the one
        that stands on disk."""
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
        """`on_each` of the hosts that are on, by the record that stands on disk."""
        return self.on_each([each for each in self.machines_on(self.read_record()) if isinstance(each, Host)], work)

    def on_every_machine(self, work: Callable[[Host | Switch], T]) -> dict[str, T]:
        """The same for hosts and switches."""
        return self.on_each(self.machines_on(self.read_record()), work)

    def on_each(self, machines: Sequence[M], work: Callable[[M], T]) -> dict[str, T]:
        """Do `work` for these machines, at once; the first error is raised after all have ended."""
        with self.provider.together() as company:
            results = company.all([partial(work, machine) for machine in machines])
        return dict(zip((machine.name for machine in machines), results, strict=True))


def checked_name(name: str) -> str:
    """`name`, which a lab can have. Raises InputError, and nothing has been touched."""
    if not _NAME.fullmatch(name):
        shown = ascii(name) if len(name) <= 80 else f"{name[:80]!a}…"
        raise InputError(
            f"{shown} is no name of a lab: write at most 64 letters, digits, hyphens, underscores and dots, as in "
            f"pair-2, with a letter, a digit or an underscore first"
        )
    return name


def lab_named(name: str) -> Lab:
    """The lab of that name, whether there is one or not. Raises InputError for what is no name."""
    return Lab(paths.labs_root() / checked_name(name))


def all_labs() -> list[Lab]:
    """Every lab of this user with a run directory, up or not, by name. What is no lab of minigts' is left out."""
    directory = paths.labs_root()
    rundirs = sorted(directory.iterdir()) if directory.is_dir() else []
    return [Lab(path) for path in rundirs if _NAME.fullmatch(path.name) and why_foreign(path) is None]


def open_lab(name: str | None = None, *, also_kept: bool = False) -> Lab:
    """The lab called `name`, or the only one that is not kept; with `also_kept` a kept one, too. Raises InputError that
    says which there are."""
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
        # One that is kept is meant only where no other can be.
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
    return f"lab {name} is kept, and not up: bring it up by minigts up and its topology"


def why_foreign(rundir: Path) -> str | None:
    """What is in a run directory's place that is no lab of minigts', in words; None when it is one, or nothing is.

    A directory that holds nothing is a lab whose making was broken off at once.
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
    """Raises InputError unless what is there, if anything is, lies among the labs and is one that minigts made."""
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
    """One command at a time changes the lab of this run directory; others wait for their turn.

    The lock goes with the process that holds it, and its file with the lab. Not to be nested.
    """
    path = rundir.parent / f".{rundir.name}.lock"
    with _locked(path):
        try:
            yield
        finally:
            if not os.path.lexists(rundir):
                # By its holder alone: whoever waits for it finds that it is gone, and makes a new one.
                path.unlink(missing_ok=True)


def _locked(path: Path) -> IO[bytes]:
    """Waits for its turn. A lock whose file is no longer the one of that name is nobody's: then it begins anew."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b")
        except FileNotFoundError:  # its directory went in between
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
