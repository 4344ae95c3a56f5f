"""Options and arguments that several verbs share, and how their values are understood."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts import paths
from minigts.cli import completion, console, files
from minigts.errors import InputError
from minigts.topology import overlay_names
from minigts.topology.time import Time

if TYPE_CHECKING:
    from minigts.cluster.shares import JobShare
    from minigts.lab import Lab
    from minigts.topology.plan.plan import Plan
    from minigts.topology.read.load import Loaded

Topology = Annotated[Path, typer.Argument(metavar="TOPOLOGY", help="A topology file, such as topologies/chain6.yaml.")]
Provider = Annotated[
    str,
    typer.Option(
        "--provider",
        help="The kind of hosts; `minigts doctor` lists the providers.",
        autocompletion=completion.providers,
    ),
]
TimeOption = Annotated[
    Time | None,
    typer.Option(
        "--time", help="Real time (this machine's clock) or virtual time. Default: the file's, or the provider's best."
    ),
]
KernelOption = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="The hosts' kernel, in place of the topology's `kernel`; `minigts kernel list` lists them.",
        autocompletion=completion.kernels,
    ),
]
ShareOption = Annotated[
    str | None,
    typer.Option(
        "--share",
        metavar="I/N",
        help="Do only the I-th of N parts, as 2/16; `minigts merge` puts the parts together.",
    ),
]
Lessons = Annotated[
    Path | None,
    typer.Option(
        "--lessons",
        metavar="DIR",
        help="A directory with lessons of your own, beside minigts'; MINIGTS_LESSONS names it as well.",
        exists=True,
        file_okay=False,
    ),
]
Interval = Annotated[
    float,
    typer.Option(
        "--every",
        metavar="SECONDS",
        min=0.1,
        max=3600,
        help="Seconds of this machine's clock between two readings.",
    ),
]
LabName = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        help="The lab's name. Default: the only lab that is up.",
        autocompletion=completion.labs,
    ),
]
WhichLab = Annotated[
    str | None,
    typer.Argument(
        metavar="[LAB]", help="The lab's name. Default: the only lab that is up.", autocompletion=completion.labs
    ),
]
"""The lab as an argument, for verbs that take `--lab`, too: see `which`."""
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, for programs.")]
Host = Annotated[
    str,
    typer.Argument(metavar="HOST", help="A host's name, as in the topology file.", autocompletion=completion.hosts),
]
Inside = Annotated[
    bool,
    typer.Option(
        "--container",
        "-c",
        help="In a container: HOST is the name of a container, such as web or web.ams, or of a host, for the "
        "overlay's measuring container there.",
    ),
]
SavedName = Annotated[str, typer.Argument(metavar="NAME", help="The saved lab's name.")]
Unproven = Annotated[bool, typer.Option("--unproven", help="Allow a --source that was not proven with minigts.")]


def which(lab: str | None, named: str | None) -> str | None:
    """The lab that a verb works on: its argument, or --lab; None for neither. Raises InputError when both are given and
    differ."""
    if lab and named and lab != named:
        raise InputError(f"{lab} and --lab {named} are two labs: name one")
    return lab or named


def lab_option(name: str) -> str:
    """`--lab NAME ` for a command that the user may type next, where there are several labs; otherwise empty."""
    from minigts import lab as labs

    return f"--lab {name} " if len(labs.all_labs()) > 1 else ""


def read_plan(
    file: Path, provider: str, time: Time | None, kernel: str | None = None, *, any_kernel: bool = False
) -> Plan:
    """The plan of a topology file, or of minigts' own file of that name. Its time is `time`, if that is None the
    file's, and without that the provider's best; `kernel` takes the place of the file's, and with `any_kernel` the
    names of kernels are not looked up. Raises InputError."""
    return read_topology(file, provider, time, kernel, any_kernel=any_kernel).plan


def read_topology(
    file: Path, provider: str, time: Time | None, kernel: str | None = None, *, any_kernel: bool = False
) -> Loaded:
    """As `read_plan`, with what the file says beyond its plan."""
    from minigts.session import plans

    found = files.find_file(file, files.TOPOLOGIES)
    read = plans.read(
        found,
        provider=provider,
        time=time,
        known_overlays=overlay_names.known_names(),
        kernel=kernel,
        any_kernel=any_kernel,
    )
    for note in read.plan.notes:
        console.note(f"{found}: {note}")
    return read


def read_share(written: str | None) -> JobShare | None:
    """What `--share` says. Raises InputError."""
    from minigts.cluster.shares import JobShare

    return None if written is None else JobShare.parse(written)


def lab_with(host: str, lab: str | None, *, also_off: bool = False) -> Lab:
    """The lab, once it is known to have that host. Raises InputError; HostFailed for a host that is off, unless
    `also_off`."""
    from minigts import lab as labs

    opened = labs.open_lab(lab)
    _require_no_container(opened, host)
    one_of("host", host, [each.name for each in opened.plan.machines])
    if not also_off:
        opened.read_record().require_on([host])
    return opened


def _require_no_container(lab: Lab, name: str) -> None:
    """Raises InputError for a container's name where a host's is wanted."""
    from minigts.topology import containers

    known = containers.names({host.name: host.containers for host in lab.plan.hosts})
    if name in known and name not in {each.name for each in lab.plan.machines}:
        host, own = known[name]
        raise InputError(
            f"{name} is a container on host {host}: minigts exec --container {name} -- …, or minigts logs {host} "
            f"--only container-{own}.{host}"
        )


def one_of(kind: str, word: str, known: Collection[str]) -> str:
    """`word` itself. Raises InputError when it is not among `known`."""
    from minigts.language.problems import did_you_mean

    if word not in known:
        raise InputError(f"no {kind} {word!r}; there are {', '.join(known)}{did_you_mean(word, known)}")
    return word


def opened_lab(lab: str | None) -> Lab:
    """The lab of that name, or the only one. Raises InputError."""
    from minigts import lab as labs

    return labs.open_lab(lab)


def writable(directory: Path, what: str) -> Path:
    """The directory, made if it was missing. `what` begins the message. Raises InputError when it cannot be made or
    written to."""
    try:
        paths.users_folder(directory, exist_ok=True)
    except OSError as error:
        raise InputError(f"{what}: cannot make the directory {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{what}: cannot write to the directory {directory}")
    return directory


def write_token(file: Path | None, token: str) -> None:
    """Write a server's token to the file of `--token-file`, if one is named, readable to this user only. Raises
    InputError."""
    if file is not None:
        try:
            paths.write_whole(file, token)
        except OSError as error:
            raise InputError(f"--token-file: {file} cannot be written: {error.strerror}") from error
