"""Schedules: what a file may say, the moments that come of it, and that they are played and put back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import tc_hosts
import wired_hosts
from typer.testing import CliRunner

from fake_provider import WIRINGS
from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import HostFailed, InputError
from minigts.experiments import link_changes
from minigts.lab import Lab, schedule_player
from minigts.providers import registry
from minigts.providers.base import CommandResult
from minigts.topology.link_settings import SETTABLE
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse
from minigts.topology.schedule import MOST_MOMENTS, Moment

TEXT = """name: pair
time: virtual
hosts: {a: {}, b: {}}
links:
- {ends: [a, b], rtt: 20ms, rate: 20mbit}
schedule:
"""
OFTEN = "{every: 2s, until: 7s, link: a-b, set: [{rate: 5mbit}, {rate: 10mbit}]}"
runner = CliRunner()


def plan_of(*steps: str) -> Plan:
    return parse(TEXT + "".join(f"- {step}\n" for step in steps), "pair.yaml")


def told(plan: Plan) -> list[tuple[float, str]]:
    return [(moment.at_s, moment.in_words) for moment in plan.schedule]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (["{at: 1500ms, link: a-b, set: {delay: 40ms, loss: 1%}}"], [(1.5, "delay 40 ms, loss 1 percent")]),
        (["{at: 0s, link: a-b, set: {delay: declared}}"], [(0, "delay declared")]),
        ([OFTEN], [(2, "rate 5 mbit"), (4, "rate 10 mbit"), (6, "rate 5 mbit")]),
        (["{at: 0s, every: 3s, until: 3s, link: a-b, cut: 1s}"], [(0, "cut"), (1, "whole"), (3, "cut"), (4, "whole")]),
        (
            ["{at: 2s, link: a-b, set: {rate: 1mbit}}", "{at: 1s, link: a-b, cut: 1s}"],
            [(1, "cut"), (2, "rate 1 mbit"), (2, "whole")],
        ),
    ],
)
def test_steps_come_to_moments_in_order(steps: list[str], expected: list[tuple[float, str]]) -> None:
    assert told(plan_of(*steps)) == expected


@pytest.mark.parametrize(
    ("name", "content", "until", "expected"),
    [
        ("rates.csv", "seconds,rate\n0,20mbit\n1.5, 5mbit\n", "", [(0, "rate 20 mbit"), (1.5, "rate 5 mbit")]),
        (
            "delays.csv",
            "seconds,delay\n0,20ms\n1,5ms\n",
            ", at: 1s, until: 4s",
            [(1, "delay 20 ms"), (2, "delay 5 ms"), (3, "delay 20 ms")],
        ),
    ],
)
def test_a_trace_comes_to_moments(
    tmp_path: Path, name: str, content: str, until: str, expected: list[tuple[float, str]]
) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / "pair.yaml").write_text(f"{TEXT}- {{link: a-b, trace: {name}{until}}}\n")
    assert told(load(tmp_path / "pair.yaml"))[: len(expected)] == expected


PHONE = "10\n20\n20\n150\n210\n"


def of_trace(tmp_path: Path, content: str, until: str = "", link: str = "", time: str = "virtual") -> Plan:
    (tmp_path / "phone.up").write_text(content)
    text = TEXT.replace("rate: 20mbit", f"rate: 20mbit{link}").replace("time: virtual", f"time: {time}")
    (tmp_path / "pair.yaml").write_text(f"{text}- {{link: a-b, trace: phone.up{until}}}\n")
    return load(tmp_path / "pair.yaml")


@pytest.mark.parametrize(
    ("content", "until", "expected"),
    [
        (PHONE, "", [(0, "10 10x2 130 60"), (0.21, None)]),
        (PHONE, ", at: 1s, until: 7s", [(1, "10 10x2 130 60"), (7, None)]),
        ("1\n" * 60, "", [(0, "1x60"), (0.001, None)]),
        ("0\n0\n5\n10\n15\n", "", [(0, "0x2 5*3"), (0.015, None)]),
    ],
)
def test_the_clock_gets_a_trace_of_mahimahi_whole(
    tmp_path: Path, content: str, until: str, expected: list[tuple[float, str | None]]
) -> None:
    moments = of_trace(tmp_path, content, until).schedule
    assert [(each.at_s, each.update["trace"]) for each in moments] == expected


def test_sixty_packets_a_millisecond_are_720_mbit(tmp_path: Path) -> None:
    assert told(of_trace(tmp_path, "1\n" * 60))[0][1].startswith("trace of 720 Mbit/s, 60 packets in 0.001 s")


def test_an_hour_at_ten_milliseconds_is_two_moments(tmp_path: Path) -> None:
    plan = of_trace(tmp_path, "".join(f"{10 * number}\n" for number in range(1, 360_001)))
    assert [moment.at_s for moment in plan.schedule] == [0, 3600]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # Intervals of equal length up to 100 ms: 210 ms are three of 70 ms, and the mean stays what it is.
        (PHONE, [(0, "rate 0.514286 mbit"), (0.07, "rate 0.008 mbit"), (0.14, "rate 0.342857 mbit")]),
        ("250\n", [(0, "rate 0.008 mbit"), (0.166666667, "rate 0.144 mbit")]),
        ("1\n" * 60, [(0, "rate 720 mbit")]),
    ],
)
@pytest.mark.parametrize("how", ["real time", "a discipline"])
def test_where_no_clock_plays_it_a_trace_is_rates_of_intervals(
    tmp_path: Path, content: str, expected: list[tuple[float, str]], how: str
) -> None:
    queue = ", queue: {discipline: fq_codel}" if how == "a discipline" else ""
    plan = of_trace(tmp_path, content, link=queue, time="real" if how == "real time" else "virtual")
    assert told(plan) == expected


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("{at: 1s, link: a-c, set: {delay: 1ms}}", "schedule[0].link: no link 'a-c'; links are a-b"),
        ("{at: 1s, link: a-b, from: c, set: {delay: 1ms}}", "schedule[0].from: 'c' is no end of a-b: a and b are"),
        ("{at: 1s, link: a-b, set: {delay: 40}}", "schedule[0].set.delay: '40' lacks its unit"),
        ("{at: 1s, link: a-b, set: {speed: 40ms}}", "'speed' cannot be set: write delay"),
        ("{at: 1s, link: a-b, set: {}}", "says nothing to set"),
        ("{at: 1s, link: a-b}", "a step has one of `set:`, `cut:`, `down:` and `trace:`"),
        ("{link: a-b, set: {delay: 1ms}}", "a step says when"),
        ("{every: 1s, link: a-b, set: {delay: 1ms}}", "`every:` without `until:`"),
        ("{every: 0s, until: 1s, link: a-b, cut: 1s}", "would never come to an end"),
        ("{at: 1s, until: 2s, link: a-b, cut: 1s}", "nothing is repeated"),
        ("{at: 1s, link: a-b, set: [{delay: 1ms}, {delay: 2ms}]}", "several settings are taken in turn"),
        ("{at: 1s, link: a-b, from: a, cut: 1s}", "carries nothing either way"),
        ("{at: 1s, link: a-b, from: a, down: 1s}", "carries nothing either way"),
        ("{at: 1s, link: a-b, end: a, cut: 1s}", "`end:` is the end that loses its carrier"),
        ("{at: 1s, link: a-b, end: c, down: 1s}", "schedule[0].end: 'c' is no end of a-b: a and b are"),
        ("{at: 1s, link: a-b, cut: 1s, down: 1s}", "a step has one of"),
        ("{every: 1ms, until: 1h, link: a-b, cut: 1s}", f"more than {MOST_MOMENTS} moments"),
    ],
)
def test_what_cannot_be_played_is_refused_with_its_place(step: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_of(step)
    assert says in str(caught.value)
    assert "pair.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gone.csv", None, "gone.csv is not there"),
        ("a.csv", "0,20mbit\n", "has no heading"),
        ("a.csv", "seconds,rate\n0,20\n", "line 2: '20' lacks its unit"),
        ("a.csv", "seconds,rate\n1,20mbit\n1,3mbit\n", "line 3: 1 s: times must ascend"),
        ("a.csv", "seconds,rate\nnan,20mbit\n", "line 2: nan s: times must ascend"),
        ("a.csv", "seconds,rate\n", "has no points"),
        ("a.up", "", "has no points"),
        ("a.up", "10\nx\n", "line 2: 'x' is no millisecond"),
        ("a.up", "10\n5\n", "line 2: 5 ms is before the line above"),
        ("a.up", "0\n0\n", "ends at 0 ms: the last line of a trace says when it begins again"),
        ("a.up", "10\n\n20\n", "line 2: '' is no millisecond"),
    ],
)
def test_a_trace_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, name: str, content: str | None, says: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    (tmp_path / "pair.yaml").write_text(f"{TEXT}- {{link: a-b, trace: {name}}}\n")
    with pytest.raises(InputError) as caught:
        load(tmp_path / "pair.yaml")
    assert says in str(caught.value)


def test_a_plan_without_a_schedule_does_not_mention_it() -> None:
    assert "schedule" not in parse(TEXT.removesuffix("schedule:\n"), "pair.yaml").model_dump_json()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(tc_hosts.TcHosts, "pace_s", 0.0)
    wired_hosts.register(monkeypatch)
    plan = plan_of("{at: 20ms, link: a-b, from: a, set: {rate: 5mbit}}", "{at: 30ms, link: a-b, cut: 10ms}")
    return labs.up(plan, tc_hosts.TcHosts.name, None, lambda _: None)


def test_each_change_is_made_at_its_moment_and_taken_back_at_the_end(lab: Lab) -> None:
    seen, before = [], dict(WIRINGS[lab.rundir].wires)

    def see(change: schedule_player.Played) -> None:
        wire = WIRINGS[lab.rundir].wires["a", "eth1"]
        rate_mbit, loss_percent = (wire.amount_of(SETTABLE[word]) for word in ("rate", "loss"))
        seen.append((change.in_words, rate_mbit, loss_percent, dict(change.amounts)))
        assert change.moment.at_s <= change.at_s < change.moment.at_s + 5

    schedule_player.play(lab, lab.plan.schedule, see)
    assert seen == [
        ("a-b from a: rate 5 mbit", 5, 0, {"a-b from a rate_mbit": 5}),
        ("a-b: cut", 5, 100, {"a-b up": 0}),
        ("a-b: whole", 5, 0, {"a-b up": 1}),
    ]
    assert WIRINGS[lab.rundir].wires == before
    assert (lab.read_record().changed, lab.read_record().cut, lab.read_record().unsettled) == (
        {},
        frozenset(),
        frozenset(),
    )


def test_a_schedule_that_is_broken_off_leaves_links_as_they_were(lab: Lab) -> None:
    def stop(_: schedule_player.Played) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        schedule_player.play(lab, lab.plan.schedule, stop)
    assert lab.read_record().changed == {}


def test_the_verb_says_what_it_plays(lab: Lab) -> None:
    done = runner.invoke(app, ["play"])
    assert done.exit_code == 0, done.output
    assert [line.split(" s  ")[1] for line in done.stdout.splitlines()] == [
        "a-b from a: rate 5 mbit",
        "a-b: cut",
        "a-b: whole",
    ]
    refused = runner.invoke(app, ["play", "a"])
    assert refused.exit_code == 2
    assert "name the command for a" in refused.output


def test_what_has_no_effect_is_refused_before_anything_is_changed(lab: Lab) -> None:
    with pytest.raises(InputError, match="a-b: a burst without a loss"):
        schedule_player.play(lab, [Moment(at_s=0, link="a-b", update={"burst_packets": 8})], lambda _: None)
    assert lab.read_record().changed == {}


def test_what_was_set_when_is_read_from_a_raw_file() -> None:
    text = link_changes.line(0.0, {"a-b rate_mbit": 20}) + link_changes.line(1.5, {"a-b rate_mbit": 5})
    assert link_changes.time_series(text) == {"set a-b rate_mbit": [(0, 20), (1.5, 5)]}
    with pytest.raises(ValueError, match="no line of a schedule"):
        link_changes.time_series('{"at_s": 1}')


class Told(tc_hosts.TcHosts):
    """Hosts that note how long a schedule may take them, and answer as the script would."""

    limits: ClassVar[list[float]] = []
    shown = "[]"

    def run(self, host: str, argv: Sequence[str], *, timeout_s: float, **how: Any) -> CommandResult:
        if list(argv) != ["bash", "-s"]:
            return super().run(host, argv, timeout_s=timeout_s, **how)
        self.limits.append(timeout_s)
        return CommandResult(host, tuple(argv), 0, f"1000000\n{self.shown}\n", "", 0.0)


@pytest.mark.parametrize(("at", "at_s"), [("1s", 1.0), ("300s", 300.0)])
def test_a_host_has_the_schedules_time_and_a_minute_more_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, at_s: float
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(Told, "pace_s", 0.0)
    monkeypatch.setattr(Told, "limits", [])
    monkeypatch.setitem(registry._PROVIDERS, Told.name, Told)
    text = TEXT.replace("time: virtual", "time: real")
    plan = parse(f"{text}- {{at: {at}, link: a-b, from: a, set: {{rate: 5mbit}}}}\n", "pair.yaml")
    lab = labs.up(plan, Told.name, None, lambda _: None)
    states = schedule_player._states(lab.plan, lab.read_record(), plan.schedule)
    with pytest.raises(HostFailed, match="links are not as the schedule has set them"):
        schedule_player._told(lab, plan.host("a"), plan.schedule, states, 0.0)
    monkeypatch.setattr(Told, "shown", "")
    with pytest.raises(HostFailed, match="a has shown 0 of 1 changes of a schedule"):
        schedule_player._told(lab, plan.host("a"), plan.schedule, states, 0.0)
    assert Told.limits == [schedule_player.AHEAD_S + at_s + schedule_player.SPARE_S] * 2
