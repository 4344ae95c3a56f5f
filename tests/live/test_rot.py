"""In a year Debian's mirrors have moved on: what a build takes then, and what it says where there is nothing to take.

The mirrors are small and on a loopback address; apt, dpkg and mmdebstrap are the real ones.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from live import small_archive
from live.small_archive import Archive, Deb
from minigts import paths
from minigts.artifacts import sources
from minigts.providers.uml.build import kernel_build

pytestmark = [pytest.mark.uml, pytest.mark.nightly]

DAY = "20260101T000000Z"
PAST = timedelta(days=-3)
PROVEN, SECOND, NEXT = (
    Deb("linux-source-9.1", "9.1.1-1"),
    Deb("linux-source-9.2", "9.2.1-1"),
    Deb("linux-source-9.3", "9.3.1-1"),
)
TINY, OLDER = Deb("tiny", "1.0", {"usr/share/tiny": "1.0\n"}), Deb("tiny", "0.9", {"usr/share/tiny": "0.9\n"})
SUITES = ("unstable", "testing", "stable-backports", "trixie-backports")


@pytest.fixture(scope="module")
def key() -> Iterator[small_archive.Key]:
    with small_archive.key() as made:
        yield made


@dataclass(frozen=True)
class Places:
    """A mirror, and Debian's snapshot archive; who builds knows no others."""

    mirror: Archive
    snapshot: Archive
    work: Path

    @property
    def settings(self) -> dict[str, str]:
        return {
            "MINIGTS_DEBIAN_MIRROR": self.mirror.address,
            "MINIGTS_DEBIAN_FALLBACKS": self.snapshot.address.replace(DAY, "DAY"),
            "MINIGTS_DEBIAN_KEYS": str(self.mirror.key.keyring),
            "MINIGTS_ARCHIVE_DAY": DAY,
        }

    def bash(self, script: str, settings: Mapping[str, str]) -> tuple[int, str]:
        """The exit code, and what was said."""
        made = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={**os.environ, **self.settings, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        return made.returncode, made.stdout

    def fetch(self, **settings: str) -> tuple[int, str]:
        """What fetch.sh says of a table of two versions; where they lie, the tests say."""
        table, output = self.work / "sources", self.work / "fetched"
        output.mkdir()
        archive = Archive(self.work / "elsewhere", self.mirror.key, "")
        table.write_text("# best first\n" + archive.row(PROVEN, DAY) + archive.row(SECOND, DAY))
        script = paths.project_root() / "provision" / "fetch.sh"
        return self.bash(shlex.join([str(script), str(table), str(output), "minigts kernel build"]), settings)

    @property
    def fetched(self) -> dict[str, str]:
        """What lies there then, and what of it is text."""
        return {
            each.name: "" if each.suffix == ".deb" else each.read_text().strip()
            for each in (self.work / "fetched").iterdir()
        }

    def root(self, *options: str, **settings: str) -> tuple[int, str]:
        """What is said while a root is made that has the package `tiny`, which its archive alone knows; with what tiny
        has in it as the last line."""
        debian = paths.project_root() / "provision" / "debian.sh"
        script = (
            f"source {debian}; {' '.join(options)} TMPDIR=/var/tmp make_debian_root - --format=null --variant=extract "
            """--include=tiny ${more:+"${more[@]}"} --extract-hook='cat "$1/usr/share/tiny"'"""
        )
        return self.bash(script, settings)

    def packages(self, *wanted: str, **settings: str) -> tuple[int, str]:
        """What is said while packages are fetched for an image that has one other; what was fetched is in `fetched`."""
        image, tree, output = self.work / "root.ext4", self.work / "tree", self.work / "fetched"
        (tree / "var" / "lib" / "dpkg").mkdir(parents=True)
        (tree / "var" / "lib" / "dpkg" / "status").write_text(
            "Package: base\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\nDescription: base\n"
        )
        output.mkdir()
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(image), "4M"], check=True)
        script = paths.project_root() / "provision" / "packages" / "fetch.sh"
        return self.bash(shlex.join([str(script), str(image), str(output), *wanted]), settings)


@pytest.fixture
def places(tmp_path: Path, key: small_archive.Key) -> Iterator[Places]:
    for name in ("debian", DAY):
        (tmp_path / "served" / name).mkdir(parents=True)
    with small_archive.served(tmp_path / "served") as address:
        mirror, snapshot = (Archive(tmp_path / "served" / name, key, f"{address}/{name}") for name in ("debian", DAY))
        yield Places(mirror, snapshot, tmp_path)


def test_a_version_that_the_mirror_has_is_taken_from_there(places: Places) -> None:
    PROVEN.build(places.mirror.directory)
    code, said = places.fetch()
    assert (code, places.fetched) == (0, {"source.deb": "", "version": "9.1.1-1"}), said
    assert f"source: linux-source-9.1 9.1.1-1 from {places.mirror.address}, proven" in said


