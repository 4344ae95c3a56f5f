"""Delays from a file: what is read of it, what a link then has, and what is said of a wrong one."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from minigts.dataplane import shaping, wire
from minigts.errors import InputError
from minigts.judge.tolerances import round_trip
from minigts.lab import current
from minigts.lab.record import Change, Record
from minigts.session import plans
from minigts.topology import own_delays
from minigts.topology.difference import difference
from minigts.topology.link_settings import Shaping
from minigts.topology.own_delays import NETEM_SD, SD, numbers, read
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load
from minigts.topology.user_files import UserFiles

LISTED = "# in ms, but for the last\n10\n\n14.5 # by day\n12\n20ms\n800us\n"
VALUES_MS = (0.8, 10.0, 12.0, 14.5, 20.0)
MS = st.integers(0, 10**9).map(lambda ns: ns / 10**6)


def planned(directory: Path, link: str, more: str = "", **files: str) -> Plan:
    for name, text in {"delays_txt": LISTED, **files}.items():
        (directory / name.replace("_", ".")).write_text(text)
    (directory / "own.yaml").write_text(f"name: own\nhosts: {{a: , b: }}\n{more}links:\n- {{ends: [a, b], {link}}}\n")
    return load(directory / "own.yaml", time="virtual")


def ways(plan: Plan) -> tuple[Shaping, Shaping]:
    return plan.directions(plan.links[0])


def delays_ms(way: Shaping) -> list[float]:
    """What the link's packets take."""
    return [way.delay_ms + way.jitter_ms * each / SD for each in numbers(way.jitter_table)]


@given(st.lists(MS, min_size=2, max_size=60).filter(lambda each: max(each) - min(each) > 0.001))
def test_a_list_of_delays_is_the_links_delay(values: list[float]) -> None:
    own = read("\n".join(f"{each:.6f}" for each in values), netem=False)
    assert own.mean_ms == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert own.sd_ms == pytest.approx(statistics.pstdev(values), abs=1e-6)
    assert own.mean_ms is not None and own.sd_ms is not None
    found = [own.mean_ms + own.sd_ms * each / SD for each in numbers(own.quantiles)]
    assert found == pytest.approx(sorted(values), abs=2e-6 + 2e-5 * (max(values) - min(values)))


@given(st.lists(st.integers(-32768, 32767), min_size=2, max_size=300).filter(lambda each: len({*each}) > 1))
def test_a_table_for_netem_has_the_mean_0_and_the_standard_deviation_1(values: list[int]) -> None:
    own = read(" ".join(map(str, values)), netem=True)
    table = numbers(own.quantiles)
    assert (own.mean_ms, own.sd_ms, len(table)) == (None, None, len(values))
    assert statistics.fmean(table) == pytest.approx(0, abs=0.51)
    assert statistics.pstdev(table) == pytest.approx(SD, abs=1)
    mean, sd = statistics.fmean(values), statistics.pstdev(values)
    assert [round(each * sd / SD + mean, 1) for each in table] == pytest.approx(sorted(values), abs=0.6)


@given(st.lists(MS, min_size=2, max_size=60).filter(lambda each: max(each) - min(each) > 0.001))
def test_netem_has_the_same_delays_to_16_bits(values: list[float]) -> None:
    own = read("\n".join(f"{each:.6f}" for each in values), netem=False)
    scale = own_delays.netem_scale(own.quantiles)
    name, text = own_delays.netem_file(own.quantiles)
    told = [int(word) for word in text.split()]
    assert max(map(abs, told)) <= 32767 and len(name) < 20
    assert read(text, netem=True).quantiles.count(" ") == len(values) - 1
    shown = [each * scale / NETEM_SD for each in told]
    assert shown == pytest.approx([each / SD for each in numbers(own.quantiles)], abs=scale / NETEM_SD)


def test_a_longer_list_has_its_quantiles() -> None:
    own = read("\n".join(map(str, range(10_000))), netem=False)
    table = numbers(own.quantiles)
    assert (len(table), table[0], table[-1]) == (4096, -table[-1], table[-1])
    assert own.mean_ms == pytest.approx(4999.5, abs=1)


