"""Which lab a verb of Vagrant is for, and what it does to the lab of that name, with a libvirt that only lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from minigts import overlays
from minigts.cli.verbs import libvirt as verbs
from minigts.errors import EnvironmentLacks, InputError
from minigts.lab import Lab, Record
from minigts.providers.vagrant import definition, prerequisites
from minigts.providers.vagrant.directory import DEFAULT, Directory, Memory
from minigts.topology.read.load import load

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
PAIR, STAR = TOPOLOGIES / "pair.yaml", TOPOLOGIES / "star.yaml"
KNOWN = overlays.known_names()


class Place:
    """A machine: a state directory, a Vagrant directory, and a libvirt with the domains that are written down."""

    def __init__(self, place: Path) -> None:
        self.path = place
        self.vagrant = Directory(place / "dot vagrant")
        self.lab = Lab(place / "state" / "labs" / "pair")
        (place / "domains").mkdir()
        virsh = place / "virsh"
        virsh.write_text(
            f'#!/bin/sh\ncd {place}/domains\ncase "$*" in *--uuid) cat -- * ;; *"list --all"*) ls ;;'
            ' *"list --name") for each in *; do [ "$each" = "*" ] || [ -x "$each" ] || continue; echo "$each"; done ;;'
            " esac 2>/dev/null || true\n"
        )
        virsh.chmod(0o755)

    def has_machine(self, name: str, *, running: bool = True) -> None:
        file = self.vagrant.path / "machines" / name / "libvirt" / "id"
        file.parent.mkdir(parents=True)
        file.write_text(f"uuid-of-{name}")
        domain = self.path / "domains" / f"{definition.prefix(self.lab.rundir)}{name}"
        domain.write_text(f"uuid-of-{name}\n")
        domain.chmod(0o700 if running else 0o600)

    def has_lab(self, provider: str) -> None:
        self.lab.rundir.mkdir(parents=True)
        (self.lab.rundir / "plan.json").write_text(load(PAIR).model_dump_json())
        self.lab.write(Record(provider=provider, time="real", created=datetime.now(UTC), state="up"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIBVIRT_DEFAULT_URI", "test:///default")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(prerequisites, "missing", list)
    return Place(tmp_path)


def lab(place: Place, topology: Path | None = None, *, starting: bool = False) -> Memory:
    return place.vagrant.lab(topology, starting=starting, overlays=KNOWN)


def test_without_machines_it_is_the_topologys_or_the_default(place: Place) -> None:
    assert lab(place, STAR).plan.name == "star"
    assert lab(place).topology == DEFAULT
    place.vagrant.remember(PAIR, load(PAIR))
    assert lab(place).topology == DEFAULT


def test_while_there_are_machines_it_is_theirs(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_machine("ams", running=False)
    assert lab(place).plan == load(PAIR)
    assert lab(place, PAIR, starting=True).plan == load(PAIR)


def test_machines_that_libvirt_has_no_more_do_not_count(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_machine("ams")
    for domain in (place.path / "domains").iterdir():
        domain.unlink()
    assert lab(place, STAR).plan.name == "star"


def test_another_topology_than_the_machines_is_one_error_that_says_both(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_machine("ams")
    with pytest.raises(InputError) as error:
        lab(place, STAR)
    assert str(STAR) in str(error.value)
    assert str(PAIR) in str(error.value)


def test_machines_can_be_ended_when_their_file_has_changed_or_gone(place: Place) -> None:
    own = place.path / "own.yaml"
    own.write_text("name: own\npair: {hosts: [ams, bra]}\n")
    place.vagrant.remember(own, load(own, known_overlays=KNOWN))
    place.has_machine("ams")
    own.write_text("name: own\npair: {hosts: [ams, lju]}\n")
    assert [host.name for host in lab(place).plan.hosts] == ["ams", "bra"]
    with pytest.raises(InputError, match=r"own.yaml: ams; the file has changed since they were made"):
        lab(place, starting=True)
    own.unlink()
    assert [host.name for host in lab(place).plan.hosts] == ["ams", "bra"]


@pytest.mark.parametrize("content", [None, "", "{}", "[]", "null", '{"topology": 1, "plan": {}}'])
def test_machines_of_who_knows_what_are_not_taken_for_the_defaults(place: Place, content: str | None) -> None:
    place.has_machine("ams")
    if content is not None:
        (place.vagrant.path / "minigts.json").write_text(content)
    with pytest.raises(InputError, match=r"machines \(ams\), and .*minigts.json does not say of which topology"):
        lab(place)
    assert lab(place, PAIR).plan == load(PAIR)


@pytest.mark.parametrize("verb", [verbs.libvirt_left, verbs.libvirt_joined])
def test_without_a_memory_no_lab_is_touched(place: Place, verb: Callable[[Path], None]) -> None:
    place.has_lab("vagrant")
    verb(place.vagrant.path)
    assert place.lab.rundir.exists()


@pytest.mark.parametrize("provider", ["uml", "mininet"])
def test_a_lab_of_another_provider_outlives_vagrants_machines_of_its_name(place: Place, provider: str) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_lab(provider)
    verbs.libvirt_left(place.vagrant.path)
    assert place.lab.read_record().provider == provider
    assert place.vagrant.memory() is None


def test_a_lab_that_minigts_brought_up_with_a_vagrant_of_its_own_outlives_them_too(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_lab("vagrant")
    (place.lab.rundir / "vagrant").mkdir()
    verbs.libvirt_left(place.vagrant.path)
    assert place.lab.rundir.exists()


def test_a_lab_one_of_whose_machines_has_gone_is_one_no_more_and_the_rest_is_remembered(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_lab("vagrant")
    place.has_machine("bra")
    verbs.libvirt_left(place.vagrant.path)
    assert not place.lab.rundir.exists()
    assert lab(place).plan == load(PAIR)


def test_a_halted_machine_takes_the_lab_with_it_and_is_remembered(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_lab("vagrant")
    place.has_machine("ams", running=False)
    place.has_machine("bra")
    verbs.libvirt_left(place.vagrant.path)
    assert not place.lab.rundir.exists()
    assert lab(place).plan == load(PAIR)


def test_a_lab_whose_machines_all_run_stays(place: Place) -> None:
    """As when `vagrant destroy` was answered with no."""
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_lab("vagrant")
    place.has_machine("ams")
    place.has_machine("bra")
    verbs.libvirt_left(place.vagrant.path)
    assert place.lab.read_record().provider == "vagrant"
    assert place.vagrant.memory() is not None


def test_machines_that_are_up_do_not_become_a_lab_whose_name_is_taken(place: Place) -> None:
    place.vagrant.remember(PAIR, load(PAIR))
    place.has_lab("uml")
    place.has_machine("ams")
    place.has_machine("bra")
    with pytest.raises(InputError, match="a lab pair already, of the provider uml"):
        verbs.libvirt_joined(place.vagrant.path)
    assert place.lab.read_record().provider == "uml"


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was built: nothing, as long as this is empty."""
    built: list[str] = []
    monkeypatch.setattr(prerequisites, "prepare", lambda _: built.append("box"))
    return built


