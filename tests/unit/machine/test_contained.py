"""Processes that see no others: what they are in the namespaces of their own, started by a plain user."""

from __future__ import annotations

from isolated import run_isolated

START = """
import os, sys
from pathlib import Path
from minigts.machine import contained

inside = contained.namespaces()
assert not inside.lacks, inside.lacks
process = contained.start(
    ["/bin/sh", "-c", 'echo "process $$ of user $(id -u), group $(id -g)"'],
    output=1, pass_fds=(), env={}, cwd=Path("/"), inside=inside, before_exec=lambda: None,
)
sys.exit(process.wait(30))
"""


def test_a_plain_users_process_is_the_first_and_keeps_its_user() -> None:
    done = run_isolated(START, as_plain_user=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "process 1 of user 1000, group 1000\n"


PASSED = """
import os, sys
from pathlib import Path
from minigts.machine import contained

inside = contained.namespaces()
files = [Path(sys.prefix), Path("/"), Path("/usr"), Path("/etc")]
others = [os.open("/", os.O_RDONLY) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 7)]
held = [os.open(file, os.O_RDONLY) for file in ("/", "/usr", "/etc")]
given = (held[2], held[0], held[1])
reading, writing = os.pipe()
show = "for each in 3 4 5; do readlink /proc/self/fd/$each; done; ls /proc/self/fd | wc -l"
process = contained.start(
    ["/bin/sh", "-c", show], output=writing, pass_fds=given, env={}, cwd=Path("/"), inside=inside,
    before_exec=lambda: None,
)
assert process.wait(30) == 0
print(contained.descriptor_numbers(given), os.read(reading, 4096).decode().split())
"""


def test_descriptors_have_the_same_numbers_whatever_else_is_open() -> None:
    """They stand in a kernel's command line, which its guest can read. `ls` opens the directory as one more."""
    done = run_isolated(PASSED, as_plain_user=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[3, 4, 5] ['/etc', '/', '/usr', '7']\n"


FAILS = """
from pathlib import Path
from minigts.machine import contained

def refuse():
    raise PermissionError("no such rule")

try:
    contained.start(["/bin/true"], output=1, pass_fds=(0, 1, 2), env={}, cwd=Path("/"), inside=contained.namespaces(),
                    before_exec=refuse)
except OSError as error:
    print(error)
"""


def test_why_a_process_does_not_start_is_told() -> None:
    done = run_isolated(FAILS, as_plain_user=True)
    assert done.stdout == "/bin/true does not start: PermissionError: no such rule\n"
