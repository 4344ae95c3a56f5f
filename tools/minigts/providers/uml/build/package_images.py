"""Layers: copies of the image with the packages that a topology asks for, made once and kept in the cache.

A host with `packages:` starts from a layer as others do from the image. The fetched archives are kept as well, with
their digests: a layer is made of them, and other providers install them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.artifacts.build_errors import cause
from minigts.errors import CommandFailed, EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import supported
from minigts.providers.agent import lab_processes
from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.build import image
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.run import booting, transfer
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.software import Package

FETCH_TIMEOUT_S, INSTALL_TIMEOUT_S = 1800.0, 900.0
INSTALLING_MB = 512
"""Memory of the host on which packages are installed."""
SPARE_MB = 500
"""Room for packages, besides that of the image's copy."""
ROOT, VERSIONS, FETCHED = "root.ext4", "packages.lock", "archives"
ON_HOST = PurePosixPath("/var/tmp/minigts-packages")
UNKNOWN = re.compile(
    r"^E: (?:Unable to locate package|Couldn't find any package by (?:glob|regex)|Package) '?(?P<name>[^'\s]+)'?"
    r"|^E: Version '(?P<version>[^']+)' for '(?P<of>[^']+)' was not found",
    re.MULTILINE,
)
"""apt-get's messages about a package that its mirror lacks."""


Put = Callable[[Path, PurePosixPath], None]
"""Copies a file or directory to a host."""
Run = Callable[[Sequence[str], bytes], str]
"""Runs a command with an input on a host; returns its standard output."""


def roots(plan: Plan, ready: Image, progress: Progress) -> Mapping[str, Path]:
    """The file system of each host that asks for packages, by host; made now if necessary.

    Raises InputError, with its place, for a package that Debian lacks; EnvironmentLacks, HostFailed.
    """
    return {
        host.name: _layer(plan, wanted, ready, progress) / ROOT
        for host in plan.hosts
        if (wanted := supported.packages_of(host))
    }


def archives(plan: Plan, host: Host, ready: Image, progress: Progress) -> Path:
    """The directory with the archives of a host's packages, fetched now if necessary. Raises the errors of `roots`."""
    return _layer(plan, supported.packages_of(host), ready, progress, installed=False) / FETCHED


def install(put: Put, run: Run, fetched: Path) -> str:
    """Install fetched packages on the host that `put` copies to and `run` runs on; return the versions of all packages
    that it has then.

    A second call changes nothing. Raises CommandFailed.
    """
    put(fetched, ON_HOST)
    return run(["bash", "-s", str(ON_HOST)], _script("install.sh").read_bytes())


def key(wanted: Sequence[str], ready: Image) -> str:
    """A layer's name: a hash of the image, the list of packages, and the scripts that install them."""
    recipe = (_script("fetch.sh"), _script("install.sh"))
    before = f"{ready.directory.name} {' '.join(wanted)}"
    return paths.content_key(((path.name, path) for path in recipe), before)


def _layer(plan: Plan, wanted: Sequence[str], ready: Image, progress: Progress, *, installed: bool = True) -> Path:
    layers = paths.cache_root() / "layers"
    layer = layers / key(wanted, ready)
    made = layer / (ROOT if installed else FETCHED)
    if made.exists():
        return layer
    layers.mkdir(parents=True, exist_ok=True)
    with image.only_builder(layers, progress):
        if not (layer / FETCHED).is_dir():
            _fetch(plan, wanted, ready, layer, progress)
        if installed and not made.exists():
            _install(wanted, ready, layer, progress)
    return layer


def _fetch(plan: Plan, wanted: Sequence[str], ready: Image, layer: Path, progress: Progress) -> None:
    lacking = image.missing_to_build()
    if lacking:
        raise EnvironmentLacks("\n".join(lacking))
    progress(f"fetching {', '.join(wanted)} from Debian, once")
    layer.mkdir(exist_ok=True)
    with made_beside(layer / FETCHED) as place:
        argv = [str(_script("fetch.sh")), str(ready.root), str(place), *wanted]
        try:
            shell.run_group(argv, timeout_s=FETCH_TIMEOUT_S, env={"PATH": image.search_path()})
        except CommandFailed as error:
            raise _explained(plan, error.stdout, layer) from error


