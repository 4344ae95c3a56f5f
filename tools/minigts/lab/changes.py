"""Changes of a lab's links that a user, a schedule or an experiment asks for: refused, or recorded and set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from minigts.errors import InputError
from minigts.lab import carriers, current, link_states, links, outages
from minigts.lab.lab import Lab
from minigts.lab.record import Change, Record, Settings
from minigts.lab.rundir import exclusive
from minigts.language.problems import did_you_mean, list_names, quote
from minigts.providers import supported
from minigts.topology import link_rules
from minigts.topology.link_setting import Amount
from minigts.topology.link_settings import BY_FIELD
from minigts.topology.outage import SILENT, Outage
from minigts.topology.plan import link_names
from minigts.topology.plan.elements import Link
from minigts.topology.plan.plan import Plan
from minigts.topology.routes.graph import connected_components
from minigts.topology.schedule import Moment


def set_for_experiment(lab: Lab, settings: Settings) -> None:
    """Set every link by `settings` for an experiment; `DECLARED` ends that. A cut link stays cut."""
    with exclusive(lab.rundir):
        before = lab.read_record()
        _set_all(lab, before, before.model_copy(update={"settings": settings}))


def set_back(lab: Lab, record: Record) -> None:
    """Give the lab an earlier record again, and set all links by it. The numbers of settings go on."""
    with exclusive(lab.rundir):
        _set_all(lab, lab.read_record(), record)


def _set_all(lab: Lab, before: Record, record: Record) -> None:
    record = current.numbered_record((lab.plan, before), (lab.plan, record))
    with links.settling(lab, before, record, [machine.name for machine in lab.plan.machines]):
        links.set_ports(lab, record, lab.plan.machines, before=before)


def set_links_up(lab: Lab, first: str, second: str, *, up: bool, how: Outage = SILENT) -> None:
    """Take every link between two machines down in that way, or with `up` bring it up, set as before. It stays so
    until the next change.

    Raises InputError when there is no such link, or `how` names a machine at none of its ends; EnvironmentLacks where
    the lab's links cannot go down so.
    """
    set_whole(lab, frozenset(link.name for link in link_names.links_between(lab.plan, first, second)), up=up, how=how)


def set_link_up(lab: Lab, name: str, *, up: bool, how: Outage = SILENT) -> None:
    """As `set_links_up`, for the one link of this name."""
    set_whole(lab, frozenset({link_names.link_named(lab.plan, name).name}), up=up, how=how)


def set_whole(lab: Lab, names: frozenset[str], *, up: bool, how: Outage = SILENT) -> None:
    """As `set_links_up`, for the links of these names, which the caller knows to exist, all at one moment."""
    if not up:
        for name in names:
            carriers.require(lab, name, how)
    with exclusive(lab.rundir):
        record = lab.read_record()
        after = outages.up(record, names) if up else outages.down(lab.plan, record, names, how)
        links.apply_record(lab, record, after, names)


def replace_settings(lab: Lab, first: str, second: str, change: Change) -> None:
    """Set every link between two machines to `change`; fields that are None become as declared. It stays so until the
    next change, and a cut link stays cut.

    Raises InputError when there is no such link.
    """
    names = frozenset(link.name for link in link_names.links_between(lab.plan, first, second))
    with exclusive(lab.rundir):
        record = lab.read_record()
        others = {name: each for name, each in record.changed.items() if name not in names}
        changed = others if change == Change() else {**others, **dict.fromkeys(sorted(names), change)}
        links.apply_record(lab, record, record.model_copy(update={"changed": changed}), names)


def require_effect(lab: Lab, first: str, second: str, change: Change) -> None:
    """Raises InputError or EnvironmentLacks where a field of `change` has no effect on a link between the two."""
    for link in link_names.links_between(lab.plan, first, second):
        given = {end: change.fields_sent_by(end).keys() for end in link.ends}
        _require_possible(lab, link, set().union(*(change.fields_sent_by(end).items() for end in link.ends)))
        _require_sense(lab.plan, link, change, given)


def update_settings(lab: Lab, name: str, update: Mapping[str, Amount | None], sender: str | None = None) -> Change:
    """Set these fields of a link, in both directions or only in the one in which `sender` sends; a value of None sets a
    field as declared, and all other fields stay. Return the link's `Change` then.

    Frames on the link and in its queues are not lost. Raises InputError before anything is changed: for an unknown link
    or end, or a queue without a rate.
    """
    link = link_names.link_named(lab.plan, name)
    carriers.require_end(link, sender)
    _require_possible(lab, link, [(field, value) for field, value in update.items() if value is not None])
    with exclusive(lab.rundir):
        record = lab.read_record()
        changed = _adjusted(lab.plan, record, link, update, sender)
        links.apply_record(lab, record, record.model_copy(update={"changed": changed}), [link.name], reading_back=True)
    return changed.get(link.name, Change())


def _require_possible(lab: Lab, link: Link, given: Iterable[tuple[str, Amount]]) -> None:
    """Raises InputError for a setting that exists only in the other time, EnvironmentLacks for one, or a value of one,
    that the provider does not support. `given` are the values by field."""
    for setting, value in ((BY_FIELD[field], value) for field, value in given if field in BY_FIELD):
        if setting.only not in (None, lab.time):
            raise InputError(f"{setting.word} exists only in {setting.only} time, and this lab runs in {lab.time} time")
        if setting.feature is not None:
            asked = supported.RequiredFeature(setting.feature, f"{link.name} with `{setting.word}`")
            supported.refuse(asked, lab.provider.name, lab.provider.supports)
        if (feature := setting.features.get(str(value))) is not None:
            asked = supported.RequiredFeature(feature, f"{link.name} with `{setting.word}: {value}`")
            supported.refuse(asked, lab.provider.name, lab.provider.supports)


def _adjusted(
    plan: Plan, record: Record, link: Link, update: Mapping[str, Amount | None], sender: str | None
) -> dict[str, Change]:
    senders = {end: sender in (None, end) for end in link.ends}
    change = record.changed.get(link.name, Change()).adjust(senders, link_rules.complete(update))
    named = {name for name, value in update.items() if value is not None}
    _require_sense(plan, link, change, {end: named if chosen else set() for end, chosen in senders.items()})
    others = {name: each for name, each in record.changed.items() if name != link.name}
    return others if change == Change() else {**others, link.name: change}


def _require_sense(plan: Plan, link: Link, change: Change, named: Mapping[str, Set[str]]) -> None:
    """Raises InputError where the link cannot be set so. `named` has the fields that are set now, by the end that
    sends."""
    sent = {end: change.fields_sent_by(end) for end in link.ends}
    after = link_rules.RuledLink.of_plan(plan, link).change(sent, named)
    if wrong := [f"{link.name}: {each}" for each in link_rules.problems(after)]:
        raise InputError("\n".join(wrong))


def record_at(plan: Plan, record: Record, moment: Moment) -> Record:
    """The record after a schedule's change. Raises InputError. Pure."""
    link = link_names.link_named(plan, moment.link)
    if moment.up:
        after = outages.up(record, [link.name])
    elif moment.up is False:
        carriers.require_end(link, moment.lost_at)
        after = outages.down(plan, record, [link.name], moment.outage)
    else:
        after = record.model_copy(update={"changed": _adjusted(plan, record, link, moment.update, moment.sender)})
    return current.numbered_record((plan, record), (plan, after), [link.name])


