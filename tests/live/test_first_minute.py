"""The first command on a machine that has the hosts' image and not yet the kernel: it shows a figure in real time while
compilers run, and whoever does not want to wait for them is left with what real time needs."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import PROJECT, Program
from minigts.providers.uml.build import image

pytestmark = [
    pytest.mark.touched("tools/minigts/session/first_figure.py", "tools/minigts/providers/uml/build"),
    pytest.mark.uml,
    pytest.mark.nightly,
]
PATIENCE_S = 600.0


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A program whose own cache is empty, and that finds only the image in the one that users share."""
    ready = image.present()
    assert ready is not None
    shared = tmp_path / "shared" / "images"
    shared.mkdir(parents=True)
    (shared / ready.directory.name).symlink_to(ready.directory)
    environment = {"MINIGTS_CACHE": str(tmp_path / "cache"), "MINIGTS_SHARED_CACHE": str(shared.parent)}
    return Program(tmp_path / "state", environment=environment, directory=tmp_path)


@pytest.fixture
def interrupted(fresh: Program, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The first command until its figure is there, and the file with what it says."""
    running = fresh.start("run", str(PROJECT / "experiments" / "multihop.yaml"))
    said = tmp_path / "said"
    assert running.stderr is not None
    try:
        with said.open("w") as log:
            for line in running.stderr:
                log.write(line)
                if line.startswith("the first figure, in real time"):
                    running.send_signal(signal.SIGINT)
        running.wait(PATIENCE_S)
        yield running, said
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait(PATIENCE_S)


def test_it_shows_a_figure_before_the_kernel_is_there_and_an_interruption_leaves_real_time(
    fresh: Program, interrupted: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    running, said = interrupted
    text = said.read_text()
    assert running.returncode == 130, text
    assert "building the full kernel" in text
    assert "labs in real time can be brought up: minigts up TOPOLOGY --time real" in text
    (folder,) = (tmp_path / "results" / "first-figure").iterdir()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["plan"]["time"] == "real"
    assert (folder / "report.html").exists()
    assert not list((tmp_path / "cache").rglob("building-*")), "nothing is left of the builds"
    assert json.loads(fresh.succeeds("status", "--json")) == []
    fresh.succeeds("up", str(PROJECT / "topologies" / "pair.yaml"), "--time", "real")
    fresh.succeeds("down", "pair")
    assert [each.name for each in (tmp_path / "results").iterdir()] == ["first-figure"]
