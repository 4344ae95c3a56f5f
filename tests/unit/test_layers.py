"""The shape of the package: dependencies point down, one module starts processes, one package prints and exits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tools" / "minigts"
MODULES = sorted(PACKAGE.rglob("*.py"))

EXPERIMENT_LANGUAGE = "experiments' language"
LANGUAGE = {"experiments.model", "experiments.options", "experiments.vocabulary"}
"""What an experiment's file may say: below results, whose manifests hold an experiment; runs are above them."""

CHAIN = (
    {"errors"},
    {"language"},
    {"topology"},
    {"judge"},
    {"proc"},
    {"paths", "memory", "shell", "shaping"},
    {"network"},
    {"artifacts"},
    {"providers"},
    {"switches"},
    {"lab"},
    {"overlays"},
    {"tools"},
    {"fidelity"},
    {EXPERIMENT_LANGUAGE},
    {"results"},
    {"experiments"},
    {"differences"},
)
"""From the bottom up: a part may import from every lower row."""

ASIDE = {
    "report": {"topology", "judge", "language", "errors", "paths", "results", EXPERIMENT_LANGUAGE},
    "machine": {"shell", "memory", "errors"},
    "doctor": {"machine", "errors"},
}
"""Parts beside the chain, and the only ones they may import."""


def part_of(module: Path) -> str:
    return room(".".join(module.relative_to(PACKAGE).with_suffix("").parts))


def room(dotted: str) -> str:
    """Where a module stands, by its name without the package's."""
    parts = dotted.split(".")
    return EXPERIMENT_LANGUAGE if ".".join(parts[:2]) in LANGUAGE else parts[0]


def allowed() -> dict[str, set[str]]:
    below: set[str] = set()
    rules = dict(ASIDE)
    for row in CHAIN:
        rules |= {part: set(below) for part in row}
        below |= row
    return rules | {"cli": below | set(ASIDE), "__main__": {"cli"}, "__init__": set()}


def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"), str(module))


def imports(module: Path) -> Iterator[str]:
    """Dotted names of what a module imports, those inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: write imports in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(module: Path) -> Iterator[str]:
    """The callables that a module calls by a plain or a dotted name."""
    return (ast.unparse(node.func) for node in ast.walk(tree(module)) if isinstance(node, ast.Call))


def name(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_dependencies_point_down(module: Path) -> None:
    part, rules = part_of(module), allowed()
    assert part in rules, f"say in CHAIN or ASIDE where {part} stands"
    used = {room(dotted.removeprefix("minigts.")) for dotted in imports(module) if dotted.startswith("minigts.")} - {
        part
    }
    assert used <= rules[part], f"{part} must not import {', '.join(sorted(used - rules[part]))}"


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module) != "shell"], ids=name)
def test_only_shell_starts_processes(module: Path) -> None:
    """`import subprocess` for its types is allowed; calling it is not."""
    starters = ("subprocess.", "multiprocessing.", "os.system", "os.popen", "os.fork", "pty.fork", "pty.spawn")
    assert not {used for used in (*imports(module), *calls(module)) if used.startswith(starters)}


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module) != "cli"], ids=name)
def test_only_the_command_line_prints_and_exits(module: Path) -> None:
    assert not {call for call in calls(module) if call in ("print", "sys.exit", "exit", "quit", "sys.stdout.write")}