def partition(lab: Lab, groups: Sequence[Collection[str]]) -> list[str]:
    """Cut every link between machines of different groups; return the links' names. Raises InputError before anything
    is changed: for an unknown machine, one in two groups, or groups that are still joined through other machines.
    """
    group_of = _groups(lab.plan, groups)
    apart = [link for link in lab.plan.links if _parts(link, group_of)]
    whole = link_states.whole_links(lab.plan, lab.read_record())
    for part in connected_components((), (link.ends for link in whole if link not in apart)):
        if len({group_of[name] for name in part if name in group_of}) > 1:
            others = list_names(sorted({*part} - group_of.keys()))
            raise InputError(f"the groups are joined through machines that are in no group: {others}; add them to one")
    names = frozenset(link.name for link in apart)
    with exclusive(lab.rundir):
        record = lab.read_record()
        links.apply_record(lab, record, outages.down(lab.plan, record, names - record.cut, SILENT), names)
    return [link.name for link in apart]


def heal(lab: Lab) -> list[str]:
    """Mend every cut link, set as before the cut; return the links' names."""
    with exclusive(lab.rundir):
        record = lab.read_record()
        names = link_states.cut_links(lab.plan, record)
        links.apply_record(lab, record, outages.up(record, names), names)
    return names


def _groups(plan: Plan, groups: Sequence[Collection[str]]) -> dict[str, int]:
    known, found = [machine.name for machine in plan.machines], dict[str, int]()
    for number, names in enumerate(groups):
        for name in names:
            if name not in known:
                raise InputError(f"no machine {quote(name)}; there are {list_names(known)}{did_you_mean(name, known)}")
            if found.setdefault(name, number) != number:
                raise InputError(f"{name} is in two groups; it can be in one")
    return found


def _parts(link: Link, group_of: Mapping[str, int]) -> bool:
    """Whether the link's ends are in different groups."""
    return len({group_of[end] for end in link.ends if end in group_of}) > 1


def restore_links(lab: Lab, before: Record) -> None:
    """Set every link whose cut or change differs from record `before` as it was then."""
    with exclusive(lab.rundir):
        record = lab.read_record()
        known = record.changed.keys() | before.changed.keys()
        other = outages.differing(before, record)
        other |= {name for name in known if record.changed.get(name) != before.changed.get(name)}
        if other:
            as_before = outages.same_outages(before, record.model_copy(update={"changed": before.changed}))
            links.apply_record(lab, record, as_before, other)
