"""The verbs of this machine and of the project. Imports are inside, so that `--help` is quick."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from minigts.cli import files, known, screen, shown_labs
from minigts.cli.app import app
from minigts.cli.labs import AsJson
from minigts.errors import EnvironmentLacks, InputError

if TYPE_CHECKING:
    from minigts.providers.doctor import Diagnosis
    from minigts.providers.uml.image import Image

PROJECT = "The machine and the project"

image_app = typer.Typer(no_args_is_help=True, help="The hosts' image: built once, then kept.")
app.add_typer(image_app, name="image", rich_help_panel=PROJECT)
kernel_app = typer.Typer(
    no_args_is_help=True, help="The hosts' full kernel: compiled once, then used by every new lab."
)
app.add_typer(kernel_app, name="kernel", rich_help_panel=PROJECT)


class SchemaOf(StrEnum):
    """The languages that have a schema."""

    TOPOLOGY = "topology"
    EXPERIMENT = "experiment"
    POLICY = "policy"


@app.command(rich_help_panel=PROJECT)
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can run, what is missing, and what is slow. Exit 3 if the default provider cannot run.

    Example:  minigts doctor
    """
    from minigts.providers import doctor as providers_doctor
    from minigts.providers import registry

    diagnoses = providers_doctor.examine(registry.names())
    if as_json:
        screen.print_json([_facts(each) for each in diagnoses])
    else:
        shown_labs.show_diagnoses(diagnoses)
    raise typer.Exit(0 if providers_doctor.default_can_run(diagnoses) else 3)


def _facts(diagnosis: Diagnosis) -> dict[str, object]:
    """`built` is of times when a provider could be named before it was there; programs may still look for it."""
    about = {"provider": diagnosis.provider, "about": diagnosis.about, "built": True}
    return {**about, "findings": [asdict(each) for each in diagnosis.findings], "verdict": diagnosis.verdict}


