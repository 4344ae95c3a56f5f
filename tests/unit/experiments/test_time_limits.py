"""What depends on the processor says nothing in virtual time: it is refused, left out, or modelled, and said so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiment_language.claims import METRICS
from minigts.experiments import prepare, run_folders, time_limits
from minigts.experiments.derive import derive
from minigts.experiments.load import parse as parse_experiment
from minigts.experiments.matrix import Sample, matrix
from minigts.experiments.run import finish
from minigts.report import read as results
from minigts.report import render
from minigts.report.compare import compare
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import LeftOut, RawSample
from minigts.results.tables import NothingYet
from minigts.tools import QUANTITIES
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse as parse_topology

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
FILES = sorted(EXPERIMENTS.glob("*.yaml"))
SAYS_NOTHING = {
    "acknowledgements": [],
    "changing": [],
    "converge-bgp": [],
    "converge-ospf": [],
    "cpu": ["tcp", "udp", "tcp-stressed", "udp-stressed"],
    "cpu-share": ["tcp", "udp"],
    "cross-traffic": [],
    "encrypted": [],
    "fifty-hops": [],
    "floor": [],
    "four-pairs": [],
    "fragmentation": ["udp"],
    "full-mesh": [],
    "gts": [],
    "heal-mesh": [],
    "heal-ring": [],
    "ipv6": [],
    "jitter-hops": [],
    "link-down": [],
    "link-down-clos": [],
    "distance": [],
    "kubernetes": ["tcp", "udp"],
    "multihop": [],
    "multihop-neighbours": [],
    "multihop-overlays": [],
    "offload": ["tcp", "udp"],
    "one-host": ["tcp", "udp", "latency"],
    "overlay-host": [],
    "page-load": [],
    "sent-and-received": [],
    "overlay-ovs": ["within", "within-latency", "to-own-host"],
    "placement": ["within-host-to-bridge", "within-by-published-address", "within-by-own-address"],
    "star": [],
    "twenty-hops": [],
    "udp": ["udp", "udp-uncounted", "tcp", "tcp-uncounted", "udp-steady", "latency", "receiver-uncounted"],
    "udp-processors": [],
    "udp-sweep": ["udp-unlimited", "udp-roomy"],
    "udp-sweep-processors": [],
    "window": ["tcp-gro", "udp-gro", "tcp-gro-unlimited", "tcp-unlimited"],
}
"""The measurements of the shipped experiments that are about the processor."""

IN_BOTH_TIMES = [
    file for file in FILES if file.stem not in {"full-mesh", "gts", "udp-processors", "udp-sweep-processors"}
]
"""Those whose topology has no modelled processor, which real time refuses."""

CLAIMS = """name: mine
title: Mine
topology: t.yaml
overlays: [none]
seed: 1
repetitions: 2
measurements:
  - {name: rtt, tool: ping, paths: [first-to-each]}
  - {name: udp, tool: iperf3-udp, paths: [first-to-each], options: {rate: 10mbit}, watch: [cpu]}
claims:
"""


@pytest.fixture(autouse=True)
def _nothing_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has brought no programs for overlays."""
    monkeypatch.setenv("MINIGTS_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MINIGTS_WEAVE", raising=False)
    monkeypatch.delenv("MINIGTS_CALICO", raising=False)


def named(parts: Sequence[LeftOut], kind: str) -> list[str]:
    return [part.name for part in parts if part.kind == kind]


def plan(link: str, time: str = "virtual", more: str = "") -> Plan:
    return parse_topology(f"name: x\ntime: {time}\n{more}pair: {{hosts: [a, b], link: {{{link}}}}}\n", "t.yaml")


def found(claim: str, over: Plan) -> dict[str, list[str]]:
    """The names of what says nothing, by its kind."""
    experiment = parse_experiment(f"{CLAIMS}  - {claim}\n", "mine.yaml")
    parts = [each.part for each in time_limits.unanswerable(experiment, over)]
    return {kind: names for kind in ("measurement", "claim", "watch") if (names := named(parts, kind))}


def prepared(file: Path, **how: object) -> prepare.Prepared:
    return prepare.prepare_sweep(file, **{"paper": False, "quick": False, "only": (), "time": "virtual", **how})[0]  # type: ignore[arg-type]


def cell_of(sample: Sample) -> tuple[object, ...]:
    """What a sample is of, but for the replicate: in real time there is one."""
    return sample.overlay, sample.measurement, sample.source, sample.target, sample.repetition, sample.condition


