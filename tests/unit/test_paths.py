"""How files are named for what is in them, and how /proc is read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from minigts import paths
from minigts.machine import proc

STAT = "7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 200 100 50 25 20 0 1 0 4711 0 0\n"


def test_a_key_is_the_cut_sha256_of_names_and_bytes_after_the_text_before(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2" * (3 << 20))
    files = [(name, tmp_path / name) for name in "ab"]
    content = b"before" + b"a\0" + b"1\0" + b"b\0" + b"2" * (3 << 20) + b"\0"
    assert paths.content_key(files, "before") == hashlib.sha256(content).hexdigest()[:16]
    assert paths.content_key(reversed(files), "before") != paths.content_key(files, "before")


def test_the_fields_of_stat_are_those_behind_a_name_with_blanks_and_brackets(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(STAT)
    assert proc.stat_fields(7, tmp_path)[:2] == ["S", "1"]
    ticks = proc.TICKS_PER_SECOND
    assert proc.used_s(7, tmp_path) == pytest.approx(375 / ticks)
    assert proc.used_s(7, tmp_path, with_children=False) == pytest.approx(300 / ticks)


def test_a_process_that_has_ended_has_no_fields_and_used_nothing(tmp_path: Path) -> None:
    (tmp_path / "8").mkdir()
    (tmp_path / "8/stat").write_bytes(b"")
    assert (proc.stat_fields(8, tmp_path), proc.used_s(9, tmp_path)) == ([], 0)
    assert list(proc.family([8], tmp_path)) == [8]


@pytest.mark.parametrize("given", ["topologies/pair.yaml", "pair.yaml", "./pair.yaml"])
def test_a_file_of_the_projects_own_is_found_by_its_name(given: str) -> None:
    assert paths.own_file(Path(given), "topologies") == paths.project_root() / "topologies" / "pair.yaml"


@pytest.mark.parametrize(
    "given", ["/topologies/pair.yaml", "../topologies/pair.yaml", "experiments/star.yaml", "x.yaml"]
)
def test_what_the_project_has_not_or_lies_elsewhere_is_none_of_its_own(given: str) -> None:
    assert paths.own_file(Path(given), "topologies") is None
