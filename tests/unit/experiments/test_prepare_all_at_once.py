"""Whatever is wrong in an experiment's file, its topology, and between the two is said in one error, with its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.experiments import prepare

TOPOLOGY = "name: row\nchain: {hosts: [ams, bra, lon], link: {delay: 1ms}}\n"
EXPERIMENT = """\
name: odd
title: Odd
topology: TOPOLOGY
seed: 1
repetitions: 1
overlays: [none, swurm, romana-none]
measurements:
- {name: a, tool: ping, paths: [{from: ams, to: xyz}, {from: abc, to: bra}]}
- {name: b, tool: ping, paths: [first-to-last], cut: {link: bra-xyz, at: 1s, for: 1s}}
- name: c
  tool: ping
  paths: [first-to-last]
  cross: [{from: ams, to: nowhere, protocol: tcp}]
"""


def said(tmp_path: Path, experiment: str, topology: str = TOPOLOGY) -> list[str]:
    (tmp_path / "row.yaml").write_text(topology)
    file = tmp_path / "odd.yaml"
    file.write_text(experiment.replace("TOPOLOGY", str(tmp_path / "row.yaml")))
    with pytest.raises(InputError) as found:
        prepare.prepare_sweep(file, paper=False, quick=False, only=(), time="virtual")
    return [f"{Path(each.file).name}:{each.line}: {each.message}" for each in found.value.problems]


def test_overlays_and_what_each_measurement_names(tmp_path: Path) -> None:
    lines = said(tmp_path, EXPERIMENT)
    starts = [
        "odd.yaml:6: overlays[1]: overlays: no overlay 'swurm'; there are",
        "odd.yaml:6: overlays[2]: overlays: no overlay 'romana-none'; there are",
        "odd.yaml:8: measurements[0].paths[0]: no host 'xyz'; hosts are ams, bra, lon",
        "odd.yaml:8: measurements[0].paths[1]: no host 'abc'; hosts are ams, bra, lon",
        "odd.yaml:9: measurements[1].cut: cut.link: no link 'bra-xyz'",
        "odd.yaml:13: measurements[2].cross: cross[0]: no host 'nowhere'",
    ]
    assert [line for line, start in zip(lines, starts, strict=True) if not line.startswith(start)] == []


def test_the_experiments_overlays_and_the_topologys_own_problems(tmp_path: Path) -> None:
    lines = said(tmp_path, EXPERIMENT, TOPOLOGY.replace("1ms", "1"))
    assert [line.partition(": ")[0] for line in lines] == ["odd.yaml:6", "odd.yaml:6", "row.yaml:2"]


def test_overlays_and_a_topology_that_is_not_there(tmp_path: Path) -> None:
    lines = said(tmp_path, EXPERIMENT.replace("TOPOLOGY", "nowhere.yaml"))
    assert [line.split(": ")[0] for line in lines] == ["odd.yaml:3", "odd.yaml:6", "odd.yaml:6"]


def test_of_a_sweep_each_once(tmp_path: Path) -> None:
    """What no lab's values have to do with does not bear their name."""
    swept = EXPERIMENT.replace("seed: 1", "seed: 1\nvary: {chain.link.delay: [1ms, 2ms]}")
    lines = said(tmp_path, swept)
    assert sum("swurm" in line for line in lines) == 1
    assert not any("vary" in line for line in lines if "swurm" in line)


def test_refused_values_hide_neither_overlays_nor_the_topology(tmp_path: Path) -> None:
    refused = EXPERIMENT.replace("repetitions: 1", "repetitions: often")
    lines = said(tmp_path, refused, TOPOLOGY.replace("1ms", "1"))
    places = ["odd.yaml:5", "odd.yaml:6", "odd.yaml:6", "row.yaml:2"]
    assert [line.partition(": ")[0] for line in lines] == places
    missing = said(tmp_path, refused.replace("TOPOLOGY", "nowhere.yaml"))
    assert [line.split(": ")[0] for line in missing] == ["odd.yaml:3", "odd.yaml:5", "odd.yaml:6", "odd.yaml:6"]


AS_MANY_AS_CAN_BE = """\
name: most
title: As many samples as can be
topology: TOPOLOGY
seed: 1
repetitions: 1
overlays: [none]
measurements:
- name: many
  tool: iperf3-udp
  paths: [first-to-last]
  cut: {link: bra-xyz, at: 1s, for: 1s}
  vary:
    duration: [DURATIONS]
    rate: [RATES]
    datagram: [SIZES]
"""


def test_the_most_samples_that_can_be_hide_no_unknown_link(tmp_path: Path) -> None:
    """100 durations, 100 rates and 20 sizes are 200,000 samples."""
    asked = AS_MANY_AS_CAN_BE.replace("DURATIONS", ", ".join(f"{number}s" for number in range(1, 101)))
    asked = asked.replace("RATES", ", ".join(f"{number}mbit" for number in range(1, 101)))
    asked = asked.replace("SIZES", ", ".join(f"{number}B" for number in range(100, 120)))
    assert said(tmp_path, asked, TOPOLOGY.replace("1ms", "1ms, rate: 10mbit")) == [
        "odd.yaml:11: measurements[0].cut: cut.link: no link 'bra-xyz'; links are ams-bra, bra-lon"
    ]


def test_a_schedule_that_the_player_would_refuse(tmp_path: Path) -> None:
    """A campaign of hours found it at that sample."""
    steps = "{at: 1s, link: ams-bra, set: {queue: 100kB}}, {at: 2s, link: bra-ams, set: {delay: 0ms, reorder: 1%}}"
    asked = EXPERIMENT[: EXPERIMENT.index("- {name: a")].replace(", swurm, romana-none", "")
    asked += f"- name: a\n  tool: ping\n  paths: [first-to-last]\n  schedule: [{steps}]\n"
    line = "odd.yaml:11: measurements[0]"
    assert said(tmp_path, asked) == [
        f"{line}.schedule[0]: a queue without a rate: nothing waits on a link that is not limited; give a rate too",
        f"{line}.schedule[1]: reorder without a delay: there is nothing that a packet could overtake",
    ]
