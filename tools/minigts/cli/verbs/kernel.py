"""`minigts kernel`: the hosts' full kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.options import Unproven
from minigts.cli.verbs import PROJECT, Verb
from minigts.errors import EnvironmentLacks

verb = Verb(PROJECT, 540, help="The hosts' full kernel: compiled once, then used by every new lab.")


@verb.command("build")
def kernel_build(
    source: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION|FILE",
            help="A version of Debian's source package, or a file of it. Default: a proven version.",
        ),
    ] = None,
    unproven: Unproven = False,
) -> None:
    """Compile the full kernel and the clock, unless they are there; print the kernel's path. It takes some ten minutes.

    Labs in virtual time need both, and the first such lab compiles what is missing. The kernel has what Debian's lacks:
    address translation, nftables for IP, WireGuard. Once it is there, new labs in real time run it, too. Its source
    comes from the Debian mirror or from Debian's archives, in a version that was proven with minigts; a file is a .deb
    of the package, or a tar archive of Linux.

    Example:  minigts kernel build

    Example:  minigts kernel build --source 7.3.4-1~bpo13+1 --unproven
    """
    from minigts.artifacts import digests, sources
    from minigts.providers.uml.build import build_all, kernel_build

    wanted = None if source is None else sources.wanted(kernel_build.recipe(), source, unproven=unproven)
    with console.progress() as say:
        made = build_all.compile_all(say, wanted)
    console.note(f"the full kernel is built from {made.version}; it is {digests.proof(made.directory)}")
    typer.echo(made.directory)


@verb.command("path")
def kernel_path() -> None:
    """Print the full kernel's path; exit 3 if it is not built.

    Example:  minigts kernel path
    """
    from minigts.providers.uml.build import kernel_build

    found = kernel_build.present()
    if found is None:
        raise EnvironmentLacks("the full kernel is not built yet; build it with: minigts kernel build")
    typer.echo(found.directory)


@verb.command("remove")
def kernel_remove() -> None:
    """Remove the full kernel and the clock: new labs in real time run Debian's. Labs that are up keep theirs.

    Example:  minigts kernel remove
    """
    from minigts.providers.uml.build import clock_build, kernel_build

    kernel_build.remove()
    clock_build.remove()
    console.note("new labs in real time run Debian's kernel; the next one in virtual time compiles both again")
