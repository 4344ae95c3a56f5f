"""`minigts suite`: tests of other people in labs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import console
from minigts.cli.options import KernelOption, TimeOption
from minigts.cli.verbs import EXPERIMENTS, Verb
from minigts.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minigts.suites.outcome import CaseOutcome
    from minigts.topology.time import Time

verb = Verb(EXPERIMENTS, 373, help="Suites of tests that others wrote, such as Linux's packetdrill scripts.")


@verb.command("list")
def suite_list() -> None:
    """List the suites: what their directory is, and the program that you have to have.

    Example:  minigts suite list
    """
    from minigts.suites.registry import SUITES

    for suite in SUITES.values():
        needs = f"; needs the program {suite.program}" if suite.program else ""
        typer.echo(f"{suite.name}\t{suite.about}{needs}")


@verb.command("run")
def suite_run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite; `minigts suite list` lists them.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory with its tests, which you have.")],
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PATTERN",
            help="Tests with such names, as 'tcp_zerocopy*', or cases, as 'tcp_* ipv4'; may be repeated.",
        ),
    ] = None,
    program: Annotated[
        Path | None, typer.Option("--program", metavar="PATH", help="The suite's program. Default: the one in PATH.")
    ] = None,
    tolerance: Annotated[
        int | None,
        typer.Option(
            "--tolerance",
            metavar="US",
            min=1,
            help="By how many microseconds an event may be early or late. Default: the suite's own.",
        ),
    ] = None,
    longest: Annotated[
        str | None,
        typer.Option(
            "--longest",
            metavar="TIME",
            help="How long a case may take, by the lab's time. Default: 5 min for packetdrill and iproute2, 30 min for "
            "tc-testing, 1 h for kselftest and frr, 2 h for hwsim.",
        ),
    ] = None,
    times: Annotated[
        int, typer.Option("--times", metavar="N", min=1, max=1000, help="How often each test runs at each load.")
    ] = 1,
    loads: Annotated[
        str,
        typer.Option(
            "--load",
            metavar="N,…",
            help="So many programs keep processors busy meanwhile; each test runs at each load.",
        ),
    ] = "0",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, max=1024, help="Labs side by side. Default: one for each processor."
        ),
    ] = None,
    in_a_lab: Annotated[
        int,
        typer.Option(
            "--in-a-lab",
            metavar="N",
            min=1,
            max=10_000,
            help="So many tests one after the other in each lab: fewer labs are started, but what a test leaves "
            "behind, the next one finds.",
        ),
    ] = 1,
    time: TimeOption = None,
    kernel: KernelOption = None,
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package", metavar="NAME", help="A Debian package for hosts besides the suite's own; may be repeated."
        ),
    ] = None,
    installed: Annotated[
        Path | None,
        typer.Option(
            "--installed",
            metavar="DIR",
            help="What you compiled on Debian 13 and put there by `make install DESTDIR=DIR`: hosts have it in place "
            "of Debian's.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable for the tests; may be repeated."),
    ] = None,
    capture: Annotated[
        bool,
        typer.Option(
            "--capture",
            help="Keep the frames of the network namespace in which a case begins, as a pcap beside its output.",
        ),
    ] = False,
    same_output: Annotated[
        bool,
        typer.Option(
            "--same-output", help="Exit 1 also if a case has not printed the same each time, as for a nightly job."
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the results there as JUnit's XML, too.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run the tests that a results folder lacks, with the same options."),
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The directory for results folders.")] = Path("results"),
) -> None:
    """Run a suite's tests in labs, and say which do not pass, and which are not the same each time.

    In virtual time a test sees the same moments beside any load of this machine, and the same test gives the same
    output. With --times or several loads the verdicts that change are named, and the first line in which two outputs
    differ.

    Each test has a lab of its own, unless --in-a-lab says otherwise, and is kept as it ends, so nothing is lost when
    the program is ended. Exit 1 if a test failed or its verdict changed; with --same-output, also if its output did.

    Example:  minigts suite run packetdrill ~/linux/tools/testing/selftests/net/packetdrill --program ~/packetdrill

    Example:  minigts suite run packetdrill DIR --only 'tcp_timestamping*' --times 10 --load 0,8 --tolerance 1000
    """
    from datetime import UTC, datetime

    from minigts.results.folder import exclusive, make
    from minigts.suites import comparison, folder, table
    from minigts.suites import suite_run as runs
    from minigts.suites.suite import SuiteOptions

    request = runs.SuiteRequest(
        suite,
        directory,
        only or (),
        program,
        SuiteOptions(tolerance_us=tolerance, capture=capture, environment=_variables(env or ())),
        None if longest is None else _seconds(longest),
        in_a_lab,
        times,
        _loads(loads),
        time,
        kernel,
        package or (),
        installed,
    )
    if same_output and times * len(request.loads) == 1:
        raise InputError("--same-output: each test runs once; give --times or several loads")
    earlier = None if resume is None else folder.read(resume)
    with console.progress() as say:
        asked = runs.check_request(request, say)
    if earlier is not None and resume is not None:
        runs.require_equal(earlier, asked)
        place = resume
    else:
        make(results)
        place = folder.create(results, asked, datetime.now(UTC))
    engine = _engine(jobs, asked.settings.plan.time)
    with exclusive(place), console.progress() as say:
        try:
            runs.run(place, asked, engine, _OnScreen(say))
        except BaseException:
            console.note(f"minigts: tests that have ended are kept; go on with the same command and --resume {place}")
            raise
        finally:
            runs.write_pages(place, asked, junit)
    cases = comparison.summaries(folder.outcomes(place))
    for line in table.notable(cases, lambda outcome: folder.output(place, outcome)):
        typer.echo(line)
    typer.echo(f"{table.totals(cases)}; {table.costs(cases)}")
    typer.echo(place)
    raise typer.Exit(1 if any(comparison.is_amiss(each, same_output=same_output) for each in cases) else 0)


def _seconds(longest: str) -> float:
    from minigts.language.quantities import DURATION_S

    try:
        return DURATION_S.parse(longest)
    except ValueError as error:
        raise InputError(f"--longest: {error}") from error


def _variables(words: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, once or several times. Raises InputError."""
    from minigts.topology.software import VARIABLE, VARIABLE_HINT

    found = [word.partition("=") for word in words]
    for name, is_set, _ in found:
        if not is_set or not VARIABLE.fullmatch(name):
            raise InputError(f"--env {name[:40]}: write NAME=VALUE, where NAME is {VARIABLE_HINT}")
    return {name: value for name, _, value in found}


