"""Faults of disks against small programs that have just the bug which the fault shows: found with the fault, and absent
from the right program."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program

pytestmark = [pytest.mark.virtual, pytest.mark.nightly, pytest.mark.timeout(1100)]
SEEDS = 3
STORE = """#!/usr/bin/python3
import os, socket, sys, time
word, kept, PAGE, PAGES = sys.argv[1], "/var/tmp/kept", 4096, 8

def flush(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)

class Whole:  # a new file in place of the old one
    def load(self):
        return int(open(kept).read() or -1)
    def save(self, count):
        with open(kept + ".new", "w") as file:
            file.write(str(count))
            file.flush()
            if word == "flushed":
                os.fsync(file.fileno())
        os.replace(kept + ".new", kept)
        if word == "flushed":
            flush("/var/tmp")
        else:
            time.sleep(0.002)

class Log:  # a block for each count, after those before
    def __init__(self):
        self.file, self.failed = os.open(kept, os.O_RDWR | os.O_CREAT), False
        flush("/var/tmp")
    def block(self, count):
        return count.to_bytes(8, "big") * (PAGE // 8)
    def load(self):
        there = os.fstat(self.file).st_size // PAGE
        blocks = (os.pread(self.file, PAGE, PAGE * place) for place in range(there))
        good = [count for count, block in enumerate(blocks, 1) if block == self.block(count)]
        return len(good) if good[-1:] in ([], [len(good)]) else -1
    def save(self, count):
        if self.failed:
            return self.renew(count)
        try:
            os.pwrite(self.file, self.block(count), PAGE * (count - 1))
            os.fsync(self.file)
        except OSError:
            if word == "heeds":
                self.failed = True
                self.renew(count)
    def renew(self, count):  # what has failed may not be written again in its place: ext4 then forgets it at a kill
        file = os.open(kept + ".new", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for number in range(1, count + 1):
            os.pwrite(file, self.block(number), PAGE * (number - 1))
        os.fsync(file)
        os.replace(kept + ".new", kept)
        flush("/var/tmp")
        self.file, self.failed = file, False

class Pages:  # a head that says which of two places has the pages
    def __init__(self):
        fresh = not os.path.exists(kept)
        self.file = os.open(kept, os.O_RDWR | os.O_CREAT)
        if fresh:
            os.pwrite(self.file, bytes(PAGE * (1 + 2 * PAGES)), 0)
            os.fsync(self.file)
            flush("/var/tmp")
    def place(self, count):
        return PAGE * (1 + count % 2 * PAGES)
    def load(self):
        count = int.from_bytes(os.pread(self.file, 8, 0), "big")
        found = os.pread(self.file, PAGE * PAGES, self.place(count))
        return count if found == count.to_bytes(8, "big") * (PAGE * PAGES // 8) else -1
    def save(self, count):
        os.pwrite(self.file, count.to_bytes(8, "big") * (PAGE * PAGES // 8), self.place(count))
        if word == "ordered":
            os.fsync(self.file)
        os.pwrite(self.file, count.to_bytes(8, "big"), 0)
        os.fsync(self.file)

class InPlace(Pages):  # one place alone, over what is there
    def place(self, count):
        return PAGE

kinds = {"flushed": Whole, "unflushed": Whole, "ordered": Pages, "unordered": Pages, "inplace": InPlace,
         "heeds": Log, "ignores": Log}
store = kinds[word]()
count = store.load() if os.path.exists(kept) else 0
with socket.create_server(("", 7000)) as server:
    while True:
        client, _ = server.accept()
        with client:
            while client.recv(10):
                if count < 0:
                    client.sendall(b"broken")
                    continue
                try:
                    store.save(count + 1)
                    count += 1
                    client.sendall(b"%d" % count)
                except OSError:
                    client.sendall(b"no")
"""
"""Counts, and says how far, once it has kept that: in a new file, in pages of one, or as a log. Each kind has a wrong
form and a right one."""
ASK = """#!/usr/bin/python3
import socket, time
said, until = "", time.monotonic() + 0.5
try:
    with socket.create_connection(("a", 7000), 0.2) as server:
        server.settimeout(0.5)
        while time.monotonic() < until and said not in ("broken", "no"):
            server.sendall(b"add")
            said = server.recv(10).decode() or said
except OSError:
    pass
print(said)
"""
LAB = """
name: store
links: [{ends: [a, b], rtt: 200us, rate: 1gbit}]
hosts:
  a:
    disk: cached
    files: [{source: store, target: /usr/local/bin/store, mode: 755}]
    run: [setsid store WORD >/var/log/store.log 2>&1 </dev/null &]
  b:
    files: [{source: ask, target: /usr/local/bin/ask, mode: 755}]
"""
COUNTS = """
def test_what_is_counted_stays(lab, course):
    b, told = lab.host("b"), 0
    while course.now_s < 12:
        said = b.run("ask", check=False).stdout.strip()
        assert said != "broken", "the store is broken"
        if said not in ("", "no"):
            assert int(said) > told, f"{said} after {told}"
            told = int(said)
        course.sleep(0.1)
    course.require(told > 50, "too few")
"""
CUTS = """
faults:
  power-cut: {every: 1s, for: 100ms, of: [a]}
  length: 12s
  apart: 300ms
"""
ERRORS = """
faults:
  disk-error: {every: 2s, for: 1s to 2s, of: [a], share: 10% to 50%, requests: writes}
  kill: {every: 3s, for: 200ms, of: [a]}
  length: 12s
  apart: 100ms
"""
BEATS = """#!/usr/bin/python3
import os, socket, sys, threading, time
me, other, word = sys.argv[1:]
heard = time.monotonic()
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.bind(("", 7002))
def note(what):
    with open("/var/tmp/" + what, "a") as file:
        print(round(time.time(), 1), file=file, flush=True)
        os.fsync(file.fileno())
def beat():
    while True:
        line.sendto(b"here", (other, 7002))
        time.sleep(0.1)
def hear():
    global heard
    while True:
        line.recv(10)
        heard = time.monotonic()
if me == "first" and word == "beside":
    threading.Thread(target=beat, daemon=True).start()
if me == "second":
    threading.Thread(target=hear, daemon=True).start()
while True:
    if me == "first":
        note("log")
        if word == "after":
            line.sendto(b"here", (other, 7002))
    elif time.monotonic() - heard > 1:
        note("active")
    time.sleep(0.1)
"""
"""The second is active once it hears nothing of the first. `after`, the first tells that it is there after it has
written its log; `beside`, meanwhile."""
TWO = """
name: two
hosts:
  a:
    files: [{source: beats, target: /usr/local/bin/beats, mode: 755}]
    run: [setsid beats first b WORD >/var/log/beats.log 2>&1 </dev/null &]
  b:
    files: [{source: beats, target: /usr/local/bin/beats, mode: 755}]
    run: [setsid beats second a WORD >/var/log/beats.log 2>&1 </dev/null &]
links: [{ends: [a, b], rtt: 2ms, rate: 10mbit}]
"""
ACTIVE = """
def test_the_second_waits(lab, course):
    course.sleep(15)
    assert lab.host("b").run("test", "-e", "/var/tmp/active", check=False).code, "the second took over"
"""
SLOW = """
faults:
  disk-slow: {every: 4s, for: 3s, of: [a], delay: 500ms to 2s}
  length: 15s
"""


def verdicts(program: Program, place: Path, topology: str, test: str, faults: str, seeds: int) -> list[str]:
    """What comes of the first seeds. What the hosts have lies beside the topology."""
    place.mkdir()
    texts = {"store": STORE, "ask": ASK, "beats": BEATS, "lab.yaml": topology, "test_it.py": test}
    for name, text in {**texts, "faults.yaml": faults}.items():
        (place / name).write_text(text)
    words = (place / "lab.yaml", place / "test_it.py", "--seeds", str(seeds))
    _, found = explored(program, place / "results", *words, faults=place / "faults.yaml")
    return [each.verdict for each in found.values()]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("unflushed", "flushed"),
        ("unordered", "ordered"),
        ("inplace", "ordered"),
    ],
)
def test_a_power_cut_shows_who_does_not_flush(program: Program, tmp_path: Path, wrong: str, right: str) -> None:
    def found(word: str) -> list[str]:
        return verdicts(program, tmp_path / word, LAB.replace("WORD", word), COUNTS, CUTS, SEEDS)

    assert "failed" in found(wrong)
    assert found(right) == ["passed"] * SEEDS


def test_errors_of_a_disk_show_who_ignores_them(program: Program, tmp_path: Path) -> None:
    def found(word: str) -> list[str]:
        return verdicts(program, tmp_path / word, LAB.replace("WORD", word), COUNTS, ERRORS, SEEDS)

    assert "failed" in found("ignores")
    assert found("heeds") == ["passed"] * SEEDS


def test_a_slow_disk_shows_who_is_silent_while_it_writes(program: Program, tmp_path: Path) -> None:
    def found(word: str) -> list[str]:
        return verdicts(program, tmp_path / word, TWO.replace("WORD", word), ACTIVE, SLOW, 2)

    assert "failed" in found("after")
    assert found("beside") == ["passed", "passed"]
