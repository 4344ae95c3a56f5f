"""The process that answers netlab's programs: input, output, folder and exit code are those of whoever asks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from minigts.cli import netlab_stand_in as stand_in
from minigts.netlab import programs
from minigts.netlab.standby import Standby


def does(name: str, words: Sequence[str]) -> int:
    """A program. It writes by itself, since pytest holds this process's sys.stdout."""
    match words:
        case ["raise"]:
            raise ValueError("what is this")
        case ["sleep", file]:
            Path(file).write_text(str(os.getpid()))
            time.sleep(60)
        case ["read"]:
            os.write(1, os.read(0, 100))
    os.write(1, f"{name} in {Path.cwd().name}: {' '.join(words)}\n".encode())
    return len(words)


def asking(place: Path, name: str, *words: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(stand_in.__file__), str(place / "ear"), name, *words]


def served(place: Path, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What a program has printed that asks while a standby listens. The standby is this process, which forks."""
    out, errors = place / "out", place / "errors"
    with out.open("w") as output, errors.open("w") as complained:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=output, stderr=complained, cwd=place)
        assert process.stdin is not None
        process.stdin.write(b"a line\n")
        process.stdin.close()
        code = Standby(place / "ear").serve(process, does)
    return subprocess.CompletedProcess(argv, code, out.read_text(), errors.read_text())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / ("a-path-of-more-bytes-than-a-socket's-address-may-have-" * 2) / "here"
    made.mkdir(parents=True)
    return made


def waits_for(place: Path, argv: Sequence[str]) -> list[str]:
    """A shell that asks once the standby listens: before, a connection is refused."""
    return ["sh", "-c", f'until [ -S "{place}/ear" ]; do sleep 0.05; done; sleep 1; "$@"', "sh", *argv]


def test_a_program_has_its_own_output_folder_and_code(place: Path) -> None:
    done = served(place, waits_for(place, asking(place, "docker", "exec", "clab-t-r1", "true")))
    assert (done.returncode, done.stdout, done.stderr) == (3, "docker in here: exec clab-t-r1 true\n", "")


def test_a_program_has_its_own_input(place: Path) -> None:
    assert served(place, waits_for(place, asking(place, "docker", "read"))).stdout.startswith("a line\n")


def test_an_error_of_the_program_is_its_own(place: Path) -> None:
    done = served(place, waits_for(place, asking(place, "docker", "raise")))
    assert (done.returncode, done.stdout) == (1, "")


def test_a_program_whose_asker_is_gone_ends(place: Path) -> None:
    file = place / "pid"
    script = f'"$@" & asker=$!; until [ -s "{file}" ]; do sleep 0.05; done; kill -9 $asker; sleep 1'
    done = served(place, waits_for(place, ["sh", "-c", script, "sh", *asking(place, "docker", "sleep", str(file))]))
    assert done.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_where_nobody_listens_the_program_loads_all_by_itself() -> None:
    with programs.stand_ins() as (folder, _):
        done = subprocess.run([folder / "groups"], capture_output=True, text=True, check=True)
    assert done.stdout == "clab_admins\n"


@pytest.mark.parametrize(
    ("name", "words", "asked"),
    [("docker", ["exec", "-it", "r1", "bash"], False), ("containerlab", ["deploy"], False), ("docker", ["ps"], True)],
)
def test_what_has_a_terminal_or_takes_long_is_not_asked_for(
    name: str, words: list[str], asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Sequence[str]] = []

    def load(program: str, argv: Sequence[str]) -> None:
        seen.append(argv)
        raise SystemExit(0)

    monkeypatch.setattr(stand_in, "_load", load)
    monkeypatch.setattr(stand_in, "ask", lambda *_: 5)
    if asked:
        assert stand_in.main("/x", name, words) == 5
    else:
        with pytest.raises(SystemExit):
            stand_in.main("/x", name, words)
    assert bool(seen) is not asked
