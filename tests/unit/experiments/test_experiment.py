from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from experiment_lab import SMALL, chain, endpoints, small

from minigts import paths
from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments.commands import command, outer_mtu, prediction
from minigts.experiments.load import load, parse, topology_file
from minigts.experiments.matrix import matrix
from minigts.experiments.run import total_s
from minigts.tools import iperf3_udp, netperf_stream
from minigts.tools.base import PathUnderTest
from minigts.tools.cpu_bound import calls_are_free
from minigts.tools.iperf3_udp import UdpOptions, offered_mbit
from minigts.tools.payload import datagram_bytes
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse as parse_topology

MULTIHOP = Path(__file__).parents[3] / "experiments" / "multihop.yaml"


def way(plan: Plan, target: str, overlay: str) -> PathUnderTest:
    end = endpoints(plan, overlay)[target]
    return PathUnderTest(end.address, end.mtu, 1500, plan.path("ams", target))


def test_multihop_says_what_the_study_did() -> None:
    found = load(MULTIHOP)
    assert found.published[0].by_hops == (21.75, 26.45, 68.03, 120.60, 161.23)
    assert found.published[0].by_segment == (21.75, 4.70, 41.58, 52.57, 40.63)
    paper = found.paper_version()
    assert paper.repetitions == 5
    assert [getattr(entry.options, "duration_s", None) for entry in paper.measurements] == [120.0] * 3


def test_multihop_takes_each_path_and_fits_its_budget() -> None:
    experiment, plan = load(MULTIHOP), chain(6)
    samples = matrix(experiment, plan)
    assert len(samples) == 2 * 3 * (9 + 5 + 5)
    assert sum(sample.kind == "segment" for sample in samples) == 2 * 3 * 4
    assert {sample.hops for sample in samples if sample.kind == "path"} == {1, 2, 3, 4, 5}
    assert total_s(experiment, plan, samples) < 275


@pytest.mark.parametrize("experiment", [small(), load(MULTIHOP), load(MULTIHOP).paper_version()])
def test_an_experiment_written_out_is_the_same_experiment(experiment: Experiment) -> None:
    assert Experiment.model_validate(experiment.file_values()) == experiment


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed: 7", "sead: 7", "5: sead: unknown key; did you mean 'seed'?"),
        ("seed: 7", "seed: -1", "5: seed: '-1' is out of range: a seed is from 0"),
        ("repetitions: 2", "repetitions: 0", "6: repetitions: '0' is out of range: a count is from 1 to 100000"),
        (
            "transactions: 7",
            "transactions: 7, duration: 1s",
            "8: measurements[0].options: give transactions or dur",
        ),
        (
            "duration: 1s",
            "duration: 1",
            "10: measurements[2].options.duration: '1' lacks its unit: write a duration as in",
        ),
        ("duration: 1s", "duration: 1500ms", "10: measurements[2].options.duration: 1.5s: iperf3 counts whole"),
        (
            "20mbit",
            "20",
            "10: measurements[2].options.rate: '20' lacks its unit: write a rate as in 45mbit, or 90% for a share",
        ),
        ("tool: iperf3-udp", "tool: iperf", "10: measurements[2]: no tool 'iperf'; tools are netperf-rr, ping,"),
        (
            "each-segment",
            "each-link",
            "8: measurements[0].paths[1]: 'each-link' is unknown; it is 'first-to-each'",
        ),
        ("each-segment", "{from: ams}", "8: measurements[0].paths[1]: 'to' is missing"),
        ("name: udp", "name: tcp", "10: measurements[2].name: 'tcp' appears twice"),
        ("of: tcp", "of: tpc", "13: claims[1].of: no measurement 'tpc'; did you mean 'tcp'?"),
        (
            "sum-of-segments",
            "sum-of-parts",
            "12: claims[0].latency: 'sum-of-parts' is not a claim about latency: write sum-of-segments, as-declared",
        ),
        ("title: A small one\n", "", "1: 'title' is missing"),
        ("[none, swarm]", "[none, none]", "4: overlays[1]: 'none' appears twice"),
        ("[none, swarm]", "[]", "4: overlays: an empty list; at least one entry is wanted"),
        ("seed: 7", "seed: 7\nseed: 8", "6: seed: given twice, first on line 5"),
        ("seed: 7", "seed: [7", "6: not YAML: while parsing a flow sequence, expected ',' or ']'"),
        (
            "seed: 7",
            "seed: &s 7\nrepetitions: *s",
            "6: alias 's': aliases are not part of the language; write out what is meant",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(InputError) as caught:
        parse(SMALL.replace(old, new), "bad.yaml")
    assert str(caught.value).startswith(f"bad.yaml:{message}") or f"\nbad.yaml:{message}" in str(caught.value)


def test_every_problem_is_found_at_once() -> None:
    text = SMALL.replace("seed: 7", "sead: 7").replace("20mbit", "20").replace("omit: 1s", "omit: 1")
    with pytest.raises(InputError) as caught:
        parse(text, "bad.yaml")
    assert [problem.line for problem in caught.value.problems] == [1, 5, 9, 10]


@pytest.mark.parametrize("text", ["", "- 1", "7", "\x00", "name", "a: " * 30, "? [a, b]\n: c", "[" * 5000])
def test_rubbish_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError, match=r"^bad\.yaml"):
        parse(text, "bad.yaml")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 100_001])
