"""An exploration as one file for others, and a folder from such a file; see `results.bundle`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from minigts.errors import InputError
from minigts.explore import folder, permission
from minigts.results import bundle, crate, gate
from minigts.results.folder import inside

LIMITS = replace(bundle.LIMITS, depth=6)
"""A host's log lies at results/failed/000417/logs/HOST/NAME."""
PLAIN = (folder.EXPLORATION, folder.SEEDS, folder.FAULTS)


def write(directory: Path, target: Path) -> tuple[crate.CrateFile, ...]:
    """Write the exploration of `directory` to the new file `target`, and return the files in it. The same folder gives
    the same bytes. Raises InputError for a folder that is no exploration's, and where `target` exists."""
    exploration = folder.read(directory)
    content = {f"{bundle.TOP}/{path.relative_to(directory).as_posix()}": path for path in _files(directory)}

    def metadata(files: tuple[crate.CrateFile, ...]) -> str:
        about = f"The test `{exploration.test.in_words}` under the seeds {exploration.first} to {exploration.last}"
        program = " ".join(part for part in (exploration.minigts, exploration.commit) if part)
        return crate.plain(directory.resolve().name, about, program, exploration.started, files)

    return bundle.archive(target, content, metadata)


def _files(directory: Path) -> Iterator[Path]:
    """The regular files of an exploration; a link might lead to what should not be published."""
    places = [directory / name for name in PLAIN]
    places += sorted((directory / folder.TEST).glob("*"))
    places += sorted((directory / folder.FAILED).rglob("*"))
    for path in places:
        inside(directory, *path.relative_to(directory).parts)
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            yield path


def unpack(file: Path, results: Path, *, trusted: bool) -> Path:
    """The folder of the bundle `file`, new in `results`. Raises InputError for a file that is no bundle of an
    exploration; for one that is not `trusted`, with all that a replay would do on this machine; and where the folder
    exists."""
    target = results / file.name.removesuffix(".zip")
    if target.exists():
        raise InputError(f"{target}: is there already; the bundle was unpacked before: name that folder, not {file}")
    with bundle.unpack(file, results, LIMITS) as found:
        exploration = folder.read(found)
        gate.examine_bundle(file, exploration).allow(permission.asks(exploration), trusted=trusted)
        folder.adopt(found, exploration)
        found.rename(target)
    return target
