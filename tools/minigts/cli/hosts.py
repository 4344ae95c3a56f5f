"""The verbs that work in a lab's hosts: commands, shells, files, logs."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from minigts import paths
from minigts.cli import known, screen
from minigts.cli.app import app
from minigts.cli.labs import LABS, AsJson, Host, LabName, lab_with, one_of
from minigts.errors import CommandTimeout, HostFailed, InputError

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.files import There
    from minigts.overlays import Endpoint
    from minigts.providers.base import Result

DAY_S = 86_400.0

Inside = Annotated[
    bool,
    typer.Option(
        "--container",
        "-c",
        help="In a container: for HOST write the name of one of the topology's, as in web or web.ams; or a host, for "
        "the overlay's measuring container there.",
    ),
]


@app.command("exec", rich_help_panel=LABS, context_settings={"allow_interspersed_args": False})
def execute(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[HOST] COMMAND...",
            help="A host, unless --all; the command, its arguments.",
            autocompletion=known.host_or_nothing,
        ),
    ],
    lab: LabName = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="On all hosts side by side; name no host.")] = False,
    container: Inside = False,
    timeout: Annotated[float, typer.Option(help="Seconds until it is ended; exit 124.")] = DAY_S,
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Hand it what comes in on standard input.")] = False,
    terminal: Annotated[bool, typer.Option("--terminal", "-t", help="On this terminal, as a shell is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a command on a host; ends with the command's exit code. Options go before the host.

    With --all it runs on every host at once: each line of output begins with its host's name, and the exit code is the
    highest of all. With --container it runs where the overlay's measurements do.

    Example:  minigts exec ams -- ping -c 3 bra

    Example:  minigts exec --all -- ip -brief address
    """
    from minigts.lab import software

    named, command = ("", words) if every else (words[0], words[1:])
    command = command[1:] if command[:1] == ["--"] else command
    if not command or command[0].startswith("-"):
        raise InputError("exec: options go before the host, a command behind it: minigts exec HOST -- ip address")
    opened = opened_lab(lab) if every or container else lab_with(named, lab)
    hosts = [host.name for host in opened.plan.hosts] if every else [named]
    prefixes = _into_containers(opened, hosts) if container and every else {}
    if container and not every:
        named, prefixes = _into_container(opened, named)

    def argv_on(host: str) -> Sequence[str]:
        return [*prefixes[host], *command] if container else software.in_environment(opened, host, command)

    def run(host: str, show: Callable[[bytes], None] | None) -> Result:
        return opened.provider.run(host, argv_on(host), timeout_s=timeout, check=False, stdin=given, on_output=show)

    if terminal:
        if every or as_json:
            raise InputError("exec --terminal: one host has the terminal, and its output is no JSON")
        raise typer.Exit(opened.provider.attach(named, argv_on(named)))
    given = sys.stdin.buffer.read() if stdin else b""
    if every:
        raise typer.Exit(_on_all(opened, run, timeout, as_json=as_json))
    try:
        with _hearing(opened, named) as hear_why:
            result = run(named, None if as_json else screen.pass_on)
            hear_why(result)
    except CommandTimeout as error:
        screen.note(f"minigts: ended after {timeout:g} s")
        raise typer.Exit(error.code) from error
    if as_json:
        screen.print_json(asdict(result))
    _advise_words(named, command, result)
    raise typer.Exit(result.code)


NOT_FOUND, KILLED = 127, 128 + signal.SIGKILL
BLANKS, FOR_A_SHELL = re.compile(r"\s"), re.compile(r"[|&;<>$`*?~(){}\n]")


def _advise_words(host: str, command: Sequence[str], result: Result) -> None:
    """Of a command line that was handed over as one word, as a shell would take it."""
    (first, *others) = command
    if result.code != NOT_FOUND or others or not BLANKS.search(first.strip()):
        return
    better = f"sh -c {shlex.quote(first)}" if FOR_A_SHELL.search(first) else first.strip()
    screen.note(f"minigts: a command is words here, and no shell parts them: minigts exec {host} -- {better}")


