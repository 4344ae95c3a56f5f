"""`minigts exec`: a command on hosts."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.containers import container_entry, is_pod, measuring_entries
from minigts.cli.options import AsJson, Inside, LabName, lab_with, opened_lab
from minigts.cli.verbs import LABS, Verb
from minigts.errors import CommandTimeout, HostFailed, InputError, MinigtsError
from minigts.foreign import Foreign, content, screen_text

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.providers.base import CommandResult

verb = Verb(LABS, 180)

DAY_S = 86_400.0


@verb.command(context_settings={"allow_interspersed_args": False})
def execute(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[HOST] COMMAND...",
            help="A host or pod, unless --all; the command and its arguments.",
            autocompletion=completion.host_or_nothing,
        ),
    ],
    lab: LabName = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Run on all hosts at once; name no host.")] = False,
    container: Inside = False,
    timeout: Annotated[float, typer.Option(help="Seconds after which the command is ended; exit 124.")] = DAY_S,
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Pass standard input to the command.")] = False,
    terminal: Annotated[bool, typer.Option("--terminal", "-t", help="Run on this terminal, as a shell does.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a command on a host, and exit with its exit code. Options go before the host.

    With --all it runs on every host at once: each line of output begins with its host's name, and the exit code is the
    highest of all. With --container it runs in a container. In a cluster of Kubernetes pod/NAME is a pod of the
    namespace default, pod/NAMESPACE/NAME of another, with :CONTAINER where it is not to be the first.

    Example:  minigts exec ams -- ping -c 3 bra

    Example:  minigts exec pod/web-0 -- ip address

    Example:  minigts exec --all -- ip -brief address
    """
    from minigts.lab import provisioning

    named, command = ("", words) if every else (words[0], words[1:])
    command = command[1:] if command[:1] == ["--"] else command
    if not command or command[0].startswith("-"):
        raise InputError("exec: options go before the host, the command after it: minigts exec HOST -- ip address")
    container = container or is_pod(named)
    opened = opened_lab(lab) if every or container else lab_with(named, lab)
    hosts = [host.name for host in opened.plan.hosts] if every else [named]
    prefixes = measuring_entries(opened, hosts) if container and every else {}
    if container and not every:
        named, prefixes = container_entry(opened, named)

    def argv_on(host: str) -> Sequence[str]:
        return [*prefixes[host], *command] if container else provisioning.environment_command(opened, host, command)

    def run(host: str, show: Callable[[bytes], None] | None) -> CommandResult:
        return opened.provider.run(host, argv_on(host), timeout_s=timeout, check=False, stdin=given, on_output=show)

    if terminal:
        if every or as_json:
            raise InputError("exec --terminal: only one host can have the terminal, and its output is no JSON")
        raise typer.Exit(opened.provider.attach(named, argv_on(named)))
    given = sys.stdin.buffer.read() if stdin else b""
    if every:
        raise typer.Exit(_on_all(opened, run, timeout, as_json=as_json))
    try:
        with _parting(opened, named), _hearing(opened, named) as hear_why:
            result = run(named, None if as_json else console.pass_on)
            hear_why(result)
    except CommandTimeout as error:
        console.note(f"minigts: ended after {timeout:g} s")
        raise typer.Exit(error.code) from error
    if as_json:
        console.print_json(_as_data(result))
    _advise(opened, named, command, result, in_container=container)
    raise typer.Exit(result.code)


PARTING_S = 1


@contextmanager
def _parting(lab: Lab, host: str) -> Iterator[None]:
    """Let a second of the lab pass after its command was interrupted, in virtual time, which stands when nobody waits:
    the ends of its connections then know of it, and a server, such as iperf3's, takes the next one."""
    try:
        yield
    except KeyboardInterrupt:
        if lab.time == "virtual":
            with suppress(MinigtsError):
                lab.provider.run(host, ["sleep", str(PARTING_S)], timeout_s=2 * PARTING_S, check=False)
        raise


def _as_data(result: CommandResult) -> dict[str, object]:
    """For --json, whose reader has asked for the command's output."""
    return asdict(result) | {"stdout": content(result.stdout), "stderr": content(result.stderr)}


NOT_FOUND, KILLED = 127, 128 + signal.SIGKILL
ADVICE = "/usr/lib/command-not-found"
"""A program of the hosts' image: it prints which key of the topology file brings a program that the host lacks."""
ADVICE_TIMEOUT_S = 20.0

BLANKS, FOR_A_SHELL = re.compile(r"\s"), re.compile(r"[|&;<>$`*?~(){}\n]")


def _advise(lab: Lab, host: str, command: Sequence[str], result: CommandResult, *, in_container: bool) -> None:
    """Advise a user whose command does not exist: on a whole command line as one word, as for a shell, or on what
    brings the program."""
    (first, *others) = command
    if result.code != NOT_FOUND:
        return
    if not others and BLANKS.search(first.strip()):
        _advise_words(host, first)
    elif "/" not in first and _says_missing(first, result.stderr):
        _advise_program(lab, host, first, in_container=in_container)


def _advise_words(host: str, first: str) -> None:
    better = f"sh -c {shlex.quote(first)}" if FOR_A_SHELL.search(first) else first.strip()
    console.note(f"minigts: exec takes a command as separate words, without a shell: minigts exec {host} -- {better}")


