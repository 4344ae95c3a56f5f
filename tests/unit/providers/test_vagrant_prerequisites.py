"""KVM or emulation, which libvirt, what is missing; with stand-ins for programs that answer differently elsewhere."""

from __future__ import annotations

import grp
import shlex
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from minigts.errors import EnvironmentLacks
from minigts.providers.vagrant import accelerator, box, libvirt, prerequisites, private_libvirt
from minigts.topology.read.load import parse

SAYS_IT = f'echo "{accelerator.SAYS}"'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose KVM opens, with a cache, a state directory and programs of its own."""
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(accelerator, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(accelerator, "TRIAL_S", 2.0)
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("LIBVIRT_DEFAULT_URI", raising=False)
    return tmp_path


def program(place: Path, name: str, script: str) -> None:
    file = place / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def qemu(place: Path, script: str, version: str = "7.2") -> None:
    program(
        place,
        accelerator.PROGRAM,
        f'if [ "$1" = --version ]; then echo "QEMU emulator version {version}"; exit; fi\n{script}',
    )


@pytest.mark.parametrize(
    ("script", "verdict", "reason"),
    [
        (SAYS_IT, "kvm", "a guest's kernel ran under it"),
        (f"{SAYS_IT}; exec sleep 30", "kvm", "a guest's kernel ran under it"),
        ("echo 'kvm run failed Exec format error' >&2; exit 1", "emulation", "kvm run failed Exec format error"),
        ("exec sleep 30", "emulation", "the guest printed nothing within 2 s"),
        ("echo booting", "emulation", "QEMU ended"),
    ],
)
def test_kvm_counts_when_a_guest_has_run_under_it(machine: Path, script: str, verdict: str, reason: str) -> None:
    qemu(machine, script)
    tried = accelerator.decide(machine / "head.img")
    assert tried.verdict == verdict
    assert reason in tried.reason


def test_the_verdict_is_remembered_and_not_tried_again(machine: Path) -> None:
    qemu(machine, SAYS_IT)
    assert accelerator.remembered_verdict() is None
    accelerator.decide(machine / "head.img")
    qemu(machine, "exit 1")
    assert accelerator.decide(machine / "head.img").verdict == "kvm"


def test_another_qemu_is_tried_anew(machine: Path) -> None:
    qemu(machine, SAYS_IT)
    accelerator.decide(machine / "head.img")
    qemu(machine, "exit 1", version="10.0")
    assert accelerator.remembered_verdict() is None
    assert accelerator.decide(machine / "head.img").verdict == "emulation"


def test_without_the_device_nothing_is_tried(machine: Path) -> None:
    (machine / "kvm").unlink()
    tried = accelerator.remembered_verdict()
    assert tried is not None
    assert tried.verdict == "emulation"
    assert "is not there" in tried.reason


def test_kvm_that_is_closed_names_the_group_that_opens_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open everything, so what the kernel says of access is a stand-in; owner, group and mode are real."""
    monkeypatch.setattr(accelerator.os, "access", lambda _path, _mode: False)
    monkeypatch.setenv("LOGNAME", "alice")
    accelerator.KVM.chmod(0o660)
    group = grp.getgrgid(accelerator.KVM.stat().st_gid).gr_name
    assert accelerator.remedy() == f"sudo usermod -aG {group} alice, and log in again"
    accelerator.KVM.chmod(0o600)
    assert accelerator.remedy().startswith("no group may use it: sudo chgrp kvm")
    tried = accelerator.remembered_verdict()
    assert tried is not None
    assert (tried.verdict, tried.reason) == ("emulation", f"{accelerator.KVM} is closed to you")


def test_kvm_that_is_closed_is_said_where_libvirts_group_is_and_when_machines_come_up(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(machine, "virsh", "exit 1")
    monkeypatch.setattr(prerequisites, "packages", lambda: {"vagrant": True})
    monkeypatch.setattr(box, "present", lambda: box.Box(machine))
    monkeypatch.setattr(accelerator, "is_closed", lambda: True)
    monkeypatch.setattr(accelerator, "openers", lambda: "kvm")
    monkeypatch.setattr(accelerator, "remembered_verdict", lambda: True)
    monkeypatch.setenv("LOGNAME", "alice")
    assert "sudo usermod -aG libvirt,kvm alice, and log in again" in prerequisites.missing()[0]
    monkeypatch.setattr(box, "ensure", lambda _: box.Box(machine))
    said: list[str] = []
    prerequisites.prepare(said.append)
    assert said == [f"{accelerator.KVM} is closed to you, so machines are emulated; {accelerator.remedy()}"]


def test_a_comma_in_the_boxs_path_is_qemus_own(machine: Path) -> None:
    qemu(machine, f'printf "%s\\n" "$@" >{machine}/words; {SAYS_IT}')
    accelerator.decide(machine / "my cache, mine" / "head.img")
    drive = next(word for word in (machine / "words").read_text().splitlines() if word.startswith("file="))
    assert drive.startswith(f"file={machine}/my cache,, mine/head.img,format=raw")


def test_the_way_to_the_management_network_is_words_for_a_shell(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libvirt, "network_prefix", lambda: ("nsenter", "--target", "7", "--net"))
    monkeypatch.setattr(prerequisites, "_relay", lambda: Path("/it's my, 100 % checkout/relay.py"))
    command = prerequisites.define(
        parse("name: two\npair: {hosts: [a, b]}\n", "two.yaml"), machine / "labs" / "two"
    ).proxy_command
    assert command is not None
    words = shlex.split(command.replace("%h", "host").replace("%p", "22").replace("%%", "%"))
    assert words[-3:] == ["/it's my, 100 % checkout/relay.py", "host", "22"]


def test_the_uri_of_minigts_own_libvirt_takes_any_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "it's my, 100 % state"))
    (_, query) = private_libvirt.uri().split("?")
    assert parse_qs(query)["socket"] == [str(tmp_path / "it's my, 100 % state" / "libvirt" / "run" / "libvirt-sock")]


