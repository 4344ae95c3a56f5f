"""The verbs of a lab's life. What a verb needs is imported inside it, so that `--help` is quick."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import files, known, screen, shown_findings, shown_labs, shown_plan
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.providers import DEFAULT
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.fidelity.certificate import Certificate
    from minigts.lab import Lab
    from minigts.providers.base import Share
    from minigts.topology.parts import Link
    from minigts.topology.plan import Plan

Topology = Annotated[Path, typer.Argument(metavar="TOPOLOGY", help="A topology file, such as topologies/chain6.yaml.")]
Provider = Annotated[
    str,
    typer.Option("--provider", help="What a host is; `minigts doctor` lists them.", autocompletion=known.providers),
]
TimeOption = Annotated[
    Time | None,
    typer.Option(
        "--time", help="The lab's clock: the machine's, or its own. Else the file's; else the provider's best."
    ),
]
LabName = Annotated[
    str | None,
    typer.Option("--lab", metavar="NAME", help="Which lab, when several are up.", autocompletion=known.labs),
]
WhichLab = Annotated[
    str | None,
    typer.Argument(metavar="[LAB]", help="Which lab, when several are up.", autocompletion=known.labs),
]
"""Of a verb that takes `--lab`, too: see `which`."""
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]
Host = Annotated[
    str,
    typer.Argument(metavar="HOST", help="A host's name, as in the topology file.", autocompletion=known.hosts),
]
LABS = "Labs"


@app.command(rich_help_panel=LABS)
def plan(
    topology: Topology,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    as_json: AsJson = False,
) -> None:
    """Draw a topology file, and say what it means: addresses, links, round trips to expect. Starts nothing.

    --json has all of the plan, routes too; the same file gives the same bytes. The provider matters where the file says
    no time: `uml` has virtual time.

    Example:  minigts plan topologies/chain6.yaml
    """
    from minigts.lessons import hidden
    from minigts.providers import registry
    from minigts.session.plans import foreseen
    from minigts.topology.expanded import pieces

    planned = read_plan(topology, provider, time)
    hiding = hidden.why_hidden(planned.name, topology.parent)
    if as_json:
        for piece in pieces(planned, with_paths=hiding is None):
            typer.echo(piece, nl=False)
    else:
        shown_plan.show_plan(planned, hiding)
        if planned.time == "real" or registry.has_virtual_time(provider):  # any plan may be looked at
            screen.note_all(foreseen(planned, registry.make(provider, Path(), planned.time), planned.overlay))
    if hiding is not None:
        screen.note(hiding)


@app.command(rich_help_panel=LABS)
def up(
    topology: Topology,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    lab: Annotated[str | None, typer.Option("--lab", metavar="NAME", help="Its name; else the topology's.")] = None,
    overlay: Annotated[
        str | None, typer.Option("--overlay", help="Which overlay; else the topology's.", autocompletion=known.overlays)
    ] = None,
    processors: Annotated[
        float | None, typer.Option("--processors", min=0.05, max=1024, help="All of it together takes no more of them.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Nor of memory: 2GB. Else all there is.")
    ] = None,
) -> None:
    """Bring a lab up: hosts, links, overlay, and its certificate. It stays up when this command has ended.

    The certificate says how far links and paths are from the plan. A second time changes nothing: it says when the
    certificate was measured, and measures anew if the lab is another since. A lab that `down --keep` has kept comes up
    on its hosts' disks, and with the overlay that it had.

    Example:  minigts up topologies/pair.yaml --overlay swarm

    Example:  minigts up topologies/pair.yaml --processors 0.5 --memory 1GB
    """
    from minigts.session import bring_up
    from minigts.session.plans import foreseen
    from minigts.topology import gateway

    planned = read_plan(topology, provider, time)
    ready = bring_up.ready(bring_up.Request(planned, provider, lab, overlay, _share(processors, memory)))
    if planned.time == "real":
        screen.note_all(foreseen(planned, ready.lab.provider, ready.overlay or planned.overlay))
    screen.note_all(bring_up.as_root(ready.lab.provider))
    with screen.progress() as say:
        brought = bring_up.bring_up(ready, say, left_up=True)
    made = brought.lab
    if brought.certificate is not None:
        _show(brought.certificate, made, topology.parent)
    if brought.remark:
        screen.note(brought.remark)
    if planned.ways_out:
        screen.note(f"lab {made.name} has {gateway.in_words(host.name for host in planned.ways_out)}")
    screen.note(f"lab {made.name} is up in {made.time} time; try: minigts exec {planned.hosts[0].name} -- ip address")


def _share(processors: float | None, memory: str | None) -> Share | None:
    """What the options hand a lab; None where none is given. Raises InputError."""
    from minigts.language.quantities import MEMORY_MB
    from minigts.providers.base import Share

    if processors is None and memory is None:
        return None
    try:
        memory_mb = None if memory is None else MEMORY_MB.parse_whole(memory)
    except ValueError as error:
        raise InputError(f"--memory: {error}") from error
    return Share(processors=processors, memory_mb=memory_mb)


@app.command(rich_help_panel=LABS)
def down(
    lab: WhichLab = None,
    named: LabName = None,
    every: Annotated[bool, typer.Option("--all", help="Every lab of yours.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the hosts' disks for the next up.")] = False,
) -> None:
    """Take a lab down: no process, socket or file of it is left. Also after a crash.

    With --keep its hosts' disks stay: `up` of the same topology goes on with them, a later `down` removes them, and so
    does `down --all`. Saved labs stay whatever goes down.

    Example:  minigts down --all

    Example:  minigts down --keep
    """
    from minigts import lab as labs

    if every and (lab or named):
        raise InputError("name a lab, or say --all; not both")
    doomed = labs.all_labs() if every else [labs.open_lab(which(lab, named), also_kept=True)]
    failures: list[Exception] = []
    for each in labs.running(doomed) if every and keep else doomed:
        try:
            done = _keep(each) if keep else _down(each)
        except Exception as error:  # one lab's failure must not keep the others up
            failures.append(error)
        else:
            screen.note(f"lab {each.name} is {done}")
    if failures:
        raise ExceptionGroup("not every lab could be taken down", failures)


def _keep(lab: Lab) -> str:
    from minigts import lab as labs

    with screen.progress() as say:
        size = labs.keep(lab, say)
    return f"kept, with {screen.megabytes(size)} of disks; minigts up goes on with them, minigts down removes them"


def _down(lab: Lab) -> str:
    from minigts import lab as labs
    from minigts.lab.record import KEPT

    size = labs.disk_bytes(lab) if lab.read_state() == KEPT else None
    labs.down(lab)
    return "down" if size is None else f"down; it was kept, and {screen.megabytes(size)} of disks are gone"


@app.command(rich_help_panel=LABS)
def status(
    lab: LabName = None,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again and again, until ctrl-c.")] = False,
    interval_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, max=3600, help="Between two looks of --watch.")
    ] = 2.0,
) -> None:
    """List the labs that are up, and how their hosts are; and those that are kept, with what they take.

    Example:  minigts status --json

    Example:  minigts status --watch
    """
    if not watch:
        _show_status(lab, as_json)
        return
    with suppress(KeyboardInterrupt):
        while True:
            if not as_json and sys.stdout.isatty():
                screen.out().clear()
            _show_status(lab, as_json, in_a_line=True)
            time.sleep(interval_s)


def _show_status(lab: str | None, as_json: bool, *, in_a_line: bool = False) -> None:
    from minigts import lab as labs

    found = labs.all_labs() if lab is None else [labs.open_lab(lab, also_kept=True)]
    if as_json and in_a_line:
        typer.echo(json.dumps([shown_labs.lab_facts(each) for each in found]))
    elif as_json:
        screen.print_json([shown_labs.lab_facts(each) for each in found])
    elif not found:
        screen.note("no lab is up; try: minigts up topologies/pair.yaml")
    else:
        shown_labs.show_labs(found)


@app.command(rich_help_panel=LABS)
def restart(host: Host, lab: LabName = None) -> None:
    """End a host as a power cut does, start it again on its disk and its links, and join it to the overlay again.

    The other hosts run on. What ran on it, beside the overlay, has ended. What somebody has changed by hand at the
    other ends of its links (interfaces, addresses, routes) is set again, and said.

    Example:  minigts restart bra
    """
    _start_again(lab_with(host, lab, also_off=True), host)


def _start_again(opened: Lab, host: str) -> None:
    from minigts import lab as labs
    from minigts import overlays
    from minigts.fidelity.mending import mend_ways

    with screen.progress() as say:
        say(f"starting {host} again")
        mended = mend_ways(opened, host)
        labs.restart(opened, host)
        overlays.rejoin(opened, host, say)
    for name, differences in mended.items():
        screen.note(f"set again on {name}: {'; '.join(differences)}")
    screen.note(f"{host} is up again")


@app.command(rich_help_panel=LABS)
def kill(host: Host, lab: LabName = None) -> None:
    """Cut a host's power: it ends at once and stays off until `minigts start`. What it has been sent is lost.

    Its disk is written out before. The other hosts run on.

    Example:  minigts kill bra
    """
    from minigts import lab as labs

    opened = lab_with(host, lab)
    labs.kill(opened, host)
    screen.note(f"{host} is off; again on by: minigts start {host}")


@app.command(rich_help_panel=LABS)
def start(host: Host, lab: LabName = None) -> None:
    """Start a host that is off, on its disk and its links, and join it to the overlay again.

    Example:  minigts start bra
    """
    opened = lab_with(host, lab, also_off=True)
    if host not in opened.read_record().off:
        raise InputError(f"start: {host} is not off; minigts restart {host} ends it and starts it again")
    _start_again(opened, host)


@app.command(rich_help_panel=LABS)
def pause(host: Host, lab: LabName = None) -> None:
    """Let no time pass for a host until `minigts resume`: as a virtual machine that is paused. The others run on.

    What it is sent waits as far as its ports have room, and its own clock is behind afterwards.

    Example:  minigts pause bra
    """
    from minigts import lab as labs

    labs.pause(lab_with(host, lab), host)
    screen.note(f"{host} is paused; it goes on by: minigts resume {host}")


@app.command(rich_help_panel=LABS)
def resume(host: Host, lab: LabName = None) -> None:
    """Let a host go on that is paused. It does not know of the time that has passed.

    Example:  minigts resume bra
    """
    from minigts import lab as labs

    labs.resume(lab_with(host, lab, also_off=True), host)
    screen.note(f"{host} goes on")


@app.command(rich_help_panel=LABS)
def check(
    lab: LabName = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the certificate, without `expect:`.")] = False,
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Prove the overlay, too: from every host to the next, by a capture.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a lab against its plan: settings, RTT, loss and rate of links and paths. Exit 1 outside the tolerance.

    Changes nothing. A link that `minigts link` has cut is named, and neither it nor a path over it is measured. With
    --overlay it proves, as a join does, that every host's packets reach the next and cross the links as they should.

    Example:  minigts check

    Example:  minigts check --quick --overlay
    """
    from minigts import lab as labs
    from minigts.fidelity.expectations import check as check_all
    from minigts.fidelity.measure import certify

    opened = labs.open_lab(lab)
    with screen.progress() as say:
        certificate = certify(opened, say) if quick else check_all(opened, say)
    if as_json:
        typer.echo(certificate.model_dump_json(indent=2))
    else:
        _show(certificate, opened)
    if overlay:
        _prove_overlay(opened)
    raise typer.Exit(0 if certificate.ok else 1)


