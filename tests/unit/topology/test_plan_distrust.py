"""A plan that somebody changed: whatever it is read from, it holds to the language's patterns, or is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from minigts.dataplane import interfaces, shaping
from minigts.errors import InputError
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SHELL = "x; touch /tmp/pwned #"
Document = dict[str, Any]


@pytest.fixture
def document() -> Document:
    found: Document = json.loads(load(TOPOLOGIES / "switched.yaml").model_dump_json())
    return found


def leaves(value: Any, *place: str | int) -> list[tuple[str | int, ...]]:
    """Where in a document something is that is no list and no mapping."""
    if isinstance(value, dict):
        return [leaf for key, each in value.items() for leaf in leaves(each, *place, key)]
    if isinstance(value, list):
        return [leaf for index, each in enumerate(value) for leaf in leaves(each, *place, index)]
    return [place]


def put(document: Any, place: tuple[str | int, ...], value: object) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


FREE = re.compile(r"(description|.*location)")
"""What is text to be shown: everything but control characters."""


@pytest.mark.parametrize("text", [SHELL, "../../../../evil", "a b", "\n", "$(id)", "a\0", "eth1\n", "ÿ", "-rf", "١"])
def test_no_word_of_a_plan_becomes_a_command_or_a_path(document: Document, text: str) -> None:
    for place in leaves(document):
        if FREE.fullmatch(str(place[-1])):
            continue
        changed = json.loads(json.dumps(document))
        put(changed, place, text)
        with pytest.raises(ValidationError):
            Plan.model_validate(changed)


@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "a\x00", "\x9b31m", "\ud800", "a\x7f"])
@pytest.mark.parametrize("place", [("description",), ("hosts", 0, "location"), ("switches", 0, "location")])
def test_what_is_shown_holds_no_control_characters(document: Document, text: str, place: tuple[str | int, ...]) -> None:
    put(document, place, text)
    with pytest.raises(ValidationError, match=r"control character|unicode string"):
        Plan.model_validate(document)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 2**50, 1e300])
def test_no_amount_is_beyond_what_the_language_lets_in(document: Document, number: float) -> None:
    numbers = [place for place in leaves(document) if str(place[-1]).endswith(("_ms", "_percent", "_mbit", "_bytes"))]
    numbers += [place for place in leaves(document) if place[-1] in ("mtu", "prefix", "cpus", "memory_mb", "index")]
    assert len(numbers) > 50
    for place in numbers:
        changed = json.loads(json.dumps(document))
        put(changed, place, number)
        with pytest.raises(ValidationError):
            Plan.model_validate(changed)


def doubled_name(document: Document) -> None:
    document["hosts"][1]["name"] = document["hosts"][0]["name"]


def foreign_port(document: Document) -> None:
    document["hosts"][0]["ports"][0]["link"] = document["hosts"][1]["ports"][0]["link"]


def wrong_peer(document: Document) -> None:
    document["hosts"][0]["ports"][0]["peer_host"] = document["hosts"][0]["name"]


def dangling_link(document: Document) -> None:
    document["links"][0]["ends"][0] = "nobody"


def portless_end(document: Document) -> None:
    document["hosts"][0]["ports"] = []


def looped_link(document: Document) -> None:
    document["links"][0]["ends"] = [document["links"][0]["ends"][0]] * 2


def far_address(document: Document) -> None:
    document["hosts"][0]["ports"][0]["address"] = "192.0.2.1"


def other_prefix(document: Document) -> None:
    document["hosts"][0]["ports"][0]["prefix"] = 16


def same_mac(document: Document) -> None:
    document["hosts"][0]["ports"][0]["mac"] = document["hosts"][1]["ports"][0]["mac"]


def wrong_index(document: Document) -> None:
    document["links"][0]["index"] = 1


def stray_switch(document: Document) -> None:
    document["switches"][0]["address"] = "192.0.2.1"


def idle_switch(document: Document) -> None:
    document["switches"][0]["ports"] = []


CONTRADICTIONS = (
    *(doubled_name, foreign_port, wrong_peer, dangling_link, portless_end, looped_link, far_address, other_prefix),
    *(same_mac, wrong_index, stray_switch, idle_switch),
)


@pytest.mark.parametrize("change", CONTRADICTIONS, ids=lambda change: change.__name__)
def test_what_a_plan_names_it_has_once(document: Document, change: Callable[[Document], None]) -> None:
    Plan.model_validate(document)
    change(document)
    with pytest.raises(ValidationError):
        Plan.model_validate(document)


WIDEST = f"""\
name: {"n" * 40}
description: "{"d" * 3990}\\n\\tend"
hosts:
  {"h" * 15}: {{location: "{"ü" * 60}", cpus: 64, memory: 1024GB}}
  b: {{memory: 128MB}}
switches:
  s: {{controller: 192.0.2.1:65535}}
links:
  - {{ends: [{"h" * 15}, s], delay: 10s, jitter: 10s, loss: 100%, rate: 100gbit, queue: 1000MB, mtu: 9000}}
  - {{ends: [s, b], rtt: 10s, rate: 8kbit, mtu: 9000, name: {"l" * 40}, subnet: 192.168.0.0/29}}
  - {{ends: [{"h" * 15}, b], rtt: 10s, rate: 100gbit, mtu: 576}}
expect: [{{latency: sum-of-segments}}, {{throughput: falls-with-hops}}, {{throughput: within-ceiling}}]
tolerances: {{rtt: 10s + 100%, rate: 100%, loss: 100%}}
seed: 2147483647
overlay: {"o" * 40}
"""


def test_all_that_the_language_lets_in_a_plan_can_say() -> None:
    plan = parse(WIDEST, "widest.yaml")
    assert Plan.model_validate_json(plan_json(plan)) == plan


@pytest.mark.parametrize("key", ["description", "hosts: {a: {location"])
@pytest.mark.parametrize("escape", [r"\x1b[2J", r"\x9b", r"\ud800", r"\0"])
def test_a_topology_file_says_no_control_characters_either(key: str, escape: str) -> None:
    line = f'description: "{escape}"' if key == "description" else f'hosts: {{a: {{location: "{escape}"}}, b: }}'
    links = "" if key == "description" else "links: [{ends: [a, b]}]"
    with pytest.raises(InputError, match=r"f\.yaml:2: .*(cannot be shown|escape|one line)"):
        parse(f"name: x\n{line}\n{links or 'pair: {}'}\n", "f.yaml")


@pytest.mark.parametrize("field", ["name", "mac", "address", "link"])
def test_commands_hold_even_where_a_plan_was_not_checked(field: str) -> None:
    plan = load(TOPOLOGIES / "pair.yaml")
    host = plan.hosts[0]
    port = host.ports[0].model_copy(update={field: SHELL})
    hostile = host.model_copy(update={"ports": (port,)})
    for make in (lambda: interfaces.script(plan, hostile), lambda: shaping.script([port])):
        try:
            script = make()
        except InputError:
            continue
        assert not re.search(r"(?m)^[^'\n]*(?:'[^'\n]*'[^'\n]*)*x; touch", script)