LOOK_S = 1.0
"""How often it is looked, by this machine's clock, what the host's kernel has said."""
MOST_TOLD = 3
"""Of programs of which it says the same, so many are named, and the others are counted."""
LAST_WORDS_S = 2.0
"""What a kernel says of a program that it ends comes here tenths of a second later; so long it is waited for."""


@contextmanager
def _hearing(lab: Lab, host: str) -> Iterator[Callable[[Result], None]]:
    """Say within it, as soon as it is so, of each program of the host that its processor time is no longer free, and
    which ones its kernel has ended for want of memory. Gives what waits for a word of that, if it was killed."""
    heard = _heard(lab, host)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            for each in heard:
                each.tell()

    watcher = threading.Thread(target=watch, daemon=True)

    def hear_why(result: Result) -> None:
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
    """What the lab's provider hears of its kernels."""
    from minigts.providers.base import HearsOfComputing, HearsOfMemory

    provider, heard = lab.provider, []
    if isinstance(provider, HearsOfComputing):
        computes = f"{{}} on {host} has computed for 10 s of processor time without a call to its kernel: "
        passes = "from now on a second of that is one of the lab"
        heard.append(_Heard(partial(provider.computing, host), computes + passes))
    if isinstance(provider, HearsOfMemory):
        memory_mb = lab.plan.machine(host).memory_mb
        ended = f"{{}} was ended by the kernel of {host}, whose memory of {memory_mb} MB is used up"
        heard.append(_Heard(partial(provider.ended_for_memory, host), ended))
    return heard


@dataclass
class _Heard:
    """Programs of which a kernel says the same, those that it has spoken of before left out; `sentence` is said of each
    of the first."""

    programs: Callable[[], tuple[str, ...]]
    sentence: str
    known: int = 0
    told: int = 0

    def __post_init__(self) -> None:
        self.known = len(self.programs())

    def is_new(self) -> bool:
        """Whether there is one that was not there when the command began."""
        return self.told > 0 or len(self.programs()) > self.known

    def tell(self) -> None:
        found = self.programs()
        for program in found[self.known :]:
            self.told += 1
            if self.told <= MOST_TOLD:
                screen.note(f"minigts: {self.sentence.format(program)}")
        self.known = max(self.known, len(found))

    def count_others(self) -> None:
        if self.told > MOST_TOLD:
            screen.note(f"minigts: the same of {self.told - MOST_TOLD} further processes")


