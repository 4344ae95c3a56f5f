"""Grades: worked out from what is handed in, whoever has made it and however."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from minigts.cli import console
from minigts.cli.app import app
from minigts.lessons import folder, grades, submissions
from minigts.lessons.model import lesson

RIGHT = {
    "measured": "2026-11-23T13:00:00Z",
    "figures": {"round_trip": 100.047},
    "changed": {"bra-lju": {"delay_ms": 38}},
}
ANSWERS = "answers: {to_mil: 65.05ms, delay: 38ms}\n"
SMALL = submissions.SubmissionLimits(
    archive_bytes=100_000, unpacked_bytes=100_000, files=20, file_bytes=2000, all_bytes=6000
)


def content(
    seed: str | None = None, prediction: str = "32.5ms", answers: str = ANSWERS, **evidence: object
) -> dict[str, str]:
    """What lies in the folder of lesson 1 once it has passed."""
    return {
        "lesson.yaml": "lesson: 1\n" + (f"seed: {seed}\n" if seed else ""),
        "prediction.yaml": f'prediction: "{prediction}"\n',
        "answers.yaml": answers,
        "evidence.json": json.dumps(RIGHT | evidence),
        "page.md": "not read " * 1000,
    }


def as_zip(files: dict[str, str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return target.getvalue()


def as_tar(files: dict[str, str], change: Callable[[tarfile.TarInfo], None] = lambda _: None) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            change(member)
            archive.addfile(member, io.BytesIO(text.encode()))
    return target.getvalue()


def graded(
    directory: Path, *, seeded: bool = False, limits: submissions.SubmissionLimits = SMALL
) -> list[grades.GradeRow]:
    return [row for handed in submissions.students(directory, limits) for row in grades.rows(handed, seeded)]


def within(files: dict[str, str], place: str) -> dict[str, str]:
    return {f"{place}/{name}": text for name, text in files.items()}


@pytest.fixture
def classroom(tmp_path: Path) -> Path:
    made = tmp_path / "submissions"
    made.mkdir()
    (made / "ana.zip").write_bytes(as_zip(within(content(), "lesson-1")))
    (made / "bor.tar.gz").write_bytes(
        gzip.compress(as_tar(within(content(figures={"round_trip": 65.047}), "./lesson-1")))
    )
    (made / "cene").mkdir()
    for name, text in content(prediction="65ms").items():
        (made / "cene" / name).write_text(text)
    (made / "dana.zip").write_bytes(b"PK\x05\x06 and no more")
    (made / "eva.txt").write_text("I was ill")
    return made


def test_each_student_has_a_row_and_a_broken_one_stops_nobody(classroom: Path) -> None:
    ana, bor, cene, dana, eva = graded(classroom)
    assert (ana.student, ana.lesson, ana.verdict, ana.prediction, ana.error) == (
        "ana",
        "1",
        "passed",
        "32.5 ms",
        "32.5 ms too low",
    )
    assert (ana.folder, ana.measured, ana.wrong) == ("lesson-1", "2026-11-23 13:00:00+00:00", "")
    assert (bor.student, bor.verdict) == ("bor", "not yet")
    assert "the link is as it was handed out" in bor.wrong
    assert (cene.student, cene.verdict, cene.came_out, cene.error) == ("cene", "passed", "65 ms", "0")
    assert (dana.verdict, eva.verdict) == ("broken", "broken")
    assert "eva.txt is neither" in eva.wrong


def test_the_table_and_the_file_for_a_spreadsheet(classroom: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["grade", str(classroom), "-o", str(tmp_path / "grades.csv")])
    assert done.exit_code == 0
    assert "2 of 5 passed" in done.stderr
    read = list(csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text())))
    assert [row["verdict"] for row in read] == ["passed", "not yet", "passed", "broken", "broken"]


def test_what_is_no_folder_is_one_error() -> None:
    done = CliRunner().invoke(app, ["grade", "/no/such/folder"])
    assert (done.exit_code, done.stderr) == (2, "minigts: /no/such/folder: cannot be read: No such file or directory\n")


def test_a_table_that_cannot_be_written_is_one_error(classroom: Path) -> None:
    done = CliRunner().invoke(app, ["grade", str(classroom), "-o", "/no/such/folder/grades.csv"])
    assert (done.exit_code, done.stdout) == (2, "")


@pytest.mark.parametrize(("seed", "verdict"), [("ana", "passed"), ("bor", "not yet"), (None, "not yet")])
def test_a_seed_has_to_be_the_students_own(tmp_path: Path, seed: str | None, verdict: str) -> None:
    own = lesson(1).figures(seed)
    answers = f"answers: {{to_mil: {2 * sum(own.values())}ms, delay: {50 - own['first'] - own['third']}ms}}\n"
    (tmp_path / "ana.zip").write_bytes(as_zip(content(seed, answers=answers)))
    assert graded(tmp_path)[0].verdict == "passed"
    assert graded(tmp_path, seeded=True)[0].verdict == verdict


def test_the_verb_grades_seeds_when_it_is_asked_to(tmp_path: Path) -> None:
    """Ana's own work; and the same, handed in by bor."""
    made, own = tmp_path / "submissions", lesson(1).figures("ana")
    answers = f"answers: {{to_mil: {2 * sum(own.values())}ms, delay: {50 - own['first'] - own['third']}ms}}\n"
    made.mkdir()
    for student in ("ana", "bor"):
        (made / f"{student}.zip").write_bytes(as_zip(content("ana", answers=answers)))
    verdicts = {}
    for words in ((), ("--seeded",)):
        table = tmp_path / "grades.csv"
        done = CliRunner().invoke(app, ["grade", str(made), *words, "-o", str(table)])
        assert done.exit_code == 0, done.output
        rows = list(csv.DictReader(io.StringIO(table.read_text())))
        verdicts[words] = {row["student"]: row["verdict"] for row in rows}
    assert verdicts == {(): {"ana": "passed", "bor": "passed"}, ("--seeded",): {"ana": "passed", "bor": "not yet"}}


