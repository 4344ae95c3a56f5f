"""The faults of bench/physics.py and bench/constants.py: each still has its place in the source, and experiments whose
laws it bends."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigts.results.schema import ClaimVerdict

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def physics(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PROJECT)
    return importlib.import_module("bench.physics")


@pytest.fixture
def bent(physics: Any) -> Any:
    return importlib.import_module("bench.bent")


@pytest.fixture
def constants(physics: Any) -> Any:
    return importlib.import_module("bench.constants")


def test_each_fault_changes_one_place_that_is_there(physics: Any, bent: Any) -> None:
    assert len({fault.name for fault in physics.FAULTS}) == len(physics.FAULTS) >= 20
    for fault in physics.FAULTS:
        text = (PROJECT / fault.file).read_text(encoding="utf-8")
        assert bent.with_fault(fault, text) != text


def test_a_fault_whose_place_has_gone_is_an_error(physics: Any, bent: Any) -> None:
    with pytest.raises(ValueError, match="has 0 places"):
        bent.with_fault(physics.FAULTS[0], "nothing of it")


def test_its_experiments_are_there(physics: Any, constants: Any) -> None:
    known = {file.stem for file in (PROJECT / "experiments" / "validation").glob("*.yaml")}
    for fault in (*physics.FAULTS, *constants.CONSTANTS):
        assert fault.of and known >= set(fault.of)


def test_a_trial_is_a_row_with_the_first_laws_figure(bent: Any) -> None:
    laws = (bent.Failed("Sum", "2.24 ms", "2 to 2.2 ms"), bent.Failed("Other", "5 %", "under 3 %"))
    assert bent.Trial("slow", laws, 3.0).row == "| slow | Sum, Other | 2.24 ms | 2 to 2.2 ms |"
    assert bent.Trial("none", (), 3.0, "no room").row == "| none | no law: minigts did not measure, no room |  |  |"


@pytest.mark.parametrize(
    ("detail", "figure", "wanted"),
    [
        (
            "echo: of 2 figures 1 fails; (echo first to second over none, size=64) 2.24 ms, 101 % of 2.21 ms by the "
            "formula, where 99.95 to 100.1 % was expected; exact, one course",
            "2.24 ms, 101 % of 2.21 ms by the formula",
            "99.95 to 100.1 %",
        ),
        ("something else", "something else", ""),
    ],
)
def test_the_furthest_figure_and_its_range_are_read_from_the_outcome(
    bent: Any, detail: str, figure: str, wanted: str
) -> None:
    near = ClaimVerdict(claim="near", verdict="failed", detail="near", used=1.1)
    far = ClaimVerdict(claim="far", verdict="failed", detail=detail, used=9.0)
    held = SimpleNamespace(outcomes=(near, far, ClaimVerdict(claim="held", verdict="held", used=20.0)))
    law = SimpleNamespace(name="Sum", claims=(held,))
    assert bent.failed(law) == bent.Failed("Sum", figure, wanted)


def test_the_page_names_each_fault(physics: Any) -> None:
    text = (PROJECT / "docs" / "evidence" / "faults.md").read_text(encoding="utf-8")
    for fault in physics.FAULTS:
        row, untried = f"\n| {fault.name} | ", f"*{fault.name}*"
        assert row in text or untried in text, "`bench/run physics --quick` writes the rows to physics.md"


def test_a_constant_becomes_a_patch_of_its_line(constants: Any, bent: Any) -> None:
    beta = bent.Fault("beta", "net/a.c", "beta = 717;", "beta = 645;", ("marks",))
    patch = constants.patch_of(beta, "int one;\nint beta = 717;\nint two;\n")
    assert patch.splitlines() == [
        "--- a/net/a.c",
        "+++ b/net/a.c",
        "@@ -1,3 +1,3 @@",
        " int one;",
        "-int beta = 717;",
        "+int beta = 645;",
        " int two;",
    ]


def test_every_constant_has_a_name_of_its_own(constants: Any) -> None:
    assert len({constant.name for constant in constants.CONSTANTS}) == len(constants.CONSTANTS)


def test_a_fault_is_chosen_by_its_number(physics: Any, bent: Any) -> None:
    assert bent.chosen(physics.FAULTS, [2]) == [physics.FAULTS[1]]
    assert bent.chosen(physics.FAULTS, []) == physics.FAULTS
    with pytest.raises(ValueError, match="no fault 0"):
        bent.chosen(physics.FAULTS, [0])
