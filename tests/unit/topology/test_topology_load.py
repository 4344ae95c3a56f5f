"""Files to plans: whatever the file holds, the outcome is a plan or an InputError."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigts.errors import InputError
from minigts.formats import recognised
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import LARGEST_BYTES, load, parse
from minigts.topology.read.model import SHORTHANDS, Topology

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SHIPPED = sorted(TOPOLOGIES.glob("*.yaml"))


def plan_or_error(text: str) -> Plan | InputError:
    try:
        return parse(text, "f.yaml", known_overlays=["none", "swarm"])
    except InputError as error:
        return error


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_topology_is_good(path: Path) -> None:
    plan = load(path, known_overlays=["kubernetes", "none", "swarm"])
    assert plan.name == path.stem
    assert len(plan.description) > 40
    assert path.read_text().startswith("# yaml-language-server: $schema=schema.json\n")


def test_defaults_give_way_to_what_is_nearer() -> None:
    plan = parse(
        """
name: x
defaults: {link: {rtt: 10ms, rate: 10mbit}, host: {memory: 1GB, cpus: 2}}
chain: {hosts: 3, link: {rate: 20mbit, loss: 1%}, segments: [{delay: 1ms}, {rate: 30mbit}], host: {cpus: 3}}
hosts: {z: {memory: 256MB}}
links: [{ends: [z, h1], loss: 2%}]
""",
        "f.yaml",
    )
    assert [(link.rtt_ms, link.rate_mbit, link.loss_percent) for link in plan.links] == [
        (2.0, 20.0, 1.0),
        (10.0, 30.0, 1.0),
        (10.0, 10.0, 2.0),
    ]
    assert [(host.name, host.cpus, host.memory_mb) for host in plan.hosts] == [
        ("h1", 3, 1024),
        ("h2", 3, 1024),
        ("h3", 3, 1024),
        ("z", 2, 256),
    ]


@pytest.mark.parametrize(
    ("short", "hosts", "links"),
    [
        ("chain: {hosts: 3}", ["h1", "h2", "h3"], ["h1-h2", "h2-h3"]),
        ("chain: {hosts: [a, b]}", ["a", "b"], ["a-b"]),
        ("pair: {}", ["h1", "h2"], ["h1-h2"]),
        ("pair: {hosts: [no, on]}", ["no", "on"], ["no-on"]),
        ("star: {clients: 2}", ["centre", "c1", "c2"], ["centre-c1", "centre-c2"]),
        ("star: {clients: [a, b], centre: m}", ["m", "a", "b"], ["m-a", "m-b"]),
        ("ring: {hosts: 3}", ["h1", "h2", "h3"], ["h1-h2", "h2-h3", "h3-h1"]),
        ("ring: {hosts: [a, b, c, d]}", ["a", "b", "c", "d"], ["a-b", "b-c", "c-d", "d-a"]),
        (
            "clos: {spines: 2, leaves: 2, hosts: 2}",
            ["h1", "h2", "h3", "h4", "leaf1", "leaf2", "spine1", "spine2"],
            [
                *("h1-leaf1", "h2-leaf1", "h3-leaf2", "h4-leaf2"),
                *("leaf1-spine1", "leaf1-spine2", "leaf2-spine2", "leaf2-spine1"),
            ],
        ),
        (
            "clos: {spines: [top], leaves: [a, b], hosts: 0}\nhosts: {web: }\nlinks: [{ends: [web, a]}]",
            ["a", "b", "top", "web"],
            ["a-top", "b-top", "web-a"],
        ),
        (
            "chain: {hosts: 3}\nlinks: [{ends: [h3, h1], name: ring}]",
            ["h1", "h2", "h3"],
            ["h1-h2", "h2-h3", "ring"],
        ),
    ],
)
def test_shorthand_expands(short: str, hosts: list[str], links: list[str]) -> None:
    plan = parse(f"name: x\n{short}\n", "f.yaml")
    assert [host.name for host in plan.hosts] == hosts
    assert [link.name for link in plan.links] == links


def test_uplinks_have_settings_of_their_own_before_those_of_all_links() -> None:
    text = "name: x\ndefaults: {link: {mtu: 1400}}\n"
    text += "clos: {spines: 1, leaves: 2, hosts: 1, link: {rtt: 2ms, rate: 50mbit}, uplink: {rate: 100mbit}}\n"
    plan = parse(text, "f.yaml")
    assert [(link.name, link.rtt_ms, link.rate_mbit) for link in plan.links] == [
        ("h1-leaf1", 2.0, 50.0),
        ("h2-leaf2", 2.0, 50.0),
        ("leaf1-spine1", 2.0, 100.0),
        ("leaf2-spine1", 2.0, 100.0),
    ]
    assert {port.mtu for host in plan.hosts for port in host.ports} == {1400}


def test_a_rings_segments_are_as_many_as_its_hosts_and_the_last_one_closes_it() -> None:
    plan = parse("name: x\nring: {hosts: 3, segments: [{rtt: 1ms}, {rtt: 2ms}, {rtt: 4ms}]}\n", "f.yaml")
    assert [(link.ends, link.rtt_ms) for link in plan.links] == [
        (("h1", "h2"), 1.0),
        (("h2", "h3"), 2.0),
        (("h3", "h1"), 4.0),
    ]
    assert plan.path("h1", "h3").links == ("h1-h2", "h2-h3")


@pytest.mark.parametrize(("spines", "leaves"), [(1, 3), (2, 4), (3, 7), (5, 3)])
def test_between_two_leaves_of_a_clos_is_the_first_spine_of_the_later_leaf(spines: int, leaves: int) -> None:
    plan = parse(f"name: x\nclos: {{spines: {spines}, leaves: {leaves}, hosts: 1, link: {{rtt: 1ms}}}}\n", "f.yaml")
    for later in range(2, leaves + 1):
        for earlier in range(1, later):
            spine = f"spine{1 + (later - 1) % spines}"
            there, back = plan.path(f"h{earlier}", f"h{later}"), plan.path(f"h{later}", f"h{earlier}")
            up = (f"h{earlier}-leaf{earlier}", f"leaf{earlier}-{spine}")
            down = (f"leaf{later}-{spine}", f"h{later}-leaf{later}")
            assert (there.links, back.links) == ((*up, *down), (*down[::-1], *up[::-1]))


def test_every_shorthand_of_the_model_is_known_where_shorthands_are_listed() -> None:
    of_the_model = [key for key, field in Topology.model_fields.items() if "Shorthand: " in (field.description or "")]
    assert of_the_model == [*SHORTHANDS]
    assert {"hosts", "switches", *SHORTHANDS} == recognised.OURS


@pytest.mark.parametrize(
    ("written", "good"),
    [("0.3ms + 2%".ljust(40), True), ("0.3ms + 2%".ljust(41), False), ("[0.2ms]", False), ("0.2ms + 1ms", False)],
)
def test_a_tolerance_is_a_time_and_a_share_in_a_short_text(written: str, good: bool) -> None:
    text = written if written.startswith("[") else f'"{written}"'
    with nullcontext() if good else pytest.raises(InputError, match="is not a tolerance of round trips: write it as"):
        plan = parse(f"name: x\nchain: {{hosts: 2}}\ntolerances: {{rtt: {text}}}\n", "x.yaml")
        assert (plan.tolerances.rtt_ms, plan.tolerances.rtt_percent) == (0.3, 2.0)


def test_overlay_is_free_when_no_names_are_given() -> None:
    assert parse("name: x\npair: {}\noverlay: mine\n", "f.yaml").overlay == "mine"


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "large", "bad-name"])
def test_unreadable_file_is_an_input_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t.yaml"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as stream:
            stream.truncate(100_000_000)
    elif kind == "bad-name":
        path = Path("a\0b")
    with pytest.raises(InputError) as caught:
        load(path)
    assert len(caught.value.problems) == 1


def test_largest_file_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    text = "name: x\npair: {}\n"
    path.write_text(text + "#" * (LARGEST_BYTES - len(text)))
    assert load(path).name == "x"
    path.write_text(text + "#" * (LARGEST_BYTES - len(text) + 1))
    with pytest.raises(InputError, match="larger than"):
        load(path)


def test_rubbish_has_a_bounded_number_of_problems() -> None:
    error = plan_or_error("".join(f"k{number}: 1\n" for number in range(500)))
    assert isinstance(error, InputError)
    assert len(error.problems) == 101
    assert "more problems" in error.problems[-1].message


@settings(max_examples=150)
@given(st.text(max_size=200))
def test_any_text_gives_a_plan_or_an_input_error(text: str) -> None:
    assert isinstance(plan_or_error(text), Plan | InputError)


SEED = (TOPOLOGIES / "chain6.yaml").read_text()


@settings(max_examples=100)
@given(
    st.integers(0, len(SEED)),
    st.integers(0, 30),
    st.text(alphabet="abz019 :-{}[],&*!|>'\"%@`#?~\n\t\\.\x00é", max_size=12),
)
def test_any_edit_of_a_good_file_gives_a_plan_or_an_input_error(start: int, cut: int, put: str) -> None:
    outcome = plan_or_error(SEED[:start] + put + SEED[start + cut :])
    assert isinstance(outcome, Plan) or all(problem.message for problem in outcome.problems)


KEYS = [
    "name",
    "hosts",
    "links",
    "chain",
    "pair",
    "star",
    "ring",
    "clos",
    "defaults",
    "ends",
    "link",
    "host",
    "rtt",
    "rate",
    "subnet",
]
OF_SHORTHANDS = ["clients", "segments", "spines", "leaves", "uplink"]
DIRECTIONS = ["delay", "queue", "to", "from"]
VALUES = st.sampled_from(["x", "a", "b", "", "10ms", "5", "-1ms", "1mbit", "10.9.0.0/24", "10.9.0.0/16", "250", "none"])
TREES = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from([*KEYS, *DIRECTIONS, *OF_SHORTHANDS, "subnets", "expect", "a"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from([*KEYS, "subnets", "routing", "overlay", "expect"]), TREES, max_size=6))
def test_any_document_gives_a_plan_or_an_input_error(document: dict[str, object]) -> None:
    # JSON is YAML; its lines are one, its structure is whatever hypothesis thinks of.
    assert isinstance(plan_or_error(json.dumps({"name": "x", **document})), Plan | InputError)
