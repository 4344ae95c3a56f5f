"""A lab's life: up, down, and one host started again."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from minigts import paths
from minigts.dataplane import interfaces, switch
from minigts.errors import EnvironmentLacks, HostFailed, InputError, MinigtsError, noting_failures
from minigts.lab import links, routes, software
from minigts.lab.kept import CERTIFICATE, require_same
from minigts.lab.record import (
    MARKER,
    Lab,
    Progress,
    Record,
    checked_name,
    exclusive,
    lab_named,
    require_own,
    why_foreign,
)
from minigts.providers import registry, supported
from minigts.providers.base import Kills, Pauses, Provider, Restarts, Share, Shares
from minigts.topology import gateway
from minigts.topology.parts import Host, Switch
from minigts.topology.plan import Plan

LONGEST_PATH_BYTES = 200
"""Of a run directory. User-Mode Linux cuts the paths of a host's own files below it off after 255 bytes, and makes them
elsewhere; mount(8) takes no longer one. Sockets are reached through an open directory: their 107 bytes are no limit."""


def up(plan: Plan, provider_name: str, name: str | None, progress: Progress, share: Share | None = None) -> Lab:
    """Bring `plan` up as the lab `name` (the plan's own by default) and return when it is configured and shaped.

    A lab of that name that is up with the same plan on the same provider is left as it is; only what a command that was
    broken off has left half set is set to its end. One that is kept comes up on its hosts' disks. On failure nothing is
    left running, and a kept lab is kept as before. All of it together takes no more of the machine than its `share`;
    None: as before, which for a new lab is all.

    Raises InputError when the name is none, or taken by another plan, another provider or something that is no
    lab, or when the provider has not the plan's time; EnvironmentLacks, HostFailed.
    """
    lab = lab_named(plan.name if name is None else name)
    require_own(lab.rundir)
    refuse_long_path(lab.rundir)
    provider = registry.make(provider_name, lab.rundir, plan.time)
    supported.require(plan, provider.name, provider.supports)  # before anything is changed
    software.require(plan)
    with exclusive(lab.rundir):
        if lab.is_kept:
            require_same(lab, plan, provider_name)
            if share is not None:
                lab.write(lab.record.model_copy(update={"share": share}))
            _bring_up_again(lab, progress)
            return lab
        if _is_up(lab, plan, provider_name):
            if share not in (None, lab.record.share):
                had = lab.record.share.in_words or "no share of its own"
                raise InputError(f"lab {lab.name} is up with {had}: a share is handed as a lab comes up; down it first")
            _settle(lab)
            return lab
        lab = begin_anew(lab)
        try:
            _bring_up(lab, plan, provider_name, progress, share or Share())
        except BaseException as error:
            if isinstance(error, Exception):  # and not that the user broke it off
                with noting_failures(error):
                    _keep_consoles(lab)
            with noting_failures(error):
                _remove(lab)
            raise
    return lab


def begin_anew(lab: Lab) -> Lab:
    """An empty run directory, in place of what was there; the caller holds the lab."""
    _remove(lab)
    lab.rundir.mkdir(mode=0o700)
    (lab.rundir / MARKER).touch(mode=0o600)
    return Lab(lab.rundir)  # the one before remembers its plan and its provider


def down(lab: Lab) -> None:
    """Take a lab down and remove its run directory. Works after any crash, and whatever its records hold; a second call
    does nothing. Raises InputError for what is no lab of minigts', which is left alone.
    """
    require_own(lab.rundir)
    with exclusive(lab.rundir):
        _remove(lab)


def restart(lab: Lab, name: str) -> None:
    """End a host or switch without asking it, start it again on its own disk and links, and configure it as it was: a
    link that was cut stays cut. Its `run:` runs again; its files are those of its disk.

    What ran on it has ended; the others run on. It need not answer for that, and may be off or paused. Raises
    EnvironmentLacks when the provider cannot do it.
    """
    if not isinstance(lab.provider, Restarts):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot start one host again")
    machine = next(each for each in lab.plan.machines if each.name == name)
    with exclusive(lab.rundir):
        record = lab.record
        hosts = {name} if isinstance(machine, Host) else set()
        lab.write(
            record.model_copy(
                update={
                    "off": record.off - {name},
                    "paused": record.paused - {name},
                    "unsettled": record.unsettled | {name},
                    "unjoined": record.unjoined | hosts,
                },
            )
        )
        lab.provider.restart(name)
        _settle(lab)
        if isinstance(machine, Host):
            software.run_commands(lab, machine)


def kill(lab: Lab, name: str) -> None:
    """Cut a host's or switch's power: it ends without being asked, though its disk is written out before, and stays off
    until `restart`. Its links carry nothing meanwhile.

    Raises EnvironmentLacks when the provider cannot do it.
    """
    if not isinstance(lab.provider, Kills):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot leave one host off")
    with exclusive(lab.rundir):
        lab.write(lab.record.model_copy(update={"off": lab.record.off | {name}}))
        lab.provider.kill(name)


def pause(lab: Lab, name: str) -> None:
    """Let no time pass for a host or switch until `resume`. What it is sent waits, as far as its ports have room.

    Raises EnvironmentLacks when the provider cannot do it.
    """
    provider = lab.provider
    if not isinstance(provider, Pauses):
        raise EnvironmentLacks(f"provider {provider.name} cannot pause one host")
    with exclusive(lab.rundir):
        lab.require_on([name])
        lab.write(lab.record.model_copy(update={"paused": lab.record.paused | {name}}))
        provider.pause(name)


def resume(lab: Lab, name: str) -> None:
    """It goes on, its clock behind by as long as it was paused. Links that were set meanwhile are set on it, too.

    Raises InputError for one that is not paused, HostFailed for one whose kernel has ended.
    """
    provider = lab.provider
    with exclusive(lab.rundir):
        if name not in lab.record.paused or not isinstance(provider, Pauses):
            raise InputError(f"{name} is not paused")
        record = lab.record.model_copy(update={"paused": lab.record.paused - {name}})
        try:
            provider.resume(name)
        except HostFailed:  # its kernel has ended meanwhile: it can be started again
            lab.write(record)
            raise
        lab.write(record.model_copy(update={"unsettled": record.unsettled | {name}}))
        links.set_ports(lab, record, [each for each in lab.plan.machines if each.name == name])
        lab.write(record)


def _settle(lab: Lab) -> None:
    """Set what has not been set to its end: machines that were started again, or whose links were being set."""
    record = lab.record
    if not record.unsettled:
        return
    unsettled = [machine for machine in lab.machines_on if machine.name in record.unsettled]
    links.set_wires(lab, record, unsettled)
    for machine in unsettled:
        configure(lab, machine)
        if isinstance(machine, Switch):
            take_step(lab, machine, "ask_controller")
    routes.wait(lab, lambda _: None)
    lab.write(record.model_copy(update={"unsettled": frozenset()}))


def refuse_long_path(rundir: Path) -> None:
    """Raises InputError for a run directory that hosts cannot do with."""
    excess = len(os.fsencode(rundir)) - LONGEST_PATH_BYTES
    if excess > 0:
        raise InputError(
            f"the run directory {rundir} has {excess} bytes more than the {LONGEST_PATH_BYTES} that hosts can do with: "
            f"choose a shorter name with --lab, or a shorter state directory by MINIGTS_STATE"
        )


def _bring_up(lab: Lab, plan: Plan, provider_name: str, progress: Progress, share: Share) -> None:
    provider = registry.make(provider_name, lab.rundir, plan.time)
    lacking = provider.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    digest = lab.write_plan(plan)
    record = Record(provider=provider_name, created=datetime.now(UTC), time=plan.time, plan_sha256=digest)
    lab.write(record.model_copy(update={"share": share}))
    _start(lab, "", progress)


def _bring_up_again(lab: Lab, progress: Progress) -> None:
    """A lab that is kept. It is so until it is up, and again when it does not come up."""
    lacking = lab.provider.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    try:
        lab.provider.down()  # what a command that was broken off has left
        (lab.rundir / CERTIFICATE).unlink(missing_ok=True)
        _start(lab, " on the disks that were kept", progress)
    except BaseException as error:
        if isinstance(error, Exception):
            with noting_failures(error):
                _keep_consoles(lab)
        with noting_failures(error):
            lab.provider.down()
        raise


def _start(lab: Lab, on: str, progress: Progress) -> None:
    provider, plan = lab.provider, lab.plan
    also = f" and {len(plan.switches)} switches" if plan.switches else ""
    progress(f"starting {len(plan.hosts)} hosts{also}{on}")
    if plan.ways_out:
        progress(f"the lab has {gateway.in_words(host.name for host in plan.ways_out)}")
    _hand(provider, lab.record.share)
    provider.up(plan, progress)
    progress("configuring addresses, routes and links")
    links.set_wires(lab, lab.record, plan.machines)
    lab.on_every_machine(lambda machine: configure(lab, machine))
    routes.wait(lab, progress)
    if links.carrier(lab) is None and (links.whole_paths(lab) or not plan.pairs):
        progress("measuring the emulator's own latency")
        links.calibrate_held(lab)
    lab.on_every_switch(lambda machine: take_step(lab, machine, "ask_controller"))
    software.bring(lab, progress)
    lab.write(lab.record.model_copy(update={"state": "up", "unsettled": frozenset()}))


def _hand(provider: Provider, share: Share) -> None:
    if isinstance(provider, Shares):
        provider.hand(share)
    elif share != Share():
        raise EnvironmentLacks(f"provider {provider.name} holds no lab to a share of the machine; uml does")


def take_step(lab: Lab, machine: Switch, step: switch.Step) -> None:
    """Of what makes a machine a switch (provision/switch.sh)."""
    links.run_script(lab.provider, machine, switch.script(lab.plan, machine, step))


def configure(lab: Lab, machine: Host | Switch) -> None:
    """A machine that has just booted: its addresses, routes and links, and what a switch does."""
    text = interfaces.script(lab.plan, machine)
    if isinstance(machine, Switch):
        links.run_script(lab.provider, machine, text)
        take_step(lab, machine, "make_switch")
        text = ""
    links.run_script(lab.provider, machine, text + links.script(lab, machine, lab.record))


def _is_up(lab: Lab, plan: Plan, provider_name: str) -> bool:
    """Whether the lab runs already. A lab that started and never finished, or lost a host, does not count.

    Raises InputError when what runs has another plan or is on another provider.
    """
    if not lab.rundir.is_dir() or not (lab.rundir / "lab.json").exists() or lab.record.state != "up":
        return False
    answers = set(lab.state_of_hosts().values()) - {"off"}
    if "answers" not in answers:
        return False
    remedy = f"minigts down {lab.name}, or choose another name with --lab NAME"
    if lab.record.provider != provider_name:
        raise InputError(f"lab {lab.name} is up on provider {lab.record.provider}, not on {provider_name}: {remedy}")
    if lab.time != plan.time:
        raise InputError(f"lab {lab.name} is up in {lab.time} time, not in {plan.time} time: {remedy}")
    if not lab.plan.makes_same_lab(plan):
        what = "hosts or links added or removed" if lab.record.altered else "another plan"
        raise InputError(f"lab {lab.name} is up with {what}: {remedy}")
    return answers == {"answers"}


def _remove(lab: Lab) -> None:
    """End what runs of the lab, then remove its run directory; the caller holds the lab."""
    require_own(lab.rundir)
    if not lab.rundir.exists():
        return
    problems: list[Exception] = []
    for provider in _possible_providers(lab):
        try:
            provider.down()
        except ExceptionGroup as error:
            problems += error.exceptions
        except (MinigtsError, OSError) as error:
            problems.append(error)
    if problems:
        raise ExceptionGroup(f"lab {lab.name} is not down", problems)
    shutil.rmtree(lab.rundir)


def _possible_providers(lab: Lab) -> list[Provider]:
    """The lab's provider; all of them when its records cannot be read, since each ends only what it recorded itself."""
    try:
        return [lab.provider]
    except MinigtsError:
        return [*registry.every(lab.rundir)]


def _keep_consoles(lab: Lab) -> None:
    """What explains a failed start outlives it, in the state directory's `failed` folder; the last one only."""
    kept = paths.state_root() / "failed" / checked_name(lab.name)
    if why_foreign(kept) is not None:
        return
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True, mode=0o700)
    (kept / MARKER).touch(mode=0o600)
    for file in _explaining(lab.rundir):
        copy = kept / file.relative_to(lab.rundir)
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(file, copy)


def _explaining(rundir: Path) -> list[Path]:
    files = (path for path in rundir.rglob("*") if path.suffix in (".log", ".json"))
    return [path for path in files if path.is_file() and not path.is_symlink()]
