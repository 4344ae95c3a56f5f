"""Layers with an overlay's programs: made once, for programs worth it, and the same as long as a lab's disks are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

import pytest
import tc_hosts

from minigts import overlays
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import Lab
from minigts.machine.progress import Progress
from minigts.overlays.catalogue import Overlay
from minigts.providers import registry
from minigts.providers.mininet.provider import MininetProvider
from minigts.providers.uml.build import layers, program_images
from minigts.providers.uml.build.image import Image
from minigts.providers.uml.provider import UmlProvider, altered_launch, launch_of
from minigts.providers.uml.run import disks
from minigts.providers.uml.run.supervisor import Launch
from minigts.topology.edit import add_host
from minigts.topology.read.load import parse

KEY = "0123456789abcdef"
PLACE = PurePosixPath("/var/lib/minigts/programs")
PLAN = parse("name: x\nswitches: {s: {}}\nhosts: {a: {}, b: {}}\nlinks: [{ends: [a, s]}, {ends: [b, s]}]\n", "x.yaml")


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    made = Image(tmp_path / "cache" / "images" / "0123")
    made.directory.mkdir(parents=True)
    made.root.write_bytes(b"the image")
    return made


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    made = tmp_path / "fedcba9876543210"
    made.mkdir()
    with (made / "program").open("wb") as file:
        file.truncate(program_images.LEAST_BYTES)
    return made


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What is done on the host that changes the copy, which it does not boot here."""
    steps: list[tuple[str, ...]] = []

    def changed(_place: Path, _boot: Path, change: Callable[[layers.Put, layers.Run], None], _what: str) -> None:
        def put(source: Path, target: PurePosixPath) -> None:
            steps.append(("put", source.name, str(target)))

        def run(argv: Sequence[str], _stdin: bytes) -> str:
            steps.append(tuple(argv))
            return ""

        change(put, run)

    monkeypatch.setattr(layers, "_changed", changed)
    return steps


def test_a_layer_is_made_once_and_its_programs_have_the_images_time(
    ready: Image, programs: Path, done: list[tuple[str, ...]]
) -> None:
    said: list[str] = []
    key = program_images.layer(programs, PLACE, ready, said.append)
    target = str(PLACE / programs.name)
    assert done == [
        ("mkdir", "-p", str(PLACE)),
        ("put", programs.name, target),
        ("find", target, "-exec", "touch", "-h", "-r", program_images.DATED, "{}", "+"),
    ]
    assert layers.root(key).read_bytes() == b"the image"
    assert program_images.layer(programs, PLACE, ready, said.append) == key
    assert (len(done), said) == (3, ["putting programs of 100 MB into a copy of the image, once"])


def test_another_image_or_other_programs_have_another_layer(
    ready: Image, programs: Path, done: list[tuple[str, ...]]
) -> None:
    other = Image(ready.directory.with_name("4567"))
    other.directory.mkdir()
    other.root.write_bytes(b"another image")
    keys = [program_images.layer(programs, PLACE, image, lambda _: None) for image in (ready, other)]
    keys.append(program_images.layer(programs.rename(programs.with_name("ff")), PLACE, ready, lambda _: None))
    assert len({*keys}) == 3


def test_few_bytes_of_programs_are_not_worth_a_layer(ready: Image, programs: Path, done: list[tuple[str, ...]]) -> None:
    with (programs / "program").open("wb") as file:
        file.truncate(program_images.LEAST_BYTES - 1)
    assert program_images.layer(programs, PLACE, ready, lambda _: None) == ""
    assert (done, layers.store().exists()) == ([], False)


def test_hosts_start_from_it_and_switches_and_hosts_with_a_layer_of_their_own_do_not(
    ready: Image, tmp_path: Path
) -> None:
    launch_of(PLAN, ready, tmp_path, {"a": tmp_path / "own.ext4"}, KEY).write(tmp_path / "launch.json")
    launch = Launch.read(tmp_path / "launch.json")
    assert {each.name: launch.base_of(each) for each in launch.machines} == {
        "a": tmp_path / "own.ext4",
        "b": layers.root(KEY),
        "s": ready.root,
    }
    longer = altered_launch(launch, add_host(PLAN, "c", "s", {}))
    assert {longer.base_of(each) for each in longer.machines if each.name in "bc"} == {layers.root(KEY)}


