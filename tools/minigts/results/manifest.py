"""manifest.json: the origin of a run's figures. It suffices to derive the tables again, and to judge their quality."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.language.documents import Bounds
from minigts.machine.proc import PROC, TICKS_PER_SECOND, text_of
from minigts.results import folder
from minigts.results.schema import MANIFEST, VERSION, Hardware, Manifest, Noise

FILE = MANIFEST


def write(directory: Path, manifest: Manifest) -> None:
    """Write the manifest to the results directory, whole or not at all."""
    folder.write(folder.inside(directory, FILE), manifest.model_dump_json(indent=1, by_alias=True) + "\n")


def read(directory: Path, bounds: Bounds = folder.OF_A_FILE) -> Manifest:
    """The results directory's manifest. Raises InputError when it is missing, broken, or above the bounds."""
    path = folder.inside(directory, FILE)
    value, text = folder.read_json(path, bounds=bounds)
    version = value.get("version") if isinstance(value, dict) else VERSION
    if isinstance(version, int) and version != VERSION:
        other = f"version {version} of results is of another minigts; this one reads version {VERSION}"
        raise InputError([Problem(str(path), folder.line_of(text, ("version",)), other)])
    return folder.validate_value(path, Manifest, value, text)


def now() -> str:
    """The present time in UTC, `2026-11-21T11:02:45.123456+00:00`."""
    return datetime.now(UTC).isoformat()


def machine(proc: Path = PROC) -> Hardware:
    """This computer's hardware, from /proc (proc(5)); what it does not show is empty or 0."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", text_of(proc / "cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", text_of(proc / "meminfo"), re.MULTILINE)
    return Hardware(
        cpu=cpu[1].strip() if cpu else platform.machine(),
        cores=os.cpu_count() or 0,
        memory_mb=int(memory[1]) // 1024 if memory else 0,
        kernel=text_of(proc / "sys/kernel/osrelease").strip(),
    )


def noise(proc: Path = PROC) -> Noise:
    """How busy this computer is now, from /proc/loadavg and /proc/stat's eighth counter (proc(5))."""
    load, stat = text_of(proc / "loadavg").split(), text_of(proc / "stat").partition("\n")[0].split()
    return Noise(
        load_1min=float(load[0]) if load else 0.0, steal_s=int(stat[8]) / TICKS_PER_SECOND if len(stat) > 8 else 0.0
    )
