"""A host whose memory its own programs use up: what it is told of while they run, and when it answers no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory
from live.program import Program
from minigts import lab as labs
from minigts.lab import Lab
from minigts.topology.load import parse

PAIR = "name: small\nhosts: {ams: {memory: 128MB}, bra: }\nlinks: [{ends: [ams, bra], rtt: 4ms}]\n"
GREEDY = "kept = [bytes(b'x' * (1 << 20)) for _ in range(1000)]"
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
def test_exec_says_which_program_has_taken_all_memory(lab: Lab, program: Program) -> None:
    done = program.run("exec", "ams", "--", "python3", "-c", GREEDY)
    assert done.returncode == 137
    assert "python3[" in done.stderr
    assert "was ended by the kernel of ams, whose memory of 128 MB is used up" in done.stderr
    assert program.run("exec", "ams", "--", "true").returncode == 0


@pytest.mark.virtual
@pytest.mark.timeout(900)
def test_a_host_that_its_root_has_filled_with_processes_says_why_it_answers_no_more(lab: Lab, program: Program) -> None:
    """Its kernel looks for memory and ends no turn, until the lab's clock goes on without it. The others run on."""
    program.run("exec", "--timeout", "20", "ams", "--", "bash", "-c", BOMB)
    for words in (["exec", "ams", "--", "true"], ["check", "--quick"]):
        said = program.run(*words)
        assert (said.returncode, "its memory is exhausted" in said.stderr) == (1, True), said.stderr
    told = program.succeeds("status")
    assert "its memory is exhausted" in " ".join(told.split())
    assert program.run("exec", "bra", "--", "true").returncode == 0
    program.succeeds("restart", "ams")
    assert lab.anew.state_of_hosts()["ams"] == "answers"
