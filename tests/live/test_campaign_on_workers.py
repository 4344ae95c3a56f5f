"""A sweep whose labs are brought up by the workers of a real Dask cluster, some of which die, on loopback."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from live.program import PATIENCE_S, PROJECT, Program, Traces, until

pytestmark = pytest.mark.virtual
TABLES = ("samples.csv", "summary.csv", "claims.json")
ROW = "name: row\nchain: {hosts: 2, link: {delay: 5ms, rate: 20mbit}}\n"
SWEEP = """\
name: rows
title: Round trips over rows of hosts
topology: {topology}
vary: {{chain.hosts: [2 to 3], chain.link.delay: [1ms, 5ms]}}
overlays: [none]
seed: 1
repetitions: 2
measurements:
  - {{name: rtt, tool: ping, paths: [first-to-last], options: {{count: 3}}}}
claims:
  - {{latency: as-declared, of: rtt}}
"""
LABS, SAMPLES = 4, 8
BY_PYTHON = """\
import sys

from minigts import api

if __name__ == "__main__":
    found = api.run_experiment(sys.argv[1], time="virtual", on="local:2", results=sys.argv[2])
    found.report()
    print(len(found.runs), found.failed, [claim.verdict for claim in found.claims])
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    (tmp_path / "row.yaml").write_text(ROW)
    (tmp_path / "rows.yaml").write_text(SWEEP.format(topology=tmp_path / "row.yaml"))
    return tmp_path / "rows.yaml"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What comes of it without workers, one lab after the other."""
    place = tmp_path_factory.mktemp("alone")
    (place / "row.yaml").write_text(ROW)
    (place / "rows.yaml").write_text(SWEEP.format(topology=place / "row.yaml"))
    said = Program(place / "state").succeeds(
        "run", str(place / "rows.yaml"), "--time", "virtual", "--results", str(place / "results")
    )
    assert f"vacuous in {LABS} of {LABS} labs" in said
    return tables(place / "results")


def tables(results: Path) -> dict[str, bytes]:
    (folder,) = results.iterdir()
    assert (folder / "report.html").is_file()
    assert (folder / "figures" / "rtt-by-chain-hosts.svg").is_file()
    found = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in folder.glob("*/*") if path.name in TABLES}
    assert len(found) == LABS * len(TABLES)
    return found


def labs_of_jobs(program: Program) -> list[str]:
    folder = program.state / "labs"
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("job-")) if folder.is_dir() else []


@pytest.mark.nightly
def test_workers_give_the_same_bytes_though_one_is_killed_and_leave_no_lab(
    program: Program, traces: Traces, sweep: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    running = program.start("run", str(sweep), "--on", "local:2", "--results", str(tmp_path / "results"))
    assert until(lambda: bool(labs_of_jobs(program)))
    os.kill(int(labs_of_jobs(program)[0].rpartition("-")[2]), signal.SIGKILL)
    said, told = running.communicate(timeout=400)
    assert running.returncode == 0, told
    assert f"vacuous in {LABS} of {LABS} labs" in said
    assert f"0 of {SAMPLES} samples" in told and f"{SAMPLES} of {SAMPLES} samples" in told
    assert tables(tmp_path / "results") == alone
    assert not traces.left()


@pytest.mark.nightly
def test_a_program_in_python_gets_the_same_bytes_of_workers(
    program: Program, sweep: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    script, results = tmp_path / "by_python.py", tmp_path / "results"
    script.write_text(BY_PYTHON)
    running = program.start(str(sweep), str(results), main=(str(script),))
    said, told = running.communicate(timeout=200)
    assert (running.returncode, said) == (0, f"{LABS} 0 ['vacuous']\n"), told
    assert tables(results) == alone
    assert not labs_of_jobs(program)


@pytest.mark.nightly
def test_a_campaign_that_is_killed_goes_on_where_it_was(
    program: Program, traces: Traces, sweep: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    running = program.start("run", str(sweep), "--on", "local:1", "--results", str(results))
    assert until(lambda: any(len(list(lab.glob("raw/*.json"))) == SAMPLES // LABS for lab in results.glob("*/*")), 240)
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    program.succeeds("down", "--all")
    (folder,) = results.iterdir()
    done = sorted(path.stat().st_mtime_ns for path in folder.glob("*/raw/*.json"))
    program.succeeds("run", "--resume", str(folder), "--on", "local:2")
    assert sorted(path.stat().st_mtime_ns for path in folder.glob("*/raw/*.json"))[: len(done)] == done
    assert tables(results) == alone
    assert not traces.left()


@contextmanager
def process(*words: str, says: str, **environment: str) -> Iterator[str]:
    """One that Dask brings, until the context closes; what stands behind `says` in what it says."""
    argv = [sys.executable, "-P", "-m", *words]
    started = subprocess.Popen(
        argv, env={**os.environ, **environment}, text=True, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert started.stderr is not None
        found = next((found for line in started.stderr if (found := re.search(rf"{says}\s*(\S+)", line))), None)
        assert found, f"{argv} ended"
        yield found[1]
    finally:
        started.terminate()
        try:
            started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.communicate()


@contextmanager
def scheduler() -> Iterator[str]:
    with process(
        *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
        says="Scheduler at:",
    ) as address:
        yield address


@contextmanager
def worker(address: str, place: Path, package: Path, **environment: str) -> Iterator[None]:
    place.mkdir()
    with process(
        *("distributed.cli.dask_worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard"),
        *("--local-directory", str(place)),
        says="Start worker at:",
        PYTHONPATH=str(package),
        **environment,
    ):
        yield


@pytest.mark.nightly
def test_a_worker_without_image_and_kernel_is_sent_them_and_one_of_another_version_is_told_so(
    program: Program, sweep: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    other = tmp_path / "other" / "tools"
    for name in ("tools", "provision"):
        shutil.copytree(PROJECT / name, tmp_path / "other" / name)
    version = other / "minigts" / "__init__.py"
    version.write_text(version.read_text() + "\nOTHER = True\n")
    empty, state = tmp_path / "cache", str(program.state)
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        stack.enter_context(worker(address, tmp_path / "old", other, MINIGTS_STATE=state))
        stack.enter_context(
            worker(address, tmp_path / "new", PROJECT / "tools", MINIGTS_STATE=state, MINIGTS_CACHE=str(empty))
        )
        done = program.run("run", str(sweep), "--on", address, "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is given no more jobs: it has minigts" in done.stderr
    assert "sending" in done.stderr
    assert {each.name for each in empty.iterdir()} >= {"images", "kernels", "clocks"}
    assert not list(empty.glob("shipped-*"))
    assert tables(tmp_path / "results") == alone
    assert not labs_of_jobs(program)


@pytest.mark.nightly
def test_a_scheduler_that_goes_away_is_said_and_how_to_go_on(program: Program, sweep: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with (
        scheduler() as address,
        worker(address, tmp_path / "one", PROJECT / "tools", MINIGTS_STATE=str(program.state)),
    ):
        running = program.start("run", str(sweep), "--on", address, "--results", str(results))
        assert until(lambda: bool(labs_of_jobs(program)))
    _, told = running.communicate(timeout=400)
    assert running.returncode == 1, told
    assert "go on with: minigts run --resume" in told
    assert "Traceback" not in told
    program.succeeds("down", "--all")
