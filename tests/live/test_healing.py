"""A link is cut while echo requests cross it: who waits until it is whole again, and who finds another way."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from live.program import PROJECT, Program

pytestmark = pytest.mark.virtual
PATIENCE_S = 300.0
INTERVAL_MS = 25.0
"""At the most: ping waits by the kernel's ticks, of 10 ms each."""

PLAIN = """\
name: plain
title: Plain hosts
topology: topologies/pair.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {name: whole, tool: ping, paths: [{from: ams, to: bra}], options: {count: 200, interval: 10ms}}
  - {name: cut, tool: ping, paths: [{from: ams, to: bra}], options: {count: 400, interval: 10ms},
     cut: {link: bra-ams, at: 1s, for: 1500ms}}
"""


def rows(program: Program, tmp_path: Path, *arguments: str) -> tuple[Path, list[dict[str, str]]]:
    started = program.start("run", *arguments, "--time", "virtual", "--results", str(tmp_path / "results"))
    stdout, stderr = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, stdout + stderr
    directory = Path(stdout.splitlines()[-1]).parent
    with (directory / "samples.csv").open(newline="") as stream:
        return directory, list(csv.DictReader(stream))


@pytest.mark.nightly
def test_plain_hosts_are_cut_off_as_long_as_the_link(program: Program, tmp_path: Path) -> None:
    """The gap is the cut, up to the next request, and the replies have the same round trip before and after it."""
    file = tmp_path / "plain.yaml"
    file.write_text(PLAIN)
    _, found = rows(program, tmp_path, str(file))
    whole, cut = (next(row for row in found if row["measurement"] == name) for name in ("whole", "cut"))
    assert float(whole["gap_ms"]) <= INTERVAL_MS
    assert float(whole["lost"]) == 0
    assert 1500 <= float(cut["gap_ms"]) <= 1500 + 2 * INTERVAL_MS
    assert 1500 / INTERVAL_MS <= float(cut["lost"]) <= 1500 / 10
    assert float(cut["max"]) == pytest.approx(float(cut["min"]), abs=0.003)


RING = """\
name: ring4
routing: neighbours
defaults: {link: {rtt: 10ms, rate: 50mbit}}
hosts: {ams: , bra: , lju: , mil: }
links: [{ends: [ams, bra]}, {ends: [bra, lju]}, {ends: [lju, mil]}, {ends: [mil, ams]}]
"""


def smaller(place: Path) -> Path:
    """experiments/heal-ring.yaml with four hosts instead of six, and seen once from one of them."""
    text = (PROJECT / "experiments" / "heal-ring.yaml").read_text()
    topology = str(place / "ring4.yaml")
    less = (("topologies/ring6.yaml", topology), (", {from: lon, to: bra}", ""), ("repetitions: 3 ", "repetitions: 1 "))
    for part, instead in less:
        assert part in text
        text = text.replace(part, instead)
    (place / "ring4.yaml").write_text(RING)
    (place / "heal-ring.yaml").write_text(text)
    return place / "heal-ring.yaml"


@pytest.mark.nightly
def test_hop_routing_goes_the_other_way_round_a_ring(program: Program, tmp_path: Path) -> None:
    """From one hop to three; and back, once the link is whole again: the last reply has the first one's round trip."""
    file = smaller(tmp_path)
    directory, (far,) = rows(program, tmp_path, str(file), "--only", "mesh")
    verdicts = json.loads((directory / "claims.json").read_text())
    assert [each for each in verdicts if each["verdict"] == "failed"] == []
    assert any(each["verdict"] == "held" for each in verdicts)
    assert float(far["min"]) == pytest.approx(10.05, abs=0.01)
    said = json.loads((directory / "raw" / "mesh.echoes.ams-bra.r1.json").read_text())
    replies_ms = [float(text) for text in re.findall(r" time=([\d.]+) ms", said["stdout"])]
    assert sum(30.05 < reply_ms < 30.25 for reply_ms in replies_ms) > 100
    assert replies_ms[-1] == pytest.approx(10, abs=0.1)
