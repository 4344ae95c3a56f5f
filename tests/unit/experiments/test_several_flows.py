"""A measurement of several flows: what is started where, what becomes of the outputs, and what is refused."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_lab import begin, chain, endpoints
from test_experiment_around import HEAD, Hosts, Stage

from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments import flow_results
from minigts.experiments.load import parse
from minigts.experiments.matrix import matrix
from minigts.experiments.run import run_together
from minigts.experiments.sample_steps import FIRST_FLOW_PORT, Surroundings, procedure
from minigts.providers.base import CommandResult
from minigts.results import bundle
from minigts.tools.flows import FlowsOptions
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse as parse_topology

PLAN = chain(4)
MIX = """\
  - name: mix
    tool: flows
    paths: [{from: ams, to: mil}]
    options:
      duration: 5s
      omit: 1s
      flows:
        - {name: bulk, tool: iperf3-tcp, from: [ams, bra], options: {congestion: bbr}}
        - {name: back, tool: iperf3-tcp, from: mil, to: ams, start: 2s}
        - {name: echo, tool: ping, options: {interval: 100ms}}
"""
DUMBBELL = """\
name: dumbbell
hosts: {a: {}, b: {}, r: {}, c: {}}
links:
  - {ends: [a, r], delay: 1ms, rate: 30mbit}
  - {ends: [b, r], delay: 1ms}
  - {ends: [r, c], delay: 1ms, rate: {to: 40mbit, from: 5mbit}}
