"""A replicate is a lab with another draw of all that chance decides: what it is asked for, planned and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from experiment_lab import SMALL, chain

from minigts.cluster.jobs import split
from minigts.errors import InputError
from minigts.experiments import prepare, run_folders
from minigts.experiments.load import parse
from minigts.experiments.matrix import matrix, sample_count
from minigts.experiments.sample_steps import Call, Procedure, begun_late
from minigts.topology.plan import reseed
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse as parse_topology

PLAN = chain(6)
LOSSY = parse_topology("name: x\nchain: {hosts: 3, link: {rtt: 10ms, loss: 1%, jitter: 1ms}}\n", "x.yaml")
TOPOLOGY = "name: two\ntime: virtual\npair: {link: {delay: 1ms}}\n"
RUN = """\
name: some
title: Some
topology: {topology}
overlays: [none]
seed: 1
repetitions: 2
replicates: 5
measurements:
  - {{name: rtt, tool: ping, paths: [first-to-last], options: {{count: 3}}}}
quick: {{repetitions: 1}}
paper: {{repetitions: 3}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "two.yaml").write_text(TOPOLOGY)
    (tmp_path / "some.yaml").write_text(RUN.format(topology=tmp_path / "two.yaml"))
    return tmp_path / "some.yaml"


def test_without_replicates_samples_have_the_names_and_the_order_that_they_had() -> None:
    samples = matrix(parse(SMALL, "small.yaml"), PLAN)
    assert {sample.replicate for sample in samples} == {0}
    assert samples[0].id.endswith(".r1")
    assert "replicate" not in samples[0].id


def test_each_replicate_takes_every_sample_in_an_order_of_its_own() -> None:
    once = matrix(parse(SMALL, "small.yaml"), PLAN)
    several = parse(SMALL + "replicates: 5\n", "small.yaml")
    samples = matrix(several, PLAN)
    assert len(samples) == sample_count(several, PLAN) == 5 * len(once)
    assert len({sample.id for sample in samples}) == len(samples)
    orders = [
        [each.id.replace(f".replicate-{number}", "") for each in samples if each.replicate == number]
        for number in range(1, 6)
    ]
    assert all(sorted(order) == sorted(each.id for each in once) for order in orders)
    assert len({tuple(order) for order in orders}) == 5


@pytest.mark.parametrize("number", [2, 3, 4])
def test_fewer_than_five_decide_nothing_and_are_refused(number: int) -> None:
    with pytest.raises(InputError, match=f"{number} replicates decide nothing: write 1 .* or 5 to 1000"):
        parse(SMALL + f"replicates: {number}\n", "small.yaml")


def test_a_look_has_one_course_and_a_study_as_many_as_the_file_says(file: Path) -> None:
    def asked(*, paper: bool = False, quick: bool = False, replicates: int | None = None) -> int:
        (found,) = prepare.prepare_all([file], paper=paper, quick=quick, only=(), replicates=replicates)
        return found.experiment.replicates

    assert (asked(), asked(quick=True), asked(paper=True)) == (5, 1, 5)
    assert (asked(replicates=1), asked(quick=True, replicates=7)) == (1, 7)
    with pytest.raises(InputError, match="3 replicates decide nothing"):
        asked(replicates=3)


def test_in_real_time_each_repetition_is_a_sample_and_there_are_no_replicates(file: Path) -> None:
    (found,) = prepare.prepare_all([file], paper=False, quick=False, only=(), time="real")
    assert found.experiment.replicates == 1
    with pytest.raises(InputError, match="is in real time, where each repetition is an independent sample"):
        prepare.prepare_all([file], paper=False, quick=False, only=(), time="real", replicates=5)


def test_a_replicate_over_an_overlay_is_one_job_whose_plan_is_drawn_for_it(file: Path, tmp_path: Path) -> None:
    prepared = prepare.prepare_all([file], paper=False, quick=False, only=())
    (directory,) = run_folders.begin(tmp_path / "results", prepared, "uml")
    jobs = list(split(directory, [directory]))
    assert [job.manifest.plan.replicate for job in jobs] == [1, 2, 3, 4, 5]
    assert [len(job.samples) for job in jobs] == [2] * 5
    assert [job.describes for job in jobs] == [True, False, False, False, False]
    assert jobs[2].name == "none replicate 3 (3)"


def test_a_plan_that_is_no_replicate_is_written_as_it_was() -> None:
    assert "replicate" not in json.loads(LOSSY.model_dump_json())
    drawn = reseed.replicate(LOSSY, 3)
    assert Plan.model_validate_json(drawn.model_dump_json()) == drawn


def seeds(plan: Plan) -> list[int | None]:
    return [port.outgoing.seed for host in plan.hosts for port in host.ports]


def test_what_is_drawn_is_the_same_for_one_number_and_another_for_each() -> None:
    drawn = [reseed.replicate(LOSSY, number) for number in (1, 2, 1)]
    assert drawn[0] == drawn[2]
    assert not {*seeds(drawn[0])} & {*seeds(drawn[1])}
    assert not {*seeds(drawn[0])} & {*seeds(LOSSY)}
    phases = [reseed.phases_s(each) for each in drawn]
    assert phases[0] == phases[2] != phases[1]
    assert all(0 <= phase_s < reseed.LATEST_CLOCK_S for each in phases for phase_s in each.values())
    assert len({*phases[0].values()}) == 3
    assert reseed.phases_s(LOSSY) == {}
    late_s = [reseed.late_s(each, "a") for each in drawn]
    assert late_s[0] == late_s[2] != late_s[1]


def test_the_numbers_drawn_are_the_same_on_every_machine() -> None:
    """Another Python may not draw others."""
    assert reseed.late_s(reseed.replicate(LOSSY, 1), "none.tcp.ams-bra.replicate-1.r1", "client") == 0.00951
    assert dict(reseed.phases_s(reseed.replicate(LOSSY, 1))) == {"h1": 0.001241, "h2": 0.000627, "h3": 0.003952}


def test_in_a_replicate_each_program_that_sends_begins_late_and_no_other() -> None:
    several = matrix(parse(SMALL + "replicates: 5\n", "small.yaml"), PLAN)
    todo = Procedure(
        before=(Call("ports", "ams", ("true",)),),
        client=Call("client", "ams", ("iperf3", "-c", "10.0.0.1")),
        beside=(Call("session", "bra", ("iperf3",)), Call("cpu", "ams", ("bash",))),
        after=(),
    )
    once = matrix(parse(SMALL, "small.yaml"), PLAN)[0]
    assert begun_late(todo, once, PLAN) == todo
    late = begun_late(todo, several[0], reseed.replicate(PLAN, 1))
    assert late.before == todo.before
    assert late.beside[1] == todo.beside[1]
    assert late.client.argv[:3] == ("sh", "-c", 'sleep "$0"; exec "$@"')
    assert late.client.argv[4:] == todo.client.argv
    assert late.client.argv[3] != late.beside[0].argv[3]
    assert 0 <= float(late.client.argv[3]) < reseed.LATEST_START_S
