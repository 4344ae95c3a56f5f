"""`minigts up`: bring a lab up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from minigts import paths
from minigts.cli import completion, console
from minigts.cli.options import KernelOption, Provider, TimeOption, Topology, lab_option, read_topology
from minigts.cli.verbs import LABS, Verb
from minigts.cli.views import findings as shown_findings
from minigts.errors import InputError
from minigts.providers import DEFAULT

if TYPE_CHECKING:
    from minigts.fidelity.certificate import Certificate
    from minigts.providers.base import Share
    from minigts.session.apply import Pending
    from minigts.session.bring_up import Ready

verb = Verb(LABS, 20)

Extent = Literal["full", "quick"]
"""As `fidelity.sample.Extent`, which `--help` does not import."""
LONG_S = 10.0
"""From how long a certificate on it is said beforehand."""
QUICKER: Mapping[Extent, str] = {"full": "; --certify quick measures a sample of the links", "quick": ""}


@verb.command()
def up(
    topology: Topology,
    provider: Provider = DEFAULT,
    time: TimeOption = None,
    lab: Annotated[
        str | None, typer.Option("--lab", metavar="NAME", help="The lab's name. Default: the topology's.")
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option(
            "--overlay", help="The overlay to join. Default: the topology's.", autocompletion=completion.overlays
        ),
    ] = None,
    kernel: KernelOption = None,
    processors: Annotated[
        float | None,
        typer.Option("--processors", min=0.05, max=1024, help="Processor limit for the whole lab. Default: no limit."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Memory limit for the whole lab, such as 2GB. Default: no limit."
        ),
    ] = None,
    certify: Annotated[
        Extent,
        typer.Option(
            "--certify",
            help="full: measure every link. quick: read all settings back, and measure a sample of the links.",
        ),
    ] = "full",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="End with 1 where hosts do not answer each other's echo requests; otherwise it is a warning.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be added, removed and set, and what cannot be; do nothing."),
    ] = False,
) -> None:
    """Bring a lab up: hosts, links, overlay, and its certificate. It stays up when this command has ended.

    The certificate compares links and paths with the plan. `up` of a lab that is up applies what has been edited in
    its file: links are set under traffic, hosts and links are added and removed as by `add` and `remove`. What only a
    new host or lab can have is refused, and then nothing changes. Without an edit `up` says when the certificate was
    measured, and measures again if the lab has changed since. A lab that `down --keep` has kept comes up on its
    hosts' disks, with the overlay that it had.

    Example:  minigts up topologies/pair.yaml --overlay swarm

    Example:  minigts up my-lab.yaml --dry-run

    Example:  minigts up topologies/pair.yaml --processors 0.5 --memory 1GB
    """
    from minigts.artifacts import kernels
    from minigts.fidelity import sample
    from minigts.session import apply, bring_up
    from minigts.session.plans import foreseen
    from minigts.topology.routes import addresses

    read = read_topology(topology, provider, time, kernel)
    planned = read.plan
    ready = bring_up.ready(
        bring_up.Request(planned, provider, lab, overlay, _share(processors, memory), read.defaults or {})
    )
    pending = apply.pending(ready, read)
    if dry_run:
        _show(ready, pending)
        return
    if planned.time == "real" and pending is None:
        console.note_all(foreseen(planned, ready.lab.provider, ready.overlay or planned.overlay))
    console.note_all((*bring_up.root_note(ready.lab.provider), *kernels.remarks(planned)))
    if pending is not None:
        ready = _applied(ready, pending)
    if (seconds := sample.foreseen_s(planned, certify)) > LONG_S and not _is_certified(ready):
        console.note(f"the certificate takes about {_in_words(seconds)} on an idle machine{QUICKER[certify]}")
    measured: list[tuple[Certificate, str]] = []

    def keep(certificate: Certificate, remark: str) -> None:
        measured.append((certificate, remark))

    try:
        with console.progress() as say:
            brought = bring_up.bring_up(ready, say, left_up=True, extent=certify, strict=strict, show=keep)
    finally:
        for certificate, remark in measured:  # also where the overlay could not be joined afterwards
            shown_findings.show_certificate_unless_hidden(certificate, ready.lab, topology.parent)
            console.note_all((remark,) if remark else ())
    made = brought.lab
    console.note_all(f"minigts: warning: {each}" for each in brought.warnings)
    if planned.ways_out:
        console.note(f"lab {made.name} has {addresses.gateway_in_words(host.name for host in planned.ways_out)}")
    host = f"{lab_option(made.name)}{planned.hosts[0].name}"
    console.note(f"lab {made.name} is up in {made.time} time; try: minigts exec {host} -- ip address")


def _is_certified(ready: Ready) -> bool:
    return (ready.lab.rundir / paths.CERTIFICATE).exists()


def _in_words(seconds: float) -> str:
    """`40 s`, or `6 min`: no more digits than such a reckoning has."""
    return f"{round(seconds, -1):.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _show(ready: Ready, pending: Pending | None) -> None:
    """Print what `up` would do, a line each."""
    name, plan = ready.lab.name, ready.lab.plan
    if pending is None:
        kept = " on the disks that were kept" if ready.lab.read_state() == "kept" else ""
        switches = f", {len(plan.switches)} switches" if plan.switches else ""
        started = f"{len(plan.hosts)} hosts{switches} and {len(plan.links)} links"
        typer.echo(f"lab {name} is not up: {started} would be started{kept}, with overlay {ready.overlay or 'none'}")
        return
    refused = pending.difference.refused
    for line in (*pending.lines, *(f"! {each}" for each in refused)):
        typer.echo(line)
    if refused:
        anew = f"minigts down {name}, then minigts up"
        typer.echo(
            f"up would refuse this and change nothing, because of the lines with !; to bring the lab up anew: {anew}"
        )
    elif pending.is_empty:
        typer.echo(f"lab {name} is up as the file says")


def _applied(ready: Ready, pending: Pending) -> Ready:
    """Apply what is pending; return the request for the lab as it is then. Raises InputError before anything is
    changed."""
    from minigts.cli.add_remove import again
    from minigts.session import apply

    pending.require()
    if pending.is_empty:
        return apply.request_for_lab(ready, pending.lab)
    console.note_all(pending.lines)
    with console.progress() as say:
        lab, started = apply.apply(pending, say)
    console.note(f"lab {lab.name} is as the file says now{again(started.difference(pending.difference.added))}")
    return apply.request_for_lab(ready, lab)


def _share(processors: float | None, memory: str | None) -> Share | None:
    """The limits of --processors and --memory for the whole lab; None without any. Raises InputError."""
    from minigts.language.quantities import MEMORY_MB
    from minigts.providers.base import Share

    if processors is None and memory is None:
        return None
    try:
        memory_mb = None if memory is None else MEMORY_MB.parse_whole(memory)
    except ValueError as error:
        raise InputError(f"--memory: {error}") from error
    return Share(processors=processors, memory_mb=memory_mb)
