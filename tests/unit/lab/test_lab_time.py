"""Real and virtual time: what a file and a command say, and who refuses what."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tc_hosts
import wired_hosts
from pydantic import ValidationError
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments import prepare, run_folders
from minigts.fidelity import explanation
from minigts.fidelity.host_load import recording
from minigts.providers import registry
from minigts.providers.uml.provider import UmlProvider
from minigts.providers.uml.virtual import VirtualUmlProvider
from minigts.results import manifest as manifests
from minigts.session.campaign import Means, lab_for
from minigts.topology.plan.elements import Processor
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load, parse
from minigts.topology.time import Time

PROJECT = Path(__file__).parents[3]

TEXT = """name: small
hosts: {a: , b: }
links: [{ends: [a, b], rtt: 4ms}]
"""
EXPERIMENT = """name: small
title: A small one
topology: small.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {name: rtt, tool: ping, paths: [{from: a, to: b}]}
"""
OTHERS = [name for name in registry.names() if name != "uml"]
runner = CliRunner()


def quiet(_: str) -> None:
    pass


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a topology that says nothing of time, one in virtual time, and an experiment on the first."""
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    (tmp_path / "small.yaml").write_text(TEXT)
    (tmp_path / "virtual.yaml").write_text(TEXT + "time: virtual\n")
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def virtual(place: Path, monkeypatch: pytest.MonkeyPatch) -> type[tc_hosts.TcHosts]:
    """The provider `tc-hosts`, of another class in virtual time."""
    wired_hosts.register(monkeypatch)
    return wired_hosts.WiredHosts


@pytest.mark.parametrize("time", ["real", "virtual"])
def test_the_plan_has_the_file_s_time_unless_another_is_asked_for(place: Path, time: str) -> None:
    assert load(place / "virtual.yaml").time == "virtual"
    assert load(place / "virtual.yaml", time=time).time == time  # type: ignore[arg-type]
    for words in (["virtual.yaml"], ["small.yaml", "--time", "virtual"]):
        assert json.loads(runner.invoke(app, ["plan", "--json", *words]).stdout)["time"] == "virtual"


@pytest.mark.parametrize(
    ("option", "experiment", "topology", "provider", "time"),
    [
        (None, None, None, "uml", "virtual"),
        (None, None, None, "mininet", "real"),
        (None, None, None, "vagrant", "real"),
        (None, None, "real", "uml", "real"),
        (None, "virtual", "real", "uml", "virtual"),
        (None, "real", "virtual", "uml", "real"),
        (None, "real", None, "uml", "real"),
        ("virtual", "real", "real", "uml", "virtual"),
        ("real", "virtual", "virtual", "mininet", "real"),
    ],
)
def test_the_option_wins_over_the_experiment_over_the_topology_over_the_provider_s_best(
    place: Path, option: Time | None, experiment: str | None, topology: str | None, provider: str, time: str
) -> None:
    (place / "small.yaml").write_text(TEXT + (f"time: {topology}\n" if topology else ""))
    (place / "experiment.yaml").write_text(EXPERIMENT + (f"time: {experiment}\n" if experiment else ""))
    prepared = prepare.prepare(
        place / "experiment.yaml", paper=False, quick=False, only=(), time=option, provider=provider
    )
    assert prepared.plan.time == time
    if experiment is None:
        words = ["small.yaml", "--provider", provider, *(("--time", option) if option else ())]
        assert json.loads(runner.invoke(app, ["plan", "--json", *words]).stdout)["time"] == time


def test_the_best_time_of_every_provider_is_one_that_it_has(tmp_path: Path) -> None:
    assert {name: registry.best_time(name) for name in registry.names()} == {
        "uml": "virtual",
        "vagrant": "real",
        "mininet": "real",
    }
    for name in registry.names():
        registry.make(name, tmp_path, registry.best_time(name))
    with pytest.raises(InputError, match=r"no provider 'umk'; providers are .*; did you mean 'uml'"):
        registry.best_time("umk")


@pytest.mark.parametrize("file", sorted((PROJECT / "topologies").glob("*.yaml")), ids=lambda file: str(file.stem))
def test_every_shipped_topology_is_one_of_every_provider_s(file: Path, tmp_path: Path) -> None:
    """Without an option; modelled processors and light hosts are virtual time's."""
    virtual = any(host.processor is not None or host.light for host in load(file, best="virtual").hosts)
    for name in registry.names():
        if not virtual or registry.has_virtual_time(name):
            registry.make(name, tmp_path, load(file, best=registry.best_time(name)).time)