def test_each_quantity_says_what_it_follows_from_and_the_processor_s_use_from_nothing() -> None:
    assert {*QUANTITIES} == {*METRICS}
    assert {name for name, column in QUANTITIES.items() if not column.follows} == {"cpu", "cost"}


@pytest.mark.parametrize("file", IN_BOTH_TIMES, ids=lambda file: str(file.stem))
def test_a_shipped_experiment_about_the_processor_is_refused_alone_and_the_others_are_not(file: Path) -> None:
    expected = SAYS_NOTHING[file.stem]
    if not expected:
        virtual, real = prepared(file), prepared(file, time="real")
        assert {cell_of(each) for each in virtual.samples} == {cell_of(each) for each in real.samples}
        assert len(virtual.samples) == len(real.samples) * virtual.experiment.replicates
        return
    with pytest.raises(InputError) as refused:
        prepared(file)
    lead, *others = refused.value.problems
    assert (lead.file, lead.line) == (str(file), 0)
    assert "in virtual time, where the processor is free; write --time real" in lead.message
    lines = file.read_text().splitlines()
    about = {problem.line: problem.message for problem in others}
    for name in expected:
        (line,) = (
            at
            for at, text in enumerate(lines, 1)
            if text.strip().startswith(f"- name: {name} ") or text.strip() == f"- name: {name}"
        )
        assert f": {name}: " in about[line]
    assert {part.kind for part in prepared(file, time="real").left_out} <= {"overlay"}


