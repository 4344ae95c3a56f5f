"""A release: its files, what they say of their origin and materials, and whether this machine builds the same."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from providers import small_parts
from typer.testing import CliRunner

import minigts
from minigts import paths
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers.uml.build import export, image, kernel_build
from minigts.release import documents, folder, materials, notices
from minigts.release.materials import Material

pytestmark = pytest.mark.touched("tools/minigts/release", "pyproject.toml", "requirements.lock")

WHEEL, PARTS = f"minigts-{minigts.__version__}-py3-none-any.whl", f"minigts-{minigts.__version__}-parts-x86_64.tar.gz"


def quiet(_text: str) -> None: ...


def released(place: Path) -> Path:
    files = folder.build(place, quiet, uncommitted=True)
    assert files == tuple(sorted(place.iterdir()))
    return place


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_parts.built(tmp_path / "cache", monkeypatch)
    monkeypatch.setattr(notices, "ask_debian", said_of)
    return tmp_path / "cache"


def said_of(packages: Iterable[notices.DebianPackage], _say: object) -> notices.Said:
    """As Debian would say it, whose words take some minutes to fetch: tests/live/test_notices.py has them."""
    named = [*packages]
    return notices.Said(
        {(each.name, each.version): ((each.name.split("-")[0], each.version),) for each in named},
        {each.name: "See /usr/share/common-licenses/GPL-2.\n" for each in named},
        {"GPL-2": "The licence.\n", "GPL-3": "Another one.\n"},
    )


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_it_has_package_parts_documents_and_sums_and_the_second_has_the_same_bytes(cache: Path, tmp_path: Path) -> None:
    first, second = contents(released(tmp_path / "one")), contents(released(tmp_path / "two"))
    assert set(first) == {
        WHEEL,
        f"minigts-{minigts.__version__}.tar.gz",
        PARTS,
        folder.BILL,
        folder.ORIGIN,
        folder.SUMS,
        folder.SOURCES,
        folder.NOTICES,
    }
    assert first == second
    lines = first[folder.SUMS].decode().splitlines()
    assert {line[66:]: line[:64] for line in lines} == {
        name: hashlib.sha256(data).hexdigest() for name, data in first.items() if name != folder.SUMS
    }
    assert "minigts/cli/app.py" in zipfile.ZipFile(tmp_path / "one" / WHEEL).namelist()
    with tarfile.open(tmp_path / "one" / PARTS) as parts:
        assert parts.getnames()[0] == export.INDEX
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "one", "two"]


def test_its_materials_are_a_bill_that_tools_for_cyclonedx_read() -> None:
    """What the specification requires (cyclonedx.org/docs/1.6/json): of a bill its format and version, and of the
    product and each component a type and a name."""
    bill = json.loads(documents.bill("1.2.3", [Material("deb", "bash", "5.2.37-2+b10", "image")]))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    product, (bash,) = bill["metadata"]["component"], bill["components"]
    assert (product["type"], product["name"], product["version"]) == ("application", "minigts", "1.2.3")
    assert (bash["type"], bash["name"], bash["version"]) == ("library", "bash", "5.2.37-2+b10")


def test_its_origin_is_a_statement_that_tools_for_in_toto_read() -> None:
    """What the specification requires of every statement (in-toto attestation v1, statement.md) and of a predicate of
    SLSA 1.0."""
    statement = json.loads(documents.origin({"one.whl": "0" * 64}, {"images/key": "1" * 64}, "c0ffee-dirty", "1.2.3"))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert statement["subject"] == [{"name": "one.whl", "digest": {"sha256": "0" * 64}}]
    definition, run = statement["predicate"]["buildDefinition"], statement["predicate"]["runDetails"]
    assert definition["buildType"] and definition["externalParameters"] and run["builder"]["id"]
    source, part = definition["resolvedDependencies"]
    assert (source["digest"], source["annotations"]) == ({"gitCommit": "c0ffee"}, {"uncommitted": True})
    assert part == {"name": "images/key", "digest": {"sha256": "1" * 64}}


@pytest.mark.parametrize("tags", [[], ["before-the-course"], [f"v{minigts.__version__}", "v1", "latest"]])
def test_a_commit_is_released_before_its_tag_and_with_it(tags: list[str]) -> None:
    folder.check_tag(tags)


def test_a_commit_with_the_tag_of_another_version_is_refused() -> None:
    with pytest.raises(InputError, match=rf"has the tag v9\.9\.9, and its version is {minigts.__version__}"):
        folder.check_tag(["latest", "v9.9.9"])


def test_its_documents_name_each_package_and_each_file(cache: Path, tmp_path: Path) -> None:
    place = released(tmp_path / "one")
    bill = json.loads((place / folder.BILL).read_text())
    purls = {each["purl"] for each in bill["components"]}
    assert {"pkg:deb/debian/bash@5.2.37-2%2Bb10", "pkg:deb/debian/libc6@2.41-12"} <= purls
    kinds = {purl.split("/")[0].removeprefix("pkg:") for purl in purls}
    assert kinds == {"deb", "cargo", "pypi"}
    assert len({each["bom-ref"] for each in bill["components"]}) == len(bill["components"])
    [kernel] = [each for each in bill["components"] if each["bom-ref"].startswith("kernel:")]
    assert (kernel["name"][:13], len(kernel["hashes"][0]["content"])) == ("linux-source-", 64)
    origin = json.loads((place / folder.ORIGIN).read_text())
    assert {each["name"] for each in origin["subject"]} == {
        WHEEL,
        PARTS,
        f"minigts-{minigts.__version__}.tar.gz",
        folder.SOURCES,
        folder.NOTICES,
    }
    dependencies = {each["name"] for each in origin["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert f"images/{image.key()}" in dependencies


def test_it_says_where_the_source_of_each_program_is_and_what_its_authors_say(cache: Path, tmp_path: Path) -> None:
    place = released(tmp_path / "one")
    rows = [line.split("\t") for line in (place / folder.SOURCES).read_text().splitlines()]
    assert rows[0] == ["part", "package", "version", "source", "source version", "address"]
    bash = [
        "image",
        "bash",
        "5.2.37-2+b10",
        "bash",
        "5.2.37-2+b10",
        "https://snapshot.debian.org/package/bash/5.2.37-2%2Bb10/",
    ]
    assert bash in rows
    assert ["kernel", "minigts", "-", "-", "-"] in [row[:5] for row in rows]
    linked = {(row[0], row[1]) for row in rows}
    assert {("clock", "librust-serde-json-dev"), ("image", "libstd-rust-dev"), ("kernel", "linux-source-7.2")} <= linked
    assert not {name for _, name in linked} & {"apt-utils", "rustc", "cargo", "gcc-14"}, "what compiles is in no part"
    said = (place / folder.NOTICES).read_text()
    assert said.count("See /usr/share/common-licenses/GPL-2.") == 1, "equal texts stand once"
    assert "The licence." in said and "Another one." not in said


def test_every_python_package_of_the_lock_is_a_material(cache: Path) -> None:
    lock = (paths.project_root() / "requirements.lock").read_text()
    pinned = [line for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    found = [each for each in materials.release_materials(image_lock()) if each.kind == "pypi"]
    assert len(found) == len(pinned) > 20


def image_lock() -> Path:
    ready = image.present()
    assert ready is not None
    return ready.lock


def test_what_is_built_here_is_held_against_it(cache: Path, tmp_path: Path) -> None:
    place = released(tmp_path / "one")
    assert folder.verify(place) == ()
    kernel = cache / "kernels" / kernel_build.product().key
    (kernel / "linux").write_bytes(b"another")
    (kernel / "modules/7.2/more.ko").write_bytes(b"")
    found = {each.name.partition("/")[2].partition("/")[2]: (each.there, each.here) for each in folder.verify(place)}
    assert found == {
        "linux": (hashlib.sha256(b"full").hexdigest(), hashlib.sha256(b"another").hexdigest()),
        "modules/7.2/more.ko": ("", hashlib.sha256(b"").hexdigest()),
    }


def test_a_file_that_was_changed_is_found_before_anything_else(cache: Path, tmp_path: Path) -> None:
    place = released(tmp_path / "one")
    with (place / WHEEL).open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=f"{WHEEL} has the sum"):
        folder.verify(place)


def test_where_a_part_is_not_built_nothing_can_be_compared(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = released(tmp_path / "one")
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "empty"))
    with pytest.raises(EnvironmentLacks, match="is not built here"):
        folder.verify(place)


@pytest.mark.parametrize("text", ["", "no sum\n", f"{'0' * 64} one\n", f"{'0' * 64}  ../one\n"])
def test_sums_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / folder.SUMS).write_text(text)
    with pytest.raises(InputError, match="a line is `SUM  NAME`"):
        folder.verify(tmp_path)


def test_a_folder_that_exists_is_left_alone(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        folder.build(tmp_path, quiet, uncommitted=True)


def test_without_all_parts_there_is_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "empty"))
    with pytest.raises(EnvironmentLacks, match="not all built yet"):
        folder.build(tmp_path / "one", quiet, uncommitted=True)
    assert not (tmp_path / "one").exists()


def test_the_documentation_in_it_is_of_its_commit(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.run_folders, "commit", lambda: "c0ffee")
    monkeypatch.setattr(folder.paths, "project_root", lambda: tmp_path)
    (tmp_path / "site").mkdir()
    for of in (None, "bad\n", "c0ffee-dirty\n"):
        if of is not None:
            (tmp_path / "site" / "commit").write_text(of)
        with pytest.raises(InputError, match="docs/site/build"):
            folder.build(tmp_path / "release", quiet)
    (tmp_path / "site" / "commit").write_text("c0ffee\n")
    folder.check_documentation("c0ffee")


def small(place: Path, *names: str) -> Path:
    """What matters of a release here: files, and their sums."""
    place.mkdir()
    for name in names or (WHEEL,):
        (place / name).write_bytes(name.encode())
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(place.iterdir()))
    (place / folder.SUMS).write_text("".join(lines))
    return place


BESIDE: dict[str, Callable[[Path], object]] = {
    "minigts-9.9.9-py3-none-any.whl": lambda path: path.write_bytes(b"another"),
    "install.sh": lambda path: path.write_text("exit 1\n"),
    ".hidden": lambda path: path.touch(),
    "more": Path.mkdir,
    "pipe": os.mkfifo,
    "link.whl": lambda path: path.symlink_to(WHEEL),
    "nowhere.whl": lambda path: path.symlink_to("/nonexistent"),
    WHEEL.upper(): lambda path: path.write_bytes(WHEEL.encode()),
    "sha256sums": lambda path: path.touch(),
    "red\x1b[31m": lambda path: path.touch(),
    os.fsdecode(b"\xff.whl"): lambda path: path.touch(),
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_the_sums_do_not_list_is_named_and_refused(name: str, tmp_path: Path) -> None:
    place = small(tmp_path / "one")
    folder.check_sums(place)
    BESIDE[name](place / name)
    with pytest.raises(InputError) as refused:
        folder.check_sums(place)
    (problem,) = refused.value.problems
    assert problem.message == f"{name!r} is not listed in SHA256SUMS: remove it"
    said = CliRunner().invoke(app, ["release", "verify", str(place)])
    assert (said.exit_code, said.output.count("\n")) == (2, 1)


def test_many_further_files_are_one_error_of_some_lines(tmp_path: Path) -> None:
    place = small(tmp_path / "one")
    for number in range(1000):
        (place / f"{number}.sh").touch()
    said = CliRunner().invoke(app, ["release", "verify", str(place)])
    assert (said.exit_code, said.output.count("\n")) == (2, 21)
    assert "… and 980 more" in said.output


@pytest.mark.parametrize("name", [WHEEL, folder.SIGNATURE])
def test_a_listed_file_that_is_a_link_is_refused(name: str, tmp_path: Path) -> None:
    place = small(tmp_path / "one")
    (tmp_path / "elsewhere").write_bytes(WHEEL.encode())
    (place / name).unlink(missing_ok=True)
    (place / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"'{name}' is no plain file: put the file itself there"):
        folder.check_sums(place)


@pytest.mark.parametrize("names", [("one.whl", "one.whl"), ("one.whl", "ONE.whl")])
def test_names_that_are_one_file_on_some_file_systems_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    place = small(tmp_path / "one", *set(names))
    lines = (f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names)
    (place / folder.SUMS).write_text("".join(lines))
    with pytest.raises(InputError, match=f"lists {names[0]!r}, {names[1]!r}: on some file systems these are one file"):
        folder.check_sums(place)
