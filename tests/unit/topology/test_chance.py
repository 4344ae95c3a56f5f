"""Every random number of a lab is made of its seed, its replicate and what it is for, and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import pytest
from experiment_lab import SMALL, chain
from hypothesis import given, settings
from hypothesis import strategies as st

from live.program import PROJECT, TOPOLOGIES
from minigts.dataplane import interfaces, shaping, wire
from minigts.experiments.load import parse as experiment
from minigts.experiments.matrix import matrix
from minigts.experiments.sample_steps import Call, Procedure, begun_late
from minigts.explore import faults
from minigts.explore.draws import draw
from minigts.lab import Change, Record, changes, current
from minigts.lab.record import Amounts
from minigts.providers.uml.clock.process import ClockOrder
from minigts.topology.plan import chance, reseed
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse
from minigts.topology.schedule import Moment

NAMES = ("ams", "bra", "lju")
LOSSY = """
name: ring
seed: {seed}
routing: routed
ecmp: layer4
hosts: {{ams: , bra: , lju: }}
links:
- {{ends: [ams, bra], rtt: 4ms, loss: 10%, jitter: 1ms}}
- {{ends: [bra, lju], rtt: 4ms, corrupt: 1%, duplicate: 1%, reorder: 1%}}
- {{ends: [lju, ams], rtt: 4ms}}
"""
FAULTS = """
faults:
  loss: {every: 5s, for: 1s to 3s}
  kill: {every: 9s, for: 1s}
  length: 60s
"""
SEEDS, REPLICATES, NUMBERS = st.integers(0, 2**31 - 1), st.integers(0, 999_999), st.integers(0, 50)


def plan_of(seed: int = 0, replicate: int = 0, text: str = LOSSY) -> Plan:
    plan = parse(text.format(seed=seed), "ring.yaml", time="virtual")
    return reseed.replicate(plan, replicate) if replicate else plan


def record_of(**update: object) -> Record:
    return Record(provider="uml", time="real", created=datetime(2026, 11, 28)).model_copy(update=update)


def set_often(plan: Plan, often: int) -> Record:
    """All links have a loss of their own and none, in turn."""
    record = record_of()
    for number in range(often):
        for link in plan.links:
            moment = Moment(at_s=0.0, link=link.name, update={"loss_percent": 30.0 + number})
            record = changes.record_at(plan, record, moment)
    return record


def of_links(plan: Plan, record: Record) -> dict[str, int | None]:
    """The seed of each direction as it is set now, by what has it: the wire, or the receiving host's netem."""
    found: dict[str, int | None] = {}
    for machine in plan.machines:
        for port in machine.ports:
            now = current.port_now(plan, port, record)
            found[f"{port.link} from {machine.name}"] = wire.wire_for(now.outgoing).seed
            told = re.findall(r" netem .* seed (\d+)", shaping.script([now]))
            found[f"{port.link} to {machine.name}"] = int(told[0]) if told else None
    return found


def seed_of_kernel(plan: Plan, number: int) -> int:
    """The seed with which the kernel of a host of that number is started."""
    order = ClockOrder(program="", wires=(), processors={}, seed=chance.kernel_seed(plan))
    return order.seed * 1000 + number


def draws(plan: Plan, record: Record) -> Iterator[tuple[str, object]]:
    """Everything that a lab of the plan may draw, by what it is for."""
    yield from of_links(plan, record).items()
    for number, name in enumerate(NAMES):
        yield f"kernel of {name}", seed_of_kernel(plan, number)
        script = interfaces.script(plan, plan.host(name))
        yield f"choice of ways of {name}", re.findall(r"echo (\d+) >\S+hash_seed", script)
    yield from ((f"phase of {name}", each) for name, each in reseed.phases_s(plan).items())
    yield from ((f"program {what}", reseed.late_s(plan, what)) for what in ("client", "0 session"))
    yield "traffic", chance.traffic_seed(chance.course(plan), 1)