def test_what_a_link_does_not_say_comes_of_its_list(tmp_path: Path) -> None:
    for way in ways(planned(tmp_path, "jitter: {table: delays.txt}")):
        assert delays_ms(way) == pytest.approx(VALUES_MS, abs=1e-3)
        assert (way.delay_ms, way.jitter_ms) == (11.46, pytest.approx(statistics.pstdev(VALUES_MS), abs=1e-6))
    way, back = ways(planned(tmp_path, "delay: {to: 30ms, from: 40ms}, jitter: {sd: 2ms, table: delays.txt}"))
    assert (way.delay_ms, back.delay_ms, way.jitter_ms, back.jitter_ms) == (30, 40, 2, 2)
    assert way.jitter_table == back.jitter_table


@pytest.mark.parametrize(
    ("table", "delay_ms", "source"), [("delays.txt", 11.46, "file"), ("own.dist", 8.85, "measured")]
)
def test_a_list_takes_the_place_of_the_sites_delay_and_a_table_without_unit_does_not(
    tmp_path: Path, table: str, delay_ms: float, source: str
) -> None:
    (tmp_path / "delays.txt").write_text(LISTED)
    (tmp_path / "own.dist").write_text("-8192 0 8192\n")
    hosts = "hosts: {a: {location: AMS}, b: {location: BRA}}"
    link = f"{{ends: [a, b], jitter: {{sd: 1ms, table: {table}}}}}"
    (tmp_path / "sites.yaml").write_text(f"name: x\ndelays: sites\n{hosts}\nlinks: [{link}]\n")
    plan = load(tmp_path / "sites.yaml", time="virtual")
    assert [way.delay_ms for way in ways(plan)] == [delay_ms, delay_ms]
    assert plan.links[0].delay_from == source


def test_two_directions_may_have_two_files(tmp_path: Path) -> None:
    both = "jitter: {table: {to: delays.txt, from: other.txt}}"
    way, back = ways(planned(tmp_path, both, other_txt="1\n2\n3\n"))
    assert delays_ms(way) == pytest.approx(VALUES_MS, abs=1e-3)
    assert delays_ms(back) == pytest.approx((1, 2, 3), abs=1e-3)


def test_one_direction_may_have_none(tmp_path: Path) -> None:
    way, back = ways(planned(tmp_path, "jitter: {table: {to: delays.txt, from: none}}"))
    assert delays_ms(way) == pytest.approx(VALUES_MS, abs=1e-3)
    assert (back.delay_ms, back.jitter_ms, back.jitter_table, back.by_chance) == (0, 0, "", False)
    scaled = "delay: 9ms, jitter: {sd: {to: 2ms, from: 0ms}, table: delays.txt}"
    way, back = ways(planned(tmp_path, scaled))
    assert (way.jitter_ms, len(numbers(way.jitter_table))) == (2, 5)
    assert (back.jitter_ms, back.jitter_table) == (0, "")


def test_a_nearer_jitter_has_nothing_of_a_table_in_defaults(tmp_path: Path) -> None:
    usual = "defaults: {link: {delay: 9ms, jitter: {table: delays.txt}}}\n"
    (way, _) = ways(planned(tmp_path, "jitter: {sd: 2ms, distribution: normal}", usual))
    assert (way.jitter_distribution, way.jitter_table, way.jitter_ms, way.delay_ms) == ("normal", "", 2, 9)
    (way, _) = ways(planned(tmp_path, "mtu: 1400", usual))
    assert (way.jitter_distribution, len(numbers(way.jitter_table)), way.delay_ms) == ("table", 5, 9)
    usual = "defaults: {link: {jitter: {sd: 5ms, distribution: normal}}}\n"
    (way, _) = ways(planned(tmp_path, "jitter: {table: delays.txt}", usual))
    assert delays_ms(way) == pytest.approx(VALUES_MS, abs=1e-3)


