"""Plans of faults: what a file may say, and what a seed draws of it."""

from __future__ import annotations

import itertools
import re

import pytest

from minigts.errors import InputError
from minigts.explore import draws, faults
from minigts.explore.faults import APART_S, Fault
from minigts.explore.kinds import OF_A_HOST, OF_A_LINK, ProcessFault
from minigts.language.figures import digits
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
  clock-rate: {every: 40s, for: 5s, by: 0.1% to 2%}
  preempt: {every: 15s, for: 5s, of: [a], calls: 1% to 3%, wait: 2ms}
  length: 10min
  begin: 10s
  at_most: 2
  heal: 30s before the end
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return parse(RING, "ring.yaml", time="virtual")


def drawn(plan: Plan, seed: int, text: str = ALL) -> tuple[Fault, ...]:
    return draws.draw(faults.parse(text, "faults.yaml", plan), plan, seed)


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
        if fault.kind == "clock-rate":
            assert 0.1 <= abs(fault.amount) <= 2
        if fault.kind == "preempt":
            assert 1 <= fault.amount <= 3
            assert fault.longest_ms == 2
            assert fault.seed
        if fault.kind == "partition":
            assert len(fault.machines) == 1  # at most half of three
    of_hosts = [fault for fault in found if fault.kind in OF_A_HOST]
    for first, second in itertools.combinations(of_hosts, 2):
        assert first.machines != second.machines or second.at_s >= first.end_s + APART_S


def test_seeds_differ_and_have_every_kind(plan: Plan) -> None:
    found = [drawn(plan, seed) for seed in range(1, 30)]
    assert len(set(found)) == len(found)
    kinds = {fault.kind for each in found for fault in each}
    assert kinds == {*faults.parse(ALL, "faults.yaml", plan).kinds}
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


def test_programs_wait_in_virtual_time_alone() -> None:
    real = parse(RING, "ring.yaml", time="real")
    with pytest.raises(InputError, match=r"faults\.yaml:2: faults\.preempt: only hosts in virtual time"):
        drawn(real, 1, "faults:\n  preempt: {every: 2s, for: 1s}\n  length: 1min\n")


def test_a_host_whose_programs_wait_may_have_another_fault(plan: Plan) -> None:
    text = (
        "faults:\n  preempt: {every: 1ms, for: 1min, of: [a]}\n  kill: {every: 3s, for: 1s, of: [a]}\n  length: 1min\n"
    )
    found = drawn(plan, 1, text.replace("length", "at_most: 2\n  apart: 0s\n  length"))
    assert [fault.kind for fault in found].count("preempt") == 1
    assert len(found) > 3


def test_of_six_hosts_up_to_three_are_cut_off() -> None:
    six = parse("name: six\nring: {hosts: 6, link: {rtt: 2ms}}\n", "six.yaml", time="virtual")
    text = "faults: {partition: {every: 1s, for: 1s}, length: 10min}"
    sizes = {len(fault.machines) for seed in range(5) for fault in drawn(six, seed, text)}
    assert sizes == {1, 2, 3}


OF_DISKS = """
faults:
  power-cut: {every: 10s, for: 1s, of: [a, b]}
  disk-error: {every: 10s, for: 1s, share: 1% to 5%, requests: writes}
  disk-slow: {every: 10s, for: 1s, delay: 20ms to 50ms}
  length: 2min
  at_most: 3
  apart: 0s
"""


def test_faults_of_disks_draw_their_amounts_and_what_is_lost(plan: Plan) -> None:
    found = [fault for seed in range(1, 6) for fault in drawn(plan, seed, OF_DISKS)]
    for kind, low, high in (("power-cut", 0, 0), ("disk-error", 1, 5), ("disk-slow", 20, 50)):
        of_kind = [fault for fault in found if fault.kind == kind]
        assert len(of_kind) > 10
        assert all(low <= fault.amount <= high for fault in of_kind)
        assert (len({fault.seed for fault in of_kind}) > 10) == (kind != "disk-slow")
        assert {fault.requests for fault in of_kind} == {"writes" if kind == "disk-error" else "all"}
    assert {fault.machines[0] for fault in found if fault.kind == "power-cut"} == {"a", "b"}


