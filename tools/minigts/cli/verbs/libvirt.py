"""`minigts libvirt`: a libvirt of one's own, and what the Vagrantfile asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import PROJECT, Verb

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.topology.plan.plan import Plan

verb = Verb(PROJECT, 550, help="A libvirt of minigts' own, and what the Vagrantfile asks.")

Topology = Annotated[
    Path | None,
    typer.Argument(metavar="[TOPOLOGY]", help="A topology file; else that of the machines there are, or chain6.yaml."),
]

Directory = Annotated[
    Path, typer.Option("--directory", metavar="DIR", help="Vagrant's own, which remembers what its machines are of.")
]

VAGRANTS = Path(".vagrant")


@verb.command("start")
def libvirt_start() -> None:
    """Start a libvirt of minigts' own, in namespaces that lead nowhere; for machines where none runs. As root.

    Example:  sudo ./minigts libvirt start
    """
    from minigts.providers.vagrant import private_libvirt

    private_libvirt.start()
    console.note(f"libvirt answers at {private_libvirt.uri()}")


@verb.command("stop")
def libvirt_stop() -> None:
    """End minigts' own libvirt, with every machine and network that it runs, and nothing else.

    Example:  sudo ./minigts libvirt stop
    """
    from minigts.providers.vagrant import private_libvirt

    private_libvirt.stop()


@verb.command("definition")
def libvirt_definition(
    topology: Topology = None,
    directory: Directory = VAGRANTS,
    start: Annotated[bool, typer.Option("--start", help="Machines are to start: build the box, remember.")] = False,
    machine: Annotated[list[str] | None, typer.Option(help="With --start: only this one. May be repeated.")] = None,
) -> None:
    """Print what the Vagrantfile defines for a topology file, as JSON.

    With --start it refuses what could not come up, before anything has been started.

    Example:  minigts libvirt definition topologies/pair.yaml
    """
    from minigts import overlays
    from minigts.errors import EnvironmentLacks
    from minigts.providers import registry
    from minigts.providers.vagrant import directory as vagrants
    from minigts.providers.vagrant import prerequisites
    from minigts.providers.vagrant.provider import VagrantProvider

    where = vagrants.Directory(directory.absolute())
    lab = where.lab(topology, starting=start, overlays=overlays.known())
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
        if provider.configured(plan):
            return
        provider.forget()
        with console.progress() as say:
            bring_up(ready(Request(plan, provider.name)), say, certified=False, left_up=True)


@verb.command("left", hidden=True)
def libvirt_left(directory: Directory = VAGRANTS) -> None:
    """Called by the Vagrantfile when a machine was halted or destroyed: unless all run, the lab is one no more."""
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
            provider.left()
    if not where.machines():
        where.forget()


def _lab(plan: Plan) -> Lab:
    from minigts import paths
    from minigts.lab import Lab

    return Lab(paths.labs_root() / plan.name)


def _whose(lab: Lab) -> str:
    """Whose the lab of that name is, if not that of the Vagrantfile's machines; empty when it is, or there is none."""
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
    """Raises InputError when the name is taken."""
    from minigts.errors import InputError

    whose = _whose(lab)
    if whose:
        raise InputError(
            f"there is a lab {lab.name} already, of {whose}: take it down first (minigts down {lab.name}), or give the "
            "topology another name"
        )


def _refuse_memory(plan: Plan, chosen: list[str]) -> None:
    """Raises EnvironmentLacks when there is no memory for the machines that do not run yet, or those chosen of them."""
    from minigts.providers.vagrant import prerequisites
    from minigts.providers.vagrant.provider import VagrantProvider

    names = {each.name for each in plan.machines}
    wanted = names & set(chosen) or names
    running = VagrantProvider(_lab(plan).rundir).running(plan)
    prerequisites.refuse_memory(plan, but=(names - wanted) | running)
