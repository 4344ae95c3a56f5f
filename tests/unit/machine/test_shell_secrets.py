"""A password in an address, as in a Debian mirror's: no kernel has it in its environment, and no message shows it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from minigts.artifacts.build_errors import cause
from minigts.errors import CommandFailed, redact
from minigts.foreign import Foreign
from minigts.machine import shell
from minigts.paths import import_root

MIRROR = "http://user:s3cret@mirror.example/debian"
SHOWS = """
import os
from minigts.providers.uml.run import supervisor
supervisor._forget_environment()
print(*sorted(os.environ))
"""


def test_a_kernel_s_environment_has_nothing_of_the_user_s() -> None:
    """What it inherits is the supervisor's, which forgets its caller's first."""
    own = {"MINIGTS_DEBIAN_MIRROR": MIRROR, "MINIGTS_WEAVE": MIRROR, "TOKEN": "a", "MINIGTS_RUNDIR": "/run/x"}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(import_root()), **own}
    argv = [sys.executable, "-c", SHOWS]
    said = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
    assert set(said.split()) - {"LC_CTYPE"} == {"MINIGTS_RUNDIR", "PATH"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"E: Failed to fetch {MIRROR}/dists", "E: Failed to fetch http://…@mirror.example/debian/dists"),
        ("https://token@a.example/x https://b.example/y@z", "https://…@a.example/x https://b.example/y@z"),
        ("mail a@b.example, docker://r.example/web@sha256:0", "mail a@b.example, docker://r.example/web@sha256:0"),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_failed_command_does_not_show_it() -> None:
    with pytest.raises(CommandFailed) as failed:
        shell.run(["sh", "-c", f"echo cannot reach {MIRROR} >&2; exit 3"], timeout_s=20)
    assert "s3cret" not in str(failed.value)
    assert "mirror.example" in str(failed.value)


def test_the_end_of_a_build_s_log_does_not_show_it() -> None:
    assert "s3cret" not in cause(Foreign(f"a\nget {MIRROR}\nerror\n"), "1 GB")