"""


ECHOES = "".join(
    f"[{1000 + number / 10 + 0.02:.6f}] 64 bytes from 10.0.0.2: icmp_seq={number + 1} ttl=64 time=20.0 ms\n"
    for number in range(80)
)
ECHOES += "80 packets transmitted, 80 received, 0% packet loss, time 7900ms\nrtt min/avg/max/mdev = 20/20/20/0 ms\n"


class Echoing(Hosts):
    """Hosts whose echo requests last as long as the other flows; one of the flows may fail."""

    fails: str = ""

    def run(
        self, host: str, argv: Sequence[str], *, timeout_s: float, check: bool = True, **_ignored: object
    ) -> CommandResult:
        result = super().run(host, argv, timeout_s=timeout_s, check=check)
        if "-D" in argv and "ping" in argv:
            return replace(result, stdout=ECHOES)
        return replace(result, code=1) if host == self.fails and "bbr" in argv else result


def experiment(measurements: str = MIX) -> Experiment:
    return parse(HEAD.format(name="small").replace("[none, swarm]", "[none]") + measurements, "small.yaml")


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_each_flow_has_its_own_port_start_and_congestion_control() -> None:
    asked = experiment()
    [sample] = matrix(asked, PLAN)
    around = Surroundings(PLAN, endpoints(PLAN, "none"), lambda _: pytest.fail("no second container"), None)
    steps = procedure(asked.measurements[0], sample, around)
    clients = [steps.client, *steps.beside]
    assert [(call.name, call.host) for call in clients] == [
        ("client", "ams"),
        ("flow to mil", "bra"),
        ("flow to ams", "mil"),
        ("flow to mil", "ams"),
    ]
    words = [" ".join(call.argv) for call in clients]
    assert f"-p {FIRST_FLOW_PORT} " in words[0] and f"-p {FIRST_FLOW_PORT + 1} " in words[1]
    assert words[0].endswith("-t 5 -O 3 -C bbr") and words[2].endswith("-t 5 -O 1")
    assert words[2].startswith('sh -c sleep "$0"; exec "$@" 2 ')
    assert "ping -n -D -c 80 -i 0.1" in words[3]
    served = [call for call in steps.before if call.name == "servers"]
    assert [
        (call.host, call.argv[-len(ports) :]) for call, ports in zip(served, (("1", "2"), ("3",)), strict=True)
    ] == [
        ("mil", (str(FIRST_FLOW_PORT), str(FIRST_FLOW_PORT + 1))),
        ("ams", (str(FIRST_FLOW_PORT + 2),)),
    ]
    assert [(call.name, call.host) for call in steps.before if call.name.startswith("idle")] == [
        ("idle to mil", "ams"),
        ("idle to mil", "bra"),
        ("idle to ams", "mil"),
    ]


def test_a_sample_is_one_row_and_each_of_its_flows_another(tmp_path: Path) -> None:
    directory, hosts = tmp_path / "small", Echoing()
    begin(directory, experiment(), PLAN)
    [outcome] = run_together([directory], hosts, Stage(), lambda _: None)  # type: ignore[arg-type]
    assert (outcome.done, outcome.failed) == (1, ())
    [whole], single = rows(directory / "samples.csv"), rows(directory / "flows.csv")
    assert [(row["flow"], row["number"], row["source"], row["target"]) for row in single] == [
        ("bulk", "1", "ams", "mil"),
        ("bulk", "2", "bra", "mil"),
        ("back", "1", "mil", "ams"),
        ("echo", "1", "ams", "mil"),
    ]
    sent = [float(row["value"]) for row in single[:3]]
    assert float(whole["value"]) == pytest.approx(sum(sent))
    assert float(whole["bulk_mbit"]) == pytest.approx(sum(sent[:2]))
    assert [float(row["share_percent"]) for row in single[:3]] == pytest.approx(
        [100 * each / sum(sent) for each in sent]
    )
    assert (single[3]["share_percent"], single[3]["unit"], whole["unit"]) == ("", "ms", "Mbit/s")
    assert float(whole["utilisation_percent"]) == pytest.approx(sum(sent[:2]) * 1514 / 1448, rel=1e-6)
    before = {name: (directory / name).read_bytes() for name in ("samples.csv", "summary.csv", "flows.csv")}
    outcomes = run_together([directory], hosts, Stage(), lambda _: None)  # type: ignore[arg-type]
    assert outcomes[0].done == 1
    assert before == {name: (directory / name).read_bytes() for name in before}
    assert "flows.csv" in bundle.OF_A_RUN


def test_a_flow_that_fails_fails_the_sample_and_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "small"
    begin(directory, experiment(), PLAN)
    hosts = Echoing()
    hosts.fails = "bra"
    [outcome] = run_together([directory], hosts, Stage(), lambda _: None)  # type: ignore[arg-type]
    assert outcome.done == 0
    [row] = rows(directory / "samples.csv")
    assert (row["ok"], row["value"], row["attempts"]) == ("false", "", "3")
    assert row["error"].startswith("flow bulk 2 of 2 from bra to mil: the command ended with code 1")
    assert not (directory / "flows.csv").exists()


def test_a_claim_about_a_figure_without_unit_says_none(tmp_path: Path) -> None:
    claim = "claims:\n  - {value: bounded, of: mix, metric: jain, range: 0.5 to 1}\n"
    begin(tmp_path, experiment(MIX + claim), PLAN)
    run_together([tmp_path], Echoing(), Stage(), lambda _: None)  # type: ignore[arg-type]
    [verdict] = json.loads((tmp_path / "claims.json").read_text())
    assert "Mbit/s" not in verdict["detail"] and "0.5 to 1 was expected" in verdict["detail"]


def dumbbell() -> Plan:
    return parse_topology(DUMBBELL, "dumbbell.yaml")


@pytest.mark.parametrize(
    ("flows", "link", "rate", "sharing"),
    [
        ([{"from": "a"}], "a-r", 30.0, (0,)),
        ([{"from": "a"}, {"from": "b"}], "r-c", 40.0, (0, 1)),
        ([{"from": ["a", "b"]}, {"from": "c", "to": "a"}], "r-c", 5.0, (2,)),
        ([{"from": "b", "to": "r"}], None, 0.0, ()),
    ],
)
def test_the_bottleneck_has_the_lowest_rate_for_each_flow(
    flows: list[dict[str, object]], link: str | None, rate: float, sharing: tuple[int, ...]
) -> None:
    named = [{"name": f"f{number}", "tool": "iperf3-tcp", **flow} for number, flow in enumerate(flows)]
    options = FlowsOptions.model_validate({"flows": [*named, {"name": "echo", "tool": "ping", "from": "c", "to": "a"}]})
    found = flow_results.bottleneck(dumbbell(), options.members("a", "c"))
    assert (found and (found.link, found.rate_mbit, found.sharing)) == (link and (link, rate, sharing))


class Slow(Hosts):
    """One of two flows of `traffic` takes longer than the other; `order` has what ended when."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def run(
        self, host: str, argv: Sequence[str], *, timeout_s: float, check: bool = True, **_ignored: object
    ) -> CommandResult:
        if "send" in argv:
            time.sleep(0.3 if host == "bra" else 0)
            self.order.append(f"flow of {host}")
            return CommandResult(host, tuple(argv), 0, '{"alone": [], "flows": [[0.0, 64000, 0.1]]}', "", 0.1)
        if any("kill -0" in word for word in argv):
            self.order.append("server ends")
        return super().run(host, argv, timeout_s=timeout_s, check=check)