def test_what_the_mirror_has_lost_comes_from_the_archive_before_another_version(places: Places) -> None:
    SECOND.build(places.mirror.directory)
    PROVEN.build(places.snapshot.directory)
    code, said = places.fetch()
    assert code == 0, said
    assert places.fetched["version"] == "9.1.1-1"
    assert f"from {places.snapshot.address}, proven" in said


def test_without_an_archive_the_next_version_that_was_proven_is_taken(places: Places) -> None:
    SECOND.build(places.mirror.directory)
    code, said = places.fetch(MINIGTS_DEBIAN_FALLBACKS="")
    assert code == 0, said
    assert places.fetched["version"] == "9.2.1-1"
    assert f"source: not linux-source-9.1 9.1.1-1 at {places.mirror.address}: 404" in said


def test_a_file_with_other_bytes_is_passed_over(places: Places) -> None:
    Deb(PROVEN.package, PROVEN.version, {"usr/src/other": "other"}).build(places.mirror.directory)
    PROVEN.build(places.snapshot.directory)
    code, said = places.fetch()
    assert code == 0, said
    assert "Hash Sum mismatch" in said
    assert f"from {places.snapshot.address}, proven" in said


def test_a_version_that_nobody_has_proven_is_not_taken_but_named(places: Places) -> None:
    for suite in SUITES:
        places.mirror.add(suite, NEXT)
    code, said = places.fetch()
    last = said.splitlines()[-1]
    assert code == 1
    assert last.startswith("error: no source: no proven version is to be had (linux-source-9.1 9.1.1-1 at ")
    assert "Proven: 9.1.1-1, 9.2.1-1; " in last
    assert "have 9.3.1-1 (stable-backports), " in last
    assert last.endswith("to try an unproven version: minigts kernel build --source 9.3.1-1 --unproven")


def test_it_is_taken_on_purpose_and_called_unproven(places: Places) -> None:
    places.mirror.add("unstable", NEXT)
    code, said = places.fetch(MINIGTS_SOURCE="9.3.1-1")
    assert (code, places.fetched) == (0, {"source.deb": "", "version": "9.3.1-1", "unproven": ""}), said
    assert "source: linux-source-9.3 9.3.1-1 from unstable, unproven: nobody has tried it" in said


def test_a_version_is_not_taken_by_an_index_past_its_date(places: Places) -> None:
    for suite in SUITES:
        places.mirror.add(suite, NEXT, ends_in=PAST)
    code, said = places.fetch(MINIGTS_SOURCE="9.3.1-1")
    assert code == 1
    assert "error: no source: no suite has 9.3.1-1. " in said
    assert "its index is past its date" in said


def test_a_file_of_the_users_is_held_to_the_sums(places: Places) -> None:
    file = PROVEN.build(places.work / "own")
    code, said = places.fetch(MINIGTS_SOURCE=str(file))
    assert (code, places.fetched) == (0, {"source.deb": "", "version": "9.1.1-1"}), said
    assert "proven" in said


def test_another_file_of_the_users_is_taken_as_unproven(places: Places) -> None:
    file = NEXT.build(places.work / "own")
    code, said = places.fetch(MINIGTS_SOURCE=str(file))
    assert (code, places.fetched) == (0, {"source.deb": "", "version": "9.3.1-1", "unproven": ""}), said


def test_a_root_is_made_from_the_mirror(places: Places) -> None:
    places.mirror.add("trixie", TINY)
    code, said = places.root()
    assert code == 0, said
    assert f"source: Debian trixie from {places.mirror.address}" in said
    assert "1.0" in said.splitlines()


def test_a_root_is_made_without_the_users_environment(places: Places) -> None:
    places.mirror.add("trixie", TINY)
    foreign = {"PYTHONDONTWRITEBYTECODE": "1", "MAKEFLAGS": "-k", "LC_ALL": "tr_TR.UTF-8"}
    code, said = places.root("more=('--extract-hook=env | sort');", http_proxy="", **foreign)
    assert code == 0, said
    found = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    assert not {"PYTHONDONTWRITEBYTECODE", "MAKEFLAGS"} & found.keys()
    assert (found["LC_ALL"], found["MINIGTS_ARCHIVE_DAY"], found["http_proxy"]) == ("C.UTF-8", DAY, "")


def missing_suite(mirror: Archive) -> str:
    return "it has no such suite"


def past_its_date(mirror: Archive) -> str:
    mirror.add("trixie", TINY, ends_in=PAST)
    return "its index is past its date"


def gap_in_the_pool(mirror: Archive) -> str:
    mirror.add("trixie", TINY)
    mirror.remove(TINY.path)
    return f"404 File not found ({mirror.address}/{TINY.path})"


