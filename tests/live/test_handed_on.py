"""What one machine hands to another: a run that is done again there, and what hosts start from."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from live.program import TOPOLOGIES, Program, Traces
from minigts.results import bundle

pytestmark = [
    pytest.mark.touched("tools/minigts/experiments", "tools/minigts/results", "tools/minigts/artifacts"),
    pytest.mark.virtual,
]
PATIENCE_S = 300.0
SHORT = f"""\
name: short
title: Is the delay the declared one?
topology: {TOPOLOGIES / "pair.yaml"}
overlays: [none]
seed: 3
repetitions: 6
measurements:
  - {{name: latency, tool: ping, paths: [first-to-each], options: {{count: 5}}}}
  - {{name: tcp, tool: iperf3-tcp, paths: [first-to-each], options: {{duration: 1s}}}}
claims:
  - latency: as-declared
"""
TABLES = ("samples.csv", "summary.csv", "claims.json")
FIGURES = ("value", "min", "mean", "median", "low", "high")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder of a short experiment in virtual time."""
    place = tmp_path_factory.mktemp("original")
    (place / "short.yaml").write_text(SHORT)
    program = Program(place / "state")
    program.succeeds("run", str(place / "short.yaml"), "--time", "virtual", "--results", str(place / "results"))
    (made,) = (place / "results").iterdir()
    return made


def test_a_run_is_the_same_byte_for_byte_when_it_is_done_again(
    original: Path, program: Program, tmp_path: Path
) -> None:
    file = tmp_path / "short.zip"
    program.succeeds("bundle", str(original), "-o", str(file))
    done = program.run("reproduce", str(file), "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "program, image, kernel, clock and packages are the same here" in done.stderr
    assert f"the same bytes: {', '.join(TABLES)}" in done.stderr
    (again,) = (each for each in (tmp_path / "results").iterdir() if not each.name.endswith("-original"))
    assert [(again / name).read_bytes() for name in TABLES] == [(original / name).read_bytes() for name in TABLES]
    assert (again / "topology.yaml").read_bytes() == (TOPOLOGIES / "pair.yaml").read_bytes()


@pytest.mark.nightly
def test_figures_that_were_never_measured_do_not_come_again(original: Path, program: Program, tmp_path: Path) -> None:
    """A bundle that is whole, and says of every figure twice what it was."""
    forged = tmp_path / "forged"
    forged.mkdir()
    for path in original.iterdir():
        if path.is_file():
            (forged / path.name).write_bytes(path.read_bytes())
    for name in ("samples.csv", "summary.csv"):
        multiplied(forged / name, 2)
    bundle.write(forged, tmp_path / "forged.zip")
    done = program.run("reproduce", str(tmp_path / "forged.zip"), "--results", str(tmp_path / "results"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not the same bytes: samples.csv, summary.csv" in done.stderr
    assert "differs" in done.stdout


@pytest.mark.parametrize(
    ("commit", "code", "says"),
    [
        (None, 1, "not the same bytes: samples.csv. Nothing explains it"),
        (
            "0" * 40,
            0,
            "explain it, so the figures decide:\n  it was made by minigts at commit 0000",
        ),
    ],
    ids=["by the same program", "by another one"],
)
@pytest.mark.nightly
def test_bytes_that_nothing_explains_are_a_failure_though_no_figure_matters(
    original: Path, program: Program, tmp_path: Path, commit: str | None, code: int, says: str
) -> None:
    """A bundle whose figures differ from what was measured by a millionth."""
    forged = tmp_path / "forged"
    forged.mkdir()
    for path in original.iterdir():
        if path.is_file():
            (forged / path.name).write_bytes(path.read_bytes())
    shutil.copytree(original / "raw", forged / "raw")
    multiplied(forged / "samples.csv", 1.000001)
    if commit is not None:
        manifest = json.loads((forged / "manifest.json").read_text())
        if not manifest["commit"]:
            pytest.skip("this minigts is of no checkout, so it has no commit")
        (forged / "manifest.json").write_text(json.dumps({**manifest, "commit": commit}))
    bundle.write(forged, tmp_path / "forged.zip")
    done = program.run("reproduce", str(tmp_path / "forged.zip"), "--results", str(tmp_path / "results"))
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stderr


def multiplied(table: Path, by: float) -> None:
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update({name: str(by * float(row[name])) for name in FIGURES if row.get(name)})
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def no_network() -> list[str]:
    """What starts a program in a network namespace of its own, where even loopback is down."""
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    return alone


@pytest.mark.nightly
def test_a_machine_without_a_network_has_a_lab_from_a_file(
    program: Program, tmp_path: Path, no_network: list[str], traces: Traces
) -> None:
    file = tmp_path / "parts.tar.gz"
    exported = patiently(program, [], "image", "export", str(file))
    sha256 = exported.partition(" ")[0]
    there = replace(program, environment={**program.environment, "MINIGTS_CACHE": str(tmp_path / "cache")})
    patiently(there, no_network, "image", "import", str(file), "--sha256", sha256)
    file.unlink()
    patiently(there, no_network, "up", str(TOPOLOGIES / "pair.yaml"), "--time", "virtual")
    try:
        said = patiently(there, no_network, "exec", "ams", "--", "ping", "-qc", "3", "bra")
        assert re.search(r"= 17\.7\d\d/17\.7\d\d/", said), said
    finally:
        traces.look()
        patiently(there, no_network, "down", "--all")
    assert traces.left() == []


def patiently(program: Program, before: list[str], *arguments: str) -> str:
    settings: dict[str, object] = program._settings()
    argv = [*before, str(program.python), "-P", "-m", "minigts", *arguments]
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    done = run(argv, text=True, timeout=PATIENCE_S, check=False, **settings)
    assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
