"""What Vagrant makes of the Vagrantfile, with a box whose disk is empty: machines that start and never boot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.program import PROJECT, TOPOLOGIES
from minigts.machine import shell
from minigts.providers.vagrant import box, definition, libvirt
from minigts.providers.vagrant.definition import Definition
from minigts.topology.read.load import load

pytestmark = [pytest.mark.vagrant, pytest.mark.timeout(600)]
LIMIT_S = 240
GIVEN_UP_S = 3
VERSION = "1.0.1"


@dataclass(frozen=True)
class Empty:
    """A pair of machines on an empty disk, and Vagrant's own directories for them."""

    place: Path
    prefix: str

    def vagrant(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        own = {
            "MINIGTS_DEFINITION": str(self.place / "definition.json"),
            "VAGRANT_DOTFILE_PATH": str(self.place / "dotfile"),
            "VAGRANT_HOME": str(self.place / "home"),
        }
        return subprocess.run(
            ["vagrant", *arguments],
            cwd=PROJECT,
            env={**os.environ, **own, **environ},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )


def empty_box(place: Path) -> Path:
    """The catalogue of a box named as minigts' own, in a version that no real one has."""
    shell.run(["qemu-img", "create", "-q", "-f", "qcow2", str(place / "box.img"), "64M"], timeout_s=LIMIT_S)
    (place / "metadata.json").write_text(json.dumps({"provider": "libvirt", "format": "qcow2", "virtual_size": 1}))
    with tarfile.open(place / "empty.box", "w") as archive:
        for name in ("metadata.json", "box.img"):
            archive.add(place / name, arcname=name)
    provider = {"name": "libvirt", "url": f"file://{place / 'empty.box'}"}
    catalogue = {"name": box.NAME, "versions": [{"version": VERSION, "providers": [provider]}]}
    (place / "catalogue.json").write_text(json.dumps(catalogue))
    return place / "catalogue.json"


@pytest.fixture(params=["emulation", "kvm"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    plan = load(TOPOLOGIES / "pair.yaml")
    made = Definition(
        lab="pair",
        uri=libvirt.uri(),
        proxy_command=None,
        box=box.NAME,
        box_version=VERSION,
        catalogue=str(empty_box(tmp_path)),
        private_key=str(box.keys().user),
        known_hosts=str(box.keys().known_hosts),
        prefix=definition.prefix(tmp_path),
        processor=definition.processor(request.param),
        at_once=2,
        boot_timeout_s=GIVEN_UP_S,
        machines=definition.machines(plan, tmp_path, tmp_path),
    )
    (tmp_path / "definition.json").write_text(made.model_dump_json())
    yield Empty(tmp_path, made.prefix)
    libvirt.remove(made.prefix)
    libvirt.remove_volume(f"{box.NAME}_vagrant_box_image_{VERSION}_box.img")


def test_vagrant_defines_what_libvirt_knows_and_gives_up_in_time_leaving_nothing(empty: Empty) -> None:
    done = empty.vagrant("up", "--provider=libvirt", "--no-color", VAGRANT_LOG="debug")
    assert done.returncode != 0
    starting = r"Starting Domain with XML:\n(<domain type=.*?^</domain>)"
    defined = re.findall(starting, done.stderr, re.MULTILINE | re.DOTALL)
    assert len(defined) == 2, done.stderr[-3000:]
    for number, text in enumerate(defined):
        (empty.place / f"{number}.xml").write_text(text)
        shell.run(["virt-xml-validate", str(empty.place / f"{number}.xml"), "domain"], timeout_s=LIMIT_S)
    assert libvirt.running(empty.prefix) == []
    assert libvirt.volumes(empty.prefix) == []


@pytest.mark.parametrize("empty", ["emulation"], indirect=True)
def test_a_machine_without_an_address_is_given_up_with_a_message_that_says_what_to_do(empty: Empty) -> None:
    done = empty.vagrant("up", "--provider=libvirt", "--no-color")
    assert done.returncode != 0
    assert f"ams got no address within {GIVEN_UP_S} s" in done.stderr
    assert str(empty.place / "ams.log") in done.stderr
    assert ".rb:" not in done.stderr