WRONG = (
    ("", "delays.txt holds no values: a distribution of delays has two different ones or more"),
    ("# nothing\n5\n", "delays.txt holds one: a distribution"),
    ("5\n5.0\n5ms\n", "delays.txt holds 3 of one value: a distribution"),
    ("5\n\nslow\n", "delays.txt line 3: 'slow' is no delay: write a delay from 0ms to"),
    ("5\n-1\n", "delays.txt line 2: '-1' is no delay"),
    ("5\n7 8\n", "delays.txt line 2: '7 8' is no delay"),
    ("5\n7km\n", "delays.txt line 2: '7km' is no delay"),
    ("5\nnan\n", "delays.txt line 2: 'nan' is no delay"),
    ("5\n\0\n", "delays.txt: binary data, not a table of delays"),
)


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_list_is_said_once_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    usual = "defaults:\n  link:\n    jitter: {table: delays.txt}\n"
    with pytest.raises(InputError) as refused:
        planned(tmp_path, "mtu: 1400}\n- {ends: [a, b]", usual, delays_txt=text)
    (problem,) = refused.value.problems
    assert (problem.line, Path(problem.file).name) == (5, "own.yaml")
    assert said in problem.message


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("jitter: {sd: 2ms, table: t.dist}, delay: 9ms", "t.dist line 2: '40000' is not of a netem table"),
        ("jitter: {table: u.dist}, delay: 9ms", "u.dist is a table for netem, which has no unit: say the standard"),
        ("jitter: {sd: 2ms, table: u.dist}", "jitter 2ms is more than the one-way delay 0ms"),
        ("jitter: {table: ../delays.txt}", "leads out of the topology's directory"),
        ("jitter: {table: none.txt}", "none.txt is not there: paths begin in the topology file's directory"),
        ("delay: 1ms, jitter: {sd: 9ms, table: delays.txt}", "jitter 9ms is more than the one-way delay 1ms"),
    ],
)
def test_what_else_is_wrong_with_a_table_is_said(tmp_path: Path, link: str, said: str) -> None:
    (tmp_path / "delays.txt").write_text(LISTED)
    (tmp_path / "lab").mkdir()
    with pytest.raises(InputError) as refused:
        planned(tmp_path / "lab", link, t_dist="1 2\n3 40000\n", u_dist="-8192 8192\n")
    (problem,) = refused.value.problems
    assert said in problem.message


def test_a_list_whose_deviation_exceeds_its_mean_is_possible(tmp_path: Path) -> None:
    (way, _) = ways(planned(tmp_path, "jitter: {table: delays.txt}", delays_txt="0\n0\n0\n0\n9\n"))
    assert way.jitter_ms > way.delay_ms
    assert delays_ms(way) == pytest.approx((0, 0, 0, 0, 9), abs=1e-3)


def test_the_texts_are_collected_for_results(tmp_path: Path) -> None:
    planned(tmp_path, "jitter: {table: delays.txt}")
    beside = UserFiles(tmp_path)
    plan = load(tmp_path / "own.yaml", beside=beside)
    assert beside.texts == {"delays.txt": LISTED}
    (tmp_path / "delays.txt").unlink()
    assert load(tmp_path / "own.yaml", beside=UserFiles(tmp_path, given=beside.texts)) == plan
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_topology_that_is_no_file_has_its_files_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, "jitter: {table: delays.txt}")
    text = (tmp_path / "own.yaml").read_text()
    monkeypatch.chdir(tmp_path)
    assert plans.planned(text, time="virtual") == plan
    (tmp_path / "delays.txt").unlink()
    with pytest.raises(InputError, match=r"delays\.txt is not there"):
        plans.planned(text, time="virtual")


