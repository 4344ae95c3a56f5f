"""What a setting of a link loses follows from the lab's seed, or its replicate, and from which setting it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from live.conftest import MakeLab, quiet, state_directory
from live.explored import explored
from live.program import Program
from minigts import lab as labs
from minigts.foreign import user_text
from minigts.lab import Lab, schedule_player
from minigts.topology.plan.reseed import replicate
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

PAIR = "name: pair\nseed: {seed}\npair: {{hosts: [a, b], link: {{rtt: 4ms}}}}\n"
PINGS = 150
LOSS = Moment(at_s=0.0, link="a-b", update={"loss_percent": 30.0})
FAULTS = """
faults:
  loss: {every: 4s, for: 3s, loss: 30%}
  length: 20s
"""
TEST = """
import re

def test_what_is_lost(lab, course):
    began = None
    while sum(each["event"] == "fault over" for each in course.happened) < 2:
        now = sum(each["event"] == "fault" for each in course.happened)
        if now != began:
            began = now
            words = ("ping", "-n", "-i", "0.01", "-W", "1", "-c", "100", lab.host("b").address)
            said = lab.host("a").run(*words, check=False)
            gone = set(range(1, 101)) - {int(each) for each in re.findall(r"icmp_seq=(\\d+)", said.stdout)}
            course.note(f"lost after {now}: {sorted(gone)}")
        course.sleep(0.2)
"""


def lost(lab: Lab, count: int = PINGS) -> tuple[int, ...]:
    """Which of some pings from now on have no answer."""
    argv = ["ping", "-n", "-i", "0.004", "-W", "2", "-c", str(count), lab.plan.far_address(lab.plan.links[0])]
    said = user_text(lab.provider.run("a", argv, timeout_s=60, check=False).stdout)
    return tuple(sorted(set(range(1, count + 1)) - {int(each) for each in re.findall(r"icmp_seq=(\d+)", said)}))


def set_loss(lab: Lab, percent: float | None) -> None:
    labs.update_settings(lab, "a-b", {"loss_percent": percent})


def lost_by_schedule(lab: Lab) -> tuple[int, ...]:
    found = schedule_player.play(lab, [LOSS], lambda _: None, lambda: lost(lab))
    assert found is not None
    return found


def random_number(lab: Lab) -> str:
    return user_text(lab.provider.run("b", ["cat", "/proc/sys/kernel/random/uuid"], timeout_s=10).stdout)


@pytest.mark.virtual
def test_a_schedule_loses_the_same_with_one_seed_and_others_with_another(make_lab: MakeLab) -> None:
    made = [make_lab(PAIR.format(seed=seed), f"lab{number}") for number, seed in enumerate((1, 1, 2))]
    first, again, other = (lost_by_schedule(lab) for lab in made)
    assert PINGS / 4 < len(first) < PINGS * 3 / 4  # 51 % there and back
    assert first == again
    assert first != other
    assert random_number(made[0]) == random_number(made[1]) != random_number(made[2])
    assert lost_by_schedule(made[0]) not in (first, ())


@pytest.mark.virtual
def test_replicates_lose_others_by_a_schedule(tmp_path: Path) -> None:
    plan, found = parse(PAIR.format(seed=0), "pair.yaml", time="virtual"), []
    with state_directory(tmp_path):
        for number in (1, 2):
            lab = labs.up(replicate(plan, number), "uml", f"lab{number}", quiet)
            try:
                found.append(lost_by_schedule(lab))
            finally:
                labs.down(lab)
    assert found[0] != found[1]


@pytest.mark.virtual
def test_a_setting_that_changes_nothing_loses_as_without_it_and_an_equal_one_later_others(make_lab: MakeLab) -> None:
    plain, disturbed = (make_lab(PAIR.format(seed=3), name) for name in ("plain", "disturbed"))
    set_loss(plain, 30.0)
    set_loss(disturbed, 30.0)
    first = lost(plain)
    assert lost(disturbed) == first
    set_loss(disturbed, 30.0)
    second = lost(plain)
    assert lost(disturbed) == second != first
    set_loss(disturbed, None)
    assert lost(disturbed) == ()
    set_loss(disturbed, 30.0)
    assert lost(disturbed) not in (first, second)
    assert disturbed.read_record().times_set == {"a-b": {"a": 3, "b": 3}}


@pytest.mark.virtual
def test_the_links_of_a_restarted_host_go_on_and_it_draws_others(make_lab: MakeLab) -> None:
    lab = make_lab(PAIR.format(seed=4), "pair")
    labs.update_settings(lab, "a-b", {"loss_percent": 30.0}, "b")
    found, drawn = [lost(lab)], [random_number(lab)]
    for _ in range(2):
        labs.restart(lab, "b")
        found.append(lost(lab))
        drawn.append(random_number(lab))
    assert len({*found}) == len({*drawn}) == 3
    assert lab.read_record().times_set == {"a-b": {"b": 1}}


@pytest.mark.nightly
@pytest.mark.alone
def test_in_real_time_a_setting_that_changes_nothing_loses_no_packets_twice(make_lab: MakeLab) -> None:
    lab = make_lab(PAIR.format(seed=3), "pair", time="real")
    set_loss(lab, 30.0)
    first = lost(lab)
    set_loss(lab, 30.0)
    second = lost(lab)
    set_loss(lab, None)
    set_loss(lab, 30.0)
    third = lost(lab)
    assert len({first, second, third}) == 3
    before = lab.read_record().times_set
    labs.restart(lab, "b")
    assert lost(lab) not in (first, second, third)
    assert before == {"a-b": {"a": 3, "b": 3}}
    assert lab.read_record().times_set == {"a-b": {"a": 4, "b": 3}}  # netem of what `a` sends is on `b`


@pytest.mark.touched("tools/minigts/explore", "tools/minigts/lab")
@pytest.mark.virtual
@pytest.mark.timeout(1100)
def test_a_fault_that_loses_loses_others_each_time_and_under_each_seed(program: Program, tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(PAIR.format(seed=0))
    (tmp_path / "faults.yaml").write_text(FAULTS)
    (tmp_path / "test_lost.py").write_text(TEST)
    made, found = explored(
        program,
        tmp_path / "results",
        tmp_path / "pair.yaml",
        tmp_path / "test_lost.py",
        "--seeds",
        "2",
        faults=tmp_path / "faults.yaml",
    )
    assert {each.verdict for each in found.values()} == {"passed"}
    notes = [note for each in found.values() for note in each.notes]
    gone = [note.partition(": ")[2] for note in notes if note.startswith("lost after ") and not note.endswith("[]")]
    assert len(gone) >= 4, notes
    assert len({*gone}) == len(gone), notes
    assert program.run("replay", str(made), "--seed", "1").returncode == 0
