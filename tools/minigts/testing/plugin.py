"""The pytest plugin: options, fixtures, and what a failure shows. docs/testing.md tells how it is used.

It needs pytest 7.2 or later. Since pytest always loads it, it imports the rest of minigts only when a test uses a lab.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minigts.errors import CommandFailed, CommandTimeout, HostFailed, MinigtsError
from minigts.explore import variables

if TYPE_CHECKING:
    from minigts import api
    from minigts.api.labs import Result
    from minigts.testing.course import Course
    from minigts.testing.tested_lab import Target

_OURS = Path(__file__).parents[1]
"""The folder of minigts' own code."""
CONSOLE_LINES = 12
MOST_CONSOLES = 4
"""How many consoles a failure shows at most, of hosts that the test used."""


@dataclass
class ItemNotes:
    """What one test did and measured, in order, and the hosts that it used."""

    lines: list[str] = field(default_factory=list)
    hosts: dict[str, None] = field(default_factory=dict)

    def add(self, line: object, *hosts: str) -> None:
        self.lines.append(str(line))
        self.hosts.update(dict.fromkeys(hosts))


Outcomes = dict[str, dict[str, str]]
"""The outcome of each test on each provider, by the test's id without provider, then by provider."""
_TARGETS = pytest.StashKey["tuple[Target, ...] | str"]()
_OUTCOMES = pytest.StashKey[Outcomes]()
_USED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    if find_spec("pytest_timeout") is None:
        # A user's tests may lie in the checkout, whose settings of pytest are for the program's own tests, too.
        parser.addini("timeout", "of pytest-timeout, which is not here")
    group = parser.getgroup("minigts", "labs of minigts")
    group.addoption(
        "--minigts", metavar="TOPOLOGY", help="test a lab of this topology: one that runs it already, or a new one"
    )
    group.addoption(
        "--minigts-on",
        default="",
        metavar="PROVIDERS",
        help="test on each of these providers, one after the other: uml,mininet (default: uml)",
    )
    group.addoption("--minigts-time", choices=("real", "virtual"), help="the lab's clock: the machine's, or its own")
    group.addoption("--minigts-fresh", action="store_true", help="use no lab that is up already")
    parser.addini("minigts", "the topology that tests bring up when none is named and no lab is up")


def pytest_configure(config: pytest.Config) -> None:
    outcomes: Outcomes = defaultdict(dict)
    config.stash[_OUTCOMES] = outcomes
    config.stash[_USED] = []
    if os.environ.get(variables.COURSE):
        from minigts.providers.agent import halting  # noqa: PLC0415

        halting.begin()


def targets(config: pytest.Config) -> tuple[Target, ...]:
    """The targets of the tests. Raises pytest.Collector.CollectError, whose message says what to do instead."""
    if _TARGETS not in config.stash:
        config.stash[_TARGETS] = _look(config)
    found = config.stash[_TARGETS]
    if isinstance(found, str):
        raise pytest.Collector.CollectError(f"minigts: {found}")
    return found