def test_another_list_is_a_change_of_the_link(tmp_path: Path) -> None:
    before = planned(tmp_path, "delay: 9ms, jitter: {sd: 2ms, table: delays.txt}")
    after = planned(tmp_path, "delay: 9ms, jitter: {sd: 2ms, table: delays.txt}", delays_txt="1\n3\n")
    made = difference(before, after)
    assert {each.setting.word for each in made.set} == {"jitter.table"}
    (line,) = made.lines
    assert line.startswith("~ link a-b jitter.table 5 values ") and "-> 2 values" in line


def set_to(plan: Plan, **update: object) -> Plan:
    changed = {plan.links[0].name: Change.model_validate(update)}
    return current.plan_now(plan, Record(provider="uml", time="real", created="2026-01-01T00:00:00Z", changed=changed))  # type: ignore[arg-type]


def test_a_link_is_set_to_another_distribution_and_back(tmp_path: Path) -> None:
    plan = planned(tmp_path, "jitter: {table: delays.txt}")
    (declared, _), (normal, _) = ways(plan), ways(set_to(plan, jitter_distribution="normal"))
    assert (normal.jitter_table, normal.jitter_ms) == ("", declared.jitter_ms)
    (scaled, _) = ways(set_to(plan, jitter_ms=1.0))
    assert (scaled.jitter_table, scaled.jitter_ms) == (declared.jitter_table, 1.0)
    assert wire.wire_for(normal).jitter_table == ()
    assert wire.wire_for(scaled).jitter_table == numbers(declared.jitter_table)


def test_netem_is_told_where_its_table_is_and_the_scale(tmp_path: Path) -> None:
    spike = "\n".join(["1"] * 99 + ["100"])
    port = planned(tmp_path, "jitter: {table: delays.txt}", delays_txt=spike).host("b").ports[0]
    script = shaping.script([port])
    name, _ = own_delays.netem_file(port.incoming.jitter_table)
    assert f"cat >/run/minigts/{name}.dist <<'END'\n-331 " in script
    assert "\n32767" in script or " 32767" in script
    sd_ms = port.incoming.jitter_ms
    told_ms = sd_ms * own_delays.netem_scale(port.incoming.jitter_table)
    assert told_ms == pytest.approx(sd_ms * 9.9499 / 3.99988, rel=1e-4)
    assert f"{told_ms * 1000:.3f}us 0.0000000% distribution {'../' * 8}run/minigts/{name} rate" in script
    assert f"distribution {'../' * 8}run/minigts/{name} " in shaping.delays_again([port], 0.0)
    delay = {"delay": port.incoming.delay_ms / 1000, "jitter": told_ms / 1000}
    netem = {"kind": "netem", "dev": "ifb-eth1", "root": True, "options": {"limit": 1000, "delay": delay}}
    assert shaping.read_back(port, json.dumps([netem])).settings["jitter_ms"] == pytest.approx(sd_ms)


def test_the_median_may_be_as_far_from_the_mean_as_the_tables(tmp_path: Path) -> None:
    """Of 120 delays the median is between the quantiles of 0.386 and 0.614, but for a chance of 1 %."""
    two = planned(tmp_path, "jitter: {table: delays.txt}", delays_txt="20\n60\n")
    assert round_trip(two, two.paths[0]).jitter_ms >= 2 * 20 - 1e-3
    skewed = planned(tmp_path, "jitter: {table: delays.txt}", delays_txt="\n".join(["10"] * 9 + ["110"]))
    assert round_trip(skewed, skewed.paths[0]).jitter_ms == pytest.approx(2 * 10, abs=1e-3)


@pytest.mark.parametrize("quantiles", ["1", "2 1", "0 x", "0  1", "0 99999999999", "-0.5 1"])
def test_a_plans_table_is_held_to_what_a_table_is(quantiles: str) -> None:
    with pytest.raises(ValidationError, match="no table of delays"):
        Shaping(jitter_table=quantiles)


def test_an_own_table_with_one_way_per_share() -> None:
    assert [own_delays.quantile("-65536 0 65536", share) for share in (0, 0.34, 0.99, 1)] == [-1, 0, 1, 1]
    assert own_delays.short_text("") == "none"
    assert own_delays.short_text("0 1") != own_delays.short_text("0 2")
