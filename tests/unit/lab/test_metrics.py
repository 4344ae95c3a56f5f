"""A lab's metrics as OpenMetrics text, read by a strict parser of the parts that minigts writes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import tc_hosts

from minigts import lab as labs
from minigts.lab import Lab, metrics, set_links_up
from minigts.lab.usage import Carried, Reading, Used
from minigts.topology.read.load import parse

TEXT = "name: two\npair: {hosts: [ams, bra], link: {rtt: 2ms, rate: 50mbit, loss: 1%}}\n"
READING = Reading(
    at_ns={"ams": 5_500_000_000, "bra": 5_000_000_000},
    carried={("ams", "ams-bra"): Carried(1000, 10, 1, 2, 6250, 3, 4), ("bra", "ams-bra"): Carried(500, 5, 0, 0)},
    used={"ams": Used((150, 1000), (1024, 4096))},
)
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} ([0-9.e+-]+)')


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    tc_hosts.use(monkeypatch, tmp_path)
    return labs.up(parse(TEXT, "two.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)


def samples(text: str) -> dict[str, float]:
    """Samples by name and labels. Asserts the order and names that OpenMetrics 1.0 demands."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    found: dict[str, float] = {}
    seen: set[str] = set()
    name = kind = ""
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in seen and kind in ("counter", "gauge")
            seen.add(name)
        elif line.startswith("# UNIT "):
            _, _, of, unit = line.split(" ")
            assert of == name and name.endswith(f"_{unit}")
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == name and line.endswith(".")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] == name + ("_total" if kind == "counter" else "")
            key = f"{sample[1]} {sample[2]}"
            assert key not in found
            found[key] = float(sample[3])
    return found


def test_links_and_hosts_have_their_counters_and_gauges_in_base_units(lab: Lab) -> None:
    found = samples(metrics.text(metrics.families(lab, READING)))
    way = 'lab="two",link="ams-bra",from="ams",to="bra"'
    assert found[f"minigts_link_sent_bytes_total {way}"] == 1000
    assert found[f"minigts_link_sent_frames_total {way}"] == 10
    assert found[f"minigts_link_dropped_frames_total {way}"] == 1
    assert found[f"minigts_link_lost_frames_total {way}"] == 2
    assert found[f"minigts_link_overrun_frames_total {way}"] == 3
    assert found[f"minigts_link_marked_frames_total {way}"] == 4
    assert found[f"minigts_link_queue_bytes {way}"] == 6250
    assert found[f"minigts_link_rate_bytes_per_second {way}"] == 6_250_000
    assert found[f"minigts_link_loss_ratio {way}"] == 0.01
    assert found['minigts_link_rtt_seconds lab="two",link="ams-bra"'] == pytest.approx(0.003, rel=1e-6)
    assert found['minigts_host_memory_used_bytes lab="two",host="ams"'] == 1024
    assert found['minigts_host_memory_size_bytes lab="two",host="ams"'] == 4096
    assert found['minigts_host_processor_busy_seconds_total lab="two",host="ams"'] == 1.5
    assert found['minigts_lab_clock_seconds lab="two"'] == 5.5


def test_a_cut_link_is_down_and_has_no_round_trip(lab: Lab) -> None:
    set_links_up(lab, "ams", "bra", up=False)
    found = samples(metrics.text(metrics.families(lab, READING)))
    assert found['minigts_link_up lab="two",link="ams-bra"'] == 0
    assert not any(key.startswith("minigts_link_rtt_seconds") for key in found)


def test_a_host_that_is_off_is_down_and_its_directions_are_left_out(lab: Lab) -> None:
    lab.write(lab.read_record().model_copy(update={"off": frozenset({"bra"})}))
    only = Reading({"ams": 1}, {("ams", "ams-bra"): READING.carried["ams", "ams-bra"]}, {})
    found = samples(metrics.text(metrics.families(lab, only)))
    assert (found['minigts_host_up lab="two",host="ams"'], found['minigts_host_up lab="two",host="bra"']) == (1, 0)
    assert not any('from="bra"' in key for key in found)


def test_a_host_that_is_off_is_down_though_the_wires_of_all_are_read(lab: Lab) -> None:
    """As `minigts serve` does in virtual time."""
    lab.write(lab.read_record().model_copy(update={"off": frozenset({"bra"})}))
    found = samples(metrics.text(metrics.families(lab, READING)))
    assert (found['minigts_host_up lab="two",host="ams"'], found['minigts_host_up lab="two",host="bra"']) == (1, 0)


OF_A_QUEUE = ("dropped_frames_total", "marked_frames_total", "queue_bytes")


@pytest.mark.parametrize(("hosts_asked", "there"), [(True, True), (False, False)])
def test_what_only_a_host_knows_of_its_queue_is_left_out_where_none_was_asked(
    lab: Lab, hosts_asked: bool, there: bool
) -> None:
    """And stays for the other direction, whose queue is the wire's."""
    text = TEXT.replace("loss: 1%", "queue: {to: {discipline: fq_codel}, from: 250kB}")
    lab = Lab.known(lab.rundir, parse(text, "two.yaml"), lab.provider)
    found = samples(metrics.text(metrics.families(lab, replace(READING, of_wires_alone=not hosts_asked))))
    for sender, peer, expected in (("ams", "bra", there), ("bra", "ams", True)):
        way = f'lab="two",link="ams-bra",from="{sender}",to="{peer}"'
        assert {f"minigts_link_{name} {way}" in found for name in OF_A_QUEUE} == {expected}
        assert found[f"minigts_link_sent_bytes_total {way}"] > 0
    assert ('minigts_link_rtt_seconds lab="two",link="ams-bra"' in found) == there


def test_quotes_backslashes_and_newlines_of_a_label_are_escaped() -> None:
    family = metrics.Family("minigts_x", "gauge", "", "About.", (({"lab": 'a"b\\c\nd'}, 1.0),))
    assert 'minigts_x{lab="a\\"b\\\\c\\nd"} 1' in metrics.text(iter([family])).splitlines()


def test_the_dashboard_asks_for_exactly_the_metrics_that_there_are(lab: Lab) -> None:
    emitted = {line.partition(" ")[0] for line in samples(metrics.text(metrics.families(lab, READING)))}
    panels = json.loads(metrics.dashboard())["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    assert set(re.findall(r"minigts_[a-z_]+", asked)) == emitted
    assert set(re.findall(r"minigts_[a-z_]+", metrics.dashboard())) == emitted