def _look(config: pytest.Config) -> tuple[Target, ...] | str:
    """The targets, or why there are none."""
    from minigts.testing import tested_lab  # noqa: PLC0415

    named, fallback = config.getoption("--minigts"), config.getini("minigts")
    try:
        return tested_lab.targets(
            named=config.invocation_params.dir / named if named else None,
            providers=[name.strip() for name in config.getoption("--minigts-on").split(",") if name.strip()],
            time=config.getoption("--minigts-time"),
            fallback=config.rootpath / fallback if fallback else None,
            adopting=not config.getoption("--minigts-fresh"),
        )
    except MinigtsError as error:
        return str(error)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test that uses a lab over several providers; its parameters then begin with the provider."""
    if "minigts_target" in metafunc.fixturenames:
        found = targets(metafunc.config)
        if len(found) > 1:
            metafunc.parametrize("minigts_target", found, ids=str, indirect=True, scope="session")


@pytest.fixture(scope="session")
def minigts_target(request: pytest.FixtureRequest) -> Target:
    """The target of the tests: a plan and a provider."""
    found: Target = getattr(request, "param", None) or targets(request.config)[0]
    return found


@pytest.fixture(scope="session")
def minigts_bring_up(request: pytest.FixtureRequest) -> Callable[[Target], Any]:
    """Makes a context manager from a target, whose value is its lab. If the lab does not come up, the test fails with
    one sentence."""
    from minigts.testing import tested_lab  # noqa: PLC0415

    @contextmanager
    def bring_up(target: Target) -> Iterator[api.Lab]:
        if target.lab is None:
            _say(request.config, f"minigts: bringing {target.plan.name} up on {target.provider}")
        with ExitStack() as stack:
            try:
                lab = stack.enter_context(tested_lab.lab_of(target))
                used = f"lab {lab.name}: {tested_lab.facts(lab)}"
            except MinigtsError as error:
                pytest.fail(f"minigts: {error}", pytrace=False)
            request.config.stash[_USED].append(used)
            yield lab

    return bring_up


@pytest.fixture(scope="session")
def lab(minigts_target: Target, minigts_bring_up: Callable[[Target], Any]) -> Iterator[api.Lab]:
    """The lab that is tested. A lab that was up is restored at the end; a new one is taken down."""
    with minigts_bring_up(minigts_target) as made:
        yield made


@pytest.fixture
def minigts_notes() -> ItemNotes:
    """The notes of this test, which a failure shows."""
    return ItemNotes()


@pytest.fixture
def host(lab: api.Lab, minigts_notes: ItemNotes) -> Callable[[str], api.Host]:
    """`host("ams")`: a host, which has `address`, `run` and `shell`."""

    def host(name: str) -> api.Host:
        minigts_notes.hosts[name] = None
        return lab.host(name)

    return host


@pytest.fixture
def container(lab: api.Lab, minigts_notes: ItemNotes) -> Callable[[str], api.Container | api.OwnContainer]:
    """`container("ams")`: the overlay's container on a host, which has `address`, `mtu` and `run`. `container("web")`:
    the container of that name in the topology."""

    def container(name: str) -> api.Container | api.OwnContainer:
        found = lab.container(name)
        minigts_notes.hosts[found.host] = None
        return found

    return container


@pytest.fixture
def run(lab: api.Lab, minigts_notes: ItemNotes) -> Callable[..., Result]:
    """`run("ams", "ip", "route")`, or `run("ams", ["ip", "route"])`: run a command on a host; with another exit code
    than 0 it raises CommandFailed, unless `check=False`."""
    from minigts.api.labs import words_of  # noqa: PLC0415

    def run(host: str, *argv: Any, **options: Any) -> Result:
        minigts_notes.hosts[host] = None
        words = words_of(argv)
        try:
            result = lab.host(host).run(*words, **options)
        except CommandFailed as error:
            minigts_notes.add(f"{host}: {shlex.join(words)}: ended with {error.code}", host)
            raise
        minigts_notes.add(f"{host}: {shlex.join(words)}: ended with {result.code}", host)
        return result

    return run


@pytest.fixture
def rtt(lab: api.Lab, minigts_notes: ItemNotes) -> Callable[..., api.RoundTrips]:
    """`rtt("ams", "lon")`: send echo requests; the result has the measured RTTs and the sum of the links' delays."""

    def rtt(source: str, target: str, **options: Any) -> api.RoundTrips:
        minigts_notes.hosts.update(dict.fromkeys((source, target)))
        measured = lab.rtt(source, target, **options)
        minigts_notes.add(measured, source, target)
        return measured

    return rtt


@pytest.fixture
def throughput(lab: api.Lab, minigts_notes: ItemNotes) -> Callable[..., api.Throughput]:
    """`throughput("ams", "lon")`: run one TCP flow; the result has its rate and the most that the links allow."""

    def throughput(source: str, target: str, **options: Any) -> api.Throughput:
        minigts_notes.hosts.update(dict.fromkeys((source, target)))
        measured = lab.throughput(source, target, **options)
        minigts_notes.add(measured, source, target)
        return measured

    return throughput


@pytest.fixture
def link(lab: api.Lab, minigts_notes: ItemNotes) -> Iterator[Callable[[str, str], api.Link]]:
    """`link("ams", "bra").cut()`, or `.change(delay="50ms")`: change links; when the test ends, all are as before."""

    def link(first: str, second: str) -> api.Link:
        minigts_notes.add(f"link {first}-{second} was asked for", first, second)
        return lab.link(first, second)

    from minigts.testing import tested_lab  # noqa: PLC0415

    if tested_lab.is_explored():  # faults cut and change links, too
        yield link
        return
    with lab.links_given_back():
        yield link


