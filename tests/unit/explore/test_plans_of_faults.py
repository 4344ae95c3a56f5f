"""Plans of faults: what a file may say, and what a seed draws of it."""

from __future__ import annotations

import itertools

import pytest

from minigts.errors import InputError
from minigts.explore import faults
from minigts.explore.faults import APART_S, OF_A_HOST, OF_A_LINK, Fault
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

RING = "name: ring\nring: {hosts: [a, b, c], link: {rtt: 2ms, rate: 100mbit}}\n"
ALL = """
faults:
  partition: {every: 20s, for: 2s to 15s}
  kill: {every: 30s, for: 5s to 20s, of: [a, b]}
  pause: {every: 25s, for: 1s to 10s}
  slow-link: {every: 15s, for: 5s, delay: 100ms to 2s}
  loss: {every: 15s, for: 5s, loss: 10% to 30%}
  clock-skew: {every: 40s, for: 5s, by: 100ms to 3s}
  disk-full: {every: 40s, for: 5s}
  length: 10min
  begin: 10s
  at_most: 2
  heal: 30s before the end
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return parse(RING, "ring.yaml", time="virtual")


def drawn(plan: Plan, seed: int, text: str = ALL) -> tuple[Fault, ...]:
    return faults.draw(faults.parse(text, "faults.yaml", plan), plan, seed)


@pytest.mark.parametrize("seed", range(1, 30))
def test_what_a_seed_draws_keeps_to_the_plan(plan: Plan, seed: int) -> None:
    found = drawn(plan, seed)
    assert found == drawn(plan, seed)
    assert [fault.number for fault in found] == [*range(1, len(found) + 1)]
    for fault in found:
        assert 10 <= fault.at_s < fault.end_s <= 570
        assert len([other for other in found if other.at_s <= fault.at_s < other.end_s]) <= 2
        if fault.kind == "kill":
            assert fault.machines[0] in ("a", "b")
        if fault.kind == "slow-link":
            assert 100 <= fault.amount <= 2000
        if fault.kind == "loss":
            assert 10 <= fault.amount <= 30
        if fault.kind == "clock-skew":
            assert 0.1 <= abs(fault.amount) <= 3
        if fault.kind == "partition":
            assert len(fault.machines) == 1  # at most half of three
    of_hosts = [fault for fault in found if fault.kind in OF_A_HOST]
    for first, second in itertools.combinations(of_hosts, 2):
        assert first.machines != second.machines or second.at_s >= first.end_s + APART_S


def test_seeds_differ_and_have_every_kind(plan: Plan) -> None:
    found = [drawn(plan, seed) for seed in range(1, 30)]
    assert len(set(found)) == len(found)
    assert {fault.kind for each in found for fault in each} == {
        *OF_A_HOST,
        "partition",
        "slow-link",
        "loss",
    }
    assert {fault.amount > 0 for each in found for fault in each if fault.kind == "clock-skew"} == {True, False}


def test_a_kind_less_leaves_the_others_draws(plan: Plan) -> None:
    """With room for all of them."""
    many = ALL.replace("at_most: 2", "at_most: 100")
    without = many.replace("  loss: {every: 15s, for: 5s, loss: 10% to 30%}\n", "")

    def told(text: str) -> list[tuple[object, ...]]:
        found = drawn(plan, 7, text)
        return [(each.at_s, each.kind, each.machines, each.link) for each in found if each.kind != "loss"]

    assert {*told(many)} <= {*told(without)}  # a lossy link cannot be slowed by another fault of its own


def test_the_first_seeds_are_what_they_were(plan: Plan) -> None:
    """The same numbers in each version, so that seeds which somebody has noted down stay what they are."""
    text = "faults:\n  partition: {every: 20s, for: 2s to 15s}\n  length: 1min\n"
    assert [(fault.at_s, fault.for_s, fault.machines) for fault in drawn(plan, 1, text)] == FIRST_OF_SEED_1


FIRST_OF_SEED_1 = [(2.030742, 4.06003, ("b",)), (15.186154, 5.157856, ("a",)), (40.404693, 11.560347, ("a",))]


def test_of_six_hosts_up_to_three_are_cut_off() -> None:
    six = parse("name: six\nring: {hosts: 6, link: {rtt: 2ms}}\n", "six.yaml", time="virtual")
    text = "faults: {partition: {every: 1s, for: 1s}, length: 10min}"
    sizes = {len(fault.machines) for seed in range(5) for fault in drawn(six, seed, text)}
    assert sizes == {1, 2, 3}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("faults: {length: 1min}", 1, "no kind of fault"),
        ("faults:\n  kill: {every: 20s, for: 5s, of: [d]}\n  length: 1min", 2, "no host 'd'"),
        ("faults:\n  loss: {every: 20s, for: 5s, of: [a-d]}\n  length: 1min", 2, "no link 'a-d'"),
        ("faults:\n  kill: {every: 20s, for: 15s to 5s}\n  length: 1min", 2, "ends before it begins"),
        ("faults:\n  kill: {every: 20, for: 5s}\n  length: 1min", 2, "lacks its unit"),
        ("faults:\n  kill: {every: 20s, for: 5s}\n  length: 1min\n  heal: 60s before the end", 3, "no time is left"),
        ("faults:\n  partitions: {every: 20s, for: 5s}\n  length: 1min", 2, "did you mean 'partition'"),
        ("faults:\n  slow-link: {every: 2s, for: 5s, delay: 10s}\n  length: 1min", 2, "more than 10s"),
        ("faults:\n  kill: {every: 20s, for: 5s}", 1, "'length' is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(plan: Plan, text: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as refused:
        faults.parse(text, "faults.yaml", plan)
    assert f"faults.yaml:{line}: " in str(refused.value)
    assert says in str(refused.value)


def test_a_loss_that_a_links_own_bursts_cannot_give_is_said_before_any_seed() -> None:
    lossy = "name: two\npair: {hosts: [a, b], link: {rtt: 2ms, loss: 1%, burst: {length: 8packets, loss: 60%}}}\n"
    text = "faults:\n  loss: {every: 20s, for: 5s, loss: 5% to LOSS}\n  length: 1min\n"
    two = parse(lossy, "two.yaml", time="virtual")
    assert faults.parse(text.replace("LOSS", "50%"), "faults.yaml", two).loss is not None
    with pytest.raises(InputError, match=r"faults.yaml:2: .*70 % on a-b: a loss of 70% is not between the 0%"):
        faults.parse(text.replace("LOSS", "70%"), "faults.yaml", two)


ALONE = parse("name: one\nhosts: {a: }\n", "one.yaml", time="virtual")


def of_one_kind(kind: str) -> str:
    return f"faults:\n  {kind}: {{every: 20s, for: 5s}}\n  length: 10min\n"


@pytest.mark.parametrize("kind", OF_A_HOST)
def test_a_host_without_links_has_faults_of_its_own(kind: str) -> None:
    assert {fault.machines for fault in drawn(ALONE, 1, of_one_kind(kind))} == {("a",)}


@pytest.mark.parametrize("kind", OF_A_LINK)
def test_a_lab_without_links_has_no_faults_of_links(kind: str) -> None:
    with pytest.raises(InputError, match=rf"faults\.yaml:2: faults\.{kind}: the lab has no links"):
        drawn(ALONE, 1, of_one_kind(kind))


def test_a_fault_is_told_in_words() -> None:
    slow = Fault(number=1, kind="slow-link", at_s=1, for_s=2, link="a-b", amount=250)
    skew = Fault(number=2, kind="clock-skew", at_s=1, for_s=2, machines=("a",), amount=-1.5)
    assert slow.in_words == "250 ms more each way on a-b"
    assert skew.in_words == "clock of a stepped by -1.500000 s"
    assert faults.faults_line([slow, skew]) == "2 faults: slow-link, clock-skew"
    assert faults.faults_line([]) == "no faults"
