"""docs/own-programs.md, as it stands: its commands, in its order, with what it says of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import PROJECT, Program

PAGE = (PROJECT / "docs" / "own-programs.md").read_text(encoding="utf-8")
EXAMPLE = PROJECT / "docs" / "examples" / "own-programs"
COMMANDS = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
LIMIT_S = 900.0
"""Longer than programs take that are compiled when they are first asked for, on a machine that runs other tests."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """The example's directory, and in front of the path what an installation has."""
    shutil.copytree(EXAMPLE, tmp_path / "example")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "minigts"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m minigts "$@"\n')
    program.chmod(0o755)
    yield tmp_path
    Program(tmp_path / "state").run("down", "--all")


def typed(place: Path, command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT / "tools"),
        "MINIGTS_STATE": str(place / "state"),
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=place / "example",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.virtual
@pytest.mark.compiled
@pytest.mark.timeout(1800)
def test_the_pages_commands_do_what_it_says(place: Path) -> None:
    said = {}
    for command in COMMANDS:
        done = typed(place, command)
        assert done.returncode == (1 if command.endswith("# fails") else 0), f"{command}\n{done.stdout}"
        said.setdefault(command, done.stdout)
    assert said["minigts exec --container store -- redis-cli ping"] == "PONG\n"
    assert said["minigts exec mil -- curl -sS http://10.255.0.1:8080/"] == "visit 1\n"
    assert "3 passed" in said["minigts test --minigts shop.yaml test_shop.py"]
    (failed,) = (text for command, text in said.items() if command.endswith("# fails"))
    assert "3 failed" in failed
    assert len(shown_failure()) == 4
    assert [line for line in shown_failure() if line not in failed] == []


def shown_failure() -> list[str]:
    """The page's own lines of it."""
    section = PAGE.partition("## A test that fails\n")[2].partition("\n## ")[0]
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


def test_the_page_shows_the_example_itself() -> None:
    assert f"```python\n{(EXAMPLE / 'test_shop.py').read_text(encoding='utf-8')}```" in PAGE
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown in (EXAMPLE / "shop.yaml").read_text(encoding="utf-8")
