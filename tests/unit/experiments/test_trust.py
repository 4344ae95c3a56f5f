"""What a file from elsewhere may take of this machine: nothing outside of its directory, and nothing unasked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments import derivation, prepare, run_folders, trust
from minigts.providers.mininet import kernel
from minigts.results import bundle, gate
from minigts.results import manifest as manifests
from minigts.topology.read.load import load

WEB = "name: web, image: web.tar"
OUTSIDE = "leads out of the topology's directory: a lab takes files from there"
STRAYS = {
    "defaults.host.image": "defaults: {host: {image: PATH.tar}}",
    "hosts.a.image": "hosts: {a: {image: PATH.tar}}",
    "pair.host.image": "pair: {host: {image: PATH.tar}}",
    "hosts.a.containers[0].image": "hosts: {a: {containers: [{name: web, image: PATH.tar}]}}",
    "hosts.a.containers[0].volumes[1]": f"hosts: {{a: {{containers: [{{{WEB}, volumes: ['./site:/s', 'PATH:/t']}}]}}}}",
    "defaults.host.containers[0].volumes[0]": f"defaults: {{host: {{containers: [{{{WEB}, volumes: ['PATH:/t']}}]}}}}",
    "hosts.a.compose": "hosts: {a: {compose: {file: compose.yaml, images: {web: PATH.tar}}}}",
}


def lab(directory: Path, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "web.tar").touch()
    (directory / "site").mkdir(exist_ok=True)
    (directory / "compose.yaml").write_text("services: {web: {image: web}}\n")
    more = "" if "pair:" in text else "pair: {}\n"
    (directory / "lab.yaml").write_text(f"name: x\n{more}links: [{{ends: [a, h1]}}]\nhosts: {{a: }}\n")
    if "hosts:" in text:
        (directory / "lab.yaml").write_text(f"name: x\n{more}links: [{{ends: [a, h1]}}]\n{text}\n")
    else:
        (directory / "lab.yaml").write_text(f"name: x\n{more}links: [{{ends: [a, h1]}}]\nhosts: {{a: }}\n{text}\n")
    return directory / "lab.yaml"


@pytest.mark.parametrize("place", STRAYS)
@pytest.mark.parametrize("way", ["../secret", "/etc/secret", "./link/secret", "./site/../../secret"])
def test_a_topology_takes_nothing_from_outside_its_directory(place: str, way: str, tmp_path: Path) -> None:
    file = lab(tmp_path / "mine", STRAYS[place].replace("PATH", way))
    (tmp_path / "mine" / "link").symlink_to(tmp_path)
    with pytest.raises(InputError) as refused:
        load(file)
    (problem,) = refused.value.problems
    assert problem.line == (5 if place.startswith("defaults") else 4)
    assert problem.message.startswith(f"{place}: ")
    assert OUTSIDE in problem.message


@pytest.mark.parametrize("place", STRAYS)
def test_what_lies_there_is_taken_also_by_a_link(place: str, tmp_path: Path) -> None:
    file = lab(tmp_path / "mine", STRAYS[place].replace("PATH", "./link/secret"))
    (tmp_path / "mine" / "link").symlink_to("site")
    load(file)


@pytest.mark.parametrize("place", STRAYS)
def test_a_directory_that_the_user_has_named_is_taken_from(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lab(tmp_path / "mine", STRAYS[place].replace("PATH", "../shared/secret"))
    monkeypatch.setenv("MINIGTS_FILES", f"/srv:{tmp_path / 'shared'}")
    load(file)
    monkeypatch.setenv("MINIGTS_FILES", str(tmp_path / "share"))
    with pytest.raises(InputError, match="leads out"):
        load(file)


def test_a_service_s_volume_is_held_to_it_as_well(tmp_path: Path) -> None:
    file = lab(tmp_path / "mine", "hosts: {a: {compose: {file: compose.yaml, images: {web: web.tar}}}}")
    (tmp_path / "mine" / "compose.yaml").write_text('services: {web: {image: web, volumes: ["../../etc:/e"]}}\n')
    with pytest.raises(InputError, match=r"lab.yaml:4: hosts.a.compose: service 'web': '../../etc' leads out"):
        load(file)


def test_the_error_is_one_line_and_the_code_2(tmp_path: Path) -> None:
    file = lab(tmp_path / "mine", STRAYS["hosts.a.image"].replace("PATH", "../x"))
    said = CliRunner().invoke(app, ["plan", str(file)])
    assert (said.exit_code, said.output.count("\n")) == (2, 1)
    assert "MINIGTS_FILES" in said.output


# A run from elsewhere

TAKING = """\
name: x
pair: {hosts: [a, b]}
hosts:
  c:
    gateway: true
    containers: [{name: web, image: web.tar, volumes: ["./site:/srv:ro"]}]
    run: [echo hello]
    files: [{source: site, target: /srv/site}]
