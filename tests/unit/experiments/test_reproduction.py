"""What explains that a run has other bytes when it is done again: other parts, other labs, samples without a result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigts.cli.verbs.reproduce import _say_which_bytes_differ
from minigts.cluster.jobs import record_jobs, split
from minigts.experiments import prepare, reproduction, run_folders
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import Labs, Manifest, OverlayFacts, PartFacts, RawSample

EXPERIMENT = """\
name: {name}
title: Some
topology: {topology}
overlays: [none]
seed: 1
repetitions: 3
replicates: {replicates}
measurements:
  - {{name: tcp, tool: iperf3-tcp, paths: [first-to-last], options: {{duration: {seconds}s}}}}
"""


def begun(
    tmp_path: Path, *names: str, seconds: int = 60, replicates: int = 1, time: Any = "virtual"
) -> tuple[Path, ...]:
    """The results folders of new runs of one topology; with 60 seconds of TCP each repetition is one job."""
    topology = tmp_path / "topology-of-two.yaml"
    topology.write_text("name: two\npair: {link: {delay: 1ms, rate: 10mbit}}\n")
    files = []
    for name in names or ("some",):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(EXPERIMENT.format(name=name, topology=topology, seconds=seconds, replicates=replicates))
    prepared = prepare.prepare_all(files, paper=False, quick=False, only=(), time=time)
    return run_folders.begin(tmp_path / "results", prepared, "uml")


def labs_of(directory: Path) -> Labs | None:
    return manifests.read(directory).labs


def change(directory: Path, **fields: object) -> None:
    manifests.write(directory, manifests.read(directory).model_copy(update=fields))


def measured(directory: Path, *began_s: float) -> None:
    """Give the run's samples, in order, a good result that began then."""
    for sample, at in zip(samples_of(manifests.read(directory)), began_s, strict=False):
        raw = RawSample(
            sample=sample, host="h1", argv=(), code=0, stdout="", stderr="", started=f"{at:.3f}", seconds=1, attempt=1
        )
        store.save(directory, raw)


def samples_of(manifest: Manifest) -> list[str]:
    return [each.id for each in reproduction.time_limits.samples(manifest)]


def again(directory: Path) -> Path:
    """The results folder of the same run, done again in one new lab."""
    copy = directory.with_name("again")
    shutil.copytree(directory, copy)
    change(copy, labs=None)
    return copy


def test_a_run_in_one_new_lab_of_its_own_says_nothing_of_it(tmp_path: Path) -> None:
    (directory,) = begun(tmp_path)
    run_folders.record_labs([directory], lent=False)
    assert '"labs"' not in (directory / "manifest.json").read_text()
    measured(directory, 10, 70.5, 131)
    assert reproduction.explanations(directory, again(directory)) == ()


def laid(programs: str = "", policy: str = "") -> dict[str, OverlayFacts]:
    part = PartFacts(key="ab" * 8, sha256=programs * 64) if programs else None
    return {"ebpf": OverlayFacts(programs=part, policy={"name": policy, "rules": []} if policy else {})}


@pytest.mark.parametrize(
    ("there", "here", "says"),
    [
        (laid("1", "shop"), laid("1", "shop"), ()),
        (laid(), laid("1"), ()),
        (
            laid("1"),
            laid("2"),
            ("some: its set of programs for overlay ebpf has the same recipe, abababababababab, and other bytes: "
             "1111111111111111 there, 2222222222222222 here",),
        ),
        (laid("", "shop"), laid(), ("some: the policy in force on overlay ebpf was shop; here it is none",)),
    ],
)  # fmt: skip
def test_other_programs_of_an_overlay_and_another_policy_are_said(
    tmp_path: Path, there: dict[str, OverlayFacts], here: dict[str, OverlayFacts], says: tuple[str, ...]
) -> None:
    (directory,) = begun(tmp_path)
    run_folders.record_labs([directory], lent=False)
    measured(directory, 10, 70.5, 131)
    change(directory, overlays=there)
    copy = again(directory)
    change(copy, overlays=here)
    assert reproduction.explanations(directory, copy) == says