def without_the_package(mirror: Archive) -> str:
    mirror.add("trixie", PROVEN)
    return "it has no package tiny"


@pytest.mark.parametrize("lacking", [missing_suite, past_its_date, gap_in_the_pool, without_the_package])
def test_what_the_mirror_lacks_of_a_root_is_said_and_comes_from_the_archive(places: Places, lacking) -> None:  # type: ignore[no-untyped-def]
    why = lacking(places.mirror)
    places.snapshot.add("trixie", TINY, ends_in=PAST)
    code, said = places.root()
    assert code == 0, said
    assert f"source: Debian trixie is not to be had from {places.mirror.address}: {why}" in said
    assert f"source: Debian trixie from {places.snapshot.address}" in said
    assert "1.0" in said.splitlines()


@pytest.mark.parametrize("lacking", [missing_suite, past_its_date, gap_in_the_pool, without_the_package])
def test_where_no_place_has_it_one_sentence_says_why(places: Places, lacking) -> None:  # type: ignore[no-untyped-def]
    why = lacking(places.mirror)
    code, said = places.root(MINIGTS_DEBIAN_FALLBACKS="")
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith("error: no source: Debian trixie with all that it takes is nowhere to be had (")
    assert f"({places.mirror.address}: {why}" in last


def test_a_root_of_locked_versions_comes_from_the_place_that_has_them(places: Places) -> None:
    places.mirror.add("trixie", TINY)
    places.snapshot.add("trixie", OLDER)
    (places.work / "course.lock").write_text("tiny 0.9\nuser-mode-linux 1.0\n")
    lock = f"mapfile -t more < <(locked {places.work}/course.lock {places.work} user-mode-linux);"
    code, said = places.root(lock)
    assert code == 0, said
    why = "it has not 1 of the versions that are wanted, among them tiny 0.9"
    assert f"not to be had from {places.mirror.address}: {why}" in said
    assert "0.9" in said.splitlines()


def locked_root(places: Places, *locked: str, **settings: str) -> tuple[int, str, str]:
    """The exit code and the output of a root with the packages of a lock of these lines, and why it was made without
    them; the last is empty if it has them."""
    (places.work / "packages.lock").write_text("".join(f"{line}\n" for line in locked))
    debian = paths.project_root() / "provision" / "debian.sh"
    script = (
        f"source {debian}; output={places.work}; TMPDIR=/var/tmp make_locked_root {places.work}/packages.lock ''"
        """ - --format=null --variant=extract --include=tiny --extract-hook='cat "$1/usr/share/tiny"'"""
    )
    code, said = places.bash(script, settings)
    reason = places.work / "unlocked"
    return code, said, reason.read_text() if reason.exists() else ""


def row(deb: Deb, places: Places) -> str:
    """The line of a lock for this package."""
    place = places.work / "elsewhere"
    package, version, _, sha256, _ = Archive(place, places.mirror.key, "").row(deb, DAY).split()
    return f"{package} {version} {sha256}"


def other_version(places: Places) -> str:
    places.mirror.add("trixie", TINY)
    return "it has not 1 of the versions that are wanted, among them tiny 0.9"


def other_bytes(places: Places) -> str:
    places.mirror.add("trixie", Deb(OLDER.package, OLDER.version, {"usr/share/tiny": "changed\n"}))
    return "it has other bytes of 1 of the packages, among them tiny 0.9"


@pytest.mark.parametrize("differing", [other_version, other_bytes])
def test_a_place_with_other_packages_than_the_lock_is_passed_over(places: Places, differing) -> None:  # type: ignore[no-untyped-def]
    why = differing(places)
    places.snapshot.add("trixie", OLDER)
    code, said, reason = locked_root(places, row(OLDER, places))
    assert code == 0, said
    assert f"not to be had from {places.mirror.address}: {why}" in said
    assert ("0.9" in said.splitlines(), reason) == (True, "")
    assert not (places.work / "lock-preferences").exists()


@pytest.mark.parametrize("differing", [other_version, other_bytes])
def test_where_no_place_has_the_lock_the_build_goes_on_and_says_why(places: Places, differing) -> None:  # type: ignore[no-untyped-def]
    why = differing(places)
    code, said, reason = locked_root(places, row(OLDER, places), MINIGTS_DEBIAN_FALLBACKS="")
    assert code == 0, said
    assert reason.endswith(f"packages.lock are nowhere to be had ({places.mirror.address}: {why})\n")
    assert f"source: unproven: {reason.rstrip()}; the build goes on with what there is" in said
    assert {"1.0", "changed"} & {*said.splitlines()}


