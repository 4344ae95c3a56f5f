"""Programs that lose the processor at drawn moments: a race that nothing else shows, and the same draws of one seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program

pytestmark = [
    pytest.mark.touched("tools/minigts/explore", "provision/kernel"),
    pytest.mark.virtual,
    pytest.mark.timeout(1100),
]
COUNTER = """#!/usr/bin/python3
import contextlib, os, socket, sys, threading
count = os.open("/var/tmp/count", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.pwrite(count, b"00000000", 0)
lock = threading.Lock() if sys.argv[1] == "locked" else contextlib.nullcontext()
def serve(port):
    with socket.create_server(("", port)) as server:
        client, _ = server.accept()
        while client.recv(1):
            with lock:
                before = int(os.pread(count, 8, 0))
                os.pwrite(count, b"%08d" % (before + 1), 0)
            client.sendall(b".")
for port in (7001, 7002):
    threading.Thread(target=serve, args=(port,)).start()
"""
"""Counts, by a thread for each of two clients. Without `locked` one may read between another's read and its write."""
ASK = """#!/usr/bin/python3
import socket
lines = [socket.create_connection(("a", port)) for port in (7001, 7002)]
for _ in range(300):
    for line in lines:
        line.sendall(b".")
    for line in lines:
        line.recv(1)
"""
LAB = """
name: counted
hosts:
  a:
    files: [{source: counter, target: /usr/local/bin/counter, mode: 755}]
    run: [setsid counter WORD >/var/log/counter.log 2>&1 </dev/null &]
  b:
    files: [{source: ask, target: /usr/local/bin/ask, mode: 755}]
links: [{ends: [a, b], rtt: 2ms, rate: 100mbit}]
"""
COUNTED = """
def test_all_are_counted(lab, course):
    lab.host("b").run("ask", timeout_s=100)
    a = lab.host("a")
    course.note("given way: " + a.run("cat", "/sys/module/minigts/parameters/preempt").stdout.split()[2])
    assert int(a.run("cat", "/var/tmp/count").stdout) == 600
"""
PREEMPT = """
faults:
  preempt: {every: 1ms, for: 1min, of: [a], calls: 1% to 5%, wait: 1ms}
  length: 1min
"""
NEVER = PREEMPT.replace("calls: 1% to 5%", "calls: 0%")


def timelines(program: Program, place: Path, word: str, faults: str, seeds: int) -> list[tuple[str, str, str]]:
    """The verdict, the fingerprint and the course's note of the first seeds."""
    place.mkdir()
    files = {"counter": COUNTER, "ask": ASK, "lab.yaml": LAB.replace("WORD", word), "test_it.py": COUNTED}
    for name, text in {**files, "faults.yaml": faults}.items():
        (place / name).write_text(text)
    words = (place / "lab.yaml", place / "test_it.py", "--seeds", str(seeds))
    _, found = explored(program, place / "results", *words, faults=place / "faults.yaml")
    return [(each.verdict, each.course, " ".join(each.notes)) for each in found.values()]


def test_a_race_between_two_threads_is_found_where_a_seed_draws_who_waits(program: Program, tmp_path: Path) -> None:
    drawn = timelines(program, tmp_path / "drawn", "bare", PREEMPT, 3)
    assert "failed" in [verdict for verdict, *_ in drawn]
    assert timelines(program, tmp_path / "again", "bare", PREEMPT, 3) == drawn
    assert {verdict for verdict, *_ in timelines(program, tmp_path / "locked", "locked", PREEMPT, 3)} == {"passed"}
    assert {verdict for verdict, *_ in timelines(program, tmp_path / "never", "bare", NEVER, 3)} == {"passed"}
