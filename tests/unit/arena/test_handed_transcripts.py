"""Transcripts that students hand in: what they say is judged by the incident, and by a replay where there is one."""

from __future__ import annotations

import io
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.arena import handed, tournament
from minigts.arena.families import draw
from minigts.arena.handed import ReplayOf
from minigts.arena.scores import ArenaAnswer, ArenaScore, NamedFault, score
from minigts.arena.tournament import ReplayDifference
from minigts.arena.transcript import PlayedCall, PlayedEnd, PlayedTicket, Transcript
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.lessons import grades, submissions
from minigts.lessons.grades import GradeRow

INCIDENT = draw("routes", 5)
RIGHT = ArenaAnswer(faults=(NamedFault(what="no-route", where="bra"),))
WRONG = ArenaAnswer(faults=(NamedFault(what="no-route", where="ams"),))


def judged(answer: ArenaAnswer = RIGHT, *, mended: bool = True) -> ArenaScore:
    lasting = () if mended else INCIDENT.faults
    return score(INCIDENT.faults, answer, lasting=lasting, before=(), now=(), calls=1, lab_s=0.5)


def played(agent: str = "ana", answer: ArenaAnswer = RIGHT, result: ArenaScore | None = None) -> Transcript:
    call = PlayedCall(number=1, tool="run", arguments={"host": "bra", "command": "x"}, answer="", at_s=0, took_s=0.5)
    ticket = PlayedTicket(incident="routes/5", agent=agent, ticket="ams is gone", minigts="1.0.0")
    return Transcript(ticket, (call,), PlayedEnd(answer=answer, score=result or judged(answer)))


def submission(folder: Path, student: str, *given: Transcript | str) -> None:
    place = folder / student / "arena-routes-5"
    place.mkdir(parents=True)
    for number, each in enumerate(given):
        text = each.text if isinstance(each, Transcript) else each
        (place / f"arena-routes-{5 + number}.jsonl").write_text(text)


def graded(folder: Path, play: ReplayOf | None = None, *, seeded: bool = False) -> list[GradeRow]:
    return [row for each in submissions.students(folder) for row in handed.rows(each, seeded, play)]


def test_a_transcript_is_a_row(tmp_path: Path) -> None:
    submission(tmp_path, "ana", played())
    (row,) = graded(tmp_path, seeded=True)
    assert (row.student, row.lesson, row.seed, row.verdict, row.again, row.wrong) == (
        *("ana", "routes/5", "ana", "passed", "", ""),
    )
    assert row.folder == "arena-routes-5/arena-routes-5.jsonl"
    assert row.came_out == "1 points, 1 calls, 0.5 s"
    assert row.passed


def test_who_has_played_is_the_student(tmp_path: Path) -> None:
    submission(tmp_path, "bor", played("ana"))
    (row,) = graded(tmp_path, seeded=True)
    assert (row.verdict, row.wrong) == ("not yet", "seed: 'ana' has played, not bor")


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (played(answer=WRONG), "located: 0 of 1"),
        (played(result=judged(mended=False)), "mended: 0 of 1"),
        (played(answer=WRONG, result=judged()), "located: the score says 1, and what is there is worth 0"),
        (played(result=judged().model_copy(update={"left": 1})), "complaints left: 1"),
        (replace(played(), calls=()), "calls: the score says 1, and what is there is worth 0"),
    ],
)
def test_what_is_not_right_or_does_not_fit_is_told(tmp_path: Path, given: Transcript, wrong: str) -> None:
    submission(tmp_path, "ana", given)
    (row,) = graded(tmp_path)
    assert (row.verdict, row.wrong) == ("not yet", wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "is no transcript"),
        ("hallo\n", "arena-routes-5.jsonl:1"),
        (played().text.replace("routes/5", "roads/5"), "family of incidents"),
        (played().text.splitlines()[0], "is no transcript"),
        ("\n".join([played().text.splitlines()[0], *[played().text.splitlines()[1]] * 300]), "at most 200 calls"),
    ],
)
def test_what_is_no_transcript_is_broken_and_stops_nobody(tmp_path: Path, text: str, wrong: str) -> None:
    submission(tmp_path, "ana", text, played())
    broken, well = graded(tmp_path)
    assert (broken.verdict, well.verdict) == ("broken", "passed")
    assert wrong in broken.wrong


