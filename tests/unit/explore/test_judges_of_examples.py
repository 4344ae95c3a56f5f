"""What the tests of docs/examples/explore judge by: forwarding of routers, comparisons of Swarm's tables, leases."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from minigts.lab import events
from minigts.testing.course import Course

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "explore"


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of an example's test."""
    found = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / name / f"test_{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where dataclasses look up their module
    found.loader.exec_module(module)
    return module


SQUARE = {"a-b": ("a", "b"), "b-c": ("b", "c"), "c-d": ("c", "d"), "d-a": ("d", "a")}


def changed(**more: Any) -> dict[str, Any]:
    return {"lab_s": 10.0, **more}


def test_only_packets_with_a_way_are_judged_and_by_the_last_change(monkeypatch: pytest.MonkeyPatch) -> None:
    routing = example("routing", monkeypatch)
    network = routing.Network(SQUARE)
    network.follow(
        [
            changed(event="set", link="a-b", how="loss 100 %"),
            changed(event="set", link="b-c", how="loss 100 %", lab_s=20.0),
            changed(event="set", link="c-d", how="delay 100 ms", lab_s=21.0),
            changed(event="set", link="a-b", how="as declared", lab_s=30.0),
            changed(event="killed", host="d", lab_s=40.0),
            changed(event="started", host="d", lab_s=45.0),
        ]
    )
    assert network.moments[1:] == [10.0, 20.0, 30.0, 40.0, 45.0, 45.0 + routing.BOOT_S]
    sent = {("a", "b", str(at_s)): at_s for at_s in (5.0, 12.0, 19.5, 22.0, 33.0, 60.0, 99.5)}
    sent |= {("a", "d", "41.0"): 41.0, ("a", "c", "42.0"): 42.0, ("b", "c", "55.0"): 55.0}
    judged, lost = routing.judge(network, sent, {("a", "b", "33.0")}, {("a", "b", "12.0")}, 100.0)
    assert judged == [float("inf"), 2.0, 3.0, 7.0, 12.0]
    assert [(each.source, each.target, each.after_s, each.loop) for each in lost] == [
        ("a", "b", float("inf"), False),
        ("a", "b", 2.0, True),
        ("b", "c", 7.0, False),
        ("a", "b", 12.0, False),
    ]


def test_a_comparison_in_vain_that_crossed_another_is_told_from_one_that_did_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    swarm = example("swarm", monkeypatch)
    asked = [(10.0, "a", "asks", "b"), (40.4, "a", "timed out", "b")]
    assert not swarm.crossed(sorted([*asked, (9.0, "a", "answers", "b")]), asked[1])
    assert not swarm.crossed(sorted([*asked, (10.2, "a", "answers", "c")]), asked[1])
    assert swarm.crossed(sorted([*asked, (10.2, "a", "answers", "b")]), asked[1])


LINES = {
    "a": """
time="2026-01-01T00:00:10.5Z" level=debug msg="a(1a): Initiating unsolicited bulk sync for networks [n] with node 2b"
time="2026-01-01T00:01:10.250000000Z" level=error msg="Bulk sync to node 2b timed out"
""",
    "b": """
time="2026-01-01T00:00:11.000000000Z" level=debug msg="b(2b): Initiating  bulk sync for networks [n] with node 1a"
time="2026-01-01T00:00:12.000000000Z" level=debug msg="b(2b): Bulk sync to node 1a took 20.1ms"
""",
}


def test_lines_of_engines_are_told_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = example("swarm", monkeypatch)

    def host(name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, run=lambda *_: SimpleNamespace(stdout=LINES[name]))

    assert swarm.syncs_of(SimpleNamespace(hosts=[host("a"), host("b")])) == [
        (10.5, "a", "asks", "b"),
        (11.0, "b", "answers", "a"),
        (12.0, "b", "is answered by", "a"),
        (70.25, "a", "timed out", "b"),
    ]


def held(client: str, key: str, sent_s: float, answered_s: float) -> dict[str, Any]:
    return {"client": client, "key": key, "sent": int(sent_s * 1e9), "answered": int(answered_s * 1e9)}


def test_a_block_that_two_hosts_have_at_a_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    flannel = example("flannel", monkeypatch)
    one_after_the_other = [held("b", "x", 1, 2), held("c", "x", 2, 4), held("d", "y", 1, 4), held("b", "x", 5, 6)]
    assert flannel.used_twice(one_after_the_other) == []
    assert flannel.used_twice([*one_after_the_other, held("d", "x", 3.5, 9)]) == [
        ("x", "c", "d", 0.5),
        ("x", "d", "b", 1.0),
    ]


def record(event: str, block: str, owner: str = "") -> str:
    value = f'{{"PublicIP":"{owner}"}}' if owner else ""
    return f"{event}\n/coreos.com/network/subnets/{block}\n{value}\n"


def test_a_lease_that_is_written_over_is_told_from_one_that_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    flannel = example("flannel", monkeypatch)
    history = [
        record("PUT", "x", "10.0.0.1"),
        record("PUT", "x", "10.0.0.1"),
        record("DELETE", "x"),
        record("PUT", "x", "10.0.0.2"),
        record("PUT", "y", "10.0.0.1"),
        record("PUT", "x", "10.0.0.3"),
    ]
    store = SimpleNamespace(address="10.0.0.9", run=lambda *_, **__: SimpleNamespace(stdout="".join(history)))
    assert flannel.overwritten(store) == [("x", "10.0.0.2", "10.0.0.3")]


def test_a_test_sees_what_happened_since_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = SimpleNamespace(_lab=SimpleNamespace(rundir=tmp_path))
    events.note(tmp_path, [{"event": "cut", "link": "a-b"}], 1.0)
    course = Course(lab, tmp_path)  # type: ignore[arg-type]
    assert [each["event"] for each in course.happened] == ["cut"]
    events.note(tmp_path, [{"event": "test begun"}, {"event": "killed", "host": "a"}], 2.0)
    assert [(each["event"], each["host"], each["lab_s"]) for each in course.happened] == [("killed", "a", 2.0)]
