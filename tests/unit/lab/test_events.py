"""What is told of a lab: each change that is recorded, once, in order, and nothing that is broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
import tc_hosts
from typer.testing import CliRunner

from live.program import until
from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import HostFailed
from minigts.lab import Lab, events
from minigts.providers import registry
from minigts.topology.read.load import parse

TEXT = "name: pair\npair: {link: {delay: 5ms, rate: 50mbit}}\n"
runner = CliRunner()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    tc_hosts.use(monkeypatch, tmp_path)
    return labs.up(parse(TEXT, "pair.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)


def told(lab: Lab) -> list[dict[str, object]]:
    """Without the time of day."""
    return [{name: value for name, value in each.items() if name != "time"} for each in events.read(lab.rundir)]


CHANGES: dict[str, tuple[Callable[[Lab], object], dict[str, object]]] = {
    "set": (
        lambda lab: labs.update_settings(lab, "h1-h2", {"delay_ms": 20}, "h1"),
        {"event": "set", "link": "h1-h2", "how": "from h1: delay 20 ms"},
    ),
    "cut": (lambda lab: labs.set_links_up(lab, "h1", "h2", up=False), {"event": "cut", "link": "h1-h2"}),
    "restarted": (lambda lab: labs.restart(lab, "h2"), {"event": "restarted", "host": "h2"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_told_once(lab: Lab, name: str) -> None:
    assert told(lab)[0] == {"event": "begun", "provider": "tc-hosts", "lab_time": "real"}
    assert [each["event"] for each in told(lab)][-1] == "up"
    before = told(lab)
    change, expected = CHANGES[name]
    change(lab)
    assert told(lab) == [*before, expected]


class PausedHosts(tc_hosts.TcHosts):
    """See `providers.base.Power`."""

    name = "paused-hosts"

    def kill(self, host: str) -> None: ...

    def pause(self, host: str) -> None: ...

    def resume(self, host: str) -> None: ...


def test_a_host_that_is_paused_is_told_and_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(_self: object, _host: str) -> None:
        raise HostFailed("its kernel has ended")

    tc_hosts.use(monkeypatch, tmp_path)
    monkeypatch.setitem(registry._PROVIDERS, PausedHosts.name, PausedHosts)
    lab = labs.up(parse(TEXT, "pair.yaml"), PausedHosts.name, None, lambda _: None)
    labs.pause(lab, "h2")
    assert lab.state_of_hosts()["h2"] == "paused"
    assert labs.dead_links(lab.plan, lab.read_record()) == {"h1-h2"}
    labs.resume(lab, "h2")
    assert [each["event"] for each in told(lab)[-2:]] == ["paused", "resumed"]
    monkeypatch.setattr(PausedHosts, "resume", ended)
    labs.pause(lab, "h2")
    with pytest.raises(HostFailed):
        labs.resume(lab, "h2")
    labs.restart(lab, "h2")
    assert (lab.read_record().paused, lab.read_record().unsettled) == (frozenset(), frozenset())


def test_what_is_put_back_is_told_too(lab: Lab) -> None:
    CHANGES["set"][0](lab)
    CHANGES["cut"][0](lab)
    labs.heal(lab)
    labs.update_settings(lab, "h1-h2", {"delay_ms": None})
    assert told(lab)[-2:] == [
        {"event": "whole", "link": "h1-h2"},
        {"event": "set", "link": "h1-h2", "how": "as declared"},
    ]


def test_the_verb_prints_lines_of_json(lab: Lab) -> None:
    done = runner.invoke(app, ["events"])
    assert done.exit_code == 0, done.output
    assert next(json.loads(line)["event"] for line in done.stdout.splitlines()) == "begun"


def test_who_follows_hears_all_until_the_lab_is_down(lab: Lab) -> None:
    heard: list[object] = []

    def listen() -> None:
        for each in events.follow(lab.rundir):
            heard.append(each["event"])  # noqa: PERF401, it is looked at meanwhile

    listening = Thread(target=listen)
    listening.start()
    assert until(lambda: heard[-1:] == ["up"], patience_s=60)
    CHANGES["cut"][0](lab)
    assert until(lambda: heard[-1] == "cut", patience_s=60)
    labs.down(lab)
    listening.join(timeout=60)
    assert not listening.is_alive()
    assert (heard[0], heard[-3:]) == ("begun", ["up", "cut", "down"])


def test_who_follows_hears_what_came_just_before_the_lab_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rundir = tmp_path / "lab"
    rundir.mkdir()
    events.note(rundir, [{"event": "up"}], None)

    def between_two_looks(_seconds: float) -> None:
        events.note(rundir, [{"event": "cut"}], None)
        shutil.rmtree(rundir)

    monkeypatch.setattr(events.time, "sleep", between_two_looks)
    assert [each["event"] for each in events.follow(rundir)] == ["up", "cut", "down"]


@pytest.mark.parametrize("broken", [b'{"event": "cu', b"\xff\xfe\n", b"[1]\n", b"\n\n"])
def test_what_a_crash_has_left_is_no_event(lab: Lab, broken: bytes) -> None:
    before = told(lab)
    with (lab.rundir / events.FILE).open("ab") as file:
        file.write(broken)
    assert told(lab) == before
    CHANGES["cut"][0](lab)
    assert told(lab) == [*before, CHANGES["cut"][1]]


def test_a_long_file_loses_its_older_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LIMIT_BYTES", 2000)
    for number in range(100):
        events.note(tmp_path, [{"event": "set", "number": number}], 1.5)
    kept = events.read(tmp_path)
    assert (tmp_path / events.FILE).stat().st_size < 2200
    assert kept[-1]["number"] == 99
    assert kept[-1]["lab_s"] == 1.5


def test_a_file_that_is_somebody_elses_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine\n")
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / events.FILE).symlink_to(tmp_path / "other")
    events.note(tmp_path / "lab", [{"event": "up"}], None)
    assert (tmp_path / "other").read_text() == "mine\n"
