"""OpenSSH's programs work in hosts, by what `minigts ssh-config` prints, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from live.conftest import MakeLab
from live.program import PATIENCE_S, TOPOLOGIES, Program, until
from minigts.foreign import user_text
from minigts.lab import Lab

pytestmark = pytest.mark.touched("tools/minigts/lab/ssh.py", "provision/agent")

SIZE_BYTES = 1_000_000
LIMIT_S = 120


def configured(lab: Lab, file: Path) -> Path:
    """The file that a user makes of what `ssh-config` prints."""
    file.write_text(Program(lab.rundir.parents[1]).succeeds("ssh-config", lab.name))
    return file


def done(program: str, config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """With no input and no terminal: whoever asks a question gets no answer."""
    argv = [program, "-F", str(config), *words]
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LIMIT_S, cwd=config.parent
    )


def sessions(lab: Lab) -> int:
    """How many sshd run on `ams`. The search does not find itself."""
    count = ["sh", "-c", "grep -l '[s]shd' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"]
    return int(user_text(lab.provider.run("ams", count, timeout_s=PATIENCE_S).stdout))


def stands_still(lab: Lab) -> bool:
    before_s = lab.provider.now_s()
    return not until(lambda: lab.provider.now_s() != before_s, patience_s=1)


@pytest.mark.parametrize(
    "provider",
    [pytest.param("uml", marks=pytest.mark.virtual), pytest.param("mininet", marks=pytest.mark.mininet)],
)
def test_a_command_runs_and_a_file_goes_there_and_back(make_lab: MakeLab, tmp_path: Path, provider: str) -> None:
    lab = make_lab(TOPOLOGIES / "pair.yaml", provider=provider)
    config = configured(lab, tmp_path / "lab.ssh")
    said = done("ssh", config, "bra", "hostname; id --user; exit 7")
    assert (said.stdout, said.stderr, said.returncode) == ("bra\n0\n", "", 7)
    content = os.urandom(SIZE_BYTES)
    (tmp_path / "there").write_bytes(content)
    for words in (("there", "ams:/var/tmp/file"), ("ams:/var/tmp/file", "back")):
        copied = done("scp", config, "-q", *words)
        assert (copied.stderr, copied.returncode) == ("", 0)
    assert (tmp_path / "back").read_bytes() == content


@pytest.mark.virtual
def test_a_user_s_ssh_that_is_killed_leaves_no_session_and_the_clock_stands_still(
    make_lab: MakeLab, tmp_path: Path
) -> None:
    lab = make_lab(TOPOLOGIES / "pair.yaml")
    config = configured(lab, tmp_path / "lab.ssh")
    argv = ["ssh", "-tt", "-F", str(config), "ams", "echo here; exec sleep 1000"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"here\r\n"
        assert sessions(lab) > 0
        assert not stands_still(lab)
        started.send_signal(signal.SIGKILL)
    assert until(lambda: sessions(lab) == 0)
    assert until(lambda: stands_still(lab))
    assert lab.provider.run("ams", ["pgrep", "--full", "sleep 1000"], timeout_s=PATIENCE_S, check=False).code == 1
