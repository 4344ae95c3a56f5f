"""The findings of `minigts doctor` for the provider `vagrant`."""

from __future__ import annotations

from collections.abc import Iterator

from minigts.providers.base import DoctorFinding
from minigts.providers.vagrant.prerequisites import SET_UP, Facts

OWN_LIBVIRT = "minigts libvirt start"
EMULATED_BOOT_S = 20


def findings(facts: Facts) -> Iterator[DoctorFinding]:
    """The findings for virtual machines on a machine with these facts. Pure."""
    for package in facts.packages:
        if package.present:
            yield DoctorFinding(package.name, "ok", "installed")
        else:
            yield DoctorFinding(package.name, "missing", "not installed", SET_UP)
    if facts.libvirt_answers:
        yield DoctorFinding("libvirt", "ok", f"answers at {facts.libvirt_uri}")
    else:
        join = f"sudo usermod -aG libvirt {facts.user}, and log in again"
        remedy = f"sudo systemctl start libvirtd; {join}. Without systemd: {OWN_LIBVIRT}"
        yield DoctorFinding("libvirt", "missing", f"nothing answers at {facts.libvirt_uri}", remedy)
    if not facts.box_ready:
        yield DoctorFinding("box", "ok", "not built yet: the first up does that, in two to three minutes")
    yield _accelerator(facts)


def _accelerator(facts: Facts) -> DoctorFinding:
    """Whether machines run under KVM or are emulated, and how long they take to boot, by docs/vagrant.md."""
    if facts.accelerator == "kvm":
        return DoctorFinding("KVM", "ok", facts.reason)
    if facts.accelerator == "untried":
        return DoctorFinding(
            "KVM", "ok", f"there, and not tried yet: the first up boots a guest under it; or now: {SET_UP}"
        )
    meaning = f"{facts.reason}; QEMU emulates: {EMULATED_BOOT_S} s for a machine, {facts.cores} at a time"
    remedy = facts.kvm_remedy or "see `docs/vagrant.md`; a large lab is quicker on the provider uml"
    return DoctorFinding("KVM", "slow", meaning, remedy)
