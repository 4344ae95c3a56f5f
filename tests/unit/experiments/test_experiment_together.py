"""Paths that are measured at the same time, and networks that join the hosts of a group alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from experiment_lab import Replay, begin, chain, endpoints
from test_experiment_run import Overlays, go, rows

from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments.load import parse
from minigts.experiments.matrix import Sample, batches, matrix
from minigts.experiments.run import pending, total_s
from minigts.providers.base import CommandResult
from minigts.results import store
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load
from minigts.topology.read.load import parse as topology

PLAN = chain(4)
TEXT = """\
name: both
title: Both
topology: topologies/chain6.yaml
overlays: [none]
seed: 7
repetitions: 2
measurements:
  - name: tcp
    tool: iperf3-tcp
    paths: [{from: ams, to: bra}, {from: lon, to: mil}]
    together: true
    options: {duration: 2s, omit: 1s}
  - name: alone
    tool: iperf3-tcp
    paths: [{from: ams, to: bra}, {from: lon, to: mil}]
    options: {duration: 2s, omit: 1s}
"""
ONCE = parse(TEXT.replace("repetitions: 2", "repetitions: 1"), "x").only(["tcp"])
FIRST, SECOND = "none.tcp.ams-bra.r1", "none.tcp.lon-mil.r1"
GROUPS = "chain: {hosts: 6, link: {rtt: 1ms, rate: 50mbit}}\ngroups: {left: [h1, h2, h3], right: [h4, h5]}\n"


def grouped() -> Plan:
    return topology(f"name: x\n{GROUPS}", "x")


def experiment(paths: str, more: str = "") -> Experiment:
    return parse(
        "name: e\ntitle: E\ntopology: t.yaml\noverlays: [none, swarm]\nseed: 1\nrepetitions: 1\nmeasurements:\n"
        f"  - {{name: rtt, tool: netperf-rr, paths: {paths}{more}}}\n",
        "e.yaml",
    )


def refuse(host: str) -> Replay:
    """A transport on which the clients of that host never bring a result."""

    def before(_number: int, argv: Sequence[str]) -> CommandResult | None:
        return (
            CommandResult("", tuple(argv), 1, "", "no route to host", 0.1) if PLAN.host(host).address in argv else None
        )

    return Replay(before)


def test_what_is_taken_together_stands_together() -> None:
    both = parse(TEXT, "x")
    found = [[sample.id for sample in batch] for batch in batches(both, matrix(both, PLAN))]
    assert [FIRST, SECOND] in found
    assert ["none.tcp.ams-bra.r2", "none.tcp.lon-mil.r2"] in found
    assert ["none.alone.lon-mil.r1"] in found
    assert sorted(map(len, found)) == [1, 1, 1, 1, 2, 2]


def test_it_takes_the_time_of_one() -> None:
    both = parse(TEXT, "x")
    samples = matrix(both, PLAN)
    of = {name: [sample for sample in samples if sample.measurement == name] for name in ("tcp", "alone")}
    longest = [sample for sample in of["alone"] if sample.source == "lon"]  # the longer round trip of the two
    assert total_s(both, PLAN, of["tcp"]) == total_s(both, PLAN, longest)


def test_clients_run_at_the_same_time_and_each_has_its_result(tmp_path: Path) -> None:
    begin(tmp_path, ONCE, PLAN)
    meeting = threading.Barrier(2, timeout=60)

    def meet(_number: int, _argv: Sequence[str]) -> None:
        meeting.wait()

    outcome, _ = go(tmp_path, Replay(meet), Overlays(lambda overlay: endpoints(PLAN, overlay)))
    assert (outcome.done, outcome.failed) == (2, ())
    assert [row["sample"] for row in rows(tmp_path / "samples.csv") if row["ok"] == "true"] == [FIRST, SECOND]
    assert {raw.host for sample in (FIRST, SECOND) if (raw := store.good(tmp_path, sample))} == {"ams", "lon"}


def test_one_that_fails_fails_the_others(tmp_path: Path) -> None:
    begin(tmp_path, ONCE, PLAN)
    outcome, _ = go(tmp_path, refuse("mil"), Overlays(lambda overlay: endpoints(PLAN, overlay)))
    assert (outcome.done, outcome.failed) == (0, (FIRST, SECOND))
    assert len(store.earlier(tmp_path, FIRST)) == len(store.earlier(tmp_path, SECOND)) == 3
    assert store.earlier(tmp_path, FIRST)[0].error == f"was taken together with {SECOND}, which failed"


def test_a_batch_that_a_kill_left_in_half_is_taken_anew_as_a_whole(tmp_path: Path) -> None:
    begin(tmp_path, ONCE, PLAN)
    go(tmp_path, Replay(), Overlays(lambda overlay: endpoints(PLAN, overlay)))
    (tmp_path / "raw" / f"{SECOND}.json").unlink()
    samples = matrix(ONCE, PLAN)
    assert [sample.id for sample in pending(ONCE, samples, tmp_path)] == [FIRST, SECOND]
    replay = Replay()
    outcome, _ = go(tmp_path, replay, Overlays(lambda overlay: endpoints(PLAN, overlay)))
    assert (outcome.done, len(replay.measured)) == (2, 2)
    assert "has no result" in (store.earlier(tmp_path, FIRST)[0].error or "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("lon, to: mil", "bra, to: lon"),
            "tcp: together: bra is an end of two paths, ams to bra and bra to lon; of paths",
        ),
        (("lon, to: mil", "mil, to: bra"), "tcp: together: bra is an end of two paths"),
    ],
)
def test_paths_that_share_a_host_are_refused(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        matrix(parse(TEXT.replace(*change), "x"), PLAN)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("together: maybe", "measurements.0..together: 'maybe' does not say whether all paths are measured"),
        (
            "together: true, options: {sessions: 2, rate: 1mbit}",
            "measurements.0..together: `sessions` uses further hosts",
        ),
    ],
)
def test_what_cannot_be_together(written: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(
            TEXT.partition("  - name")[0] + f"  - {{name: udp, tool: iperf3-udp, paths: [each-segment], {written}}}\n",
            "x",
        )


def ways(experiment: Experiment, plan: Plan, overlay: str) -> list[str]:
    found: list[Sample] = [sample for sample in matrix(experiment, plan) if sample.overlay == overlay]
    return sorted(f"{sample.source}-{sample.target}" for sample in found)


def test_an_overlay_joins_the_hosts_of_a_group_alone() -> None:
    each = experiment("[each-segment]")
    assert ways(each, grouped(), "none") == ["h1-h2", "h2-h3", "h3-h4", "h4-h5", "h5-h6"]
    assert ways(each, grouped(), "swarm") == ["h1-h2", "h2-h3", "h4-h5"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("{from: h1, to: h5}", "h1 is in group left and h5 is in group right"),
        ("{from: h6, to: h5}", "h6 is in no group and h5 is in group right"),
    ],
)
def test_a_path_across_groups_is_refused(path: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        matrix(experiment(f"[{path}]"), grouped())
    assert str(caught.value) == (
        f"rtt: paths[0]: in x {why}, and overlay swarm joins only hosts of the same group: name two of one group, or "
        "write `over: [none]`"
    )
    assert len(matrix(experiment(f"[{path}]", ", over: [none]"), grouped())) == 1


def test_between_plain_hosts_it_is_measured_beside_the_overlay() -> None:
    across = experiment("[{from: h1, to: h5}]", ", ends: {from: host, to: host}")
    assert ways(across, grouped(), "swarm") == ["h1-h5"]


def test_four_pairs_are_measured_at_once() -> None:
    project = Path(__file__).parents[3]
    plan = load(project / "topologies" / "fourpairs.yaml")
    shipped = parse((project / "experiments" / "four-pairs.yaml").read_text(), "four-pairs.yaml")
    found = [batch for batch in batches(shipped, matrix(shipped, plan)) if batch[0].measurement == "tcp-together"]
    assert {tuple(sample.source for sample in batch) for batch in found} == {("a1", "b1", "c1", "d1")}