def test_the_figures_of_another_seed_do_not_pass(tmp_path: Path) -> None:
    (tmp_path / "ana.zip").write_bytes(as_zip(content("ana")))
    assert "to_mil" in graded(tmp_path)[0].wrong


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        ({"verdict": "passed"}, "broken"),
        ({"figures": {"round_trip": 65, "passed": 1}}, "not yet"),
        ({"figures": {"round_trip": "much"}}, "broken"),
        ({"lacking": ["no lab"]}, "not yet"),
        ({"figures": {}}, "not yet"),
    ],
)
def test_a_verdict_is_worked_out_and_not_taken_over(tmp_path: Path, evidence: dict[str, object], verdict: str) -> None:
    (tmp_path / "ana.zip").write_bytes(as_zip(content(**evidence)))
    assert graded(tmp_path)[0].verdict == verdict


def link(member: tarfile.TarInfo) -> None:
    if member.name == "answers.yaml":
        member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0


def link_in_zip() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in content().items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o120777 if name == "answers.yaml" else 0o100644) << 16
            archive.writestr(entry, "/etc/passwd" if name == "answers.yaml" else text)
    return target.getvalue()


def of_size(size: int) -> bytes:
    """A header that says so."""
    member = tarfile.TarInfo("lesson.yaml")
    member.size = size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("name", "packed", "says"),
    [
        ("a.zip", as_zip({"../lesson.yaml": "lesson: 1\n"}), "leads out of the archive"),
        ("a.zip", as_zip({"/lesson.yaml": "lesson: 1\n"}), "leads out of the archive"),
        ("a.zip", as_zip({"a\\..\\..\\lesson.yaml": "lesson: 1\n"}), "leads out of the archive"),
        ("a.tar", as_tar({"a/../../lesson.yaml": "lesson: 1\n"}), "leads out of the archive"),
        ("a.tar", as_tar({"/tmp/lesson.yaml": "lesson: 1\n"}), "leads out of the archive"),
        ("a.tar", as_tar(content(), link), "is no regular file"),
        ("a.zip", link_in_zip(), "is no regular file"),
        ("a.zip", as_zip({"lesson.yaml": "x" * 3000}), "more than 2 kB"),
        ("a.zip", as_zip({f"{count}/answers.yaml": "x" * 1900 for count in range(9)}), "more than 6 kB"),
        ("a.zip", as_zip({f"{count}": "" for count in range(30)}), "more than 20 files"),
        ("a.tar", as_tar({f"{count}": "" for count in range(30)}), "more than 20 files"),
        ("a.tar.gz", gzip.compress(bytes(200_000)), "holds more than"),
        ("a.tgz", gzip.compress(as_tar(content()))[:-20], "cannot be unpacked"),
        ("a.tar", as_tar({"lesson.yaml": "lesson: 1\n"})[:516], "no whole tar archive"),
        ("a.tar", b"lesson" * 500, "no whole tar archive"),
        ("a.tar", of_size(0) + bytes(1024), "lesson.yaml: nothing in it"),
        ("a.tar", of_size(1 << 40) + bytes(1024), "ends behind its end"),
        ("a.tar", of_size(-512) + bytes(1024), "ends behind its end"),
        ("a.zip", os.urandom(200_000), "has more than"),
        ("a.zip", b"", "is no ZIP archive"),
        ("a.zip", as_zip({"notes.txt": "nothing"}), "holds no lesson's folder"),
        ("a.zip", as_zip({"lesson.yaml": "lesson: 77\n"}), "no lesson 77"),
        ("a.zip", as_zip({"lesson.yaml": "lesson: 1\n"}), "answers.yaml: no such file"),
        ("a.zip", as_zip(content() | {"answers.yaml": "answers: {to_mil: &a 1ms, delay: *a}\n"}), "answers.yaml:1"),
        ("a.zip", as_zip(content() | {"evidence.json": "[" * 1500}), "evidence.json"),
    ],
)
def test_what_is_hostile_or_damaged_is_a_row_that_says_so(tmp_path: Path, name: str, packed: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(packed)
    (tmp_path / "zoe.zip").write_bytes(as_zip(content()))
    first, other = graded(tmp_path)
    assert (first.verdict, other.verdict) == ("broken", "passed")
    assert says in first.wrong
    assert str(tmp_path) not in first.wrong


def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("lesson.yaml"))
    (tmp_path / "a.tar").write_bytes(target.getvalue())
    assert "twice" in graded(tmp_path)[0].wrong