def test_a_lock_is_no_remedy_where_nothing_answers(places: Places) -> None:
    code, said, reason = locked_root(places, row(OLDER, places), MINIGTS_DEBIAN_FALLBACKS="")
    assert (code, reason) == (1, ""), said
    assert said.splitlines()[-1].startswith("error: no source: Debian trixie with all that it takes is nowhere")


@pytest.mark.parametrize(
    ("installed", "lacking"),
    [
        ("tiny base", ""),
        ("tiny base own-kernel", ""),
        ("tiny base other", "lacks: packages outside the lock come with it (1), among them other"),
        ("tiny", "lacks: packages of the lock do not come with it (1), among them base"),
    ],
)
def test_a_package_outside_the_lock_is_named(places: Places, installed: str, lacking: str) -> None:
    (places.work / "packages.lock").write_text(f"base 1.0 {'0' * 64}\ntiny 1.0 {'0' * 64}\n")
    debian = paths.project_root() / "provision" / "debian.sh"
    script = (
        f"source {debian}; cd {places.work}; locked packages.lock . own-kernel >/dev/null; "
        f"printf '%s\\n' {installed} | awk -v except=own-kernel \"$(not_alone)\" lock-preferences -"
    )
    assert places.bash(script, {}) == (1 if lacking else 0, f"{lacking}\n" if lacking else "")


@pytest.mark.parametrize("lacking", [missing_suite, past_its_date, gap_in_the_pool])
def test_packages_for_hosts_come_from_where_they_are(places: Places, lacking) -> None:  # type: ignore[no-untyped-def]
    why = lacking(places.mirror)
    places.snapshot.add("trixie", TINY, ends_in=PAST)
    code, said = places.packages("tiny")
    assert code == 0, said
    assert f"source: tiny is not to be had from {places.mirror.address}: {why}" in said
    assert set(places.fetched) == {"tiny_1.0_amd64.deb", "versions.lock"}


def test_an_earlier_version_of_one_comes_from_the_archive(places: Places) -> None:
    places.mirror.add("trixie", TINY)
    places.snapshot.add("trixie", OLDER)
    code, said = places.packages("tiny=0.9")
    assert code == 0, said
    assert f"not to be had from {places.mirror.address}: it has no version 0.9 of tiny" in said
    assert set(places.fetched) == {"tiny_0.9_amd64.deb", "versions.lock"}


def test_a_package_that_there_is_not_is_looked_for_once(places: Places) -> None:
    places.mirror.add("trixie", TINY)
    places.snapshot.add("trixie", TINY)
    code, said = places.packages("tiny", "tyni")
    assert (code, "E: Unable to locate package tyni" in said) == (2, True), said
    assert places.snapshot.address not in said


def test_what_a_killed_build_has_left_goes_and_nobody_elses(places: Places) -> None:
    for name in ("minigts-root.dead", "minigts-root.lives", "another"):
        (places.work / "tmp" / name / "tree").mkdir(parents=True)
    debian = paths.project_root() / "provision" / "debian.sh"
    begin = f"cd {places.work}/tmp; exec 8<minigts-root.lives; flock 8; source {debian}; TMPDIR=$PWD"
    code, said = places.bash(f"{begin} make_passing_directory; ls -d /proc/$$/cwd/*", {})
    assert code == 0, said
    here = {Path(line).name for line in said.splitlines() if line.startswith("/proc/")}
    assert {"minigts-root.lives", "another"} < here
    assert ("minigts-root.dead" in here, len(here)) == (False, 3)
    assert {each.name for each in (places.work / "tmp").iterdir()} == {"minigts-root.lives", "another"}


def minigts(places: Places, *arguments: str) -> tuple[int, str]:
    argv = [sys.executable, "-P", "-m", "minigts", *arguments]
    settings = {"MINIGTS_CACHE": str(places.work / "cache"), "PYTHONPATH": str(paths.project_root() / "tools")}
    return places.bash(shlex.join(argv), settings)


def test_the_verb_ends_with_one_sentence_and_leaves_nothing(places: Places) -> None:
    for suite in SUITES:
        places.mirror.add(suite, NEXT)
    code, said = minigts(places, "kernel", "build")
    assert code == 3, said
    assert "the full kernel could not be built: no proven version is to be had (" in said
    assert "minigts kernel build --source 9.3.1-1 --unproven" in said
    assert "Traceback" not in said
    assert {each.name for each in (places.work / "cache" / "kernels").iterdir()} == {"failed-build.log", "lock"}


def test_a_version_that_was_not_proven_is_refused_before_anything_is_done(places: Places) -> None:
    code, said = minigts(places, "kernel", "build", "--source", "9.3.1-1")
    proven = ", ".join(each.version for each in sources.read(kernel_build.recipe()))
    assert code == 2
    assert f"version 9.3.1-1 was not proven ({proven} were)" in said
    assert not (places.work / "cache" / "kernels").exists()
