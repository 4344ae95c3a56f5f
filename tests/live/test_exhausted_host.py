"""A host whose memory its own programs use up: what it is told of while they run, and when it answers no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory
from live.program import Program
from minigts import lab as labs
from minigts.lab import Lab
from minigts.topology.load import parse

PAIR = "name: small\nhosts: {ams: {memory: 128MB}, bra: }\nlinks: [{ends: [ams, bra], rtt: 4ms}]\n"
USED_UP = re.compile(r"its memory is exhausted|all of its memory of 128 MB is in use")
"""Whether its kernel comes to ending a process before it looks for memory without end is the kernel's affair."""
BOMB = "bomb() { bomb | bomb & }; bomb; sleep 1000"
"""It runs in a guest, whose processes its bounds hold to some number here."""


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
@pytest.mark.timeout(900)
def test_a_host_that_its_root_has_filled_with_processes_says_why_it_answers_no_more(lab: Lab, program: Program) -> None:
    """Its kernel looks for memory and ends no turn, until the lab's clock goes on without it. The others run on."""
    program.run("exec", "--timeout", "20", "ams", "--", "bash", "-c", BOMB)
    for words in (["exec", "ams", "--", "true"], ["check", "--quick"]):
        said = program.run(*words)
        assert (said.returncode, bool(USED_UP.search(said.stderr))) == (1, True), said.stderr
    assert USED_UP.search(" ".join(program.succeeds("status").split()))
    assert program.run("exec", "bra", "--", "true").returncode == 0
    program.succeeds("restart", "ams")
    assert lab.anew.state_of_hosts()["ams"] == "answers"