def _on_all(
    lab: Lab, run: Callable[[str, Callable[[bytes], None] | None], Result], timeout: float, *, as_json: bool
) -> int:
    """Run it on all hosts side by side; the highest of their exit codes. One that fails keeps no other from it."""
    lines = screen.HostLines([host.name for host in lab.plan.hosts])
    results: dict[str, dict[str, object]] = {}

    def one(host: str) -> int:
        try:
            result = run(host, None if as_json else partial(lines.take, host))
        except CommandTimeout as error:
            screen.note(f"minigts: {host}: ended after {timeout:g} s")
            results[host] = {"host": host, "problem": f"ended after {timeout:g} s"}
            return error.code
        except HostFailed as error:
            screen.note(f"minigts: {error}")
            results[host] = {"host": host, "problem": str(error)}
            return error.exit_code
        finally:
            lines.end(host)
        results[host] = asdict(result)
        return result.code

    with _interrupted_at_once():
        codes = lab.on_every_host(lambda host: one(host.name))
    if as_json:
        screen.print_json([results[host] for host in codes])
    return max(codes.values())


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """A thread that waits for a host cannot be woken. With this process end its connections, and with those what runs.

    Only for what leaves nothing to clean up.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        screen.note("minigts: interrupted")
        os._exit(128 + number)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@app.command(rich_help_panel=LABS)
def shell(host: Host, lab: LabName = None, container: Inside = False) -> None:
    """Open a shell on a host, as root; with --container in a container, by its name, or in the measuring one of a host.

    Leave it with exit or ctrl-d.

    Example:  minigts shell ams

    Example:  minigts shell --container web
    """
    from minigts.lab import software

    opened = opened_lab(lab) if container else lab_with(host, lab)
    if container:
        host, prefixes = _into_container(opened, host)
        argv = (*prefixes[host], "sh", "-i")
    else:
        argv = software.shell_argv(opened, host)
    if opened.time == "virtual":
        screen.note("the lab is in virtual time, which keeps pace with yours as long as this shell is open")
    raise typer.Exit(opened.provider.attach(host, argv))


@app.command(rich_help_panel=LABS)
def cp(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... TARGET",
            help="Files here, or HOST:PATH; at last where to: of several a directory.",
            autocompletion=known.places,
        ),
    ],
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="A directory, with all that is in it.")] = False,
    every: Annotated[bool, typer.Option("--all", "-a", help="To or from all hosts, which are written :PATH.")] = False,
    lab: LabName = None,
) -> None:
    """Copy files to hosts, from hosts, and between hosts. Modes are kept, and what is copied is root's there.

    A path on a host begins in /root unless it begins with a slash. Into a directory it goes by its own name. A file has
    its name when all of it is there: one that is broken off leaves what was there before. --all takes :PATH for
    every host's; what comes from hosts goes into TARGET/HOST/.

    Example:  minigts cp server.py ams:/usr/local/bin/

    Example:  minigts cp a.py b.py ams:/srv/

    Example:  minigts cp -r ams:/var/log logs

    Example:  minigts cp --all server.py :/usr/local/bin/
    """
    *sources, target = places
    if not sources:
        raise InputError(f"cp: say what is copied, and where to: minigts cp {target} HOST:PATH")
    opened = opened_lab(lab)
    target = target if len(sources) == 1 else _as_directory(target)
    for source in sources if len(sources) > 1 else ():
        if ":" not in source and not Path(source).exists():  # before anything is copied
            raise InputError(f"no file or directory {source} on this machine")
    for source in sources:
        begun = time.monotonic()
        with screen.progress() as say:
            say(f"copying {source} to {target}")
            copy = _copy_all if every else _copy
            size_bytes = copy(opened, source, target, recursive=recursive)
        screen.note(f"{source} is at {target}: {screen.amount(size_bytes, time.monotonic() - begun)}")


def _as_directory(target: str) -> str:
    """Written so that it has to be one. Raises InputError for one here that is none."""
    place, colon, path = target.partition(":")
    if colon and "/" not in place:
        return target if path.endswith("/") else f"{target}{'/' if path else './'}"
    if not Path(target).is_dir():
        raise InputError(f"cp: several files go into a directory, and {target} is none on this machine")
    return target


def _copy(lab: Lab, source: str, target: str, *, recursive: bool) -> int:
    """How many bytes there were."""
    from minigts.lab import files

    from_there, to_there = _there(lab, source), _there(lab, target)
    if from_there is not None and to_there is not None:
        return files.between(lab, from_there, to_there, recursive=recursive)
    if to_there is not None:
        files.put(lab, Path(source), to_there, recursive=recursive)
        return files.size_bytes(Path(source))
    if from_there is not None:
        return files.size_bytes(files.get(lab, from_there, Path(target), recursive=recursive))
    host = lab.plan.hosts[0].name
    raise InputError(f"cp: neither {source} nor {target} is on a host: write HOST:PATH, as in {host}:/tmp/")


def _copy_all(lab: Lab, source: str, target: str, *, recursive: bool) -> int:
    """The same for all hosts side by side."""
    from minigts.lab import files
    from minigts.lab.files import There

    if source.startswith(":") == target.startswith(":"):
        raise InputError("cp --all: write one side as :PATH, which is that path on every host")
    if target.startswith(":"):
        lab.on_every_host(
            lambda host: files.put(lab, Path(source), There.of(host.name, target[1:]), recursive=recursive)
        )
        return files.size_bytes(Path(source)) * len(lab.plan.hosts)
    folders = {host.name: writable(Path(target) / host.name, "cp") for host in lab.plan.hosts}
    got = lab.on_every_host(
        lambda host: files.get(lab, There.of(host.name, source[1:]), folders[host.name], recursive=recursive)
    )
    return sum(map(files.size_bytes, got.values()))


def _there(lab: Lab, word: str) -> There | None:
    """`HOST:PATH`, of a host that there is; None for a path here, which has no colon before its first slash."""
    from minigts.lab.files import There

    host, colon, path = word.partition(":")
    if not colon or "/" in host:
        return None
    return There.of(one_of("host", host, [each.name for each in lab.plan.machines]), path)


def _into_container(lab: Lab, name: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The host of a container of the user's, or one for its measuring container; by host, what runs a command in it."""
    from minigts.overlays import containers

    if any(host.name == name for host in lab.plan.hosts):
        return name, _into_containers(lab, [name])
    place = containers.find(lab, name)
    return place.host, {place.host: place.prefix}


