"""The doctor: on this machine as it is, and on machines that are described to it."""

from __future__ import annotations

import dataclasses
import platform
from pathlib import Path
from typing import Any

import pytest

from minigts import machine
from minigts.doctor import DEFAULT_PROVIDER, Diagnosis, Finding, default_can_run, examine
from minigts.machine import Disk, Facts, Package, Virtual, gather, system_packages
from minigts.providers import registry

GOOD = Facts(
    system="Linux",
    machine="x86_64",
    root=False,
    user="alice",
    cores=4,
    memory_free_mb=8000,
    open_files=1024,
    shm_free_mb=8000,
    shm_executable=True,
    image_ready=False,
    disks=(Disk(Path("cache"), free_mb=20_000, needed_mb=2000),),
    seccomp=True,
    ptrace=True,
    landlock=7,
    socket_buffer_bytes=4 * 2**20,
    namespaces_blocked_by="",
    subordinate_ids=True,
    can_install=False,
    packages=(Package("mmdebstrap", present=True),),
    mininet_lacks=("namespaces are made by root",),
    virtual=Virtual(
        packages=(Package("vagrant", present=True),),
        libvirt_uri="qemu:///system",
        libvirt_answers=True,
        box_ready=True,
        accelerator="kvm",
        reason="a guest's kernel ran under it",
    ),
)
FULL = (Disk(Path("cache"), free_mb=100, needed_mb=2000),)


def uml(**changes: Any) -> Diagnosis:
    return examine(dataclasses.replace(GOOD, **changes), {"uml"})[0]


def finding(diagnosis: Diagnosis, name: str) -> Finding:
    (found,) = (each for each in diagnosis.findings if each.name == name)
    return found


def test_the_default_provider_is_the_registry_s() -> None:
    assert DEFAULT_PROVIDER == registry.DEFAULT


def test_a_good_machine_runs_the_default_provider() -> None:
    diagnosis = uml()
    assert diagnosis.verdict == "runs"
    assert {each.state for each in diagnosis.findings} == {"ok"}
    assert not any(each.remedy for each in diagnosis.findings)


@pytest.mark.parametrize(
    ("changes", "name", "remedy"),
    [
        ({"machine": "aarch64"}, "processor", "x86-64"),
        ({"system": "Darwin"}, "processor", "Linux"),
        ({"seccomp": False, "ptrace": False}, "system calls", "SYS_PTRACE"),
        ({"shm_free_mb": None}, "/dev/shm", "mount"),
        ({"shm_executable": False}, "/dev/shm", "remount,exec"),
        ({"shm_free_mb": 64}, "/dev/shm", "--shm-size"),
        ({"memory_free_mb": 100}, "memory", "end other programs"),
        ({"disks": FULL}, "disk", "XDG_CACHE_HOME"),
        ({"packages": (Package("mmdebstrap", present=False),)}, "mmdebstrap", "apt-get install mmdebstrap"),
        ({"namespaces_blocked_by": "a.b=1"}, "user namespaces", "sysctl -w a.b=1"),
        ({"subordinate_ids": False}, "user namespaces", "--add-subuids 100000-165535"),
    ],
)
def test_what_stops_uml_has_a_remedy(changes: dict[str, Any], name: str, remedy: str) -> None:
    diagnosis = uml(**changes)
    assert diagnosis.verdict == "cannot run"
    assert finding(diagnosis, name).state == "missing"
    assert remedy in finding(diagnosis, name).remedy
    assert not default_can_run([diagnosis])


@pytest.mark.parametrize(
    ("changes", "name", "cost"),
    [
        ({"cores": 1}, "cores", "jitter"),
        ({"landlock": 0}, "confinement", "reads and writes your files"),
        ({"socket_buffer_bytes": 212_992}, "socket buffers", "0.8 Gbit/s"),
        ({"open_files": 256}, "open files", "256"),
        ({"seccomp": False}, "system calls", "two times slower"),
        ({"memory_free_mb": 1000}, "memory", "2 GiB"),
        ({"shm_free_mb": 1000}, "/dev/shm", "small labs"),
        ({"packages": (Package("mmdebstrap", present=False),), "can_install": True}, "mmdebstrap", "first up"),
    ],
)
def test_what_slows_uml_says_its_cost(changes: dict[str, Any], name: str, cost: str) -> None:
    diagnosis = uml(**changes)
    assert diagnosis.verdict == "runs slowly"
    assert cost in finding(diagnosis, name).meaning
    assert finding(diagnosis, name).remedy
    assert default_can_run([diagnosis])


def test_a_ready_image_needs_nothing_that_builds_one() -> None:
    absent = (Package("mmdebstrap", present=False),)
    assert uml(image_ready=True, packages=absent, disks=FULL, subordinate_ids=False).verdict == "runs"


def test_ptrace_may_be_forbidden_where_seccomp_is_not() -> None:
    assert uml(ptrace=False).verdict == "runs"


