"""Verbs that go on until somebody ends them, hand something over, or bring labs up: on hosts that need no kernel."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tc_hosts
from experiment_lab import recorded
from typer.testing import CliRunner

from live.program import until
from minigts import lab as labs
from minigts.cli.app import app
from minigts.cli.options import lab_option
from minigts.lab import Lab, events
from minigts.lessons import breaks
from minigts.providers import registry
from minigts.providers.base import CommandResult
from minigts.topology.read.load import parse

TEXT = "name: pair\npair: {link: {delay: 5ms, rate: 50mbit}}\n"


class Answering(tc_hosts.TcHosts):
    """Hosts that have `cat`, and an iperf3 whose output was recorded."""

    def run(self, host: str, argv: Sequence[str], *, stdin: bytes = b"", **how: Any) -> CommandResult:
        done = super().run(host, argv, **how) if argv[0] == "cat" else super().run(host, argv, stdin=stdin, **how)
        if list(argv) == ["cat"]:
            how["on_output"](stdin)
        if argv[0] == "iperf3":
            return CommandResult(
                host, tuple(argv), 0, recorded(f"iperf3.18-{'udp' if '-u' in argv else 'tcp'}.json"), "", 0
            )
        return done


class Absent(Answering):
    name = "absent"

    def missing(self) -> list[str]:
        return ["this machine has no such thing"]


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(Answering, "pace_s", 0.0)
    for kind in (Answering, Absent):
        monkeypatch.setitem(registry._PROVIDERS, kind.name, kind)


@pytest.fixture
def lab() -> Lab:
    return labs.up(parse(TEXT, "pair.yaml"), Answering.name, None, lambda _: None)


@pytest.mark.usefixtures("lab")
def test_exec_hands_on_what_comes_in_and_only_when_it_is_asked_to() -> None:
    given = b"a line\n\xff\x00 and no end"
    handed = CliRunner().invoke(app, ["exec", "--stdin", "h1", "--", "cat"], input=given)
    assert (handed.exit_code, handed.stdout_bytes) == (0, given)
    alone = CliRunner().invoke(app, ["exec", "h1", "--", "cat"], input=given)
    assert (alone.exit_code, alone.stdout_bytes) == (0, b"")


def test_status_is_shown_again_and_again_as_it_is_then(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            labs.set_links_up(lab, "h1", "h2", up=False)
        elif len(waited) == 2:
            labs.down(lab)
        else:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", wait)
        done = CliRunner().invoke(app, ["status", "--watch", "--every", "0.5", "--json"])
    assert done.exit_code == 0, done.output
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert ([each["name"] for each in first], third) == (["pair"], [])
    assert first != second
    assert "h1-h2" in json.dumps(second)
    assert waited == [0.5] * 3


def test_events_are_followed_from_the_first_until_the_lab_is_down(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    follow, heard = events.follow, list[object]()

    def followed(rundir: Path) -> Iterator[dict[str, Any]]:
        for each in follow(rundir):
            heard.append(each["event"])
            yield each

    def change() -> None:
        assert until(lambda: "up" in heard)
        labs.set_links_up(lab, "h1", "h2", up=False)
        assert until(lambda: "cut" in heard)
        labs.down(lab)

    monkeypatch.setattr(events, "follow", followed)
    changing = threading.Thread(target=change)
    changing.start()
    done = CliRunner().invoke(app, ["events", "--follow"])
    changing.join()
    assert done.exit_code == 0, done.output
    told = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert (told[0], told[-3:]) == ("begun", ["up", "cut", "down"])


def test_events_are_followed_until_their_user_has_enough(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    follow = events.follow

    def followed(rundir: Path) -> Iterator[dict[str, Any]]:
        yield next(iter(follow(rundir)))
        raise KeyboardInterrupt

    monkeypatch.setattr(events, "follow", followed)
    done = CliRunner().invoke(app, ["events", "--follow", lab.name])
    assert (done.exit_code, [json.loads(line)["event"] for line in done.stdout.splitlines()]) == (0, ["begun"])


def test_providers_are_compared_in_rounds_and_leave_no_lab(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(TEXT)
    words = ["compare", "--providers", str(tmp_path / "pair.yaml"), "--rounds", "3"]
    on = ["--on", Answering.name, "--on", Absent.name]
    done = CliRunner().invoke(app, [*words, *on, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["topology"], found["path"], found["rounds"]) == ("pair", "h1-h2", 3)
    assert found["absent"] == {"absent": "this machine has no such thing"}
    seen: dict[str, list[float]] = {}
    for sample in found["samples"]:
        assert sample["provider"] == Answering.name
        seen.setdefault(sample["quantity"], []).append(sample["value"])
    assert {len(values) for values in seen.values()} == {3}
    # Of these hosts each link adds 0.1 ms one way, of which calibration takes off what is the emulator's own.
    assert seen["RTT off by"] == pytest.approx([0.0] * 3, abs=0.25)
    arrives = {name for name in seen if name.endswith(": arrives")}
    assert arrives == {"TCP: arrives", *(f"UDP at {rate} Mbit/s: arrives" for rate in (5, 25, 45))}
    assert labs.all_labs() == []
    shown = CliRunner().invoke(app, [*words, *on])
    assert "pair, h1-h2: medians of 3 rounds" in shown.stdout
    assert "minigts: absent is left out: this machine has no such thing" in shown.stderr


def test_where_no_provider_works_that_is_the_error(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(TEXT)
    done = CliRunner().invoke(app, ["compare", "--providers", str(tmp_path / "pair.yaml"), "--on", Absent.name])
    assert (done.exit_code, labs.all_labs()) == (3, [])
    assert "none of these providers works here" in done.stderr


@pytest.fixture
def broken(lab: Lab) -> None:
    place = breaks.FaultPlace("h2", "h1")
    found = breaks.Broken(seed="ana", what="mtu", place=place, undo="ip link set eth1 mtu 1500")
    lab.put(breaks.FILE, found.model_dump_json())


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        (("mtu", "h2"), 0, ["ok  what: mtu", "ok  where: h2"]),
        (("mtu", "h1"), 1, ["ok  what: mtu", "no  where: h1"]),
        (("ttl", "h2"), 1, ["no  what: ttl", "ok  where: h2"]),
        (("ttl", "h1"), 1, ["no  what: ttl", "no  where: h1"]),
    ],
)
def test_each_half_of_an_answer_is_judged(answer: tuple[str, str], code: int, says: list[str]) -> None:
    done = CliRunner().invoke(app, ["break", "--answer", *answer])
    assert (done.exit_code, done.stdout.splitlines()) == (code, says)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("answer", "says"), [(("mtus", "h1"), "did you mean 'mtu'"), (("mtu", "h3"), "no host 'h3'; hosts are h1, h2")]
)
def test_words_that_no_answer_can_be_are_refused(answer: tuple[str, str], says: str) -> None:
    done = CliRunner().invoke(app, ["break", "--answer", *answer])
    assert (done.exit_code, says in done.stderr) == (2, True), done.output


SQUARE = """name: square
ecmp: true
hosts: {a: , b: , c: , d: }
links: [{ends: [a, b]}, {ends: [b, d]}, {ends: [a, c]}, {ends: [c, d]}]
"""


def test_explain_shows_the_ways_between_two_hosts_that_no_link_joins() -> None:
    labs.up(parse(SQUARE, "square.yaml"), Answering.name, None, lambda _: None)
    done = CliRunner().invoke(app, ["explain", "a", "d"])
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if line.startswith(("there", "back"))] == [
        "there\ta-b, b-d",
        "there\ta-c, c-d",
        "back\tb-d, a-b",
        "back\tc-d, a-c",
    ]
    path = json.loads(CliRunner().invoke(app, ["explain", "d", "a", "--json"]).stdout)
    assert path["ways_there"] == [["b-d", "a-b"], ["c-d", "a-c"]]
    refused = CliRunner().invoke(app, ["explain", "a", "d", "--measure"])
    assert (refused.exit_code, "--measure is for one link, and none joins a and d" in refused.output) == (2, True)


def test_a_command_to_try_names_its_lab_where_several_are_up(lab: Lab) -> None:
    assert lab_option(lab.name) == ""
    labs.up(parse(TEXT, "pair.yaml"), Answering.name, "second", lambda _: None)
    assert lab_option(lab.name) == f"--lab {lab.name} "
    done = CliRunner().invoke(app, ["exec", *lab_option("second").split(), "h1", "--", "true"])
    assert done.exit_code == 0, done.stderr
    assert CliRunner().invoke(app, ["exec", "h1", "--", "true"]).exit_code == 2