@pytest.mark.parametrize(
    ("file", "seeds"),
    [
        ("line", []),
        ("lossy-star", [4204641449, 4175102704, 4179192007, 4233526850, 1722555257, 1693099296]),
        ("reordering", [3937696636, 3908224293, 3912281874, 3574923415, 3612589774, 3599881465]),
        ("own-delays", [1957447329]),
        ("tcp-responses", [3180736338, 3218116875, 3188915004, 380753252, 351759165, 355795210]),
    ],
)
def test_a_lab_whose_links_nobody_sets_has_the_seeds_that_published_labs_had(file: str, seeds: list[int]) -> None:
    plan, record = load(TOPOLOGIES / f"{file}.yaml"), record_of()
    now = [current.port_now(plan, port, record) for machine in plan.machines for port in machine.ports]
    assert [port.outgoing.seed for port in now if port.outgoing.seed is not None][:6] == seeds
    assert now == [port for machine in plan.machines for port in machine.ports]
    assert "repetition" not in plan.model_dump_json()
    assert "times_set" not in record.model_dump_json()


def test_kernels_of_a_lab_without_a_seed_have_the_seeds_that_published_labs_had() -> None:
    assert [seed_of_kernel(plan_of(0, replicate), 2) for replicate in (0, 1, 5)] == [1002, 2002, 6002]
    assert chance.hash_seed(plan_of(2010), "ams") == 288833961


@settings(max_examples=60, deadline=None)
@given(
    one=st.tuples(SEEDS, REPLICATES),
    other=st.tuples(SEEDS, REPLICATES),
    often=NUMBERS.map(lambda number: number % 5),
)
def test_every_draw_of_a_lab_changes_with_its_seed_and_its_replicate_and_is_else_the_same(
    one: tuple[int, int], other: tuple[int, int], often: int
) -> None:
    first, again, second = plan_of(*one), plan_of(*one), plan_of(*other)
    ours, same = dict(draws(first, set_often(first, often))), dict(draws(again, set_often(again, often)))
    assert ours == same
    theirs = dict(draws(second, set_often(second, often)))
    if one == other:
        assert ours == theirs
        return
    alike = [what for what, drawn in ours.items() if drawn is not None and drawn == theirs.get(what)]
    # A draw of 32 bits, or of some thousand microseconds, may be equal by chance; all others must not be.
    assert [what for what in alike if not what.startswith(("phase", "program"))] == []
    assert len(alike) <= 1


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, replicate=REPLICATES, often=st.integers(1, 6))
def test_each_setting_of_each_direction_has_numbers_of_its_own(seed: int, replicate: int, often: int) -> None:
    plan = plan_of(seed, replicate)
    found = [
        drawn
        for number in range(often + 1)
        for what, drawn in of_links(plan, set_often(plan, number)).items()
        if " from " in what and drawn is not None
    ]
    assert len({*found}) == len(found)
    assert len(found) == 4 + 6 * often  # as declared two links use chance, and then all three


def test_both_ends_of_a_link_know_the_same_seed_for_a_direction() -> None:
    plan = plan_of(3, 2)
    found = of_links(plan, set_often(plan, 2))
    assert found["ams-bra from ams"] == found["ams-bra to bra"]
    assert found["lju-ams from ams"] == found["lju-ams to lju"]


