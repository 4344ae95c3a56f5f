"""Kinds of faults against small programs that have just the bug which the kind shows: found with the fault, and absent
from the right program, and without the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program

pytestmark = [pytest.mark.touched("tools/minigts/explore"), pytest.mark.virtual, pytest.mark.timeout(1100)]
STORE = """#!/usr/bin/python3
import os, socket, sys, threading, time
kept, word = "/var/tmp/kept", sys.argv[1]
count = int(open(kept).read()) if os.path.exists(kept) else 0
def save():
    with open(kept + ".new", "w") as file:
        file.write(str(count))
        file.flush()
        os.fsync(file.fileno())
    os.replace(kept + ".new", kept)
def later():
    while True:
        time.sleep(1)
        save()
if word == "later":
    threading.Thread(target=later, daemon=True).start()
with socket.create_server(("", 7000)) as server:
    while True:
        client, _ = server.accept()
        with client:
            if client.recv(10) == b"add":
                count += 1
                if word == "first":
                    save()
            client.sendall(str(count).encode())
"""
"""Counts, and says how far. `first` keeps each count before its answer; `later`, the bug, keeps it each second."""
ASK = """#!/usr/bin/python3
import socket, sys
with socket.create_connection(("a", 7000), 1) as server:
    server.sendall(sys.argv[1].encode())
    print(server.recv(10).decode())
"""
ONE_STORE = """
name: store
links: [{ends: [a, b], rtt: 2ms, rate: 100mbit}]
hosts:
  a:
    files: [{source: store, target: /usr/local/bin/store, mode: 755}]
    run: [setsid store WORD >/var/log/store.log 2>&1 </dev/null &]
  b:
    files: [{source: ask, target: /usr/local/bin/ask, mode: 755}]
"""
COUNTS = """
def test_what_is_counted_stays(lab, course):
    b, told = lab.host("b"), 0
    while course.now_s < 20:
        said = b.run("ask", "add", check=False).stdout.strip()
        assert not said or int(said) > told, f"{said} after {told}"
        told = int(said or told)
        course.sleep(0.3)
"""
KILLS = """
faults:
  kill-process: {every: 3s, for: 500ms to 2s, of: [a], program: store, SIGNAL restart: exec store WORD}
  length: 20s
  apart: 100ms to 2s
"""

FLOOD = """#!/usr/bin/python3
import socket, sys, time
to, word = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
    line.setsockopt(socket.SOL_SOCKET, 11, int(word == "blind"))  # SO_NO_CHECK
    for number in range(2000):
        line.sendto(b"%06d " % number + b"x" * 200, (to, 7001))
        time.sleep(0.004)
    time.sleep(1)
    for _ in range(20):
        line.sendto(b"end", (to, 7001))
"""
HEAR = """#!/usr/bin/python3
import socket, sys
word, latest, seen = sys.argv[1], -1, set()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line, open("/var/tmp/heard", "w") as heard:
    line.bind(("", 7001))
    while True:
        told = line.recv(300)
        if told == b"end":
            break
        if told[6:] != b" " + b"x" * 200:
            print("broken", file=heard)
        number = int(told[:6]) if told[:6].isdigit() else -1
        if word == "careful" and (number in seen or number < latest):
            continue
        if number < latest:
            print("older", file=heard)
        if number in seen:
            print("twice", file=heard)
        seen.add(number)
        latest = number
"""
"""Takes datagrams as they come, and notes what is odd. `careful` looks at their numbers first."""
LINE = """
name: line
links: [{ends: [a, b], rtt: 20ms, rate: 10mbit}]
hosts:
  a:
    files: [{source: flood, target: /usr/local/bin/flood, mode: 755}]
  b:
    files: [{source: hear, target: /usr/local/bin/hear, mode: 755}]
    run: [setsid hear WORD >/var/log/hear.log 2>&1 </dev/null &]
"""
FRAMES = """
def test_datagrams(lab, course):
    a, b = lab.host("a"), lab.host("b")
    a.run("flood", b.address, "WORD")
    assert b.run("cat", "/var/tmp/heard").stdout == ""
"""
SHARES = """
faults:
  KIND: {every: 2s, for: 1s to 2s, KIND: 20% to 40%}
  length: 8s
"""

BEATS = """#!/usr/bin/python3
import socket, sys, time
me, other, word = sys.argv[1:]
heard = is_heard = time.monotonic()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line, open("/var/tmp/active", "w", buffering=1) as active:
    line.bind(("", 7002))
    line.settimeout(0.1)
    for beat in range(300):
        now = time.monotonic()
        line.sendto(b"%d" % (now - heard < 2), (other, 7002))
        until = now + 0.1
        while (now := time.monotonic()) < until:
            line.settimeout(until - now)
            try:
                told = line.recv(10)
            except TimeoutError:
                break
            heard = now
            is_heard = now if told == b"1" else is_heard
        silent = now - (is_heard if word == "careful" else heard)
        if (silent < 3) if me == "first" else (now - heard > 6):
            print(round(time.time(), 1), file=active)
"""
"""One of two is active: the first while it hears the second, the second once it hears nothing. `careful` asks
whether it is heard, too."""
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
def test_one_is_active(lab, course):
    course.sleep(25)
    active = [set(lab.host(name).run("cat", "/var/tmp/active").stdout.split()) for name in "ab"]
    assert len(active[0] & active[1]) < 5, "both are active"
"""
CUT = """
faults:
  partition: {every: 4s, for: 9s, of: [a], ways: WAYS}
  length: 22s
"""

