"""`minigts release`: minigts as files for other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from minigts.cli import console
from minigts.cli.verbs import PROJECT, Verb

verb = Verb(PROJECT, 535, help="A release: the package and the built parts as files, with sums, origin and materials.")


@verb.command("build")
def release_build(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)],
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Also from a checkout with changes that are in no commit.")
    ] = False,
) -> None:
    """Write wheel, source, and the built image, kernel and clock into a folder, with their sums.

    Beside them are a bill of materials (CycloneDX) and the origin (in-toto, SLSA). The same checkout and parts give the
    same bytes. Elsewhere: minigts setup uml --from.

    Example:  minigts release build release
    """
    from minigts.release import folder as release

    with console.progress() as say:
        made = release.build(folder, say, uncommitted=uncommitted)
    for path in made:
        typer.echo(f"{path.stat().st_size:>11}  {path}")


@verb.command("deb")
def release_deb(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is there.", show_default=False)],
    maintainer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who hands the package out: 'A Name <a@name.example>'.")
    ] = None,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Also from a checkout with changes that are in no commit.")
    ] = False,
) -> None:
    """Write a package for Debian 12 and 13 into a folder, with the Python packages of the lock, without built parts.

    It has the documentation, and man pages, which docs/site/build makes of the same commit. The same checkout gives the
    same bytes.

    Example:  minigts release deb .
    """
    from minigts.release import debian_package

    with console.progress() as say:
        made = debian_package.build(folder, say, maintainer or debian_package.MAINTAINER, uncommitted=uncommitted)
    typer.echo(f"{made.stat().st_size:>11}  {made}")


@verb.command("sign")
def release_sign(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.", show_default=False)],
    key: Annotated[Path, typer.Option("--key", metavar="FILE", help="A secret key, which `minisign -G` makes.")],
) -> None:
    """Sign the sums of a release by minisign, into SHA256SUMS.minisig beside them; asks for the key's password.

    Example:  minigts release sign release --key minisign.key
    """
    from minigts.release import signature

    typer.echo(signature.sign(folder, key, lambda: str(typer.prompt("password of the key", hide_input=True, err=True))))


@verb.command("verify")
def release_verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.", show_default=False)],
    public_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="A public key of minisign, or its file, which must have signed the release."),
    ] = None,
) -> None:
    """Hold a release against its sums, and its parts against those built here from source; exit 1 if any file differs.

    A file that the sums do not list is named, and refused. The package is not built again.

    Example:  minigts release verify release --public-key minisign.pub
    """
    from minigts.release import folder as release
    from minigts.release import signature

    if public_key is not None:
        signature.check(folder, public_key)
        console.note("the sums are signed by that key")
    found = release.verify(folder)
    for each in found:
        typer.echo(each)
    console.note(
        f"{len(found)} files differ from what was built here"
        if found
        else "every file of the parts is as it was built here"
    )
    raise typer.Exit(1 if found else 0)
