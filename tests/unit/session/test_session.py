"""The one door: the same checks, the same overlay and the same campaign, whoever asks; and what is read for it."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import tc_hosts
from keeping_hosts import KeepingHosts
from typer.testing import CliRunner

from minigts import api, overlays, paths, report
from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import HostFailed, InputError, MinigtsError
from minigts.lab import Lab
from minigts.providers import registry
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

CHAIN = "name: chain\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n"
PING = (Path(__file__).parents[1] / "recorded" / "ping-22ms.txt").read_text()
SWEEP = {
    "name": "delays",
    "title": "Delays",
    "seed": 1,
    "topology": "chain.yaml",
    "overlays": ["none"],
    "repetitions": 2,
    "vary": {"chain.hosts": [2, 3]},
    "measurements": [{"name": "latency", "tool": "ping", "paths": ["first-to-each"], "options": {"count": 7}}],
    "claims": [{"latency": "as-declared"}],
}
ONE = {**{key: value for key, value in SWEEP.items() if key != "vary"}, "name": "alone"}
runner = CliRunner()


class PingingHosts(tc_hosts.TcHosts):
    """Hosts that answer `ping` as it has once been recorded."""

    name = "pinging-hosts"
    fails_with = 0
    """The number of hosts with which a lab does not come up."""

    def up(self, plan: Plan, progress: Callable[[str], None]) -> None:
        if len(plan.hosts) == PingingHosts.fails_with:
            raise HostFailed("host h1 does not answer")
        super().up(plan, progress)

    def _answer(self, network: tc_hosts.Network, host: str, argv: list[str], stdin: str) -> str:
        if "ping" in argv:
            return PING
        if argv == ["tc", "-json", "qdisc", "show"]:
            return self._qdiscs(network, host)
        return super()._answer(network, host, argv, stdin)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(tc_hosts.TcHosts, "pace_s", 0.0)
    monkeypatch.setattr(KeepingHosts, "dies_at", "")
    monkeypatch.setattr(PingingHosts, "fails_with", 0)
    for kind in (KeepingHosts, PingingHosts):
        monkeypatch.setitem(registry._PROVIDERS, kind.name, kind)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "image").write_text("first")
    (tmp_path / "chain.yaml").write_text(CHAIN)
    for each in (SWEEP, ONE):
        (tmp_path / f"{each['name']}.yaml").write_text(json.dumps(each))
    return tmp_path


def quiet(_text: str) -> None:
    pass


def by_command(provider: str, overlay: str | None = None) -> None:
    asked = [] if overlay is None else ["--overlay", overlay]
    done = runner.invoke(app, ["up", "chain.yaml", "--provider", provider, *asked], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr


def by_python(provider: str, overlay: str | None = None) -> None:
    api.up("chain.yaml", provider=provider, overlay=overlay)


Door = Callable[[str, str | None], None]
DOORS = pytest.mark.parametrize("door", [by_command, by_python])


def overlay_of(name: str = "chain") -> str | None:
    joined = overlays.joined_overlay(labs.open_lab(name))
    return None if joined is None else joined.name


@DOORS
@pytest.mark.parametrize(
    ("had", "asked", "has"),
    [("swarm", None, "swarm"), ("swarm", "bridge", "bridge"), ("swarm", "none", "none"), (None, None, "none")],
)
def test_a_kept_lab_has_the_overlay_asked_for_else_its_own_else_its_topologys(
    door: Door, had: str | None, asked: str | None, has: str
) -> None:
    by_python(KeepingHosts.name, had)
    lab = labs.open_lab("chain")
    if had is None:
        overlays.leave(lab, quiet)
    labs.keep(lab, quiet)
    door(KeepingHosts.name, asked)
    assert overlay_of() == has


@pytest.mark.parametrize(("had", "asked", "has"), [("swarm", [], "swarm"), ("none", ["--overlay", "swarm"], "swarm")])
def test_a_restored_lab_has_the_overlay_asked_for_else_its_own(had: str, asked: list[str], has: str) -> None:
    by_python(KeepingHosts.name, had)
    labs.save(labs.open_lab("chain"), "first", had, quiet)
    done = runner.invoke(app, ["restore", "first", "--lab", "second", *asked], catch_exceptions=False)
    assert (done.exit_code, overlay_of("second")) == (0, has), done.stderr


def test_a_restored_lab_that_had_no_overlay_has_none() -> None:
    by_python(KeepingHosts.name)
    lab = labs.open_lab("chain")
    overlays.leave(lab, quiet)
    labs.save(lab, "first", None, quiet)
    assert runner.invoke(app, ["restore", "first", "--lab", "second"]).exit_code == 0
    assert overlay_of("second") is None


@DOORS
@pytest.mark.parametrize("overlay", ["swam", "swarm-v6"])
def test_an_overlay_that_there_is_not_is_refused_before_anything_is_started(door: Door, overlay: str) -> None:
    refusal = r"did you mean .swarm.|uses IPv4 alone"
    with pytest.raises((InputError, AssertionError), match=refusal):
        door(PingingHosts.name, overlay)
    assert not paths.labs_root().exists()


def broken_join(_lab: Lab, _name: str, _say: Callable[[str], None]) -> None:
    raise MinigtsError("it cannot be joined")


def test_a_lab_whose_overlay_fails_is_left_up_by_the_command_and_taken_down_from_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overlays, "join", broken_join)
    with pytest.raises(MinigtsError, match="it cannot be joined"):
        api.up("chain.yaml", provider=PingingHosts.name)
    assert labs.all_labs() == []
    done = runner.invoke(app, ["up", "chain.yaml", "--provider", PingingHosts.name])
    assert [lab.name for lab in labs.all_labs()] == ["chain"]
    note = "lab chain is left up, without overlay none, to be looked at; it is taken down by: minigts down chain"
    assert note in done.stderr


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file of run directories is read, and how often a provider is made."""
    counts: Counter[str] = Counter()
    read, make = paths.read_whole, registry.make

    def reading(path: Path, most_bytes: int) -> bytes:
        content = read(path, most_bytes)
        counts[path.name] += 1
        return content

    def making(*words: object) -> object:
        counts["provider"] += 1
        return make(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(paths, "read_whole", reading)
    monkeypatch.setattr(registry, "make", making)
    return counts


def test_what_is_on_disk_is_read_once_an_act(counted: Counter[str]) -> None:
    """The acts of an `up`: hosts and links, certificate (its settings by themselves), overlay. Each read once is what a
    lab with any number of hosts takes, and once more after measuring, since somebody may have set links meanwhile."""
    by_command(PingingHosts.name, "swarm")
    assert {name: counted[name] for name in (paths.LAB, paths.PLAN, "provider")} == {
        paths.LAB: 4,
        paths.PLAN: 0,
        "provider": 1,
    }
    counted.clear()
    assert runner.invoke(app, ["set", "h1-h2", "delay=40ms"]).exit_code == 0
    assert (counted[paths.LAB], counted[paths.PLAN], counted["provider"]) == (2, 1, 1)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def found_in(folder: Path) -> dict[str, list[tuple[str, str, str]]]:
    """By table the samples: which, whether it has a result, its value."""
    tables = sorted(folder.rglob("*samples.csv"))
    return {
        str(path.relative_to(folder)): [(row["sample"], row["ok"], row["value"]) for row in rows(path)]
        for path in tables
    }


def test_an_experiment_and_a_sweep_are_run_from_python_as_by_the_command(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "missing", lambda: ["nothing is drawn"])
    files = ["alone.yaml", "delays.yaml"]
    found = api.run_experiment(files, provider=PingingHosts.name, time="real", results=place / "python")
    argv = ["run", *files, "--provider", PingingHosts.name, "--time", "real", "--results", "command"]
    done = runner.invoke(app, argv, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    (folder,) = (place / "command").iterdir()
    samples = found_in(found.directory)
    assert samples == found_in(folder)
    assert all(ok == "true" for table in samples.values() for _, ok, _ in table)
    alone, delays = found.runs
    assert [each.directory.name for each in (alone, delays, *delays.runs)] == [
        "alone",
        "delays",
        "chain.hosts=2",
        "chain.hosts=3",
    ]
    assert ([len(each.summary) for each in (alone, delays, found)], found.failed) == ([2, 3, 5], 0)
    assert labs.all_labs() == []


def test_of_an_experiment_only_the_parts_that_are_named_are_run(place: Path) -> None:
    both = json.loads((place / "alone.yaml").read_text())
    (echoes,) = both["measurements"]
    both.update(measurements=[echoes, {**echoes, "name": "again"}], claims=[{"latency": "as-declared", "of": "again"}])
    found = api.run_experiment(both, provider=PingingHosts.name, time="real", only=["again"])
    assert [(row.measurement, row.target) for row in found.summary] == [("again", "h2"), ("again", "h3")]


def test_a_lab_that_fails_ends_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PingingHosts, "fails_with", 2)
    said: list[str] = []
    found = api.run_experiment("delays.yaml", provider=PingingHosts.name, time="real", say=said.append)
    assert [row.source for row in found.summary] == ["h1", "h1"]
    assert "minigts: chain.hosts=2: host h1 does not answer" in said


def test_a_run_goes_on_on_the_provider_that_it_was_begun_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PingingHosts, "fails_with", 3)
    with pytest.raises(HostFailed):
        api.run_experiment("alone.yaml", provider=PingingHosts.name, time="real", results=place / "results")
    monkeypatch.setattr(PingingHosts, "fails_with", 0)
    monkeypatch.setattr(report, "missing", lambda: ["nothing is drawn"])
    (folder,) = (place / "results").iterdir()
    refused = runner.invoke(app, ["run", "--resume", str(folder), "--provider", KeepingHosts.name])
    assert refused.exit_code == 2
    assert f"the run was begun on {PingingHosts.name}, and continues there" in refused.stderr
    done = runner.invoke(app, ["run", "--resume", str(folder)])
    assert (done.exit_code, len(api.open_results(folder).summary)) == (0, 2), done.stderr


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"on": "local"}, "--on: alone would run in real time"),
        ({"on": "nowhere"}, "--on nowhere: an engine is local"),
        ({"quick": True, "paper": True}, "--paper and --quick exclude each other"),
        ({"replicates": 5}, "in real time, where each repetition is an independent sample"),
        ({"only": ["latencies"]}, "experiment alone has no latencies; it has latency, none"),
    ],
)
def test_what_the_command_refuses_is_refused_from_python(place: Path, asked: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        api.run_experiment("alone.yaml", provider=PingingHosts.name, time="real", **asked)  # type: ignore[arg-type]
    assert not (place / "results").exists()


def test_an_engine_and_a_lab_that_is_up_exclude_each_other() -> None:
    with api.up(parse(CHAIN, "chain.yaml"), provider=PingingHosts.name) as lab:
        with pytest.raises(InputError, match="--on and --lab exclude each other"):
            api.run_experiment("alone.yaml", lab=lab, on="local")
        assert api.run_experiment("alone.yaml", lab=lab).failed == 0
        assert [each.name for each in api.all_labs()] == ["chain"]
