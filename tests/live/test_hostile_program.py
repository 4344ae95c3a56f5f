"""A guest's own program against the stub that catches its system calls: without a lab, the full kernel alone.

Its root is this machine's own file system, read-only, by hostfs; the program runs as nobody.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from live.test_virtual_kernel import VIRTUAL, boot

pytestmark = [pytest.mark.full_kernel, pytest.mark.nightly]

PROGRAM = Path(__file__).with_name("hostile_program.py")
ROOTS_OWN = "what only root may read"
TIMES = {"virtual": VIRTUAL, "real": ()}
OUTCOMES = {
    "feigned_fault": r"^(NO GADGET|NOTHING CAME)$",
    "strange_orders": r"^REACHED 0 of [1-9]\d+$",
    "deaf": r"^ended 13[79]$",
    "ordered_to_wait": r"^WENT ON$",
}


def tried(directory: Path, way: str, time: str) -> str:
    """What the program said, and then what is in root's own file, if the guest is there to tell."""
    program = directory / "hostile.py"
    program.write_text(PROGRAM.read_text())
    script = f"""
mount -t tmpfs tmpfs /mnt && umask 077 && echo '{ROOTS_OWN}' >/mnt/own
{sys.executable} -ISc 'exec(open("{program}").read())' {way} '{ROOTS_OWN}'
echo "ended $?"
sleep 1
echo "file: $(cat /mnt/own)"
"""
    return boot(directory, script, "seccomp=on", passing=TIMES[time])


@pytest.mark.parametrize("time", ["virtual", "real"])
@pytest.mark.parametrize("way", OUTCOMES)
def test_a_program_reaches_no_memory_but_its_own_and_stops_nobody(way: str, time: str, tmp_path: Path) -> None:
    said = tried(tmp_path, way, time)
    assert re.search(OUTCOMES[way], said, re.MULTILINE), said
    assert re.findall("^file: (.*)$", said, re.MULTILINE) == [ROOTS_OWN], said
