"""Tables larger than what is in memory of them at once: read in blocks, the same as in one piece, and bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minigts import paths
from minigts.errors import InputError
from minigts.results import tables

HEAD = "sample,overlay,measurement,source,target,kind,value,ok,error\n"
ROW = "{0}.tcp.h1-h2,none,tcp,h1,h2,path,{1},true,\n"
KEY = ("none", "tcp", "h1", "h2", "path")
MANY = 60_000
"""Rows that are more than two blocks."""


def written(directory: Path, lines: str, ends: str = "\n") -> Path:
    (directory / "samples.csv").write_text(lines.replace("\n", ends), encoding="utf-8", newline="")
    return directory


def rows(count: int) -> str:
    return "".join(ROW.format(number, number) for number in range(count))


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_every_sample_counts_once_whatever_ends_its_line(tmp_path: Path, ends: str) -> None:
    found = tables.read_samples(written(tmp_path, HEAD + rows(MANY), ends), ())
    assert found.total == MANY
    assert list(found.cells[KEY].good["value"]) == list(range(MANY))


def test_blocks_are_whole_lines_and_together_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + rows(MANY)) / "samples.csv"
    blocks = list(paths.read_lines(path, 1 << 30))
    assert len(blocks) > 2
    assert b"".join(blocks) == path.read_bytes()
    assert all(block.endswith(b"\n") for block in blocks)


def test_what_is_wrong_behind_the_first_block_is_named_by_its_line(tmp_path: Path) -> None:
    written(tmp_path, HEAD + rows(MANY) + ROW.format("x", "many"))
    with pytest.raises(InputError, match=rf"samples\.csv:{MANY + 2}: value: 'many' is not a number"):
        tables.read_samples(tmp_path, ())


def test_what_is_no_text_behind_the_first_block_is_named_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + rows(MANY)) / "samples.csv"
    with path.open("ab") as file:
        file.write(b"\xff\n")
    with pytest.raises(InputError, match=rf"samples\.csv:{MANY + 2}: cannot be read: is not text in UTF-8"):
        tables.read_samples(tmp_path, ())


def test_more_rows_than_allowed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_SAMPLES", 100)
    assert tables.read_samples(written(tmp_path, HEAD + rows(100)), ()).total == 100
    with pytest.raises(InputError, match=r"samples\.csv:102: more than 100 rows"):
        tables.read_samples(written(tmp_path, HEAD + rows(101)), ())


@pytest.mark.parametrize(("length", "most"), [(100, 100), (0, 0)])
def test_a_file_may_be_as_large_as_it_may_be(tmp_path: Path, length: int, most: int) -> None:
    (tmp_path / "a").write_bytes(b"x" * length)
    assert b"".join(paths.read_lines(tmp_path / "a", most)) == b"x" * length
    with pytest.raises(OSError, match=f"holds more than {length} bytes"):
        (tmp_path / "a").write_bytes(b"x" * (length + 1))
        list(paths.read_lines(tmp_path / "a", most))


def test_a_line_without_end_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        os.truncate(file.fileno(), 500_000_000)
    with pytest.raises(OSError, match="has a line of more than 10000000 bytes"):
        list(paths.read_lines(tmp_path / "a", 1 << 30))


@pytest.mark.parametrize("column", ["value", "jitter_ms", "retransmits"])
def test_words_in_a_column_of_ours_are_refused_by_its_name(tmp_path: Path, column: str) -> None:
    head = HEAD.replace("value", column)
    written(tmp_path, head + ROW.format(1, "many"))
    with pytest.raises(InputError, match=rf"samples\.csv:2: {column}: 'many' is not a number"):
        tables.read_samples(tmp_path, ())


def test_words_in_a_column_that_nobody_knows_are_no_quantity(tmp_path: Path) -> None:
    written(tmp_path, HEAD.replace("error", "error,weather") + ROW.format(1, 7).replace(",\n", ",,fine\n"))
    cell = tables.read_samples(tmp_path, ()).cells[KEY]
    assert list(cell.good["value"]) == [7]
    assert list(cell.good.get("weather", ())) == []