def test_faults_of_disks_in_words(plan: Plan) -> None:
    words = {fault.kind: fault.in_words for fault in drawn(plan, 1, OF_DISKS)}
    assert re.fullmatch(r"power cut of [ab], seed \d+", words["power-cut"])
    assert re.fullmatch(r"disk of [abc] fails [\d.]+ % of writes, seed \d+", words["disk-error"])
    assert re.fullmatch(r"disk of [abc] [\d.]+ ms later", words["disk-slow"])


def test_hosts_whose_power_may_be_cut_have_disks_that_can_lose_something(plan: Plan) -> None:
    made = faults.plan_with_caches(plan, faults.parse(OF_DISKS, "faults.yaml", plan))
    assert [host.disk for host in made.hosts] == ["cached", "cached", ""]
    assert faults.plan_with_caches(plan, faults.parse(ALL, "faults.yaml", plan)) == plan


def test_disks_of_real_time_have_no_faults() -> None:
    real = parse(RING, "ring.yaml", time="real")
    with pytest.raises(InputError, match="only disks of virtual time have it"):
        faults.parse(OF_DISKS, "faults.yaml", real)


def test_a_switch_has_no_disk_to_lose_from() -> None:
    links = "links: [{ends: [a, s], rtt: 1ms}, {ends: [b, s], rtt: 1ms}]"
    switched = parse(f"name: it\nhosts: {{a: , b: }}\nswitches: {{s: }}\n{links}\n", "it.yaml", time="virtual")
    text = "faults: {power-cut: {every: 10s, for: 1s, of: [s]}, length: 1min}"
    with pytest.raises(InputError, match="s is a switch, whose disk has nothing to lose"):
        faults.parse(text, "faults.yaml", switched)


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
        ("faults:\n  clock-rate: {every: 2s, for: 1s, by: 11%}\n  length: 1min", 2, "10%"),
        ("faults:\n  preempt: {every: 2s, for: 1s, wait: 2s}\n  length: 1min", 2, "1s"),
        ("faults:\n  kill: {every: 20s, for: 5s}", 1, "'length' is missing"),
        ("faults:\n  kill-process: {every: 20s, for: 5s}\n  length: 1min", 2, "'program' is missing"),
        ("faults:\n  kill-process: {every: 2s, for: 1s, program: a b}\n  length: 1min", 2, "program"),
        ("faults:\n  kill-process: {every: 2s, for: 1s, program: a, signal: USR1}\n  length: 1min", 2, "KILL"),
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
    more = ", program: etcd" if kind == "kill-process" else ""
    return f"faults:\n  {kind}: {{every: 20s, for: 5s{more}}}\n  length: 10min\n"


@pytest.mark.parametrize("kind", OF_A_HOST)
def test_a_host_without_links_has_faults_of_its_own(kind: str) -> None:
    assert {fault.machines for fault in drawn(ALONE, 1, of_one_kind(kind))} == {("a",)}


@pytest.mark.parametrize("kind", OF_A_LINK)
def test_a_lab_without_links_has_no_faults_of_links(kind: str) -> None:
    with pytest.raises(InputError, match=rf"faults\.yaml:2: faults\.{kind}: the lab has no links"):
        drawn(ALONE, 1, of_one_kind(kind))


PROCESSES = """
faults:
  kill-process: {every: 5s, for: 1s to 2s, of: [a], program: etcd, signal: TERM, restart: sh start.sh}
  length: 10min
"""


def test_a_fault_of_a_process_says_which_and_how_it_begins_again(plan: Plan) -> None:
    found = drawn(plan, 1, PROCESSES)
    assert {each.process for each in found} == {ProcessFault(program="etcd", signal="TERM", restart="sh start.sh")}
    assert found[0].in_words == "TERM for etcd on a"
    assert Fault.model_validate_json(found[0].model_dump_json()) == found[0]


