"""A host whose memory its own programs use up: what it is told of while they run, and when it answers no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory
from live.program import Program
from minigts import lab as labs
from minigts.lab import Lab
from minigts.topology.read.load import parse

PAIR = "name: small\nhosts: {ams: {memory: 128MB}, bra: }\nlinks: [{ends: [ams, bra], rtt: 4ms}]\n"
GREEDY = "kept = [b'x' * (1 << 20) + bytes([each % 256]) for each in range(1000)]"
USED_UP = re.compile(r"its memory is exhausted|all of its memory of 128 MB is in use")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("small")):
        made = labs.up(parse(PAIR, "small.yaml", time="virtual"), "uml", None, quiet)
        yield made
        labs.down(made)


@pytest.fixture
def program(lab: Lab) -> Program:
    return Program(lab.rundir.parents[1])


@pytest.mark.virtual
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_host_whose_program_takes_more_memory_than_there_is_says_why_it_answers_no_more(
    lab: Lab, program: Program
) -> None:
    """Its kernel ends the program, or looks for memory and ends no turn, until the lab's clock goes on without it.

    At night alone: since the kernel has 1000 ticks it looks for memory for longer than this test waits, in this lab,
    and ends the program within 3 s in the same lab brought up by `up`. Why is not known.
    """
    done = program.run("exec", "ams", "--", "python3", "-c", GREEDY)
    if done.returncode == 137:
        assert "because its memory of 128 MB has run out" in done.stderr
        return
    assert (done.returncode, bool(USED_UP.search(done.stderr))) == (1, True), done.stderr
    for words in (["exec", "ams", "--", "true"], ["check", "--quick"]):
        said = program.run(*words)
        assert (said.returncode, bool(USED_UP.search(said.stderr))) == (1, True), said.stderr
    assert USED_UP.search(" ".join(program.succeeds("status").split()))
    assert program.run("exec", "bra", "--", "true").returncode == 0
    program.succeeds("restart", "ams")
    assert lab.reopened.state_of_hosts()["ams"] == "answers"
