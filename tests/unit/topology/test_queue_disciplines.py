"""Queue disciplines of links: what a file may say, what `set` makes of it, what tc is told, and what it shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.dataplane import shaping, wire
from minigts.errors import InputError
from minigts.lab import changes
from minigts.lab.record import Change
from minigts.topology import disciplines, link_rules
from minigts.topology.link_settings import Shaping
from minigts.topology.plan.elements import Port
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse


def planned(queue: str, more: str = "rate: 10mbit, ") -> Plan:
    return parse(
        f"name: q\nhosts: {{ams: , bra: }}\nlinks: [{{ends: [ams, bra], {more}delay: 5ms, queue: {queue}}}]\n", "q.yaml"
    )


def port(queue: str) -> Port:
    return planned(queue).host("ams").ports[0]


def on_host(queue: str) -> Port:
    return wire.unshaped_port(port(queue))


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("{size: 200kB, discipline: bfifo}", "bfifo limit 200000"),
        ("{size: 200kB, discipline: codel}", "codel limit 133"),
        (
            "{size: 200kB, discipline: codel, ecn: true, target: 2ms, interval: 50ms, mark: 1ms}",
            "codel limit 133 ecn target 2000.000us interval 50000.000us ce_threshold 1000.000us",
        ),
        ("{size: 200kB, discipline: fq_codel, ecn: false}", "fq_codel limit 133 noecn"),
        ("{size: 200kB, discipline: cake, interval: 30ms}", "cake memlimit 400000 rtt 30000.000us"),
        ("{size: 200kB, discipline: pie, target: 20ms}", "pie limit 133 target 20000.000us"),
        ("{size: 200kB, discipline: fq, mark: 1ms}", "fq limit 133 ce_threshold 1000.000us"),
        (
            "{size: 240kB, discipline: red, ecn: true}",
            "red limit 240000 min 20000 max 60000 avpkt 1000 burst 34 probability 0.02 bandwidth 10000000bit ecn",
        ),
        (
            "{size: 240kB, discipline: red, min: 30kB, max: 30kB}",
            "red limit 240000 min 30000 max 30000 avpkt 1000 burst 30 probability 0.02 bandwidth 10000000bit",
        ),
    ],
)
def test_a_host_is_told_the_discipline_below_a_tbf_of_one_frame(queue: str, words: str) -> None:
    tbf, child, *_ = [line for line in shaping.script([on_host(queue)], carried=True).splitlines() if "qdisc" in line]
    limit = port(queue).outgoing.queue_bytes
    assert tbf == f"qdisc replace dev eth1 root handle 1: tbf rate 10000000bit burst 1523 limit {limit}"
    front, _, rest = child.partition(": ")
    assert front.startswith("qdisc replace dev eth1 parent 1:1 handle ")
    assert rest == words
    in_real_time = shaping.script([port(queue)])
    assert f": {words}\n" in in_real_time
    assert "burst 15140 " in in_real_time


def test_a_link_with_the_plain_queue_is_set_on_the_wire_alone() -> None:
    assert on_host("200kB").outgoing == on_host("{size: 200kB, discipline: fifo}").outgoing == Shaping()
    assert planned("200kB") == planned("{size: 200kB, discipline: fifo}")
    assert "discipline" not in planned("200kB").model_dump_json()


def test_another_size_keeps_the_discipline_and_another_option_makes_a_new_one() -> None:
    handles = [
        disciplines.words(way := port(queue).outgoing, 1514, way.queue_discipline)[1]
        for queue in (
            "{size: 200kB, discipline: codel}",
            "{size: 100kB, discipline: codel}",
            "{size: 200kB, discipline: codel, target: 1ms}",
            "{size: 200kB, discipline: fq_codel}",
        )
    ]
    assert handles[0] == handles[1]
    assert len(set(handles)) == 3
    assert all(0x1000 <= int(each.removesuffix(":"), 16) < 0xFFFF for each in handles)


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        (
            "{discipline: fifo, target: 5ms}",
            "queue.target is no option of the queue discipline fifo, but of codel, fq_codel, pie; fifo has no options",
        ),
        (
            "{discipline: cake, ecn: true}",
            "queue.ecn is no option of the queue discipline cake, but of codel, fq_codel, red, pie; cake has "
            "queue.interval; cake always marks",
        ),
        ("{discipline: codel, min: 9kB}", "queue.min is no option of the queue discipline codel, but of red;"),
        (
            "{discipline: sfq}",
            "'sfq' is not a queue discipline: write fifo, bfifo, pfifo, codel, fq_codel, cake, red, pie or fq",
        ),
        ("{discipline: codel, ecn: maybe}", "'maybe' is not a choice: write true or false"),
        ("{discipline: codel, target: 5}", "'5' lacks its unit"),
        (
            "{discipline: codel, flows: 5}",
            "no key 'flows'; keys are size, discipline, ecn, target, interval, mark, min, max",
        ),
        ("{discipline: red, min: 30kB, max: 20kB}", "queue.min, 30000 bytes, is more than queue.max, 20000 bytes"),
        ("{size: 64kB, discipline: red, max: 90kB}", "a queue of 64000 bytes never holds the 90000 bytes from which"),
    ],
)
def test_what_a_discipline_has_not_is_an_error_that_says_what_is_right(queue: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        planned(queue)
    assert message in str(refused.value)
    assert "q.yaml:3" in str(refused.value)


def test_a_discipline_without_a_rate_is_an_error() -> None:
    with pytest.raises(InputError, match="a queue discipline codel without a rate: nothing waits"):
        planned("{discipline: codel}", more="")


def test_directions_have_their_own() -> None:
    plan = planned("{size: {to: 100kB, from: 50kB}, discipline: {to: fq_codel, from: red}}")
    (link,) = plan.links
    to, back = plan.directions(link)
    assert (to.queue_discipline, to.queue_bytes) == ("fq_codel", 100_000)
    assert (back.queue_discipline, back.queue_bytes) == ("red", 50_000)
    plan = planned("{to: {discipline: codel, target: 2ms}, from: 100kB}")
    to, back = plan.directions(plan.links[0])
    assert (to.queue_discipline, to.queue_target_ms, to.queue_bytes) == ("codel", 2.0, 64_000)
    assert back == planned("100kB").directions(plan.links[0])[1]


def test_options_are_of_the_layer_that_names_the_discipline() -> None:
    text = """
