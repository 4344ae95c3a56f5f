"""Whether this machine's KVM runs a guest: tested by booting one, and remembered until this machine boots again.

/dev/kvm may exist and be accessible although ordinary kernels crash under it, as in some nested clouds. So the box's
kernel is started under it; its initrd prints one line as soon as it runs.
"""

from __future__ import annotations

import getpass
import grp
import os
import platform
import stat
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from minigts import paths
from minigts.errors import CommandTimeout, MinigtsError
from minigts.foreign import Foreign
from minigts.language import documents
from minigts.machine import shell
from minigts.machine.proc import boot_id

Verdict = Literal["kvm", "emulation"]
KVM = Path("/dev/kvm")
PROGRAM = "qemu-system-x86_64"
SAYS = "minigts: the kernel runs"
"""The line that provision/box/init writes to the console."""
TRIAL_S = 15.0
"""How long to wait for that line; under a working KVM it comes within two seconds."""


class Tried(BaseModel):
    """A verdict, its reason, and the kernel, boot and QEMU for which it holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kernel: str
    boot_id: str
    qemu: str
    verdict: Verdict
    reason: str


def remembered_verdict() -> Tried | None:
    """The verdict for this machine's present boot and QEMU; None when KVM was not tried yet."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return _tried("emulation", f"{KVM} is {'closed to you' if is_closed() else 'not there'}")
    try:
        tried = documents.model(paths.read_whole(_file(), documents.USUAL.bytes), Tried)
    except (OSError, ValueError):
        return None
    now = _tried(tried.verdict, tried.reason)
    return tried if tried == now else None


def decide(disk_head: Path) -> Tried:
    """The remembered verdict, or that of a trial with the first part of the box's disk, with boot loader and kernel."""
    tried = remembered_verdict()
    if tried is None:
        tried = _try(disk_head)
        _file().parent.mkdir(parents=True, exist_ok=True)
        paths.write_whole(_file(), tried.model_dump_json(indent=1) + "\n")
    return tried


def is_closed() -> bool:
    """Whether KVM exists and this user may not use it."""
    return KVM.exists() and not os.access(KVM, os.R_OK | os.W_OK)


def remedy() -> str:
    """The command that gives this user access to KVM; empty when it is not needed."""
    if not is_closed():
        return ""
    group = openers()
    if group:
        return f"sudo usermod -aG {group} {user()}, and log in again"
    give = f"sudo chgrp kvm {KVM}; sudo chmod 660 {KVM}"
    return f"no group may use it: {give}; sudo usermod -aG kvm {user()}, and log in again"


def openers() -> str:
    """The group whose members may use KVM, by its name or else its number; empty if there is none or no KVM."""
    try:
        state = KVM.stat()
    except OSError:
        return ""
    if state.st_mode & (stat.S_IRGRP | stat.S_IWGRP) != stat.S_IRGRP | stat.S_IWGRP:
        return ""
    try:
        return grp.getgrgid(state.st_gid).gr_name
    except KeyError:
        return str(state.st_gid)


def user() -> str:
    """This user's name, for a command in a message."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "YOU"


def _try(disk_head: Path) -> Tried:
    started = time.monotonic()
    argv = [
        *(PROGRAM, "-machine", "pc,accel=kvm", "-cpu", "host", "-m", "256", "-display", "none", "-nic", "none"),
        *("-no-reboot", "-serial", "stdio", "-monitor", "none"),
        # In QEMU's options a comma ends a value, and two commas stand for one (qemu(1), "-drive").
        *("-drive", f"file={str(disk_head).replace(',', ',,')},format=raw,if=virtio,snapshot=on"),
    ]
    try:
        ended = shell.run(argv, timeout_s=TRIAL_S, check=False)
        spoken, why = Foreign(ended.stdout), (ended.stderr.strip().splitlines() or ["QEMU ended"])[0]
    except CommandTimeout as error:
        spoken, why = error.out, f"the guest printed nothing within {TRIAL_S:g} s"
    except MinigtsError as error:
        spoken, why = Foreign(), str(error)
    if SAYS in spoken:
        return _tried("kvm", f"a guest's kernel ran under it within {time.monotonic() - started:.0f} s")
    return _tried("emulation", f"a guest did not run under {KVM}: {why}")


def _tried(verdict: Verdict, reason: str) -> Tried:
    return Tried(kernel=platform.release(), boot_id=boot_id(), qemu=_qemu(), verdict=verdict, reason=reason)


def _qemu() -> str:
    """QEMU's version, such as `QEMU emulator version 7.2.22 (Debian …)`; empty if it is not installed."""
    try:
        return shell.run([PROGRAM, "--version"], timeout_s=20, check=False).stdout.partition("\n")[0]
    except MinigtsError:
        return ""


def _file() -> Path:
    return paths.cache_root() / "accelerator.json"
