"""What Vagrant does with the Vagrantfile and provision/vagrant/booting.rb, from a checkout whose name needs quoting.

Vagrant is real; minigts is a stand-in that writes down how it was called; libvirt is libvirt's own test driver.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from minigts.providers.vagrant import definition, prerequisites
from minigts.providers.vagrant.definition import Definition
from minigts.topology.read.load import load

PROJECT = Path(__file__).parents[3]
BOOTING = PROJECT / "provision" / "vagrant" / "booting.rb"
LIMIT_S = 180.0
pytestmark = pytest.mark.skipif(
    bool([name for name, present in prerequisites.packages().items() if not present]),
    reason="the provider's packages are not installed: minigts setup vagrant",
)
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys, time
place = pathlib.Path(__file__).resolve().parent
with (place / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[2] == "definition":
    print("building the box", file=sys.stderr, flush=True)
    while (place / "wait").exists():
        time.sleep(0.05)
    if (place / "fail").exists():
        print("minigts: no such thing", file=sys.stderr)
        sys.exit(3)
    print((place / "definition.json").read_text())
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what Vagrant reads, with the stand-in, and the definition that it gives."""
    place = tmp_path / """it's a "checkout", 100 % new"""
    shutil.copytree(PROJECT / "provision" / "vagrant", place / "provision" / "vagrant")
    shutil.copy(PROJECT / "Vagrantfile", place)
    (place / "minigts").write_text(STAND_IN)
    (place / "minigts").chmod(0o755)
    (place / "key").touch(mode=0o600)
    plan = load(PROJECT / "topologies" / "pair.yaml")
    made = Definition(
        lab="pair",
        uri="test:///default",
        proxy_command=None,
        box="minigts",
        box_version="1.0.1",
        catalogue="",
        private_key=str(place / "key"),
        known_hosts="",
        prefix=definition.prefix(place),
        processor=definition.processor("emulation"),
        at_once=2,
        boot_timeout_s=20,
        machines=definition.machines(plan, place, place),
    )
    (place / "definition.json").write_text(made.model_dump_json())
    return place


