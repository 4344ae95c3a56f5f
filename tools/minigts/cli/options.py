"""Options and arguments that several verbs have, and what a user means by their words."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console, files
from minigts.errors import InputError
from minigts.topology import overlay_names
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.topology.plan.plan import Plan
import os

from minigts import paths

if TYPE_CHECKING:
    from minigts.lab import Lab
from typing import TYPE_CHECKING

Topology = Annotated[Path, typer.Argument(metavar="TOPOLOGY", help="A topology file, such as topologies/chain6.yaml.")]
Provider = Annotated[
    str,
    typer.Option(
        "--provider", help="What a host is; `minigts doctor` lists them.", autocompletion=completion.providers
    ),
]
TimeOption = Annotated[
    Time | None,
    typer.Option(
        "--time", help="The lab's clock: the machine's, or its own. Else the file's; else the provider's best."
    ),
]
LabName = Annotated[
    str | None,
    typer.Option("--lab", metavar="NAME", help="Which lab, when several are up.", autocompletion=completion.labs),
]
WhichLab = Annotated[
    str | None,
    typer.Argument(metavar="[LAB]", help="Which lab, when several are up.", autocompletion=completion.labs),
]
"""Of a verb that takes `--lab`, too: see `which`."""
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]
Host = Annotated[
    str,
    typer.Argument(metavar="HOST", help="A host's name, as in the topology file.", autocompletion=completion.hosts),
]
Inside = Annotated[
    bool,
    typer.Option(
        "--container",
        "-c",
        help="In a container: for HOST write the name of one of the topology's, as in web or web.ams; or a host, for "
        "the overlay's measuring container there.",
    ),
]
SavedName = Annotated[str, typer.Argument(metavar="NAME", help="What the saved lab is called.")]
Unproven = Annotated[bool, typer.Option("--unproven", help="Also a --source that minigts was not proven on.")]


def which(lab: str | None, named: str | None) -> str | None:
    """The lab that a verb is to work on: its argument, or --lab. Raises InputError where these are two labs."""
    if lab and named and lab != named:
        raise InputError(f"{lab} and --lab {named} are two labs: name one")
    return lab or named


def read_plan(file: Path, provider: str, time: Time | None) -> Plan:
    """The plan of a topology file, or of minigts' own of that name: in `time`, else in the file's, else in the
    provider's best. Raises InputError.
    """
    from minigts.session import plans

    found = files.found(file, files.TOPOLOGIES)
    planned = plans.planned(found, provider=provider, time=time, known_overlays=overlay_names.known())
    for note in planned.notes:
        console.note(f"{found}: {note}")
    return planned


def lab_with(host: str, lab: str | None, *, also_off: bool = False) -> Lab:
    """The lab, which has that host. Raises InputError; HostFailed for one that is off, unless it may be."""
    from minigts import lab as labs

    opened = labs.open_lab(lab)
    one_of("host", host, [each.name for each in opened.plan.machines])
    if not also_off:
        opened.read_record().require_on([host])
    return opened


def one_of(kind: str, word: str, known: Collection[str]) -> str:
    """`word`, which is known. Raises InputError."""
    from minigts.language.problems import did_you_mean

    if word not in known:
        raise InputError(f"no {kind} {word!r}; there are {', '.join(known)}{did_you_mean(word, known)}")
    return word


def opened_lab(lab: str | None) -> Lab:
    """The lab of that name, or the only one. Raises InputError."""
    from minigts import lab as labs

    return labs.open_lab(lab)


def writable(directory: Path, what: str) -> Path:
    """That directory, which is there. `what` asked for it. Raises InputError."""
    try:
        paths.users_folder(directory, exist_ok=True)
    except OSError as error:
        raise InputError(f"{what}: cannot make the directory {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{what}: cannot write to the directory {directory}")
    return directory