def test_a_file_that_is_no_text_or_too_long_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    with pytest.raises(
        InputError,
        match=r"bad\.yaml:1: binary data, not an experiment|bad\.yaml: larger than 100 kB, which no experiment needs",
    ):
        load(tmp_path / "bad.yaml")


def test_the_topology_is_looked_for_here_then_around_the_experiment_then_among_minigts_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here/topologies", "project/topologies", "project/experiments"):
        (tmp_path / name).mkdir(parents=True)
    file = tmp_path / "project/experiments/small.yaml"
    file.write_text(SMALL)
    monkeypatch.chdir(tmp_path / "here")
    assert topology_file(small().topology, file) == paths.project_root() / "topologies" / "chain6.yaml"
    (tmp_path / "project/topologies/chain6.yaml").touch()
    assert topology_file(small().topology, file) == tmp_path / "project/topologies/chain6.yaml"
    (tmp_path / "project/experiments/topologies").mkdir()
    (tmp_path / "project/experiments/topologies/chain6.yaml").touch()
    assert topology_file(small().topology, file) == tmp_path / "project/experiments/topologies/chain6.yaml"
    (tmp_path / "here/topologies/chain6.yaml").touch()
    assert topology_file(small().topology, file) == Path("topologies/chain6.yaml")


def test_a_topology_that_is_nowhere_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL.replace("chain6", "chain7"))
    with pytest.raises(InputError, match=r"small\.yaml:3: topology: no file topologies/chain7\.yaml or "):
        topology_file(load(file).topology, file)


def test_the_matrix_is_the_same_each_time_and_on_any_machine() -> None:
    ids = [sample.id for sample in matrix(small(), chain())]
    assert ids == [sample.id for sample in matrix(small(), chain())]
    assert ids[:4] == FIRST_IDS
    other = parse(SMALL.replace("seed: 7", "seed: 8"), "x")
    assert [sample.id for sample in matrix(other, chain())] != ids


FIRST_IDS = [
    "none.tcp.ams-lon.r1",
    "none.latency.ams-bra.r1",
    "none.udp.ams-bra.r1",
    "none.tcp.ams-bra.r1",
]


def test_every_repetition_holds_each_cell_once() -> None:
    samples = matrix(small(), chain(4))
    blocks: dict[tuple[str, int], list[str]] = {}
    for sample in samples:
        blocks.setdefault((sample.overlay, sample.repetition), []).append(sample.id.rpartition(".r")[0])
    assert list(blocks) == [("none", 1), ("none", 2), ("swarm", 1), ("swarm", 2)]
    assert {frozenset(block) for key, block in blocks.items() if key[0] == "none"} == {frozenset(blocks["none", 1])}
    assert all(len(block) == len(set(block)) == 3 + 2 + 3 + 3 for block in blocks.values())
    assert blocks["none", 1] != blocks["none", 2]


def test_without_an_overlay_only_what_the_underlay_routes_is_measured() -> None:
    samples = matrix(small(), chain(4, routing="neighbours"))
    assert {sample.hops for sample in samples if sample.overlay == "none"} == {1}
    assert {sample.hops for sample in samples if sample.overlay == "swarm"} == {1, 2, 3}


