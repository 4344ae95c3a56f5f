"""The ten minutes' walk of docs/explore.md: a service of a Compose file that loses orders when a link flaps, and one
that does not, whatever happens to its hosts and their overlay."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from live.explored import EXAMPLES, explored, one_seed
from live.program import PROJECT, Program, Traces
from minigts.explore import host_logs

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(3600)]
EXAMPLE = EXAMPLES / "compose"
MAKE_IMAGE = PROJECT / "docs" / "examples" / "own-programs" / "make-image.sh"
OF_HOSTS = """
faults:
  partition: {every: 15s, for: 1s to 4s, of: [a, b]}
  kill: {every: 30s, for: 3s, of: [b]}
  pause: {every: 15s, for: 1s to 3s, of: [a]}
  slow-link: {every: 15s, for: 3s, delay: 100ms to 500ms}
  length: 40s
  begin: 2s
  heal: 5s before the end
  at_most: 2
"""
SEED = 1
NONE_FAILED = """

def test_every_fault_could_be_played(lab):
    from minigts.lab import events

    happened = [event["event"] for event in events.read(lab._lab.rundir)]
    assert {"killed", "started", "paused", "resumed", "cut", "whole", "set"} <= {*happened}
    assert not [event for event in happened if "failed" in event]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The example's directory with the images."""
    shutil.copytree(EXAMPLE, tmp_path / "walk")
    for image, packages in (("python.tar", ["python3"]), ("redis.tar", ["redis-server", "redis-tools"])):
        subprocess.run(["bash", str(MAKE_IMAGE), image, *packages], cwd=tmp_path / "walk", check=True)
    return tmp_path / "walk"


def test_a_link_that_flaps_loses_orders_that_are_written_later(program: Program, traces: Traces, place: Path) -> None:
    files = (place / "orders.yaml", place / "test_orders.py")
    made, found = explored(program, place / "results", *files, "--seeds", "1", faults=place / "faults.yaml")
    assert found[1].verdict == "failed"
    assert "acknowledged orders are lost" in found[1].detail
    assert "was not written: timed out" in (made / "failed" / "000001" / host_logs.FILE).read_text()
    assert not traces.left()


def test_orders_that_are_written_first_survive_what_happens_to_hosts(
    program: Program, traces: Traces, place: Path
) -> None:
    compose = place / "compose.yaml"
    compose.write_text(compose.read_text().replace("WRITE: later", "WRITE: first"))
    test = place / "test_orders.py"
    test.write_text(test.read_text().replace("SETTLING_S = 8080, 40, 15", "SETTLING_S = 8080, 40, 120") + NONE_FAILED)
    (place / "hosts.yaml").write_text(OF_HOSTS)
    found = one_seed(program, place / "results", place / "orders.yaml", str(test), place / "hosts.yaml", SEED)
    assert (found.verdict, found.detail) == ("passed", "")
    assert not traces.left()
