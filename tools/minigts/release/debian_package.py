"""A package of Debian: minigts and the Python packages of its lock, in one environment for several of Debian's Pythons.

The environment is that of `python -m venv`, but for two versions of Python at once: Python finds its packages in
`lib/pythonX.Y` beside it, and a line there leads to those that are the same for all versions. So it needs no package of
Debian's Python but Python itself, and goes on when a new release of Debian brings another Python that is among them.
"""

from __future__ import annotations

import email.utils
import filecmp
import gzip
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from packaging.markers import Marker

import minigts
from minigts import paths
from minigts.errors import CommandFailed, EnvironmentLacks, InputError, MinigtsError
from minigts.machine import shell
from minigts.machine.progress import Progress
from minigts.providers import DEFAULT, system_packages
from minigts.release import folder as releases
from minigts.release.materials import PYTHON_LOCK

PYTHONS = ("3.11", "3.13")
"""Those of Debian 12 and 13."""
MAINTAINER = "The maintainers of minigts <maintainers@minigts.invalid>"
HOME, SHARED = "usr/lib/minigts", "usr/lib/minigts/lib/shared"
FETCH_TIMEOUT_S = PACK_TIMEOUT_S = 1800.0
OLDEST_LIBRARY = 36
"""Debian 12 has version 2.36 of the C library; what is made for older ones runs there, too."""
_ENTRY = re.compile(
    r"^([A-Za-z0-9._-]+==[^\s;\\]+)(?: ; ([^\\\n]+?))?( \\\n(?: {4}--hash=\S+(?: \\)?\n?)+)", re.MULTILINE
)
_PROGRAM = """#!/bin/sh
exec /usr/lib/minigts/bin/python3 -P -m minigts "$@"
"""
_ENVIRONMENT = "home = /usr/bin\ninclude-system-site-packages = false\n"


def build(folder: Path, say: Progress, maintainer: str = MAINTAINER, *, uncommitted: bool = False) -> Path:
    """Write the package into a folder that is there; return its file.

    Raises InputError as `release.folder.build` does, and when the file exists; EnvironmentLacks outside a checkout,
    without dpkg-deb or hatchling, or when a Python package cannot be fetched.
    """
    file = folder / f"minigts_{minigts.__version__}_amd64.deb"
    if os.path.lexists(file):
        raise InputError(f"{file}: exists already; remove it, or name another folder")
    if shutil.which("dpkg-deb") is None:
        raise EnvironmentLacks("dpkg-deb is not installed: apt-get install dpkg")
    commit = releases.clean_commit(uncommitted=uncommitted)
    if not uncommitted:
        releases.check_documentation(commit)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="minigts-deb-") as temporary:
        work = Path(temporary)
        (work / "own").mkdir()
        releases.pack_python(work / "own", say)
        root = work / "root"
        trees = [_installed(work, python, say) for python in PYTHONS]
        _share(trees, work / "shared")
        _lay_out(root, trees, work / "shared", maintainer)
        say("packing")
        _pack(root, file, releases.commit_time_s())
    return file


def _installed(work: Path, python: str, say: Progress) -> Path:
    """A directory with the packages of the lock, and minigts, for this version of Python."""
    say(f"fetching the packages of {PYTHON_LOCK} for Python {python}")
    lock, tree = work / f"lock-{python}", work / f"python{python}"
    whole = (paths.project_root() / PYTHON_LOCK).read_text(encoding="utf-8")
    lock.write_text("".join(entries(whole, python)), encoding="utf-8")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    libraries = [f"--platform=manylinux_2_{minor}_x86_64" for minor in range(OLDEST_LIBRARY, 4, -1)]
    older = [f"--platform=manylinux{name}_x86_64" for name in ("2014", "2010", "1")]
    only = [
        "--only-binary=:all:",
        "--no-deps",
        f"--python-version={python}",
        "--ignore-requires-python",
        "--implementation=cp",
        *libraries,
        *older,
    ]
    own = ["--no-index", f"--find-links={work / 'own'}", f"minigts=={minigts.__version__}"]
    try:
        # pip asks whether they are for the Python that it runs by; which ones are for the other one, the lock says.
        for what in (["--require-hashes", "-r", str(lock)], own):
            shell.run([*pip, *only, "--target", str(tree), *what], timeout_s=FETCH_TIMEOUT_S)
    except CommandFailed as error:
        raise EnvironmentLacks(f"the Python packages for the package could not be fetched\n{error}") from error
    shutil.rmtree(tree / "bin", ignore_errors=True)  # each names the Python here
    return tree


def entries(lock: str, python: str) -> Iterator[str]:
    """The entries of a lock for this version of Python, with their hashes and without their conditions."""
    here = {"python_version": python, "python_full_version": f"{python}.0"}
    for found in _ENTRY.finditer(lock):
        if found[2] is None or Marker(found[2]).evaluate(here):
            yield f"{found[1]}{found[3]}"


def _share(trees: Sequence[Path], shared: Path) -> None:
    """Move what is the same in all trees into one; programs of the processor's stay, since they look for each other."""
    shared.mkdir()
    first, *others = trees
    for each in sorted(first.iterdir()):
        if _has_libraries(each) or not all(_same(each, tree / each.name) for tree in others):
            continue
        for tree in others:
            _remove(tree / each.name)
        each.rename(shared / each.name)