def test_one_topology_in_two_times_is_two_labs(place: Path) -> None:
    (place / "other.yaml").write_text(EXPERIMENT.replace("name: small", "name: other") + "time: real\n")
    files = [place / "experiment.yaml", place / "other.yaml"]
    prepared = prepare.prepare_all(files, paper=False, quick=False, only=())
    directories = run_folders.begin(place / "results", prepared, "uml")
    groups = prepare.directories_by_plan(directories, prepared)
    assert [(plan.time, [path.name for path in own]) for plan, own in groups] == [
        ("virtual", ["small"]),
        ("real", ["other"]),
    ]
    again = run_folders.reopen(directories[0].parent)[1]
    assert {each.plan.time for each in again} == {"virtual", "real"}


@pytest.mark.parametrize(("written", "remedy"), [("", ", or `time: real` in the file"), ("time: real\n", "")])
def test_what_says_nothing_in_virtual_time_is_told_how_to_be_in_real_time(
    place: Path, written: str, remedy: str
) -> None:
    (place / "small.yaml").write_text(TEXT.replace(", rtt: 4ms", ""))
    (place / "experiment.yaml").write_text(EXPERIMENT + written)
    with pytest.raises(InputError, match=rf"; write --time real{re.escape(remedy)}, or for rtt give the hosts"):
        prepare.prepare(place / "experiment.yaml", paper=False, quick=False, only=(), time="virtual")
    if written:
        assert prepare.prepare(place / "experiment.yaml", paper=False, quick=False, only=()).samples


def test_another_word_is_refused_with_its_line() -> None:
    with pytest.raises(InputError, match=r"t.yaml:4: time: 'virtul' is not a lab's time.*did you mean 'virtual'"):
        parse(TEXT + "time: virtul\n", "t.yaml")
    done = runner.invoke(app, ["up", "t.yaml", "--time", "virtul"])
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_plan_of_before_is_in_real_time() -> None:
    written = parse(TEXT, "t.yaml", time="virtual").model_dump(mode="json")
    del written["time"]
    assert Plan.model_validate(written).time == "real"


def test_the_registry_has_a_provider_for_each_time(tmp_path: Path) -> None:
    assert type(registry.make("uml", tmp_path)) is UmlProvider
    assert type(registry.make("uml", tmp_path, "virtual")) is VirtualUmlProvider
    assert {type(each) for each in registry.every(tmp_path)} >= {UmlProvider, VirtualUmlProvider}


@pytest.mark.parametrize("provider", OTHERS)
@pytest.mark.parametrize(
    "argv",
    [
        ["up", "virtual.yaml", "--provider"],
        ["up", "small.yaml", "--time", "virtual", "--provider"],
        ["run", "experiment.yaml", "--results", "results", "--time", "virtual", "--provider"],
        ["compare", "--providers", "virtual.yaml", "--on"],
    ],
)
def test_others_refuse_virtual_time_before_anything_is_changed(place: Path, argv: list[str], provider: str) -> None:
    before = sorted(place.rglob("*"))
    done = runner.invoke(app, [*argv, provider])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"minigts: provider {provider} has no virtual time: say --time real, or choose --provider uml\n"
    )
    assert sorted(place.rglob("*")) == before