def _into_containers(lab: Lab, hosts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By host, what runs a command in the measuring container. Raises InputError when there is none."""
    return {host: end.prefix for host, end in _containers(lab, hosts).items()}


def container_network(lab: Lab, name: str) -> tuple[str, tuple[str, ...]]:
    """The host of a container, and what runs the host's own program in the container's network."""
    from minigts.overlays import containers

    if any(host.name == name for host in lab.plan.hosts):
        return name, container_of(lab, name).network
    place = containers.find(lab, name)
    return place.host, place.network


def container_of(lab: Lab, host: str) -> Endpoint:
    """The measuring container on a host. Raises InputError when there is none."""
    return _containers(lab, [host])[host]


def _containers(lab: Lab, hosts: Sequence[str]) -> dict[str, Endpoint]:
    from minigts import overlays

    now = overlays.joined(lab)
    if now is None or not now.ends:
        raise InputError(
            f"no overlay is joined on lab {lab.name}, so there is no container: minigts up --overlay swarm"
        )
    ends = now.endpoints()
    without = [host for host in hosts if host not in ends or not ends[host].prefix]
    if without:
        raise InputError(f"with overlay {now.name} there is no measuring container on {', '.join(without)}")
    return {host: ends[host] for host in hosts}


@app.command(rich_help_panel=LABS)
def logs(
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST]", help="A host or switch; else every one of the lab.", autocompletion=known.hosts
        ),
    ] = None,
    lab: LabName = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="WHICH", help="Just one: console, dmesg, or a program's, such as dockerd."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", metavar="DIR", help="Write them to DIR/HOST/ instead of printing them.")
    ] = None,
) -> None:
    """Show what a host's console and its kernel's log say, and what its engine and its overlay's programs have said.

    Of a host that answers no more there is the console. A host's agent speaks on the console.

    Example:  minigts logs ams

    Example:  minigts logs ams --only dockerd
    """
    import tempfile

    from minigts import lab as labs

    opened = labs.open_lab(lab) if host is None else lab_with(host, lab, also_off=True)
    names = [each.name for each in opened.plan.machines] if host is None else [host]
    with tempfile.TemporaryDirectory(dir=opened.rundir, prefix="logs.") as directory:
        place = Path(directory) if into is None else into
        for name in names:
            opened.provider.diagnose(name, place / name if into is None else writable(place / name, "--into"))
        if into is not None:
            screen.note(f"the logs of {', '.join(names)} are in {into}")
            return
        found = [(name, file) for name in names for file in sorted((place / name).iterdir())]
        if only is not None:
            one_of("log", only, sorted({file.stem for _, file in found}))
        for name, file in found:
            if only in (None, file.stem):
                screen.show_log(f"{name}: {file.name}", file)


def writable(directory: Path, what: str) -> Path:
    """That directory, which is there. `what` asked for it. Raises InputError."""
    try:
        paths.users_folder(directory, exist_ok=True)
    except OSError as error:
        raise InputError(f"{what}: cannot make the directory {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{what}: cannot write to the directory {directory}")
    return directory


def opened_lab(lab: str | None) -> Lab:
    """The lab of that name, or the only one. Raises InputError."""
    from minigts import lab as labs

    return labs.open_lab(lab)
