"""What is recorded of a lab, in lab.json: its state, and everything in which its links differ from the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.errors import HostFailed
from minigts.lab import events
from minigts.providers.base import Share
from minigts.topology import link_settings
from minigts.topology.facts.links.queue import SIZES
from minigts.topology.fields import HostName, QueueBytes, QueueMs, QueuePackets
from minigts.topology.link_setting import Amount
from minigts.topology.time import Time

RECORD, PLAN = paths.LAB, paths.PLAN
NEXT_PLAN, LAST_PLAN = "plan-next.json", "plan-last.json"
"""The plan to which a lab is being altered, and the one that it had before; both only while that lasts."""
KEPT: Literal["kept"] = "kept"
"""The state of a lab whose hosts' disks wait for `up` (lab/keep.py)."""


class Settings(BaseModel):
    """How an experiment has set all links of a lab while it measures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unlimited: bool = False
    """No link has a rate."""
    queue_bytes: QueueBytes | None = None
    """Size of the queue in front of every rate; None: as declared. In other units it is one of the next two."""
    queue_packets: Annotated[QueuePackets | None, Field(exclude_if=lambda size: size is None)] = None
    queue_ms: Annotated[QueueMs | None, Field(exclude_if=lambda size: size is None)] = None
    gro: Literal["on", "off"] = "off"
    """Generic receive offload of every port."""

    @property
    def queue(self) -> dict[str, Amount]:
        """The size of the queue in front of every rate, by field of `Shaping`; empty: as declared."""
        return {field: size for field in SIZES if (size := getattr(self, field)) is not None}

    @property
    def in_words(self) -> str:
        """`no rate, generic receive offload on`"""
        words = ["no rate"] if self.unlimited else []
        words += [f"queues of {link_settings.BY_FIELD[field].value_words(size)}" for field, size in self.queue.items()]
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
        return ", ".join(link_settings.user_words(name, value) for name, value in self.given.items())


class Change(Amounts):
    """How one link is set instead of as declared, until it is set again. Its own fields are of both directions, those
    in `one_way` of one.
    """

    one_way: dict[HostName, Amounts] = Field(default={})
    """The fields of one direction, by the host or switch that sends."""

    def fields_sent_by(self, end: str) -> dict[str, Amount]:
        """The fields that are set of the direction in which `end` sends, with their values."""
        return self.given | self.one_way.get(end, Amounts()).given

    def fields_sent_to(self, end: str) -> dict[str, Amount]:
        """The fields that are set of the direction in which `end` receives, with their values."""
        return self.given | next((each.given for name, each in self.one_way.items() if name != end), {})

    def adjust(self, senders: Mapping[str, bool], update: Mapping[str, Amount | None]) -> Change:
        """This change with `update` added in the directions whose sender is true in `senders`. A value of None sets a
        field as declared."""
        sent = {end: {**self.fields_sent_by(end), **(update if chosen else {})} for end, chosen in senders.items()}
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
    time: Time
    """The plan's time."""
    state: Literal["starting", "up", "kept"] = "starting"
    """In state `kept` none of its processes is meant to run, and its hosts' disks wait for `up` (lab/keep.py)."""
    plan_sha256: str = ""
    """The digest of plan.json as it was written, by which another file is noticed."""
    emulator_overhead_ms: Annotated[float, Field(ge=0)] = 0.0
    """The emulator's own one-way latency over a link, taken off every link's delay."""
    cut: frozenset[str] = frozenset()
    """The names of links that are down: they carry nothing."""
    without_carrier: Annotated[frozenset[tuple[str, HostName]], Field(exclude_if=lambda ports: not ports)] = frozenset()
    """The ends of such links, as links and machines, that have no carrier, and so know of it."""
    changed: dict[str, Change] = {}
    """How each changed link is set, by the link's name."""
    times_set: Annotated[
        dict[str, dict[HostName, Annotated[int, Field(ge=0)]]], Field(exclude_if=lambda counts: not counts)
    ] = {}
    """How often each direction of a link has been set otherwise than it was, by the link's name and the end that sends;
    0 is as declared. Each time its random numbers are others (`topology.plan.chance.setting_seed`). It never falls,
    also not for a link that is removed."""
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
    becoming: str = ""
    """The digest of the plan to which a command is altering the lab, or was when it was interrupted; else empty."""
    altered: bool = False
    """Whether hosts or links were added or removed, so that no topology file describes the lab."""

    def number_of(self, link: str, sender: str) -> int:
        """The number of the setting that the direction in which `sender` sends over a link has now."""
        return self.times_set.get(link, {}).get(sender, 0)

    def counting(self, ways: Iterable[tuple[str, str]], times: int = 1) -> Record:
        """This record after so many other settings of each of these directions, which are links and ends that send."""
        counts = {link: dict(each) for link, each in self.times_set.items()}
        for link, sender in ways:
            counts.setdefault(link, {})[sender] = times + self.number_of(link, sender)
        return self.model_copy(update={"times_set": counts})

    def dark_ends(self, name: str) -> list[str] | None:
        """The ends that have no carrier, sorted, of a link that is down; None: it is not."""
        return sorted(end for link, end in self.without_carrier if link == name) if name in self.cut else None

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
        for name in sorted(self.cut):
            if (ends := self.dark_ends(name)) == before.dark_ends(name):
                continue
            yield (
                {"event": "link down", "link": name, "without_carrier": ends}
                if ends
                else {"event": "cut", "link": name}
            )
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
        return self.cut, self.without_carrier, self.changed, self.settings, self.emulator_overhead_ms
