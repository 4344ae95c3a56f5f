"""How things look on the terminal: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

from minigts.errors import InputError, MinigtsError, printable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from minigts.experiments.campaign import Prepared
    from minigts.experiments.cells import Verdict
    from minigts.experiments.provider_comparison import Comparison
    from minigts.experiments.run import OnProgress, Outcome
    from minigts.experiments.run import Progress as At
    from minigts.fidelity.certificate import Certificate, Row
    from minigts.fidelity.explanation import Explanation, Measured
    from minigts.judge.statistics import Estimate
    from minigts.lab import Lab, Saved
    from minigts.providers.doctor import Diagnosis
    from minigts.report.tables import Table as Result
    from minigts.results.schema import Claim
    from minigts.topology.parts import Direction, Link, Shaping
    from minigts.topology.parts import Path as PathOfPlan
    from minigts.topology.plan import Plan

PLAIN_WIDTH = 200
"""Columns when the output goes to a file or a program, where nothing has to fit a window."""
CERTIFIED = ("RTT", "loss", "TCP")
"""What a certificate's table shows of every link and path."""
ROWS_SHOWN, PORTS_SHOWN = 66, 40
"""Of a plan's hosts, links and pairs, of which twelve hosts have as many; and of one host its ports."""
STATE_STYLES = {"ok": "green", "slow": "yellow", "missing": "red"}

Say = Callable[[str], None]