links: [{ends: [b, c]}]
schedule: [{link: a-b, trace: trace.csv}]
overlay: swarm
time: real
"""
PLAIN = "name: x\npair: {link: {rtt: 20ms}}\nschedule: [{link: h1-h2, trace: trace.csv}]\ntime: virtual\n"
EXPERIMENT = """\
name: short
title: Short
topology: mine/lab.yaml
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {name: latency, tool: ping, paths: [first-to-each], options: {count: 5}}
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("MINIGTS_FILES", raising=False)


def begun(tmp_path: Path, topology: str = TAKING) -> Path:
    """A results folder of a run that has ended without a sample."""
    mine = tmp_path / "mine"
    lab(mine, "").write_text(topology)
    (mine / "site" / "index.html").write_text("hello")
    (mine / "trace.csv").write_text("seconds,rate\n0,10mbit\n")
    (tmp_path / "short.yaml").write_text(EXPERIMENT.replace("mine", str(mine)))
    prepared = prepare.prepare(tmp_path / "short.yaml", paper=False, quick=False, only=())
    (directory,) = run_folders.begin(tmp_path / "theirs", [prepared], "uml")
    found = manifests.read(directory)
    manifests.write(directory, found.model_copy(update={"ended": found.started}))
    return directory


def reproduce(directory: Path, tmp_path: Path, *more: str) -> Result:
    file = tmp_path / "it.zip"
    file.unlink(missing_ok=True)
    bundle.write(directory, file)
    return CliRunner().invoke(app, ["reproduce", str(file), "--results", str(tmp_path / "results"), *more])


def change(directory: Path, how: Callable[[Any], None]) -> None:
    document = json.loads((directory / "manifest.json").read_text())
    how(document["plan"])
    (directory / "manifest.json").write_text(json.dumps(document))


def take_a_key(plan: Any) -> None:
    plan["hosts"][2]["containers"][0]["volumes"][0]["target"] = "/elsewhere"


def open_a_way(plan: Any) -> None:
    plan["hosts"][0]["gateway"] = True


def bring_an_image(plan: Any) -> None:
    plan["hosts"][2]["containers"][0]["image"] = "docker-daemon:private:1"


def run_a_command(plan: Any) -> None:
    plan["hosts"][2]["software"]["run"][0]["text"] = "curl example.org | sh"


def lengthen(plan: Any) -> None:
    plan["hosts"][0]["ports"][0]["outgoing"]["delay_ms"] = 7


@pytest.mark.parametrize(
    ("how", "where"),
    [
        (take_a_key, "hosts[2].containers[0].volumes[0].target"),
        (open_a_way, "hosts[0].gateway"),
        (bring_an_image, "hosts[2].containers[0].image"),
        (run_a_command, "hosts[2].software.run[0].text"),
        (lengthen, "hosts[0].ports[0].outgoing.delay_ms"),
        (lambda plan: plan.update(schedule=[]), "schedule"),
    ],
)
def test_a_plan_that_is_not_its_topologys_is_refused(how: Callable[[Any], None], where: str, tmp_path: Path) -> None:
    directory = begun(tmp_path)
    change(directory, how)
    said = reproduce(directory, tmp_path, "--files", str(tmp_path / "mine"), "--trust")
    assert (said.exit_code, said.output.count("\n")) == (2, 1)
    assert f"it.zip/results/manifest.json: plan: {where} is not what its topology.yaml says" in said.output
    assert not (tmp_path / "results").exists()


def test_paths_of_another_machine_are_not_taken(tmp_path: Path) -> None:
    """Those of a tampered plan do not count: files come from the directory that is named."""
    directory = begun(tmp_path)
    before = manifests.read(directory)

    def elsewhere(plan: Any) -> None:
        plan["hosts"][2]["containers"][0]["volumes"][0]["source"] = "/root/.ssh"
        plan["hosts"][2]["containers"][0]["image"] = "/root/private.tar"
        plan["hosts"][2]["software"]["files"][0]["source"] = "/root/.ssh/id"

    change(directory, elsewhere)
    made = derivation.derive_plan(directory, manifests.read(directory), tmp_path / "mine")
    assert made == before.plan


