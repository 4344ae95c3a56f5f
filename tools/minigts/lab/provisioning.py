"""Files that a topology copies to hosts, commands that it runs there, and the environment that it sets. Packages are in
the image that a host starts from, so the provider installs them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Event

from minigts import paths
from minigts.errors import CommandFailed, CommandTimeout, HostFailed, InputError, MinigtsError, Problem, reading_from
from minigts.foreign import Foreign, content, path_there, screen_text
from minigts.lab.lab import Lab
from minigts.machine.progress import Progress
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.software import PLACE, Command, File, Software
from minigts.topology.user_files import FileRefused, digest

RUN_TIMEOUT_S = 300.0
"""Time limit of each command, in seconds of the lab's clock."""
STEP_TIMEOUT_S = 60.0
OUTPUT = "run"
"""The folder in the run directory with the commands' output: `run/ams-1.log` is of the first command of host ams."""
SHOWN_LINES = 12
RUNNING = "/run/minigts-{lab}-{host}.runs"
"""The file on a host with the process group of the command that runs now. Its name has lab and host in it, since hosts
may share a file system. In virtual time none do, and the lab is left out: its name has the id of a process in it, and
hosts would be told other bytes in each run."""
RUN_LOGGED = """
trap : TERM
log=$1 running=$2
shift 2
echo $$ >"$running"
"$@" </dev/null >"$log" 2>&1 && code=0 || code=$?
rm -f "$running"
tail -c 1000000 "$log"
exit $code
"""
"""A script for `sh -euc` with the arguments LOG, RUNNING and a command's words: it runs the command with its output to
the log. Background processes of the command keep writing there."""
END = """
read -r group <"$1"
case $group in "" | 1 | *[!0-9]*) exit 1 ;; esac
kill -s TERM -- "-$group"
"""
"""A script for `sh -euc` with the argument RUNNING: it ends the command's process group. RUN_LOGGED prints the log."""


def require(plan: Plan) -> None:
    """Raise InputError unless every file that is copied to hosts is as it was when the plan was made."""
    require_files(plan.hosts)


def require_files(hosts: Iterable[Host]) -> None:
    """As `require`, of these hosts."""
    files = {(file.source, file.sha256): file for host in hosts for file in _of(host).files}
    problems = [problem for file in files.values() if (problem := _problem(file)) is not None]
    if problems:
        raise InputError(problems)


def bring(lab: Lab, progress: Progress) -> None:
    """Copy files to hosts, then run commands, on all hosts in parallel. Raises HostFailed, InputError."""
    with_files = [host for host in lab.plan.hosts if _of(host).files]
    with_commands = [host for host in lab.plan.hosts if _of(host).run]
    if with_files:
        progress(f"copying files to {_hosts(with_files)}")
        lab.work_on(with_files, partial(copy_files, lab))
    if with_commands:
        progress(f"running the commands of {_hosts(with_commands)}")
        _run_side_by_side(lab, with_commands)


def _run_side_by_side(lab: Lab, hosts: Sequence[Host]) -> None:
    """Run the hosts' commands in parallel. The first that fails ends the other hosts', which may wait for it."""
    failed = Event()

    def run(host: Host) -> None:
        try:
            run_commands(lab, host, failed)
        except BaseException:
            if failed.is_set():
                return  # it was ended: the first error says what is wrong
            failed.set()
            for other in (each for each in hosts if each != host):
                with contextlib.suppress(MinigtsError):  # a host on which no command runs now
                    argv = ["sh", "-euc", END, "sh", _running(lab, other)]
                    lab.provider.run(other.name, argv, timeout_s=STEP_TIMEOUT_S)
            raise

    lab.work_on(hosts, run)


def run_commands(lab: Lab, host: Host, stop: Event | None = None) -> None:
    """Run the host's `run:` commands one after the other, until one fails. Raises HostFailed. No command is begun once
    `stop` is set."""
    software = _of(host)
    for number, command in enumerate(software.run, 1):
        if stop is not None and stop.is_set():
            return
        log = f"/var/log/run-{number}.log"
        words = software.wrap(("sh", "-ec", command.text))
        argv = ("sh", "-euc", RUN_LOGGED, "sh", log, _running(lab, host), *words)
        try:
            result = lab.provider.run(host.name, argv, timeout_s=RUN_TIMEOUT_S, check=False)
        except CommandTimeout:
            said = _tail(lab, host, number)
            _keep(lab, host, number, command, said)
            ended = f"was ended after {RUN_TIMEOUT_S:g} s: write & after a command that should keep running"
            raise HostFailed(_describe(host, command, ended, said)) from None
        _keep(lab, host, number, command, result.stdout + result.stderr)
        if result.code != 0:
            ended = f"ended with code {result.code}"
            raise HostFailed(_describe(host, command, ended, result.stdout + result.stderr))


