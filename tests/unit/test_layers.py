"""The shape of the package: dependencies point down, one module starts processes, one package prints and exits."""

from __future__ import annotations

import ast
import functools
import graphlib
import itertools
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

import pytest

from minigts import paths
from minigts.providers import registry
from minigts.results import schema

PACKAGE = Path(__file__).parents[2] / "tools" / "minigts"
MODULES = sorted(PACKAGE.rglob("*.py"))

CHAIN = (
    {"foreign"},
    {"errors"},
    {"paths"},
    {"language"},
    {"formats"},
    {"topology"},
    {"generators"},
    {"judge"},
    {"machine"},
    {"tools"},
    {"dataplane"},
    {"artifacts"},
    {"providers"},
    {"lab"},
    {"overlays"},
    {"fidelity"},
    {"experiment_language"},
    {"results"},
    {"experiments"},
    {"cluster"},
)
"""From the bottom up: a part may import from every lower row."""

ASIDE = {
    "serve": {"foreign", "lab", "topology", "providers", "machine", "language", "errors", "paths", "report"},
    "report": {"topology", "judge", "language", "errors", "paths", "tools", "results", "experiment_language"},
}
"""Parts beside the chain, and the only ones they may import."""

ABOVE = (
    {"release"},
    {"session"},
    {"explore"},
    {"suites"},
    {"netlab"},
    {"bisection"},
    {"lessons"},
    {"agents"},
    {"arena"},
    {"api"},
    {"testing"},
    {"cli"},
)
"""What stands on all of these, from the bottom up: the one door, and those who come in by it."""


def part_of(module: Path) -> str:
    return room(".".join(module.relative_to(PACKAGE).with_suffix("").parts))


def room(dotted: str) -> str:
    """Where a module stands, by its name without the package's."""
    return dotted.partition(".")[0]


def allowed() -> dict[str, set[str]]:
    below: set[str] = set()
    rules = dict(ASIDE)
    for row in CHAIN:
        rules |= {part: set(below) for part in row}
        below |= row
    below |= set(ASIDE)
    for row in ABOVE:
        rules |= {part: set(below) for part in row}
        below |= row
    return rules | {"__main__": {"cli"}, "__init__": set()}


@functools.cache
def nodes(module: Path) -> tuple[ast.AST, ...]:
    """Of the whole module, in no order."""
    return tuple(ast.walk(ast.parse(module.read_text(encoding="utf-8"), str(module))))


@functools.cache
def imports(module: Path) -> tuple[str, ...]:
    """Dotted names of what a module imports, those inside functions and under TYPE_CHECKING too."""
    return tuple(_imports(module))


def _imports(module: Path) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: write imports in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def calls(module: Path) -> tuple[str, ...]:
    """The callables that a module calls by a plain or a dotted name."""
    return tuple(filter(None, (dotted(node.func) for node in nodes(module) if isinstance(node, ast.Call))))


def dotted(node: ast.expr) -> str:
    """`shell.run` as it is written; nothing of what is no name, as a call's answer."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


@functools.cache
def words(module: Path) -> tuple[str, ...]:
    """Its strings."""
    return tuple(node.value for node in nodes(module) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def called(module: Path) -> set[str]:
    """The package's own callables that a module calls, by their dotted names below it, whatever it calls them."""
    known: dict[str, str] = {}
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    found = (call.partition(".") for call in calls(module))
    return {f"{known[first]}{dot}{rest}".removeprefix("minigts.") for first, dot, rest in found if first in known}