def _loads(words: str) -> tuple[int, ...]:
    """`0,8,32`. Raises InputError."""
    from minigts.suites.work import MOST_LOAD

    found = words.split(",")
    if not all(word.isascii() and word.isdigit() and len(word) <= 4 and int(word) <= MOST_LOAD for word in found):
        raise InputError(f"--load {words[:40]}: write numbers of programs up to {MOST_LOAD}, as in 0,8,32")
    if len(set(map(int, found))) < len(found):
        raise InputError(f"--load {words[:40]}: each load once; --times says how often each test runs")
    return tuple(map(int, found))


def _engine(jobs: int | None, time: Time) -> str | None:
    """The engine whose workers run the tests; None: this process does. Raises InputError, EnvironmentLacks."""
    import os

    from minigts.cluster import engine

    if time == "real" and jobs not in (None, 1):
        raise InputError("suite run: in real time labs side by side would disturb each other: leave --jobs out")
    count = 1 if time == "real" else jobs or os.cpu_count() or 1
    if count == 1:
        return None
    if jobs is None and (lacking := engine.missing()):
        console.note(f"minigts: the tests run one after the other: {lacking[0]}")
        return None
    return str(engine.check_engine(f"{engine.LOCAL}:{count}"))


class _OnScreen:
    """Shows the progress of a suite's run; see `suites.suite_run.SuiteWatcher`."""

    def __init__(self, say: console.Say) -> None:
        self._say = say

    def step(self, line: str) -> None:
        self._say(line)

    def take(self, outcome: CaseOutcome, done: int, total: int) -> None:
        self._say(f"{done} of {total} cases: {outcome.name} {outcome.verdict}")
