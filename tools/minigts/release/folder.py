"""The folder of a release: the package, the built parts, their documents and sums; written, and held against this
machine's own build."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import minigts
from minigts import paths
from minigts.artifacts import checksums
from minigts.errors import EnvironmentLacks, InputError, MinigtsError, Problem
from minigts.experiments import run_folders
from minigts.language.problems import list_names as in_words
from minigts.language.problems import quote
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers.uml.build import export, image
from minigts.release import documents, materials, notices

SUMS, BILL, ORIGIN = "SHA256SUMS", "minigts.cdx.json", "minigts.provenance.json"
SOURCES, NOTICES = "minigts.sources.tsv", "minigts.notices.txt"
SIGNATURE = f"{SUMS}.minisig"
PARTS = "*-parts-x86_64.tar.gz"
PACKAGING_TIMEOUT_S = 300.0
_MOST_BYTES = 1 << 20
_MOST_NAMED = 20
"""The most files that one error names."""
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._+-]{0,99})")
"""As sha256sum writes it."""


@dataclass(frozen=True)
class FileDifference:
    """A file that a release has otherwise than this machine, or that only one of them has."""

    name: str
    there: str
    here: str
    """Their sums; empty where there is no such file."""

    def __str__(self) -> str:
        return f"{self.name}: {self.there[:16] or 'not there'} in the release, {self.here[:16] or 'not here'} here"


def build(folder: Path, say: Progress, *, uncommitted: bool = False) -> tuple[Path, ...]:
    """Write a release into the new folder; return its files. The parts are those that this minigts has built.

    Raises InputError when the folder exists, or (unless `uncommitted`) when the checkout differs from its commit, has
    no documentation of it, or the commit has the tag of another version; EnvironmentLacks outside a checkout, without
    hatchling, when a part is not built, or when Debian's packages in the parts are not to be had for their notices.
    """
    if os.path.lexists(folder):
        raise InputError(f"{folder}: exists already; name a new folder")
    commit = clean_commit(uncommitted=uncommitted)
    if not uncommitted:
        check_documentation(commit)
        check_tag(_tags(commit))
    built = image.present()
    if built is None or len(export.built_parts()) < len(export.STORES):
        raise EnvironmentLacks(
            "image, kernel and clock are not all built yet; build them with: minigts up topologies/pair.yaml"
        )
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.") as temporary:
        made = Path(temporary) / "release"
        made.mkdir()
        pack_python(made, say)
        packed = export.export(made / PARTS.replace("*", f"minigts-{minigts.__version__}"), (), say)
        packed.file.chmod(0o644)
        packages = notices.release_packages(built.lock)
        said = notices.ask_debian(packages, say)
        (made / SOURCES).write_text(notices.sources_text(packages, said), encoding="utf-8")
        (made / NOTICES).write_text(notices.notices_text(packages, said), encoding="utf-8")
        say("writing sums and documents")
        own = {path.name: _sum(path) for path in sorted(made.iterdir())}
        (made / BILL).write_text(
            documents.bill(minigts.__version__, materials.release_materials(built.lock)), encoding="utf-8"
        )
        parts = {part.place: checksums.total(_entries(part)) for part in packed.parts}
        (made / ORIGIN).write_text(documents.origin(own, parts, commit, minigts.__version__), encoding="utf-8")
        lines = [f"{_sum(path)}  {path.name}\n" for path in sorted(made.iterdir())]
        (made / SUMS).write_text("".join(lines), encoding="utf-8")
        try:
            made.rename(folder)
        except OSError as error:
            raise MinigtsError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return tuple(sorted(folder.iterdir()))


def clean_commit(*, uncommitted: bool) -> str:
    """The checkout's commit. Raises InputError where it has changes, unless `uncommitted`; EnvironmentLacks outside a
    checkout."""
    if paths.is_installed():
        raise EnvironmentLacks("a release is made from a checkout: ./minigts release build DIR")
    commit = run_folders.commit()
    if commit.endswith("-dirty") and not uncommitted:
        raise InputError("the checkout has changes that are in no commit; commit them, or say --uncommitted")
    return commit


def commit_time_s() -> int:
    """When the checkout's commit was made, in seconds since 1970."""
    argv = ["git", "-C", str(paths.project_root()), "show", "-s", "--format=%ct", "HEAD"]
    return int(shell.run(argv, timeout_s=run_folders.ASKING_TIMEOUT_S).stdout)


def check_tag(tags: Iterable[str]) -> None:
    """A commit that is tagged as a version, as in `v1.0.0`, has to be of that version. A commit without such a tag is
    released too, before it is tagged. Raises InputError."""
    versions = sorted(tag for tag in tags if re.fullmatch(r"v[0-9].*", tag))
    if versions and f"v{minigts.__version__}" not in versions:
        raise InputError(
            f"this commit has the tag {', '.join(versions)}, and its version is {minigts.__version__}, which "
            f"tools/minigts/__init__.py says"
        )


def _tags(commit: str) -> list[str]:
    argv = ["git", "-C", str(paths.project_root()), "tag", "--points-at", commit]
    return shell.run(argv, timeout_s=run_folders.ASKING_TIMEOUT_S).stdout.split()