@pytest.mark.parametrize("whole", [True, False], ids=["the folder", "a file in it"])
def test_links_are_not_followed(tmp_path: Path, whole: bool) -> None:
    secret, handed = tmp_path / "secret", tmp_path / "handed"
    for each in (secret, handed):
        each.mkdir()
    for name, text in content().items():
        (secret / name).write_text(text)
    if whole:
        (handed / "ana").symlink_to(secret)
    else:
        (handed / "ana").mkdir()
        (handed / "ana" / "lesson.yaml").write_text("lesson: 1\n")
        (handed / "ana" / "answers.yaml").symlink_to(secret / "answers.yaml")
    (row,) = graded(handed)
    assert row.verdict == "broken"
    assert "link" in row.wrong


def test_a_pipe_is_waited_for_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "ana").mkdir()
    os.mkfifo(tmp_path / "ana" / "lesson.yaml")
    os.mkfifo(tmp_path / "bor.zip")
    assert [row.verdict for row in graded(tmp_path)] == ["broken", "broken"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "=HYPERLINK(1)\n"])
def test_no_cell_becomes_a_formula(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.zip").write_bytes(as_zip(content()))
    (row,) = csv.DictReader(io.StringIO(grades.csv_text(graded(tmp_path))))
    assert row["student"].startswith("'")


@pytest.mark.parametrize("separator", ";|\t")
def test_no_part_of_a_cell_becomes_one_whatever_parts_the_fields(separator: str) -> None:
    """As a spreadsheet opens it that parts fields at semicolons, and takes no notice of quotes within one."""
    row = grades.GradeRow("ana", wrong=f'a{separator}=HYPERLINK("http://x"){separator}-1+1')
    parts = [part for line in grades.csv_text([row]).splitlines() for part in line.split(separator)]
    assert not [part for part in parts if part.startswith(("=", "+", "-", "@"))]


def test_every_field_is_quoted() -> None:
    heading, line = grades.csv_text([grades.GradeRow("ana", measured="a, b")]).splitlines()
    assert all(field.startswith('"') for field in heading.split(","))
    assert line.startswith('"ana","",') and line.endswith('"a, b",""')


def test_what_is_done_is_shown_without_escapes_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A student's folder has any name, which the progress shows."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    for within in (console.progress, console.measuring):
        with within() as said:
            say = said[0] if isinstance(said, tuple) else said
            say("repeating the work of \x1b]0;owned\x07ana\udcff [red]x[/red]")
            time.sleep(0.2)
    assert "\x1b]0;" not in shown.getvalue()
    assert "\x07" not in shown.getvalue()
    assert "\\x1b]0;owned\\x07ana\\udcff [red]x[/red]" in shown.getvalue()


def test_no_cell_changes_a_terminal() -> None:
    assert grades.cell("a\x1b[31mred\u202e\udcff\r\nb") == "a\\x1b[31mred\\u202e\\udcff b"


@settings(max_examples=100)
@given(st.data())
def test_damaged_archives_are_rows(data: st.DataObject) -> None:
    """A byte or several of a whole one are others, or its end is missing."""
    name, packed = data.draw(
        st.sampled_from(
            [
                ("a.zip", as_zip(within(content(), "lesson-1"))),
                ("a.tar", as_tar(within(content(), "lesson-1"))),
                ("a.tar.gz", gzip.compress(as_tar(content()), mtime=0)),
            ]
        )
    )
    damaged = bytearray(packed)
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged))) :]
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / name).write_bytes(damaged)
        rows = graded(Path(place))
        assert rows
        assert grades.csv_text(rows).count("\n") == len(rows) + 1


