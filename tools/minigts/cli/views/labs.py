"""Prints this machine's providers and its labs on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from minigts.cli import console
from minigts.cli.views import plan as shown_plan
from minigts.cli.views import tables
from minigts.errors import MinigtsError

if TYPE_CHECKING:
    from minigts.lab import Lab, Record, Saved
    from minigts.overlays import Joined
    from minigts.providers.doctor import Diagnosis
    from minigts.topology.plan.elements import Switch

DECLARED = (shown_plan.delay, shown_plan.rate, shown_plan.loss)
"""The settings that are printed of a link whose directions differ."""
STATE_STYLES = {"ok": "green", "note": "yellow", "slow": "yellow", "missing": "red"}


def show_diagnoses(diagnoses: Iterable[Diagnosis]) -> None:
    """Print a table for each provider, then the remedy for each finding that is not ok."""
    out = console.out()
    for diagnosis in diagnoses:
        out.print(f"[bold]{diagnosis.provider}[/bold]  {diagnosis.verdict}  [dim]{diagnosis.about}[/dim]")
        rows = ((x.state, x.name, x.meaning) for x in diagnosis.findings)
        tables.show_table("", ("", "", ""), rows, styles=STATE_STYLES)
        for finding in diagnosis.findings:
            if finding.remedy:
                out.print(f"  {finding.name}: {finding.remedy}", markup=False, soft_wrap=True)


def lab_facts(lab: Lab) -> dict[str, object]:
    """The facts of a lab for `status --json`. A lab whose start was interrupted has a `problem` instead of hosts."""
    from minigts import lab as labs
    from minigts import overlays
    from minigts.overlays import policy as policies
    from minigts.topology.read.model import LAB_SETTINGS

    facts: dict[str, object] = {"name": lab.name, "rundir": str(lab.rundir)}
    try:
        record, joined = lab.read_record(), overlays.joined_overlay(lab)
        kept = record.state == "kept"
        return facts | {
            "topology": lab.plan.name,
            "provider": record.provider,
            "time": lab.time,
            "state": record.state,
            "overlay": None if joined is None else joined.name,
            "policy": None if (policy := policies.policy_in_force(lab)) is None else policy.name,
            "measuring_containers": {} if joined is None or kept else _measuring_containers(joined),
            **{key: each.status(lab.plan) for key, each in LAB_SETTINGS.items() if each.status is not None},
            "created": record.created.isoformat(),
            "cut": labs.cut_links(lab.plan, record),
            "down": dict(labs.outages_in_words(lab.plan, record)),
            "storm": [] if kept else labs.storms(lab),
            "changed": {name: change.in_words for name, change in labs.changed_links(lab.plan, record).items()},
            "settings": record.settings.model_dump(),
            "share": record.share.model_dump(),
            "hosts": {each.name: "kept" for each in lab.plan.machines} if kept else lab.state_of_hosts(record),
            "kernels": {each.name: each.kernel for each in lab.plan.machines if each.kernel},
            "spanning_trees": {} if kept else _spanning_trees(lab, record),
            "containers": [] if kept else overlays.own_containers(lab),
            "disk_bytes": labs.disk_bytes(lab),
            "course": None if kept else _course(lab),
        }
    except (MinigtsError, OSError, ValueError) as error:
        return facts | {"problem": str(error)}


def _spanning_trees(lab: Lab, record: Record) -> dict[str, object]:
    """By switch what it says of its spanning tree now: the root, and of each port the link, its role and its state; or
    the `problem` why it does not say."""
    from minigts.lab import trees

    def of_switch(machine: Switch) -> dict[str, object]:
        try:
            return asdict(trees.read_tree(lab, machine))
        except MinigtsError as error:
            return {"problem": str(error)}

    return dict(lab.work_on(switches, of_switch)) if (switches := trees.switches(lab, record)) else {}


def _course(lab: Lab) -> dict[str, object] | None:
    """How far the lab has come by its own clock, in seconds, and the fingerprint of its course until then; None in real
    time, and where the clock does not answer."""
    course = lab.course()
    return None if course is None else {"seconds": course.seconds, "fingerprint": course.fingerprint}


def _measuring_containers(joined: Joined) -> dict[str, str]:
    """The addresses of the measuring containers, by host; empty for an overlay without them."""
    return {host: end.address for host, end in joined.endpoints().items() if end.prefix}


def show_labs(labs: Iterable[Lab]) -> None:
    """Print a table for each lab: its hosts with their locations, addresses and states; below it what is not as
    declared."""
    from minigts.topology.kernel_names import STANDARD
    from minigts.topology.read.model import LAB_SETTINGS

    out = console.out()
    for lab in labs:
        facts = lab_facts(lab)
        states = facts.get("hosts")
        if not isinstance(states, dict):
            out.print(f"{lab.name}: {facts['problem']}", markup=False)
            continue
        if facts["state"] == "kept":
            out.print(kept_lab_line(lab, facts), markup=False, soft_wrap=True)
            continue
        inside = facts["measuring_containers"]
        assert isinstance(inside, dict)
        named = bool(facts["kernels"])
        rows = (
            (
                h.name,
                h.location or "",
                lab.plan.address_of(h),
                *shown_plan.ipv6_address(lab.plan, h.name),
                *([inside.get(h.name, "")] if inside else ()),
                *([h.kernel or STANDARD] if named else ()),
                str(states.get(h.name)),
            )
            for h in lab.plan.machines
        )
        record, where = lab.read_record(), f"{facts['provider']} in {facts['time']} time"
        title = f"{lab.name}  {facts['topology']} on {where}, overlay {facts['overlay'] or '—'}"
        title += f", held to {record.share.in_words}" if record.share.in_words else ""
        title += "".join(f", {words}" for each in LAB_SETTINGS.values() if (words := each.title(lab.plan)))
        more = (
            *shown_plan.ipv6_column(lab.plan),
            *(["measuring container"] if inside else ()),
            *(["kernel"] if named else ()),
        )
        tables.show_table(title, ("host", "location", "address", *more, "state"), rows, optional=("location",))
        _show_spanning_trees(lab, facts["spanning_trees"])
        own = facts.get("containers")
        if isinstance(own, list) and own:
            columns = ("container", "host", "address", "image", "state")
            tables.show_table("", columns, ([each[column] for column in columns] for each in own))
        for line in _below(lab, facts, record):
            out.print(line, markup=False, soft_wrap=True)


def _below(lab: Lab, facts: Mapping[str, object], record: Record) -> Iterator[str]:
    """The lines below a lab's table: links with two directions, a policy, the course, a storm, and what is not as
    declared."""
    from minigts.lab import storm_in_words

    for each in lab.plan.links:
        if each.back is not None:
            declared = "; ".join(shown_plan.both(each, show) for show in DECLARED)
            yield f"{each.name}, there and back: {declared}"
    if (policy := facts["policy"]) is not None:
        yield f"policy {policy} is in force; to remove it: minigts policy remove --lab {lab.name}"
    if isinstance(course := facts["course"], dict):
        yield f"{course['seconds']:.9f} s by the lab's clock; fingerprint {course['fingerprint']}"
    if isinstance(storm := facts["storm"], list) and storm:
        yield storm_in_words(storm)
    yield from deviations(lab, record)


def _show_spanning_trees(lab: Lab, found: object) -> None:
    """Print a row for each port of a switch with a spanning tree."""
    assert isinstance(found, dict)
    macs = {f"{each.spanning_tree.priority} {each.mac}": each.name for each in lab.plan.switches if each.spanning_tree}
    rows = [
        (name, macs.get(tree["root"], tree["root"]), port, its["link"], its["role"], its["state"])
        for name, tree in found.items()
        if "problem" not in tree
        for port, its in tree["ports"].items()
    ]
    if rows:
        tables.show_table("", ("spanning tree of", "root", "port", "link", "role", "state"), rows)
    for name, tree in found.items():
        if "problem" in tree:
            console.out().print(f"spanning tree of {name}: {tree['problem']}", markup=False, soft_wrap=True)


def kept_lab_line(lab: Lab, facts: Mapping[str, object]) -> str:
    """A line about a lab that is kept."""
    size = facts["disk_bytes"]
    disks = console.megabytes(size if isinstance(size, int) else 0)
    policy = "" if facts["policy"] is None else f", policy {facts['policy']}"
    return (
        f"{lab.name}: {facts['topology']} on {facts['provider']} in {facts['time']} time, kept with overlay "
        f"{facts['overlay'] or '—'}{policy} and {disks} of disks; minigts up starts from them, minigts down {lab.name} "
        "removes them"
    )


def show_saved(saved: Iterable[Mapping[str, object]]) -> None:
    """Print a row for each saved lab, from its `saved_facts`."""
    columns = ("name", "lab", "topology", "provider", "overlay", ">hosts", ">disks", "saved", "time in the lab")
    rows = []
    for each in saved:
        names, at, lab_time = each["hosts"], each["at"], each["lab_time"]
        assert isinstance(names, list) and isinstance(each["disk_bytes"], int)
        rows.append(
            (
                *(str(each[word]) for word in ("name", "lab", "topology")),
                f"{each['provider']}, {each['time']} time",
                str(each["overlay"] or "—"),
                str(len(names)),
                console.megabytes(each["disk_bytes"]),
                str(at)[:16].replace("T", " "),
                "—" if lab_time is None else str(lab_time)[:19].replace("T", " "),
            )
        )
    tables.show_table("saved labs", columns, rows, optional=("time in the lab", "saved", "topology"))


def saved_facts(saved: Saved) -> dict[str, object]:
    """The facts of a saved lab for `saved --json`."""
    from minigts.lab import snapshots as saved_labs

    return saved.model_dump(mode="json") | {"disk_bytes": saved_labs.disk_bytes(saved)}


def deviations(lab: Lab, record: Record) -> list[str]:
    """A line for each host and link that is not as declared, with the command that restores it."""
    from minigts.lab import DECLARED, link_states

    mend, changed = link_states.how_to_mend(lab.plan, record), link_states.changed_links(lab.plan, record)
    lines = [f"{name} is off; to start it: minigts start {name}" for name in sorted(record.off)]
    lines += [f"{name} is paused; to resume it: minigts resume {name}" for name in sorted(record.paused)]
    lines += [
        f"{name} is {how}; to restore it: {mend[name]}" for name, how in link_states.outages_in_words(lab.plan, record)
    ]
    lines += [
        f"{name} is changed ({how.in_words}); to restore its declared settings: {link_states.restoring_command(name)}"
        for name, how in changed.items()
    ]
    if record.settings != DECLARED:
        lines.append(
            f"an experiment that is running or was interrupted has changed the links ({record.settings.in_words}); "
            f"the next minigts run --lab {lab.name} begins by restoring them"
        )
    return lines
