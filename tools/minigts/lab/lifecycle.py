"""A lab's life: up, down, and one host started again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from minigts import paths
from minigts.dataplane import interfaces, switch
from minigts.errors import EnvironmentLacks, HostFailed, InputError, MinigtsError, noting_failures
from minigts.lab import calibration, carriers, current, link_states, links, own_kernels, provisioning, routes, trees
from minigts.lab.calibration import NothingAnswers
from minigts.lab.keep import CERTIFICATE, require_same
from minigts.lab.lab import Lab
from minigts.lab.record import KEPT, Record
from minigts.lab.rundir import MARKER, checked_name, exclusive, lab_named, require_own, why_foreign
from minigts.machine import beneath
from minigts.machine.progress import Progress
from minigts.providers import registry, supported
from minigts.providers.base import DiskFaults, OwnProcesses, Power, Provider, Restarts, Share
from minigts.topology.plan.elements import CACHED, Host, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import addresses

FLUSH_S = 120.0
MOST_KEPT = 1000
"""How many logs and records of a failed start are kept. A large lab has some hundreds."""
LONGEST_PATH_BYTES = 200
"""The longest path of a run directory. User-Mode Linux cuts the paths of a host's files below it off after 255 bytes,
and mount(8) takes no longer path. Sockets are opened through a directory, so their limit of 107 bytes does not count.
"""


def future_lab(plan: Plan, provider_name: str, name: str | None) -> Lab:
    """The lab that `plan` will be under `name` (default: the plan's name), whatever has that name now; nothing is
    changed.

    Raises InputError when the name is not valid, belongs to something that is no lab, or when the provider lacks the
    plan's time; EnvironmentLacks when the plan asks for what the provider does not support.
    """
    rundir = lab_named(plan.name if name is None else name).rundir
    require_own(rundir)
    refuse_long_path(rundir)
    provider = registry.make(provider_name, rundir, plan.time)
    supported.require(plan, provider.name, provider.supports)
    return Lab.known(rundir, plan, provider)


def up(plan: Plan, provider_name: str, name: str | None, progress: Progress, share: Share | None = None) -> Lab:
    """`bring_up` the lab that `wanted` returns; raises what the two raise."""
    return bring_up(future_lab(plan, provider_name, name), progress, share)


def bring_up(lab: Lab, progress: Progress, share: Share | None = None) -> Lab:
    """Bring up a lab that `wanted` returned; return when it is configured and shaped.

    A lab of that name that is up with the same plan on the same provider is left as it is; only machines that an
    interrupted command has left half set are set again. A kept lab comes up on its hosts' disks. On failure nothing is
    left running, and a kept lab stays kept. `share` limits what the whole lab takes of the machine; None: the share it
    had, which for a new lab is the whole machine.

    Raises InputError when another plan or provider has the name; EnvironmentLacks, HostFailed.
    """
    provisioning.require(lab.plan)
    with exclusive(lab.rundir):
        there = Lab(lab.rundir)
        record = there.read_record_if_any()
        if record is not None and record.state == KEPT:
            require_same(there, record, lab)
            lab = Lab.known(lab.rundir, there.plan, lab.provider)
            if share is not None:
                before, record = record, record.model_copy(update={"share": share})
                lab.write(record, before)
            _bring_up_again(lab, record, progress)
            return lab
        if record is not None and _is_up(there, record, lab):
            lab = Lab.known(lab.rundir, there.plan, lab.provider)
            require_share(there, record, share)
            _settle(lab, record)
            return lab
        begin_anew(there)
        try:
            _bring_up(lab, progress, share or Share())
        except BaseException as error:
            if isinstance(error, Exception):  # not when the user interrupted it
                with noting_failures(error):
                    _keep_consoles(lab)
            with noting_failures(error):
                end_and_remove(lab)
            raise
    return lab


def begin_anew(lab: Lab) -> None:
    """Make an empty run directory in place of the one that was there; the caller holds the lab's lock."""
    end_and_remove(lab)
    lab.rundir.mkdir(mode=0o700)
    (lab.rundir / MARKER).touch(mode=0o600)


def down(lab: Lab) -> None:
    """Take a lab down and remove its run directory. It works after any crash, and with damaged records; a second call
    does nothing. Raises InputError for a directory that is no lab of minigts, which is left alone.
    """
    require_own(lab.rundir)
    with exclusive(lab.rundir):
        end_and_remove(lab)


def restart(lab: Lab, name: str) -> None:
    """Kill a host or switch, start it again on its own disk and links, and configure it as it was: a link that was cut
    stays cut. Its `run:` commands run again; its files are those of its disk.

    Its processes end; other machines run on. The machine need not answer, and may be off or paused. Raises
    EnvironmentLacks when the provider cannot restart one host.
    """
    if not isinstance(lab.provider, Restarts):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot restart one host")
    own_kernels.require_of(lab.plan, name, "restart")
    machine = next(each for each in lab.plan.machines if each.name == name)
    with exclusive(lab.rundir):
        before = lab.read_record()
        hosts = {name} if isinstance(machine, Host) else set()
        record = before.model_copy(
            update={
                "off": before.off - {name},
                "paused": before.paused - {name},
                "unsettled": before.unsettled | {name},
                "unjoined": before.unjoined | hosts,
            },
        )
        lab.write(record, before)
        lab.provider.restart(name)
        _settle(lab, record)
        if isinstance(machine, Host):
            provisioning.run_commands(lab, machine)


def kill(lab: Lab, name: str, lost: int | None = None) -> None:
    """Cut a host's or switch's power: its disk is written out, it ends at once, and stays off until `restart`. Its
    links carry nothing meanwhile. With `lost`, a seed, its disk is not written out, and has of what was not flushed
    what the seed draws.

    Raises EnvironmentLacks when the provider cannot leave one host off, InputError for a host without a disk that loses
    anything.
    """
    provider = lab.provider
    if not isinstance(provider, Power):
        raise EnvironmentLacks(f"provider {provider.name} cannot leave one host off")
    own_kernels.require_of(lab.plan, name, "kill")
    if lost is not None and not (isinstance(provider, DiskFaults) and _has_cache(lab, name)):
        raise InputError(f"{name} has no disk that a power cut lets lose anything: give it `disk: {CACHED}`")
    with exclusive(lab.rundir):
        record = lab.read_record()
        if lost is not None and isinstance(provider, DiskFaults):
            record.require_on([name])
            provider.cut_power(name, lost)
        lab.write(record.model_copy(update={"off": record.off | {name}}), record)
        if lost is None:
            provider.kill(name)


def flush(lab: Lab) -> None:
    """Have hosts whose disk has a cache flush what they have, so that a power cut loses nothing of the lab's own."""
    if not any(host.disk == CACHED for host in lab.plan.hosts):
        return
    cached = [each for each in lab.machines_on(lab.read_record()) if isinstance(each, Host) and each.disk == CACHED]
    lab.work_on(cached, lambda host: lab.provider.run(host.name, ["sync"], timeout_s=FLUSH_S))


def _has_cache(lab: Lab, name: str) -> bool:
    machine = lab.plan.machine(name)
    return isinstance(machine, Host) and machine.disk == CACHED


def pause(lab: Lab, name: str) -> None:
    """Stop a host or switch until `resume`. Frames to it wait, as far as its ports have room.

    Raises EnvironmentLacks when the provider cannot pause one host.
    """
    provider = lab.provider
    if not isinstance(provider, Power):
        raise EnvironmentLacks(f"provider {provider.name} cannot pause one host")
    own_kernels.require_of(lab.plan, name, "pause")
    with exclusive(lab.rundir):
        record = lab.read_record()
        record.require_on([name])
        lab.write(record.model_copy(update={"paused": record.paused | {name}}), record)
        provider.pause(name)


def resume(lab: Lab, name: str) -> None:
    """Let a paused host or switch run on; its clock is behind by the length of the pause. Links that were set in the
    meantime are set on it, too.

    Raises InputError when it is not paused, HostFailed when its kernel has ended.
    """
    provider = lab.provider
    with exclusive(lab.rundir):
        before = lab.read_record()
        if name not in before.paused or not isinstance(provider, Power):
            raise InputError(f"{name} is not paused")
        record = before.model_copy(update={"paused": before.paused - {name}})
        try:
            provider.resume(name)
        except HostFailed:  # its kernel has ended: it can be started again
            lab.write(record, before)
            raise
        meanwhile = record.model_copy(update={"unsettled": record.unsettled | {name}})
        lab.write(meanwhile, before)
        links.set_what_differs(lab, record, lab.plan.machine(name))
        lab.write(record, meanwhile)


def _settle(lab: Lab, record: Record) -> None:
    """Configure machines that were restarted, or on which setting links was interrupted. Random numbers that such a
    machine itself draws for its links are those of another setting; the wires' go on."""
    if not record.unsettled:
        return
    unsettled = [machine for machine in lab.machines_on(record) if machine.name in record.unsettled]
    before, record = record, record.counting(links.redrawn_directions(lab, record, unsettled))
    if record != before:
        lab.write(record, before)
    links.set_wires(lab, record, unsettled)
    for machine in unsettled:
        configure(lab, machine, record)
        if isinstance(machine, Switch):
            take_step(lab, machine, "ask_controller")
    routes.wait(lab, record, lambda _: None)
    trees.wait(lab, record, lambda _: None)
    lab.write(record.model_copy(update={"unsettled": frozenset()}), record)


def refuse_long_path(rundir: Path) -> None:
    """Raises InputError for a run directory whose path is too long for hosts."""
    excess = len(os.fsencode(rundir)) - LONGEST_PATH_BYTES
    if excess > 0:
        raise InputError(
            f"the path of run directory {rundir} is {excess} bytes longer than the {LONGEST_PATH_BYTES} that hosts "
            f"allow: choose a shorter name with --lab, or a shorter state directory by MINIGTS_STATE"
        )


def require_parts(provider: Provider) -> None:
    """Raises EnvironmentLacks with all that this machine lacks for labs of the provider, such as a system package."""
    if lacking := provider.missing():
        raise EnvironmentLacks("\n".join(lacking))


def _bring_up(lab: Lab, progress: Progress, share: Share) -> None:
    plan, provider = lab.plan, lab.provider
    require_parts(provider)
    digest, created = lab.write_plan(plan), datetime.now(UTC)
    record = Record(provider=provider.name, created=created, time=plan.time, plan_sha256=digest, share=share)
    lab.write(record)
    _start(lab, record, "", progress)


def _bring_up_again(lab: Lab, record: Record, progress: Progress) -> None:
    """Bring up a kept lab. Its record says `kept` until it is up, so it stays kept when it does not come up."""
    require_parts(lab.provider)
    try:
        lab.provider.down()  # ends what an interrupted command has left running
        (lab.rundir / CERTIFICATE).unlink(missing_ok=True)
        going_on = record.counting(
            current.drawing(lab.plan, record)
        )  # so that it does not lose what it has lost before
        _start(lab, going_on, " on the disks that were kept", progress)
    except BaseException as error:
        if isinstance(error, Exception):
            with noting_failures(error):
                _keep_consoles(lab)
        with noting_failures(error):
            lab.provider.down()
        raise


def _start(lab: Lab, record: Record, on: str, progress: Progress) -> None:
    provider, plan = lab.provider, lab.plan
    also = f" and {len(plan.switches)} switches" if plan.switches else ""
    progress(f"starting {len(plan.hosts)} hosts{also}{on}")
    if plan.ways_out:
        progress(f"the lab has {addresses.gateway_in_words(host.name for host in plan.ways_out)}")
    _hand(provider, record.share)
    provider.up(plan, progress)
    progress("configuring addresses, routes and links")
    links.set_wires(lab, record, plan.machines, anew=True)
    on_now = lab.machines_on(record)
    lab.work_through(on_now, lambda machine: configure(lab, machine, record))
    routes.wait(lab, record, progress)
    trees.wait(lab, record, progress)
    calibrated = record
    if current.link_carrier(lab) is None and (link_states.whole_paths(plan, record) or not plan.pairs):
        progress("measuring the emulator's own latency")
        try:
            calibrated = calibration.calibrated_record(lab, record)
        except NothingAnswers as error:  # as the hosts' own settings may have it
            progress(f"nothing is subtracted from the delays: {error}")
    switches = [machine for machine in on_now if isinstance(machine, Switch)]
    lab.work_on(switches, lambda machine: take_step(lab, machine, "ask_controller"))
    provisioning.bring(lab, progress)
    lab.write(calibrated.model_copy(update={"state": "up", "unsettled": frozenset()}), calibrated)


def _hand(provider: Provider, share: Share) -> None:
    if isinstance(provider, OwnProcesses):
        provider.limit_to(share)
    elif share != Share():
        raise EnvironmentLacks(f"provider {provider.name} holds no lab to a share of the machine; uml does")


def take_step(lab: Lab, machine: Switch, step: switch.Step) -> None:
    """Run one step of provision/switch.sh on a switch."""
    links.run_script(lab.provider, machine, switch.script(lab.plan, machine, step))


def configure(lab: Lab, machine: Host | Switch, record: Record) -> None:
    """Set addresses, routes and links of a machine that has just booted; make it a switch if it is one."""
    text = interfaces.script(lab.plan, machine)
    if isinstance(machine, Switch):
        links.run_script(lab.provider, machine, text)
        take_step(lab, machine, "make_switch")
        text = ""
    links.run_script(lab.provider, machine, text + links.script(lab, machine, record))
    carriers.set_carriers(lab, record, [machine])


def _is_up(there: Lab, record: Record, wanted: Lab) -> bool:
    """Whether lab `there`, whose record this is, runs already. It does not when it never finished starting, or when a
    host does not answer.

    Raises InputError when it runs with another plan, time or provider than `wanted`.
    """
    answers = states_of_running(there, record)
    if not answers:
        return False
    require_provider(there, record, wanted)
    remedy = _remedy(there)
    if there.time != wanted.time:
        raise InputError(f"lab {there.name} is up in {there.time} time, not in {wanted.time} time: {remedy}")
    if record.becoming or not there.plan.makes_same_lab(wanted.plan):
        what = "hosts or links added or removed" if record.altered else "another plan"
        raise InputError(f"lab {there.name} is up with {what}: {remedy}")
    return set(answers.values()) == {"answers"}


def states_of_running(there: Lab, record: Record) -> dict[str, str]:
    """`state_of_hosts` of the hosts and switches that are meant to run now; empty where none answers, or the lab never
    finished starting."""
    if record.state != "up":
        return {}
    states = {name: state for name, state in there.state_of_hosts(record).items() if name not in record.silent}
    return states if "answers" in states.values() else {}


def require_provider(there: Lab, record: Record, wanted: Lab) -> None:
    """Raises InputError when lab `there` is up on another provider than `wanted`."""
    on, wanted_on = record.provider, wanted.provider.name
    if on != wanted_on:
        raise InputError(f"lab {there.name} is up on provider {on}, not on {wanted_on}: {_remedy(there)}")


def require_share(there: Lab, record: Record, share: Share | None) -> None:
    """Raises InputError when a lab that is up has another share of the machine than `share`; None fits any."""
    if share not in (None, record.share):
        had = record.share.in_words or "no share of its own"
        raise InputError(f"lab {there.name} is up with {had}: a share is set as a lab comes up; take it down first")


def _remedy(there: Lab) -> str:
    return f"minigts down {there.name}, or choose another name with --lab NAME"


def end_and_remove(lab: Lab) -> None:
    """End the lab's processes, then remove its run directory; the caller holds the lab's lock."""
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
    paths.remove_tree(lab.rundir)


def _possible_providers(lab: Lab) -> list[Provider]:
    """The lab's provider; all providers when its records cannot be read, since each ends only what it has recorded."""
    try:
        return [lab.provider]
    except MinigtsError:
        return [*registry.every(lab.rundir)]


def _keep_consoles(lab: Lab) -> None:
    """Copy the logs of a failed start to the state directory's `failed` folder, in place of the previous failure's."""
    kept = paths.state_root() / "failed" / checked_name(lab.name)
    if why_foreign(kept) is not None:
        return
    paths.remove_tree(kept)
    kept.mkdir(parents=True, mode=0o700)
    (kept / MARKER).touch(mode=0o600)
    for file in _explaining(lab.rundir):
        copy = kept / file
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(OSError):  # what is no plain file
            copy.write_bytes(beneath.end_of(lab.rundir, str(file)))


def _explaining(rundir: Path) -> Iterator[Path]:
    """The first MOST_KEPT logs and records below the run directory. Kernels may write to some folders there."""
    names = (Path(place, name) for place, _, names in os.walk(rundir) for name in sorted(names))
    found = (path.relative_to(rundir) for path in names if path.suffix in (".log", ".json"))
    return itertools.islice(found, MOST_KEPT)