@pytest.mark.parametrize(
    ("provider", "own_vagrant", "whose"),
    [("uml", False, "the provider uml"), ("vagrant", True, "`minigts up`"), ("", False, "did not end well")],
)
def test_nothing_is_started_beside_a_lab_of_that_name(
    place: Place, prepared: list[str], provider: str, own_vagrant: bool, whose: str
) -> None:
    place.has_lab(provider or "uml")
    if not provider:
        (place.lab.rundir / "lab.json").unlink()
    if own_vagrant:
        (place.lab.rundir / "vagrant").mkdir()
    with pytest.raises(InputError, match=rf"{whose}.*minigts down pair"):
        verbs.libvirt_definition(PAIR, place.vagrant.path, start=True)
    assert prepared == []
    assert place.vagrant.memory() is None


def test_machines_without_memory_for_them_are_refused_before_anything_starts(
    place: Place, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "_free_mb", lambda: 1500)
    with pytest.raises(EnvironmentLacks, match=r"machines of pair need \d+ MB of memory; 1500 MB are free"):
        verbs.libvirt_definition(PAIR, place.vagrant.path, start=True)
    assert prepared == []


def test_memory_is_asked_for_machines_that_do_not_run_and_are_meant(
    place: Place, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "_free_mb", lambda: 1500)
    verbs.libvirt_definition(PAIR, place.vagrant.path, start=True, machine=["bra"])
    place.has_machine("ams")
    verbs.libvirt_definition(PAIR, place.vagrant.path, start=True)
    assert prepared == ["box", "box"]


def test_a_start_is_remembered_and_has_its_consoles_the_users_own(place: Place, prepared: list[str]) -> None:
    verbs.libvirt_definition(PAIR, place.vagrant.path, start=True)
    assert place.vagrant.memory() == Memory(topology=PAIR.resolve(), plan=load(PAIR))
    consoles = sorted(prerequisites.consoles(place.lab.rundir).iterdir())
    assert [(file.name, file.stat().st_mode & 0o777) for file in consoles] == [("ams.log", 0o600), ("bra.log", 0o600)]
    assert [folder.stat().st_mode & 0o777 for folder in consoles[0].parents[:2]] == [0o700, 0o700]


def test_looking_changes_nothing(place: Place) -> None:
    verbs.libvirt_definition(PAIR, place.vagrant.path)
    assert not place.vagrant.path.exists()
    assert not (place.path / "state").exists()
