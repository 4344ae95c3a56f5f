"""`minigts cp`: files, copied to hosts and from them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts import paths
from minigts.cli import completion, console
from minigts.cli.options import LabName, one_of, opened_lab, writable
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError
from minigts.foreign import printable

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.lab.files import There
    from minigts.providers.archive import Copy

verb = Verb(LABS, 200)
MOST_NAMED = 3
"""How many of the links that were left out are named."""


@verb.command()
def cp(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... TARGET",
            help="Sources: files here, or HOST:PATH. Last the target; a directory for several sources.",
            autocompletion=completion.places,
        ),
    ],
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Copy directories with their content.")] = False,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Copy to or from all hosts; write :PATH for them.")
    ] = False,
    lab: LabName = None,
) -> None:
    """Copy files to hosts, from hosts, and between hosts. Modes are kept; copies on hosts belong to root.

    A path on a host that begins without a slash is below /root. In a directory the copy keeps its source's name. A
    target is complete or unchanged: an interrupted copy leaves the earlier file. With --all, :PATH means that path on
    every host; copies from hosts are put into TARGET/HOST/.

    Example:  minigts cp server.py ams:/usr/local/bin/

    Example:  minigts cp a.py b.py ams:/srv/

    Example:  minigts cp -r ams:/var/log logs

    Example:  minigts cp --all server.py :/usr/local/bin/
    """
    *sources, target = places
    if not sources:
        raise InputError(f"cp: name a source and a target: minigts cp {target} HOST:PATH")
    opened = opened_lab(lab)
    target = target if len(sources) == 1 else _as_directory(target)
    for source in sources if len(sources) > 1 else ():
        if ":" not in source and not Path(source).exists():  # before anything is copied
            raise InputError(f"no file or directory {source} on this machine")
    for source in sources:
        begun = time.monotonic()
        with console.progress() as say:
            say(f"copying {source} to {target}")
            copy = _copy_all if every else _copy
            done = copy(opened, source, target, recursive=recursive)
        size_bytes = sum(each.size_bytes for each in done)
        console.note(f"{source} is at {target}: {console.amount(size_bytes, time.monotonic() - begun)}")
        if left_out := _left_out(done):
            console.note(left_out)


def _as_directory(target: str) -> str:
    """The target for several sources, which has to be a directory: on a host it gets a slash at its end. Raises
    InputError for a target on this machine that is no directory."""
    place, colon, path = target.partition(":")
    if colon and "/" not in place:
        return target if path.endswith("/") else f"{target}{'/' if path else './'}"
    if not Path(target).is_dir():
        raise InputError(f"cp: several sources need a directory as target, and {target} is none on this machine")
    return target


def _left_out(copies: Sequence[Copy]) -> str:
    """A sentence about the links that were left out; empty if none was."""
    number = sum(each.left_out_number for each in copies)
    names = [name for each in copies for name in each.left_out][:MOST_NAMED]
    more = f" and {number - len(names)} more" if number > len(names) else ""
    them = "a link that leads" if number == 1 else f"{number} links that lead"
    return f"left out {them} out of the copy: {printable(', '.join(names))}{more}" if number else ""


def _copy(lab: Lab, source: str, target: str, *, recursive: bool) -> list[Copy]:
    """Copy one source."""
    from minigts.lab import files

    from_there, to_there = _there(lab, source), _there(lab, target)
    if from_there is not None and to_there is not None:
        return [files.copy_between_hosts(lab, from_there, to_there, recursive=recursive)]
    if to_there is not None:
        files.put(lab, Path(source), to_there, recursive=recursive)
        return [_of_this_machine(Path(source))]
    if from_there is not None:
        return [files.get(lab, from_there, Path(target), recursive=recursive).copy]
    host = lab.plan.hosts[0].name
    raise InputError(f"cp: neither {source} nor {target} is on a host: write HOST:PATH, as in {host}:/tmp/")


def _of_this_machine(source: Path) -> Copy:
    from minigts.providers.archive import Copy

    return Copy(paths.size_bytes(source), source.is_dir())


def _copy_all(lab: Lab, source: str, target: str, *, recursive: bool) -> list[Copy]:
    """Copy to or from all hosts at once."""
    from minigts.lab import files
    from minigts.lab.files import There

    if source.startswith(":") == target.startswith(":"):
        raise InputError("cp --all: write one side as :PATH, which is that path on every host")
    if target.startswith(":"):
        lab.work_on_hosts(
            lambda host: files.put(lab, Path(source), There.of(host.name, target[1:]), recursive=recursive)
        )
        return [_of_this_machine(Path(source))] * len(lab.plan.hosts)
    folders = {host.name: writable(Path(target) / host.name, "cp") for host in lab.plan.hosts}
    got = lab.work_on_hosts(
        lambda host: files.get(lab, There.of(host.name, source[1:]), folders[host.name], recursive=recursive)
    )
    return [each.copy for each in got.values()]


def _there(lab: Lab, word: str) -> There | None:
    """The place that `HOST:PATH` names; None for a path on this machine, which has no colon before its first slash.
    Raises InputError for an unknown host."""
    from minigts.lab.files import There

    host, colon, path = word.partition(":")
    if not colon or "/" in host:
        return None
    return There.of(one_of("host", host, [each.name for each in lab.plan.machines]), path)
