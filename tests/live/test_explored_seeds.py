"""Seeds of an exploration on kernels: the same events each time, whoever takes them and whatever else runs."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program, Traces
from minigts.explore import folder, timeline

pytestmark = [pytest.mark.touched("tools/minigts/explore"), pytest.mark.virtual, pytest.mark.timeout(1100)]
RING = "name: ring\nring: {hosts: [a, b, c], link: {rtt: 2ms, rate: 100mbit, loss: 2%}}\n"
FAULTS = """
faults:
  partition: {every: 4s, for: 1s to 3s}
  kill: {every: 8s, for: 1s to 3s, of: [b]}
  pause: {every: 8s, for: 1s to 3s, of: [c]}
  loss: {every: 8s, for: 2s, loss: 20% to 60%}
  slow-link: {every: 8s, for: 2s, delay: 50ms to 200ms}
  clock-skew: {every: 8s, for: 1s, of: [a]}
  disk-full: {every: 8s, for: 1s, of: [a]}
  length: 20s
  at_most: 3
"""
TEST = """
def test_echoes(lab, course):
    told = []
    for number in range(25):
        began_s = course.now_s
        to = lab.host(course.random.choice("bc")).address
        code = lab.host("a").run("ping", "-c", "1", "-W", "1", to, check=False).code
        told.append((round(course.now_s - began_s, 9), to, code))
        course.sleep(0.5)
    (course.folder / "echoes.txt").write_text(repr(told))
    said = lab.host("a").run("head", "-c", "8", "/proc/sys/kernel/random/uuid").stdout
    course.note(f"a random number: {said}")
    lost = [each for each in told if each[2]]
    assert len(lost) <= 3, f"{len(lost)} echoes are lost"
