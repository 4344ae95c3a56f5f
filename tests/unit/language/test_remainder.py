"""What is wrong beside refused values is told with them, and nothing that only follows from them."""

from __future__ import annotations

import pytest

from minigts.errors import InputError
from minigts.experiments.load import parse
from minigts.explore import faults
from minigts.overlays import policy
from minigts.topology.read import load as topology

HEAD = """\
name: mine
title: Mine
topology: topologies/pair.yaml
overlays: [none]
seed: 7
repetitions: 1
measurements:
  - {name: tcp, tool: iperf3-tcp, paths: [first-to-last], vary: {congestion: [cubic, reno]}}
  - {name: echoes, tool: ping, paths: [first-to-last]}
claims:
  - {throughput: bounded, of: tcp, range: over 5 Mbit/s}
  - {throughput: bounded, of: tpc, range: over 5 Mbit/s}
  - {throughput: bounded, of: tcp, by: nothing, range: over 5 Mbit/s}
figures:
  - {of: tcp, x: congstion}
"""


def lines(text: str) -> list[tuple[int, str]]:
    with pytest.raises(InputError) as found:
        parse(text, "mine.yaml")
    return [(each.line, each.message.partition(": ")[0]) for each in found.value.problems]


WHOLE = [(12, "claims[1].of")]


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("seed: 7", "seed: many", (5, "seed")),
        ("seed: 7\n", "", (1, "'seed' is missing")),
        ("name: mine", "name: My own", (1, "name")),
        ("repetitions: 1", "repetitions: [1]", (6, "repetitions")),
        ("name: echoes, tool: ping", "name: echoes, tool: pong", (9, "measurements[1]")),
        (
            "name: echoes, tool: ping",
            "name: echoes, tool: ping, options: {count: x}",
            (9, "measurements[1].options.count"),
        ),
        ("title: Mine", "titel: Mine", (2, "titel")),
    ],
)
def test_a_refused_value_hides_no_other_mistake(old: str, new: str, refused: tuple[int, str]) -> None:
    found = lines(HEAD.replace(old, new))
    assert refused in found
    shift = 1 if not new else 0
    assert (12 - shift, "claims[1].of") in found


def test_what_follows_from_a_refused_value_is_not_told() -> None:
    """Its measurement is refused, so that claims about it cannot be judged; they are not called unknown."""
    found = lines(HEAD.replace("tool: iperf3-tcp", "tool: iperf").replace("of: tpc", "of: tcp"))
    assert found == [(8, "measurements[0]")]


def test_a_mapping_that_has_lost_a_key_is_not_told_to_need_it() -> None:
    found = lines(HEAD.replace("of: tcp, range: over 5 Mbit/s", "of: tcp, range: much", 1))
    assert [each for each in found if each[0] < 13] == [(11, "claims[0].range"), (12, "claims[1].of")]


def test_the_next_round_of_checks_finds_what_the_first_could_not() -> None:
    """Names are looked up before claims' settings are."""
    found = lines(HEAD.replace("of: tpc", "of: tcp"))
    assert found == [(13, "claims[2].by"), (15, "figures[0].x")]
    assert lines(HEAD) == [(12, "claims[1].of"), (13, "claims[2].by"), (15, "figures[0].x")]


def test_places_are_those_of_the_file_though_entries_are_left_out() -> None:
    text = HEAD.replace("measurements:\n", "measurements:\n  - {name: bad, tool: pong, paths: [first-to-last]}\n")
    found = lines(text.replace("name: echoes,", "name: echoes, over: [none, x], together: perhaps,"))
    assert found[:2] == [(8, "measurements[0]"), (10, "measurements[2].together")]
    assert (13, "claims[1].of") in found


def test_a_default_that_does_not_fit_is_told_beside_a_refused_value() -> None:
    """The place of that finding is nowhere in the file."""
    far = topology.parse("name: far\npair: {link: {delay: 9500ms}}\n", "far.yaml", time="virtual")
    text = "faults:\n  slow-link: {every: 20s, for: 5s}\n  kill: {every: 9s, for: 5s, of: [[h1]]}\n  length: 1min\n"
    with pytest.raises(InputError) as found:
        faults.parse(text, "faults.yaml", far)
    assert [(each.line, each.message.partition(": ")[0]) for each in found.value.problems] == [
        (2, "faults.slow-link.delay"),
        (3, "faults.kill.of[0]"),
    ]


def test_other_languages_are_checked_so_too() -> None:
    text = "name: odd\ndefault: maybe\nrules:\n- {from: ams, to: nowhere, allow: [{protocol: tcp, port: 80}]}\n"
    with pytest.raises(InputError) as found:
        policy.parse(text, "p.yaml", ["ams", "bra"])
    assert "default" in str(found.value)