def test_a_pair_by_name_and_every_pair() -> None:
    named = parse(SMALL.replace("paths: [first-to-each]", "paths: [{from: lon, to: ams}]"), "x")
    tcp = [sample for sample in matrix(named, chain()) if sample.measurement == "tcp"]
    assert {(sample.source, sample.target, sample.hops) for sample in tcp} == {("lon", "ams", 2)}
    every = parse(SMALL.replace("paths: [first-to-each]", "paths: [every-pair]"), "x")
    assert sum(sample.measurement == "tcp" for sample in matrix(every, chain(4))) == 2 * 2 * 6


def test_a_pair_with_an_unknown_host_is_refused() -> None:
    named = parse(SMALL.replace("paths: [first-to-each]", "paths: [{from: ams, to: xyz}]"), "x")
    with pytest.raises(InputError, match=r"tcp: paths\[0\]: no host 'xyz'; hosts are ams, bra, lon"):
        matrix(named, chain())


def test_only_keeps_a_part_and_refuses_what_is_not_there() -> None:
    part = small().only(["swarm", "udp"])
    assert part.overlays == ("swarm",)
    assert [entry.name for entry in part.measurements] == ["udp"]
    assert [claim.of for claim in part.claims] == [None]
    with pytest.raises(InputError, match="has no weave; it has latency, none, swarm, tcp, udp"):
        small().only(["weave"])


def test_commands_are_what_a_person_would_type() -> None:
    plan, source = chain(), endpoints(chain(), "swarm")["ams"]
    commands = {
        entry.name: " ".join(command(entry, source, way(plan, "lon", "swarm"), 0.02)) for entry in small().measurements
    }
    kept_awake, _, client = commands["latency"].partition(" 10.255.0.3 ")
    assert kept_awake.startswith("in swarm sh -c ping -q -n -i 0.02 -w ")
    assert client.startswith(
        "netperf -4 -H 10.255.0.3 -p 12865 -t UDP_RR -l -7 -P 0 -f b -D -0.000001 -- -r 8,8 -k MIN_"
    )
    assert commands["tcp"] == "in swarm iperf3 -c 10.255.0.3 -p 5201 -J --connect-timeout 5000 -t 2 -O 1"
    assert commands["udp"].endswith("-J --connect-timeout 5000 -t 1 -u -b 20000000 -l 1422")


def test_a_share_needs_a_path_with_a_rate() -> None:
    assert offered_mbit("90%", chain().path("ams", "lon")) == pytest.approx(90)
    assert offered_mbit("2gbit", chain(rate_mbit=None).path("ams", "lon")) == 2000
    with pytest.raises(InputError, match="ams to lon: rate 90% is a share of the path's rate"):
        offered_mbit("90%", chain(rate_mbit=None).path("ams", "lon"))


@pytest.mark.parametrize(
    ("rate_mbit", "calls_are_free", "limit"),
    [(100.0, False, "0"), (100.0, True, "110000000"), (None, False, "0")],
)
def test_a_sender_without_a_limit_offers_more_than_the_links_carry_where_its_calls_are_free(
    rate_mbit: float | None, calls_are_free: bool, limit: str
) -> None:
    path = chain(rate_mbit=rate_mbit).path("ams", "lon")
    way = PathUnderTest("10.0.0.1", 1500, 1500, path, calls_are_free=calls_are_free)
    argv = iperf3_udp.argv(UdpOptions(rate="unlimited", omit="1s"), way)
    assert argv[argv.index("-b") + 1] == limit
    assert argv[argv.index("-O") :][:3] == ("-O", "1", "--get-server-output")
    expected = iperf3_udp.prediction(UdpOptions(rate="unlimited"), way)
    assert expected == (None if rate_mbit is None else pytest.approx(100 * 1472 / 1514))


@pytest.mark.parametrize(("tool", "options"), [(iperf3_udp, {"rate": "100%"}), (netperf_stream, {"protocol": "udp"})])
def test_of_datagrams_those_are_expected_that_the_links_do_not_lose(tool: ModuleType, options: dict[str, str]) -> None:
    expected = []
    for loss in ("0%", "10%"):
        text = f"name: x\npair: {{hosts: [a, b], link: {{rtt: 1ms, rate: 100mbit, loss: {loss}}}}}\n"
        path = parse_topology(text, "t.yaml").path("a", "b")
        way = PathUnderTest("10.0.0.1", 1500, 1500, path)
        expected.append(tool.prediction(tool.TOOL.options(**options), way))
    assert expected == pytest.approx([100 * 1472 / 1514, 90 * 1472 / 1514])