LENDER = """#!/usr/bin/python3
import socket, time
until = 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
    line.bind(("", 7003))
    while True:
        _, who = line.recvfrom(10)
        free = time.monotonic() >= until
        if free:
            until = time.monotonic() + 3
        line.sendto(b"yes" if free else b"no", who)
"""
"""Lends one thing for three seconds at a time."""
BORROWER = """#!/usr/bin/python3
import json, socket, sys, time
for_s = 3 if sys.argv[1] == "exact" else 2.8
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
    line.settimeout(1)
    end = time.monotonic() + 30
    while (asked := time.monotonic()) < end:
        line.sendto(b"?", ("a", 7003))
        if line.recv(10) == b"yes":
            print(json.dumps({"at": time.monotonic_ns(), "op": "hold"}))
            time.sleep(asked + for_s - time.monotonic())
            print(json.dumps({"at": time.monotonic_ns(), "answer": "ok"}))
        time.sleep(0.05)
"""
"""Has what it has borrowed until three seconds after it asked, or, with `careful`, a little less long."""
LENT = """
name: lent
hosts:
  a:
    files: [{source: lender, target: /usr/local/bin/lender, mode: 755}]
    run: [setsid lender >/var/log/lender.log 2>&1 </dev/null &]
  b: {files: [{source: borrower, target: /usr/local/bin/borrower, mode: 755}]}
  c: {files: [{source: borrower, target: /usr/local/bin/borrower, mode: 755}]}
links: [{ends: [a, b], rtt: 2ms, rate: 10mbit}, {ends: [a, c], rtt: 2ms, rate: 10mbit}]
"""
HOLDERS = """
def test_one_has_it(lab, course):
    history = course.clients({host: ["borrower", "WORD"] for host in "bc"}, timeout_s=60)
    held = sorted((each["sent"], each["answered"]) for each in history if each["answer"] == "ok")
    assert len(held) > 5
    both = [(end - begin) / 1e6 for (_, end), (begin, _) in zip(held, held[1:]) if begin < end]
    assert not both, f"both had it for {both} ms"
"""
RATES = """
faults:
  clock-rate: {every: 4s, for: 5s to 15s, of: [b, c], by: 1% to 5%}
  length: 30s
  at_most: 2
  apart: 100ms
"""
PROGRAMS = {
    "store": STORE,
    "ask": ASK,
    "flood": FLOOD,
    "hear": HEAR,
    "beats": BEATS,
    "lender": LENDER,
    "borrower": BORROWER,
}


def verdicts(program: Program, place: Path, topology: str, test: str, faults: str, seeds: int) -> list[str]:
    """What comes of the first seeds. What the hosts have lies beside the topology."""
    place.mkdir()
    for name, text in PROGRAMS.items():
        (place / name).write_text(text)
    for name, text in {"lab.yaml": topology, "test_it.py": test, "faults.yaml": faults}.items():
        (place / name).write_text(text)
    words = (place / "lab.yaml", place / "test_it.py", "--seeds", str(seeds))
    _, found = explored(program, place / "results", *words, faults=place / "faults.yaml")
    return [each.verdict for each in found.values()]


@pytest.mark.parametrize("signal", ["", "signal: TERM,"])
def test_a_killed_process_forgets_what_it_has_not_kept(program: Program, tmp_path: Path, signal: str) -> None:
    def found(word: str) -> list[str]:
        texts = (ONE_STORE.replace("WORD", word), COUNTS, KILLS.replace("WORD", word).replace("SIGNAL", signal))
        return verdicts(program, tmp_path / word, *texts, 2)

    assert "failed" in found("later")
    assert found("first") == ["passed", "passed"]


def test_a_stopped_process_forgets_nothing(program: Program, tmp_path: Path) -> None:
    kills = KILLS.replace("WORD", "later").replace("SIGNAL", "signal: STOP,").replace("restart: exec store later", "")
    assert verdicts(program, tmp_path / "it", ONE_STORE.replace("WORD", "later"), COUNTS, kills, 1) == ["passed"]


@pytest.mark.parametrize("kind", ["duplicate", "reorder", pytest.param("corrupt", marks=pytest.mark.nightly)])
def test_datagrams_come_twice_late_or_broken(program: Program, tmp_path: Path, kind: str) -> None:
    def found(word: str) -> list[str]:
        texts = (LINE.replace("WORD", word), FRAMES.replace("WORD", word), SHARES.replace("KIND", kind))
        return verdicts(program, tmp_path / word, *texts, 1)

    assert found("blind") == ["failed"]
    assert found("careful") == ["passed"]


def test_one_way_alone_shows_who_is_active_unheard(program: Program, tmp_path: Path) -> None:
    def found(word: str, ways: str) -> list[str]:
        texts = (TWO.replace("WORD", word), ACTIVE, CUT.replace("WAYS", ways))
        return verdicts(program, tmp_path / f"{word}-{ways}", *texts, 2)

    assert "failed" in found("hasty", "one")
    assert found("careful", "one") == ["passed", "passed"]
    assert found("hasty", "both") == ["passed", "passed"]


def test_a_lease_outlives_its_lender_by_a_slow_clock(program: Program, tmp_path: Path) -> None:
    def found(word: str, faults: str) -> list[str]:
        return verdicts(program, tmp_path / f"{word}-{len(faults)}", LENT, HOLDERS.replace("WORD", word), faults, 2)

    assert "failed" in found("exact", RATES)
    assert found("careful", RATES) == ["passed", "passed"]
    assert found("exact", RATES.replace("1% to 5%", "0.001%")) == ["passed", "passed"]
