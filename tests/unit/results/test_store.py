from __future__ import annotations

import errno
import os
import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest
from experiment_lab import begin, chain, small

from minigts.errors import InputError, MinigtsError
from minigts.experiments.matrix import matrix
from minigts.results import folder, store
from minigts.results import manifest as manifests
from minigts.results.schema import RawSample

NOW = datetime(2026, 11, 21, 11, 2, 45, tzinfo=UTC)


def raw(sample: str, attempt: int = 1, error: str | None = None) -> RawSample:
    return RawSample(
        sample=sample,
        host="ams",
        argv=("netperf", "-H", "10.9.0.2"),
        code=0,
        stdout="é\n",
        stderr="",
        started="2026-11-21T11:02:45+00:00",
        seconds=0.5,
        attempt=attempt,
        error=error,
    )


def test_a_directory_is_named_for_experiment_and_time_and_never_shared(tmp_path: Path) -> None:
    names = [store.create(tmp_path / "results", "multihop", NOW).name for _ in range(3)]
    assert names == ["multihop-20261121-110245", "multihop-20261121-110245-2", "multihop-20261121-110245-3"]


def test_a_good_sample_is_kept_and_read_back(tmp_path: Path) -> None:
    store.save(tmp_path, raw("none.latency.ams-bra.r1"))
    assert store.good(tmp_path, "none.latency.ams-bra.r1") == raw("none.latency.ams-bra.r1")
    assert store.good(tmp_path, "none.latency.ams-bra.r2") is None
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["none.latency.ams-bra.r1.json"]


def test_failed_attempts_are_kept_beside_each_other_and_leave_the_sample_pending(tmp_path: Path) -> None:
    samples = matrix(small(), chain())
    for attempt in (1, 2, 10):
        store.save(tmp_path, raw(samples[0].id, attempt, "iperf3: refused"))
    assert [failed.attempt for failed in store.earlier(tmp_path, samples[0].id)] == [1, 2, 10]
    assert store.attempts(tmp_path) == {samples[0].id: 10}
    assert store.pending(samples, tmp_path) == samples
    store.save(tmp_path, raw(samples[0].id, 11))
    assert store.pending(samples, tmp_path) == samples[1:]


def test_a_half_written_file_is_not_a_sample(tmp_path: Path) -> None:
    samples = matrix(small(), chain())
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / f".{samples[0].id}.json.a1b2c3d4").write_text('{"sample": ')
    assert store.pending(samples, tmp_path) == samples


def test_a_full_disk_is_one_clear_error_that_leaves_nothing_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder.write(tmp_path / "kept.json", "before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MinigtsError, match=r"kept\.json: cannot be written: No space left on device"):
        folder.write(tmp_path / "kept.json", "after")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"kept.json": "before"}


def test_a_file_that_the_system_refuses_is_the_same_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(MinigtsError, match="cannot be written: File too large"):
            folder.write(tmp_path / "x.json", "text" * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_broken_raw_file_says_which(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.json").write_text("{")
    with pytest.raises(InputError, match=r"a\.json:1: is no raw sample; remove it"):
        store.good(tmp_path, "a")


def test_a_manifest_comes_back_as_it_went_and_names_no_path_of_the_machine(tmp_path: Path) -> None:
    begin(tmp_path, small(), chain())
    found = manifests.read(tmp_path)
    assert found.experiment == small()
    assert found.plan == chain()
    text = (tmp_path / manifests.FILE).read_text()
    assert str(tmp_path) not in text
    assert "/root" not in text
    assert "/home" not in text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"experiment": 7}', "\x00"])
def test_a_broken_manifest_is_an_input_error(tmp_path: Path, text: str) -> None:
    (tmp_path / manifests.FILE).write_text(text)
    with pytest.raises(InputError, match=r"manifest\.json"):
        manifests.read(tmp_path)


def test_the_machine_is_read_from_proc(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 3GHz\n")
    (tmp_path / "meminfo").write_text("MemTotal:        8147448 kB\nMemFree: 1 kB\n")
    (tmp_path / "sys/kernel/osrelease").write_text("6.1.0-1\n")
    (tmp_path / "loadavg").write_text("0.52 0.58 0.59 1/467 12345\n")
    (tmp_path / "stat").write_text("cpu  10 0 10 100 0 0 0 250 0 0\ncpu0 …\n")
    found, noise = manifests.machine(tmp_path), manifests.noise(tmp_path)
    assert (found.cpu, found.memory_mb, found.kernel) == ("Some CPU @ 3GHz", 7956, "6.1.0-1")
    assert noise.load_1min == 0.52
    assert noise.steal_s == 250 / os.sysconf("SC_CLK_TCK")


def test_a_machine_that_says_nothing_is_no_error(tmp_path: Path) -> None:
    assert manifests.machine(tmp_path).memory_mb == 0
    assert manifests.noise(tmp_path).load_1min == 0.0
