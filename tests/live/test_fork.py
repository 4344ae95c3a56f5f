"""A lab forks: the second lab has all that hosts have in memory, on disk and under way, and the course of the first one
as long as the same is done to both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from live.conftest import quiet, state_directory
from minigts import lab as labs
from minigts.errors import InputError, MinigtsError
from minigts.foreign import parser_text
from minigts.lab import Lab
from minigts.providers.agent import lab_processes
from minigts.providers.base import HasCourse, Restarts
from minigts.providers.uml.provider import UmlProvider
from minigts.topology.read.load import parse

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.timeout(900),
    pytest.mark.touched(
        "tools/minigts/lab/forks.py",
        "tools/minigts/providers/uml/run/forked.py",
        "provision/clock/src/fork.rs",
        "provision/kernel/patches/0028*",
    ),
]

LINES = """
name: two
defaults: {link: {rate: 20mbit, rtt: 10ms}}
hosts: {a: , b: , c: }
links:
- {ends: [a, b], jitter: 1ms, loss: 1%}
- {ends: [b, c], loss: 0.5%}
"""
LIMIT_S = 60.0
WORK = """
import hashlib, os, random, threading, time
memory, looks = [bytearray(os.urandom(4096)) for _ in range(500)], 0
def look():
    global looks
    while True:
        time.sleep(0.0011)
        looks += 1
threading.Thread(target=look, daemon=True).start()
for turn in range(100_000):
    for _ in range(50):
        memory[random.randrange(500)][random.randrange(4096)] ^= turn & 255
    with open(f"/root/data{turn % 10}", "wb") as file:
        file.write(b"".join(memory[:100]))
        os.fsync(file.fileno())
    print(turn, time.time_ns(), hashlib.md5(b"".join(memory)).hexdigest(), looks, turn / 3.7, flush=True)
    if turn % 7 == 0:
        os.system("true")
    time.sleep(0.013)
"""
BEGIN = """
cat >/root/work.py
nohup python3 /root/work.py >/root/work 2>&1 &
nohup ping -D -i 0.02 c >/root/ping 2>&1 &
nohup sh -c 'while :; do head -c 300000 /dev/urandom; sleep 0.1; done | nc c 7' >/dev/null 2>&1 &
sleep 1
"""
GO_ON = """
sleep 1.5
cat /root/work /root/ping
md5sum /root/data*
head -c 8 /dev/urandom | md5sum
free
cat /proc/net/snmp
"""


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with state_directory(tmp_path_factory.mktemp("forks")):
        yield
        for each in labs.all_labs():
            labs.down(each)


def said(lab: Lab, host: str, script: str, stdin: str = "") -> str:
    argv = ["sh", "-euc", script]
    return parser_text(lab.provider.run(host, argv, timeout_s=LIMIT_S, stdin=stdin.encode()).stdout)


def busy_lab(name: str) -> Lab:
    lab = labs.up(parse(LINES, "two.yaml", time="virtual"), "uml", name, quiet)
    said(lab, "c", "nohup nc -l -k 7 >/dev/null 2>&1 & sleep 0.1")
    said(lab, "a", BEGIN, WORK)
    return lab


def course_after(lab: Lab) -> tuple[str, str]:
    """What a host has said by then, and the course's fingerprint."""
    text = said(lab, "a", GO_ON)
    assert isinstance(lab.provider, HasCourse)
    return text, lab.provider.course().fingerprint


def kernels(lab: Lab) -> dict[str, int]:
    assert isinstance(lab.provider, UmlProvider)
    return lab.provider.kernels()


def test_a_fork_goes_on_as_its_origin_does_and_as_a_lab_that_never_forked() -> None:
    origin = busy_lab("origin")
    same, other = labs.fork(origin, "same"), labs.fork(origin, "other", seed=7)
    again = labs.fork(same, "again")
    first = course_after(origin)
    assert first[0].count("\n") > 200
    assert course_after(same) == first
    assert course_after(again) == first
    assert course_after(other) != first
    labs.down(origin)
    assert course_after(busy_lab("fresh")) == first


def test_forks_with_one_seed_are_equal() -> None:
    origin = busy_lab("origin")
    first, second = labs.fork(origin, "first", seed=3), labs.fork(origin, "second", seed=3)
    assert course_after(first) == course_after(second)


def test_what_is_done_to_one_lab_is_not_done_to_the_other(tmp_path: Path) -> None:
    origin = busy_lab("origin")
    fork = labs.fork(origin, "fork")
    said(fork, "a", "echo of the fork >/root/own; sync; rm /root/data0; ip link set dev eth1 down")
    (tmp_path / "put").write_text("given")
    fork.provider.put("b", tmp_path / "put", PurePosixPath("/root/put"))
    assert said(fork, "b", "cat /root/put") == "given"
    assert said(
        origin, "a", "cat /root/own 2>&1 || :; ls /root/data0; cat /sys/class/net/eth1/operstate"
    ).splitlines() == [
        "cat: /root/own: No such file or directory",
        "/root/data0",
        "up",
    ]
    assert isinstance(fork.provider, Restarts)
    labs.restart(fork, "a")
    assert said(fork, "a", "cat /root/own; ls /root/data0 2>&1 || :").splitlines()[0] == "of the fork"
    labs.kill(fork, "b")
    assert set(kernels(fork)) == {"a", "c"}
    assert said(origin, "b", "hostname").strip() == "b"


def test_nothing_is_left_of_a_fork() -> None:
    origin = busy_lab("origin")
    before = {*lab_processes.marked_pids(origin.rundir)}
    for seed in range(3):
        fork = labs.fork(origin, "fork", seed)
        alive = kernels(fork)
        assert set(alive) == {"a", "b", "c"} and not {*alive.values()} & before
        said(fork, "b", "true")
        labs.down(fork)
        assert not fork.rundir.exists()
        assert not any(lab_processes.started_ticks(pid) for pid in alive.values())
    assert {*lab_processes.marked_pids(origin.rundir)} == before
    assert not [*origin.rundir.glob("shared/*/returned/*")]
    assert said(origin, "a", "tail -n 1 /root/work")


def test_a_fork_ends_with_its_origin() -> None:
    origin = busy_lab("origin")
    fork = labs.fork(origin, "fork")
    alive = kernels(fork)
    labs.down(origin)
    assert not any(lab_processes.started_ticks(pid) for pid in alive.values())
    with pytest.raises(MinigtsError):
        said(fork, "a", "true")
    labs.down(fork)
    assert not labs.all_labs()


def test_a_fork_whose_supervisor_is_killed_leaves_nothing_that_its_origin_minds() -> None:
    origin = busy_lab("origin")
    fork = labs.fork(origin, "fork")
    supervisor = lab_processes.supervisor(fork.rundir)
    assert supervisor is not None
    alive = kernels(fork)
    os.kill(supervisor, 9)
    labs.down(fork)
    assert said(origin, "a", "hostname").strip() == "a"
    assert not any(lab_processes.started_ticks(pid) for pid in alive.values())


def test_names_and_seeds_that_no_fork_can_have_are_refused() -> None:
    origin = labs.up(parse("name: one\nhosts: {a: }\n", "one.yaml", time="virtual"), "uml", None, quiet)
    for name, seed in (("one", 0), ("no name", 0), ("two", -1), ("two", 2**63)):
        with pytest.raises(InputError):
            labs.fork(origin, name, seed)
    labs.fork(origin, "two")
    with pytest.raises(InputError, match="there is a lab two"):
        labs.fork(origin, "two")