def _has_libraries(place: Path) -> bool:
    return place.name.endswith(".libs") or any(".so" in file.suffixes for file in (place, *place.rglob("*")))


def _same(one: Path, other: Path) -> bool:
    if one.is_file():
        return other.is_file() and filecmp.cmp(one, other, shallow=False)
    if not other.is_dir():
        return False
    names = [{str(each.relative_to(top)) for each in top.rglob("*") if each.is_file()} for top in (one, other)]
    return names[0] == names[1] and all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()


def _lay_out(root: Path, trees: Sequence[Path], shared: Path, maintainer: str) -> None:
    home, given = root / HOME, Path(__file__).with_name("debian_files")
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python3").symlink_to("../../../bin/python3")
    (home / "pyvenv.cfg").write_text(_ENVIRONMENT)
    for python, tree in zip(PYTHONS, trees, strict=True):
        site = home / "lib" / f"python{python}" / "site-packages"
        site.parent.mkdir(parents=True)
        tree.rename(site)
        (site / "minigts.pth").write_text(f"/{SHARED}\n")
    shared.rename(root / SHARED)
    _write(root / "usr/bin/minigts", _PROGRAM, executable=True)
    documents = root / "usr/share/doc/minigts"
    _write(documents / "copyright", copyright_text(site for site in (root / SHARED, *home.glob("lib/*/site-packages"))))
    dated = f"minigts ({minigts.__version__}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n"
    when = email.utils.formatdate(releases.commit_time_s())
    _compressed(documents / "changelog.gz", f"{dated} -- {maintainer}  {when}\n".encode())
    for page in sorted((paths.project_root() / paths.SITE / "man").glob("*.1")):
        _compressed(root / "usr/share/man/man1" / f"{page.name}.gz", page.read_bytes())
    _write(root / "usr/share/lintian/overrides/minigts", (given / "lintian-overrides").read_text(encoding="utf-8"))
    files = [each for each in sorted(root.rglob("*")) if each.is_file() and not each.is_symlink()]
    sums = [
        f"{hashlib.md5(each.read_bytes(), usedforsecurity=False).hexdigest()}  {each.relative_to(root)}\n"
        for each in files
    ]
    size_kb = sum(-(-each.stat().st_size // 1024) for each in files)
    _write(root / "DEBIAN/control", control_text((given / "control").read_text(encoding="utf-8"), maintainer, size_kb))
    _write(root / "DEBIAN/md5sums", "".join(sums))
    for name in ("postinst", "prerm"):
        _write(root / "DEBIAN" / name, (given / name).read_text(encoding="utf-8"), executable=True)
    _even(root)


def control_text(template: str, maintainer: str, size_kb: int) -> str:
    """The package's control file. What building image and kernel takes is what the launcher installs for it."""
    listed = system_packages.listed_packages(Path(system_packages.__file__).parent / DEFAULT, root=False)
    building = [each.name for each in listed]
    filled = {
        "VERSION": minigts.__version__,
        "MAINTAINER": maintainer,
        "SIZE": f"{size_kb}",
        "BUILDING": ", ".join(building),
    }
    return re.sub(r"@([A-Z]+)@", lambda found: filled[found[1]], template)


def copyright_text(sites: Iterable[Path]) -> str:
    """The package's copyright file. Each Python package brings its licence along in its own folder, which is named."""
    head = (Path(__file__).with_name("debian_files") / "copyright").read_text(encoding="utf-8")
    named = sorted({_named(each) for site in sites for each in site.glob("*.dist-info") if each.name[:8] != "minigts-"})
    return head + "".join(f"  {name}\n" for name in named)


def _named(folder: Path) -> str:
    metadata = (folder / "METADATA").read_text(encoding="utf-8", errors="replace")
    licence = re.search(
        r"^License-Expression: (.+)$|^Classifier: License :: (?:.* :: )?(.+)$|^License: (.{1,60})$",
        metadata,
        re.MULTILINE,
    )
    said = next(filter(None, licence.groups())) if licence else "see its folder"
    return f"{folder.name.removesuffix('.dist-info')}: {said}"


def _write(file: Path, text: str, *, executable: bool = False) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755 if executable else 0o644)


def _compressed(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content, 9, mtime=0))


def _even(root: Path) -> None:
    """The same modes whoever builds: only what is started is executable."""
    for each in root.rglob("*"):
        if each.is_symlink():
            continue
        if each.is_dir():
            each.chmod(0o755)
        else:
            with each.open("rb") as file:
                started = file.read(2) == b"#!" and (each.stat().st_mode & 0o100) != 0
            each.chmod(0o755 if started else 0o644)
    root.chmod(0o755)


def _pack(root: Path, file: Path, time_s: int) -> None:
    argv = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--build", str(root), str(file)]
    for each in (root, *root.rglob("*")):
        os.utime(each, (time_s, time_s), follow_symlinks=False)
    try:
        shell.run(["env", f"SOURCE_DATE_EPOCH={time_s}", *argv], timeout_s=PACK_TIMEOUT_S)
    except CommandFailed as error:
        raise MinigtsError(f"{file}: cannot be packed\n{error}") from error
