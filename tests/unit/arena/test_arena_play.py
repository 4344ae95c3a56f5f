"""An incident as it is played, with hosts that run nothing: calls are noted and bounded, and an answer closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fake_lab import Answering, fake_lab
from minigts.arena import exercise, expectations, families, play, stage, tournament
from minigts.arena.expectations import Complaint
from minigts.arena.families import Incident
from minigts.arena.play import TOOLS, Play, PlayedDesk
from minigts.arena.scores import ArenaAnswer, NamedFault
from minigts.errors import CommandFailed, CommandTimeout, InputError, MinigtsError
from minigts.lab import Lab
from minigts.lessons import breaks, hidden_figures
from minigts.lessons.breaks import LessonFault

COMPLAINTS = (Complaint(what="reach", source="bra", target="ams"),)


class Hosts(Answering):
    """What they answer is set by the test."""

    said = (0, "said\n")
    fails: Callable[[str, Sequence[str]], Exception] | None = None

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        if Hosts.fails is not None:
            raise Hosts.fails(host, argv)
        return Hosts.said


@pytest.fixture
def incident() -> Incident:
    return families.draw("routes", 5)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """The faults that have their effect, by kind; nothing is done on hosts."""
    there: dict[str, bool] = {}

    def inflict(_lab: Lab, fault: LessonFault) -> str:
        there[fault.kind.name] = True
        return f"undo {fault.kind.name}"

    monkeypatch.setattr(breaks, "shows", lambda _lab, fault: there.get(fault.kind.name, False))
    monkeypatch.setattr(breaks, "inflict", inflict)
    monkeypatch.setattr(breaks, "repair", lambda _lab, _place, undo: there.pop(undo.removeprefix("undo "), None))
    monkeypatch.setattr(expectations, "complaints", lambda _lab: COMPLAINTS if any(there.values()) else ())
    return there


@pytest.fixture
def lab(incident: Incident, faults: dict[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    Hosts.said, Hosts.fails = (0, "said\n"), None
    return fake_lab(incident.plan, tmp_path, monkeypatch, Hosts)


def begun(lab: Lab, incident: Incident) -> Play:
    stage.make(lab, incident, "ana", lambda _: None)
    return Play(lab)


RIGHT = ArenaAnswer(faults=(NamedFault(what="no-route", where="bra"),))


def test_calls_are_noted_and_an_answer_closes_the_incident(
    lab: Lab, incident: Incident, faults: dict[str, bool]
) -> None:
    playing = begun(lab, incident)
    assert playing.call("look", {"host": "bra", "what": "routes"}) == "said"
    assert playing.call("ping", {"source": "bra", "target": "ams", "count": "2"}) == "said"
    assert playing.call("ping", {"source": "nobody", "target": "ams"}).startswith("refused: no host 'nobody'")
    assert [(each.number, each.tool, each.arguments.get("count")) for each in Play(lab).calls] == [
        (1, "look", None),
        (2, "ping", 2),
        (3, "ping", None),
    ]
    assert hidden_figures.why_fault_hidden(lab) is not None
    faults.clear()
    whole = playing.answer(RIGHT)
    assert whole.end.score.solved and len(whole.calls) == 3 and whole.ticket.agent == "ana"
    assert (lab.rundir / stage.TRANSCRIPT).read_text() == whole.text
    assert hidden_figures.why_fault_hidden(lab) is None
    with pytest.raises(InputError, match="no incident that waits"):
        Play(lab)


def test_who_does_nothing_solves_nothing(lab: Lab, incident: Incident) -> None:
    found = begun(lab, incident).answer(ArenaAnswer()).end.score
    assert (found.points, found.solved, found.left) == (0, False, 1)


def test_the_record_undoes_the_incident(lab: Lab, incident: Incident, faults: dict[str, bool]) -> None:
    record = begun(lab, incident).record
    assert record == stage.require(lab) and record.incident == incident
    stage.mend(lab, record)
    assert not any(faults.values())
    stage.clear(lab, record)
    assert stage.read(lab) is None


def test_a_lab_has_one_incident_at_a_time(lab: Lab, incident: Incident) -> None:
    begun(lab, incident)
    with pytest.raises(InputError, match="has an incident already"):
        stage.make(lab, incident, "ana", lambda _: None)


def test_an_incident_of_which_nobody_complains_is_none(
    lab: Lab, incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "complaints", lambda _lab: ())
    with pytest.raises(MinigtsError, match="there are 0 complaints, and 1 faults"):
        begun(lab, incident)
    assert stage.read(lab) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("pong", {}, "did you mean 'ping'"),
        ("explain", {"first": "ams"}, "explain"),
        ("set_link", {}, "set_link"),
        ("ping", {"source": "ams"}, "missing a required argument: 'target'"),
        ("ping", {"source": "ams", "target": "bra", "count": "many"}, "count: 'many'"),
        ("ping", {"source": "ams", "goal": "bra"}, "ping: .*'goal'"),
        ("look", {"host": ["ams"], "what": "routes"}, "host"),
    ],
)
def test_a_call_that_there_is_not_is_refused_and_not_counted(
    lab: Lab, incident: Incident, tool: str, arguments: dict[str, object], why: str
) -> None:
    playing = begun(lab, incident)
    with pytest.raises(InputError, match=why):
        playing.call(tool, arguments)
    assert playing.calls == ()


@pytest.mark.parametrize(
    ("named", "why"),
    [(NamedFault(what="no-routes", where="bra"), "no-route"), (NamedFault(what="no-route", where="bar"), "bra")],
)
def test_an_answer_that_cannot_be_is_refused_and_may_be_given_again(
    lab: Lab, incident: Incident, named: NamedFault, why: str
) -> None:
    playing = begun(lab, incident)
    with pytest.raises(InputError, match=f"did you mean '{why}'"):
        playing.answer(ArenaAnswer(faults=(named,)))
    assert not playing.answer(RIGHT).end.score.solved


def test_there_is_an_end_of_calls(lab: Lab, incident: Incident, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "MOST_CALLS", 2)
    playing = begun(lab, incident)
    for _ in range(2):
        playing.call("topology", {})
    with pytest.raises(InputError, match="takes 2 calls"):
        playing.call("topology", {})


def test_what_a_command_prints_is_said_as_by_mcp(lab: Lab, incident: Incident) -> None:
    playing = begun(lab, incident)
    Hosts.said = (3, "out\x1b[31m\n")
    assert playing.call("run", {"host": "bra", "command": "x"}).endswith("\nexit code 3")
    Hosts.fails = lambda host, argv: CommandTimeout(host, argv, 7, "half\n", "")
    assert playing.call("run", {"host": "bra", "command": "x", "seconds": 7}) == "half\nended after 7 s\nexit code 124"
    Hosts.fails = lambda host, argv: CommandFailed(host, argv, 1, "much", "")
    assert "much" in playing.call("run", {"host": "bra", "command": "x"})


def test_a_desk_for_an_assistant_notes_its_calls(lab: Lab, incident: Incident) -> None:
    playing = begun(lab, incident)
    desk = PlayedDesk(lab.name, playing)
    assert desk.ping("bra", "ams", 1, 56, whole=False) == "said"
    assert desk.capture("ams-bra", "", "icmp", 1, 5) == "said"
    assert [each.tool for each in playing.calls] == ["ping", "capture"]
    assert playing.calls[0].arguments == {"source": "bra", "target": "ams", "count": 1, "size": 56, "whole": False}
    assert {*TOOLS} == {name for name in vars(PlayedDesk) if name in TOOLS}


def test_a_students_folder_is_read_within_bounds(incident: Incident, tmp_path: Path) -> None:
    place = tmp_path / "ana"
    exercise.start(incident, place)
    assert exercise.find(incident, place) == place
    with pytest.raises(InputError, match="no answer is there yet"):
        exercise.read_answer(place)
    for written, found in (
        ("answers: []\n", ArenaAnswer()),
        ("answers:\n  - no-route@bra\n", RIGHT),
    ):
        (place / "answers.yaml").write_text(written)
        assert exercise.read_answer(place) == found
    for wrong, why in (
        ("answers: [no-route]\n", "answers.yaml:1: .*write KIND@HOST"),
        (f"answers: {['a@b'] * 11}\n", "at most 10 faults"),
        ("answers: {a: b}\n", "answers"),
    ):
        (place / "answers.yaml").write_text(wrong)
        with pytest.raises(InputError, match=why):
            exercise.read_answer(place)
    with pytest.raises(InputError, match="exists already"):
        exercise.start(incident, place)
    (place / "topology.yaml").write_text("name: other\n")
    with pytest.raises(InputError, match="as it was handed out"):
        exercise.find(incident, place)


def test_an_incident_is_not_played_again_where_its_transcript_is(
    lab: Lab, incident: Incident, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "scores"
    into.mkdir()
    playing = begun(lab, incident)
    whole = playing.answer(RIGHT)
    (into / tournament.file_name(incident.name, "scripted")).write_text(whole.text)
    monkeypatch.setattr(tournament, "play_incident", lambda *_: pytest.fail("it is there"))
    taken: list[object] = []
    tournament.play_all([incident.name], "scripted", lambda _: RIGHT, into, lambda _: None, taken.append)
    assert len(taken) == 1