def check_documentation(commit: str) -> None:
    """The package takes the documentation's site along, which is no part of the commit: it has to be made from it."""
    site = paths.project_root() / paths.SITE
    of = site / paths.SITE_OF
    if not of.is_file() or of.read_text(encoding="utf-8") != f"{commit}\n":
        raise InputError(f"{site}: is not the documentation of this commit; build it by docs/site/build")


def pack_python(into: Path, say: Progress) -> None:
    """Wheel and sdist; hatchling writes the same bytes for the same files."""
    if importlib.util.find_spec("hatchling") is None:
        raise EnvironmentLacks("hatchling is not installed here; the launcher installs it: ./minigts release build DIR")
    say("packing wheel and source")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(into)]
    shell.run(argv, timeout_s=PACKAGING_TIMEOUT_S, cwd=paths.project_root())


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entries(part: export.Part) -> list[checksums.Entry]:
    return [checksums.Entry(**each.model_dump()) for each in part.files]


def verify(folder: Path) -> tuple[FileDifference, ...]:
    """Hold a release against its own sums, and its parts against those that this machine has built; return what differs
    in the latter, by file.

    Raises InputError for a folder that is no release, or has other files than its sums; EnvironmentLacks when a part is
    not built here.
    """
    check_sums(folder)
    packed = sorted(folder.glob(PARTS))
    if len(packed) != 1:
        raise _refusal(folder, f"has {len(packed)} files {PARTS}, and a release has one")
    there = {part.place: _by_name(part) for part in export.index_of(packed[0]).parts}
    here = {part.place: _by_name(part) for part in export.built_parts()}
    unbuilt = sorted(set(there) - set(here))
    if unbuilt:
        raise EnvironmentLacks(
            f"{', '.join(unbuilt)} is not built here, from the same recipe, so nothing can be compared; in the "
            f"checkout of the release's commit: minigts up topologies/pair.yaml"
        )
    return tuple(_differences(there, here))


def check_sums(folder: Path) -> None:
    """Hold a release's files against its sums. Raises InputError for a folder that is no release, or with other files:
    changed, missing or further ones."""
    listed = sums(folder)
    _require_only({*listed, SUMS, SIGNATURE}, folder)
    for name, expected in listed.items():
        try:
            with paths.open_regular(folder / name, os.O_NOFOLLOW) as file:
                own = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _refusal(folder, f"{name} cannot be read: {error.strerror or error}") from error
        if own != expected:
            raise _refusal(folder, f"{name} has the sum {own}, and {SUMS} says {expected}")


def _require_only(known: Collection[str], folder: Path) -> None:
    """Raise InputError, which names each file, folder and link there that nobody has signed: whoever is told that a
    release is as it was built might install it."""
    with os.scandir(folder) as entries:
        found = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
    further = sorted(name for name in found if name not in known)
    linked = sorted(name for name, is_file in found.items() if name in known and not is_file)
    problems = [Problem(str(folder), 0, f"{quote(name)} is not listed in {SUMS}: remove it") for name in further]
    problems += [
        Problem(str(folder), 0, f"{quote(name)} is no plain file: put the file itself there") for name in linked
    ]
    if problems:
        more = [Problem(str(folder), 0, f"… and {len(problems) - _MOST_NAMED} more")] if problems[_MOST_NAMED:] else []
        raise InputError([*problems[:_MOST_NAMED], *more])


def _by_name(part: export.Part) -> dict[str, str]:
    return {f"{part.place}/{each.name}": each.sha256 for each in part.files}


def _differences(there: Mapping[str, dict[str, str]], here: Mapping[str, dict[str, str]]) -> Iterator[FileDifference]:
    for place, files in sorted(there.items()):
        own = here[place]
        for name in sorted({*files, *own}):
            if files.get(name) != own.get(name):
                yield FileDifference(name, files.get(name, ""), own.get(name, ""))


def sums(folder: Path) -> dict[str, str]:
    """The SHA-256 sums of a release's files by name, as it says them. Raises InputError for a folder without them."""
    try:
        lines = paths.read_whole(folder / SUMS, _MOST_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(folder, f"has no {SUMS} that can be read; `minigts release build` writes it") from error
    found = {number: _LINE.fullmatch(line) for number, line in enumerate(lines, 1)}
    wrong = [number for number, match in found.items() if match is None]
    if wrong or not found:
        where = wrong[0] if wrong else 0
        raise InputError([Problem(str(folder / SUMS), where, "a line is `SUM  NAME`, as sha256sum writes it")])
    listed = [(match[2], match[1]) for match in found.values() if match is not None]
    names = Counter(name.lower() for name, _ in listed)
    twice = [name for name, _ in listed if names[name.lower()] > 1]
    if twice:
        why = f"lists {in_words(twice)}: on some file systems these are one file, so each name stands once"
        raise InputError([Problem(str(folder / SUMS), 0, why)])
    return dict(listed)


def _refusal(folder: Path, why: str) -> InputError:
    return InputError([Problem(str(folder), 0, why)])