@pytest.mark.parametrize("tool", [iperf3_udp, netperf_stream])
def test_where_nothing_limits_a_sender_it_is_refused(tool: ModuleType) -> None:
    way = PathUnderTest("10.0.0.1", 1500, 1500, chain(rate_mbit=None).path("ams", "lon"), calls_are_free=True)
    options = {"rate": "unlimited"} if tool is iperf3_udp else {}
    with pytest.raises(InputError, match=r"ams to lon: nothing limits .*`processor: \{call: 5us\}`"):
        tool.argv(tool.TOOL.options(**options), way)


@pytest.mark.parametrize(
    ("more", "free"),
    [
        ("time: virtual", True),
        ("time: real", False),
        ("time: virtual\ndefaults: {host: {processor: {frame: 1us}}}", True),
        ("time: virtual\ndefaults: {host: {processor: {call: 5us}}}", False),
    ],
)
def test_calls_are_free_in_virtual_time_unless_a_processor_is_modelled_to_take_time_for_them(
    more: str, free: bool
) -> None:
    plan = parse_topology(f"name: x\n{more}\npair: {{hosts: [a, b], link: {{rtt: 1ms}}}}\n", "t.yaml")
    assert calls_are_free(plan, "a") is free


def test_iperf3_is_left_to_choose_the_size_of_its_datagrams() -> None:
    way = PathUnderTest("10.0.0.1", 1450, 1500, chain().path("ams", "lon"))
    assert "-l" not in iperf3_udp.argv(UdpOptions(datagram="default"), way)
    assert datagram_bytes("default", 1450) == 1398


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("{latency: as-declared, metric: jitter_ms}", "'jitter_ms' is no column of latency; there are min, "),
        ("{latency: as-declared, of: latency, metric: sent}", "no column 'sent'; columns there are min, median, mean"),
        ("{throughput: level, of: tcp, metric: mean}", "no column 'mean'; "),
        ("{loss: bounded, metric: mean, range: under 1 %}", "metric: loss is one column, so leave `metric:` out"),
        ("{cost: bounded, range: under 5 ms}", "range: 'under 5 ms' needs the unit ns"),
    ],
)
def test_a_claim_names_a_column_that_its_measurement_has(claim: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(f"{SMALL}claims:\n  - {claim}\n", "small.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("mtu", "seen", "outer"),
    [
        (1500, {"none"}, 1500),
        (1450, {"vxlan"}, 1500),
        (1410, {"vxlan"}, 1460),
        (1480, {"none"}, 1480),
        (1410, {"udp"}, 1500),
        (1420, {"wireguard"}, 1480),
        (1440, {"wireguard"}, 1500),
        (1480, {"none", "ipip"}, 1500),
        (1450, set(), 1500),
    ],
)
def test_an_overlay_that_leaves_room_does_not_fill_the_links_frames(mtu: int, seen: set[str], outer: int) -> None:
    assert outer_mtu(mtu, 1500, seen) == outer


@pytest.mark.parametrize(
    ("overlay", "tcp", "udp_full"), [("none", 100 * 1448 / 1514, 97.2259), ("swarm", 100 * 1398 / 1514, 93.9234)]
)
def test_the_ceiling_counts_what_the_overlay_adds(overlay: str, tcp: float, udp_full: float) -> None:
    plan, experiment = chain(), small()
    assert prediction(experiment.measurement("tcp"), way(plan, "lon", overlay)) == pytest.approx(tcp)
    assert prediction(experiment.measurement("udp"), way(plan, "lon", overlay)) == pytest.approx(20)
    assert prediction(experiment.measurement("latency"), way(plan, "lon", overlay)) == pytest.approx(26.45)
    full = experiment.measurement("udp").model_copy(update={"options": UdpOptions(rate="100%")})
    assert prediction(full, way(plan, "lon", overlay)) == pytest.approx(udp_full, abs=0.001)
