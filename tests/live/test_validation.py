"""Each law of experiments/validation holds in a lab, in its quick form: `minigts validate NAME --quick`."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import Program
from minigts import paths

pytestmark = pytest.mark.virtual
FILES = sorted((paths.project_root() / "experiments" / "validation").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_laws_hold(program: Program, tmp_path: Path, file: Path) -> None:
    done = program.run("validate", file.stem, "--quick", "--results", str(tmp_path))
    [page] = tmp_path.rglob("validation.md")
    assert done.returncode == 0, page.read_text(encoding="utf-8")
