"""Tails of a seed: its test and its lab become two at a moment, each goes on under other draws, and comes again. And a
lab that is as it was before a seed's end."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program, Traces
from minigts.explore import folder, timeline
from minigts.explore.outcome import Outcome

pytestmark = [
    pytest.mark.touched(
        "tools/minigts/explore/tails.py",
        "tools/minigts/explore/holding.py",
        "tools/minigts/providers/agent/halting.py",
        "tools/minigts/lab/forks.py",
        "provision/clock/src/fork.rs",
    ),
    pytest.mark.virtual,
    pytest.mark.timeout(1100),
]
RING = "name: ring\nring: {hosts: [a, b, c], link: {rtt: 2ms, rate: 100mbit, loss: 10%}}\n"
FAULTS = "faults: {partition: {every: 4s, for: 1s}, kill: {every: 4s, for: 1s, of: [b]}, length: 6s, at_most: 2}\n"
CLIENT = """
import json, random, subprocess, sys, time
for number in range(10):
    drawn = random.SystemRandom().random()
    print(json.dumps({"at": time.monotonic_ns(), "op": "add", "value": number, "drawn": drawn}), flush=True)
    code = subprocess.run(["ping", "-c", "1", "-W", "1", sys.argv[1]], stdout=subprocess.DEVNULL).returncode
    print(json.dumps({"at": time.monotonic_ns(), "answer": "fail" if code else "ok"}), flush=True)
    time.sleep(0.5)
"""
TEST = f"""
import json

CLIENT = {CLIENT!r}


def test_echoes(lab, course):
    asking = {{here: ["python3", "-c", CLIENT, lab.host(there).address] for here, there in (("a", "c"), ("c", "a"))}}
    history = course.clients(asking, timeout_s=60)
    (course.folder / "echoes.json").write_text(json.dumps(history))
    course.sleep(0.5)
    kernel = lab.host("a").run("head", "-c", "8", "/proc/sys/kernel/random/uuid").stdout
    course.note(f"{{course.tail}} {{course.random.random()}} {{kernel}}")
    assert len(history) == 20
    assert all(each["answer"] == "ok" for each in history)
"""
BACK_S = 3


def written(tmp_path: Path) -> tuple[Path, ...]:
    for name, text in (("ring.yaml", RING), ("faults.yaml", FAULTS), ("test_echoes.py", TEST)):
        (tmp_path / name).write_text(text)
    return tmp_path / "ring.yaml", tmp_path / "test_echoes.py", tmp_path / "faults.yaml"


def same(first: Outcome, second: Outcome) -> bool:
    return (first.timeline_sha256, first.course, first.notes) == (second.timeline_sha256, second.course, second.notes)


def test_tails_go_on_under_other_draws_and_come_again(program: Program, traces: Traces, tmp_path: Path) -> None:
    ring, test, faults = written(tmp_path)
    words = (ring, test, "--seeds", "1-2")
    made, seeds = explored(program, tmp_path / "results", *words, "--tails", "2", faults=faults)
    tails = folder.tail_outcomes(made)
    assert {*tails} == {(seed, tail) for seed in (1, 2) for tail in (1, 2)}
    assert all(each.verdict in ("passed", "failed") for each in tails.values()), tails
    assert len({note for each in (*seeds.values(), *tails.values()) for note in each.notes}) == 6
    for (seed, tail), outcome in tails.items():
        if outcome.is_bad:
            of_seed = timeline.read(folder.recorded_files(made, seed, tail)[timeline.FILE])
            (branch,) = (each for each in of_seed if each["event"] == timeline.BRANCH)
            assert branch["tail"] == tail
    _, alone = explored(program, tmp_path / "results", *words, faults=faults)
    other, others = explored(program, tmp_path / "results", *words, "--tails", "2", faults=faults, on="local:2")
    assert all(same(seeds[seed], alone[seed]) and same(seeds[seed], others[seed]) for seed in seeds)
    assert all(same(outcome, folder.tail_outcomes(other)[key]) for key, outcome in tails.items())
    bad = [outcome.name for outcome in tails.values() if outcome.is_bad]
    assert bad, "of four tails with so many faults one loses echoes"
    said = program.run("replay", str(made), "--seed", bad[-1])
    assert "byte for byte" in said.stderr, said.stderr
    assert "the recorded course" in said.stdout + said.stderr
    assert said.returncode == 0
    assert not traces.left()


def test_a_lab_is_as_it_was_before_a_seeds_end(program: Program, traces: Traces, tmp_path: Path) -> None:
    ring, test, faults = written(tmp_path)
    made, seeds = explored(program, tmp_path / "results", ring, test, "--seeds", "1", faults=faults)
    said = program.run("replay", str(made), "--seed", "1", "--back", f"{BACK_S}s")
    assert said.returncode == 0, said.stderr
    earlier, whole = (
        next(line.split()[1] for line in said.stderr.splitlines() if line.startswith("lab ") and words in line)
        for words in ("as it was before the end", "as at the end")
    )

    def clients(lab: str) -> int:
        argv = ("sh", "-c", "pgrep -cf subprocess; true")
        return sum(int(program.run("exec", "--lab", lab, host, "--", *argv).stdout) for host in "ac")

    assert clients(earlier) > clients(whole) and seeds[1].lab_s > BACK_S
    program.run("exec", "--lab", earlier, "a", "--", "sleep", "10")
    assert clients(earlier) == clients(whole)
    for name in (earlier, whole):
        program.run("down", name)
    assert not traces.left()
