"""The labs that live tests use: a chain of six in virtual time for most of them, one of three in real time, and labs of
their own for those that break things.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from live.program import PROJECT, TOPOLOGIES, Program, Traces
from minigts import lab as labs
from minigts import overlays
from minigts.errors import EnvironmentLacks, MinigtsError
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.providers import registry
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse
from minigts.topology.time import Time

FAILURES = PROJECT / "results" / "test-failures"
MakeLab = Callable[..., Lab]
REAL = """\
name: chain3
defaults: {link: {rate: 50mbit}}
hosts: {ams: , bra: , lju: }
links:
  - {ends: [ams, bra], rtt: 21.75ms}
  - {ends: [bra, lju], rtt: 41.58ms}
overlay: swarm
tolerances: {rtt: 0.3ms + 0.5%}
"""


def quiet(_text: str) -> None:
    """Progress that nobody reads."""


def skip_without_programs(overlay: str) -> None:
    """Leaves a test out whose overlay needs programs that only the user can bring, and says which."""
    try:
        overlays.find(overlay).programs(quiet)
    except EnvironmentLacks as lacking:
        pytest.skip(str(lacking))


@contextmanager
def state_directory(directory: Path) -> Iterator[None]:
    """Labs that are brought up meanwhile have their run directories there."""
    before = os.environ.get("MINIGTS_STATE")
    os.environ["MINIGTS_STATE"] = str(directory)
    try:
        yield
    finally:
        if before is None:
            del os.environ["MINIGTS_STATE"]
        else:
            os.environ["MINIGTS_STATE"] = before


def take_down(lab: Lab) -> None:
    """A lab is taken down from the state directory that it lies in."""
    with state_directory(lab.rundir.parents[1]):
        labs.down(lab)


def brought_up(plan: Plan, name: str, places: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab on `uml` for a fixture of many tests: it has a state directory of its own, and is taken down at the end."""
    with state_directory(places.mktemp("state")):
        made = labs.up(plan, "uml", name, quiet)
    yield made
    take_down(made)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """chain6 in virtual time."""
    plan = load(TOPOLOGIES / "chain6.yaml", known_overlays=overlays.known_names(), time="virtual")
    yield from brought_up(plan, "live", tmp_path_factory)


@pytest.fixture(scope="session")
def real_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three hosts in a row, in real time. No other test runs meanwhile, so it is as small as a chain can be."""
    plan = parse(REAL, "chain3.yaml", known_overlays=overlays.known_names(), time="real")
    yield from brought_up(plan, "real", tmp_path_factory)


@pytest.fixture(scope="session")
def endpoints(lab: Lab, request: pytest.FixtureRequest) -> Mapping[str, Endpoint]:
    """Where the overlay that a test asks for can be measured over chain6; pytest joins each once."""
    return overlays.join(lab, request.param, quiet)


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """Brings a topology (a file, or its text) up under a name of its own, and takes it down after the test.

    It has virtual time where its provider has that, unless another is asked for. Its run directory is the test's own,
    but that of virtual machines: a libvirt of minigts' own is known by its state.
    """
    made: list[Lab] = []

    def bring_up(topology: Path | str, name: str | None = None, provider: str = "uml", time: Time | None = None) -> Lab:
        known = overlays.known_names()
        time = time or ("virtual" if registry.has_virtual_time(provider) else "real")
        plan = (
            load(topology, known_overlays=known, time=time)
            if isinstance(topology, Path)
            else parse(topology, "test.yaml", known_overlays=known, time=time)
        )
        with nullcontext() if provider == "vagrant" else state_directory(tmp_path):
            made.append(labs.up(plan, provider, name, quiet))
        return made[-1]

    yield bring_up
    with state_directory(tmp_path):
        half_up = [lab for lab in labs.all_labs() if lab not in made]
    for each in (*made, *half_up):
        take_down(each)


@pytest.fixture(
    params=[pytest.param("virtual", marks=pytest.mark.virtual), pytest.param("real", marks=pytest.mark.uml)]
)
def pair(make_lab: MakeLab, request: pytest.FixtureRequest) -> Lab:
    """Of `pair.yaml`, in virtual time and in real time."""
    return make_lab(TOPOLOGIES / "pair.yaml", time=request.param)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The command line with a state directory of its own; whatever it has left up at the end is taken down."""
    made = Program(tmp_path / "state")
    yield made
    made.run("down", "--all")


@pytest.fixture
def traces(program: Program) -> Traces:
    """What is on this machine before the program has done anything."""
    return Traces.before(program.state)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """After a failure what the hosts have to say lies in results/test-failures, in a folder named for the test."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and report.when == "call":
        into = FAILURES / re.sub(r"[^\w.-]+", "_", item.name)
        values = getattr(item, "funcargs", {})
        made = [value for value in values.values() if isinstance(value, Lab)]
        if "make_lab" in values:
            with state_directory(values["tmp_path"]):
                made += labs.all_labs()
        written = [path for each in made for path in _diagnose(each, into / each.name)]
        if written:
            report.sections.append(("consoles", f"consoles and kernel logs of the hosts are in {into}"))
    return report  # type: ignore[return-value]


def _diagnose(lab: Lab, into: Path) -> list[Path]:
    try:
        for machine in lab.plan.machines:
            lab.provider.diagnose(machine.name, into / machine.name)
    except (OSError, MinigtsError):
        pass  # the failure itself is what matters
    return list(into.rglob("*.log"))