def test_the_initrd_says_what_the_trial_waits_for() -> None:
    assert f"echo '{accelerator.SAYS}' >/dev/console" in (box.recipe() / "init").read_text()


def test_the_systems_libvirt_is_used_unless_another_is_chosen(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert private_libvirt.keeper() is None
    assert libvirt.uri() == "qemu:///system"
    assert libvirt.network_prefix() == ()
    monkeypatch.setenv("LIBVIRT_DEFAULT_URI", "qemu:///session")
    assert libvirt.uri() == "qemu:///session"


def test_a_libvirt_that_keeps_silent_has_a_remedy(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(machine, "virsh", "echo 'error: failed to connect to the hypervisor' >&2; exit 1")
    monkeypatch.setattr(prerequisites, "packages", lambda: {"vagrant": True})
    monkeypatch.setattr(box, "present", lambda: box.Box(machine))
    (lacking,) = prerequisites.missing()
    assert "no libvirt answers at qemu:///system" in lacking
    assert "minigts libvirt start" in lacking


def test_a_pool_that_is_not_active_is_said_before_vagrant_stumbles_over_it(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(machine, "virsh", 'case "$*" in *pool-list\\ --all*) echo default ;; esac')
    monkeypatch.setattr(prerequisites, "packages", lambda: {"vagrant": True})
    monkeypatch.setattr(box, "present", lambda: box.Box(machine))
    assert prerequisites.missing() == [
        "libvirt's pool 'default' is not active: virsh -c qemu:///system pool-start default"
    ]


def test_packages_that_are_missing_are_named_with_the_command_that_installs_them(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        prerequisites, "packages", lambda: {"vagrant": True, "dnsmasq-base": False, "qemu-utils": False}
    )
    monkeypatch.setattr(box, "present", lambda: box.Box(machine))
    assert prerequisites.missing() == [
        "these packages are not installed: dnsmasq-base qemu-utils; install them with: minigts setup vagrant"
    ]


def test_a_box_is_made_anew_for_other_keys_and_has_a_name_for_each_recipe(machine: Path) -> None:
    before = box.key()
    assert box.key() == before
    for file in (machine / "cache" / "ssh").iterdir():
        file.unlink()
    assert box.key() != before


def test_looking_for_the_box_makes_no_keys_and_needs_no_ssh(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine / "nothing"))
    assert box.present() is None
    assert not (machine / "cache" / "ssh").exists()


def test_the_users_key_is_for_its_user_alone(machine: Path) -> None:
    made = box.keys()
    assert made.user.stat().st_mode & 0o077 == 0
    assert made.known_hosts.read_text().startswith("minigts ssh-ed25519 ")


def test_addresses_are_read_from_the_networks_leases(machine: Path) -> None:
    program(
        machine,
        "virsh",
        """cat <<'END'
 Expiry Time           MAC address         Protocol   IP address         Hostname   Client ID or DUID
---------------------------------------------------------------------------------------------------------
 2026-11-21 15:40:04   52:54:00:52:59:93   ipv4       10.255.240.9/24    -          01:52:54:00:52:59:93
 2026-11-21 15:50:04   52:54:00:52:59:93   ipv4       10.255.240.77/24   -          01:52:54:00:52:59:93
 2026-11-21 15:40:09   52:54:00:bf:d7:46   ipv4       10.255.240.12/24   -          01:52:54:00:bf:d7:46

END""",
    )
    assert libvirt.addresses() == {"52:54:00:52:59:93": "10.255.240.77", "52:54:00:bf:d7:46": "10.255.240.12"}


def test_machines_that_this_one_has_no_memory_for_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beside its own memory each takes QEMU's, and where it is emulated what its translated code takes."""
    plan = parse("name: two\npair: {hosts: [a, b]}\ndefaults: {host: {memory: 1GB}}\n", "two.yaml")
    monkeypatch.setattr(accelerator, "KVM", tmp_path / "none")
    monkeypatch.setattr(prerequisites, "_free_mb", lambda: 3000)
    with pytest.raises(EnvironmentLacks, match="machines of two need 3392 MB of memory; 3000 MB are free"):
        prerequisites.refuse_memory(plan)
    monkeypatch.setattr(prerequisites, "_free_mb", lambda: 3392)
    prerequisites.refuse_memory(plan)


def test_more_machines_than_their_network_has_addresses_for_are_refused(tmp_path: Path) -> None:
    plan = parse("name: row\nchain: {hosts: 253}\n", "row.yaml", time="real")
    with pytest.raises(EnvironmentLacks, match="row has 253 machines"):
        prerequisites.define(plan, tmp_path)