def test_how_far_faults_of_a_host_are_apart_is_a_setting_and_drawn(plan: Plan) -> None:
    def gaps(apart: str) -> list[float]:
        found = drawn(plan, 1, PROCESSES + apart)
        return [round(after.at_s - before.end_s, 6) for before, after in itertools.pairwise(found)]

    assert min(gaps("")) >= APART_S
    assert min(gaps("  apart: 10s\n")) == min(gaps(""))
    assert 0 <= min(gaps("  apart: 0s\n")) < 2 <= min(gaps("  apart: 2s to 20s\n")) < APART_S
    assert len(gaps("  apart: 0s\n")) > len(gaps("  apart: 2s to 20s\n"))


@pytest.mark.parametrize(("ways", "cut"), [("both", {""}), ("one", {"in", "out"}), ("either", {"", "in", "out"})])
def test_a_partition_may_cut_one_way(plan: Plan, ways: str, cut: set[str]) -> None:
    text = f"faults: {{partition: {{every: 5s, for: 1s, ways: {ways}}}, length: 10min}}"
    found = drawn(plan, 1, text)
    assert {each.way for each in found} == cut
    if ways == "one":
        told = {each.in_words for each in found if each.machines == ("a",)}
        assert told == {"partition of a, outgoing alone", "partition of a, incoming alone"}


def test_a_loss_beside_a_partition_of_one_way_would_end_it(plan: Plan) -> None:
    text = (
        "faults: {partition: {every: 5s, for: 9s, ways: WAYS}, loss: {every: 5s, for: 9s}, length: 10min, at_most: 9}"
    )

    def beside(ways: str) -> bool:
        found = drawn(plan, 1, text.replace("WAYS", ways))
        pairs = itertools.combinations(found, 2)
        return any(one.kind != other.kind and other.at_s < one.end_s for one, other in pairs)

    assert (beside("both"), beside("one")) == (True, False)


@pytest.mark.parametrize("kind", ["duplicate", "reorder", "corrupt"])
def test_a_share_of_a_links_frames(plan: Plan, kind: str) -> None:
    text = f"faults: {{{kind}: {{every: 5s, for: 1s, {kind}: 2% to 3%}}, length: 10min}}"
    found = drawn(plan, 1, text)
    assert {2 <= each.amount <= 3 for each in found} == {True}
    assert found[0].in_words == f"{kind} of {digits(found[0].amount)} % on {found[0].link}"


def test_a_link_without_a_delay_cannot_reorder() -> None:
    two = parse("name: two\npair: {hosts: [a, b], link: {rate: 1mbit}}\n", "two.yaml", time="virtual")
    with pytest.raises(InputError, match=r"faults\.yaml:2: faults\.reorder\.reorder: 1 % on a-b: "):
        drawn(two, 1, "faults:\n  reorder: {every: 5s, for: 1s}\n  length: 1min\n")


def test_a_fault_is_told_in_words() -> None:
    slow = Fault(number=1, kind="slow-link", at_s=1, for_s=2, link="a-b", amount=250)
    skew = Fault(number=2, kind="clock-skew", at_s=1, for_s=2, machines=("a",), amount=-1.5)
    assert slow.in_words == "250 ms more each way on a-b"
    assert skew.in_words == "clock of a stepped by -1.500000 s"
    rate = Fault(number=3, kind="clock-rate", at_s=1, for_s=2, machines=("a",), amount=-0.5)
    assert rate.in_words == "clocks of a 0.5 % slow"
    preempted = Fault(number=3, kind="preempt", at_s=1, for_s=2, machines=("a",), amount=2.5, longest_ms=1)
    assert preempted.in_words == "programs of a wait at 2.5 % of their calls"
    assert faults.faults_line([slow, skew]) == "2 faults: slow-link, clock-skew"
    assert faults.faults_line([]) == "no faults"