name: q
defaults: {link: {rate: 10mbit, queue: {discipline: codel, target: 2ms}}}
hosts: {a: , b: , c: , d: }
links:
- {ends: [a, b]}
- {ends: [b, c], queue: {discipline: bfifo}}
- {ends: [c, d], queue: {interval: 30ms}}
"""
    ways = [plan.directions(link)[0] for plan in (parse(text, "q.yaml"),) for link in plan.links]
    assert [(way.queue_discipline, way.queue_target_ms, way.queue_interval_ms) for way in ways] == [
        ("codel", 2.0, None),
        ("bfifo", None, None),
        ("codel", 2.0, 30.0),
    ]


def adjusted(plan: Plan, change: Change, update: dict[str, Any]) -> Change:
    """What `set` makes of a lab's change of its only link."""
    (link,) = plan.links
    record = _Record({link.name: change})
    return changes._adjusted(plan, record, link, update, None)[link.name]  # type: ignore[arg-type]


class _Record:
    def __init__(self, changed: dict[str, Change]) -> None:
        self.changed = changed


def test_options_that_were_set_go_with_their_discipline() -> None:
    plan = planned("{size: 200kB, discipline: codel, target: 2ms}")
    before = Change(queue_interval_ms=30.0)
    now = adjusted(plan, before, {"queue_discipline": "bfifo"})
    assert now.given == {"queue_discipline": "bfifo"}
    way = link_rules.apply(plan.directions(plan.links[0])[0], now.given)
    assert (way.queue_discipline, way.queue_target_ms, way.queue_interval_ms) == ("bfifo", None, None)
    with pytest.raises(InputError, match=r"ams-bra: queue.target is no option of the queue discipline bfifo"):
        adjusted(plan, now, {"queue_target_ms": 3.0})


def shown(queue: str, **others: object) -> str:
    """What `tc -j qdisc show` prints of a port in virtual time, as read on a host with iproute2 6.15."""
    of_tbf = {"rate": 1_250_000, "burst": 1523, "lat": 158_785}
    tbf = {"kind": "tbf", "dev": "eth1", "handle": "1:", "root": True, "options": of_tbf}
    child = {"dev": "eth1", "parent": "1:1", "handle": "2b29:", **json.loads(queue)}
    child["options"] = {**child["options"], **others}
    return json.dumps([tbf, child])


CODEL = '{"kind": "codel", "options": {"limit": 133, "target": 4999, "interval": 99999}}'
RED = '{"kind": "red", "options": {"limit": 200000, "min": 30000, "max": 30000, "ecn": true, "harddrop": false}}'