def name(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


def offenders(found: Callable[[Path], Iterable[str]], *, but: Container[str] = ()) -> dict[str, list[str]]:
    """Each module in which something is found, and what; of rooms and modules that are named in `but` it may be.

    One test for each rule, for as many cases as there are modules take seconds of every worker to be told apart."""
    modules = (module for module in MODULES if part_of(module) not in but and name(module) not in but)
    return {name(module): wrong for module in modules if (wrong := sorted(found(module)))}


def test_dependencies_point_down() -> None:
    rules = allowed()
    unplaced = {part_of(module) for module in MODULES} - set(rules)
    assert not unplaced, "say in CHAIN or ASIDE where it stands"

    def above(module: Path) -> set[str]:
        used = {room(dotted.removeprefix("minigts.")) for dotted in imports(module) if dotted.startswith("minigts.")}
        return used - {part_of(module)} - rules[part_of(module)]

    assert offenders(above) == {}


def test_a_providers_name_stands_with_the_providers_alone() -> None:
    """So that a new provider is a folder and a line of the registry."""

    def named(module: Path) -> set[str]:
        return {name for name in registry.names() if name in words(module)}

    assert offenders(named, but=("providers",)) == {}


STARTERS = ("machine/shell.py", "machine/contained.py")


def test_only_shell_starts_processes() -> None:
    """Or what has to start them in namespaces. `import subprocess` for its types is allowed; calling it is not."""
    starters = ("subprocess.", "multiprocessing.", "os.system", "os.popen", "os.fork", "pty.fork", "pty.spawn")

    def started(module: Path) -> set[str]:
        return {used for used in (*imports(module), *calls(module)) if used.startswith(starters)}

    assert offenders(started, but=STARTERS) == {}


ON_A_HOST = "tools/traffic_program.py"
"""A program of its own, which a host's Python runs: what it prints is read."""


def test_only_the_command_line_prints_and_exits() -> None:
    printing = {"print", "sys.exit", "exit", "quit", "sys.stdout.write"}
    assert offenders(lambda module: printing.intersection(calls(module)), but=("cli", ON_A_HOST)) == {}


BRING_UP = {"lab.up", "lab.bring_up", "lab.lifecycle.up", "lab.lifecycle.bring_up", "overlays.lab_for"}
BELOW_THE_DOOR = {
    "cluster/worker.py": "a job's lab, of bare hosts, on whatever machine the worker is",
    "overlays/lifecycle.py": "bare hosts that have overlays' programs from their start",
    "experiments/provider_comparison.py": "measures what bringing bare hosts up takes",
}


def test_only_the_door_brings_labs_up() -> None:
    """So that whoever asks for a lab, from the command line or from Python, gets the same checks and the same one."""
    free = ("session", "lab", *BELOW_THE_DOOR)
    assert offenders(lambda module: BRING_UP.intersection(called(module)), but=free) == {}


@pytest.mark.parametrize("module", BELOW_THE_DOOR)
def test_who_brings_labs_up_below_the_door_does_so(module: str) -> None:
    assert BRING_UP.intersection(called(PACKAGE / module))


BEFORE_THE_GATE = {
    "results.gate.own": {"session/campaign.py", "explore/exploration.py"},
    "results.gate.sign": {"experiments/run_folders.py", "explore/folder.py"},
    "results.gate.Trusted": set(),
    "results.bundle.unpack": {"cli/verbs/reproduce.py", "explore/bundling.py"},
    "explore.work.SeedOfWork": set(),
    "explore.folder.adopt": {"explore/bundling.py", "explore/permission.py"},
    "experiments.run_folders.begin": {"session/campaign.py", "experiments/hardware.py"},
    "experiments.run_folders.adopt": {"session/campaign.py"},
    "experiments.run_folders.reopen": {"session/campaign.py"},
}
"""What says that something of a folder may act on this machine, or makes of it what acts; and the only ones who may say
so. Whoever else wants it has to get it from `Examined.allowed` (results/gate.py)."""


@pytest.mark.parametrize("name_of_it", BEFORE_THE_GATE)
def test_only_the_gate_lets_a_folder_act(name_of_it: str) -> None:
    assert {name(module) for module in MODULES if name_of_it in called(module)} == BEFORE_THE_GATE[name_of_it]


OF_A_RUN_DIRECTORY = (
    paths.LAB,
    paths.PLAN,
    paths.CERTIFICATE,
    paths.LAUNCH,
    paths.SUPERVISOR,
    paths.CLOCK,
    paths.CONTROL_SOCKET,
    paths.CONSOLE_LOG,
)
OF_A_RESULTS_FOLDER = (schema.SAMPLES, schema.SUMMARY, schema.SERIES, schema.CLAIMS, schema.REPORT, schema.LOG)
NAMED_IN = dict.fromkeys(OF_A_RUN_DIRECTORY, "paths.py") | dict.fromkeys(OF_A_RESULTS_FOLDER, "results/schema.py")


@pytest.mark.parametrize("file", NAMED_IN)
def test_a_files_name_that_several_rooms_know_stands_once(file: str) -> None:
    assert [name(module) for module in MODULES for word in words(module) if word == file] == [NAMED_IN[file]]


def test_the_list_of_rooms_for_contributors_is_the_whole_truth() -> None:
    rows = (sorted(row) for row in reversed(CHAIN))
    above = [part for row in reversed(ABOVE) for part in sorted(row)]
    rooms = [*above, *ASIDE, *(part for row in rows for part in row)]
    section = (
        (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("this list to the code:")[2]
    )
    listed = list(itertools.takewhile(lambda line: line.startswith("    "), section.strip("\n").splitlines()))
    assert [line.split()[0] for line in listed] == rooms


def test_nothing_lies_loose_beside_the_rooms() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "errors.py",
        "foreign.py",
        "paths.py",
    }
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == {
        room for row in (*CHAIN, *ABOVE) for room in row if room not in ("errors", "foreign", "paths")
    } | {*ASIDE}


def test_no_module_comes_back_to_itself() -> None:
    """Not even for types."""
    modules = {
        ".".join(("minigts", *module.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): module
        for module in MODULES
    }

    def used(module: Path) -> set[str]:
        found = (each if each in modules else each.rpartition(".")[0] for each in imports(module))
        return {name for name in found if name in modules}

    graph = {name: {other for other in used(module) if other != name} for name, module in modules.items()}
    sorter = graphlib.TopologicalSorter(graph)
    sorter.prepare()  # raises CycleError, which names the modules
