"""Seeds of an exploration as forks of one lab: the same events each time, whoever takes them, and others in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program, Traces
from minigts.explore import folder, timeline

pytestmark = [
    pytest.mark.touched(
        "tools/minigts/explore/seed_labs.py", "tools/minigts/lab/forks.py", "provision/clock/src/fork.rs"
    ),
    pytest.mark.virtual,
    pytest.mark.timeout(1100),
]
RING = "name: ring\nring: {hosts: [a, b, c], link: {rtt: 2ms, rate: 100mbit, loss: 10%}}\n"
FAULTS = "faults: {partition: {every: 4s, for: 1s}, kill: {every: 4s, for: 1s, of: [b]}, length: 5s, at_most: 2}\n"
TEST = """
def test_echoes(lab, course):
    told = []
    for number in range(8):
        began_s = course.now_s
        code = lab.host("a").run("ping", "-c", "1", "-W", "1", lab.host("c").address, check=False).code
        told.append((round(course.now_s - began_s, 9), code))
        course.sleep(0.5)
    (course.folder / "echoes.txt").write_text(repr(told))
    course.note("a random number: " + lab.host("a").run("head", "-c", "8", "/proc/sys/kernel/random/uuid").stdout)
    assert not [each for each in told if each[1]]
"""


def test_seeds_are_forks_of_one_lab_and_come_again(program: Program, traces: Traces, tmp_path: Path) -> None:
    for name, text in (("ring.yaml", RING), ("faults.yaml", FAULTS), ("test_echoes.py", TEST)):
        (tmp_path / name).write_text(text)
    words = (tmp_path / "ring.yaml", tmp_path / "test_echoes.py", "--seeds", "3", "--forks")
    first, one = explored(program, tmp_path / "results", *words, faults=tmp_path / "faults.yaml")
    _, other = explored(program, tmp_path / "results", *words, faults=tmp_path / "faults.yaml", on="local:2")
    assert [each.timeline_sha256 for each in one.values()] == [each.timeline_sha256 for each in other.values()]
    assert [each.course for each in one.values()] == [each.course for each in other.values()]
    assert len({each.timeline_sha256 for each in one.values()}) == len({each.course for each in one.values()}) == 3
    assert len({note for each in one.values() for note in each.notes}) == 3
    bad = [seed for seed, each in one.items() if each.is_bad]
    assert bad, "of three seeds with so many faults one loses echoes"
    assert "fork" not in folder.recorded_files(first, bad[0])[timeline.FILE]
    said = program.run("replay", str(first), "--seed", str(bad[0]))
    assert "byte for byte" in said.stderr, said.stderr
    assert "the recorded course" in said.stdout + said.stderr
    assert said.returncode == 0
    assert not traces.left()
