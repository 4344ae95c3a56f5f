"""`minigts image`: the hosts' image."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.options import Unproven
from minigts.cli.verbs import PROJECT, Verb
from minigts.errors import EnvironmentLacks, InputError

if TYPE_CHECKING:
    from minigts.providers.uml.build.image import Image

verb = Verb(PROJECT, 530, help="The hosts' image: built once, then kept.")


@verb.command("build")
def image_build(
    lock: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Install these versions of packages, as `minigts image lock` prints them."),
    ] = None,
    day: Annotated[
        datetime | None,
        typer.Option(
            metavar="YYYY-MM-DD", formats=["%Y-%m-%d"], help="Take packages from Debian's snapshot of this day."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION|FILE",
            help="A version of Debian's user-mode-linux, or a file of it. Default: the best proven one.",
        ),
    ] = None,
    unproven: Unproven = False,
) -> None:
    """Build the image if it is not there yet; print its path.

    Packages that the Debian mirror no longer has come from Debian's archives; with --day, from that day's snapshot.

    Example:  minigts image build

    Example:  minigts image build --lock course.lock --day 2026-11-26
    """
    from minigts.artifacts import digests, sources
    from minigts.providers.uml.build import image, package_lock

    wanted = None if lock is None else package_lock.read(lock.absolute())
    settings = {} if source is None else sources.parse_source(image.folder(), source, unproven=unproven).settings
    if day is not None:
        settings["MINIGTS_ARCHIVE_DAY"] = f"{day:%Y%m%d}T235959Z"
    with console.progress() as say:
        made = image.ensure(say, wanted, settings)
        say("computing the digest of the image")
        proof = digests.proof(made.directory)
    console.note(f"the image is {proof}")
    if made.unproven:
        console.note(f"the image's kernel is user-mode-linux {made.unproven}, which was not proven with minigts")
    typer.echo(made.directory)


@verb.command("path")
def image_path() -> None:
    """Print the image's path; exit 3 if it is not built.

    Example:  ls -l "$(minigts image path)"
    """
    typer.echo(_image().directory)


def _image() -> Image:
    from minigts.providers.uml.build import image

    found = image.present()
    if found is None:
        raise EnvironmentLacks("the image is not built yet; build it with: minigts image build")
    return found


@verb.command("lock")
def image_lock(
    other: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Versions to compare with.", show_default=False)
    ] = None,
) -> None:
    """Print the version of each Debian package in the image; or its differences from FILE: exit 1 if any.

    Example:  minigts image lock > course.lock
    """
    from minigts.providers.uml.build import package_lock

    own = package_lock.read(_image().lock)
    if other is None:
        typer.echo(own.file.read_text(encoding="utf-8"), nl=False)
        return
    found = package_lock.differences(package_lock.read(other).versions, own.versions)
    for line in found:
        typer.echo(line)
    console.note(f"{len(found)} of {len(own.versions)} packages have another version than in {other}")
    raise typer.Exit(1 if found else 0)


@verb.command("remove")
def image_remove() -> None:
    """Remove the image, so that the next lab builds it again. Refused while labs are up, because they read it.

    Example:  minigts image remove
    """
    from minigts import lab
    from minigts.providers.uml.build import image

    names = [each.name for each in lab.all_labs()]
    if names:
        raise InputError(f"labs are up, which may read the image ({', '.join(names)}); first: minigts down --all")
    image.remove()
    if (left := image.present()) is not None:
        console.note(f"labs start from {left.directory} then, in the cache that all users share")


@verb.command("export")
def image_export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.", show_default=False)],
    wheels: Annotated[
        bool, typer.Option("--wheels", help="Add the Python packages that the launcher fetches.")
    ] = False,
) -> None:
    """Put the image into one file, for a machine without a network or a compiler. Prints the file's SHA-256 sum.

    The file also has the full kernel and the clock, where they are built. `image import --sha256` checks the sum.

    Example:  minigts image export classroom.tar.gz --wheels
    """
    import tempfile

    from minigts.providers.uml.build import export

    with tempfile.TemporaryDirectory() as temporary, console.progress() as say:
        taken = export.fetch_wheels(Path(temporary), say) if wheels else ()
        made = export.export(file, taken, say)
    console.note(f"{', '.join(part.place for part in made.parts)}: {file.stat().st_size // 2**20} MiB")
    typer.echo(f"{made.sha256}  {file}")


@verb.command("import")
def image_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `minigts image export`.", show_default=False)],
    sha256: Annotated[str | None, typer.Option(metavar="SUM", help="The SHA-256 sum that the file must have.")] = None,
) -> None:
    """Import image, kernel and clock from a file: each is checked, and installed whole or not at all.

    They run on this machine, so take them from people whom you trust.

    Example:  minigts image import classroom.tar.gz
    """
    from minigts.providers.uml.build import export

    with console.progress() as say:
        taken = export.load(file, say, sha256)
    console.note(f"imported {', '.join(part.place for part in taken)}" if taken else "everything in it is here already")


@verb.command("box")
def image_box() -> None:
    """Build the virtual machines' box if it is not there yet; print its path.

    Example:  minigts image box
    """
    from minigts.providers.vagrant import box

    with console.progress() as say:
        made = box.ensure(say)
    typer.echo(made.directory)
