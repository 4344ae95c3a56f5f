"""Starts a lab's supervisor and waits until its kernels answer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from minigts import paths
from minigts.errors import HostFailed, MinigtsError
from minigts.machine import cgroups, shell
from minigts.machine.parallel import resting
from minigts.machine.progress import Progress
from minigts.providers.agent import client, ended, lab_processes
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.run import command_line, console
from minigts.providers.uml.run.supervisor import Launch

BOOT_DEADLINE_S = 60.0
FORK_DEADLINE_S = 120.0
CONSOLE_LINES = 12


def start(
    rundir: Path,
    launch: Launch,
    *,
    ends_with_caller: bool = False,
    on_disks: bool = False,
    groups: Sequence[Path] = (),
) -> None:
    """Start the supervisor, detached, which starts every kernel; do not wait for them.

    They outlive this process, or, with `ends_with_caller`, end with the calling thread. Remains of an earlier start in
    the run directory are removed, since its sockets could be taken for the new ones; with `on_disks` the machines'
    disks are kept and used. All processes are in the control groups `groups`.
    """
    lab_processes.end(rundir)
    for directory in ("shared", "paused", "consoles", "again"):
        paths.remove_tree(rundir / directory)
    ended.forget_all(rundir)
    if on_disks:
        _clear_but_disks(rundir, launch)
    else:
        paths.remove_tree(rundir / "hosts")
    for machine in launch.machines:
        (rundir / "hosts" / machine.name).mkdir(parents=True, exist_ok=True)
    launch.write(rundir / lab_processes.LAUNCH)
    owner = [str(os.getpid())] if ends_with_caller else []
    with ExitStack() as stack, (rundir / "supervisor.log").open("ab") as log:
        members = [cgroups.join(group) for group in groups]
        for member in members:
            stack.callback(os.close, member)
        shell.start(
            [sys.executable, "-m", "minigts.providers.uml.run.supervisor", str(rundir), *owner],
            output=log.fileno(),
            env={"PYTHONPATH": str(paths.import_root()), lab_processes.MARK: str(rundir)},
            before_exec=partial(_enter, members),
        )


def _enter(members: Sequence[int]) -> None:
    for member in members:
        cgroups.enter(member)


def _clear_but_disks(rundir: Path, launch: Launch) -> None:
    disks = {(rundir / machine.disk).parent for machine in launch.machines}
    for path in rundir.glob("hosts/*/*"):
        if path not in disks:
            paths.remove_tree(path)


def wait(provider: AgentProvider, names: Sequence[str], progress: Progress) -> None:
    """Return when every host has answered. Raises HostFailed for the first that does not within the deadline."""
    deadline = time.monotonic() + BOOT_DEADLINE_S
    for count, name in enumerate(names, 1):
        with resting():  # booting takes the lab's time, and an answer makes this thread busy again
            _wait_for(provider, name, deadline)
        progress(f"{count} of {len(names)} hosts answer")


def wait_for_fork(provider: AgentProvider, names: Sequence[str]) -> None:
    """Return when a fork's supervisor holds the lines to these hosts; nothing happens on the hosts. Raises
    HostFailed."""
    deadline = time.monotonic() + FORK_DEADLINE_S
    for name in names:
        try:
            _wait_for_socket(provider.rundir, name, deadline)
        except HostFailed as error:
            said = (provider.rundir / "supervisor.log").read_text(errors="replace").strip()
            raise HostFailed(said[-2000:] or str(error)) from error


def wait_with_a_turn(provider: AgentProvider, name: str, until_up: Callable[[], None]) -> None:
    """As `wait` for one host, by a thread whose turn stops the lab's time: no time passes until the kernel is started,
    and then only in `until_up`, which returns at a moment when the host has come up."""
    _wait_for(provider, name, time.monotonic() + BOOT_DEADLINE_S, until_up)


def console_tail(rundir: Path, name: str, lines: int = CONSOLE_LINES) -> str:
    """The last lines of a host's console; after a panic the first ones from it on, since a long call trace follows."""
    try:
        text = paths.read_whole(rundir / command_line.console(name), 2 * console.MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    shown = text.splitlines()
    panic = next((index for index, line in enumerate(shown) if "Kernel panic" in line), len(shown) - lines)
    return "\n".join(shown[max(0, panic) :][:lines])


def _wait_for(provider: AgentProvider, name: str, deadline: float, until_up: Callable[[], None] = lambda: None) -> None:
    try:
        _wait_for_socket(provider.rundir, name, deadline)
        until_up()
        # The host sees this limit, so it must not depend on how fast this machine is.
        provider.run(name, ["true"], timeout_s=BOOT_DEADLINE_S - client.GRACE_S)
    except MinigtsError as error:
        raise HostFailed(_describe(provider.rundir, name, str(error))) from error


def _wait_for_socket(rundir: Path, name: str, deadline: float) -> None:
    """Wait for a host's socket, which exists once its kernel has started; requests wait in it until it has booted.
    Raises HostFailed."""
    while not (rundir / "hosts" / name / paths.CONTROL_SOCKET).exists():
        if lab_processes.has_started(rundir) and lab_processes.supervisor(rundir) is None:
            raise HostFailed("the lab's supervisor has ended")
        if time.monotonic() > deadline:
            raise HostFailed("its kernel was not started")
        time.sleep(0.01)


def _describe(rundir: Path, name: str, reason: str) -> str:
    said = console_tail(rundir, name) or (rundir / "supervisor.log").read_text(errors="replace")[-2000:]
    shown = "".join(f"\n    {line}" for line in said.splitlines())
    return f"host {name} did not come up ({reason}); the end of its console:{shown or ' nothing'}"
