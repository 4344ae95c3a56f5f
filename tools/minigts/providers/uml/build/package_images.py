"""Layers with the packages that a topology asks for.

The fetched archives are kept as well, with their digests: a layer is made of them, and other providers install them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from minigts import paths
from minigts.artifacts.build_errors import cause
from minigts.errors import CommandFailed, EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.foreign import Foreign, content
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import supported
from minigts.providers.uml.build import image, layers
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.build.layers import Put, Run
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.software import Package

FETCH_TIMEOUT_S, INSTALL_TIMEOUT_S = 1800.0, layers.CHANGE_TIMEOUT_S
SPARE_MB = 500
"""Room for packages, besides that of the image's copy."""
VERSIONS, FETCHED = "packages.lock", "archives"
ON_HOST = PurePosixPath("/var/tmp/minigts-packages")
UNKNOWN = re.compile(
    r"^E: (?:Unable to locate package|Couldn't find any package by (?:glob|regex)|Package) '?(?P<name>[^'\s]+)'?"
    r"|^E: Version '(?P<version>[^']+)' for '(?P<of>[^']+)' was not found",
    re.MULTILINE,
)
"""apt-get's messages about a package that its mirror lacks."""


def roots(plan: Plan, ready: Image, progress: Progress) -> Mapping[str, Path]:
    """The file system of each host that asks for packages, by host; made now if necessary.

    Raises InputError, with its place, for a package that Debian lacks; EnvironmentLacks, HostFailed.
    """
    return {
        host.name: _layer(plan, wanted, ready, progress) / layers.ROOT
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
    return content(run(["bash", "-s", str(ON_HOST)], _script("install.sh").read_bytes()))


def key(wanted: Sequence[str], ready: Image) -> str:
    """A layer's name: a hash of the image, the list of packages, and the scripts that install them."""
    recipe = (_script("fetch.sh"), _script("install.sh"))
    before = f"{ready.directory.name} {' '.join(wanted)}"
    return paths.content_key(((path.name, path) for path in recipe), before)


def _layer(plan: Plan, wanted: Sequence[str], ready: Image, progress: Progress, *, installed: bool = True) -> Path:
    made = paths.cache_entry(layers.store() / key(wanted, ready) / (layers.ROOT if installed else FETCHED))
    layer = made.parent
    if made.exists():
        return layer
    layers.store().mkdir(parents=True, exist_ok=True)
    with image.only_builder(layers.store(), progress):
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
    with layers.new_directory(layer / FETCHED) as place:
        argv = [str(_script("fetch.sh")), str(ready.root), str(place), *wanted]
        try:
            shell.run_group(argv, timeout_s=FETCH_TIMEOUT_S, env={"PATH": image.search_path()})
        except CommandFailed as error:
            raise _explained(plan, error.out, layer) from error


def _install(wanted: Sequence[str], ready: Image, layer: Path, progress: Progress) -> None:
    """Make the layer; its file system is there last, and is never written to again."""

    def change(put: Put, run: Run) -> None:
        paths.write_whole(layer / VERSIONS, install(put, run, layer / FETCHED))

    progress(f"installing {', '.join(wanted)} into a copy of the image, once")
    layers.make(layer / layers.ROOT, ready, change, "packages", SPARE_MB)


def _explained(plan: Plan, log: Foreign, layer: Path) -> MinigtsError:
    """The error for packages that the mirror lacks, each with its places in the topology, or for any other failure."""
    every = [each for host in plan.hosts if host.software is not None for each in host.software.packages]
    unknown = {found["name"] or f"{found['of']}={found['version']}" for found in UNKNOWN.finditer(content(log))}
    problems = {_unknown(each) for each in every if each.name in unknown}
    if problems:
        return InputError(sorted(problems))
    failed = layer / "failed-fetch.log"
    failed.write_text(content(log))
    return EnvironmentLacks(f"the packages could not be fetched: {cause(log, f'room in {layer}')}\nThe log: {failed}")


def _unknown(package: Package) -> Problem:
    name, _, version = package.name.partition("=")
    which = f"no version {version!r} of package {name!r}" if version else f"no package {name!r}"
    place = package.place
    return Problem(place.file, place.line, f"{place.path}: Debian has {which}, in the release that hosts have")


def _script(name: str) -> Path:
    return paths.project_root() / "provision" / "packages" / name
