"""The doctor: on this machine as it is, and on machines that are described to it."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fake_provider import FakeProvider
from minigts.artifacts.digests import Proof
from minigts.cli.app import app
from minigts.machine.contained import NEW_PID, Namespaces
from minigts.machine.limits import MemoryLimit
from minigts.providers import DEFAULT, registry, system_packages
from minigts.providers.base import DoctorFinding
from minigts.providers.doctor import Diagnosis, default_can_run, examine
from minigts.providers.mininet import doctor as mininet_doctor
from minigts.providers.system_packages import SystemPackage
from minigts.providers.uml import doctor as uml_doctor
from minigts.providers.uml import facts as uml_facts
from minigts.providers.uml.build import build_all, namespaces
from minigts.providers.uml.build.image import Room
from minigts.providers.uml.facts import MachineFacts
from minigts.providers.vagrant import doctor as vagrant_doctor
from minigts.providers.vagrant import prerequisites as vagrant_prerequisites

GOOD = MachineFacts(
    system="Linux",
    machine="x86_64",
    root=False,
    user="alice",
    cores=4,
    memory=MemoryLimit("this machine's memory", 8000, 9000, "end other programs"),
    open_files=1024,
    shm_free_mb=8000,
    shm_executable=True,
    image_ready=False,
    disks=(Room(Path("cache"), free_mb=20_000, needed_mb=2000),),
    seccomp=True,
    listener=True,
    ptrace=True,
    landlock=7,
    apart=Namespaces(flags=NEW_PID),
    counted="a control group in /g",
    limits=DoctorFinding("cpus below 1", "ok", "by control groups"),
    way_out=DoctorFinding("way out", "ok", "by slirp4netns"),
    socket_buffer_bytes=4 * 2**20,
    namespaces_blocked_by="",
    namespaces_restricted_by="",
    subordinate_ids=True,
    can_install=False,
    packages=(SystemPackage("mmdebstrap", present=True),),
    uncompiled=(),
    virtual_disks=(),
    virtual_lacks=(),
)
MACHINES = vagrant_prerequisites.Facts(
    user="alice",
    cores=4,
    packages=(SystemPackage("vagrant", present=True),),
    libvirt_uri="qemu:///system",
    libvirt_answers=True,
    box_ready=True,
    accelerator="kvm",
    reason="a guest's kernel ran under it",
)
FULL = (Room(Path("cache"), free_mb=100, needed_mb=2000),)


def uml(**changes: Any) -> Diagnosis:
    return diagnosis(DEFAULT, uml_doctor.findings(dataclasses.replace(GOOD, **changes)))


def diagnosis(name: str, findings: Iterable[DoctorFinding]) -> Diagnosis:
    return Diagnosis(name, "", tuple(findings))


def finding(diagnosis: Diagnosis, name: str) -> DoctorFinding:
    (wanted,) = (each for each in diagnosis.findings if each.name == name)
    return wanted


def test_the_default_provider_is_registered() -> None:
    assert DEFAULT in registry.names()


@pytest.mark.parametrize("name", registry.names())
def test_a_provider_is_the_folder_of_its_name(name: str) -> None:
    """The launcher knows a provider by its folder, before there is a Python."""
    provider = registry.make(name, Path())
    assert (provider.name, type(provider).__module__) == (name, f"minigts.providers.{name}.provider")


def test_a_good_machine_runs_the_default_provider() -> None:
    found = uml()
    assert found.verdict == "runs"
    assert {each.state for each in found.findings} == {"ok"}
    assert not any(each.remedy for each in found.findings)


@pytest.mark.parametrize(("landlock", "verdict"), [(0, "note"), (6, "ok")])
def test_the_setting_that_would_set_hosts_apart_is_named(landlock: int, verdict: str) -> None:
    lacks = Namespaces(0, lacks="this machine refuses user namespaces")
    said = uml(namespaces_restricted_by="a.b=1", apart=lacks, landlock=landlock)
    found = next(each for each in said.findings if each.name == "pid namespaces")
    assert (found.state, "sudo sysctl -w a.b=1" in f"{found.meaning} {found.remedy}") == (verdict, True)


@pytest.mark.parametrize(
    ("changes", "name", "remedy"),
    [
        ({"machine": "aarch64"}, "processor", "x86-64"),
        ({"system": "Darwin"}, "processor", "Linux"),
        ({"seccomp": False, "ptrace": False}, "system calls", "SYS_PTRACE"),
        ({"shm_free_mb": None}, "/dev/shm", "mount"),
        ({"shm_executable": False}, "/dev/shm", "remount,exec"),
        ({"shm_free_mb": 64}, "/dev/shm", "--shm-size"),
        ({"memory": dataclasses.replace(GOOD.memory, free_mb=100)}, "memory", "end other programs"),
        (
            {"memory": MemoryLimit("vm.overcommit_memory=2", 100, 900, "sudo sysctl -w vm.overcommit_memory=0")},
            "memory",
            "sudo sysctl -w vm.overcommit_memory=0",
        ),
        ({"disks": FULL}, "disk", "XDG_CACHE_HOME"),
        ({"packages": (SystemPackage("mmdebstrap", present=False),)}, "mmdebstrap", "apt-get install mmdebstrap"),
        ({"namespaces_blocked_by": "a.b=1"}, "user namespaces", "sysctl -w a.b=1"),
        ({"subordinate_ids": False}, "user namespaces", "--add-subuids 100000-165535"),
    ],
)
def test_what_stops_uml_has_a_remedy(changes: dict[str, Any], name: str, remedy: str) -> None:
    found = uml(**changes)
    assert found.verdict == "cannot run"
    assert finding(found, name).state == "missing"
    assert remedy in finding(found, name).remedy
    assert not default_can_run([found])


@pytest.mark.parametrize(
    ("changes", "name", "cost"),
    [
        ({"cores": 1}, "cores", "jitter"),
        ({"socket_buffer_bytes": 212_992}, "socket buffers", "0.8 Gbit/s"),
        ({"open_files": 256}, "open files", "256"),
        ({"seccomp": False}, "system calls", "two times slower"),
        ({"memory": dataclasses.replace(GOOD.memory, free_mb=1000)}, "memory", "2 GiB"),
        ({"shm_free_mb": 1000}, "/dev/shm", "small labs"),
        ({"packages": (SystemPackage("mmdebstrap", present=False),), "can_install": True}, "mmdebstrap", "first up"),
        (
            {"uncompiled": ("clock",), "virtual_lacks": ("9 MB are free",)},
            "virtual time",
            "only with --time real: 9 MB",
        ),
    ],
)
def test_what_slows_uml_says_its_cost(changes: dict[str, Any], name: str, cost: str) -> None:
    found = uml(**changes)
    assert found.verdict == "runs slowly"
    assert cost in finding(found, name).meaning
    assert finding(found, name).remedy
    assert default_can_run([found])


@pytest.mark.parametrize(
    ("changes", "name", "meaning"),
    [
        ({"landlock": 0}, "confinement", "reads and writes your files"),
        (
            {"proofs": {"image": Proof(), "kernel": Proof(("linux",), "the mirror has moved on"), "clock": Proof()}},
            "built parts",
            "kernel unproven: other bytes in linux; the mirror has moved on; image proven; clock proven",
        ),
    ],
)
def test_what_is_to_be_known_of_uml_slows_nothing(changes: dict[str, Any], name: str, meaning: str) -> None:
    found = uml(**changes)
    assert (found.verdict, finding(found, name).state) == ("runs", "note")
    assert meaning in finding(found, name).meaning
    assert finding(found, name).remedy
    assert default_can_run([found])


def test_built_parts_with_the_expected_bytes_are_proven() -> None:
    found = uml(proofs={"image": Proof(), "clock": Proof()})
    assert found.verdict == "runs"
    assert finding(found, "built parts").meaning == "image, clock: proven, they have the expected bytes"


def test_a_ready_image_needs_nothing_that_builds_one() -> None:
    absent = (SystemPackage("mmdebstrap", present=False),)
    assert uml(image_ready=True, packages=absent, disks=FULL, subordinate_ids=False).verdict == "runs"


def test_what_virtual_time_takes_is_no_matter_of_mininets() -> None:
    found = finding(uml(uncompiled=("clock",), virtual_lacks=("9 MB are free",)), "virtual time")
    assert found.remedy == "remedy that, then run minigts kernel build"
    facts = dataclasses.replace(GOOD, uncompiled=("clock",))
    assert "virtual time" not in {each.name for each in uml_doctor.kernel_findings(facts)}


def test_what_virtual_time_takes_is_said_before_it_is_built() -> None:
    disks = (Room(Path("/var/tmp"), free_mb=20_000, needed_mb=5000),)
    found = uml(uncompiled=("full kernel", "clock"), virtual_disks=disks)
    assert found.verdict == "runs"
    meaning = finding(found, "virtual time").meaning
    assert "the full kernel and the clock; the first up, run or test does that" in meaning
    assert (
        f"{build_all.DURATION}, 5000 MB in /var/tmp and up to {build_all.MEMORY_MB} MB of memory meanwhile" in meaning
    )
    assert "--time real" in meaning


@pytest.mark.parametrize(("ptrace", "meaning"), [(True, "has only ptrace"), (False, "cannot run")])
def test_a_filter_that_nobody_may_listen_to_is_of_use_to_debians_kernel_alone(ptrace: bool, meaning: str) -> None:
    found = finding(uml(listener=False, ptrace=ptrace), "system calls")
    assert (found.state, meaning in found.meaning, "Linux 5.14" in found.remedy) == ("slow", True, True)


def test_ptrace_may_be_forbidden_where_seccomp_is_not() -> None:
    assert uml(ptrace=False).verdict == "runs"


def test_root_needs_no_user_namespaces() -> None:
    assert uml(root=True, namespaces_blocked_by="a.b=1", subordinate_ids=False).verdict == "runs"


def mininet(natively_missing: list[str], **changes: Any) -> Diagnosis:
    facts = dataclasses.replace(GOOD, **changes)
    return diagnosis("mininet", mininet_doctor.findings(natively_missing, uml_doctor.kernel_findings(facts)))


def test_mininet_needs_nothing_more_where_the_machines_own_kernel_will_do() -> None:
    assert mininet([], shm_free_mb=None).verdict == "runs"


def test_mininet_runs_in_a_kernel_of_uml_where_the_machines_own_will_not_do() -> None:
    reasons = ["namespaces are made by root"]
    assert (mininet(reasons).verdict, finding(mininet(reasons), "kernel").state) == ("runs slowly", "slow")
    assert "namespaces are made by root" in finding(mininet(reasons), "kernel").meaning
    assert " jq" in finding(mininet(reasons), "kernel").remedy
    assert mininet(reasons, shm_free_mb=None).verdict == "cannot run"


def vagrant(**changes: Any) -> Diagnosis:
    return diagnosis("vagrant", vagrant_doctor.findings(dataclasses.replace(MACHINES, **changes)))


def test_a_machine_whose_kvm_has_run_a_guest_runs_vagrant() -> None:
    assert vagrant().verdict == "runs"


@pytest.mark.parametrize(
    ("changes", "name", "remedy"),
    [
        ({"packages": (SystemPackage("vagrant", present=False),)}, "vagrant", "minigts setup vagrant"),
        ({"libvirt_answers": False}, "libvirt", "usermod -aG libvirt alice, and log in again"),
        ({"libvirt_answers": False}, "libvirt", "minigts libvirt start"),
    ],
)
def test_what_stops_vagrant_has_a_remedy(changes: dict[str, Any], name: str, remedy: str) -> None:
    found = vagrant(**changes)
    assert found.verdict == "cannot run"
    assert remedy in finding(found, name).remedy


def test_emulation_says_why_and_how_long() -> None:
    found = vagrant(accelerator="emulation", reason="a guest did not run under /dev/kvm: it said nothing")
    assert found.verdict == "runs slowly"
    assert "a guest did not run" in finding(found, "KVM").meaning
    assert "20 s for a machine, 4 at a time" in finding(found, "KVM").meaning


def test_kvm_that_is_closed_has_a_remedy() -> None:
    remedy = "sudo usermod -aG kvm alice, and log in again"
    found = vagrant(accelerator="emulation", reason="/dev/kvm is closed to you", kvm_remedy=remedy)
    assert finding(found, "KVM").remedy == remedy


def test_kvm_that_is_there_is_not_taken_for_kvm_that_works() -> None:
    assert "not tried yet" in finding(vagrant(accelerator="untried"), "KVM").meaning


def test_this_machine_is_read() -> None:
    facts = uml_facts.gather()
    assert (facts.system, facts.machine) == (platform.system(), platform.machine())
    assert facts.memory.free_mb > 0
    assert facts.cores > 0
    assert facts.socket_buffer_bytes > 0
    assert {package.name for package in facts.packages} >= {"mmdebstrap", "e2fsprogs"}


def test_the_package_list_goes_by_programs_and_files(tmp_path: Path) -> None:
    (tmp_path / "keys-2").touch()
    text = f"# a comment\n\nbash  bash-package\nno-such-program  nothing\n{tmp_path}/keys-*  keys  user\n"
    (tmp_path / "system-packages").write_text(text)
    for_all = (SystemPackage("bash-package", True, "bash"), SystemPackage("nothing", False, "no-such-program"))
    assert system_packages.listed_packages(tmp_path, root=True) == for_all
    assert system_packages.listed_packages(tmp_path, root=False) == (
        *for_all,
        SystemPackage("keys", True, f"{tmp_path}/keys-*"),
    )


class Another(FakeProvider):
    """A provider that is new here."""

    name = "another"
    about = "nothing anyone has seen"

    def findings(self) -> Iterable[DoctorFinding]:
        yield DoctorFinding("the moon", "missing", "not in sight", "wait until it rises")


class Prepared(Another):
    def prepare(self, progress: Any, meanwhile: Any = None) -> None:
        progress("the moon rises")


def test_a_new_provider_is_examined_as_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._PROVIDERS, "another", Another)
    done = CliRunner().invoke(app, ["doctor"])
    assert "another  cannot run  nothing anyone has seen" in done.stdout
    assert "the moon: wait until it rises" in done.stdout
    assert [each.provider for each in examine(registry.names())] == [*registry.names()]


@pytest.mark.parametrize(("provider", "told"), [(Another, ""), (Prepared, "the moon rises\n")])
def test_a_provider_is_set_up_by_what_it_prepares(
    monkeypatch: pytest.MonkeyPatch, provider: type[Another], told: str
) -> None:
    monkeypatch.setitem(registry._PROVIDERS, "another", provider)
    done = CliRunner().invoke(app, ["setup", "another"])
    assert (done.exit_code, done.stderr) == (0, f"{told}provider another can run here\n")


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
    assert namespaces.has_range(tmp_path / "subuid", "alice") is enough


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


REFUSED = Namespaces(lacks="this machine refuses user namespaces")


@pytest.mark.parametrize(
    ("changes", "name", "state", "says"),
    [
        ({}, "pid namespaces", "ok", "sees nobody else's processes"),
        ({"apart": REFUSED}, "pid namespaces", "ok", "refuses user namespaces: a host's kernel sees"),
        ({"apart": REFUSED, "landlock": 5}, "pid namespaces", "note", "can signal your processes"),
        ({}, "processes of a host", "ok", "at most 1024, counted by a control group in /g"),
        ({"counted": "", "root": False}, "processes of a host", "ok", "as many as you may have"),
    ],
)
def test_what_holds_a_kernels_processes_is_said(changes: dict[str, Any], name: str, state: str, says: str) -> None:
    found = finding(uml(**changes), name)
    assert found.state == state
    assert says in found.meaning
