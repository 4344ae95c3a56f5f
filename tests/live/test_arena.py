"""Incidents in labs: a sample is absent, present and mended; one is played by hand, replayed to the same bytes, and is
a lesson. `bench/run arena` proves all 360."""

from __future__ import annotations

import asyncio
import csv
import importlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from live.conftest import quiet, state_directory
from live.program import PROJECT, Program, spinning
from live.test_mcp import asked_of, command, environment
from minigts.arena import boards, families, proof
from minigts.arena.play import TOOLS

pytestmark = [pytest.mark.touched("tools/minigts/arena", "tools/minigts/lessons"), pytest.mark.virtual]
NOTEBOOK = PROJECT / "docs" / "examples" / "arena" / "arena.ipynb"
MEND = "ip route add 10.255.0.1 via 10.20.0.1 dev eth1 src 10.255.0.2"
SAMPLE = ("routes/5", "names/1", "odd/1")


@pytest.mark.timeout(300)
def test_a_sample_is_absent_present_and_mended(tmp_path: Path) -> None:
    drawn = [families.draw(*families.parse(name)) for name in SAMPLE]
    with state_directory(tmp_path):
        for board in dict.fromkeys(each.board for each in drawn):
            for found in proof.prove_on(board, [each for each in drawn if each.board == board], quiet):
                assert found.problem == "", found


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("board", boards.BOARDS)
def test_all_incidents_are_absent_present_and_mended(tmp_path: Path, board: str) -> None:
    drawn = [families.draw(*families.parse(name)) for family in families.FAMILIES for name in families.names_of(family)]
    with state_directory(tmp_path):
        found = list(proof.prove_on(board, [each for each in drawn if each.board == board], quiet))
    assert [each for each in found if each.problem] == []


