"""What a certificate's measurements ask of hosts: for how long, how far apart, over which paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import tc_hosts

from minigts import lab as labs
from minigts.errors import CommandFailed
from minigts.fidelity import measure, rates, round_trips, sample
from minigts.fidelity.rates import MeasuredPath
from minigts.lab import Lab
from minigts.lab.calibration import EchoReplies
from minigts.providers.base import CommandResult
from minigts.topology.read.load import parse

PAIR = "name: x\ntime: {time}\nhosts: {{a: , b: }}\nlinks: [{{ends: [a, b], {settings}}}]\n"


@dataclass
class Asked:
    """A lab whose hosts note what they are asked, and answer by `answer`."""

    text: str
    answer: Callable[[], str] = lambda: ""
    asked: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def lab(self) -> Lab:
        provider = SimpleNamespace(run=self._run, pace_s=0.004)
        return cast(Lab, SimpleNamespace(plan=parse(self.text, "x.yaml"), provider=provider))

    def _run(self, host: str, argv: Any, *, timeout_s: float, check: bool = True) -> CommandResult:
        self.asked.append(tuple(argv))
        return CommandResult(host, tuple(argv), 0, self.answer(), "", 0.0)


def pair(settings: str, time: str = "virtual") -> str:
    return PAIR.format(time=time, settings=settings)


def options(words: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in pairwise(words) if name in ("-t", "-O", "-c", "-i", "-W")}


@pytest.mark.parametrize(
    ("rtt_ms", "queue_s", "how", "slow_start", "measured"),
    [
        (2.0, 0.0, {}, "1", "1"),
        (200.0, 0.0, {}, "6", "1"),  # thirty round trips
        (2.0, 0.5, {}, "3", "1"),  # six full queues
        (2.0, 0.0, {"least_slow_start_s": 3}, "3", "1"),
        (50.0, 0.0, {"least_round_trips": 60}, "2", "3"),
    ],
)
def test_tcp_is_measured_after_its_slow_start(
    rtt_ms: float, queue_s: float, how: dict[str, int], slow_start: str, measured: str
) -> None:
    asked = Asked(pair("rtt: 2ms"))
    mbit, why = rates.tcp_mbit(asked.lab, MeasuredPath("a", "b", "10.0.0.2", rtt_ms, queue_s=queue_s), **how)
    assert mbit is None
    assert why
    client = next(words for words in asked.asked if words[0] == "iperf3")
    assert options(client) == {"-c": "10.0.0.2", "-t": measured, "-O": slow_start}


def test_a_longer_measurement_of_a_rate_lasts_a_hundred_full_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of 100 kB is sent at 10 Mbit/s in 80 ms."""
    seen: list[MeasuredPath] = []

    def tcp_mbit(_lab: Lab, way: MeasuredPath) -> tuple[float, str]:
        seen.append(way)
        return 9.5, ""

    monkeypatch.setattr(rates, "tcp_mbit", tcp_mbit)
    lab = Asked(pair("rtt: 2ms, rate: 10mbit, queue: 100kB")).lab
    [way] = rates._rated(lab.plan.links[0])
    assert rates._rate_row(lab, way, longer=True).ok
    assert rates._rate_row(lab, way).ok
    assert [(each.queue_s, each.seconds) for each in seen] == [(pytest.approx(0.08), 8), (pytest.approx(0.08), 1)]


def test_echo_requests_to_far_away_wait_for_three_round_trips() -> None:
    asked = Asked(pair("rtt: 2000ms"))
    round_trips._pings(asked.lab, "a", "10.0.0.2", 10, 0.2, 2000.0)
    assert options(asked.asked[0]) == {"-c": "10", "-i": "0.2", "-W": "6"}


@pytest.mark.parametrize(
    ("settings", "time", "apart_s"),
    [
        ("rtt: 2ms", "virtual", 0.004),  # the provider's pace
        ("rtt: 60ms, jitter: 20ms", "virtual", 0.04),
        ("rtt: 200ms, jitter: 80ms", "real", 0.05),
        ("rtt: 2ms, rate: 0.1mbit", "virtual", 2 * 98 * 8 / 100_000),  # twice an echo's own time
    ],
)
def test_probes_are_so_far_apart_that_none_waits_for_the_one_before(settings: str, time: str, apart_s: float) -> None:
    lab = Asked(pair(settings, time)).lab
    assert round_trips._apart_s(lab, lab.plan.paths[0]) == pytest.approx(apart_s)


def test_where_a_host_has_no_route_no_request_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["Error: Network is unreachable (os error 101)", "Error: Permission denied (os error 13)"]

    def probe(*_words: object, **_how: object) -> EchoReplies:
        raise CommandFailed("a", ["probe"], 1, "", said.pop(0))

    monkeypatch.setattr(round_trips, "probe", probe)
    lab = Asked(pair("rtt: 2ms")).lab
    assert round_trips.echoes(lab, "a", "10.0.0.2", 5, 0.01) == EchoReplies(0, ())
    with pytest.raises(CommandFailed, match="Permission denied"):
        round_trips.echoes(lab, "a", "10.0.0.2", 5, 0.01)


@pytest.mark.parametrize(("extent", "paths"), [("full", 7), ("quick", sample.PATHS)])
def test_beside_links_the_paths_that_cover_them_are_measured_or_a_sample(
    extent: sample.Extent, paths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tc_hosts.use(monkeypatch, tmp_path)  # from `a` to each other client
    text = "name: star\ntime: real\nstar: {centre: hub, clients: [a, b, c, d, e, f, g, h], link: {rtt: 2ms}}\n"
    (tmp_path / "star.yaml").write_text(text)
    lab = labs.up(parse(text, "star.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)
    made = measure.certify(lab, lambda _: None, extent=extent)
    links = {link.name for link in lab.plan.links}
    over_several = [row for row in made.rows if row.quantity == "RTT" and row.subject not in links]
    assert len(over_several) == paths, [row.subject for row in over_several]
