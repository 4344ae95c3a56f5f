"""Shares of a campaign: every job is in one of them, and put together they have the tables of one run of all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.cluster.jobs import split
from minigts.cluster.shares import JobShare
from minigts.errors import InputError
from minigts.experiments import prepare, run, run_folders
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import CERTIFICATE, LOG, RawSample
from minigts.session import campaign

PING = (Path(__file__).parents[1] / "recorded" / "ping-22ms.txt").read_text()
EXPERIMENT = """\
name: some
title: Some labs
topology: {topology}
{vary}overlays: [none, swarm]
seed: 1
replicates: 5
repetitions: 2
measurements:
  - {{name: rtt, tool: ping, paths: [first-to-last], options: {{count: 7}}}}
"""
VARY = "vary: {pair.link.delay: [1ms, 2ms]}\n"
TABLES = ("samples.csv", "summary.csv", "claims.json")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def begun(place: Path, vary: str = VARY, delay: str = "1ms") -> Sequence[Path]:
    """The folders of a campaign that has measured nothing."""
    place.mkdir()
    topology = place / "two.yaml"
    topology.write_text(f"name: two\npair: {{link: {{delay: {delay}}}}}\n")
    (place / "some.yaml").write_text(EXPERIMENT.format(topology=topology, vary=vary))
    prepared = prepare.prepare_sweep(place / "some.yaml", paper=False, quick=False, only=(), time="virtual")
    return run_folders.begin(place / "results", prepared, "uml")


def measure(directories: Sequence[Path], share: JobShare) -> Path:
    """Take the samples of a share, as labs would; return the folder of all."""
    top = campaign.folder_of(directories)
    for job in [each for each in split(top, directories) if share.has(each.number)]:
        place = top / job.run
        for number, sample in enumerate(job.samples):
            raw = RawSample(
                sample=sample,
                host="h1",
                argv=("ping",),
                code=0,
                stdout=PING.replace("22.0", f"22.{number}"),
                stderr="",
                started="0",
                seconds=1.0,
                attempt=1,
            )
            if number == 0:  # a failed attempt comes along
                store.save(place, raw.model_copy(update={"error": "it was broken", "attempt": 1}))
                raw = raw.model_copy(update={"attempt": 2})
            store.save(place, raw)
        with (place / LOG).open("a") as log:
            log.write(f"{job.name}\n")
        if job.describes:
            (place / CERTIFICATE).write_text("{}")
            known = manifests.read(place)
            manifests.write(place, known.model_copy(update={"tools": {"kernel": "7.2.13"}}))
    return top


def contents(top: Path) -> dict[str, bytes]:
    return {
        f"{path.parent.relative_to(top)}/{path.name}": path.read_bytes()
        for path in sorted(top.rglob("*"))
        if path.name in TABLES or path.name.startswith("all-")
    }


@pytest.mark.parametrize("of", [1, 2, 3, 7, 100])
def test_every_job_is_in_one_share(of: int) -> None:
    shares = [JobShare(number, of) for number in range(1, of + 1)]
    for job in range(1, 50):
        assert sum(share.has(job) for share in shares) == 1


@pytest.mark.parametrize("written", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/100001", "٣/٤", "1/2/3", ""])
def test_what_is_no_share_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="write which one of how many, as in 2/16"):
        JobShare.parse(written)
    assert str(JobShare.parse("2/16")) == "2/16"


@pytest.mark.parametrize("vary", ["", VARY], ids=["one run", "a sweep"])
@pytest.mark.parametrize("of", [1, 2, 3])
def test_shares_put_together_have_the_tables_of_all_in_one(tmp_path: Path, of: int, vary: str) -> None:
    whole = begun(tmp_path / "whole", vary)
    top = measure(whole, JobShare(1, 1))
    for each in whole:
        run.finish(each)
    campaign._write_sweeps(top)
    shares = [measure(begun(tmp_path / f"share-{n}", vary), JobShare(n, of)) for n in range(1, of + 1)]
    before = [{path: path.stat().st_mtime_ns for path in each.rglob("*")} for each in shares]
    merged = campaign.merge(shares, tmp_path / "results")
    assert merged.lacking == 0
    assert contents(merged.folder) == contents(top)
    assert contents(top), "or the test shows nothing"
    assert [{path: path.stat().st_mtime_ns for path in each.rglob("*")} for each in shares] == before
    one = merged.folder if not vary else next(path for path in merged.folder.iterdir() if path.is_dir())
    assert sorted((one / LOG).read_text().splitlines()) == sorted({*(one / LOG).read_text().splitlines()})
    assert manifests.read(one).tools == {"kernel": "7.2.13"}
    assert list((one / "raw").glob("*.failed-1.json"))


def test_a_share_that_is_missing_is_named_and_a_job_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    first = measure(begun(tmp_path / "one", ""), JobShare(1, 2))
    sample = min((first / "raw").glob("*.r2.json"), key=os.fspath)
    sample.unlink()
    done = CliRunner().invoke(app, ["merge", str(first), "--results", "here"])
    assert done.exit_code == 1
    assert "minigts: 12 samples have no result in any of these folders" in done.stderr
    assert not list((tmp_path / "here").glob(f"*/raw/{sample.name.removesuffix('.r2.json')}*"))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"delay": "3ms"}, "differs from .* in topology_sha256, plan; a share is of the same files"),
        ({"vary": VARY}, "holds other runs than"),
    ],
)
def test_shares_of_different_campaigns_are_refused(tmp_path: Path, other: dict[str, str], why: str) -> None:
    one = measure(begun(tmp_path / "one", ""), JobShare(1, 2))
    two = measure(begun(tmp_path / "two", **({"vary": ""} | other)), JobShare(2, 2))
    with pytest.raises(InputError, match=why):
        campaign.merge([one, two], tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "two/some.yaml", "--share", "1/2", "--time", "real"], "in which each machine has figures of its own"),
        (["run", "two/some.yaml", "--share", "1/2", "--keep"], "--share and --keep exclude each other"),
        (["run", "two/some.yaml", "--share", "2/1"], "--share 2/1: write which one of how many"),
        (["merge", "nowhere"], "nowhere: no such results folder"),
        (["merge", "two", "two"], "one folder is named twice"),
        (["merge", "two"], "two: holds no run; name the results folders of shares"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_begun(tmp_path: Path, words: list[str], why: str) -> None:
    begun(tmp_path / "two")
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, why in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "results").exists()