@settings(max_examples=50)
@given(
    name=st.sampled_from(["lesson.yaml", "prediction.yaml", "answers.yaml", "evidence.json"]),
    text=st.text(max_size=200) | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps),
)
def test_strange_files_are_rows(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "ana").mkdir()
        for each, own in (content() | {name: text}).items():
            (Path(place) / "ana" / each).write_text(own, encoding="utf-8", errors="replace")
        (row,) = graded(Path(place))
        assert row.verdict in ("broken", "not yet", "passed")


def test_an_archive_of_another_system_has_its_own_strokes(tmp_path: Path) -> None:
    (tmp_path / "ana.zip").write_bytes(as_zip({f"ana\\lesson-1\\{name}": text for name, text in content().items()}))
    (row,) = graded(tmp_path)
    assert (row.folder, row.verdict) == ("ana/lesson-1", "passed")


def test_a_prediction_that_was_never_made_is_said(tmp_path: Path) -> None:
    made = content()
    del made["prediction.yaml"]
    (tmp_path / "ana.zip").write_bytes(as_zip(made))
    (row,) = graded(tmp_path)
    assert (row.verdict, row.prediction, row.error) == ("not yet", "", "")
    assert "predict first" in row.wrong


def test_what_is_handed_out_is_known(tmp_path: Path) -> None:
    folder.start(lesson(8), tmp_path / "ana", "ana")
    assert "rules.txt" in submissions.known_names()
    (row,) = graded(tmp_path, seeded=True)
    assert (row.lesson, row.seed, row.verdict) == ("8", "ana", "not yet")
    assert "evidence.json" in row.wrong


def test_two_with_the_evidence_of_one_check_are_named(tmp_path: Path) -> None:
    """However the file is written; figures that are equal by right, as all are without seeds, are no sign."""
    made = tmp_path / "submissions"
    own = {"measured": "2026-11-23T13:00:00.123456Z"}
    for student, evidence in (
        ("ana", own),
        ("bor", {"measured": "2026-11-23T13:00:00.123457Z"}),
        ("cene", {**own, "lacking": []}),
        ("dana", {"measured": "2026-11-23T14:00:00.123456+01:00"}),
    ):
        (made / student).mkdir(parents=True)
        for name, text in content(**evidence).items():
            (made / student / name).write_text(text)
    (made / "eva").mkdir()
    (made / "eva" / "lesson.yaml").write_text("lesson: 1\n")
    found = grades.name_twins(graded(made))
    assert [row.same_as for row in found] == ["cene, dana", "", "ana, dana", "ana, cene", ""]
    done = CliRunner().invoke(app, ["grade", str(made), "-o", str(tmp_path / "grades.csv")])
    said = "lesson 1: ana, cene, dana have handed in the evidence of one check, to the microsecond"
    assert " ".join(done.stderr.split()).count(said) == 1
    read = list(csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text())))
    assert (read[0]["same_as"], read[1]["same_as"], "evidence" in read[0]) == ("cene, dana", "", False)