def _prove_overlay(lab: Lab) -> None:
    """Raises CommandFailed, or a group of such, where something does not arrive, or not as it should."""
    from minigts import overlays

    with screen.progress() as say:
        said = overlays.verify(lab, say)
    seen = sorted({words.get("ENCAPSULATION", "") for words in said.values()})
    screen.note(f"the overlay carries what it should from {len(said)} hosts to the next: {', '.join(seen)}")


def _show(certificate: Certificate, lab: Lab, beside: Path | None = None) -> None:
    """The certificate; of a lesson's lab no more than its verdict, until its student has predicted."""
    from minigts.lessons import hidden

    hiding = hidden.why_hidden(lab.plan.name, beside)
    if hiding is None:
        shown_findings.show_certificate(certificate, lab)
        return
    typer.echo(certificate.verdict)
    screen.note(hiding)


@app.command(rich_help_panel=LABS)
def explain(
    link: Annotated[
        str,
        typer.Argument(
            metavar="LINK", help="A link's name, such as ams-bra, or one of its hosts.", autocompletion=known.links
        ),
    ],
    other: Annotated[
        str | None, typer.Argument(metavar="[HOST]", help="Its other host.", autocompletion=known.neighbours)
    ] = None,
    lab: LabName = None,
    measure: Annotated[bool, typer.Option("--measure", help="Send echo requests over it now.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say why a link is as it is: declared, set, shown by its two hosts, measured; and the likely answer.

    Changes nothing. What was measured is in the lab's certificate; --measure measures this one link now.

    Example:  minigts explain ams-bra
    """
    from minigts import lab as labs
    from minigts.fidelity import explanation
    from minigts.lessons import hidden

    opened = labs.open_lab(lab)
    if (hiding := hidden.why_hidden(opened.plan.name)) is not None:
        raise InputError(hiding)
    explained = explanation.explain(opened, _link_of(opened, link, other), measuring=measure)
    if as_json:
        typer.echo(explained.model_dump_json(indent=2))
    else:
        shown_findings.show_explanation(explained)


@app.command(rich_help_panel=LABS)
def calibrate(lab: WhichLab = None, named: LabName = None) -> None:
    """Measure what links take by themselves, and set every delay so that with it a link takes what is declared.

    `up` does so, too. Again, when `check` finds round trips that are shorter than declared: `up` met a busier machine.
    What has been cut stays cut.

    Example:  minigts calibrate
    """
    from minigts import lab as labs

    opened = labs.open_lab(which(lab, named))
    if labs.carrier(opened) is not None:
        screen.note(f"lab {opened.name} has nothing to calibrate: its links take just what is declared")
        return
    with screen.progress() as say:
        say("measuring the emulator's own latency")
        overhead_ms = labs.calibrate(opened)
    screen.note(f"{overhead_ms:.3f} ms a link and way are taken off the delays; minigts check measures the lab anew")


def which(lab: str | None, named: str | None) -> str | None:
    """The lab that a verb is to work on: its argument, or --lab. Raises InputError where these are two labs."""
    if lab and named and lab != named:
        raise InputError(f"{lab} and --lab {named} are two labs: name one")
    return lab or named


def read_plan(file: Path, provider: str, time: Time | None) -> Plan:
    """The plan of a topology file, or of minigts' own of that name: in `time`, else in the file's, else in the
    provider's best. Raises InputError.
    """
    from minigts.session import plans

    found = files.found(file, files.TOPOLOGIES)
    planned = plans.planned(found, provider=provider, time=time, known_overlays=known.overlays())
    for note in planned.notes:
        screen.note(f"{found}: {note}")
    return planned


def lab_with(host: str, lab: str | None, *, also_off: bool = False) -> Lab:
    """The lab, which has that host. Raises InputError; HostFailed for one that is off, unless it may be."""
    from minigts import lab as labs

    opened = labs.open_lab(lab)
    one_of("host", host, [each.name for each in opened.plan.machines])
    if not also_off:
        opened.read_record().require_on([host])
    return opened


def _link_of(lab: Lab, first: str, second: str | None) -> Link:
    """The link by its name, or the only one between two hosts. Raises InputError."""
    from minigts.lab import links

    if second is None:
        return links.link_named(lab.plan, first)
    known = [each.name for each in lab.plan.machines]
    one, *others = links.links_between(lab.plan, one_of("host", first, known), one_of("host", second, known))
    if others:
        names = ", ".join(each.name for each in (one, *others))
        raise InputError(f"several links join {first} and {second}: name one of {names}")
    return one


def one_of(kind: str, word: str, known: Collection[str]) -> str:
    """`word`, which is known. Raises InputError."""
    from minigts.language.problems import did_you_mean

    if word not in known:
        raise InputError(f"no {kind} {word!r}; there are {', '.join(known)}{did_you_mean(word, known)}")
    return word