def vagrant(checkout: Path, *words: str, **environ: str) -> subprocess.Popen[bytes]:
    own = {"VAGRANT_HOME": str(checkout / "home"), "VAGRANT_DOTFILE_PATH": "", **environ}
    inherited = {name: value for name, value in os.environ.items() if name not in ("TOPOLOGY", "MINIGTS_DEFINITION")}
    return subprocess.Popen(
        ["vagrant", *words],
        cwd=checkout,
        env={**inherited, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def ended(started: subprocess.Popen[bytes]) -> tuple[int, str]:
    said, _ = started.communicate(timeout=LIMIT_S)
    return started.returncode, said.decode(errors="replace")


def calls(checkout: Path) -> list[list[str]]:
    return [json.loads(line) for line in (checkout / "calls").read_text().splitlines()]


def test_what_minigts_does_is_said_while_it_does_it(checkout: Path) -> None:
    (checkout / "wait").touch()
    started = vagrant(checkout, "status")
    assert started.stdout is not None
    said, deadline = b"", time.monotonic() + LIMIT_S
    while b"building the box" not in said and time.monotonic() < deadline:
        if select.select([started.stdout], [], [], 1)[0]:
            said += os.read(started.stdout.fileno(), 4096)
    running = started.poll() is None
    (checkout / "wait").unlink()
    ended(started)
    assert running
    assert b"building the box" in said


def test_what_minigts_refuses_is_its_own_message_and_exit_code(checkout: Path) -> None:
    (checkout / "fail").touch()
    code, said = ended(vagrant(checkout, "status"))
    assert (code, said) == (3, "building the box\nminigts: no such thing\n")


@pytest.mark.parametrize(
    ("words", "start"),
    [
        pytest.param(("status",), [], marks=pytest.mark.nightly),
        pytest.param(("ssh-config", "ams"), [], marks=pytest.mark.nightly),
        (("up", "--no-provision", "bra"), ["--start", "--machine=bra"]),
        pytest.param(("reload",), ["--start"], marks=pytest.mark.nightly),
    ],
)
def test_minigts_is_asked_once_with_every_word_as_it_is(
    checkout: Path, words: tuple[str, ...], start: list[str]
) -> None:
    (checkout / "fail").touch()
    ended(vagrant(checkout, *words, TOPOLOGY="topologies/it's.yaml"))
    directory = ["--directory", str(checkout / ".vagrant")]
    assert calls(checkout) == [
        ["libvirt", "definition", *directory, *start, "--", str(checkout / "topologies" / "it's.yaml")]
    ]


def test_the_definition_is_asked_for_once_however_often_the_vagrantfile_is_read(checkout: Path) -> None:
    code, said = ended(vagrant(checkout, "status"))
    assert code == 0, said
    assert len(calls(checkout)) == 1
    assert calls(checkout)[0][-1] == "--"


@pytest.mark.nightly
def test_after_a_destroy_minigts_is_told_for_every_machine(checkout: Path) -> None:
    code, said = ended(vagrant(checkout, "destroy", "-f"))
    assert code == 0, said
    assert calls(checkout)[1:] == [["libvirt", "left", "--directory", str(checkout / ".vagrant")]] * 2


def test_vagrants_directory_is_the_one_that_it_uses(checkout: Path) -> None:
    (checkout / "fail").touch()
    ended(vagrant(checkout, "status", VAGRANT_DOTFILE_PATH="an other"))
    assert calls(checkout)[0][3] == str(checkout / "an other")


def test_it_was_tried_with_the_versions_that_are_here(checkout: Path) -> None:
    """Steps of vagrant-libvirt that are hooked into are nobody's interface. With another version: run the live tests of
    the provider, tests/live/test_vagrant*.py, and then add it to TRIED."""
    tried = {
        name: re.findall(r"[\d.]+", versions)
        for name, versions in re.findall(r'"(vagrant|vagrant-libvirt)" => %w\[([^]]*)\]', BOOTING.read_text())
    }
    _, said = ended(vagrant(checkout, "--version"))
    _, plugins = ended(vagrant(checkout, "plugin", "list"))
    here = {
        "vagrant": re.findall(r"Vagrant ([\d.]+)", said),
        "vagrant-libvirt": re.findall(r"vagrant-libvirt \(([\d.]+)", plugins),
    }
    assert all(len(found) == 1 for found in here.values()), here
    assert {name: set(found) <= set(tried[name]) for name, found in here.items()} == dict.fromkeys(tried, True), here


WITHOUT_STEPS = """
module Vagrant
  module Errors; class VagrantError < StandardError; end; end
  def self.plugin(_version)
    Class.new { class << self; def name(_name = nil) = nil; def action_hook(*words) = puts(words.first); end }
  end
end
module VagrantPlugins; module ProviderLibvirt; module Action; class StartDomain; end; end; end; end
require ARGV.fetch(0)
driver = Object.new
machine = Struct.new(:provider, :name).new(Struct.new(:driver).new(driver), "ams")
Minigts::Domain.new(->(_) { puts "went on" }, {}).call({ machine: machine })
"""


def test_what_another_vagrant_libvirt_lacks_is_a_warning_and_the_rest_works() -> None:
    done = subprocess.run(
        ["ruby", "-e", WITHOUT_STEPS, str(BOOTING)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["minigts-Minigts::InTurn", "minigts-Minigts::Domain", "went on"]
    warnings = done.stderr.splitlines()
    assert [warning.split(";")[0] for warning in warnings] == [
        "minigts: this vagrant-libvirt has no WaitTillUp",
        "minigts: this vagrant-libvirt has no connection",
    ]
    assert all("0.11.2, 0.12.2" in warning for warning in warnings)