def test_the_refusal_says_what_can_be_measured_all_the_same(tmp_path: Path) -> None:
    file = EXPERIMENTS / "placement.yaml"
    with pytest.raises(InputError, match="or --only host-to-host --only across-to-host-network --only across-to-bri"):
        prepared(file)
    some = prepared(file, only=["host-to-host", "across-to-bridge"])
    assert {sample.measurement for sample in some.samples} == {"host-to-host", "across-to-bridge"}
    done = CliRunner().invoke(app, ["run", str(file), "--time", "virtual", "--results", str(tmp_path / "results")])
    assert (done.exit_code, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert f"{file}:38: measurements[3]: within-host-to-bridge: right to right crosses no link" in done.stderr


@pytest.mark.parametrize(
    ("claim", "link", "expected"),
    [
        ("{throughput: falls-with-hops, of: udp}", "rate: 50mbit", {"measurement": ["rtt"]}),
        ("{throughput: within-ceiling}", "rate: 50mbit, rtt: 2ms", {}),
        ("{throughput: within-ceiling}", "rtt: 2ms", {"measurement": ["udp"], "claim": ["throughput: within-ceiling"]}),
        ("{loss: bounded, of: rtt, range: under 1 %}", "rtt: 2ms, loss: 1%", {"measurement": ["udp"]}),
        (
            "{loss: bounded, range: under 1 %}",
            "rtt: 2ms",
            {"measurement": ["udp"], "claim": ["loss: bounded, under 1 %"]},
        ),
        (
            "{jitter: bounded, of: udp, range: under 1 ms}",
            "rtt: 2ms",
            {"measurement": ["udp"], "claim": ["jitter: bounded of udp, under 1 ms"]},
        ),
        (
            "{cpu: bounded, of: udp, range: over 90 %}",
            "rate: 50mbit, rtt: 2ms",
            {"claim": ["cpu: bounded of udp, over 90 %"]},
        ),
    ],
)
def test_a_figure_says_something_where_the_links_declare_what_it_follows_from(
    claim: str, link: str, expected: dict[str, list[str]]
) -> None:
    kept = "udp" not in expected.get("measurement", ())
    assert found(claim, plan(link)) == expected | ({"watch": ["udp"]} if kept else {})
    assert found(claim, plan(link, time="real")) == {}


MIXED = """name: x
time: virtual
{more}hosts: {{a: , b: , c: }}
links: [{{ends: [a, b]}}, {{ends: [a, c], rate: 50mbit{back}}}]
"""
FLOWING = "{{name: f, tool: flows, paths: [{{from: a, to: c}}], options: {{flows: [{}]}}}}"


@pytest.mark.parametrize(
    ("measurement", "over"),
    [
        ("{name: f, tool: iperf3-tcp, paths: [first-to-each]}", "a to b"),
        ("{name: f, tool: netperf-stream, paths: [first-to-each], options: {protocol: tcp}}", "a to b"),
        ("{name: f, tool: iperf3-tcp, paths: [{from: a, to: c}]}", ""),
        ("{name: f, tool: iperf3-tcp, paths: [{from: a, to: c}], cross: [{from: b, to: a}]}", "b to a"),
        ("{name: f, tool: iperf3-tcp, paths: [{from: a, to: c}], cross: [{from: b, to: a, rate: 1mbit}]}", ""),
        ("{name: f, tool: iperf3-udp, paths: [{from: a, to: c}], options: {rate: 1mbit}}", ""),
        (FLOWING.format("{name: x, tool: iperf3-tcp}, {name: y, from: b, to: a, tool: iperf3-tcp}"), "b to a"),
        (FLOWING.format("{name: x, tool: iperf3-tcp}, {name: y, from: b, to: a, tool: ping}"), ""),
    ],
)
def test_tcp_over_one_path_without_any_limit_is_left_out_since_it_would_hardly_end(measurement: str, over: str) -> None:
    experiment = parse_experiment(f"{CLAIMS.partition('measurements:')[0]}measurements:\n  - {measurement}\n", "m.yaml")
    for more, back, limited in (
        ("", "", False),
        ("", ", delay: 1ms", False),
        ("defaults: {host: {processor: {frame: 1us}}}\n", "", True),
        ("defaults: {host: {processor: {call: 5us}}}\n", "", False),
    ):
        parts = time_limits.unanswerable(experiment, parse_topology(MIXED.format(more=more, back=back), "t.yaml"))
        assert [each.part.name for each in parts] == (["f"] if over and not limited else [])
        assert all(f"{over}: nothing limits TCP" in each.part.why for each in parts)


def test_a_modelled_processor_gives_links_without_a_rate_a_meaning_and_offload_none() -> None:
    modelled = plan("rtt: 2ms", more="defaults: {host: {processor: {frame: 20us}}}\n")
    assert found("{throughput: level}", modelled) == {"watch": ["udp"]}
    assert "claim" in found("{cpu: bounded, range: over 90 %}", modelled)
    nothing = plan("rtt: 2ms", more="defaults: {host: {processor: {frame: 0ns, call: 1us}}}\n")
    assert "udp" in found("{throughput: level}", nothing)["measurement"]
    offload = parse_experiment(
        (EXPERIMENTS / "offload.yaml").read_text().replace("left", "a").replace("right", "b"), "o"
    )
    assert len(time_limits.unanswerable(offload, modelled)) == len(offload.measurements) + len(offload.claims)


def test_a_path_without_ports_has_no_modelled_processor_either(tmp_path: Path) -> None:
    experiment = tmp_path / "within.yaml"
    text = CLAIMS.replace("first-to-each", "{from: a, to: a}") + "  - {throughput: bounded, range: over 9 Mbit/s}\n"
    experiment.write_text(text)
    topology = "name: x\ndefaults: {host: {processor: {frame: 1us}}}\npair: {hosts: [a, b]}\n"
    (tmp_path / "t.yaml").write_text(topology)
    experiment.write_text(text.replace("t.yaml", str(tmp_path / "t.yaml")))
    with pytest.raises(InputError, match="a to a crosses no link, so UDP is the processor's") as refused:
        prepared(experiment)
    assert "modelled" not in str(refused.value)


def test_of_several_the_parts_are_left_out_with_a_line_and_the_rest_is_in_the_same_order() -> None:
    every = prepare.prepare_all(FILES, paper=False, quick=False, only=(), time="virtual")
    in_real_time = prepare.prepare_all(FILES, paper=False, quick=False, only=())
    assert {part.kind for each in in_real_time for part in each.left_out} == {"overlay"}
    for each, whole in zip(every, in_real_time, strict=True):
        gone = SAYS_NOTHING[each.experiment.name]
        assert named(each.left_out, "measurement") == gone
        assert each.samples == tuple(sample for sample in whole.samples if sample.measurement not in gone)
    lines = {line.partition(":")[0]: line for line in prepare.left_out_in_words(every)}
    absent = {"without weave", "without calico-node"}
    assert {*lines} == {name for name, gone in SAYS_NOTHING.items() if gone} | absent
    assert lines["cpu"] == "cpu: left out, as no part of it says anything in virtual time; --time real measures it"
    assert lines["window"].startswith("window: without tcp-gro, udp-gro, tcp-gro-unlimited, tcp-unlimited, 6 claims, ")
    assert "the counters of across" in lines["overlay-ovs"]


def test_of_several_in_real_time_those_are_left_out_whose_hosts_have_a_modelled_processor(tmp_path: Path) -> None:
    """Alone such a one is refused, by the line of its topology."""
    files = [EXPERIMENTS / f"{name}.yaml" for name in ("gts", "multihop", "udp-processors")]
    every = prepare.prepare_all(files, paper=False, quick=True, only=(), time="real")
    assert {each.experiment.name: bool(each.samples) for each in every} == {
        "gts": False,
        "multihop": True,
        "udp-processors": False,
    }
    line = "gts: left out, as no part of it says anything in real time; --time virtual measures it"
    assert prepare.left_out_in_words(every)[0] == line
    assert {part.why for part in every[0].left_out if part.kind == "measurement"} == {
        "chain6-gts.yaml:11: defaults.host.processor: a modelled processor exists only in virtual time, and this lab "
        "runs in real time: write `time: virtual`, or say --time virtual"
    }
    directories = run_folders.begin(tmp_path, every, "uml")
    assert [
        len(each.samples) for _, each in zip(directories, run_folders.reopen(directories[0].parent)[1], strict=True)
    ] == [
        0,
        len(every[1].samples),
        0,
    ]
    with pytest.raises(InputError, match="a modelled processor exists only in virtual time"):
        prepare.prepare(files[0], paper=False, quick=True, only=(), time="real")


def test_several_of_which_none_says_anything_are_refused() -> None:
    files = [EXPERIMENTS / "cpu.yaml", EXPERIMENTS / "offload.yaml"]
    with pytest.raises(InputError, match=r"cpu: left out, .*\noffload: left out, "):
        prepare.prepare_all(files, paper=False, quick=True, only=(), time="virtual")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign in virtual time, all of whose samples are there; one experiment is left out, of one a part."""
    files = [EXPERIMENTS / f"{name}.yaml" for name in ("cpu", "placement", "overlay-host")]
    every = prepare.prepare_all(files, paper=False, quick=True, only=(), time="virtual")
    directories = run_folders.begin(tmp_path, every, "uml")
    output = (Path(__file__).parents[1] / "recorded" / "iperf3.18-tcp.json").read_text()
    for directory, each in zip(directories, every, strict=True):
        for sample in each.samples:
            raw = RawSample(
                sample=sample.id,
                host=sample.source,
                argv=(),
                code=0,
                stdout=output,
                stderr="",
                started="1.5",
                seconds=3,
                attempt=1,
            )
            store.save(directory, raw)
        finish(directory)
    return directories[0].parent


def test_what_is_left_out_is_in_the_manifest_and_a_run_that_goes_on_does_not_take_it(folder: Path) -> None:
    directories, again = run_folders.reopen(folder)
    assert [(directory.name, each.samples) for directory, each in zip(directories, again, strict=True)] == [
        ("cpu", ()),
        ("overlay-host", ()),
        ("placement", ()),
    ]
    assert prepare.overlays_by_plan(again) == ()
    manifest = manifests.read(folder / "placement")
    assert (manifest.noise_before, manifest.noise_after, manifest.guard) == (None, None, None)
    assert named(manifest.left_out, "measurement") == SAYS_NOTHING["placement"]
    assert manifest.samples_planned < len(matrix(manifest.experiment, manifest.plan))
    verdicts = derive(folder / "placement")
    judged = {verdict.claim for verdict in verdicts}
    assert len(judged) == len(manifest.experiment.claims) - len(named(manifest.left_out, "claim"))


def test_the_pages_say_what_was_left_out_and_in_which_time_everything_was_measured(folder: Path) -> None:
    page = render(folder).read_text()
    assert "cpu is left out: nothing of it says anything in the time that was asked for" in page
    assert "no link from left to right declares a rate" in page
    assert "No samples yet" not in page
    assert "virtual time, with a free processor" in page
    own = (folder / "placement" / "report.html").read_text()
    assert "provider uml · virtual time, with a free processor · " in own
    assert "Provider: uml, in virtual time, with a free processor." in own
    assert "Left out in virtual time" in own
    assert "right to right crosses no link, so TCP is the processor" in own
    assert "its load is not recorded" in own
    assert "disturbed" not in own
    assert "foreign" not in own
    with pytest.raises(NothingYet, match="cpu: no measurement of it says anything in the time that was asked for"):
        results.read(folder / "cpu")


def test_a_campaign_of_which_one_run_was_left_out_is_compared_by_the_others(folder: Path) -> None:
    found = compare(folder, folder)
    assert [pair.experiment for pair in found.pairs] == ["overlay-host", "placement"]
    assert found.alone == ()
