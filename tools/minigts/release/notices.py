"""What a release has to say of the programs of others in its built parts: where the source of each is, and what its
authors want to be said with it.

Debian has both for its packages; `provision/notices` asks there. Only what is in a part counts: of the packages of a
compiler's root those that are linked into what it made.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from minigts import paths
from minigts.artifacts import build, build_errors, sources
from minigts.errors import CommandFailed, EnvironmentLacks
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.uml.build import package_lock

SNAPSHOT = "https://snapshot.debian.org/package/{}/{}/"
"""Debian's archive of every version of every source package."""
PATCHES = "provision/kernel"
"""Where a release's package has the changes to Linux, and its configuration."""
FETCH_TIMEOUT_S = 3600.0
ROOM_MB = 1000
COMMON = "/usr/share/common-licenses/"
_LINKED = re.compile(r"librust-.*-dev|libstd-rust-(dev|[0-9.]+)|libc6(-dev)?|libgcc-([0-9]+-dev|s1)")
"""The packages whose code is in a compiled program, of those of its compiler's root."""
_RULE = "=" * 80


@dataclass(frozen=True, order=True)
class DebianPackage:
    """A package of Debian's whose files, or whose code, a part of the release has."""

    part: str
    name: str
    version: str
    sha256: str = ""


@dataclass(frozen=True)
class Said:
    """What Debian has of these packages."""

    sources: Mapping[tuple[str, str], tuple[tuple[str, str], ...]]
    """Name and version of the source packages, by a package's name and version."""
    copyrights: Mapping[str, str]
    """The copyright file by a package's name."""
    licences: Mapping[str, str]
    """The texts of the licences that copyright files refer to, by name."""


def release_packages(image_lock: Path) -> tuple[DebianPackage, ...]:
    """The packages of a release's parts, sorted. `image_lock` is the packages.lock of the image that is packed."""
    recipes = paths.project_root() / "provision"
    compiled = {"kernel": "kernel", "clock": "clock", "agent": "image"}
    of_image = (DebianPackage("image", *each) for each in package_lock.read(image_lock).versions.items())
    linked = (
        DebianPackage(part, *line.split())
        for recipe, part in compiled.items()
        for line in (recipes / recipe / "packages.lock").read_text(encoding="utf-8").splitlines()
        if _LINKED.fullmatch(line.split()[0])
    )
    kernel = sources.read(recipes / "kernel")[0]
    return tuple(sorted({*of_image, *linked, DebianPackage("kernel", kernel.package, kernel.version, kernel.sha256)}))


def ask_debian(packages: Iterable[DebianPackage], say: Progress) -> Said:
    """What Debian has of these packages: from a mirror, or else its archive. Raises EnvironmentLacks when neither has
    all of them."""
    wanted = sorted({f"{each.name} {each.version} {each.sha256}".strip() for each in packages})
    say(f"fetching {len(wanted)} packages of Debian, for their sources and notices")
    with tempfile.TemporaryDirectory(prefix="minigts-notices-", dir=build.WORK_DIRECTORY) as scratch:
        asked_for, output = Path(scratch) / "wanted", Path(scratch) / "output"
        asked_for.write_text("".join(f"{line}\n" for line in wanted), encoding="utf-8")
        output.mkdir()
        argv = [str(paths.project_root() / "provision" / "notices" / "build.sh"), str(asked_for), str(output)]
        try:
            shell.run_group(argv, timeout_s=FETCH_TIMEOUT_S)
        except CommandFailed as error:
            why = build_errors.cause(error.out, f"some {ROOM_MB} MB in {build.WORK_DIRECTORY}")
            raise EnvironmentLacks(
                f"the notices of Debian's packages, without which nothing is released: {why}"
            ) from error
        return _read(output)


def _read(output: Path) -> Said:
    made: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for line in (output / "sources").read_text(encoding="utf-8").splitlines():
        name, version, source, source_version = line.split()
        made[name, version] = (*made.get((name, version), ()), (source, source_version))
    return Said(made, _texts(output / "copyright"), _texts(output / "licences"))


def _texts(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.iterdir())}


def sources_text(packages: Iterable[DebianPackage], said: Said) -> str:
    """A table, columns separated by tabs: where the source of each package is."""
    lines = {
        "\t".join((each.part, each.name, each.version, source, version, SNAPSHOT.format(quote(source), quote(version))))
        for each in packages
        for source, version in said.sources[each.name, each.version]
    }
    patches = f"kernel\tminigts\t-\t-\t-\tthe folder {PATCHES} of the package's source, beside this file"
    return "\n".join(["part\tpackage\tversion\tsource\tsource version\taddress", *sorted({*lines, patches})]) + "\n"


def notices_text(packages: Iterable[DebianPackage], said: Said) -> str:
    """The copyright files of all packages, equal ones once, and the licences that they refer to."""
    names: dict[str, list[str]] = {}
    for name in sorted({each.name for each in packages}):
        names.setdefault(said.copyrights[name].strip(), []).append(name)
    return "\n".join(_sections(names, said.licences))


def _sections(names: Mapping[str, list[str]], licences: Mapping[str, str]) -> Iterator[str]:
    yield "Programs of others in the built parts of minigts, from packages of Debian, and what their authors say.\n"
    for text, of in names.items():
        yield f"{_RULE}\n{', '.join(of)}\n{_RULE}\n\n{text}\n"
    for name, text in licences.items():
        if any(COMMON + name in each for each in names):
            yield f"{_RULE}\n{COMMON}{name}\n{_RULE}\n\n{text.strip()}\n"
