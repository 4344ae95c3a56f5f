"""Patches in the files of a source: which files they touch, and these files with the patches in them."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts.errors import InputError
from minigts.language.problems import quote
from minigts.providers.uml.build.named import confined
from minigts.providers.uml.build.named.source import SourceTree

LARGEST_BYTES = 50_000_000
NEEDS_BASE, REFUSED = 3, 2
_FILE = re.compile(r"^(?:---|\+\+\+) ([^\t\n]+)", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*$")
_FAILED = re.compile(r"Hunk #(\d+) FAILED")


class SourceMismatch(InputError):
    """Sources with which a patch or an option does not go. Another commit of theirs may."""


@dataclass(frozen=True)
class Patch:
    """A patch as diff -u or git writes it."""

    name: str
    content: bytes
    is_own: bool
    """Whether it is minigts' own."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def hunks(self) -> Mapping[str, tuple[str, ...]]:
        """The first line of each hunk, `@@ -83,7 +83,8 @@ …`, by the file that it is in, in the patch's order."""
        found: dict[str, list[str]] = {}
        lines = iter(self.content.decode(errors="replace").splitlines())
        for line in lines:
            if line.startswith("--- ") and (new := next(lines, "")).startswith("+++ "):
                path = _path(new[4:]) or _path(line[4:])
                found.setdefault(path, [])
            elif (hunk := _HUNK.match(line)) and found:
                found[[*found][-1]].append(line)
                old, there = (int(hunk[group] or 1) if hunk[group] is not None else 1 for group in (2, 4))
                _pass_over(lines, old, there)
        return {path: tuple(several) for path, several in found.items()}

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self.hunks)


def _pass_over(lines: Iterator[str], old: int, new: int) -> None:
    """Read the lines of a hunk, which may look like the beginning of anything."""
    while old > 0 or new > 0:
        line = next(lines, None)
        if line is None:
            return
        if line[:1] not in ("+", "\\"):
            old -= 1
        if line[:1] not in ("-", "\\"):
            new -= 1


def _path(written: str) -> str:
    """`a/arch/um/Kconfig` → `arch/um/Kconfig`; empty for /dev/null."""
    written = written.partition("\t")[0].strip()
    if written == "/dev/null":
        return ""
    path = written.partition("/")[2]
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise InputError(f"--patch: {quote(written)} is no path in a tree of sources, as in a/net/ipv4/tcp.c")
    return path


def user_patch(place: Path) -> Patch:
    """A patch of the user's. Raises InputError."""
    try:
        content = place.read_bytes()
    except OSError as error:
        raise InputError(f"--patch {place}: {error.strerror or error}") from error
    made = Patch(place.name, content, is_own=False)
    if len(content) > LARGEST_BYTES or not made.files or not any(made.hunks.values()):
        raise InputError(f"--patch {place}: is no patch, as `diff -u` or git writes it")
    return made


@dataclass(frozen=True)
class Patched:
    """The files that patches touch, as they are with all patches in them; None for one that a patch has removed."""

    files: Mapping[str, bytes | None]
    merged: tuple[str, ...]
    """`PATCH: FILE` for each that did not fit without fuzz, and was merged three ways."""


def apply(
    patches: Sequence[Patch],
    contents: Mapping[str, bytes],
    make_place: Callable[[], confined.Workplace],
    base: Callable[[], SourceTree],
    broken_off: threading.Event | None = None,
) -> Patched:
    """Apply the patches to `contents`, the files that they touch. `base` is asked only where a patch does not fit.
    Raises SourceMismatch, which names patch, file and hunk."""
    if not patches:
        return Patched({}, ())
    made = _tried(patches, contents, make_place(), {}, broken_off)
    if made is None:
        touched = {path for each in patches if each.is_own for path in each.files}
        proven = dict(base().contents(touched))
        made = _tried(patches, contents, make_place(), proven, broken_off)
    assert made is not None, "with a base it is applied or refused"
    return made


def _tried(
    patches: Sequence[Patch],
    contents: Mapping[str, bytes],
    place: confined.Workplace,
    base: Mapping[str, bytes],
    broken_off: threading.Event | None,
) -> Patched | None:
    """As `applied`; None where a base is needed, and there is none."""
    for folder, several in (("files", contents), ("base", base)):
        for path, content in several.items():
            place.give(f"{folder}/{path}", content)
    (place.work / "files").mkdir(exist_ok=True)
    for number, patch in enumerate(patches):
        place.give(f"patches/{number:03}.patch", patch.content)
        place.give(f"patches/{number:03}.files", "".join(f"{path}\n" for path in patch.files).encode())
    code = place.run("apply.sh", broken_off=broken_off)
    if code == NEEDS_BASE:
        return None
    if code == REFUSED:
        raise SourceMismatch(_refusal(patches, confined.lines(place.read("out/refused"))))
    if code:
        raise InputError("the patches could not be applied: patch(1) fails")
    merged = (line.split(" ", 1) for line in confined.lines(place.read("out/merged")))
    touched = dict.fromkeys(path for patch in patches for path in patch.files)
    return Patched(
        {path: _taken(place, path) for path in touched},
        tuple(f"{patches[int(number)].name}: {path}" for number, path in merged),
    )


def _taken(place: confined.Workplace, path: str) -> bytes | None:
    try:
        return place.read(f"files/{path}")
    except FileNotFoundError:
        return None


def _refusal(patches: Sequence[Patch], said: Sequence[str]) -> str:
    number, path = said[0].split(" ", 1)
    patch = patches[int(number)]
    hunks = patch.hunks.get(path, ())
    failed = [int(found[1]) for line in said[1:] if (found := _FAILED.search(line))]
    whose = "minigts' patch" if patch.is_own else "--patch"
    if not failed:
        why = "the sources have no such file" if any("find file" in line for line in said) else "it is there already"
        return f"{whose} {patch.name}: {path}: {why}"
    which = ", ".join(f"hunk {each} ({hunks[each - 1][:100]})" for each in failed[:3] if each <= len(hunks))
    more = f" and {len(failed) - 3} more" if failed[3:] else ""
    tried = "nor can it be merged: both have changed the same lines" if patch.is_own else "so it is not applied"
    return f"{whose} {patch.name}: {path}: {which}{more} does not fit these sources, {tried}"
