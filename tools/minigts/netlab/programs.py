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

NAMES = ("containerlab", "docker", "sudo", "brctl", "groups")
TIME = "MINIGTS_NETLAB_TIME"
"""The variable that tells these programs the time of the lab."""
_PROGRAM = """#!/bin/sh
PYTHONPATH={root} exec {python} -P -m minigts.cli.called_by_netlab {name} "$@"
"""


@contextmanager
def stand_ins() -> Iterator[Path]:
    """A folder with these programs, for the time of the context."""
    with tempfile.TemporaryDirectory(prefix="minigts-netlab-") as directory:
        place = Path(directory).resolve()
        for name in NAMES:
            root, python = shlex.quote(str(paths.import_root())), shlex.quote(sys.executable)
            program = place / name
            program.write_text(_PROGRAM.format(root=root, python=python, name=name), encoding="utf-8")
            program.chmod(0o755)
        yield place


def environment(place: Path, time: str) -> Mapping[str, str]:
    """The variables with which netlab finds them."""
    return {"PATH": f"{place}:{os.environ.get('PATH', os.defpath)}", TIME: time}
