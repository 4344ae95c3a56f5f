"""`minigts kernel`: the hosts' full kernel, and kernels by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import AsJson, Unproven
from minigts.cli.verbs import PROJECT, Verb
from minigts.cli.views import kernels as shown_kernels
from minigts.errors import EnvironmentLacks, InputError
from minigts.topology.kernel_names import STANDARD

if TYPE_CHECKING:
    from minigts.artifacts.kernels import KernelRequest

verb = Verb(PROJECT, 540, help="The hosts' kernels: the full one, which new labs have, and others by name.")

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="A kernel's name. Default: the full kernel, `standard`.",
        autocompletion=completion.kernels,
    ),
]


@verb.command("build")
def kernel_build(
    name: Name = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="A version of Debian's source package, or a file of it; with NAME also an archive, a directory or a "
            "git repository. Default: a proven version.",
        ),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(metavar="REV", help="With NAME: the commit, branch or tag of the git repository.")
    ] = None,
    patch: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="With NAME: a patch to apply; may be repeated.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="With NAME: an option of the kernel's; may be repeated."),
    ] = None,
    hz: Annotated[
        int | None, typer.Option(metavar="N", help="With NAME: ticks of the timer in a second: 100, 250, 300 or 1000.")
    ] = None,
    debug: Annotated[
        str | None, typer.Option(metavar="WORD,…", help="With NAME: kasan, lockdep, kmemleak or kcov, or several.")
    ] = None,
    unproven: Unproven = False,
) -> None:
    """Compile the full kernel and the clock, unless they are there; or, with NAME, a kernel of that name.

    Labs in virtual time need full kernel and clock, and the first such lab compiles what is missing. The kernel has
    what Debian's lacks: address translation, nftables for IP, WireGuard. Its source comes from the Debian mirror or
    from Debian's archives, in a version that was proven with minigts; a file is a .deb of the package, or a tar archive
    of Linux.

    A kernel with a NAME stands beside it, and `kernel: NAME` in a topology gives it to hosts. It is compiled with
    minigts' patches, merged where the sources have moved, in a tree that is kept: the second time what has changed is
    compiled. Without options NAME is built again from what it was built from. Prints the kernel's directory.

    Example:  minigts kernel build

    Example:  minigts kernel build --source 7.3.4-1~bpo13+1 --unproven

    Example:  minigts kernel build coarse --hz 100

    Example:  minigts kernel build mine --source ~/linux --config NET_SCH_CAKE=y --debug lockdep
    """
    if name is None:
        if commit or patch or config or debug or hz is not None:
            raise InputError("--commit, --patch, --config, --hz and --debug go with a name: minigts kernel build NAME")
        _build_standard(source, unproven=unproven)
        return
    from minigts.providers.uml.build.named import build

    new = (source, commit, patch, config, hz, debug) != (None,) * 6
    options = build.options(config or (), hz, debug.split(",") if debug else ())
    asked = _asked(name, source, commit, patch or [], options) if new else _asked_before(name)
    with console.progress() as say:
        made = build.build(name, asked, say)
    shown_kernels.tell(made)
    typer.echo(made.directory)


def _asked(
    name: str, source: str | None, commit: str | None, patch: list[Path], options: dict[str, str]
) -> KernelRequest:
    """What the options ask for. A path is kept as an absolute one, for later builds."""
    from minigts.artifacts import kernels

    kernels.require_name(name)
    text = source or ""
    if text and Path(text).expanduser().exists():
        text = str(Path(text).expanduser().absolute())
    given = tuple(str(each.expanduser().absolute()) for each in patch)
    return kernels.KernelRequest(source=text, commit=commit or "", patches=given, config=options)


def _asked_before(name: str) -> KernelRequest:
    """What the kernel of that name was built from; for a new name the best proven version."""
    from minigts.artifacts import kernels

    found = kernels.read(kernels.require_name(name))
    return kernels.KernelRequest() if found is None else found.manifest.asked


def _build_standard(source: str | None, *, unproven: bool) -> None:
    from minigts.artifacts import digests, sources
    from minigts.providers.uml.build import build_all, kernel_build

    wanted = None if source is None else sources.parse_source(kernel_build.recipe(), source, unproven=unproven)
    with console.progress() as say:
        made = build_all.compile_all(say, wanted)
    console.note(f"the full kernel is built from {made.version}; it is {digests.proof(made.directory)}")
    typer.echo(made.directory)


@verb.command("list")
def kernel_list(as_json: AsJson = False) -> None:
    """List the kernels that are built: version, source, options, and whether they are proven.

    Example:  minigts kernel list
    """
    from minigts.artifacts import kernels

    facts = [shown_kernels.standard_facts(), *map(shown_kernels.facts, kernels.every())]
    if as_json:
        console.print_json(facts)
    else:
        shown_kernels.show(facts)


@verb.command("path")
def kernel_path(name: Name = None) -> None:
    """Print a kernel's path; exit 3 if the full kernel is not built, and 2 for an unknown name.

    Example:  minigts kernel path
    """
    from minigts.artifacts import kernels
    from minigts.providers.uml.build import kernel_build

    if name not in (None, STANDARD):
        typer.echo(kernels.find(name).directory)
        return
    found = kernel_build.present()
    if found is None:
        raise EnvironmentLacks("the full kernel is not built yet; build it with: minigts kernel build")
    typer.echo(found.directory)


@verb.command("remove")
def kernel_remove(name: Name = None) -> None:
    """Remove the full kernel and the clock; or the kernel of that name. Hosts that are up run on.

    Without the full kernel new labs in real time run Debian's. A name's tree of sources and objects goes with it. A
    host whose kernel is gone cannot be started again.

    Example:  minigts kernel remove

    Example:  minigts kernel remove mine
    """
    from minigts.artifacts import kernels
    from minigts.providers.uml.build import clock_build, kernel_build
    from minigts.providers.uml.build.named import build

    if name not in (None, STANDARD):
        build.remove(kernels.require_name(name))
        console.note(f"kernel {name} is removed")
        return
    kernel_build.remove()
    clock_build.remove()
    if (left := kernel_build.present()) is not None:
        console.note(f"new labs have {left.directory} then, in the cache that all users share")
        return
    console.note("new labs in real time run Debian's kernel; the next one in virtual time compiles both again")