@settings(max_examples=60, deadline=None)
@given(one=st.tuples(SEEDS, REPLICATES, st.integers(0, 999)), other=st.tuples(SEEDS, REPLICATES, st.integers(0, 999)))
def test_no_two_kernels_have_the_same_seed(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    first, second = (seed_of_kernel(plan_of(*lab), number) for *lab, number in (one, other))
    assert (first == second) == (one == other)
    assert first < 2**64


def test_hosts_that_are_started_again_in_forks_draw_by_the_forks_seed() -> None:
    own = chance.kernel_seed(plan_of(7))
    assert chance.forked_seed(own, 0) == own
    found = {chance.forked_seed(number, seed) for number in (own, own + 1) for seed in range(50)}
    assert len(found) == 100
    assert all(number > 10**6 for number in found)


def test_a_setting_that_changes_nothing_has_no_number() -> None:
    plan, record = plan_of(), set_often(plan_of(), 1)
    same = Moment(at_s=0.0, link="ams-bra", update={"loss_percent": 30.0})
    assert changes.record_at(plan, record, same) == record
    whole = Moment(at_s=0.0, link="ams-bra", up=True)
    assert changes.record_at(plan, record, whole) == record


def test_a_setting_of_one_direction_leaves_the_other_its_numbers() -> None:
    plan = plan_of()
    after = changes.record_at(
        plan, record_of(), Moment(at_s=0.0, link="ams-bra", sender="bra", update={"loss_percent": 5})
    )
    before, now = of_links(plan, record_of()), of_links(plan, after)
    assert {what for what in now if now[what] != before[what]} == {"ams-bra from bra", "ams-bra to ams"}
    assert after.times_set == {"ams-bra": {"bra": 1}}


def test_a_link_that_is_cut_and_whole_again_does_not_lose_the_same_again() -> None:
    plan, record = plan_of(), record_of()
    cut = changes.record_at(plan, record, Moment(at_s=0.0, link="ams-bra", up=False))
    whole = changes.record_at(plan, cut, Moment(at_s=1.0, link="ams-bra", up=True))
    assert whole.cut == frozenset()
    assert of_links(plan, whole)["ams-bra from ams"] not in (None, of_links(plan, record)["ams-bra from ams"])


def test_a_record_of_before_without_numbers_has_a_seed_for_what_was_set() -> None:
    plan = plan_of()
    record = record_of(changed={"lju-ams": Change(one_way={"lju": Amounts(loss_percent=5)})})
    assert of_links(plan, record)["lju-ams from lju"] == chance.setting_seed(plan, "lju-ams", "lju", 0)


def test_a_lab_of_later_repetitions_loses_others_and_has_the_same_traffic() -> None:
    plan = plan_of()
    later = reseed.beginning_with(plan, 4)
    ours, theirs = (of_links(each, set_often(each, 1)) for each in (plan, later))
    assert not [what for what in ours if ours[what] == theirs[what]]
    assert chance.course(plan) == chance.course(later)
    assert Plan.model_validate_json(later.model_dump_json()) == later


def test_explored_faults_follow_from_the_seed_alone() -> None:
    plan = plan_of()
    read = faults.parse(FAULTS, "faults.yaml", plan)
    drawn = [draw(read, plan, seed) for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_topologys_seed_moves_when_programs_start_in_a_replicate() -> None:
    todo = Procedure(before=(), client=Call("client", "ams", ("true",)), beside=(), after=())
    sample = matrix(experiment(SMALL + "replicates: 5\n", "small.yaml"), chain())[0]
    first, second = (begun_late(todo, sample, plan_of(seed, 1)) for seed in (0, 7))
    assert first != second


DRAWING = re.compile(r"zlib\.crc32\(|random\.(?:Random|random|choice|randint|shuffle)\(|PCG64\(")
KNOWN = {
    "arena/chance.py": "incidents",
    "explore/draws.py": "an exploration's faults",
    "generators/internet.py": "an Internet that is drawn",
    "judge/statistics.py": "intervals",
    "experiments/derive.py": "intervals",
    "experiments/matrix.py": "the order of samples",
    "lessons/breaks.py": "faults to find",
    "testing/course.py": "a test's own numbers",
    "topology/plan/chance.py": "all seeds of labs",
    "topology/plan/reseed.py": "replicates",
    "topology/disciplines.py": "names of queue disciplines, which are no chance",
    "topology/routes/graph.py": "the order of equal routes, which is no chance",
}
"""By module, what its random numbers are for. docs/virtual-time.md has the table of those of a lab."""


def test_no_module_draws_numbers_that_the_table_of_draws_does_not_know() -> None:
    root = PROJECT / "tools" / "minigts"
    found = {str(file.relative_to(root)) for file in root.rglob("*.py") if DRAWING.search(file.read_text())}
    assert found == KNOWN.keys()