def _install(wanted: Sequence[str], ready: Image, layer: Path, progress: Progress) -> None:
    """Boot a copy of the image and let the host install the packages; the copy is never written to again."""
    needed_mb = (ready.root.stat().st_blocks * 512 >> 20) + SPARE_MB
    if (free_mb := shutil.disk_usage(layer).free >> 20) < needed_mb:
        raise EnvironmentLacks(f"hosts with packages take {needed_mb} MB in {layer}; {free_mb} MB are free")
    progress(f"installing {', '.join(wanted)} into a copy of the image, once")
    with made_beside(layer / "made") as place:
        shell.run(["cp", "--sparse=always", "--reflink=auto", str(ready.root), str(place / ROOT)], timeout_s=600)
        versions = changed(place, ready.boot, partial(_install_fetched, layer / FETCHED), "packages")
        paths.write_whole(layer / VERSIONS, versions)
        (place / ROOT).rename(layer / ROOT)
    shutil.rmtree(layer / "made")


def _install_fetched(fetched: Path, put: Put, run: Run) -> str:
    return install(put, run, fetched)


def changed(place: Path, boot: Path, change: Callable[[Put, Run], str], what: str) -> str:
    """Boot the file system in `place` and change it; return the result of `change`. `what` names it in messages."""
    rundir = place / "host"
    rundir.mkdir()
    machine = GuestKernel("image", INSTALLING_MB, (), writes_base=True)
    booting.start(rundir, Launch(boot, place / ROOT, (machine,), ()), ends_with_caller=True)
    host = AgentProvider(rundir)

    def put(source: Path, target: PurePosixPath) -> None:
        transfer.put(host, machine.name, rundir / "shared" / machine.name, source, target)

    def run(argv: Sequence[str], stdin: bytes) -> str:
        return host.run(machine.name, argv, timeout_s=INSTALL_TIMEOUT_S, stdin=stdin).stdout

    try:
        booting.wait(host, [machine.name], lambda _: None)
        said = change(put, run)
        run(["sh", "-c", "sync; mount -o remount,ro /"], b"")
    except CommandFailed as error:
        why = cause(error.stdout + error.stderr, f"room on the host's disk of {image.IMAGE_MB} MB")
        raise MinigtsError(f"the {what} could not be installed: {why}") from error
    finally:
        lab_processes.end(rundir)
    return said


@contextmanager
def made_beside(ready: Path) -> Iterator[Path]:
    """A context with a directory that is renamed to `ready` at its end. Remains of an earlier one are removed first."""
    place = ready.with_name(f"building-{ready.name}")
    lab_processes.end(place / "host")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        yield place
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    place.rename(ready)


def _explained(plan: Plan, log: str, layer: Path) -> MinigtsError:
    """The error for packages that the mirror lacks, each with its places in the topology, or for any other failure."""
    every = [each for host in plan.hosts if host.software is not None for each in host.software.packages]
    unknown = {found["name"] or f"{found['of']}={found['version']}" for found in UNKNOWN.finditer(log)}
    problems = {_unknown(each) for each in every if each.name in unknown}
    if problems:
        return InputError(sorted(problems))
    failed = layer / "failed-fetch.log"
    failed.write_text(log)
    return EnvironmentLacks(f"the packages could not be fetched: {cause(log, f'room in {layer}')}\nThe log: {failed}")


def _unknown(package: Package) -> Problem:
    name, _, version = package.name.partition("=")
    which = f"no version {version!r} of package {name!r}" if version else f"no package {name!r}"
    place = package.place
    return Problem(place.file, place.line, f"{place.path}: Debian has {which}, in the release that hosts have")


def _script(name: str) -> Path:
    return paths.project_root() / "provision" / "packages" / name