def test_a_lab_that_is_up_is_not_touched_when_the_time_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._PROVIDERS, tc_hosts.TcHosts.name, tc_hosts.TcHosts)
    lab = labs.up(load(place / "small.yaml"), tc_hosts.TcHosts.name, None, quiet)
    record = lab.read_record()
    with pytest.raises(InputError, match="tc-hosts has no virtual time"):
        labs.up(load(place / "virtual.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert lab.read_record() == record
    assert set(lab.state_of_hosts().values()) == {"answers"}


def test_vagrant_refuses_a_file_in_virtual_time(place: Path) -> None:
    done = runner.invoke(app, ["libvirt", "definition", "virtual.yaml"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "provider vagrant has no virtual time" in done.stderr


def test_a_lab_knows_its_time_by_its_plan(place: Path, virtual: type[tc_hosts.TcHosts]) -> None:
    name = tc_hosts.TcHosts.name
    lab = labs.up(load(place / "virtual.yaml"), name, None, quiet)
    assert type(labs.open_lab("small").provider) is virtual
    (shown,) = json.loads(runner.invoke(app, ["status", "--json"]).stdout)
    assert shown["time"] == "virtual"
    assert "small on tc-hosts in virtual time, overlay" in runner.invoke(app, ["status"]).stdout
    with pytest.raises(InputError, match="lab small is up in virtual time, not in real time: minigts down small"):
        labs.up(load(place / "small.yaml"), name, None, quiet)
    labs.down(lab)


def test_a_lab_is_taken_down_without_reading_its_plan(place: Path, virtual: type[tc_hosts.TcHosts]) -> None:
    lab = labs.up(load(place / "virtual.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert lab.read_record().time == "virtual"
    (lab.rundir / "plan.json").write_text("{")
    again = labs.open_lab("small")
    assert (again.time, type(again.provider)) == ("virtual", virtual)
    labs.down(again)
    assert not lab.rundir.exists()


def test_a_link_measured_now_is_recorded_as_its_lab_s_time_has_it(
    place: Path, virtual: type[tc_hosts.TcHosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In virtual time nobody looks at the machine's load."""
    lab = labs.up(load(place / "virtual.yaml"), tc_hosts.TcHosts.name, None, quiet)
    asked: list[str] = []
    monkeypatch.setattr(
        explanation, "recording", lambda roots, time="real": (asked.append(time), recording(roots, time))[1]
    )
    explanation.explain(lab, lab.plan.links[0], measuring=True)
    assert asked == ["virtual"]
    labs.down(lab)


@pytest.mark.parametrize(("file", "said"), [("virtual.yaml", []), ("small.yaml", ["its own latency"])])
def test_the_manifest_says_what_is_taken_off_delays_where_something_is(
    place: Path, virtual: type[tc_hosts.TcHosts], monkeypatch: pytest.MonkeyPatch, file: str, said: list[str]
) -> None:
    monkeypatch.setattr(run_folders, "_readback", lambda _: {})
    lab = labs.up(load(place / file), tc_hosts.TcHosts.name, None, quiet)
    prepared = prepare.prepare_all([place / "experiment.yaml"], paper=False, quick=False, only=())
    (directory,) = run_folders.begin(place / "results", prepared, "uml")
    run_folders.describe_lab([directory], lab, quiet, fresh=True)
    emulator = manifests.read(directory).emulator
    assert [name.partition(",")[0] for name in emulator] == said
    labs.down(lab)


def test_an_experiment_on_a_lab_that_is_up_has_its_time(place: Path, virtual: type[tc_hosts.TcHosts]) -> None:
    made = labs.up(load(place / "virtual.yaml"), tc_hosts.TcHosts.name, None, quiet)
    (prepared,) = prepare.prepare_all([place / "experiment.yaml"], paper=False, quick=False, only=(), time="real")
    with (
        pytest.raises(InputError, match="lab small is in virtual time; the run is in real time"),
        lab_for(prepared.plan, Means(lab="small"), quiet),
    ):
        pass
    (prepared,) = prepare.prepare_all([place / "experiment.yaml"], paper=False, quick=False, only=(), time="virtual")
    with lab_for(prepared.plan, Means(lab="small"), quiet) as found:
        assert found == made


def test_a_run_goes_on_in_the_time_that_it_began_in(place: Path) -> None:
    done = runner.invoke(app, ["run", "--resume", "results", "--time", "virtual"])
    assert done.exit_code == 2
    assert "--time and --resume exclude each other" in done.stderr


PROCESSORS = """name: x
time: virtual
defaults: {host: {processor: {frame: 20us}}}
chain: {hosts: 2, host: {processor: {byte: 0.8ns}}}
hosts:
  a:
  b: {processor: {frame: 1ms, byte: 2ns, call: 5us}}
  c: {processor: {frame: 0ns}}
  d: {processor: }
links: [{ends: [h1, a]}, {ends: [a, b]}, {ends: [b, c]}, {ends: [c, d]}]
"""


def test_the_nearest_processor_holds_as_a_whole() -> None:
    plan = parse(PROCESSORS, "t.yaml")
    frame, byte = Processor(frame_ns=20_000), Processor(byte_ns=0.8)
    expected = {
        "h1": byte,
        "h2": byte,
        "a": frame,
        "b": Processor(frame_ns=1_000_000, byte_ns=2.0, call_ns=5_000),
        "c": None,
    }
    assert {host.name: host.processor for host in plan.hosts} == {**expected, "d": frame}
    assert Plan.model_validate_json(plan_json(plan)) == plan


def test_a_processor_needs_virtual_time_from_the_file_or_the_command() -> None:
    """Where a file without it is refused, and how, is in tests/topologies/processor.yaml."""
    undecided = PROCESSORS.replace("time: virtual\n", "")
    assert parse(undecided, "t.yaml", time="virtual") == parse(PROCESSORS, "t.yaml")
    for text, time in ((undecided, None), (PROCESSORS, "real")):
        with pytest.raises(InputError, match=r"t.yaml:\d: hosts.b.processor: a modelled processor exists only in"):
            parse(text, "t.yaml", time=time)  # type: ignore[arg-type]


def test_a_plan_of_real_time_with_a_processor_is_none() -> None:
    written = parse(PROCESSORS, "t.yaml").model_dump(mode="json")
    with pytest.raises(ValidationError, match="h1: a modelled processor exists only in virtual time, and the plan has"):
        Plan.model_validate(written | {"time": "real"})
