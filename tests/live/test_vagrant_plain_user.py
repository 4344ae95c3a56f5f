"""A desktop's libvirt used by a plain user: a lab by Vagrant's own words, and the provider's tests; nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.desktop import USER, Desktop, desktop, lacks
from minigts.fidelity.certificate import Certificate
from minigts.providers.vagrant import definition
from minigts.results import gate

pytestmark = [pytest.mark.vagrant, pytest.mark.timeout(1200)]
TESTS_LIMIT_S = 1100.0
BOXES = "minigts_vagrant_box_image_"


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest) -> Iterator[Desktop]:
    if lacks() and "vagrant" in request.config.getoption("--require"):
        pytest.fail(f"--require=vagrant, and {lacks()}", pytrace=False)
    if lacks():
        pytest.skip(lacks())
    with desktop() as made:
        yield made


def left_in_libvirt(plain: Desktop) -> list[str]:
    """Machines, their volumes and networks, and QEMUs; the box's own volume may stay for the next lab."""
    volumes = [line.split()[0] for line in plain.virsh("vol-list", "default")[2:]]
    running = plain.as_root("pgrep", "-a", "qemu-system").stdout.splitlines()
    return [
        *plain.virsh("list", "--all", "--name"),
        *(name for name in volumes if not name.startswith(BOXES)),
        *(name for name in plain.virsh("net-list", "--all", "--name") if name.strip() == definition.NETWORK),
        *running,
    ]


def left_in_files(plain: Desktop) -> list[Path]:
    """Of the user's state and of Vagrant's directory: folders may stay, and Vagrant's own index of what there was."""
    state = [path for path in plain.state.rglob("*") if not path.is_dir() and path.name != gate.KEY]
    machines = [
        *(plain.project / ".vagrant").glob("machines/*/libvirt/id"),
        *plain.project.glob(".vagrant/minigts.json"),
    ]
    return state + machines


def kept(certificate: str) -> list[str]:
    """What the check found that no busy machine explains: settings that differ, and round trips below the declared."""
    rows = Certificate.model_validate_json(certificate).rows
    assert {row.quantity for row in rows} >= {"settings", "RTT", "loss", "TCP"}
    wrong = [row for row in rows if row.ok is False and row.quantity == "settings"]
    early = [row for row in rows if row.quantity == "RTT" and row.too_fast]
    return [f"{row.subject} {row.quantity}: {row.sentence()}" for row in wrong + early]


def test_the_user_is_a_plain_one(plain: Desktop) -> None:
    assert plain.succeeds("id", "-un").strip() == USER
    assert plain.succeeds("sh", "-c", "grep CapEff /proc/self/status").split() == ["CapEff:", "0" * 16]
    assert plain.run("cat", "/run/libvirt/libvirtd.pid").returncode != 0


def test_libvirt_is_open_to_its_group_and_to_nobody_else(plain: Desktop) -> None:
    ask = ("virsh", "-c", "qemu:///system", "list")
    plain.succeeds(*ask)
    refused = plain.run(*ask, member=False)
    assert refused.returncode != 0
    assert "Permission denied" in refused.stderr


def test_a_lab_by_vagrants_own_words_comes_up_is_checked_and_leaves_nothing(plain: Desktop) -> None:
    said = plain.run("vagrant", "up", TOPOLOGY="topologies/pair.yaml")
    assert said.returncode == 0, said.stdout[-6000:] + said.stderr[-6000:]
    try:
        consoles = sorted((plain.state / "consoles").glob("*/*.log"))
        assert [file.name for file in consoles] == ["ams.log", "bra.log"]
        assert plain.succeeds("cat", str(consoles[0])) != ""
        assert "on vagrant" in plain.succeeds("./minigts", "status")
        assert "1 received" in plain.succeeds("./minigts", "exec", "ams", "--", "ping", "-c", "1", "bra")
        assert kept(plain.run("./minigts", "check", "--quick", "--json").stdout) == []
        other = plain.run("vagrant", "status", TOPOLOGY="topologies/star.yaml")
        assert other.returncode == 2
        assert "topologies/star.yaml" in other.stderr
        assert "topologies/pair.yaml" in other.stderr
        plain.succeeds("vagrant", "destroy", "-f", "ams")
        assert "no lab is up" in plain.run("./minigts", "status").stderr
        assert plain.virsh("list", "--name") == [f"{prefix(plain)}bra"]
    finally:
        plain.succeeds("vagrant", "destroy", "-f")
    assert left_in_libvirt(plain) == []
    assert left_in_files(plain) == []


def test_the_providers_own_tests_pass(plain: Desktop) -> None:
    """`minigts up` and `down`, an overlay, and what Vagrant makes of the Vagrantfile."""
    tests = ("tests/live/test_vagrant.py", "tests/live/test_vagrantfile.py")
    plain.succeeds("./minigts", "test", *tests, "--require=vagrant", "-q", limit_s=TESTS_LIMIT_S)
    assert left_in_libvirt(plain) == []


def prefix(plain: Desktop) -> str:
    return definition.prefix(plain.state / "labs" / "pair")