@pytest.fixture
def course(lab: api.Lab, tmp_path: Path) -> Course:
    """The course of a seed, under `minigts explore`: `seed`, `random`, `folder`, `now_s`, `sleep(5)`, `note("…")`."""
    from minigts.testing.course import Course  # noqa: PLC0415

    return Course(lab, tmp_path)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """A line for each target: lab, provider, time, kernel. No line when no option or setting asks for a lab."""
    if not (config.getoption("--minigts") or config.getoption("--minigts-on") or config.getini("minigts")):
        return []
    try:
        return [f"minigts: {target.headline()}" for target in targets(config)]
    except (MinigtsError, pytest.Collector.CollectError) as error:
        return [str(error)]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add measurements and consoles to a failure's report, and note the outcome on each provider."""
    error = call.excinfo.value if call.excinfo is not None else None
    if call.excinfo is not None and not item.config.getoption("fulltrace"):
        _cut_at_our_code(call.excinfo)
    values = getattr(item, "funcargs", {})
    notes = values.get("minigts_notes")
    if call.when == "call" and isinstance(notes, ItemNotes):
        item.user_properties += [("measured", line) for line in notes.lines]
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    target = values.get("minigts_target")
    if target is not None and (report.when == "call" or report.failed):
        item.config.stash[_OUTCOMES][_without(report.nodeid, str(target))][str(target)] = report.outcome
    if report.failed and (place := os.environ.get(variables.COURSE)):
        _tell_course(Path(place), report, error)
    if report.failed and isinstance(notes, ItemNotes) and "lab" in values:
        if notes.lines:
            report.sections.append(("minigts: what was measured", "\n".join(notes.lines)))
        if isinstance(error, HostFailed | CommandTimeout) or item.config.getoption("verbose") > 0:
            report.sections += _consoles(values["lab"], list(notes.hosts)[:MOST_CONSOLES])


def _tell_course(place: Path, report: pytest.TestReport, error: BaseException | None) -> None:
    """Note for `minigts explore` which test failed, and by which error."""
    from minigts.testing.course import NothingToJudge  # noqa: PLC0415

    crash = getattr(report.longrepr, "reprcrash", None)
    why = str(getattr(crash, "message", None) or report.longrepr).strip().partition("\n")[0]
    with (place / variables.FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": report.nodeid, "why": why, "vacuous": isinstance(error, NothingToJudge)}) + "\n")


def _cut_at_our_code(found: pytest.ExceptionInfo[BaseException]) -> None:
    """End the traceback of an error that minigts explains where the user's code calls minigts, without the errors
    behind it: the rest says nothing about the lab."""
    if not isinstance(found.value, MinigtsError):
        return
    last = found.tb
    while last.tb_next is not None and _OURS not in Path(last.tb_next.tb_frame.f_code.co_filename).parents:
        last = last.tb_next
    caller = str(last.tb_frame.f_globals.get("__name__"))
    if last.tb_next is not None and not caller.startswith(("_pytest.", "pluggy.")):
        last.tb_next = None
        found.traceback = type(found.traceback)(found.tb)
        found.value.__cause__, found.value.__suppress_context__ = None, True


def _consoles(lab: api.Lab, hosts: list[str]) -> list[tuple[str, str]]:
    from minigts.testing import tested_lab  # noqa: PLC0415

    known = {host.name for host in lab.plan.hosts}
    with tempfile.TemporaryDirectory() as directory:
        logs = {
            host: tested_lab.logs_of(lab, host, Path(directory) / host, CONSOLE_LINES)
            for host in hosts
            if host in known
        }
    return [(f"minigts: console of {host}", text) for host, text in logs.items() if text]


def _without(nodeid: str, provider: str) -> str:
    """The test's id without the provider that begins its parameters."""
    return re.sub(rf"\[{re.escape(provider)}(-|\])", lambda found: "[" if found[1] == "-" else "", nodeid, count=1)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the labs that were tested, and the tests that pass on some providers only."""
    for line in config.stash.get(_USED, []):
        terminalreporter.write_line(f"minigts: {line}")
    for name, outcomes in config.stash.get(_OUTCOMES, {}).items():
        held = [provider for provider, outcome in outcomes.items() if outcome == "passed"]
        missed = [provider for provider, outcome in outcomes.items() if outcome == "failed"]
        if held and missed:
            terminalreporter.write_line(f"minigts: passes on {', '.join(held)}, fails on {', '.join(missed)}: {name}")


def _say(config: pytest.Config, line: str) -> None:
    """Print a line on the terminal during a test, whose output is captured."""
    reporter, capture = (config.pluginmanager.get_plugin(name) for name in ("terminalreporter", "capturemanager"))
    if reporter is None or capture is None or config.getoption("verbose") < 0:
        return
    with capture.global_and_fixture_disabled():
        reporter.ensure_newline()
        reporter.write_line(line)
