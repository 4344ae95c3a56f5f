"""Lesson 23 as a student does it: a node is lost, so are connections until its timers are over, and the pods move."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import Program

pytestmark = [pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(1800)]

PATIENCE_S = 900.0
"""For the start of a cluster on a busy machine."""
CONNECTIONS = """start=$(date +%s)
while [ $(($(date +%s) - start)) -lt 100 ]; do
  nc -z -w 1 172.30.1.2 12865 || echo "lost at $(($(date +%s) - start)) s"; sleep 0.5; done"""
"""Step 4 of the page."""
TOLERATIONS = """      tolerations:
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path / "state")
    yield made
    made.run("down", "--all")


def done(program: Program, code: int, *arguments: str, stdin: str = "") -> str:
    """What it says on stdout; it has to end with `code`."""
    started = program.start(*arguments, stdin=subprocess.PIPE)
    stdout, stderr = started.communicate(stdin, timeout=PATIENCE_S)
    assert started.returncode == code, f"{' '.join(arguments)}: {started.returncode}\n{stdout}{stderr}"
    return stdout


def test_a_student_predicts_sees_the_timers_and_gives_pods_less_patience(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "lost"
    here = ("--folder", str(folder))

    def on_plane(*argv: str, stdin: str = "") -> str:
        return done(program, 0, "exec", "-i", "--timeout", "300", "plane", "--", *argv, stdin=stdin)

    def applied(manifest: str) -> None:
        on_plane("kubectl", "apply", "-f", "-", stdin=manifest)
        on_plane("kubectl", "rollout", "status", "deployment", "web", "--timeout", "60s")

    done(program, 0, "lesson", "23", "start", *here)
    done(program, 0, "lesson", "23", "predict", "10", *here)
    done(program, 0, "up", str(folder / "topology.yaml"))
    manifest = (folder / "app.yaml").read_text()
    applied(manifest)
    placed = on_plane("kubectl", "get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert sorted(placed) == ["worker1", "worker2"]

    lease = (
        "get",
        "lease",
        "worker1",
        "--namespace",
        "kube-node-lease",
        "--watch",
        "--output=jsonpath={.spec.renewTime} ",
    )
    watched = on_plane("sh", "-c", 'timeout 45 "$@" || true', "sh", "kubectl", *lease)
    seconds = [float(second) for second in re.findall(r":(\d\d\.\d+)Z", watched)]
    renewed = round((seconds[-1] - seconds[-2]) % 60)

    done(program, 0, "link", "plane", "worker2", "down", "--silent")
    lost = [int(second) for second in re.findall(r"lost at (\d+) s", on_plane("sh", "-c", CONNECTIONS))]
    assert len(lost) > 20
    (folder / "answers.yaml").write_text(f"answers: {{until: {lost[-1]}, renewed: {renewed}, patience: 300}}\n")
    assert "that is Kubernetes' own" in done(program, 1, "lesson", "23", "check", *here)

    patient = re.sub(r" +# Here belongs .*\n", TOLERATIONS, manifest)
    assert patient != manifest
    (folder / "app.yaml").write_text(patient)
    applied(patient)
    done(program, 0, "lesson", "23", "check", *here)