@app.command(
    rich_help_panel=PROJECT, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def test(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[PYTEST ARGUMENTS…]", show_default=False)] = None,
) -> None:
    """Run the project's tests; sets up what they need. Arguments go to pytest, paths count from the project.

    With --minigts TOPOLOGY it runs tests of yours on a lab of yours, and paths count from where you are.

    Example:  minigts test tests/unit -k plan

    Example:  minigts test --minigts my.yaml test_my.py
    """
    from minigts import paths
    from minigts.machine import shell

    if not _of_the_user(arguments or []):
        if paths.is_installed():
            raise EnvironmentLacks(
                "the project's tests are in a checkout: ./minigts test; an installed package has none"
            )
        os.chdir(paths.project_root())
    os.umask(shell.FOR_OTHERS)  # some of what tests make is for another user
    try:
        import pytest
    except ImportError as error:
        raise EnvironmentLacks("pytest is missing; start the tests with ./minigts test, which fetches it") from error
    if not arguments:
        _prepare()
    codes = {pytest.ExitCode.OK: 0, pytest.ExitCode.USAGE_ERROR: 2}
    # Loaded before its options are read, also where the tests are the user's own.
    always = ["-p", "minigts.testing.plugin", *([] if _of_the_user(arguments or []) else _of_the_program(arguments))]
    broken_off = _BrokenOff()
    ended = pytest.ExitCode(pytest.main([*always, *(arguments or ["tests"])], plugins=[broken_off]))
    raise typer.Exit(broken_off.code if ended is pytest.ExitCode.INTERRUPTED else codes.get(ended, 1))


class _BrokenOff:
    """Why pytest has not run all tests; `code` is 130 where its user has interrupted it, and 2 where a file of tests
    could not be read, for both of which pytest has one code."""

    code = 1

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        import pytest

        if not excinfo.errisinstance(pytest.Session.Interrupted):
            self.code = 130
        elif "during collection" in str(excinfo.value):
            self.code = 2


def _of_the_program(arguments: Sequence[str] | None) -> list[str]:
    """Whole folders of tests run in several processes, a file in one of them; the order is that of the files' names, so
    that the long ones come first."""
    whole = not any(".py" in argument for argument in arguments or [])
    return ["--all-tests", *(["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"] if whole else [])]


def _of_the_user(arguments: Sequence[str]) -> bool:
    """Whether what is tested is a lab of the user's, by tests of their own."""
    return any(argument.partition("=")[0] == "--minigts" for argument in arguments)


@app.command(rich_help_panel=PROJECT)
def setup(
    provider: Annotated[
        str, typer.Argument(metavar="PROVIDER", help="Such as vagrant.", autocompletion=known.providers)
    ],
) -> None:
    """Set a provider up: install its system packages, build what its hosts start from, try what this machine can.

    Example:  minigts setup vagrant
    """
    from minigts import paths
    from minigts.providers import DEFAULT, registry, system_packages
    from minigts.providers.base import Prepares

    chosen = registry.make(provider, paths.state_root(), registry.best_time(provider))
    packages = system_packages.lacking((DEFAULT, provider))
    if packages and paths.is_installed():  # a checkout's launcher has done so
        system_packages.install(packages)
    lacking = chosen.missing()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    if isinstance(chosen, Prepares):
        with screen.progress() as say:
            chosen.prepare(say)
    screen.note(f"provider {provider} can run here")


@app.command(rich_help_panel=PROJECT)
def examples() -> None:
    """List the topologies and experiments that minigts brings, with their places: to use by name, or to copy.

    Example:  minigts up topologies/pair.yaml
    """
    from minigts import paths

    for folder in (files.TOPOLOGIES, files.EXPERIMENTS):
        for file in sorted((paths.project_root() / folder).glob("*.yaml")):
            typer.echo(file)


@app.command(rich_help_panel=PROJECT)
def schema(
    language: Annotated[SchemaOf, typer.Argument(help="Of which files.")] = SchemaOf.TOPOLOGY,
) -> None:
    """Print the JSON Schema of topology, experiment or policy files, for editors.

    Example:  minigts schema experiment > experiment.schema.json
    """
    from minigts.experiments import model as experiments
    from minigts.overlays import policy
    from minigts.topology import model as topologies

    texts = {
        SchemaOf.TOPOLOGY: topologies.json_schema_text,
        SchemaOf.EXPERIMENT: experiments.json_schema_text,
        SchemaOf.POLICY: policy.json_schema_text,
    }
    typer.echo(texts[language](), nl=False)


Unproven = Annotated[bool, typer.Option("--unproven", help="Also a --source that minigts was not proven on.")]


@image_app.command("build")
def image_build(
    lock: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With just these versions of packages: `minigts image lock`.")
    ] = None,
    day: Annotated[
        datetime | None,
        typer.Option(metavar="YYYY-MM-DD", formats=["%Y-%m-%d"], help="A day on which Debian had them."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="VERSION|FILE", help="This user-mode-linux of Debian's, in place of the best there is."),
    ] = None,
    unproven: Unproven = False,
) -> None:
    """Build the image if it is not there yet; print its path.

    What the Debian mirror no longer has comes from Debian's archives; with --day, from that day's snapshot.

    Example:  minigts image build

    Example:  minigts image build --lock course.lock --day 2026-11-26
    """
    from minigts.artifacts import sources
    from minigts.providers.uml import image, package_lock

    wanted = None if lock is None else package_lock.read(lock.absolute())
    settings = {} if source is None else sources.wanted(image.folder(), source, unproven=unproven).settings
    if day is not None:
        settings["MINIGTS_ARCHIVE_DAY"] = f"{day:%Y%m%d}T235959Z"
    with screen.progress() as say:
        made = image.ensure(say, wanted, settings)
    if made.unproven:
        screen.note(f"the image's kernel is user-mode-linux {made.unproven}, on which minigts was not proven")
    typer.echo(made.directory)


@image_app.command("path")
def image_path() -> None:
    """Print where the image lies; exit 3 if it is not built.

    Example:  ls -l "$(minigts image path)"
    """
    typer.echo(_image().directory)


def _image() -> Image:
    from minigts.providers.uml import image

    found = image.present()
    if found is None:
        raise EnvironmentLacks("the image is not built yet; build it with: minigts image build")
    return found


@image_app.command("lock")
def image_lock(
    other: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Versions to compare with.", show_default=False)
    ] = None,
) -> None:
    """Print the version of every Debian package in the image; or say what differs from a file of such: exit 1 if any.

    Example:  minigts image lock > course.lock
    """
    from minigts.providers.uml import package_lock

    own = package_lock.read(_image().lock)
    if other is None:
        typer.echo(own.file.read_text(encoding="utf-8"), nl=False)
        return
    found = package_lock.differences(package_lock.read(other).versions, own.versions)
    for line in found:
        typer.echo(line)
    screen.note(f"{len(found)} of {len(own.versions)} packages have another version than in {other}")
    raise typer.Exit(1 if found else 0)


@image_app.command("remove")
def image_remove() -> None:
    """Remove the image, so that the next lab builds it again. Refused while labs are up, which read it.

    Example:  minigts image remove
    """
    from minigts import lab
    from minigts.providers.uml import image

    names = [each.name for each in lab.all_labs()]
    if names:
        raise InputError(f"labs are up, which may read the image ({', '.join(names)}); first: minigts down --all")
    image.remove()