def out() -> Console:
    """Where results go. A reader that leaves is a BrokenPipeError, as for every other way to print."""
    from rich.console import Console

    class Out(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - it is called where one is handled

    return Out(highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def note(text: str) -> None:
    """A line or several for the person who watches; what would change the terminal is shown as its escape."""
    print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def progress() -> Iterator[Say]:
    """Gives a function that says what goes on now. On a terminal a step stays when it has ended, with its time."""
    if not sys.stderr.isatty():
        yield note
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    step, since = "", time.monotonic()

    def say(text: str) -> None:
        nonlocal step, since
        if step:
            console.print(f"  {step}  [dim]{time.monotonic() - since:.1f} s[/dim]", markup=True)
        step, since = text.replace("[", r"\["), time.monotonic()
        status.update(step or "…")

    with console.status("…") as status:
        yield say
        say("")


@contextmanager
def measuring(what: str = "samples") -> Iterator[tuple[Say, OnProgress]]:
    """Gives two functions: one says a step, one shows how far a run is. A bar with the time left on a terminal."""
    if not sys.stderr.isatty():
        yield note, _lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    text = TextColumn("{task.description}", markup=False)
    left = TextColumn("{task.fields[left]}")
    with Progress(BarColumn(), MofNCompleteColumn(), left, text, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def show(at: At) -> None:
            bar.update(task, completed=at.done, total=at.total, description=at.doing, left=duration(at.seconds_left))

        yield lambda step: bar.update(task, description=step), show


def _lines(what: str) -> OnProgress:
    """A line for every twentieth of the way."""
    shown = -1

    def show(at: At) -> None:
        nonlocal shown
        if (part := 20 * at.done // max(1, at.total)) != shown:
            shown = part
            note(f"{at.done} of {at.total} {what}, {duration(at.seconds_left)} left, now {at.doing}")

    return show


def explain(error: BaseException, *, debug: bool) -> int:
    """Say on stderr what went wrong; returns the exit code. With `debug`, the traceback comes first.

    `error` is a MinigtsError, an OSError, a KeyboardInterrupt or a group of such.
    """
    if debug:
        traceback.print_exception(error)
    code = _explain(error)
    for text in getattr(error, "__notes__", ()):
        note(f"minigts: {text}")
    return code


def _explain(error: BaseException) -> int:
    if isinstance(error, BaseExceptionGroup):
        return max(explain(one, debug=False) for one in error.exceptions)
    if isinstance(error, KeyboardInterrupt):
        note("minigts: interrupted")
        return 130
    if isinstance(error, InputError):
        for line in str(error).splitlines():
            note(f"minigts: {line}")
        return error.exit_code
    if isinstance(error, MinigtsError):
        note(f"minigts: {error}")
        return error.exit_code
    note(f"minigts: {_system_error(error)}")
    return 3


def explicable(error: BaseException) -> bool:
    """Whether `explain` has words for it. What it has none for is a bug of ours, and shows its traceback."""
    if isinstance(error, BaseExceptionGroup):
        return all(explicable(one) for one in error.exceptions)
    return isinstance(error, MinigtsError | OSError | KeyboardInterrupt)


def _system_error(error: BaseException) -> str:
    """`results: No space left on device`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def silence() -> int:
    """Nobody reads stdout any more: write nothing else to it. Returns the exit code of a broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A line and a table below it."""
    console = out()
    if title:
        console.print(title, style="bold", markup=False, soft_wrap=True)
    console.print(table(columns, rows))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table; a column whose heading starts with `>` is aligned to the right. Cells are taken literally."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        made.add_row(*(escape(printable(cell)) for cell in row))
    return made


def show_plan(plan: Plan, hiding: str | None = None) -> None:
    """A drawing, hosts, links, and, unless something is in the way of it, what the plan predicts for each pair."""
    from minigts.topology import gateway

    console = out()
    console.print(f"{plan.name}, in {plan.time} time", style="bold", markup=False, soft_wrap=True)
    console.print()
    if len(plan.machines) <= ROWS_SHOWN:
        from minigts.topology import drawing

        for line in drawing.draw(plan):
            console.print(f"  {line}", markup=False, soft_wrap=True)
    else:
        console.print(f"  {len(plan.machines)} machines: too many to draw", markup=False, soft_wrap=True)
    console.print()
    columns = ("host", "location", "address", *ipv6_column(plan), "on its links", ">cpus", ">memory")
    show_table("hosts", columns, _planned_machines(plan))
    _further(plan.machines, "machines")
    if plan.ways_out:
        words = gateway.in_words(host.name for host in plan.ways_out)
        console.print(f"has {words}\n", markup=False, soft_wrap=True)
    if plan.groups:
        groups = ((group.name, ", ".join(group.hosts)) for group in plan.groups)
        show_table("groups, each with an overlay network of its own", ("group", "hosts"), groups)
    by_sites = any(link.delay_from for link in plan.links)
    by_vlan = any(each.vlans for each in plan.switches)
    by_chance = any(_mischief(plan, link) for link in plan.links)
    links = (
        (
            x.name,
            ", ".join(subnet for _, subnet in x.segments),
            *([x.vlans_in_words] if by_vlan else []),
            *([] if plan.ipv6 is None else [plan.ipv6.subnet(x.name)]),
            ms(x.rtt_ms),
            *(both(x, show) for show in (delay, rate, loss)),
            _queues(plan, x),
            *([_mischief(plan, x)] if by_chance else []),
            *([x.delay_from or ""] if by_sites else []),
            *([str(x.cost)] if plan.has_routers else []),
        )
        for x in plan.links[:ROWS_SHOWN]
    )
    vlans = ["VLAN"] if by_vlan else []
    columns = ("link", "subnet", *vlans, *ipv6_column(plan), ">RTT", ">delay", ">rate", ">loss", ">queue")
    by_routers = [f">{plan.routing.upper()} cost"] if plan.has_routers else []
    also = ["of its packets"] if by_chance else []
    show_table("links", (*columns, *also, *(["delay from"] if by_sites else []), *by_routers), links)
    _further(plan.links, "links")
    if hiding is not None:
        return
    paths = (
        (f"{p.source} – {p.target}", str(p.hops), ms(p.rtt_ms), both(p, tcp_at_most), yes(p.reachable))
        for p in islice((path for host in plan.hosts for path in plan.paths_from(host.name)), ROWS_SHOWN)
    )
    show_table("expected", ("pair", ">hops", ">RTT", ">TCP at most", "routed"), paths)
    _further(range(plan.pairs), "pairs")


def _planned_machines(plan: Plan) -> Iterator[tuple[str, ...]]:
    for each in plan.machines[:ROWS_SHOWN]:
        if each.role == "switch":
            addresses = ", ".join(f"{own.address} VLAN {own.vlan}" for own in each.vlans)
        else:
            ports = each.on_segments
            addresses = ", ".join(f"{port.address} {port.name}" for port in ports[:PORTS_SHOWN])
            addresses += f" and {left} more" if (left := len(ports) - PORTS_SHOWN) > 0 else ""
        known = (each.name, each.location or "", each.address, *ipv6_address(plan, each.name))
        yield (*known, addresses, f"{each.cpus:g}", f"{each.memory_mb} MB")


def _further(all_of_them: Sequence[object], what: str) -> None:
    """Say of how many nothing was said."""
    if (left := len(all_of_them) - ROWS_SHOWN) > 0:
        out().print(f"{left} further {what}: minigts plan --json FILE\n", markup=False, soft_wrap=True)


def _queues(plan: Plan, link: Link) -> str:
    there, back = (_queue(way.queue_bytes) for way in plan.directions(link))
    return there if there == back else f"{there}, back {back}"


def _queue(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f"{size_bytes / 1000:,.1f} kB"


def ipv6_column(plan: Plan) -> list[str]:
    """The heading of what a lab has beside its IPv4 addresses, if it has that."""
    return [] if plan.ipv6 is None else ["IPv6"]


def ipv6_address(plan: Plan, machine: str) -> list[str]:
    """What stands below it for a machine; nothing for a switch."""
    beside = plan.ipv6_of(machine)
    return [] if plan.ipv6 is None else ["" if beside is None else beside.address]


def both(of: Link | PathOfPlan, show: Callable[[Direction], str]) -> str:
    """What both directions are, `50 Mbit/s`, or each: `50 Mbit/s, back 1 Mbit/s`."""
    there, back = (show(way) for way in of.ways)
    return there if there == back else f"{there}, back {back}"


def delay(way: Direction) -> str:
    return ms(way.delay_ms)


def rate(way: Direction) -> str:
    return mbit(way.rate_mbit)


def loss(way: Direction) -> str:
    return f"{way.loss_percent:g} %"


def _mischief(plan: Plan, link: Link) -> str:
    """What a link does to packets besides, as in `10 % overtake, back 1 % corrupt`; mostly nothing."""
    there, back = (", ".join(_also(way)) for way in plan.directions(link))
    return there if there == back else f"{there or 'nothing'}, back {back or 'nothing'}"


def _also(way: Shaping) -> Iterator[str]:
    yield from (f"bursts of {way.burst_packets:g}",) if way.in_bursts else ()
    for percent, what in (
        (way.reorder_percent, "overtake"),
        (way.duplicate_percent, "twice"),
        (way.corrupt_percent, "corrupt"),
    ):
        yield from (f"{percent:g} % {what}",) if percent else ()
    yield from (f"slots of {ms(way.slot_ms)}",) if way.slot_ms else ()


def tcp_at_most(way: Direction) -> str:
    return "acknowledgements may limit it" if way.unacknowledged else mbit(way.tcp_ceiling_mbit)


def show_diagnoses(diagnoses: Iterable[Diagnosis]) -> None:
    """One table a provider, then what can be done about what is not ok."""
    console = out()
    for diagnosis in diagnoses:
        rows = ((mark(x.state), x.name, x.meaning) for x in diagnosis.findings)
        made = table(("", "", ""), ())
        made.show_header = False
        for state, name, meaning in rows:
            made.add_row(state, name, meaning)
        console.print(f"[bold]{diagnosis.provider}[/bold]  {diagnosis.verdict}  [dim]{diagnosis.about}[/dim]")
        console.print(made)
        for finding in diagnosis.findings:
            if finding.remedy:
                console.print(f"  {finding.name}: {finding.remedy}", markup=False, soft_wrap=True)


def mark(state: str) -> str:
    """A state in its colour."""
    return f"[{STATE_STYLES.get(state, 'default')}]{state}[/]"


def ms(value: float | None) -> str:
    """A time in milliseconds; nothing where there is none."""
    return "" if value is None else f"{value:.2f} ms"


def mbit(value: float | None) -> str:
    """A rate in Mbit/s; `unlimited` where there is no limit."""
    return "unlimited" if value is None else f"{round(value, 1):g} Mbit/s"


def duration(seconds: float) -> str:
    """`3 h 05 min`, `4 min 20 s`, `9 s`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def yes(value: bool) -> str:
    """A truth as a word."""
    return "yes" if value else "no"


def lab_facts(lab: Lab) -> dict[str, object]:
    """A lab as `status --json` shows it. A lab whose making was interrupted has a `problem` instead of hosts."""
    from minigts import lab as labs
    from minigts import overlays

    facts: dict[str, object] = {"name": lab.name, "rundir": str(lab.rundir)}
    try:
        record, joined = lab.record, overlays.joined(lab)
        kept = record.state == "kept"
        return facts | {
            "topology": lab.plan.name,
            "provider": record.provider,
            "time": lab.time,
            "state": record.state,
            "overlay": None if joined is None else joined.name,
            "routing": lab.plan.routing,
            "ipv6": None if lab.plan.ipv6 is None else {host.name: host.address for host in lab.plan.ipv6.hosts},
            "groups": {group.name: list(group.hosts) for group in lab.plan.groups},
            "created": record.created.isoformat(),
            "cut": labs.cut_links(lab),
            "changed": {name: change.in_words for name, change in labs.changed_links(lab).items()},
            "settings": record.settings.model_dump(),
            "share": record.share.model_dump(),
            "hosts": {each.name: "kept" for each in lab.plan.machines} if kept else lab.state_of_hosts(),
            "containers": [] if kept else overlays.own_containers(lab),
            "disk_bytes": labs.disk_bytes(lab),
        }
    except (MinigtsError, OSError, ValueError) as error:
        return facts | {"problem": str(error)}


def show_labs(labs: Iterable[Lab]) -> None:
    """One table a lab: its hosts, where they are, how they are."""
    console = out()
    for lab in labs:
        facts = lab_facts(lab)
        states = facts.get("hosts")
        if not isinstance(states, dict):
            console.print(f"{lab.name}: {facts['problem']}", markup=False)
            continue
        if facts["state"] == "kept":
            console.print(kept_in_words(lab, facts), markup=False, soft_wrap=True)
            continue
        rows = (
            (h.name, h.location or "", h.address, *ipv6_address(lab.plan, h.name), str(states.get(h.name)))
            for h in lab.plan.machines
        )
        where = f"{facts['provider']} in {facts['time']} time"
        title = f"{lab.name}  {facts['topology']} on {where}, overlay {facts['overlay'] or '—'}"
        title += f", held to {lab.record.share.in_words}" if lab.record.share.in_words else ""
        title += f", over each by itself: {in_groups(lab.plan)}" if lab.plan.groups else ""
        title += f", routes by {lab.plan.routing.upper()}" if lab.plan.has_routers else ""
        show_table(title, ("host", "location", "address", *ipv6_column(lab.plan), "state"), rows)
        own = facts.get("containers")
        if isinstance(own, list) and own:
            columns = ("container", "host", "address", "image", "state")
            show_table("", columns, ([each[column] for column in columns] for each in own))
        for each in lab.plan.links:
            if each.back is not None:
                declared = "; ".join(both(each, show) for show in (delay, rate, loss))
                console.print(f"{each.name}, there and back: {declared}", markup=False, soft_wrap=True)
        for line in deviations(lab):
            console.print(line, markup=False, soft_wrap=True)


def kept_in_words(lab: Lab, facts: Mapping[str, object]) -> str:
    """A line about a lab that is kept."""
    size = facts["disk_bytes"]
    return (
        f"{lab.name}: {facts['topology']} on {facts['provider']} in {facts['time']} time, kept with overlay "
        f"{facts['overlay'] or '—'} and {megabytes(size if isinstance(size, int) else 0)} of disks; minigts up goes on "
        f"with them, minigts down {lab.name} removes them"
    )


def show_saved(saved: Iterable[Mapping[str, object]]) -> None:
    """A row for each saved lab, of its `saved_facts`."""
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
                megabytes(each["disk_bytes"]),
                str(at)[:16].replace("T", " "),
                "—" if lab_time is None else str(lab_time)[:19].replace("T", " "),
            )
        )
    show_table("saved labs", columns, rows)


def saved_facts(saved: Saved) -> dict[str, object]:
    """A saved lab as `saved --json` shows it."""
    from minigts.lab import saved as saved_labs

    return saved.model_dump(mode="json") | {"disk_bytes": saved_labs.disk_bytes(saved)}


def megabytes(size_bytes: int) -> str:
    """`1.6 MB`, `214 MB`: millions of bytes."""
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes < 10_000_000 else f"{size_bytes / 1e6:.0f} MB"


def in_groups(plan: Plan) -> str:
    """`a (a1, a2), b (b1, b2)`"""
    return ", ".join(f"{group.name} ({', '.join(group.hosts)})" for group in plan.groups)


def deviations(lab: Lab) -> list[str]:
    """In what the links of a lab are not as declared, and what puts them back, a line each."""
    from minigts.lab import DECLARED, links

    mend, changed = links.how_to_mend(lab), links.changed_links(lab)
    lines = [f"{name} is off; on again by: minigts start {name}" for name in sorted(lab.record.off)]
    lines += [f"{name} is paused; it goes on by: minigts resume {name}" for name in sorted(lab.record.paused)]
    lines += [f"{name} is cut; whole again by: {mend[name]}" for name in links.cut_links(lab)]
    lines += [
        f"{name} is changed ({how.in_words}); as declared by: {links.as_declared(name)}"
        for name, how in changed.items()
    ]
    if lab.record.settings != DECLARED:
        lines.append(
            f"links are set by an experiment that runs or was broken off ({lab.record.settings.in_words}); the next "
            f"one, minigts run --lab {lab.name}, begins by putting the links back"
        )
    return lines


def show_certificate(certificate: Certificate, lab: Lab) -> None:
    """What was measured of each link and path, with what was declared; then what lies outside or was not judged."""
    console = out()
    measured = [row for row in certificate.rows if row.quantity in CERTIFIED]
    rows = []
    for title in dict.fromkeys(row.title for row in measured):
        own = {row.quantity: row for row in measured if row.title == title}
        rows.append((title, *(certified(own.get(quantity)) for quantity in CERTIFIED)))
    title = f"lab {lab.name} on {lab.provider.name} in {lab.time} time"
    show_table(title, ("link or path", *(f">{quantity}" for quantity in CERTIFIED)), rows)
    for row in certificate.rows:
        if row.ok is not True or (row not in measured and row.quantity != "settings"):
            console.print(f"{row.title} {row.quantity}: {row.in_words()}  {row.note}", markup=False, soft_wrap=True)
    for name in certificate.cut:
        why = "cut" if name in lab.record.cut else "between machines that are not all on"
        console.print(f"{name} is {why}: neither it nor what passes it was measured", markup=False, soft_wrap=True)
    if certificate.too_fast and certificate.emulator_overhead_ms:
        console.print(
            "round trips are shorter than declared, since too much was taken off the delays: minigts calibrate",
            markup=False,
            soft_wrap=True,
        )
    for reason in certificate.busy:
        console.print(f"the machine was busy: {reason}", markup=False)
    overhead_ms = certificate.emulator_overhead_ms
    taken_off = f"; the emulator's own {overhead_ms:.3f} ms a link and way are taken off the delays"
    wanted = "declared or set" if certificate.changed else "declared"
    console.print(
        f"{certificate.verdict}; measured in {certificate.seconds:.1f} s, {wanted} in brackets"
        f"{taken_off if overhead_ms else ''}",
        markup=False,
        soft_wrap=True,
    )


def certified(row: Row | None) -> str:
    """`21.76 (21.75) ms`, or nothing; what is outside its tolerance stands out."""
    if row is None:
        return ""
    measured = "nothing" if row.measured is None else f"{row.measured:.4g}"
    mark = {True: "", False: " OUTSIDE", None: " ?"}[row.ok]
    return f"{measured} ({row.declared:.4g}) {row.unit}{mark}"


def show_explanation(explained: Explanation) -> None:
    """One link on one screen: its settings, what the lab's record says, what was measured, and the likely answer."""
    console = out()

    def line(text: str) -> None:
        console.print(printable(text), markup=False, soft_wrap=True)

    rows = (
        (
            f"{each.source} to {each.target}",
            each.name,
            setting(each.declared, each.unit),
            setting(each.wanted, each.unit),
            "not read" if each.where.partition(" ")[0] in explained.unread else setting(each.shown, each.unit),
            each.where,
        )
        for each in explained.quantities
    )
    title = f"{explained.link}  lab {explained.lab} on {explained.provider}"
    show_table(title, ("direction", "", ">declared", ">should be now", ">shown", "where"), rows)
    if not explained.carried:
        own = f"{explained.emulator_overhead_ms:.3f} ms"
        line(f"taken off each delay: {own}, the emulator's own latency a link and way")
    line(f"the lab's record: {'cut' if explained.cut else 'not cut'}; experiments: {explained.settings.in_words}")
    for each in explained.interfaces:
        beside = f", IPv6 {', '.join(each.ipv6)}" if each.ipv6 else ""
        line(f"{each.host} {each.port}: MTU {each.mtu}, generic receive offload {each.gro}{beside}")
    for difference in explained.differences:
        line(f"differs: {difference}")
    for text in _measured_lines(explained.measured):
        line(text)
    console.print(printable(f"Likely answer: {explained.answer}"), style="bold", markup=False, soft_wrap=True)


def _measured_lines(measured: Measured | None) -> Iterator[str]:
    if measured is None:
        yield "measured: nothing"
        return
    at = "at a time unknown" if measured.at is None else measured.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    source = "now" if measured.source == "now" else f"by the certificate, {at}"
    if not measured.current:
        source += ", before links were set otherwise"
    for row in measured.rows:
        direction = f", {row.direction}" if row.direction else ""
        yield f"measured {source}: {row.quantity}{direction} {row.in_words()}"
    for reason in measured.busy:
        yield f"the machine was busy meanwhile: {reason}"


def setting(value: float | None, unit: str) -> str:
    """`8.75 ms`; `none` where nothing is set."""
    return "none" if value is None else f"{value:.7g} {unit}"


def show_providers(found: Comparison) -> None:
    """A row a quantity, a column a provider: the median, and its interval where there are several rounds."""
    columns = ("", "", *(f">{name}" for name in found.providers))
    rows = (
        (quantity, unit, *(_with_interval(by_provider.get(name)) for name in found.providers))
        for quantity, unit, by_provider in found.rows()
    )
    show_table(f"{found.topology}, {found.path}: medians of {found.rounds} rounds, with 95 % intervals", columns, rows)
    for name, reason in found.absent.items():
        note(f"minigts: {name} is left out: {reason}")


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        return f"{estimate.median:.3g}"
    return f"{estimate.median:.3g} [{estimate.low:.3g}, {estimate.high:.3g}]"


def show_samples(prepared: Iterable[Prepared]) -> None:
    """How many samples of what, and how long they take."""
    experiments: dict[str, list[Prepared]] = {}
    for each in prepared:
        experiments.setdefault(each.experiment.name, []).append(each)
    for name, several in experiments.items():
        samples = [sample for each in several for sample in each.samples]
        counts = Counter((sample.overlay, sample.measurement, sample.tool) for sample in samples)
        rows = ((*cell, str(count)) for cell, count in counts.items())
        labs = f"{len(several)} labs, " if len(several) > 1 else ""
        title = (
            f"{name}: {labs}{len(samples)} samples, {duration(sum(each.seconds for each in several))} of measuring, in "
            f"{several[0].plan.time} time"
        )
        show_table(title, ("overlay", "measurement", "tool", ">samples"), rows)


def show_outcome(outcome: Outcome, directory: Path) -> None:
    """What became of the claims, and what could not be measured. A sweep's claims are shown together."""
    from minigts.results.store import is_cell

    if not is_cell(directory):
        show_claims(outcome.verdicts)
    for overlay, reason in outcome.skipped.items():
        note(f"minigts: {overlay} was skipped: {reason}")
    if outcome.failed:
        note(f"minigts: {len(outcome.failed)} samples have no result; try: minigts run --resume {directory}")
        for sample in outcome.failed:
            note(f"  {sample}")


def show_claims(claims: Sequence[Verdict | Claim]) -> None:
    if claims:
        rows = ((one.verdict, one.overlay, one.claim, one.detail) for one in claims)
        show_table("", ("verdict", "overlay", "claim", ""), rows)


def show_comparison(headline: Iterable[str], tables: Iterable[Result], notes: Iterable[str]) -> None:
    """What differs between two runs, with its tables, and how it was decided."""
    console = out()
    for table_ in tables:
        show_table(table_.heading, table_.columns, table_.rows)
    for line in (*notes, *headline):
        console.print(line, markup=False, soft_wrap=True)


def pass_on(output: bytes) -> None:
    """A host's output, as it comes."""
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


class HostLines:
    """The output of several hosts, as it comes, in whole lines with the host's name before each."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._width = max(map(len, hosts))
        self._begun = {host: bytearray() for host in hosts}
        self._lock = Lock()

    def take(self, host: str, output: bytes) -> None:
        with self._lock:
            *lines, rest = bytes(self._begun[host] + output).split(b"\n")
            self._begun[host][:] = rest
            pass_on(b"".join(self._line(host, line) for line in lines))

    def end(self, host: str) -> None:
        """What a host has said last, if that is no whole line."""
        with self._lock:
            if self._begun[host]:
                pass_on(self._line(host, bytes(self._begun[host])))
                self._begun[host].clear()

    def _line(self, host: str, line: bytes) -> bytes:
        return f"{host:<{self._width}}  ".encode() + line + b"\n"


def amount(size_bytes: int, seconds: float) -> str:
    """`104.9 MB in 0.8 s`; without a time that nobody waits for."""
    size = f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes} bytes"
    return f"{size} in {seconds:.1f} s" if seconds >= 0.1 else size


def show_log(heading: str, file: Path) -> None:
    """A text file below a heading; what would change the terminal is shown as its escape."""
    print(f"==> {printable(heading)} <==")
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            print(printable(line.rstrip("\n")))


def print_json(document: object) -> None:
    """One JSON document; what JSON has no word for is written as text."""
    print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