def test_a_replay_alone_counts_where_there_is_one(tmp_path: Path) -> None:
    submission(tmp_path, "ana", played())
    same = played()
    (row,) = graded(tmp_path, lambda _: (same, None))
    assert (row.again, row.wrong, row.passed) == ("passed", "", True)

    invented = played(result=judged(mended=False))
    (row,) = graded(tmp_path, lambda _: (invented, ReplayDifference(2, "a", "b")))
    assert (row.verdict, row.again, row.passed) == ("passed", "not yet", False)
    assert row.wrong == "again: mended: 0 of 1; again: line 2 of the transcript comes out otherwise, as after an " + (
        "earlier check or an exec"
    )
    assert row.came_out.startswith("0.75 points")

    def fails(_: Transcript) -> tuple[Transcript, None]:
        raise MinigtsError("no such tool")

    (row,) = graded(tmp_path, fails)
    assert (row.again, row.wrong) == ("not yet", "again: no such tool")

    def lacks(_: Transcript) -> tuple[Transcript, None]:
        raise EnvironmentLacks("no kernel")

    with pytest.raises(EnvironmentLacks):
        graded(tmp_path, lacks)


def test_calls_that_take_too_long_are_ended() -> None:
    began = time.monotonic()
    with pytest.raises(MinigtsError, match=r"take more than 0\.05 s of this machine's time"), tournament._within(0.05):
        time.sleep(20)
    assert time.monotonic() - began < 10
    with tournament._within(None):
        pass


def test_the_same_calls_of_two_students_are_named(tmp_path: Path) -> None:
    for student in ("ana", "bor"):
        submission(tmp_path, student, played(student))
    submission(tmp_path, "cene", replace(played("cene"), calls=()))
    found = grades.name_twins(graded(tmp_path))
    assert [row.same_as for row in found] == ["bor", "ana", ""]
    done = CliRunner().invoke(app, ["grade", str(tmp_path), "--seeded"])
    assert done.exit_code == 0
    assert "incident routes/5: ana, bor have made the same calls in the same order" in done.stderr
    assert "--again plays them" in done.stderr
    assert "2 of 3 passed" in done.stderr


def test_transcripts_are_bounded(tmp_path: Path) -> None:
    limits = submissions.SubmissionLimits(transcript_bytes=2000, all_transcripts_bytes=3000, transcripts=3)

    def problem(**files: int) -> str:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name, size in files.items():
                archive.writestr(f"{name}-1.jsonl", "x" * size)
        (tmp_path / "ana.zip").write_bytes(content.getvalue())
        (found,) = submissions.students(tmp_path, limits)
        return found.problem or f"{len(found.transcripts)} read"

    assert problem(a=10, b=10, c=10) == "3 read"
    assert "'a-1.jsonl' has more than 2 kB" in problem(a=2001)
    assert "transcripts have more than 3 kB" in problem(a=1900, b=1900)
    assert "holds more than 3 transcripts" in problem(a=1, b=1, c=1, d=1)


@pytest.mark.parametrize("name", ["events.jsonl", "arena-routes-5.json", "arena-routes-5.jsonl.bak", "../x-1.jsonl"])
def test_other_files_are_no_transcripts(name: str) -> None:
    assert submissions.TRANSCRIPT.fullmatch(name) is None


@pytest.mark.parametrize("name", ["arena-routes-5.jsonl", "routes-5.jsonl", "odd-30-my.model_2.jsonl"])
def test_names_of_transcripts(name: str) -> None:
    assert submissions.TRANSCRIPT.fullmatch(name) is not None
