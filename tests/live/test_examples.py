"""What the documentation shows runs as it stands: the example's tests by the plugin, docs/python.md block by block."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from live.program import PROJECT, Program

LIMIT_S = 240.0
EXAMPLES = PROJECT / "docs" / "examples"


def pytest_of_a_user(program: Program, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a directory that is none of the project's, with the plugin."""
    argv = [sys.executable, "-P", "-m", "pytest", "-p", "minigts.testing.plugin", "-p", "no:cacheprovider", *arguments]
    settings = program._settings() | {"cwd": directory, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(argv, text=True, timeout=LIMIT_S, check=False, **settings)


@pytest.mark.parametrize(
    ("provider", "which", "passed"),
    [
        pytest.param("uml", "test", 5, marks=pytest.mark.virtual),
        # In real time a busy machine may add to a round trip.
        pytest.param("mininet", "name or tcp or cut", 3, marks=pytest.mark.mininet),
    ],
)
@pytest.mark.nightly
def test_the_examples_tests_hold(program: Program, tmp_path: Path, provider: str, which: str, passed: int) -> None:
    for file in filter(Path.is_file, EXAMPLES.iterdir()):
        (tmp_path / file.name).write_text(file.read_text())
    done = pytest_of_a_user(program, tmp_path, "--minigts", "three-hosts.yaml", "--minigts-on", provider, "-k", which)
    assert done.returncode == 0, done.stdout
    assert f"{passed} passed" in done.stdout


@pytest.mark.virtual
@pytest.mark.nightly
def test_an_expectation_that_does_not_hold_is_a_failure_with_its_figures(program: Program, tmp_path: Path) -> None:
    """The second link has half the rate of the first, so that TCP cannot be level."""
    topology = tmp_path / "wrong.yaml"
    text = (EXAMPLES / "three-hosts.yaml").read_text().replace("overlay: vxlan", "overlay: none")
    halved = text.replace("rate: 20mbit}", "rate: 20mbit}\n  segments: [{}, {rate: 10mbit}]")
    assert halved != text
    topology.write_text(f"{halved}  - throughput: level\n")
    argv = ["tests/lab", "-k", "test_expect", "--minigts", str(topology), "--minigts-fresh"]
    done = pytest_of_a_user(program, PROJECT, *argv)
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED tests/lab/test_this_lab.py::test_expect[throughput: level]" in done.stdout
    assert re.search(r"AssertionError: left-right: TCP, level: .* against .* over 1 hop: failed", done.stdout)


@pytest.mark.virtual
@pytest.mark.timeout(300)
@pytest.mark.nightly
def test_the_page_about_python_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(PROJECT)
    page = (PROJECT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names = {"results": tmp_path / "results"}
    try:
        for block in blocks:
            exec(compile(block, "docs/python.md", "exec"), names)
    finally:
        Program(tmp_path / "state").run("down", "--all")
    assert len(blocks) >= 7
    assert "latency: as-declared vacuous" in capsys.readouterr().out  # a plain host's, in virtual time
    assert (tmp_path / "results").is_dir()


def test_the_page_about_testing_shows_the_example_itself() -> None:
    shown = (PROJECT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert f"```python\n{(EXAMPLES / 'test_three_hosts.py').read_text(encoding='utf-8')}```" in shown