def test_a_server_runs_until_the_last_flow_to_it_has_ended(tmp_path: Path) -> None:
    directory, hosts = tmp_path / "small", Slow()
    block = "{name: block, tool: traffic, from: [ams, bra], options: {sizes: 64kB, every: 1s, arrivals: steady}}"
    head = "  - {name: mix, tool: flows, paths: [{from: ams, to: mil}], options: {duration: 1s, flows: ["
    begin(directory, experiment(head + block + "]}}\n"), PLAN)
    run_together([directory], hosts, Stage(), lambda _: None)  # type: ignore[arg-type]
    assert hosts.order == ["flow of ams", "flow of bra", "server ends"]


def test_flows_with_several_ways_have_no_bottleneck_that_is_known() -> None:
    links = "".join(f"  - {{ends: [{ends}], delay: 1ms, rate: 9mbit}}\n" for ends in ("a, b", "a, c", "b, d", "c, d"))
    plan = parse_topology(
        f"name: two\necmp: true\nhosts: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}}}\nlinks:\n{links}", "two.yaml"
    )
    options = FlowsOptions.model_validate({"flows": [{"name": "f", "tool": "iperf3-tcp"}]})
    assert flow_results.bottleneck(plan, options.members("a", "d")) is None
    assert flow_results.bottleneck(plan, options.members("a", "b")) is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("from: mil,", "from: mi,", "mix: back: no host 'mi'; hosts are ams, bra, lon, mil"),
        ("from: mil, to: ams", "from: mil, to: mil", "mix: back: mil to itself crosses no link"),
    ],
)
def test_hosts_of_flows_are_hosts_of_the_plan(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        matrix(experiment(MIX.replace(old, new)), PLAN)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("    together: true\n", "small.yaml:8: measurements[0].together: flows run at the same time already"),
        ("    cross: [{from: ams, to: bra}]\n", "measurements[0].cross: cross traffic is a flow here"),
        ("    watch: [cpu]\n", "measurements[0].watch: the counters of hosts are read around one client"),
        ("    vary: {bulk.streams: [0]}\n", "measurements[0].vary.bulk.streams"),
        ("    vary: {bulk.duration: [1s]}\n", "measurements[0].vary.bulk.duration: no option 'bulk.duration'"),
        ("    vary: {none.number: [1]}\n", "no option 'none.number'"),
    ],
)
def test_what_flows_cannot_have_is_an_error_with_its_place(more: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        experiment(MIX + more)
    assert message.partition(": ")[2] in str(refused.value)


def test_a_misspelt_key_of_a_flow_is_found_at_its_line() -> None:
    with pytest.raises(InputError, match=r"small.yaml:15: .*flows.0..options.congestoin: unknown key"):
        experiment(MIX.replace("congestion: bbr", "congestoin: bbr"))
