"""The kernel's patches are one series, and what their heads and the table name is there. No source of Linux is read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from test_decisions import NOTES

from minigts import paths
from minigts.artifacts import overlay_programs
from minigts.providers.uml.build import kernel_build

KERNEL = paths.project_root() / "provision" / "kernel"
PATCHES = sorted((KERNEL / "patches").iterdir())
EACH = pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)


def head(patch: Path) -> str:
    """What stands before the first file."""
    return patch.read_text(encoding="utf-8").partition("\n--- ")[0]


def field(patch: Path, name: str) -> str:
    """What follows `name:` in a head, with its lines that are set in."""
    found = re.search(rf"^{name}: (.+(?:\n +.+)*)", head(patch), re.MULTILINE)
    assert found is not None, f"{patch.name}: its head has no `{name}:`"
    return found[1]


def test_their_numbers_have_no_gap() -> None:
    assert [path.name[:5] for path in PATCHES] == [f"{number:04}-" for number in range(1, len(PATCHES) + 1)]
    assert {path.suffix for path in PATCHES} == {".patch"}


@EACH
def test_each_says_what_and_why_and_what_is_known_upstream(patch: Path) -> None:
    title, _, reason = head(patch).partition("\n\n")
    assert re.fullmatch(r"(um|mm)(: [a-z]+)?: .{10,80}", title)
    assert len(reason.split("\n\n")[0]) > 100
    assert field(patch, "Upstream")


@EACH
def test_the_tests_that_each_names_are_there(patch: Path) -> None:
    named = field(patch, "Test")
    files = re.findall(r"(tests/\S+?\.py)(?:::(\w+))?(?:, the way `(\w+)`)?", named)
    assert files or re.match(r"none|the build", named)
    for file, test, way in files:
        text = (paths.project_root() / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text
        assert not way or f'"{way}":' in text


@EACH
def test_the_decision_that_each_names_is_there(patch: Path) -> None:
    decisions = re.findall(r"docs/decisions/(\S+?)\.md", field(patch, "Decision"))
    assert decisions
    assert {*decisions} <= {page.stem for page in NOTES}


@EACH
def test_its_hunks_have_as_many_lines_as_they_say(patch: Path) -> None:
    text = patch.read_text(encoding="utf-8")
    hunks = list(HUNK.finditer(text))
    assert hunks
    for hunk in hunks:
        body = re.split(r"\n(?=@@ |--- )", text[hunk.end() :])[0].split("\n")[1:]
        kinds = [line[:1] for line in body if line]
        assert kinds.count(" ") + kinds.count("-") == int(hunk[1] or 1)
        assert kinds.count(" ") + kinds.count("+") == int(hunk[2] or 1)


def test_the_table_has_each_of_them_once_and_in_order() -> None:
    rows = re.findall(r"^\| \[(\d{4})\]\(patches/(\S+)\) \|", (KERNEL / "README.md").read_text(), re.MULTILINE)
    assert rows == [(path.name[:4], path.name) for path in PATCHES]


def test_a_patch_makes_another_kernel_and_a_word_in_the_readme_does_not(tmp_path: Path) -> None:
    folder = shutil.copytree(KERNEL, tmp_path / "kernel")
    parts = kernel_build.product().parts
    first = overlay_programs.key(folder, parts)
    with (folder / "README.md").open("a") as readme:
        readme.write("One word more.\n")
    assert overlay_programs.key(folder, parts) == first
    (folder / "patches" / PATCHES[-1].name).unlink()
    assert overlay_programs.key(folder, parts) != first