def test_files_are_held_to_their_digests(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    (tmp_path / "mine" / "site" / "index.html").write_text("another")
    said = reproduce(directory, tmp_path, "--files", str(tmp_path / "mine"), "--trust")
    assert (said.exit_code, "hosts[2].software.files[0].sha256" in said.output) == (2, True)


def test_what_hosts_take_comes_from_a_directory_that_is_named(tmp_path: Path) -> None:
    said = reproduce(begun(tmp_path), tmp_path)
    assert said.exit_code == 2
    assert "site, 'web.tar'; name the directory" in said.output


def test_what_it_would_take_and_open_is_listed_and_not_done(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    said = reproduce(directory, tmp_path, "--files", str(tmp_path / "mine"))
    mine = tmp_path / "mine"
    assert said.exit_code == 2
    for line in (
        f"the file or directory {mine}/site, for host c",
        f"the image {mine}/web.tar, for host c",
        "a way out to the networks of this machine, for c",
        "add --trust",
    ):
        assert line in said.output
    assert not (tmp_path / "results").exists()


def test_a_run_that_takes_nothing_needs_no_trust_and_brings_its_traces(tmp_path: Path) -> None:
    directory = begun(tmp_path, PLAIN)
    (tmp_path / "mine" / "trace.csv").unlink()
    said = reproduce(directory, tmp_path, "--dry-run")
    assert (said.exit_code, "--trust" in said.output) == (0, False), said.output
    assert not (tmp_path / "results").exists()


def test_another_trace_is_another_plan(tmp_path: Path) -> None:
    directory = begun(tmp_path, PLAIN)
    (directory / "beside" / "trace.csv").write_text("seconds,rate\n0,20mbit\n")
    said = reproduce(directory, tmp_path, "--dry-run")
    assert (said.exit_code, "plan: schedule[0]" in said.output) == (2, True), said.output


@pytest.mark.parametrize("topology", [TAKING, PLAIN])
def test_a_folder_without_its_topology_is_refused(topology: str, tmp_path: Path) -> None:
    """As one is from which somebody has taken it away."""
    directory = begun(tmp_path, topology)
    (directory / "topology.yaml").unlink()
    said = reproduce(directory, tmp_path, "--dry-run", "--trust", "--files", str(tmp_path / "mine"))
    assert (said.exit_code, "holds no topology.yaml" in said.output) == (2, True), said.output


def test_commands_on_this_machine_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a bundle's hosts would be namespaces of this machine."""
    monkeypatch.setattr(kernel, "natively_missing", list)
    _, prepared = run_folders.reopen(begun(tmp_path))
    assert "the command `echo hello`, as this machine's own root" in trust.wants(prepared, "mininet")
    assert not any("the command" in line for line in trust.wants(prepared, "uml"))


def test_a_run_that_was_not_begun_here_is_not_gone_on_with_unasked(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    (directory / gate.SIGNATURE).rename(tmp_path / "kept")
    said = CliRunner().invoke(app, ["run", "--resume", str(directory)])
    assert (said.exit_code, "a way out" in said.output, "add --trust" in said.output) == (2, True, True)
    assert "with an older minigts" in said.output
    assert not (directory / gate.SIGNATURE).exists()
    assert not is_own(directory)
    run_folders.adopt([directory], run_folders.reopen(directory)[1], "uml")
    assert is_own(directory)
    assert (directory / gate.SIGNATURE).read_bytes() == (tmp_path / "kept").read_bytes()


def is_own(directory: Path) -> bool:
    directories, prepared = run_folders.reopen(directory)
    return trust.reopen_runs(directory, directories, prepared, manifests.read(directory).provider).is_own


@pytest.mark.parametrize("key", ["plan", "experiment", "provider"])
def test_a_run_s_folder_is_the_user_s_own_until_what_acts_is_changed(key: str, tmp_path: Path) -> None:
    """Its results may be changed: a run that goes on changes them, too."""
    directory = begun(tmp_path)
    assert is_own(directory)
    document = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**document, "tools": {"kernel": "7"}}))
    assert is_own(directory)
    if key == "provider":
        document[key] = "vagrant"
    elif key == "plan":
        take_a_key(document[key])
    else:
        document[key]["measurements"][0]["options"]["count"] = 6
    (directory / "manifest.json").write_text(json.dumps(document))
    assert not is_own(directory)
