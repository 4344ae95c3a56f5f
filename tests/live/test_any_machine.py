"""One short experiment, with plain hosts and with Swarm, under another of everything that a machine may have: the same
samples, byte for byte, and the same fingerprint of the lab's course."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from live.other_user import free_id, made_for
from live.program import PROJECT, Program, spinning
from live.test_taken_kernel import WITHOUT_NAMESPACES
from minigts.providers.uml.conditions import CALLS
from minigts.providers.uml.provider import ARGUMENTS

pytestmark = [pytest.mark.uml, pytest.mark.virtual, pytest.mark.nightly]

TOPOLOGY = """name: alike
hosts: {a: , b: , c: }
links:
  - {ends: [a, b], rtt: 4ms, rate: 20mbit}
  - {ends: [b, c], rtt: 6ms, rate: 50mbit}
"""
EXPERIMENT = """name: short
title: Round trips and a stream, over plain hosts and over Swarm
topology: alike.yaml
overlays: [none, swarm]
seed: 2017
repetitions: 1
measurements:
  - {name: latency, tool: netperf-rr, paths: [first-to-each], options: {transactions: 20}}
  - {name: tcp, tool: iperf3-tcp, paths: [first-to-each], options: {duration: 2s}}
"""
AREAS = (2696, 11008)
"""Bytes of what a processor with AVX-512, and one with AMX, keeps of a program's floating point."""
SPINNING = 16
LIMIT_S = 1800.0
"""For one run beside so many programs that spin: it has a tenth of the processors' time."""


class Measured(NamedTuple):
    """What the experiment gave, without what it took of this machine."""

    samples: str
    fingerprints: list[str]
    """Of the course of each of its labs."""
    calls: str
    """How system calls were caught."""


def wrapped(place: Path, *words: str) -> Path:
    """A program that starts Python by these words."""
    program = place / "python"
    program.write_text(f'#!/bin/sh\nexec {" ".join(words)} {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


Change = Callable[[Path, ExitStack], Program]


def environment(place: Path, _: ExitStack) -> Program:
    further = {"TZ": "Pacific/Chatham", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "PADDING": "x" * 5000}
    return Program(place / "state", environment=further)


def load(place: Path, stack: ExitStack) -> Program:
    stack.enter_context(spinning(SPINNING))
    return Program(place / "state")


def paths_of_other_lengths(place: Path, _: ExitStack) -> Program:
    checkout = place / ("a long name of a checkout " * 4)
    for folder in ("tools", "provision", "topologies", "experiments"):
        shutil.copytree(PROJECT / folder, checkout / folder, ignore=shutil.ignore_patterns("target", "__pycache__"))
    state = Path("/tmp") / f"s{os.getpid()}"
    return Program(state, project=checkout)


def open_files(place: Path, _: ExitStack) -> Program:
    starter = place / "starter.py"
    starter.write_text(
        "import os, sys\n"
        "for _ in range(200):\n"
        "    os.set_inheritable(os.open('/', os.O_RDONLY), True)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    )
    program = place / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {starter} "$@"\n')
    program.chmod(0o755)
    return Program(place / "state", program)


def another_user(place: Path, stack: ExitStack) -> Program:
    if os.geteuid() != 0:
        pytest.skip("only root can start a program as another user")
    return stack.enter_context(made_for(free_id()))


def control_group(place: Path, stack: ExitStack) -> Program:
    """In a control group of its own, of whichever hierarchy can be written to."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted, kind, *_ = line.split()
        group = Path(mounted) / f"minigts-test-{os.getpid()}"
        if kind not in ("cgroup", "cgroup2") or mounted.endswith(("cpuset", "devices")):
            continue
        with suppress(OSError):
            group.mkdir()
            stack.callback(group.rmdir)
            return Program(
                place / "state", wrapped(place, "sh", "-c", f"'echo $$ >{group}/cgroup.procs; exec \"$@\"'", "sh")
            )
    pytest.skip("no control group can be made here")


def kernel(argument: str) -> Change:
    """With a further argument of the hosts' kernels."""

    def change(place: Path, _: ExitStack) -> Program:
        return Program(place / "state", environment={ARGUMENTS: argument})

    return change


def by(*words: str) -> Change:
    def change(place: Path, _: ExitStack) -> Program:
        python = wrapped(place, *words)
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode != 0:
            pytest.skip(f"{words[0]} cannot be used here")
        return Program(place / "state", python)

    return change


def no_namespaces(place: Path, _: ExitStack) -> Program:
    python = place / "python"
    python.write_text(f"#!{sys.executable} -IS{WITHOUT_NAMESPACES}")
    python.chmod(0o755)
    return Program(place / "state", python)


CHANGES: dict[str, Change] = {
    "environment": environment,
    "load": load,
    "paths": paths_of_other_lengths,
    "open files": open_files,
    "user": another_user,
    "nice": by("nice", "-n", "15"),
    "control group": control_group,
    "one processor": by("taskset", "-c", "0"),
    "kernel's release": by("setarch", "--uname-2.6"),
    "host's name": by("unshare", "-u", "sh", "-c", "'hostname another-name-of-this-machine; exec \"$@\"'", "sh"),
    "no namespaces": no_namespaces,
    **{f"area of {each} bytes": kernel(f"minigts_fp={each}") for each in AREAS},
}


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    place = tmp_path_factory.mktemp("as-it-is")
    return measured(place, Program(place / "state"))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("change", CHANGES)
def test_samples_and_fingerprint_are_the_same(
    change: str, as_it_is: Measured, tmp_path: Path, stack: ExitStack
) -> None:
    assert measured(tmp_path, CHANGES[change](tmp_path, stack)) == as_it_is


def test_without_a_listener_of_seccomp_a_lab_works_and_its_manifest_says_so(
    as_it_is: Measured, tmp_path: Path, stack: ExitStack
) -> None:
    assert as_it_is.calls == "seccomp"
    traced = measured(tmp_path, kernel("seccomp=off")(tmp_path, stack))
    assert traced.calls == "ptrace"
    assert traced.samples.count("\n") == as_it_is.samples.count("\n")


def measured(place: Path, program: Program) -> Measured:
    ground = place if program.user is None else program.state.parent
    for name, text in (("alike.yaml", TOPOLOGY), ("short.yaml", EXPERIMENT)):
        (ground / name).write_text(text)
    results = program.state / "results"
    try:
        replace(program, directory=ground, limit_s=LIMIT_S).succeeds(
            "run", "short.yaml", "--time", "virtual", "--results", str(results)
        )
    finally:
        program.succeeds("down", "--all")
    (run,) = results.iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    fingerprints = [each["fingerprint"] for each in manifest["courses"]]
    return Measured((run / "samples.csv").read_text(), fingerprints, manifest["conditions"][CALLS])