@pytest.mark.parametrize(
    ("queue", "text", "wrong"),
    [
        ("{size: 200kB, discipline: codel}", shown(CODEL), []),
        ("{size: 200kB, discipline: codel, target: 5ms, ecn: false}", shown(CODEL), []),
        ("{size: 200kB, discipline: codel, target: 2ms}", shown(CODEL), ["queue.target is 4.999, should be 2.0"]),
        ("{size: 200kB, discipline: codel, ecn: true}", shown(CODEL), ["queue.ecn is false, should be true"]),
        ("{size: 200kB, discipline: codel, mark: 1ms}", shown(CODEL), ["queue.mark is none, should be 1.0"]),
        (
            "{size: 200kB, discipline: codel}",
            shown(CODEL, limit=1000),
            ["the size of codel is 1000 packets, should be 133"],
        ),
        ("{size: 200kB, discipline: cake}", shown(CODEL), ["the queue discipline is codel, should be cake"]),
        ("{size: 200kB, discipline: red, min: 30kB, max: 30kB, ecn: true}", shown(RED), []),
        (
            "{size: 200kB, discipline: red, min: 30kB}",
            shown(RED),
            ["queue.max is 30000, should be 90000"],
        ),
        (
            "200kB",
            shown(CODEL),
            ["rate is 10 Mbit/s, should be none", "a queueing discipline codel that is not the lab's, beside pfifo"],
        ),
    ],
)
def test_what_a_host_shows_is_compared(queue: str, text: str, wrong: list[str]) -> None:
    found = shaping.differences(on_host(queue), text, carried=True)
    assert found == [f"eth1: {each}" for each in wrong]


def test_a_tbf_without_the_discipline_is_named() -> None:
    (tbf, _) = json.loads(shown(CODEL))
    found = shaping.differences(on_host("{size: 200kB, discipline: codel}"), json.dumps([tbf]), carried=True)
    assert found == ["eth1: the queue discipline is fifo, should be codel"]


@given(
    name=st.sampled_from([*disciplines.DISCIPLINES]),
    size=st.integers(1514, 10**9),
    ends=st.lists(st.integers(1, 10**9), min_size=0, max_size=2).map(sorted),
)
def test_every_size_is_at_least_a_frame_and_thresholds_stand_in_order(name: str, size: int, ends: list[int]) -> None:
    way = Shaping(rate_mbit=10, queue_bytes=size, queue_discipline=name)  # type: ignore[arg-type]
    assert disciplines.DISCIPLINES[name].size(way, 1514) >= 1
    for least, most in ((None, None), (ends[0] if ends else None, ends[-1] if ends else None)):
        low, high = disciplines.thresholds(way.model_copy(update={"queue_min_bytes": least, "queue_max_bytes": most}))
        assert 1 <= low <= high


@pytest.mark.parametrize(("rate", "mtu", "burst"), [(10, 1500, 1523), (1000, 9000, 9518), (100_000, 1500, 51_518)])
def test_a_burst_in_front_of_a_wire_is_one_frame_and_what_a_late_timer_takes(rate: float, mtu: int, burst: int) -> None:
    assert shaping.frame_burst_bytes(rate, mtu) == burst


@pytest.mark.parametrize(("word", "value"), [("off", "0"), ("on", "1"), ("accurate", "3")])
def test_ecn_of_a_host_is_in_its_plan_and_no_baseline(word: str, value: str) -> None:
    plan = parse(
        f"name: e\ntime: virtual\nhosts: {{ams: {{ecn: {word}}}, bra: }}\nlinks: [{{ends: [ams, bra]}}]\n", "e.yaml"
    )
    assert [each.in_words for each in plan.host("ams").sysctls] == [f"net.ipv4.tcp_ecn = {value}"]
    assert plan.host("bra").sysctls == ()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_another_word_for_ecn_is_refused() -> None:
    with pytest.raises(InputError, match="'yes' is not a choice of ECN: write off, on or accurate"):
        parse("name: e\nhosts: {ams: {ecn: yes}, bra: }\nlinks: [{ends: [ams, bra]}]\n", "e.yaml")


def test_accurate_ecn_is_of_virtual_time() -> None:
    text = "name: e\ntime: real\nhosts: {ams: {ecn: accurate}, bra: }\nlinks: [{ends: [ams, bra]}]\n"
    assert parse(text.replace("real", "virtual"), "e.yaml").host("ams").sysctls
    with pytest.raises(InputError, match="accurate ECN exists only in virtual time"):
        parse(text, "e.yaml")
