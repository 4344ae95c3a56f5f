"""Packages for hosts: fetched once for all that ask for the same, named with their line when there are none such."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from minigts.errors import EnvironmentLacks, InputError
from minigts.foreign import Foreign
from minigts.providers import supported
from minigts.providers.base import CommandResult
from minigts.providers.mininet.provider import MininetProvider
from minigts.providers.uml.build import image, layers, package_images
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.provider import launch_of
from minigts.providers.uml.run.command_line import GuestKernel
from minigts.providers.uml.run.supervisor import Launch
from minigts.providers.vagrant.provider import VagrantProvider
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

FETCH = 'echo "$@" >>{asked}; echo {said}; touch "$2/a.deb"; exit {code}'
TEXT = """name: x
defaults: {host: {packages: [curl, nginx]}}
hosts:
  a: {packages: [redis=1.2, curl]}
  b: {packages: [curl, redis=1.2]}
  c: {packages: []}
  d:
links: [{ends: [a, b]}, {ends: [b, c]}, {ends: [c, d]}]
"""


def plan() -> Plan:
    return parse(TEXT, "x.yaml")


Fetching = Callable[..., Path]


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """An image, in a cache of its own, on a machine that lacks nothing."""
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "missing_to_build", lambda: [])
    return Image(tmp_path / "cache" / "images" / "0123")


@pytest.fixture
def fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fetching:
    """What fetches says and ends with; the file in which each call is noted."""

    def make(said: str = "", code: int = 0) -> Path:
        asked = tmp_path / "asked"
        script = tmp_path / "fetch.sh"
        script.write_text("#!/bin/sh\n" + FETCH.format(asked=asked, said=f'"{said}"', code=code))
        script.chmod(0o755)
        (tmp_path / "install.sh").write_text("the script")
        monkeypatch.setattr(package_images, "_script", lambda name: tmp_path / name)
        return asked

    return make


def fetch(host: str, ready: Image) -> Path:
    return package_images.archives(plan(), plan().host(host), ready, lambda _: None)


def test_hosts_that_ask_for_the_same_have_what_is_fetched_once(ready: Image, fetching: Fetching) -> None:
    asked = fetching()
    first = fetch("a", ready)
    assert [path.name for path in first.iterdir()] == ["a.deb"]
    assert fetch("b", ready) == first
    assert fetch("d", ready) != first
    assert [line.split()[2:] for line in asked.read_text().splitlines()] == [["curl", "redis=1.2"], ["curl", "nginx"]]


def test_another_image_has_other_layers(ready: Image, fetching: Fetching) -> None:
    fetching()
    assert package_images.key(["curl"], ready) != package_images.key(["curl"], Image(ready.directory.with_name("4567")))


@pytest.mark.parametrize(
    ("host", "said", "problem"),
    [
        (
            "d",
            "E: Unable to locate package nginx",
            "x.yaml:2: defaults.host.packages[1]: Debian has no package 'nginx'",
        ),
        ("d", "E: Package 'nginx' has no installation candidate", "no package 'nginx'"),
        (
            "a",
            "E: Version '1.2' for 'redis' was not found",
            "x.yaml:4: hosts.a.packages[0]: Debian has no version '1.2'",
        ),
        (
            "b",
            "E: Version '1.2' for 'redis' was not found",
            "x.yaml:5: hosts.b.packages[1]: Debian has no version '1.2'",
        ),
    ],
)
def test_a_package_that_there_is_not_is_a_problem_with_its_line(
    ready: Image, fetching: Fetching, host: str, said: str, problem: str
) -> None:
    fetching(said, 100)
    with pytest.raises(InputError, match=re.escape(problem)):
        fetch(host, ready)
    assert not list(ready.directory.parents[1].glob("layers/*/*"))


def test_a_mirror_that_does_not_answer_is_what_is_said(ready: Image, fetching: Fetching) -> None:
    fetching("E: Failed to fetch a://b Could not connect", 100)
    with pytest.raises(EnvironmentLacks, match="MINIGTS_DEBIAN_MIRROR"):
        fetch("a", ready)


def test_a_machine_starts_from_its_own_layer_and_others_from_the_image(ready: Image, tmp_path: Path) -> None:
    launch = launch_of(plan(), ready, tmp_path, {"a": tmp_path / "layer" / "root.ext4"})
    launch.write(tmp_path / "launch.json")
    read = Launch.read(tmp_path / "launch.json")
    assert [str(read.base_of(machine).relative_to(tmp_path)) for machine in read.machines[:2]] == [
        "layer/root.ext4",
        "cache/images/0123/root.ext4",
    ]
    assert GuestKernel(**{**json.loads((tmp_path / "launch.json").read_text())["machines"][1], "ports": ()}).base == ""


def test_mininet_refuses_them_before_it_starts_anything(tmp_path: Path) -> None:
    provider = MininetProvider(tmp_path)
    with pytest.raises(EnvironmentLacks, match=r"x.yaml:4: hosts.a.packages\[0\]: a, b, d .* not support packages"):
        supported.require(plan(), provider.name, provider.supports)
    assert list(tmp_path.iterdir()) == []


class Machines(VagrantProvider):
    """What is copied to machines and run on them is noted down."""

    def __init__(self, rundir: Path) -> None:
        super().__init__(rundir)
        self.done: list[tuple[str, ...]] = []

    def put(self, host: str, source: Path, target: PurePosixPath) -> None:
        self.done.append((host, source.name, str(target)))

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        self.done.append((host, *argv, stdin.decode()))
        return CommandResult(host, tuple(argv), 0, "curl 8.0\n", "", 0.0)


def test_virtual_machines_install_the_same_archives(
    ready: Image, fetching: Fetching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching()
    monkeypatch.setattr(image, "ensure", lambda _say: ready)
    machines = Machines(tmp_path / "lab")
    for name in "abd":
        (machines.rundir / "hosts" / name).mkdir(parents=True)
    machines._install_packages(plan(), lambda _: None)
    target = "/var/tmp/minigts-packages"
    assert sorted(machines.done) == sorted(
        step for host in "abd" for step in ((host, "archives", target), (host, "bash", "-s", target, "the script"))
    )
    assert (machines.rundir / "hosts" / "a" / "packages.lock").read_text() == "curl 8.0\n"


def test_a_layer_is_the_changed_copy_and_nothing_that_made_it_is_left(
    ready: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.directory.mkdir(parents=True)
    ready.root.write_bytes(b"the image")
    layer = tmp_path / "layer"
    layer.mkdir()
    said: list[str] = []

    def changed(place: Path, boot: Path, change: Callable[[layers.Put, layers.Run], None], what: str) -> None:
        assert (boot, what) == (ready.boot, "packages")
        assert (place / layers.ROOT).read_bytes() == b"the image"
        (place / layers.ROOT).write_bytes(b"the image and curl")
        change(lambda _source, _target: None, lambda _argv, _stdin: Foreign("curl 8.0\n"))

    monkeypatch.setattr(layers, "_changed", changed)
    package_images._install(["curl"], ready, layer, said.append)
    assert sorted(path.name for path in layer.iterdir()) == sorted([layers.ROOT, package_images.VERSIONS])
    assert ((layer / layers.ROOT).read_bytes(), ready.root.read_bytes()) == (
        b"the image and curl",
        b"the image",
    )
    assert (layer / package_images.VERSIONS).read_text() == "curl 8.0\n"
    assert said == ["installing curl into a copy of the image, once"]


def test_a_disk_without_room_is_said_before_anything_is_copied(
    ready: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.directory.mkdir(parents=True)
    ready.root.write_bytes(b"the image")
    monkeypatch.setattr(
        layers.shutil, "disk_usage", lambda _: SimpleNamespace(free=(package_images.SPARE_MB << 20) - 1)
    )
    with pytest.raises(
        EnvironmentLacks, match=rf"{package_images.SPARE_MB} MB in .*; {package_images.SPARE_MB - 1} MB are free"
    ):
        package_images._install(["curl"], ready, tmp_path / "layer", lambda _: None)
    assert not (tmp_path / "layer").exists()
