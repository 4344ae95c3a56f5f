"""Lessons: a right solution passes, wrong ones are told what they mean."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import tc_hosts
from pydantic import ValidationError

import minigts
from minigts import lab as labs
from minigts import paths
from minigts.errors import InputError
from minigts.lab import Change, Lab
from minigts.lessons import breaks, folder, regrade
from minigts.lessons.evidence_file import EvidenceFile
from minigts.lessons.hidden_figures import why_fault_hidden, why_hidden
from minigts.lessons.model import FIGURES, FOLDER, Again, Lesson, all_lessons, lesson, numbers
from minigts.lessons.verdicts import Evidence, have_passed, judge
from minigts.serve import lessons as served
from minigts.topology.read.load import parse


def work(place: Path, answers: str) -> folder.StudentWork:
    """Of lesson 1 without a seed, as it was run by hand."""
    folder.start(lesson(1), place / "one", None)
    folder.predict(lesson(1), place / "one", "32.5ms")
    (place / "one" / folder.ANSWERS).write_text(f"answers: {{{answers}}}\n")
    return folder.read(place / "one")


def test_a_wrong_figure_is_explained_with_the_figures_of_the_student_s_seed(tmp_path: Path) -> None:
    numbered = lesson(1)
    folder.start(numbered, tmp_path / "one", "ana")
    first, second, third = (numbered.draw_values("ana")[name] for name in ("first", "second", "third"))
    one_way_ms = sum(numbered.figures("ana").values())
    folder.predict(numbered, tmp_path / "one", f"{one_way_ms}ms")
    (prediction, *_) = judge(folder.read(tmp_path / "one"), Evidence({}))
    assert f"that is one way, {first} + {second} + {third}; a round trip goes both ways" in prediction.says
    assert (first, second, third) != tuple(numbered.draw_values(None).values()), "or the test shows nothing"


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("that is $fourth", "the text .that is $fourth. has $fourth, and nothing is drawn as that"),
        ("that costs 5 $", "the text .that costs 5 $. has a $ without a name behind it"),
    ],
)
def test_a_hint_names_only_what_is_drawn(says: str, why: str) -> None:
    known = lesson(1).lesson.model_dump(by_alias=True)
    known["predict"]["hints"][0]["says"] = says
    with pytest.raises(ValidationError, match=re.escape(why).replace(r"\.", ".")):
        Lesson.model_validate(known)


def test_a_right_solution_passes_though_its_prediction_was_wrong(tmp_path: Path) -> None:
    found = judge(work(tmp_path, "to_mil: 65.05ms, delay: 38ms"), Evidence({"round_trip": 100.047}))
    assert have_passed(found)
    assert "a round trip goes both ways" in found[0].says


@pytest.mark.parametrize(
    ("answers", "round_trip", "says"),
    [
        ("to_mil: 32.5ms, delay: 38ms", 100.047, "that is one way"),
        ("to_mil: 65.05ms, delay: 76ms", 176.047, "a delay is one way"),
        ("to_mil: 65.05ms, delay: 38ms", 65.047, "the link is as it was handed out"),
        ("to_mil: 65.05ms", 100.047, "no answer"),
    ],
)
def test_a_wrong_one_is_told_what_it_means(tmp_path: Path, answers: str, round_trip: float, says: str) -> None:
    found = judge(work(tmp_path, answers), Evidence({"round_trip": round_trip}))
    assert not have_passed(found)
    assert any(says in each.says for each in found if each.ok is False)


def test_the_page_of_a_seed_ends_in_its_own_figures(tmp_path: Path) -> None:
    folder.start(lesson(1), tmp_path / "one", "ana")
    before = (tmp_path / "one" / folder.PAGE).read_text()
    folder.predict(lesson(1), tmp_path / "one", "65ms")
    after = (tmp_path / "one" / folder.PAGE).read_text()
    round_trip = 2 * sum(lesson(1).figures("ana").values())
    assert FIGURES not in before
    assert "seed" not in before
    assert after.endswith(f", and {round_trip:g} ms was to be predicted.\n")
    assert f"`first` is {lesson(1).draw_values('ana')['first']}, " in after


@pytest.mark.parametrize("number", numbers())
def test_every_page_can_have_the_figures_of_a_seed(number: int) -> None:
    whole = lesson(number).page.read_text()
    assert lesson(number).text(None, figures=True) == whole
    told = lesson(number).text("ana", figures=True).removeprefix(whole)
    assert [name for name in lesson(number).lesson.draw if f"`{name}` is " not in told] == []


def test_a_prediction_is_committed_once(tmp_path: Path) -> None:
    work(tmp_path, "to_mil: 1ms")
    with pytest.raises(InputError, match=r"predicted 32\.5ms already"):
        folder.predict(lesson(1), tmp_path / "one", "65ms")


def test_all_lessons_are_listed_by_number_and_stand_on_the_page_for_teachers() -> None:
    listed = [each.number for each in all_lessons()]
    place = paths.project_root() / FOLDER
    page = (place / "README.md").read_text(encoding="utf-8")
    assert listed == [int(row.split("|")[1]) for row in page.splitlines() if re.match(r"\| \d+ \|", row)]
    assert listed == numbers() == sorted(int(file.stem.partition("-")[0]) for file in place.glob("*.yaml"))


def test_each_seed_has_figures_of_its_own() -> None:
    assert lesson(1).topology("ana") == lesson(1).topology("ana") != lesson(1).topology("bor")


@pytest.mark.parametrize("number", numbers())
@pytest.mark.parametrize("seed", [None, "ana", "bor", "cene"])
def test_every_topology_that_is_handed_out_has_a_plan(number: int, seed: str | None) -> None:
    plan = lesson(number).plan(seed)
    assert (plan.name, plan.time) == (f"lesson-{number}", "virtual")
    assert lesson(number).page.is_file()


@pytest.mark.parametrize("number", numbers())
def test_a_page_tells_what_is_measured_once_there_is_a_prediction(tmp_path: Path, number: int) -> None:
    place = tmp_path / "one"
    folder.start(lesson(number), place, None)
    before = (place / folder.PAGE).read_text()
    asked = lesson(number).lesson.predict
    if asked is None:
        assert FIGURES not in before
        return
    folder.predict(lesson(number), place, {"time": "5ms", "rate": "5mbit"}.get(asked.kind, "5"))
    told = (place / folder.PAGE).read_text().removeprefix(before)
    assert told.startswith(FIGURES)
    assert FIGURES == served.FIGURES


def test_what_is_handed_out_to_write_in_lies_beside_the_answers(tmp_path: Path) -> None:
    folder.start(lesson(8), tmp_path / "eight", None)
    assert "one flow a line" in (tmp_path / "eight" / "rules.txt").read_text().lower()


def test_a_word_that_is_drawn_stands_in_the_topology_and_is_no_figure() -> None:
    described = {lesson(7).plan(seed).description for seed in ("ana", "bor", "cene", "dana")}
    assert len(described) > 1
    assert set(lesson(7).figures("ana")) == {"first", "second"}


def test_figures_are_hidden_until_a_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = tmp_path / "one"
    folder.start(lesson(1), one, None)
    assert "minigts lesson 1 predict FIGURE" in (why_hidden("lesson-1", one) or "")
    folder.predict(lesson(1), one, "65ms")
    assert why_hidden("lesson-1", one) is None
    assert why_hidden("lesson-1") is not None
    assert why_hidden("chain6") is None


def test_a_fault_is_hidden_until_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    thirteen = tmp_path / "lesson-13"
    folder.start(lesson(13), thirteen, None)
    tc_hosts.use(monkeypatch, tmp_path)
    plan = lesson(13).plan(None).model_copy(update={"time": "real"})
    lab = labs.up(plan, tc_hosts.TcHosts.name, None, lambda _: None)
    assert why_fault_hidden(lab) is None, "it is not broken yet"
    (lab.rundir / breaks.FILE).write_text("{}")
    assert "minigts lesson 13 check" in (why_fault_hidden(lab) or "")
    assert not folder.shows_answer(thirteen)
    folder.show_answer(lesson(13), thirteen)
    assert "## What you see" in (thirteen / "page.md").read_text()
    assert why_fault_hidden(lab) is None


@pytest.mark.parametrize("there", [True, False])
def test_minigts_is_found_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if there:
        (programs / "minigts").write_text("#!/bin/sh\n")
        (programs / "minigts").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    folder.start(lesson(1), tmp_path / "one", None)
    if there:
        assert folder.program(tmp_path / "one") == "minigts"
        return
    assert folder.program(tmp_path / "one") == "./minigts"
    done = subprocess.run(["./minigts", "--version"], cwd=tmp_path / "one", capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["minigts", minigts.__version__]


FRAGMENTS = {"largest_payload": 972, "near_fragments": 3, "far_fragments": 4}
POLICY = {
    f"{host}_{name}": value
    for host, wanted in (("ams", 2), ("bra", 1), ("lju", 1))
    for name, value in (("wanted", wanted), ("passes", wanted), ("too_much", 0))
}
ALL_PASSES = {"ams_too_much": 4, "bra_too_much": 5, "lju_too_much": 5}
CELLS = "before: 12, after: 4, dropped: 420B"
SWITCH = {"connected": 1, "first_packet": 16.04, "lju_answers": 0, "lju_tcp": 1, "mil_answers": 3}
HOLE = {"largest_payload": 1372, "arrived": 262144}
NODE = {"lost": 0, "elsewhere": 2, "seconds": 20, "gone": 1}
TIMERS = "until: 52, renewed: 10, patience: 300"
ROUND_TRIPS = "first: 56.2ms, later: 16.03ms, flows: 2"
DELAYS = "droptail: 219.6ms, managed: 22.4ms"
MANAGED = {"under_load": 22.4, "tcp": 9.52}
OVERLAY = {"container_mtu": 1450, "from_host": 47.88, "from_container": 46.13, "listening": 1}


@pytest.mark.parametrize(
    ("number", "prediction", "answers", "figures", "says"),
    [
        (2, "13mbit", "limited: 10.4mbit, window: 250kB", {"slow": 10.4, "fast": 41.5}, ""),
        (2, "26mbit", "limited: 47.9mbit, window: 250kB", {"slow": 10.4, "fast": 41.5}, "that is without -w"),
        (2, "50mbit", "limited: 10.4mbit, window: 125kB", {"slow": 10.4, "fast": 29.9}, "under way in one direction"),
        (2, "50mbit", "limited: 10.4mbit, window: 2000kB", {"slow": 10.4, "fast": 47.8}, "that is in bits"),
        (2, "50mbit", "limited: 10.4mbit, window: 250kB", {"slow": 10.4, "fast": 10.4}, "choose a larger window"),
        (3, "220ms", "full: 219.1ms, queue: 50kB", {"under_load": 59.3}, ""),
        (3, "20ms", "full: 20ms, queue: 50kB", {"under_load": 59.3}, "ping while iperf3 sends"),
        (3, "20ms", "full: 219.1ms, queue: 75kB", {"under_load": 79.3}, "no time for the link's own delay"),
        (3, "20ms", "full: 219.1ms, queue: 62.5kB", {"under_load": 69.3}, "paid twice"),
        (3, "20ms", "full: 219.1ms, queue: 50kB", {"under_load": 219.1}, "as it was handed out"),
        (4, "3", "near: 3, largest: 972, far: 4", FRAGMENTS, ""),
        (4, "2", "near: 4, largest: 972, far: 4", FRAGMENTS, "that is to lju"),
        (4, "2", "near: 3, largest: 980, far: 4", FRAGMENTS, "takes 8 bytes more"),
        (4, "2", "near: 3, largest: 972, far: 3", FRAGMENTS, "that is to bra"),
        (5, "46mbit", "mtu: 1450, plain: 47.9mbit, overlay: 46.1mbit, header_bytes: 50", OVERLAY, ""),
        (
            5,
            "48mbit",
            "mtu: 1500, plain: 47.9mbit, overlay: 46.1mbit, header_bytes: 50",
            OVERLAY,
            "look in the container",
        ),
        (
            5,
            "48mbit",
            "mtu: 1450, plain: 46.1mbit, overlay: 46.1mbit, header_bytes: 50",
            OVERLAY,
            "between the containers",
        ),
        (5, "48mbit", "mtu: 1450, plain: 47.9mbit, overlay: 47.9mbit, header_bytes: 50", OVERLAY, "between the hosts"),
        (6, "90ms", "before: 10.05ms, after: 90.1ms, lost: 7", {"round_trip": 90.14}, ""),
        (6, "10ms", "before: 90.1ms, after: 90.1ms, lost: 7", {"round_trip": 90.14}, "that is after the cut"),
        (6, "10ms", "before: 10.05ms, after: 90.1ms, lost: 0", {"round_trip": 90.14}, "takes some seconds"),
        (6, "10ms", "before: 10.05ms, after: 90.1ms, lost: 7", {"round_trip": 10.05}, "the link is whole"),
        (7, "6", CELLS, POLICY, ""),
        (7, "4", CELLS, POLICY | ALL_PASSES, "default: deny"),
        (7, "4", CELLS, POLICY | {"ams_passes": 0}, "the right way round"),
        (7, "4", CELLS, POLICY | {"lju_too_much": 1}, "another port"),
        (7, "4", "before: 12, after: 4, dropped: 5B", POLICY, "that is packets"),
        (7, "4", "before: 4, after: 4, dropped: 420B", POLICY, "minigts policy remove"),
        (8, "16ms", ROUND_TRIPS, SWITCH, ""),
        (8, "16ms", ROUND_TRIPS, SWITCH | {"first_packet": 36.12}, "the answer needs a rule, too"),
        (8, "16ms", ROUND_TRIPS, SWITCH | {"first_packet": 56.19}, "both ways still ask"),
        (8, "16ms", ROUND_TRIPS, SWITCH | {"lju_answers": 3}, "a priority above 1"),
        (8, "16ms", ROUND_TRIPS, SWITCH | {"lju_tcp": 0}, "to drop icmp alone"),
        (8, "16ms", ROUND_TRIPS, SWITCH | {"connected": 0}, "has no controller"),
        (12, "1372", "largest: 1372, segment: 1348", HOLE, ""),
        (12, "1472", "largest: 1400, segment: 1348", HOLE, "-s counts the payload alone"),
        (12, "1400", "largest: 1472, segment: 1348", HOLE, "lju is behind the black hole"),
        (12, "1372", "largest: 1372, segment: 1360", HOLE, "the timestamps take 12 bytes more"),
        (12, "1372", "largest: 1372, segment: 1348", HOLE | {"arrived": 0}, "or let its TCP probe"),
        (23, "45", TIMERS, NODE, ""),
        (23, "45", "until: 300, renewed: 10, patience: 300", NODE, "that is when the pod is replaced"),
        (23, "45", "until: 52, renewed: 40, patience: 300", NODE, "renewed four times as often"),
        (23, "45", "until: 52, renewed: 10, patience: 20", NODE, "read the pod's tolerations"),
        (23, "45", TIMERS, NODE | {"elsewhere": 1}, "is your app.yaml applied"),
        (23, "45", TIMERS, NODE | {"seconds": 300}, "that is Kubernetes' own"),
        (23, "45", TIMERS, NODE | {"gone": 0}, "cut its link"),
        (23, "45", TIMERS, NODE | {"lost": 9}, "so many are lost"),
        (8, "16ms", "first: 16.03ms, later: 16.03ms, flows: 2", SWITCH, "the first after 60 s"),
        (9, "220ms", DELAYS, MANAGED, ""),
        (9, "20ms", "droptail: 20ms, managed: 22.4ms", MANAGED, "TCP has to send while the queue is as it was"),
        (9, "200ms", "droptail: 219.6ms, managed: 219.6ms", MANAGED, "that is before your change"),
        (9, "120ms", DELAYS, MANAGED | {"under_load": 219.6}, "drops only when it is full"),
        (9, "220ms", DELAYS, MANAGED | {"under_load": 59.3}, "some milliseconds above the idle link"),
        (9, "220ms", DELAYS, {"under_load": 27.9, "tcp": 9.19}, "a queue that is too short costs throughput"),
        (9, "220ms", "droptail: 219.6ms, managed: 27.2ms", {"under_load": 27.2, "tcp": 9.52}, ""),
        (10, "5mbit", "fifo: 1.83mbit", {"shared": 4.64}, ""),
        (10, "1.7mbit", "fifo: 4.64mbit", {"shared": 4.64}, "that is after your change"),
        (10, "1.7mbit", "fifo: 9.5mbit", {"shared": 4.64}, "that is TCP alone"),
        (10, "1.7mbit", "fifo: 1.83mbit", {"shared": 1.83}, "both flows still wait in one queue"),
        (11, "20mbit", "addresses: 9.52mbit, single: 9.56mbit", {"together": 19.1}, ""),
        (11, "9.6mbit", "addresses: 19.1mbit, single: 9.56mbit", {"together": 19.1}, "that is after your change"),
        (11, "9.6mbit", "addresses: 9.52mbit, single: 19.1mbit", {"together": 19.1}, "that is of many flows"),
        (11, "9.6mbit", "addresses: 9.52mbit, single: 9.56mbit", {"together": 9.54}, "all flows still take one way"),
    ],
)
def test_right_and_wrong_solutions(
    tmp_path: Path, number: int, prediction: str, answers: str, figures: dict[str, float], says: str
) -> None:
    place = tmp_path / "work"
    folder.start(lesson(number), place, None)
    folder.predict(lesson(number), place, prediction)
    (place / folder.ANSWERS).write_text(f"answers: {{{answers}}}\n")
    found = judge(folder.read(place), Evidence(figures))
    assert have_passed(found) == (not says), found
    assert not says or any(says in each.says for each in found if each.ok is False), found


def test_a_students_links_are_set_again_as_they_were_and_those_that_were_cut_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    plan = parse("name: three\nchain: {hosts: [ams, bra, lju], link: {rtt: 10ms}}\n", "three.yaml")
    lab = labs.up(plan, tc_hosts.TcHosts.name, None, lambda _: None)
    measured = EvidenceFile(
        measured="2026-11-23T13:00:00Z",  # type: ignore[arg-type]
        changed={"bra-lju": Change(delay_ms=38)},
        cut=frozenset({"ams-bra"}),
    )
    regrade._set(lab, measured)
    assert lab.read_record().cut == {"ams-bra"}
    assert lab.read_record().changed == measured.changed


@pytest.mark.parametrize(("step", "ran"), [("rules.sh", b"echo 1\n"), (None, b"")])
def test_a_steps_file_is_given_to_its_command_on_its_host(step: str | None, ran: bytes) -> None:
    runs: list[tuple[object, ...]] = []
    provider = SimpleNamespace(run=lambda host, argv, *, timeout_s, stdin: runs.append((host, argv, timeout_s, stdin)))
    lab = cast("Lab", SimpleNamespace(provider=provider))
    regrade._take(lab, Again(stdin=step, on="ams", run="cat"), {"rules.sh": b"echo 1\n", "other": b"no"})
    assert runs == [("ams", ("sh", "-c", "cat"), regrade.STEP_S, ran)]