class Provider(UmlProvider):
    """Its image is there, and nothing is built."""

    def __init__(self, rundir: Path, ready: Image) -> None:
        super().__init__(rundir)
        self._ready = ready

    def launch(self, kept: str | None) -> Launch:
        return self._launch_on(PLAN, self._ready, self._ready.boot, lambda _: None, kept)


def test_a_lab_whose_disks_were_kept_stays_on_the_layer_that_it_had(
    ready: Image, programs: Path, tmp_path: Path, done: list[tuple[str, ...]]
) -> None:
    provider = Provider(tmp_path / "lab", ready)
    assert provider.launch(None).programs == ""
    provider.carry(programs, PLACE)
    made = provider.launch(None)
    assert layers.root(made.programs).is_file()
    kept = disks.kept_note(made, None)
    assert kept.programs == made.programs
    assert [provider.launch(had).programs for had in ("", KEY)] == ["", KEY]


def test_disks_on_a_layer_that_is_gone_are_refused(
    ready: Image, programs: Path, tmp_path: Path, done: list[tuple[str, ...]]
) -> None:
    key = program_images.layer(programs, PLACE, ready, lambda _: None)
    launch = launch_of(PLAN, ready, tmp_path, {}, key)
    rundir = tmp_path / "lab"
    for machine in launch.machines:
        (rundir / machine.disk).parent.mkdir(parents=True)
        (rundir / machine.disk).touch()
    kept = disks.kept_note(launch, None)
    disks.require_fit(kept, launch, rundir)
    layers.root(key).unlink()
    with pytest.raises(InputError, match=r"no longer in the cache: that of a, b; .* minigts down lab"):
        disks.require_fit(kept, launch, rundir)


@pytest.mark.parametrize("key", ["../../etc", "0123456789abcde", KEY.upper()])
def test_a_note_of_disks_names_a_layer_by_its_key_alone(ready: Image, tmp_path: Path, key: str) -> None:
    kept = disks.kept_note(launch_of(PLAN, ready, tmp_path, {}), None)
    with pytest.raises(ValueError, match="String should match pattern"):
        disks.Kept.model_validate_json(replace_in(kept.model_dump_json(), '"programs":""', f'"programs":"{key}"'))


def replace_in(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_an_overlays_programs_are_carried_by_providers_that_can(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: list[tuple[Path, PurePosixPath]] = []
    monkeypatch.setattr(UmlProvider, "carry", lambda _, *what: carried.append(what))
    monkeypatch.setattr(Overlay, "programs", lambda own, _say: programs if own.name == "flannel" else None)
    for provider in (MininetProvider(tmp_path / "lab"), UmlProvider(tmp_path / "lab")):
        for name in ("none", "flannel"):
            overlays.carry(Lab.known(tmp_path / "lab", PLAN, provider), name, lambda _: None)
    assert carried == [(programs, PLACE)]


def test_a_lab_that_is_there_is_not_asked(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UmlProvider, "carry", lambda *_: pytest.fail("carried"))
    monkeypatch.setattr(Overlay, "programs", lambda *_: programs)
    overlays.carry(Lab.known(tmp_path, PLAN, UmlProvider(tmp_path)), "flannel", lambda _: None)


class CarryingHosts(tc_hosts.TcHosts):
    name = "carrying-hosts"
    carried: ClassVar[list[Path]] = []

    def carry(self, programs: Path, place: PurePosixPath) -> None:
        self.carried.append(programs)


def test_programs_that_cannot_be_had_keep_no_experiment_from_its_other_overlays(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def programs_of(overlay: Overlay, _say: Progress) -> Path:
        if overlay.name == "weave":
            raise EnvironmentLacks("weave needs programs of yours")
        return programs

    tc_hosts.use(monkeypatch, tmp_path)
    monkeypatch.setitem(registry._PROVIDERS, CarryingHosts.name, CarryingHosts)
    monkeypatch.setattr(Overlay, "programs", programs_of)
    plan = parse("name: x\ntime: real\npair: {}\n", "x.yaml")
    lab = overlays.lab_for(plan, CarryingHosts.name, "x", ["weave", "flannel"], lambda _: None)
    assert (lab.read_state(), CarryingHosts.carried) == ("up", [programs])
