"""The programs that netlab finds on its PATH in place of containerlab, Docker and sudo."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from minigts import paths
from minigts.netlab.standby import Standby

NAMES = ("containerlab", "docker", "sudo", "brctl", "groups")
STAND_IN = Path("minigts") / "cli" / "netlab_stand_in.py"
TIME = "MINIGTS_NETLAB_TIME"
"""The variable that tells these programs the time of the lab."""
_PROGRAM = """#!/bin/sh
PYTHONPATH={root} exec {python} -I -S {program} {address} {name} "$@"
"""


@contextmanager
def stand_ins() -> Iterator[tuple[Path, Standby]]:
    """A folder with these programs, and the process's ear for them, for the time of the context."""
    with tempfile.TemporaryDirectory(prefix="minigts-netlab-") as directory:
        place = Path(directory).resolve()
        address = place / ".standby"
        files = {
            "root": paths.import_root(),
            "python": sys.executable,
            "program": paths.import_root() / STAND_IN,
            "address": address,
        }
        quoted = {key: shlex.quote(str(file)) for key, file in files.items()}
        for name in NAMES:
            program = place / name
            program.write_text(_PROGRAM.format(**quoted, name=name), encoding="utf-8")
            program.chmod(0o755)
        yield place, Standby(address)


def environment(place: Path, time: str) -> Mapping[str, str]:
    """The variables with which netlab finds them."""
    return {"PATH": f"{place}:{os.environ.get('PATH', os.defpath)}", TIME: time}