@image_app.command("export")
def image_export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.", show_default=False)],
    wheels: Annotated[
        bool, typer.Option("--wheels", help="Also the Python packages that the launcher fetches, by its lock.")
    ] = False,
) -> None:
    """Put the image, and the full kernel and the clock where they are built, into one file, for a machine without a
    network or a compiler. Prints the file's SHA-256 sum, which `image import --sha256` holds it to.

    Example:  minigts image export classroom.tar.gz --wheels
    """
    import tempfile

    from minigts.providers import wheels as fetched
    from minigts.providers.uml import carried

    with tempfile.TemporaryDirectory() as temporary, screen.progress() as say:
        taken = fetched.fetch(Path(temporary), say) if wheels else ()
        made = carried.export(file, taken, say)
    screen.note(f"{', '.join(part.place for part in made.parts)}: {file.stat().st_size // 2**20} MiB")
    typer.echo(f"{made.sha256}  {file}")


@image_app.command("import")
def image_import(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `minigts image export` has made.", show_default=False)
    ],
    sha256: Annotated[str | None, typer.Option(metavar="SUM", help="The sum that the file must have.")] = None,
) -> None:
    """Take image, kernel and clock from a file: each is checked, and put in place whole or not at all.

    They run on this machine, so take them from people whom you trust.

    Example:  minigts image import classroom.tar.gz
    """
    from minigts.providers.uml import carried

    with screen.progress() as say:
        taken = carried.load(file, say, sha256)
    screen.note(f"imported {', '.join(part.place for part in taken)}" if taken else "all of it is here already")


@image_app.command("box")
def image_box() -> None:
    """Build the virtual machines' box if it is not there yet; print its path.

    Example:  minigts image box
    """
    from minigts.providers.vagrant import box

    with screen.progress() as say:
        made = box.ensure(say)
    typer.echo(made.directory)


@kernel_app.command("build")
def kernel_build(
    source: Annotated[
        str | None,
        typer.Option(metavar="VERSION|FILE", help="Of this version of Debian's source package, or of this file."),
    ] = None,
    unproven: Unproven = False,
) -> None:
    """Compile the full kernel and the clock, unless they are there; print the kernel's path. It takes some ten minutes.

    Labs in virtual time take both, and the first of them compiles both when they are missing. The kernel has what
    Debian's has not: address translation, nftables for IP, WireGuard. Labs in real time that are brought up from then
    on run it, too. Its source comes from the Debian mirror or from Debian's archives, in a version that minigts was
    proven on; a file is a .deb of the package, or a tar archive of Linux.

    Example:  minigts kernel build

    Example:  minigts kernel build --source 7.3.4-1~bpo13+1 --unproven
    """
    from minigts.artifacts import sources
    from minigts.providers.uml import full_kernel, parts

    wanted = None if source is None else sources.wanted(full_kernel.recipe(), source, unproven=unproven)
    with screen.progress() as say:
        made = parts.compile_all(say, wanted)
    screen.note(f"the full kernel is of {made.version}{', proven' if made.proven else ''}")
    typer.echo(made.directory)


@kernel_app.command("path")
def kernel_path() -> None:
    """Print where the full kernel lies; exit 3 if it is not built.

    Example:  minigts kernel path
    """
    from minigts.providers.uml import full_kernel

    found = full_kernel.present()
    if found is None:
        raise EnvironmentLacks("the full kernel is not built yet; build it with: minigts kernel build")
    typer.echo(found.directory)


@kernel_app.command("remove")
def kernel_remove() -> None:
    """Remove the full kernel and the clock: new labs in real time run Debian's again. Labs that are up keep theirs.

    Example:  minigts kernel remove
    """
    from minigts.providers.uml import clock, full_kernel

    full_kernel.remove()
    clock.remove()
    screen.note("new labs in real time run Debian's kernel; one in virtual time compiles both again")


def _prepare() -> None:
    """Builds what hosts are made of with its progress in sight. Without what that needs, the tests that need hosts say
    so."""
    from minigts.providers.uml import image, parts

    try:
        with screen.progress() as say:
            parts.ensure(say)
    except EnvironmentLacks as lack:
        screen.note(f"minigts: tests that need hosts in virtual time will be skipped: {lack}")
    else:
        return
    try:
        with screen.progress() as say:
            image.ensure(say)
    except EnvironmentLacks as lack:
        screen.note(f"minigts: tests that need hosts will be skipped: {lack}")
