"""Cutting a link: what is refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiment_lab import chain

from minigts import lab as labs
from minigts.errors import InputError
from minigts.lab import Lab, Record


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path / "chain")
    made.rundir.mkdir()
    (made.rundir / "plan.json").write_text(chain().model_dump_json())
    made.write(Record.model_validate({"provider": "uml", "created": "2026-01-01T00:00:00Z"}))
    return made


@pytest.mark.parametrize("ends", [("ams", "lon"), ("ams", "ams"), ("ams", "nobody")])
def test_only_a_link_that_is_there_can_be_cut(lab: Lab, ends: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=r"no link between .*; links are ams-bra, bra-lon"):
        labs.set_link(lab, *ends, up=False)
