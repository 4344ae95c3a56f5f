"""Labs that are broken to be found: what a seed draws, and how an answer is judged. tests/live/test_faults_to_find.py
does each fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest

from fake_lab import fake_lab
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import Lab
from minigts.lessons import breaks, folder, grades, model
from minigts.lessons.break_kinds import KINDS
from minigts.lessons.model import all_lessons, lesson
from minigts.lessons.submissions import Handed
from minigts.lessons.verdicts import MENDED, Evidence, have_passed, judge
from minigts.topology.edit import add_host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

ROW = """
name: row
hosts: {a: , b: , c: , d: }
links: [{ends: [a, b], rtt: 4ms, rate: 100mbit}, {ends: [b, c], rtt: 4ms, rate: 100mbit}, {ends: [c, d], rtt: 4ms}]
"""
EXERCISES = list(range(13, 23))
SEEDS = [f"student-{number}" for number in range(200)]


@pytest.fixture(scope="module")
def row() -> Plan:
    return parse(ROW, "row.yaml", time="virtual")


def test_a_row_of_four_has_a_place_for_all_of_them(row: Plan) -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) == 42
    assert [fault.kind for fault in breaks.every(row)] == list(KINDS)


def test_seeds_draw_every_kind_and_each_the_same_again(row: Plan) -> None:
    drawn = [breaks.draw(row, seed) for seed in SEEDS]
    assert drawn[:10] == [breaks.draw(row, seed) for seed in SEEDS[:10]]
    assert len({fault.kind.name for fault in drawn}) == len(KINDS)
    assert {fault.place.host for fault in drawn} == {"a", "b", "c", "d"}


def test_what_a_seed_has_drawn_stays_so_in_later_versions(row: Plan) -> None:
    drawn = [breaks.draw(row, seed, ["no-route", "mtu"]) for seed in ("ana", "bor", "cene")]
    assert [(each.kind.name, each.place.host, each.place.variables["there"]) for each in drawn] == FIRST


FIRST = [("mtu", "a", "10.255.0.2"), ("no-route", "a", "10.255.0.4"), ("no-route", "d", "10.255.0.1")]


def test_places_are_what_the_fault_needs(row: Plan) -> None:
    for seed in SEEDS[:20]:
        assert breaks.draw(row, seed, ["no-forwarding"]).place.host in ("b", "c")
        wrong = breaks.draw(row, seed, ["wrong-next-hop"]).place
        assert wrong.host in ("b", "c")
        far = breaks.draw(row, seed, ["ttl"]).place
        assert len(row.path(far.host, far.variables["name"]).links) > 1


def test_a_topology_without_a_place_is_refused() -> None:
    pair = parse("name: pair\npair: {hosts: [a, b], link: {rtt: 4ms}}\n", "pair.yaml", time="virtual")
    with pytest.raises(InputError, match="no place for such a fault"):
        breaks.draw(pair, "ana", ["no-forwarding"])
    with pytest.raises(InputError, match="did you mean 'no-route'"):
        breaks.draw(pair, "ana", ["no-routes"])


def test_hosts_that_share_this_machines_kernel_are_not_broken(row: Plan) -> None:
    lab = cast("Lab", SimpleNamespace(provider=SimpleNamespace(name="mininet"), plan=row))
    with pytest.raises(EnvironmentLacks, match="share this machine's kernel"):
        breaks.break_(lab, "ana")


def test_of_a_cable_either_end_is_right_and_of_one_end_that_end(row: Plan) -> None:
    for seed in SEEDS[:20]:
        cable, end = (breaks.draw(row, seed, [kind]) for kind in ("carrier", "carrier-one-end"))
        (link,) = (link for link in row.links if link.name == cable.place.link)
        assert {*cable.hosts} == {*link.ends}
        assert end.hosts == (end.place.host,)
        assert cable.place.variables["dev"] == next(
            port.name for port in row.host(cable.place.host).ports if port.link == link.name
        )
    assert breaks.draw(row, "ana", ["no-arp"]).hosts == (breaks.draw(row, "ana", ["no-arp"]).place.host,)


@pytest.mark.parametrize("kind", ["carrier", "carrier-one-end"])
def test_an_answer_names_an_end_that_has_no_carrier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    drawn = breaks.draw(lesson(14).plan("ana"), "ana", [kind])
    fault = replace(drawn, kind=replace(drawn.kind, name="no-route"))  # a word that the exercise knows
    monkeypatch.setattr(model.NumberedLesson, "fault", lambda *_: fault)
    for host in (each.name for each in lesson(14).plan("ana").hosts):
        (tmp_path / host).mkdir()
        found = judge(handed(tmp_path / host, "no-route", host), Evidence({MENDED: 1.0}))
        assert have_passed(found) is (host in fault.hosts)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return fake_lab(parse(ROW, "row.yaml", time="real"), tmp_path / "state", monkeypatch)


def test_a_lab_that_was_never_broken_has_nothing_to_mend(lab: Lab) -> None:
    with pytest.raises(InputError, match="lab row was not broken: minigts break --seed NAME"):
        breaks.mend(lab)


def test_a_broken_lab_is_mended_once_where_it_was_broken(lab: Lab, tmp_path: Path) -> None:
    place = breaks.FaultPlace("b", "a")
    broken = breaks.Broken(seed="ana", what="mtu", place=place, undo='echo mended >>"$HOME/done"\n')
    lab.put(breaks.FILE, broken.model_dump_json())
    breaks.mend(lab)
    breaks.mend(lab)
    lab.provider.get("b", PurePosixPath("/done"), tmp_path / "done")
    assert (tmp_path / "done").read_text() == "mended\n"
    assert breaks.require_broken(lab).mended


def test_of_a_cable_both_ends_are_noted_whatever_becomes_of_the_lab(row: Plan) -> None:
    """A host that is added later is a place of which the same seed may draw."""
    drawn = breaks.draw(row, "ana", ["carrier"])
    more = add_host(row, "e", "a", {})
    assert any(breaks.draw(more, seed, ["carrier"]) != breaks.draw(row, seed, ["carrier"]) for seed in SEEDS[:20])
    noted = breaks.Broken(seed="ana", what="carrier", place=drawn.place, undo="")
    read = breaks.Broken.model_validate_json(noted.model_dump_json())
    assert (read.fault, {*read.fault.hosts}) == (drawn, {drawn.place.host, drawn.place.far_end})


@pytest.mark.parametrize("number", EXERCISES)
def test_an_exercise_draws_of_its_kinds_and_its_page_names_them(number: int) -> None:
    kinds, plan = lesson(number).lesson.find, lesson(number).plan(None)
    assert {breaks.draw(plan, seed, kinds).kind.name for seed in SEEDS[:60]} == {*kinds}
    page = lesson(number).page.read_text()
    assert all(page.count(f"`{kind}`") == 2 for kind in kinds)  # as a word to answer, and in what is seen


def test_there_are_ten_exercises() -> None:
    assert [each.number for each in all_lessons() if each.lesson.find] == EXERCISES


def handed(tmp_path: Path, what: str, where: str) -> folder.StudentWork:
    place = tmp_path / "ana"
    folder.start(lesson(14), place, "ana")
    (place / folder.ANSWERS).write_text(f"answers: {{what: {what}, where: {where}}}\n")
    return folder.read(place)


def right() -> tuple[str, str]:
    fault = lesson(14).fault("ana")
    return fault.kind.name, fault.place.host


def test_who_has_found_and_mended_it_passes(tmp_path: Path) -> None:
    assert have_passed(judge(handed(tmp_path, *right()), Evidence({MENDED: 1.0})))


@pytest.mark.parametrize(
    ("change", "evidence", "says"),
    [
        ("what", Evidence({MENDED: 1.0}), "it is not that"),
        ("where", Evidence({MENDED: 1.0}), "it is not that"),
        ("", Evidence({MENDED: 0.0}), "still broken"),
        ("", Evidence({}), "not measured"),
        ("", Evidence({}, ("lab lesson-14 is not up",)), "not up"),
    ],
)
def test_a_wrong_answer_or_a_lab_that_is_broken_does_not(
    tmp_path: Path, change: str, evidence: Evidence, says: str
) -> None:
    what, where = right()
    if change == "what":
        what = next(kind for kind in lesson(14).lesson.find if kind != what)
    if change == "where":
        where = next(host.name for host in lesson(14).plan("ana").hosts if host.name != where)
    found = judge(handed(tmp_path, what, where), evidence)
    assert [each.says for each in found if each.ok is False and says in each.says]
    assert len([each for each in found if each.ok is False]) == 1


def test_no_answer_yet_is_said(tmp_path: Path) -> None:
    folder.start(lesson(14), tmp_path / "ana", "ana")
    found = judge(folder.read(tmp_path / "ana"), Evidence({MENDED: 1.0}))
    assert [each.name for each in found if each.ok is False] == ["what", "where"]


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ("{what: no-rout, where: ams}", "did you mean 'no-route'"),
        ("{what: mtu, where: ams}", "no kind of fault here 'mtu'"),
        ("{what: no-route, where: amsterdam}", "no host 'amsterdam'"),
        ("{who: bor}", "no question of that name"),
    ],
)
def test_words_that_no_answer_can_be_are_refused(tmp_path: Path, answers: str, says: str) -> None:
    folder.start(lesson(14), tmp_path / "ana", "ana")
    (tmp_path / "ana" / folder.ANSWERS).write_text(f"answers: {answers}\n")
    with pytest.raises(InputError, match=r"answers\.yaml:1") as refused:
        folder.read(tmp_path / "ana")
    assert says in str(refused.value)


@pytest.mark.parametrize(("mended", "verdict"), [(1.0, grades.PASSED), (0.0, grades.NOT_YET)])
def test_a_teacher_grades_by_the_seed(mended: float, verdict: str) -> None:
    what, where = right()
    files = {
        "lesson.yaml": b"lesson: 14\nseed: ana\n",
        "answers.yaml": f"answers: {{what: {what}, where: {where}}}\n".encode(),
        "evidence.json": f'{{"measured": "2026-11-27T10:00:00Z", "figures": {{"mended": {mended}}}}}'.encode(),
    }
    (found,) = grades.rows(Handed("ana", {"lesson-14": files}), True)
    assert (found.verdict, found.prediction) == (verdict, "")
    (bor,) = grades.rows(Handed("bor", {"lesson-14": files}), True)
    assert "has the figures of ana" in bor.wrong


def test_an_exercise_has_nothing_to_predict(tmp_path: Path) -> None:
    folder.start(lesson(14), tmp_path / "ana", None)
    with pytest.raises(InputError, match="nothing to predict"):
        folder.predict(lesson(14), tmp_path / "ana", "5ms")
    assert model.FIGURES not in (tmp_path / "ana" / folder.PAGE).read_text()