"""
SCRIPT = """#!/bin/sh
set -e
minigts exec a -- hostname >names
minigts exec --all -- sleep 2
(minigts exec b -- sleep 1; echo b >>names) &
(minigts exec c -- sleep 1; echo c >>names) &
wait
sort names | tr -d "\\n"
[ "$(sort names | tr -d "\\n")" = abc ]
"""
IN_TURN = """#!/bin/sh
minigts exec a -- ping -c 5 c
minigts link a c down
minigts exec a -- ping -c 2 -W 1 b
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ring.yaml").write_text(RING)
    (tmp_path / "faults.yaml").write_text(FAULTS)
    (tmp_path / "test_echoes.py").write_text(TEST)
    for name, text in (("check.sh", SCRIPT), ("in-turn.sh", IN_TURN)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def of_echoes(program: Program, place: Path, *words: str) -> Path:
    """The results folder of an exploration, all of whose seeds were taken."""
    made, _ = explored(program, place / "results", place / "ring.yaml", *words, on=None)
    return made


@pytest.mark.nightly
def test_seeds_are_the_same_bytes_by_whom_ever_they_are_taken(program: Program, traces: Traces, place: Path) -> None:
    words = (str(place / "test_echoes.py"), "--faults", str(place / "faults.yaml"), "--seeds", "2")
    first = of_echoes(program, place, *words, "--on", "here")
    second = of_echoes(program, place, *words, "--on", "local:2")
    one, other = folder.outcomes(first), folder.outcomes(second)
    assert [each.timeline_sha256 for each in one.values()] == [each.timeline_sha256 for each in other.values()]
    assert [each.detail for each in one.values()] == [each.detail for each in other.values()]
    assert len({each.timeline_sha256 for each in one.values()}) == 2
    bad = [seed for seed, each in one.items() if each.is_bad]
    assert bad, "of two seeds with so many faults one loses echoes"
    for seed in bad:
        ours, theirs = folder.recorded_files(first, seed), folder.recorded_files(second, seed)
        assert (ours["echoes.txt"], ours[timeline.FILE]) == (theirs["echoes.txt"], theirs[timeline.FILE])
        assert not re.search("fault( over)? failed", ours[timeline.FILE]), ours[timeline.FILE]
    said = program.run("replay", str(first), "--seed", str(bad[0]))
    assert "byte for byte" in said.stderr, said.stderr
    assert said.returncode == 0
    assert not traces.left()


def test_a_replay_stops_where_it_is_told_to(program: Program, traces: Traces, place: Path) -> None:
    (place / "test_echoes.py").write_text(TEST.replace("range(25)", "range(8)"))
    (place / "faults.yaml").write_text(FAULTS.replace("length: 20s", "length: 5s"))
    words = (str(place / "test_echoes.py"), "--faults", str(place / "faults.yaml"), "--seeds", "1-1", "--on", "here")
    made = of_echoes(program, place, *words)
    said = program.succeeds("replay", str(made), "--seed", "1", "--until", "2.5s")
    (lab,) = json.loads(program.succeeds("status", "--json"))
    assert lab["name"].startswith("job-")
    entries = [line for line in said.splitlines() if " s  " in line]
    assert entries
    assert all(float(line.split()[0]) <= 2.5 for line in entries)
    program.succeeds("down", lab["name"])
    assert not traces.left()


@pytest.mark.nightly
def test_a_command_may_be_a_script_that_waits_for_several_hosts(program: Program, place: Path) -> None:
    made = of_echoes(program, place, str(place / "check.sh"), "--seeds", "2", "--on", "here")
    assert [(each.verdict, each.detail) for each in folder.outcomes(made).values()] == [("passed", "")] * 2
    assert all(3 < each.lab_s < 10 for each in folder.outcomes(made).values())


@pytest.mark.nightly
def test_an_exploration_that_was_ended_goes_on(program: Program, place: Path) -> None:
    made = of_echoes(program, place, str(place / "in-turn.sh"), "--seeds", "2", "--on", "here")
    lines = (made / folder.SEEDS).read_text().splitlines(keepends=True)
    (made / folder.SEEDS).write_text(lines[0] + lines[1][:20])
    said = program.run("explore", "--resume", str(made), "--on", "here")
    assert said.returncode == 0, said.stderr
    again = folder.outcomes(made)
    assert again[2].timeline_sha256 == json.loads(lines[1])["timeline_sha256"]


CLOCKS = """
PROGRAM = "import json, time; print(json.dumps({'at': time.monotonic_ns(), 'op': 'read', 'key': 'x'}))"


def test_clients_have_one_clock(lab, course):
    seen = 0
    for _ in range(6):
        began_ns = round(course.now_s * 1e9)
        history = course.clients({host: ["python3", "-c", PROGRAM] for host in "abc"}, timeout_s=30)
        sent = [each["sent"] - began_ns for each in history]
        assert 0 < min(sent) and max(sent) < 1_000_000
        assert max(sent) - min(sent) < 2_000, sent
        seen += len(sent) == 3
        course.sleep(1)
    assert seen > 3
"""
PAUSES = "faults: {pause: {every: 2s, for: 300ms to 600ms, of: [c]}, length: 20s}\n"


@pytest.mark.nightly
def test_the_times_of_clients_on_several_hosts_are_the_labs(program: Program, place: Path) -> None:
    (place / "test_clocks.py").write_text(CLOCKS)
    (place / "pauses.yaml").write_text(PAUSES)
    words = (str(place / "test_clocks.py"), "--faults", str(place / "pauses.yaml"), "--seeds", "3-4", "--on", "here")
    made = of_echoes(program, place, *words)
    assert [(each.verdict, each.detail) for each in folder.outcomes(made).values()] == [("passed", "")] * 2
    assert all(each.faults for each in folder.outcomes(made).values())


@pytest.mark.nightly
def test_two_captures_of_a_seed_are_the_same_bytes(program: Program, place: Path, tmp_path: Path) -> None:
    made = of_echoes(program, place, str(place / "in-turn.sh"), "--seeds", "1", "--on", "here")
    for name in ("one.pcapng", "other.pcapng"):
        program.succeeds("replay", str(made), "--seed", "1", "--capture", str(tmp_path / name))
    one = (tmp_path / "one.pcapng").read_bytes()
    assert one == (tmp_path / "other.pcapng").read_bytes()
    frames = [body for kind, body in blocks(one) if kind == FRAME]
    requests = [body for body in frames if body[HEAD + 12 : HEAD + 14] == IPV4 and body[HEAD + 34] == ECHO_REQUEST]
    assert len(requests) >= 7  # five and two, and what an end sends on


FRAME, HEAD, IPV4, ECHO_REQUEST = 6, 20, b"\x08\x00", 8
"""A block of a frame, the bytes in front of its content (draft-ietf-opsawg-pcapng), and of an echo request."""


def blocks(pcapng: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(pcapng):
        kind, length = struct.unpack_from("<II", pcapng, at)
        yield kind, pcapng[at + 8 : at + length - 4]
        at += length