def _running(lab: Lab, host: Host) -> str:
    return RUNNING.format(lab=lab.name if lab.time == "real" else "lab", host=host.name)


def environment_command(lab: Lab, host: str, argv: Sequence[str]) -> tuple[str, ...]:
    """The command `argv` with the environment that the topology sets on `host`."""
    return _software(lab, host).wrap(tuple(argv))


def environment_of(lab: Lab, host: str) -> tuple[str, ...]:
    """`NAME=value` of each variable that the topology sets on a host or switch."""
    return _software(lab, host).assignments


def shell_argv(lab: Lab, host: str) -> tuple[str, ...]:
    """The command of a login shell. A login shell sets PATH itself, so the environment is set inside it."""
    software = _software(lab, host)
    assignments = software.assignments
    if software.root is not None:
        return software.wrap(("sh", "-l"))
    if not assignments:
        return ("bash", "-l")
    return ("bash", "-lc", 'export "$@"; exec bash -i', "bash", *assignments)


def place(lab: Lab, host: str, path: PurePosixPath) -> PurePosixPath:
    """Where a path lies on a host, as whoever works there writes it: in a root of the user's own, links followed."""
    if _software(lab, host).root is None:
        return path
    said = lab.provider.run(host, [PLACE, "place", str(path)], timeout_s=STEP_TIMEOUT_S).stdout
    with reading_from(host, f"where it says that {path} is"):
        return path_there(said.removesuffix("\n"))


def _software(lab: Lab, name: str) -> Software:
    return next((_of(host) for host in lab.plan.hosts if host.name == name), Software())


def _of(host: Host) -> Software:
    return host.software or Software()


def _hosts(hosts: Sequence[Host]) -> str:
    return hosts[0].name if len(hosts) == 1 else f"{len(hosts)} hosts"


def _problem(file: File) -> Problem | None:
    """Why a file cannot be copied now, with its place in the topology; None when it can."""
    try:
        found = digest(Path(file.source))
    except FileRefused as problem:
        reason = f"{file.source} {problem}"
    else:
        if found == file.sha256:
            return None
        reason = f"{file.source} is not what it was when the plan was made"
    return Problem(file.place.file, file.place.line, f"{file.place.path}.source: {reason}")


def copy_files(lab: Lab, host: Host) -> None:
    """Copy the topology's files to one host. Raises HostFailed."""
    for file in _of(host).files:
        try:
            target = place(lab, host.name, PurePosixPath(file.target))
            lab.provider.put(host.name, Path(file.source), target)
            if file.mode is not None:
                lab.provider.run(host.name, ["chmod", f"{file.mode:o}", str(target)], timeout_s=STEP_TIMEOUT_S)
        except CommandFailed as error:
            said = _indented(error.err.splitlines())
            raise HostFailed(
                f"{file.place}: on host {host.name} {file.source} could not be copied to {file.target}{said}"
            ) from error


def _tail(lab: Lab, host: Host, number: int) -> Foreign:
    try:
        argv = ["tail", "-c", "1000000", f"/var/log/run-{number}.log"]
        return lab.provider.run(host.name, argv, timeout_s=STEP_TIMEOUT_S).stdout
    except MinigtsError:
        return Foreign()


def _keep(lab: Lab, host: Host, number: int, command: Command, said: Foreign) -> None:
    directory = lab.rundir / OUTPUT
    directory.mkdir(mode=0o700, exist_ok=True)
    text = "".join(f"# {line}\n" for line in (str(command.place), *command.text.splitlines()))
    paths.write_whole(directory / f"{host.name}-{number}.log", f"{text}{content(said)}")


def _describe(host: Host, command: Command, ended: str, said: Foreign) -> str:
    first, *others = command.text.strip().splitlines()
    last = _indented(said.splitlines()[-SHOWN_LINES:]) or "; it said nothing"
    return f"{command.place}: on host {host.name} `{first}{' …' if others else ''}` {ended}{last}"


def _indented(lines: Iterable[Foreign]) -> str:
    return "".join(f"\n    {screen_text(line)}" for line in lines)