def _advise_program(lab: Lab, host: str, name: str, *, in_container: bool) -> None:
    if in_container:
        console.note(
            f"minigts: a container has the programs of its image; a host has more: minigts exec {host} -- {name}"
        )
        return
    with suppress(MinigtsError):  # a host without this image has no advice
        advice = lab.provider.run(host, [ADVICE, "--", name], timeout_s=ADVICE_TIMEOUT_S, check=False)
        if advice.code == NOT_FOUND and advice.stderr.startswith(name):
            console.note(f"minigts: {screen_text(advice.stderr.strip())}")


def _says_missing(name: str, stderr: Foreign) -> bool:
    """Whether that is the message of the agent, of env or of nsenter about a program that does not exist."""
    said = (f"{name}: ", f"env: ‘{name}’: ", f"nsenter: failed to execute {name}: ")
    return stderr.startswith(said) and "No such file or directory" in stderr


LOOK_S = 1.0
"""How often the messages of the host's kernel are read, in seconds of this machine's clock."""

MOST_TOLD = 3
"""How many processes with the same message are named; the others are counted."""

LAST_WORDS_S = 2.0
"""How long to wait for a kernel's message about a process that it has killed, in seconds: such messages come tenths of
a second late."""


@contextmanager
def _hearing(lab: Lab, host: str) -> Iterator[Callable[[CommandResult], None]]:
    """Within the context, report each process of the host whose processor time stops being free, and each that the
    host's kernel kills because memory has run out. Yields a function that waits for such a report if the command was
    killed."""
    heard = _heard(lab, host)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            for each in heard:
                each.tell()

    watcher = threading.Thread(target=watch, daemon=True)

    def hear_why(result: CommandResult) -> None:
        until = time.monotonic() + (LAST_WORDS_S if result.code == KILLED else 0)
        while heard and time.monotonic() < until and not any(each.is_new() for each in heard):
            time.sleep(LAST_WORDS_S / 20)

    if heard:
        watcher.start()
    try:
        yield hear_why
    finally:
        over.set()
        if heard:
            watcher.join()
        for each in heard:
            each.tell()
            each.count_others()


def _heard(lab: Lab, host: str) -> list[_Heard]:
    """The kinds of messages that the lab's provider can read from the host's kernel."""
    from minigts.providers.base import HearsOfComputing, HearsOfMemory

    provider, heard = lab.provider, []
    if isinstance(provider, HearsOfComputing):
        computes = f"{{}} on {host} has computed for 10 s of processor time without a call to its kernel: "
        passes = "from now on each such second takes a second of the lab's time"
        heard.append(_Heard(partial(provider.computing, host), computes + passes))
    if isinstance(provider, HearsOfMemory):
        memory_mb = lab.plan.machine(host).memory_mb
        ended = f"the kernel of {host} has killed {{}}, because its memory of {memory_mb} MB has run out"
        heard.append(_Heard(partial(provider.memory_kills, host), ended))
    return heard


@dataclass
class _Heard:
    """Processes about which a kernel gives the same message, without those of earlier commands; `sentence` is printed
    for each of the first."""

    programs: Callable[[], tuple[str, ...]]
    sentence: str
    known: int = 0
    told: int = 0

    def __post_init__(self) -> None:
        self.known = len(self.programs())

    def is_new(self) -> bool:
        """Whether a process was reported since the command began."""
        return self.told > 0 or len(self.programs()) > self.known

    def tell(self) -> None:
        found = self.programs()
        for program in found[self.known :]:
            self.told += 1
            if self.told <= MOST_TOLD:
                console.note(f"minigts: {self.sentence.format(program)}")
        self.known = max(self.known, len(found))

    def count_others(self) -> None:
        if self.told > MOST_TOLD:
            console.note(f"minigts: the same is true of {self.told - MOST_TOLD} further processes")


def _on_all(
    lab: Lab, run: Callable[[str, Callable[[bytes], None] | None], CommandResult], timeout: float, *, as_json: bool
) -> int:
    """Run the command on all hosts at once; return the highest of their exit codes. A host that fails does not stop the
    others."""
    lines = console.HostLines([host.name for host in lab.plan.hosts])
    results: dict[str, dict[str, object]] = {}

    def one(host: str) -> int:
        try:
            result = run(host, None if as_json else partial(lines.take, host))
        except CommandTimeout as error:
            console.note(f"minigts: {host}: ended after {timeout:g} s")
            results[host] = {"host": host, "problem": f"ended after {timeout:g} s"}
            return error.code
        except HostFailed as error:
            console.note(f"minigts: {error}")
            results[host] = {"host": host, "problem": str(error)}
            return error.exit_code
        finally:
            lines.end(host)
        results[host] = _as_data(result)
        return result.code

    with _interrupted_at_once():
        codes = lab.work_on_hosts(lambda host: one(host.name))
    if as_json:
        console.print_json([results[host] for host in codes])
    return max(codes.values())


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Within the context, ctrl-c ends this process at once, since a thread that waits for a host cannot be woken. The
    connections end with the process, and the commands with their connections.

    Only for work that leaves nothing to clean up.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        console.note("minigts: interrupted")
        os._exit(128 + number)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