def test_a_run_that_is_split_into_jobs_says_how_many(tmp_path: Path) -> None:
    (directory,) = begun(tmp_path)
    record_jobs(directory, [directory], tuple(split(directory, [directory])))
    assert labs_of(directory) == Labs(jobs=3)
    measured(directory, 10, 11, 12)
    (line,) = reproduction.explanations(directory, again(directory))
    assert line == ("some: it was measured in 3 jobs of --on, each in a lab of its own; here in one new lab of its own")


@pytest.mark.parametrize("how", [{"seconds": 2}, {"replicates": 5}], ids=["one job", "replicates"])
def test_a_run_whose_jobs_are_the_labs_that_it_has_anyway_says_nothing_of_them(tmp_path: Path, how: Any) -> None:
    (directory,) = begun(tmp_path, **how)
    record_jobs(directory, [directory], tuple(split(directory, [directory])))
    assert labs_of(directory) is None


def test_a_run_of_which_no_job_is_missing_is_left_as_it_was(tmp_path: Path) -> None:
    (directory,) = begun(tmp_path)
    measured(directory, 10, 70, 130)
    record_jobs(directory, [directory], tuple(split(directory, [directory])))
    assert labs_of(directory) is None


def test_a_resumed_run_a_lent_lab_and_one_lab_of_several_runs_are_said(tmp_path: Path) -> None:
    one, two = begun(tmp_path, "one", "two")
    run_folders.record_labs([one, two], lent=False)
    assert labs_of(one) == labs_of(two) == Labs(runs=("one", "two"))
    change(two, certificate={"rtt": "measured"})
    run_folders.record_labs([two], lent=True)
    assert labs_of(two) == Labs(runs=("one", "two"), resumed=True, lent=True)
    measured(two, 10, 70, 130)
    (line,) = reproduction.explanations(two, again(two))
    assert "in one lab with the runs one, two, in this order and in several labs" in line
    assert line.endswith("and in a lab that was up before; here in one new lab of its own")


def test_a_run_in_real_time_says_nothing_of_its_labs(tmp_path: Path) -> None:
    (directory,) = begun(tmp_path, time="real")
    run_folders.record_labs([directory], lent=True)
    assert labs_of(directory) is None


def test_samples_without_a_result_are_a_reason(tmp_path: Path) -> None:
    (directory,) = begun(tmp_path)
    measured(directory, 10, 70)
    (line,) = reproduction.explanations(directory, again(directory))
    assert line == "some: 1 of its 3 samples have no result there"


def test_claims_that_were_changed_after_the_run_are_a_reason(tmp_path: Path) -> None:
    (directory,) = begun(tmp_path)
    measured(directory, 10, 70, 130)
    change(directory, claims_sha256=("0" * 64,))
    assert reproduction.explanations(directory, again(directory)) == ("some: its claims were changed after the run",)


@pytest.mark.parametrize(
    ("there", "here", "says"),
    [
        ("a" * 40, "a" * 40, []),
        ("", "a" * 40, []),
        ("a" * 40, "", []),
        ("a" * 40, "b" * 40 + "-dirty", ["at commit aaaaaaaaaaaa; this is commit bbbbbbbbbbbb with changes"]),
    ],
)
def test_another_commit_is_another_program(
    there: str, here: str, says: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory,) = begun(tmp_path)
    change(directory, commit=there)
    monkeypatch.setattr(run_folders, "commit", lambda: here)
    monkeypatch.setattr(reproduction.provenance, "differences", lambda *_: ())
    found = reproduction.differences(reproduction.read(directory), lambda _: None, build=False)
    assert [line.removeprefix("it was made by minigts ") for line in found] == says


@pytest.mark.parametrize(
    ("second", "reasons", "held", "says"),
    [
        (b"1", ["its clock is of another recipe"], True, "the same bytes: samples.csv"),
        (b"2", ["its clock is of another recipe"], True, "explain it, so the figures decide:\n  its clock is of"),
        (b"2", [], False, "not the same bytes: samples.csv. Nothing explains it: program, image, kernel, clock,"),
    ],
)
def test_other_bytes_have_to_be_explained(
    second: bytes, reasons: list[str], held: bool, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tables: Callable[[bytes], dict[str, bytes]] = lambda content: {"samples.csv": content}  # noqa: E731
    assert _say_which_bytes_differ(tables(b"1"), tables(second), reasons) is held
    assert says in capsys.readouterr().err
