"""`minigts libvirt`: a private libvirt, and the requests of the Vagrantfile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import PROJECT, Verb

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.topology.plan.plan import Plan

verb = Verb(PROJECT, 550, help="A private libvirt, and the requests of the Vagrantfile.")

Topology = Annotated[
    Path | None,
    typer.Argument(
        metavar="[TOPOLOGY]", help="A topology file. Default: that of the existing machines, or chain6.yaml."
    ),
]

Directory = Annotated[
    Path,
    typer.Option("--directory", metavar="DIR", help="Vagrant's folder, which records the topology of its machines."),
]

VAGRANTS = Path(".vagrant")


@verb.command("start")
def libvirt_start() -> None:
    """Start a private libvirt, in namespaces without outside connections, where no libvirt runs. Needs root.

    Example:  sudo ./minigts libvirt start
    """
    from minigts.providers.vagrant import private_libvirt

    private_libvirt.start()
    console.note(f"libvirt answers at {private_libvirt.uri()}")


@verb.command("stop")
def libvirt_stop() -> None:
    """Stop the private libvirt with every machine and network that it runs, and nothing else.

    Example:  sudo ./minigts libvirt stop
    """
    from minigts.providers.vagrant import private_libvirt

    private_libvirt.stop()


@verb.command("definition")
def libvirt_definition(
    topology: Topology = None,
    directory: Directory = VAGRANTS,
    start: Annotated[
        bool, typer.Option("--start", help="Before machines start: check, build the box, record the topology.")
    ] = False,
    machine: Annotated[list[str] | None, typer.Option(help="With --start: only this machine; may be repeated.")] = None,
) -> None:
    """Print what the Vagrantfile defines for a topology file, as JSON.

    With --start it refuses, before anything is started, a topology that could not come up.

    Example:  minigts libvirt definition topologies/pair.yaml
    """
    from minigts import overlays
    from minigts.errors import EnvironmentLacks
    from minigts.providers import registry
    from minigts.providers.vagrant import directory as vagrants
    from minigts.providers.vagrant import prerequisites
    from minigts.providers.vagrant.provider import VagrantProvider

    where = vagrants.Directory(directory.absolute())
    lab = where.lab(topology, starting=start, overlays=overlays.known_names())
    registry.make(VagrantProvider.name, Path(), lab.plan.time)
    lacking = prerequisites.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    if start:
        _require_nobody_elses(_lab(lab.plan))
        _refuse_memory(lab.plan, machine or [])
        with console.progress() as say:
            prerequisites.prepare(say)
        where.remember(lab.topology, lab.plan)
    made = prerequisites.define(lab.plan, _lab(lab.plan).rundir)
    if start:
        prerequisites.open_consoles(made)
    typer.echo(made.model_dump_json(indent=1))


@verb.command("joined", hidden=True)
def libvirt_joined(directory: Directory = VAGRANTS) -> None:
    """Called by the Vagrantfile when a machine is up: with the last one, the lab is configured as `minigts up` does."""
    from minigts import lab as labs
    from minigts.providers.vagrant.directory import Directory as Vagrants
    from minigts.providers.vagrant.provider import VagrantProvider
    from minigts.session.bring_up import Request, bring_up, ready

    memory = Vagrants(directory.absolute()).memory()
    if memory is None:
        return
    plan, lab = memory.plan, _lab(memory.plan)
    provider = VagrantProvider(lab.rundir)
    with labs.exclusive(lab.rundir.with_name(f"{plan.name}-joining")):
        if not provider.all_run(plan):
            return
        _require_nobody_elses(lab)
        if provider.is_configured(plan):
            return
        provider.forget()
        with console.progress() as say:
            bring_up(ready(Request(plan, provider.name)), say, certified=False, left_up=True)


@verb.command("left", hidden=True)
def libvirt_left(directory: Directory = VAGRANTS) -> None:
    """Called by the Vagrantfile when a machine was halted or destroyed: unless all machines run, the lab is no longer
    up."""
    from minigts import lab as labs
    from minigts.providers.vagrant.directory import Directory as Vagrants
    from minigts.providers.vagrant.provider import VagrantProvider

    where = Vagrants(directory.absolute())
    memory = where.memory()
    if memory is None:
        return
    lab = _lab(memory.plan)
    provider = VagrantProvider(lab.rundir)
    with labs.exclusive(lab.rundir):
        if not _whose(lab) and not provider.all_run(memory.plan):
            provider.leave()
    if not where.machines():
        where.forget()


def _lab(plan: Plan) -> Lab:
    from minigts import paths
    from minigts.lab import Lab

    return Lab(paths.labs_root() / plan.name)


def _whose(lab: Lab) -> str:
    """Who owns the lab of that name; empty if it belongs to the Vagrantfile's machines, or if there is none."""
    from minigts.errors import MinigtsError
    from minigts.providers.vagrant.provider import VagrantProvider

    if not lab.rundir.exists():
        return ""
    try:
        provider = lab.read_record().provider
    except MinigtsError:
        return "a command that did not end well"
    if provider != VagrantProvider.name:
        return f"the provider {provider}"
    return "`minigts up`" if VagrantProvider(lab.rundir).has_own_vagrant else ""


def _require_nobody_elses(lab: Lab) -> None:
    """Raises InputError when the lab of that name belongs to somebody else."""
    from minigts.errors import InputError

    whose = _whose(lab)
    if whose:
        raise InputError(
            f"there is a lab {lab.name} already, of {whose}: take it down first (minigts down {lab.name}), or give the "
            "topology another name"
        )


def _refuse_memory(plan: Plan, chosen: list[str]) -> None:
    """Raises EnvironmentLacks when memory is too short for the machines that do not run yet, or for the `chosen` of
    them."""
    from minigts.providers.vagrant import prerequisites
    from minigts.providers.vagrant.provider import VagrantProvider

    names = {each.name for each in plan.machines}
    wanted = names & set(chosen) or names
    running = VagrantProvider(_lab(plan).rundir).running(plan)
    prerequisites.refuse_memory(plan, but=(names - wanted) | running)
