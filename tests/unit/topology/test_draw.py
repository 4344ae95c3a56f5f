"""Drawings of topologies in text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.cli.views.plan import ROWS_SHOWN
from minigts.topology import draw
from minigts.topology.fields import MOST_HOSTS
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
LINK = "defaults: {link: {rtt: 10ms}}\n"
DRAWN = {
    "name: row\n" + LINK + "chain: {hosts: [a, b, c]}\n": ["a ─ 10 ms ─ b ─ 10 ms ─ c"],
    "name: round\n"
    + LINK
    + "hosts: {a: {}, b: {}, c: {}}\nlinks: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, a], rtt: 7ms}]\n": [
        "┌─ a ─ 10 ms ─ b ─ 10 ms ─ c ─┐",
        "└──────────── 7 ms ───────────┘",
    ],
    "name: tree\n"
    + LINK
    + "hosts: {a: {}, b: {}, c: {}, d: {}}\nlinks: [{ends: [b, a]}, {ends: [b, c]}, {ends: [b, d], rtt: 7ms}]\n": [
        "b",
        "├── a  10 ms",
        "├── c  10 ms",
        "└── d  7 ms",
    ],
    "name: meshed\n"
    + LINK
    + "hosts: {a: {}, b: {}, c: {}, d: {}}\n"
    + "links: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, a], rtt: 7ms}, {ends: [c, d]}]\n": [
        "b   10",
        "c    7  10",
        "d    ·   ·  10",
        "ms   a   b   c",
    ],
    "name: double\n"
    + LINK
    + "hosts: {a: {}, b: {}}\nlinks: [{name: x, ends: [a, b]}, {name: y, ends: [a, b], rtt: 7ms}]\n": [
        "a ─ 10, 7 ms ─ b"
    ],
}


@pytest.mark.parametrize("text", DRAWN, ids=lambda text: text.partition("\n")[0].removeprefix("name: "))
def test_a_topology_is_drawn(text: str, tmp_path: Path) -> None:
    file = tmp_path / "drawn.yaml"
    file.write_text(text)
    assert [line.rstrip() for line in draw.draw(load(file))] == DRAWN[text]


def test_where_no_table_fits_what_closes_a_ring_stands_behind_the_branch_that_it_ends() -> None:
    ends = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "e"), ("e", "f"), ("f", "d")]
    hosts = ", ".join(f"{name}: {{}}" for name in "abcdef")
    links = ", ".join(f"{{ends: [{first}, {second}]}}" for first, second in ends)
    plan = parse(f"name: rings\n{LINK}hosts: {{{hosts}}}\nlinks: [{links}]\n", "rings.yaml")
    assert draw.draw(plan, width=10) == [
        "a",
        "├── b",
        "│   └── c ─ a",
        "├── d",
        "│   ├── e",
        "│   │   └── f ─ d",
        "│   └──  ...",
        "└──  ...",
    ]


def test_a_tree_is_drawn_however_deep_it_is() -> None:
    hosts = ", ".join(f"h{number}: {{}}" for number in range(MOST_HOSTS))
    ends = [(f"h{number}", f"h{number + 1}") for number in range(MOST_HOSTS - 2)] + [("h1", f"h{MOST_HOSTS - 1}")]
    links = ", ".join(f"{{ends: [{first}, {second}]}}" for first, second in ends)
    plan = parse(f"name: deep\nsubnets: 10.64.0.0/10\n{LINK}hosts: {{{hosts}}}\nlinks: [{links}]\n", "deep.yaml")
    lines = draw.draw(plan)
    assert (lines[0], len(lines), lines[-1]) == ("h1", MOST_HOSTS, f"└── h{MOST_HOSTS - 1}  10 ms")


@pytest.mark.parametrize("file", sorted(TOPOLOGIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_machine_is_in_the_drawing_which_fits_a_window(file: Path) -> None:
    plan = load(file)
    if len(plan.machines) > ROWS_SHOWN:  # nobody draws it
        return
    lines = draw.draw(plan)
    words = {word.strip("[]") for line in lines for word in line.split()}
    assert {machine.name for machine in plan.machines} <= words
    assert max(map(len, lines)) <= draw.WIDTH + 10


def test_switches_stand_in_brackets() -> None:
    assert "[s1]" in draw.draw(load(TOPOLOGIES / "switched.yaml"))[0]


def test_a_large_mesh_is_drawn_as_who_is_joined_to_whom(tmp_path: Path) -> None:
    names = [f"h{number}" for number in range(draw.MOST_IN_TABLE + 1)]
    ring = [*pairwise(names), (names[-1], names[0]), (names[0], names[2])]
    links = ", ".join(f"{{ends: [{a}, {b}]}}" for a, b in ring)
    file = tmp_path / "large.yaml"
    file.write_text(f"name: large\n{LINK}hosts: {{{', '.join(f'{name}: {{}}' for name in names)}}}\nlinks: [{links}]\n")
    lines = draw.draw(load(file))
    assert lines[0] == "h0"
    assert {word for line in lines for word in line.replace(",", " ").split()} >= set(names)


def test_plan_shows_addresses_links_and_round_trips_to_expect() -> None:
    shown = CliRunner().invoke(app, ["plan", str(TOPOLOGIES / "chain6.yaml")]).stdout
    assert "ams ─ 21.75 ms ─ bra ─ 4.7 ms ─ lju" in shown
    rows = {tuple(line.split()) for line in shown.splitlines()}
    assert ("bra", "BRA", "10.255.0.2", "10.20.0.2", "eth1,", "10.20.1.1", "eth2", "1", "512", "MB") in rows
    assert any(row[:1] == ("ams-bra",) and {"50", "Mbit/s", "10.88", "0", "%", "kB"} <= set(row) for row in rows)
    assert any(row[:6] == ("ams", "–", "lon", "5", "161.23", "ms") for row in rows)


def test_of_very_many_pairs_the_first_are_shown_and_the_rest_counted() -> None:
    shown = CliRunner().invoke(app, ["plan", str(TOPOLOGIES / "chain21.yaml")]).stdout
    assert shown.count(" – ") == 66
    assert "144 further pairs: minigts plan --json FILE" in shown


def test_of_very_many_hosts_and_links_the_first_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    (tmp_path / "row.yaml").write_text("name: row\nchain: {hosts: 69}\n")
    shown = CliRunner().invoke(app, ["plan", str(tmp_path / "row.yaml")]).stdout
    rows = [line.split("\t")[0] for line in shown.splitlines()]
    assert (rows.count("h66"), rows.count("h67")) == (1, 0)
    assert (rows.count("h66-h67"), rows.count("h67-h68")) == (1, 0)
    assert "3 further machines: minigts plan --json FILE" in rows
    assert "2 further links: minigts plan --json FILE" in rows
