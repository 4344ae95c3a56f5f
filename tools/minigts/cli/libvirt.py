"""The verbs of the provider `vagrant`: a libvirt of one's own, and what the Vagrantfile asks. Imports are inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import screen
from minigts.cli.app import app
from minigts.cli.labs import Topology, read_plan
from minigts.cli.project import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

libvirt_app = typer.Typer(no_args_is_help=True, help="A libvirt of minigts' own, and what the Vagrantfile asks.")
app.add_typer(libvirt_app, name="libvirt", rich_help_panel=PROJECT)


@libvirt_app.command("start")
def libvirt_start() -> None:
    """Start a libvirt of minigts' own, in namespaces that lead nowhere; for machines where none runs. As root.

    Example:  sudo ./minigts libvirt start
    """
    from minigts.providers.vagrant import own

    own.start()
    screen.note(f"libvirt answers at {own.uri()}")


@libvirt_app.command("stop")
def libvirt_stop() -> None:
    """End minigts' own libvirt, with every machine and network that it runs, and nothing else.

    Example:  sudo ./minigts libvirt stop
    """
    from minigts.providers.vagrant import own

    own.stop()


@libvirt_app.command("definition")
def libvirt_definition(
    topology: Topology,
    build: Annotated[bool, typer.Option("--build", help="Build the box first, if it is not there yet.")] = False,
) -> None:
    """Print what the Vagrantfile defines for a topology file, as JSON.

    Example:  minigts libvirt definition topologies/pair.yaml
    """
    from minigts.errors import EnvironmentLacks
    from minigts.providers.vagrant import setting

    plan = read_plan(topology)
    lacking = setting.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    with screen.progress() as say:
        if build:
            setting.prepare(say)
        made = setting.define(plan, _rundir(plan.name))
    typer.echo(made.model_dump_json(indent=1))


@libvirt_app.command("joined", hidden=True)
def libvirt_joined(topology: Topology) -> None:
    """Called by the Vagrantfile when a machine is up: with the last one, the lab is configured as `minigts up` does."""
    from minigts import lab as labs
    from minigts import overlays
    from minigts.providers.vagrant.provider import VagrantProvider

    plan = read_plan(topology)
    provider = VagrantProvider(_rundir(plan.name))
    with labs.exclusive(provider.rundir.with_name(f"{plan.name}-joining")):
        if not provider.all_run(plan) or provider.configured(plan):
            return
        provider.forget()
        with screen.progress() as say:
            made = labs.up(plan, provider.name, None, say)
            overlays.join(made, plan.overlay, say)


@libvirt_app.command("left", hidden=True)
def libvirt_left(topology: Topology) -> None:
    """Called by the Vagrantfile when a machine is destroyed: the lab is one no more."""
    from minigts import lab as labs
    from minigts.providers.vagrant.provider import VagrantProvider

    provider = VagrantProvider(_rundir(read_plan(topology).name))
    with labs.exclusive(provider.rundir):
        provider.left()


def _rundir(name: str) -> Path:
    from minigts import paths

    return paths.state_root() / "labs" / name
