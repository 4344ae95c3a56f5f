"""A seed that hardly gets on says where it is."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from minigts.explore import stalls
from minigts.foreign import Foreign
from minigts.providers.base import WorkOfHost


class Hosts:
    """Two hosts, of which b's programs 7 and 8 work for half a second at each look."""

    def __init__(self, per_look_s: float = 0.0) -> None:
        self.looks, self.per_look_s = 0, per_look_s

    def now_s(self) -> float:
        return self.looks * self.per_look_s

    def work(self) -> dict[str, WorkOfHost]:
        self.looks += 1
        return {"a": WorkOfHost(5.0, {3: 5.0}), "b": WorkOfHost(self.looks * 0.5, {7: 0.1, 8: self.looks * 0.3})}

    def program(self, process: int) -> Foreign:
        return Foreign({8: "sh loop.sh\x1b[2J"}.get(process, ""))


def said_by(hosts: Any, time: str = "virtual") -> list[str]:
    said: list[str] = []
    heard = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        heard.set()

    lab: Any = SimpleNamespace(time=time, provider=hosts)
    with stalls.watch(lab, "seed 3", say, every_s=0.02):
        heard.wait(0.5)
    return said


def test_what_works_is_named_and_where_the_lab_is() -> None:
    said = said_by(Hosts())
    where = "seed 3 is at 0 s of the lab's time after 0 s"
    assert said[0] == f"{where}: sh loop.sh\\x1b[2J on b works (0.5 of 0.02 s of a processor)"


def test_nothing_is_said_while_the_lab_gets_on_and_in_real_time() -> None:
    assert said_by(Hosts(per_look_s=1.0)) == []
    assert said_by(Hosts(), "real") == []
    assert said_by(object()) == []


@pytest.mark.parametrize("took", [0.0, 2.9])
def test_hosts_that_do_next_to_nothing_wait_for_the_test(took: float) -> None:
    before, now = {"a": WorkOfHost(1.0, {})}, {"a": WorkOfHost(1.0 + took, {}), "new": WorkOfHost(50.0, {})}
    assert "the lab waits for the test" in stalls.busiest(Hosts(), before, now, 60.0)
    starved = {"a": WorkOfHost(1.0 + took, {}, waited_s=50.0)}
    assert "wait for this machine's processors" in stalls.busiest(Hosts(), before, starved, 60.0)
    assert stalls.busiest(Hosts(), {}, {}, 60.0) == "its hosts do nothing, the lab waits for the test"