@pytest.mark.timeout(600)
@pytest.mark.alone  # programs that spin, beside other tests and on two processors, keep a lab from starting in its time
def test_an_incident_is_played_by_hand_and_replayed_under_load(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "routes-5.jsonl"
    told = program.succeeds("arena", "start", "routes/5", "--agent", "ana")
    assert "ams" in told and "bra" in told
    assert "yours to find" in program.run("explain", "ams-bra").stderr
    call = ("arena", "call")
    assert "unreachable" in program.succeeds(*call, "ping", "source=bra", "target=ams", "count=1")
    assert "10.255.0.3 via" in program.succeeds(*call, "look", "host=bra", "what=routes")
    program.succeeds(*call, "run", "host=bra", f"command={MEND}")
    assert "3 calls so far" in program.run("arena", "ticket").stderr
    wrong = program.run("arena", "answer", "--fault", "no-route@nobody")
    assert wrong.returncode == 2 and "nobody" in wrong.stderr
    said = program.succeeds("arena", "answer", "--fault", "no-route@bra", "-o", str(file))
    assert "points: 1, by 3 calls" in said and "solved" in said
    assert program.succeeds("arena", "transcript") == file.read_text()
    assert program.run("explain", "ams-bra").returncode == 0
    program.succeeds("down", "--all")

    with spinning(3):
        assert "the same: 3 calls" in program.succeeds("arena", "replay", str(file))
    lines = file.read_text().splitlines()
    other = json.loads(lines[2]) | {"arguments": {"host": "bra", "what": "addresses"}}
    (tmp_path / "other.jsonl").write_text("\n".join([*lines[:2], json.dumps(other), *lines[3:], ""]))
    differs = program.run("arena", "replay", str(tmp_path / "other.jsonl"))
    assert (differs.returncode, "line 3 differs" in differs.stdout) == (1, True)


@pytest.mark.timeout(600)
@pytest.mark.nightly
def test_the_baseline_and_who_does_nothing_are_played_and_replayed(program: Program, tmp_path: Path) -> None:
    into = tmp_path / "scores"
    said = program.succeeds("arena", "run", "routes/3", "routes/5", "--into", str(into))  # forks of one lab
    assert "| routes | 2 | 2 | 1.00 |" in said
    assert "| routes | 1 | 0 | 0.00 |" in program.succeeds(
        "arena", "run", "routes/5", "--agent", "nothing", "--into", str(into)
    )
    with spinning(3):
        assert "the same" in program.succeeds("arena", "replay", str(into / "routes-5-scripted.jsonl"))
    both = program.succeeds("arena", "report", str(into))
    assert "scripted" in both and "nothing" in both and (into / "report.md").is_file()


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_student_plays_an_incident_as_a_lesson(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "handed" / "ana"
    folder.parent.mkdir()
    here = ("--folder", str(folder))
    program.succeeds("lesson", "routes/5", "start", *here)
    program.succeeds("up", str(folder / "topology.yaml"), "--certify", "quick")
    assert "no answer is there yet" in program.run("lesson", "routes/5", "check", *here).stderr
    (folder / "answers.yaml").write_text("answers: [no-route@bra]\n")
    assert "no incident that waits" in program.run("lesson", "routes/5", "check", *here).stderr
    assert "ams" in program.succeeds("lesson", "routes/5", "break", "--seed", "ana", *here)
    first = program.run("lesson", "routes/5", "check", *here)
    assert first.returncode == 1 and "no  mended: 0" in first.stdout
    program.succeeds("arena", "call", "run", "host=bra", f"command={MEND}")
    assert "solved" in program.succeeds("lesson", "routes/5", "check", *here)
    program.succeeds("down", "--all")

    kept = folder / "arena-routes-5.jsonl"
    assert '"agent":"ana"' in kept.read_text()
    invented = folder.parent / "bor" / "routes-5.jsonl"
    invented.parent.mkdir()
    ticket, _call, end = kept.read_text().splitlines()
    invented.write_text("\n".join([ticket.replace('"ana"', '"bor"'), end.replace('"calls":1', '"calls":0'), ""]))
    assert "2 of 2 passed" in program.run("grade", str(folder.parent), "--seeded").stderr
    table = tmp_path / "grades.csv"
    assert "1 of 2 passed" in program.run("grade", str(folder.parent), "--again", "-o", str(table)).stderr
    ana, bor = csv.DictReader(table.read_text().splitlines())
    assert (ana["verdict"], ana["again"], ana["came_out"][:18]) == ("passed", "passed", "1 points, 1 calls,")
    assert (bor["verdict"], bor["again"]) == ("passed", "not yet")
    assert "again: mended: 0 of 1" in bor["wrong"]


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_an_assistant_plays_by_the_model_context_protocol(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(program.state))
    program.succeeds("arena", "start", "routes/5", "--agent", "model")
    python, *words = command("arena-routes-5", "--role", "repair")

    async def talk(ask: Callable[..., Awaitable[str]], client: Client) -> None:
        assert {each.name for each in (await client.list_tools()).tools} == {*TOOLS, "ticket", "answer"}
        assert "no-route: a host lacks the route" in await ask("ticket")
        assert "unreachable" in await ask("ping", source="bra", target="ams", count=1)
        assert (await ask("answer", faults=["no-route"])).startswith("refused: ")
        await ask("run", host="bra", command=MEND)
        assert '"solved":true' in await ask("answer", faults=["no-route@bra"])

    async def spoken() -> None:
        parameters = StdioServerParameters(command=python, args=words, env=environment())
        async with Client(stdio_client(parameters)) as client:
            await talk(asked_of(client), client)

    asyncio.run(spoken())
    assert '"tool":"ping"' in program.succeeds("arena", "transcript")


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_notebook_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROJECT))
    notebook = importlib.import_module("bench.notebook")
    shown = json.loads(NOTEBOOK.read_text())
    with state_directory(tmp_path):
        assert notebook.text_of(notebook.run_cells(shown)) == NOTEBOOK.read_text()
