"""manifest.json: where a run's figures come from. Enough to derive its tables again, and to know what to doubt."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from minigts.errors import InputError, Problem
from minigts.experiments import store
from minigts.experiments.model import Experiment
from minigts.topology.plan import Plan

FILE = "manifest.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Machine(_Part):
    """The computer that carried the lab."""

    cpu: str
    cores: int
    memory_mb: int
    kernel: str


class Noise(_Part):
    """How busy the machine was. `steal_s` is processor time taken by other guests since boot, over all cores."""

    load_1min: float
    steal_s: float


class EndpointFacts(_Part):
    address: str
    mtu: int


class OverlayFacts(_Part):
    """An overlay as it was measured: its endpoints by host, and what its verify script said."""

    endpoints: dict[str, EndpointFacts] = {}
    verify: str = ""


class Guard(_Part):
    """What watched over the samples: the limit of each signal, the signals that this machine does not have, how many
    results are tainted, and how many attempts were thrown away because they were."""

    limits: dict[str, float] = {}
    absent: tuple[str, ...] = ()
    tainted: int = 0
    repeated: int = 0


class Manifest(_Part):
    """Where a results directory comes from.

    `commit` is minigts's own, empty outside a git tree; times are UTC in ISO 8601; `tools` and `readback` are what the
    caller asked the hosts for, `emulator` and `certificate` what it measured of the lab beforehand. No path of the
    machine is in it.
    """

    minigts: str
    commit: str = ""
    experiment: Experiment
    topology_sha256: str
    plan: Plan
    provider: str
    machine: Machine
    tools: dict[str, str] = {}
    emulator: dict[str, str] = {}
    certificate: dict[str, JsonValue] = {}
    readback: dict[str, JsonValue] = {}
    overlays: dict[str, OverlayFacts] = {}
    skipped: dict[str, str] = {}
    """Overlays that could not be joined, and why."""
    noise_before: Noise | None = None
    noise_after: Noise | None = None
    guard: Guard | None = None
    samples_planned: int
    started: str
    ended: str | None = None


def write(directory: Path, manifest: Manifest) -> None:
    """Put the manifest into the results directory, whole or not at all."""
    store.write(directory / FILE, manifest.model_dump_json(indent=1, by_alias=True) + "\n")


def read(directory: Path) -> Manifest:
    """The results directory's manifest. Raises InputError when it has none that can be read."""
    path = directory / FILE
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError([Problem(str(path), 0, f"cannot be read: {error.strerror}")]) from error
    except ValidationError as error:
        raise InputError(
            [Problem(str(path), 0, f"{'.'.join(map(str, item['loc']))}: {item['msg']}") for item in error.errors()]
        ) from error


def now() -> str:
    """The time, UTC, `2026-11-21T11:02:45.123456+00:00`."""
    return datetime.now(UTC).isoformat()


def machine(proc: Path = Path("/proc")) -> Machine:
    """This computer, from /proc (proc(5)); what it does not say is left empty or 0."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", _text(proc / "cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", _text(proc / "meminfo"), re.MULTILINE)
    return Machine(
        cpu=cpu[1].strip() if cpu else platform.machine(),
        cores=os.cpu_count() or 0,
        memory_mb=int(memory[1]) // 1024 if memory else 0,
        kernel=_text(proc / "sys/kernel/osrelease").strip(),
    )


def noise(proc: Path = Path("/proc")) -> Noise:
    """How busy this computer is now, from /proc/loadavg and /proc/stat's eighth counter (proc(5))."""
    load, stat = _text(proc / "loadavg").split(), _text(proc / "stat").partition("\n")[0].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return Noise(load_1min=float(load[0]) if load else 0.0, steal_s=int(stat[8]) / ticks if len(stat) > 8 else 0.0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
