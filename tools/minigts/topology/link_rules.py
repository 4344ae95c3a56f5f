"""What must hold of a link's settings, however the link gets them: by a file, `set`, a schedule, `add`, `serve` or a
fault. Pure.

A change is judged as the file would be that has its result: what is refused in one place is refused in all.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from minigts.language.problems import quote
from minigts.topology import opportunities
from minigts.topology.disciplines import DISCIPLINES, FIFO, OPTIONS, word
from minigts.topology.facts.links import queue
from minigts.topology.facts.links.jitter import OWN
from minigts.topology.frames import ETHERNET_HEADER_BYTES
from minigts.topology.link_setting import Amount
from minigts.topology.link_settings import BY_FIELD, OF_BURSTS, OF_JITTER, OF_RATE, Shaping, untimely
from minigts.topology.plan import elements
from minigts.topology.plan.plan import Plan
from minigts.topology.schedule import Moment
from minigts.topology.time import Time

Update = Mapping[str, Amount | None]
"""New values by field of `Shaping`; None: as declared."""

_REMEMBERED = 4
"""How many states of a link are known as judged: a repeated change has few."""
_NEEDED = (
    (("burst_packets",), "loss_percent", "a loss: say which share is lost, as in loss: 1%"),
    (OF_JITTER, "jitter_ms", "a jitter: say how far the delay varies, as in jitter: {sd: 2ms}"),
    (OF_BURSTS, "burst_packets", "a burst: say how many packets it has, as in burst: {length: 8packets}"),
)
"""Settings that need another one, the field of that, and how to write it."""
_OF_QUEUE = (*queue.SIZES, "queue_discipline", *OPTIONS)


@dataclass(frozen=True)
class RuledLink:
    """What the rules need to know of a link."""

    name: str
    ends: tuple[str, str]
    ways: tuple[Shaping, Shaping]
    """From the first end to the second, and back, as a file has them: a queue that is not declared is not there."""
    mtu: int

    @classmethod
    def of_plan(cls, plan: Plan, link: elements.Link) -> RuledLink:
        """A link as its plan declares it. A plan has a queue in bytes wherever it has a rate."""
        ways = plan.directions(link)
        rtt_ms = sum(way.delay_ms for way in ways)
        there, back = (_as_in_a_file(way, rtt_ms) for way in ways)
        return cls(link.name, link.ends, (there, back), plan.mtu_of(link))

    @property
    def rtt_ms(self) -> float:
        return sum(way.delay_ms for way in self.ways)

    def change(self, sent: Mapping[str, Mapping[str, Amount]], named: Mapping[str, Set[str]]) -> RuledLink:
        """The link with the values `sent` by each end. Of what only goes with another setting, such as the distribution
        of a jitter, that stays which `named` has or whose other setting is there."""
        ways = zip(self.ends, self.ways, strict=True)
        there, back = (_without_idle(apply(way, sent[end]), named[end]) for end, way in ways)
        return replace(self, ways=(there, back))

    def set_both(self, given: Mapping[str, Amount]) -> RuledLink:
        """The link with these values in both directions."""
        return self.change(dict.fromkeys(self.ends, given), {end: given.keys() for end in self.ends})


def _as_in_a_file(way: Shaping, rtt_ms: float) -> Shaping:
    """The direction without what a plan derives: its seed, the room of its delay, the bytes of its queue."""
    derived = {field: Shaping.model_fields[field].default for field in ("seed", "delay_packets")}
    otherwise = way.queue_packets is not None or way.queue_ms is not None
    if otherwise or way.queue_bytes == queue.default_bytes(way.rate_mbit, rtt_ms):
        derived["queue_bytes"] = None
    return way.model_copy(update=derived)


def apply(declared: Shaping, change: Mapping[str, Amount]) -> Shaping:
    """The direction with `change` applied. The options of a declared queue discipline go with it, and a queue's size
    with another one."""
    otherwise = change.get("queue_discipline", declared.queue_discipline) != declared.queue_discipline
    options = dict.fromkeys(OPTIONS) if otherwise else {}
    return declared.model_copy(update={**options, **queue.replace_size(change)})


def complete(update: Update) -> Update:
    """The update with what it sets back: what was set of another queue discipline, and a queue's size in another
    unit."""
    options = dict.fromkeys(OPTIONS) if "queue_discipline" in update else {}
    return {**options, **queue.replace_size(update)}


def _without_idle(way: Shaping, named: Set[str]) -> Shaping:
    """The direction without settings that have no effect as another one is not there, unless they are `named`."""
    idle: dict[str, Amount] = {}
    for fields, other, _ in _NEEDED:
        if not idle.get(other, getattr(way, other)):
            idle |= {field: BY_FIELD[field].default for field in fields if field not in named}
    if way.polices:  # nothing waits there
        idle |= {field: BY_FIELD[field].default for field in _OF_QUEUE if field not in named}
    return way.model_copy(update=idle) if idle else way


def problems(link: RuledLink) -> Iterator[str]:
    """What is wrong with the settings of a link, a sentence each."""
    for fields, other, example in _NEEDED:
        having = [way for way in link.ways if any(True for _ in _other_than_default(way, fields))]
        if having and not any(getattr(way, other) for way in having):
            what = "a burst" if fields == ("burst_packets",) else next(_other_than_default(having[0], fields))
            yield f"{what} without {example}"
    one_alone = [(link.ways[0], "")]
    pairs = zip(link.ways, (link.ends, link.ends[::-1]), strict=True)
    both = [(way, f" from {start} to {end}") for way, (start, end) in pairs]
    for way, words in one_alone if link.ways[0] == link.ways[1] else both:
        yield from _of_direction(way, words, link)


def _other_than_default(way: Shaping, fields: Iterable[str]) -> Iterator[str]:
    """The words of these settings, where they are not the default."""
    yield from (BY_FIELD[field].word for field in fields if getattr(way, field) != BY_FIELD[field].default)


def _of_direction(way: Shaping, words: str, link: RuledLink) -> Iterator[str]:
    """What is wrong with one direction of a link; `words` name it: ` from ams to bra`, or nothing."""
    frame_bytes = link.mtu + ETHERNET_HEADER_BYTES
    if _early(way):
        hint = "packets would have to arrive before they were sent"
        yield f"jitter {way.jitter_ms:g}ms{words} is more than the one-way delay {way.delay_ms:g}ms: {hint}"
    if way.jitter_distribution == OWN and not way.jitter_table:
        yield f"no table of delays{words}: the topology names one, as in jitter: {{table: delays.txt}}"
    if (wrong := _bursts(way)) is not None:
        yield wrong.replace("%", f"%{words}", 1)
    if way.rate_mbit is None and (named := [*_other_than_default(way, OF_RATE)]):
        yield f"{named[0]} without a rate{words}: give a rate too, as in rate: {{mean: 100mbit, burst: 1MB}}"
    elif way.polices and way.rate_burst_bytes < frame_bytes:
        yield (
            f"a policer{words} with a burst of {way.rate_burst_bytes:.0f} bytes lets no full frame of "
            f"{frame_bytes} bytes through: give it a larger one, as in burst: 100kB"
        )
    if way.blackhole_bytes is not None and way.blackhole_bytes >= link.mtu:
        hole = f"a black hole{words} for more than {way.blackhole_bytes:.0f} bytes"
        yield f"{hole}: no packet is larger than the MTU {link.mtu}"
    if way.reorder_percent and not way.delay_ms:
        yield f"reorder without a delay{words}: there is nothing that a packet could overtake"
    if way.rate_mbit is not None and (wrong := _peak(way)) is not None:
        yield f"{wrong}{words}"
    yield from _queue(way, words, link, frame_bytes)


def _early(way: Shaping) -> bool:
    """Whether packets would arrive before they were sent: not by a table of its own that ends in time, but for
    rounding."""
    in_time = bool(way.jitter_table) and way.delay_ms + way.furthest_jitter_ms[0] > -0.001 * way.jitter_ms
    return way.jitter_ms > way.delay_ms and not in_time


def _bursts(way: Shaping) -> str | None:
    """Why no bursts can give the declared loss; None where they can, or there are none."""
    if not way.in_bursts:
        return None
    loss, between, inside = way.loss_percent, way.burst_between_percent, way.burst_loss_percent
    if not between < loss < inside:
        return f"a loss of {loss:g}% is not between the {between:g}% outside of bursts and the {inside:g}% in them"
    if way.burst_packets < (fewest := (loss - between) / (inside - loss)):  # between two bursts is a packet
        return f"a loss of {loss:g}% needs bursts of {math.ceil(fewest)} packets or more"
    return None


def _peak(way: Shaping) -> str | None:
    """Why a link with a rate cannot have this peak; None where it can, or has none."""
    if way.rate_peak_mbit is None:
        return None
    if way.polices:
        return "a peak with `excess: drop`: a policer lets nothing wait, so it has no peak; leave one of them out"
    if not way.rate_burst_bytes:
        return "a peak without a burst: give one, as in rate: {mean: 100mbit, burst: 1MB, peak: 200mbit}"
    if way.rate_mbit is not None and way.rate_peak_mbit <= way.rate_mbit:
        return f"a peak of {way.rate_peak_mbit:g} Mbit/s is not above the rate, {way.rate_mbit:g} Mbit/s"
    return None


def _queue(way: Shaping, words: str, link: RuledLink, frame_bytes: int) -> Iterator[str]:
    rate_mbit = opportunities.mean_mbit(way.trace) if way.trace else way.rate_mbit
    sized = queue.declared_bytes(way, rate_mbit, frame_bytes)
    declared = any(getattr(way, field) is not None for field in queue.SIZES)
    if way.polices and declared:
        yield f"a queue with `excess: drop`{words}: nothing waits there; leave one of them out"
    if declared and rate_mbit is None:
        yield f"a queue without a rate{words}: nothing waits on a link that is not limited; give a rate too"
    if sized is not None and sized < frame_bytes:
        yield f"a queue of {sized} bytes{words} holds no full frame of {frame_bytes} bytes (MTU {link.mtu})"
    held = queue.planned_bytes(way, rate_mbit, link.rtt_ms, frame_bytes)
    yield from (f"{wrong}{words}" for wrong in _discipline(way, held))


def _discipline(way: Shaping, held_bytes: int | None) -> Iterator[str]:
    """What is wrong with the queue discipline of a direction whose queue holds so many bytes."""
    name = way.queue_discipline
    own = DISCIPLINES[name].options if name in DISCIPLINES else {}
    for field in OPTIONS:
        if getattr(way, field) is not None and field not in own:
            have = [each for each, discipline in DISCIPLINES.items() if field in discipline.options]
            also = f"; {name} has {', '.join(map(word, own))}" if own else f"; {name} has no options"
            always = "; cake always marks" if (name, field) == ("cake", "queue_ecn") else ""
            yield f"{word(field)} is no option of the queue discipline {name}, but of {', '.join(have)}{also}{always}"
    if name != FIFO and way.rate_mbit is None:
        yield f"a queue discipline {name} without a rate: nothing waits on a link that is not limited; give a rate too"
    elif name != FIFO and way.polices:
        yield f"a queue discipline {name} with a rate that drops what exceeds it: there nothing waits"
    ends = [each for each in (way.queue_min_bytes, way.queue_max_bytes) if each is not None]
    if ends != sorted(ends):
        yield f"queue.min, {ends[0]:.0f} bytes, is more than queue.max, {ends[1]:.0f} bytes"
    elif held_bytes is not None and ends and ends[-1] > held_bytes:
        yield f"a queue of {held_bytes} bytes never holds the {ends[-1]:.0f} bytes from which red is to act"


@dataclass
class _Sent:
    """What has been set of a link so far, by the end that sends."""

    link: RuledLink
    by_end: dict[str, dict[str, Amount]]

    def set(self, update: Update, sender: str | None) -> RuledLink:
        """Set this; the link then."""
        further = complete(update)
        ends = [end for end in self.link.ends if sender in (None, end)]
        for end in ends:
            after = {**self.by_end[end], **further}
            self.by_end[end] = {field: value for field, value in after.items() if value is not None}
        named = {field for field, value in update.items() if value is not None}
        return self.link.change(self.by_end, {end: named if end in ends else set() for end in self.link.ends})


def strange_end(end: str | None, link: str, ends: tuple[str, str]) -> str:
    """Why a link has no such end; empty where it has, and for None, which names none."""
    return "" if end is None or end in ends else f"{quote(end)} is no end of {link}: {' and '.join(ends)} are"


def schedule_problems(
    links: Iterable[RuledLink], moments: Sequence[tuple[int, Moment]], time: Time
) -> Iterator[tuple[int, str]]:
    """What is wrong with changes that are made one after the other, in this order: the number that comes with a change,
    and a sentence; of a link each sentence once. The links are as they are declared, and each change is of one of
    them."""
    sent = {link.name: _Sent(link, {end: {} for end in link.ends}) for link in links}
    said: set[tuple[str, str]] = set()
    judged: dict[str, deque[RuledLink]] = {name: deque(maxlen=_REMEMBERED) for name in sent}
    for number, moment in moments:
        if moment.up is not None or moment.link not in sent:
            continue
        now = sent[moment.link].set(moment.update, moment.sender)
        if now in judged[moment.link]:
            continue
        judged[moment.link].append(now)
        for problem in (*problems(now), *dict.fromkeys(untimely(now.ways, time))):
            if (moment.link, problem) not in said:
                said.add((moment.link, problem))
                yield number, problem
