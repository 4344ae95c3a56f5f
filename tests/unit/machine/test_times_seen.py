"""What is seen of the time that work takes: read back by kind and key, and without any file that can break."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.machine import times_seen


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    return tmp_path


def test_nothing_is_known_before_anything_was_seen() -> None:
    assert times_seen.known_times().ratio("ping") is None
    assert times_seen.known_times().took_s("building", "clock") is None


def test_the_median_of_the_latest_counts() -> None:
    for seconds in (100, 100, 1, 2, 3, 4, 5):
        times_seen.add("ping", "one", seconds, 2.0)
    assert times_seen.known_times().took_s("ping", "one") == 3
    assert times_seen.known_times().took_s("ping", "other") is None
    assert times_seen.known_times().ratio("ping") == 2.0


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\xff\n",
        b"[]\n",
        b'{"kind": 1}\n',
        b'{"kind": "ping", "key": "one", "seconds": "x", "estimated": 1}\n',
        b'{"kind": "ping", "key": "one", "seconds": NaN, "estimated": 1}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_damaged_line_counts_for_nothing(state: Path, damage: bytes) -> None:
    times_seen.add("ping", "one", 7.0, 1.0)
    with (state / "times.jsonl").open("ab") as file:
        file.write(damage)
    assert times_seen.known_times().took_s("ping", "one") == 7.0
    assert times_seen.known_times().ratio("ping") == 7.0


def test_a_long_file_loses_its_older_half(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times_seen, "MOST_BYTES", 2000)
    for number in range(100):
        times_seen.add("ping", str(number), number)
    assert (state / "times.jsonl").stat().st_size < 2200
    assert times_seen.known_times().took_s("ping", "99") == 99
    assert times_seen.known_times().took_s("ping", "0") is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "file"))
    times_seen.add("ping", "one", 7.0)
    assert times_seen.known_times().took_s("ping", "one") is None
