"""Each law of experiments/validation holds in a lab, in its quick form, where it has one: `minigts validate NAME
--quick`.

One that takes seconds, and those whose file has just changed, are tried for each change; all of them at night. The
clock's own tests hold the same physics in milliseconds (provision/clock/tests). Some take a minute or two of two quiet
processors, and many times that beside other tests: what ends a run that hangs is a quarter of an hour.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from live.program import Program
from minigts import paths
from minigts.cli.verbs.validate import quick_experiments
from touched import changed

LIMIT_S = 900
pytestmark = [pytest.mark.virtual, pytest.mark.timeout(LIMIT_S + 60)]
FOLDER = paths.project_root() / "experiments" / "validation"
OF_EACH_CHANGE = {"policer.yaml"} | changed(FOLDER)


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=() if file.name in OF_EACH_CHANGE else pytest.mark.nightly)
        for file in quick_experiments()
    ],
)
def test_its_laws_hold(program: Program, tmp_path: Path, file: Path) -> None:
    done = replace(program, limit_s=LIMIT_S).run("validate", file.stem, "--quick", "--results", str(tmp_path))
    [page] = tmp_path.rglob("validation.md")
    assert done.returncode == 0, page.read_text(encoding="utf-8")