def test_root_needs_no_user_namespaces() -> None:
    assert uml(root=True, namespaces_blocked_by="a.b=1", subordinate_ids=False).verdict == "runs"


def test_a_provider_that_is_not_built_is_said_to_be_missing_whatever_the_machine_has() -> None:
    everything = dataclasses.replace(
        GOOD,
        root=True,
        mininet_lacks=(),
    )
    assert [each.verdict for each in examine(everything, {"uml"})] == ["runs"] + ["not in this version"] * 2
    assert [each.verdict for each in examine(everything, {"uml", "vagrant", "mininet"})] == ["runs"] * 3


def test_mininet_runs_in_a_kernel_of_uml_where_the_machines_own_will_not_do() -> None:
    mininet = examine(GOOD, {"uml", "mininet"})[2]
    assert (mininet.verdict, finding(mininet, "kernel").state) == ("runs slowly", "slow")
    assert "namespaces are made by root" in finding(mininet, "kernel").meaning
    assert " jq" in finding(mininet, "kernel").remedy
    assert examine(dataclasses.replace(GOOD, shm_free_mb=None), {"uml", "mininet"})[2].verdict == "cannot run"


def vagrant(**changes: Any) -> Diagnosis:
    virtual = dataclasses.replace(GOOD.virtual, **changes)
    return examine(dataclasses.replace(GOOD, virtual=virtual), {"vagrant"})[1]


def test_a_machine_whose_kvm_has_run_a_guest_runs_vagrant() -> None:
    assert vagrant().verdict == "runs"


@pytest.mark.parametrize(
    ("changes", "name", "remedy"),
    [
        ({"packages": (Package("vagrant", present=False),)}, "vagrant", "minigts setup vagrant"),
        ({"libvirt_answers": False}, "libvirt", "usermod -aG libvirt alice, and log in again"),
        ({"libvirt_answers": False}, "libvirt", "minigts libvirt start"),
    ],
)
def test_what_stops_vagrant_has_a_remedy(changes: dict[str, Any], name: str, remedy: str) -> None:
    diagnosis = vagrant(**changes)
    assert diagnosis.verdict == "cannot run"
    assert remedy in finding(diagnosis, name).remedy


def test_emulation_says_why_and_how_long() -> None:
    diagnosis = vagrant(accelerator="emulation", reason="a guest did not run under /dev/kvm: it said nothing")
    assert diagnosis.verdict == "runs slowly"
    assert "a guest did not run" in finding(diagnosis, "KVM").meaning
    assert "20 s for a machine, 4 at a time" in finding(diagnosis, "KVM").meaning


def test_kvm_that_is_closed_has_a_remedy() -> None:
    remedy = "sudo usermod -aG kvm alice, and log in again"
    diagnosis = vagrant(accelerator="emulation", reason="/dev/kvm is closed to you", kvm_remedy=remedy)
    assert finding(diagnosis, "KVM").remedy == remedy


def test_kvm_that_is_there_is_not_taken_for_kvm_that_works() -> None:
    assert "not tried yet" in finding(vagrant(accelerator="untried"), "KVM").meaning


def test_this_machine_is_read() -> None:
    facts = gather(landlock=0, image_ready=False, disks=(), virtual=GOOD.virtual, mininet_lacks=())
    assert (facts.system, facts.machine) == (platform.system(), platform.machine())
    assert facts.memory_free_mb > 0
    assert facts.cores > 0
    assert facts.socket_buffer_bytes > 0
    assert {package.name for package in facts.packages} >= {"mmdebstrap", "e2fsprogs"}


def test_the_package_list_goes_by_programs_and_files(tmp_path: Path) -> None:
    (tmp_path / "keys").touch()
    text = f"# a comment\n\nbash  bash-package  all\nno-such-program  nothing  all\n{tmp_path}/keys  keys  user\n"
    assert system_packages(text, root=True) == (Package("bash-package", True), Package("nothing", False))
    assert system_packages(text, root=False)[2] == Package("keys", True)


@pytest.mark.parametrize(
    ("lines", "enough"),
    [
        ("alice:100000:65536", True),
        ("bob:100000:65536", False),
        ("alice:100000:1000", False),
        ("", False),
        ("alice:100000", False),
    ],
)
def test_subordinate_ids_are_read_from_their_file(tmp_path: Path, lines: str, enough: bool) -> None:
    (tmp_path / "subuid").write_text(lines + "\n")
    assert machine._has_range(tmp_path / "subuid", "alice") is enough


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"landlock": 1}, "its own files, no socket"),
        ({"landlock": 7}, "its own files, no signal, no socket"),
        ({"landlock": 7, "seccomp": False}, "its own files, no signal"),
    ],
)
def test_what_confines_a_kernel_is_said(changes: dict[str, Any], says: str) -> None:
    assert finding(uml(**changes), "confinement").meaning.endswith(says)
