"""Seeds that a worker of a Dask scheduler takes, which has another copy of minigts, no image, kernel or clock, another
state directory, temporary directory, locale and time zone: the same bytes. The machine is the same one."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from live.program import PROJECT, Program, Traces
from live.test_campaign_on_workers import scheduler, worker
from live.test_explored_seeds import FAULTS, TEST, of_echoes
from live.test_replayed_often import START, WITH_A_FILE
from minigts.explore import folder, timeline

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1800)]


def test_a_worker_that_has_nothing_takes_the_same_bytes(program: Program, traces: Traces, tmp_path: Path) -> None:
    for name, text in (("ring.yaml", WITH_A_FILE), ("faults.yaml", FAULTS), ("test_echoes.py", TEST), START):
        (tmp_path / name).write_text(text)
    words = (str(tmp_path / "test_echoes.py"), "--faults", str(tmp_path / "faults.yaml"), "--seeds", "2")
    here = of_echoes(program, tmp_path, *words, "--on", "here")

    for name in ("tools", "provision"):
        shutil.copytree(PROJECT / name, tmp_path / "copy" / name)
    for name in ("state", "tmp", "cache"):
        (tmp_path / "other" / name).mkdir(parents=True)
    elsewhere = {
        "MINIGTS_STATE": str(tmp_path / "other" / "state"),
        "MINIGTS_CACHE": str(tmp_path / "other" / "cache"),
        "TMPDIR": str(tmp_path / "other" / "tmp"),
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C.UTF-8",
    }
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        stack.enter_context(worker(address, tmp_path / "dask", tmp_path / "copy" / "tools", **elsewhere))
        there = of_echoes(program, tmp_path, *words, "--on", address)

    assert {each.name for each in (tmp_path / "other" / "cache").iterdir()} >= {"images", "kernels", "clocks"}
    ours, theirs = folder.outcomes(here), folder.outcomes(there)
    assert [each.timeline_sha256 for each in ours.values()] == [each.timeline_sha256 for each in theirs.values()]
    bad = [seed for seed, each in ours.items() if each.is_bad]
    assert bad, "of two seeds with so many faults one loses echoes"
    for seed in bad:
        one, other = folder.recorded_files(here, seed), folder.recorded_files(there, seed)
        assert (one["echoes.txt"], one[timeline.FILE]) == (other["echoes.txt"], other[timeline.FILE])
    assert not traces.left()
