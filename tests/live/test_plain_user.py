"""Everything works as a plain user: a lab, its commands, an overlay, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from live.other_user import free_id, made_for
from live.program import Program, Traces, kernel, until
from minigts import paths
from minigts.providers.agent import lab_processes
from minigts.results.folder import LOCK

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.uml,
    pytest.mark.virtual,
    pytest.mark.skipif(os.geteuid() != 0, reason="a plain user runs all of these tests already"),
]
RUN_LIMIT_S = 300.0
EXPERIMENT = """name: small
title: A small one
topology: PROJECT/topologies/pair.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {name: tcp, tool: iperf3-tcp, paths: [{from: ams, to: bra}], options: {duration: 1s}}
"""


@pytest.fixture
def plain() -> Iterator[Program]:
    with made_for(free_id()) as program:
        yield program


def test_a_plain_user_has_the_whole_life_of_a_lab(plain: Program) -> None:
    traces = Traces.before(plain.state)
    plain.succeeds("up", str(plain.project / "topologies" / "pair.yaml"), "--overlay", "swarm")
    traces.look()
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in traces.processes}
    assert owners == {plain.user}
    assert plain.succeeds("exec", "ams", "--", "id", "-u") == "0\n"
    assert "1 received" in plain.succeeds("exec", "ams", "--", "ping", "-c", "1", "bra")
    asked = ("curl", "-s", "--unix-socket", "/run/docker.sock", "http://docker/nodes")
    nodes = json.loads(plain.succeeds("exec", "ams", "--", *asked))
    assert [node["Status"]["State"] for node in nodes] == ["ready", "ready"]
    plain.succeeds("down")
    assert traces.left() == []


def test_nobody_else_reads_what_a_run_leaves_or_reaches_what_it_runs(plain: Program) -> None:
    """Sockets, records and a run's lock are their owner's alone, results are as the umask says; what listens,
    listens to nobody outside this machine."""
    home = plain.state.parent
    (home / "small.yaml").write_text(EXPERIMENT.replace("PROJECT", str(plain.project)))
    (home / "small.yaml").chmod(0o644)
    results = home / "results"
    before = _listeners()
    run = ("run", str(home / "small.yaml"), "--keep", "--results", str(results))
    started = plain.start(*run)
    stdout, stderr = started.communicate(timeout=RUN_LIMIT_S)
    assert started.returncode == 0, stdout + stderr
    assert "root" not in stderr  # no warning: they are a plain user
    _fail_to_come_up(plain)
    new = {line for line in _listeners() - before if not _on_loopback(line)}
    ours = {f"pid={pid}," for pid in _processes_of(plain)}
    assert len(ours) >= 3  # a supervisor and two kernels
    assert [line for line in new if any(pid in line for pid in ours)] == []
    open_to_all = [path for path in results.rglob("*") if not path.name.startswith(".") and path.name != LOCK]
    open_to_all.append(results)
    left = [*open_to_all, *plain.state.rglob("*")]
    kinds = {path.suffix or path.name for path in left}
    assert {".sock", ".log", ".json", ".csv", ".html", ".cow", "failed"} <= kinds
    assert [str(path) for path in plain.state.rglob("*") if path.lstat().st_mode & 0o077] == []
    umask = paths.users_umask()
    modes = {str(path): path.lstat().st_mode & 0o777 for path in open_to_all}
    expected = {str(path): (0o777 if path.is_dir() else 0o666) & ~umask for path in open_to_all}
    assert modes == expected
    assert {path.lstat().st_uid for path in left} == {plain.user}


def test_labs_of_one_name_of_two_users_do_not_meet(plain: Program) -> None:
    """Neither sees, reaches, reads or ends the other's."""
    pair = str(plain.project / "topologies" / "pair.yaml")
    with made_for(plain.user + 1) as other:
        plain.succeeds("up", pair)
        traces = Traces.before(other.state)
        other.succeeds("up", str(other.project / "topologies" / "pair.yaml"))
        traces.look()
        for user, program in ((plain.user, plain), (plain.user + 1, other)):
            (lab,) = json.loads(program.succeeds("status", "--json"))
            assert (lab["name"], set(lab["hosts"].values())) == ("pair", {"answers"})
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in _processes_of(program)} == {user}
        plain.succeeds("exec", "ams", "--", "touch", "/mine")
        assert other.run("exec", "ams", "--", "test", "-e", "/mine").returncode == 1
        for verb in (("exec", "ams", "--", "true"), ("down", "pair"), ("status",)):
            trespassing = replace(other, state=plain.state)
            refused = trespassing.run(*verb)
            assert refused.returncode != 0, verb
            assert "permission denied" in refused.stderr.lower(), refused.stderr
            assert "Traceback" not in refused.stderr, refused.stderr
        other.succeeds("down")
        assert traces.left() == []
    plain.succeeds("exec", "ams", "--", "test", "-e", "/mine")


def _fail_to_come_up(program: Program) -> None:
    """A lab one of whose kernels ends as it boots: its consoles are kept."""
    started = program.start("up", str(program.project / "topologies" / "pair.yaml"), "--lab", "broken")

    def ends() -> bool:
        try:
            os.kill(kernel(program, "broken", "bra"), signal.SIGKILL)
        except KeyError:
            return False
        return True

    assert until(ends)
    assert started.wait(120) == 1
    assert (program.state / "failed" / "broken").is_dir()


def _listeners() -> set[str]:
    """What listens on this machine for TCP, or takes UDP, a line each, with the processes."""
    argv = ["ss", "-Hlntup"]
    return set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines())


def _on_loopback(line: str) -> bool:
    """`tcp LISTEN 0 128 127.0.0.1:631 0.0.0.0:* users:(…)`."""
    return line.split()[4].rpartition(":")[0].strip("[]").startswith(("127.", "::1"))


def _processes_of(program: Program) -> list[int]:
    return [pid for lab in (program.state / "labs").iterdir() for pid in lab_processes.marked_pids(lab)]
