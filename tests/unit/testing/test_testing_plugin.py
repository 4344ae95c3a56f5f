"""The pytest plugin, in a pytest of its own: which lab it tests, what its fixtures do, and what a failure shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tc_hosts

import python_packages
from minigts import api
from minigts.errors import HostFailed
from minigts.providers import registry
from minigts.providers.base import CommandResult

pytest_plugins = ["pytester"]

PROJECT = Path(__file__).parents[3]
ON = tc_hosts.TcHosts.name
CHAIN = "name: mine\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n"
RTT = """
def test_rtt(rtt):
    assert rtt("h1", "h3").as_expected
"""
Run = Callable[..., pytest.RunResult]


class OtherHosts(tc_hosts.TcHosts):
    """Hosts with another kernel."""

    name = "tc-hosts-b"

    def _answer(self, network: tc_hosts.Network, host: str, argv: list[str], stdin: str) -> str:
        return "other\n" if argv == ["uname", "-r"] else super()._answer(network, host, argv, stdin)


@pytest.fixture(autouse=True)
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("MINIGTS_LAB", raising=False)
    monkeypatch.setattr(tc_hosts.TcHosts, "pace_s", 0.0)
    tc_hosts.register(monkeypatch)
    monkeypatch.setitem(registry._PROVIDERS, OtherHosts.name, OtherHosts)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest on a test file and my.yaml, with the plugin alone."""

    def run(test: str, *arguments: str, topology: str = CHAIN) -> pytest.RunResult:
        pytester.makefile(".yaml", my=topology)
        pytester.makepyfile(test)
        quiet = ("-p", "no:timeout", "-p", "no:cacheprovider", "-p", "no:randomly")
        return pytester.runpytest_inprocess("-p", "minigts.testing.plugin", *quiet, *arguments)

    return run


def test_a_topology_that_is_named_is_brought_up_tested_and_taken_down(run: Run) -> None:
    done = run(RTT, "--minigts", "my.yaml", "--minigts-on", ON)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        [f"minigts: my.yaml is brought up on {ON} in real time*", f"minigts: lab mine-*: mine on {ON} in real time*"]
    )
    assert api.all_labs() == ()


def test_a_lab_that_runs_it_is_used_and_given_back(run: Run) -> None:
    lab = api.up(CHAIN, provider=ON)
    lab.link("h1", "h2").change(delay="7ms")
    before = lab._lab.read_record()
    done = run(RTT, "--minigts", "my.yaml", "--minigts-on", ON)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines([f"minigts: lab mine, which is up and is given back as it was: mine on {ON}*"])
    assert [each.name for each in api.all_labs()] == ["mine"]
    assert lab._lab.read_record() == before


def test_without_a_topology_it_is_the_lab_that_is_up(run: Run) -> None:
    api.up(CHAIN, provider=ON)
    run(RTT).assert_outcomes(passed=1)


def test_a_topology_beside_a_lab_of_another_is_brought_up(run: Run) -> None:
    api.up(CHAIN.replace("10ms", "12ms"), provider=ON)
    run(RTT, "--minigts", "my.yaml", "--minigts-on", ON).assert_outcomes(passed=1)
    assert [each.name for each in api.all_labs()] == ["mine"]


def test_of_several_labs_the_user_says_which(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    api.up(CHAIN, provider=ON)
    api.up(CHAIN, provider=ON, name="second")
    asked = run(RTT)
    asked.assert_outcomes(errors=1)
    says = "*minigts: several labs are up (mine, second): say which to test, as in MINIGTS_LAB=mine"
    asked.stdout.fnmatch_lines([says])
    assert "Traceback" not in asked.stdout.str()
    monkeypatch.setenv("MINIGTS_LAB", "second")
    run(RTT).assert_outcomes(passed=1)
    monkeypatch.setenv("MINIGTS_LAB", "secnd")
    run(RTT).stdout.fnmatch_lines(["*MINIGTS_LAB=secnd: no such lab is up; *did you mean 'second'?*"])


@pytest.mark.parametrize(
    ("arguments", "topology", "says"),
    [
        (["--minigts", "my.yaml"], CHAIN.replace("10ms", "10"), "*my.yaml:2: chain.link.rtt: *lacks its unit*"),
        (["--minigts", "you.yaml"], CHAIN, "*you.yaml*"),
        (["--minigts", "my.yaml", "--minigts-on", "tc-host"], CHAIN, "*no provider 'tc-host'; *did you mean*"),
        (["--minigts", "my.yaml", "--minigts-on", ON, "--minigts-time", "virtual"], CHAIN, "*has no virtual time*"),
        ([], CHAIN, "*no lab is up: bring one up with minigts up, or name a topology with --minigts FILE"),
    ],
)
def test_what_cannot_be_tested_is_said_in_a_sentence(run: Run, arguments: list[str], topology: str, says: str) -> None:
    done = run(RTT, *arguments, topology=topology)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([says])
    assert "Traceback" not in done.stdout.str()


def test_tests_that_use_no_lab_are_not_asked_for_one(run: Run) -> None:
    run("def test_nothing():\n    pass\n").assert_outcomes(passed=1)


def test_links_are_as_before_in_the_next_test(run: Run) -> None:
    done = run(
        """
        def test_cut(link, rtt):
            link("h1", "h2").cut()
            assert rtt("h1", "h3").lost

        def test_change(link, rtt):
            link("h1", "h2").change(rtt="30ms")
            assert abs(rtt("h1", "h3").median_ms - 40) < 0.1

        def test_as_before(rtt):
            assert abs(rtt("h1", "h3").median_ms - 20) < 0.1
        """,
        "--minigts",
        "my.yaml",
        "--minigts-on",
        ON,
    )
    done.assert_outcomes(passed=3)


def test_a_failure_shows_what_was_measured_and_the_consoles(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def diagnose(_self: object, host: str, into: Path) -> None:
        into.mkdir(parents=True)
        (into / "console.log").write_text(f"{host} has booted\n")

    monkeypatch.setattr(tc_hosts.TcHosts, "diagnose", diagnose)
    test = """
        def test_it(link, rtt, run):
            run("h2", ["true"])
            link("h1", "h2").cut()
            assert rtt("h1", "h2").as_expected
    """
    words = ("--minigts", "my.yaml", "--minigts-on", ON)
    assert "console of" not in run(test, *words).stdout.str()  # they are long, and no host has failed
    done = run(test, *words, "-v")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *where False = <h1 to h2 over plain hosts: median nan ms of 60, 60 lost; expected 10.0000*",
            "*minigts: what was measured*",
            "h2: true: ended with 0",
            "h1 to h2 over plain hosts: * 60 lost; expected 10.0000*",
            "*minigts: console of h2*",
            "console.log: h2 has booted",
            "*minigts: console of h1*",
        ]
    )


@pytest.mark.parametrize("measure", ["rtt", "throughput"])
def test_when_a_host_fails_while_it_measures_the_consoles_of_both_ends_are_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    works = tc_hosts.TcHosts.run

    def diagnose(_self: object, host: str, into: Path) -> None:
        into.mkdir(parents=True)
        (into / "console.log").write_text(f"{host}: Kernel panic\n")

    def fails(self: tc_hosts.TcHosts, host: str, argv: Sequence[str], **more: Any) -> CommandResult:
        if any("iperf3" in word for word in argv) or argv[0].endswith("/probe"):
            raise HostFailed(f"host {host} is not running")
        return works(self, host, argv, **more)

    lab = api.up(CHAIN, provider=ON)
    monkeypatch.setattr(tc_hosts.TcHosts, "diagnose", diagnose)
    monkeypatch.setattr(tc_hosts.TcHosts, "run", fails)
    done = run(f"def test_it({measure}):\n    {measure}('h1', 'h3')\n")
    lab.down()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *HostFailed: host h* is not running",
            "*minigts: console of h1*",
            "console.log: h1: Kernel panic",
            "*minigts: console of h3*",
            "console.log: h3: Kernel panic",
        ]
    )


def test_pytests_help_explains_each_option(run: Run) -> None:
    _, _, ours = run("", "--help").stdout.str().partition("labs of minigts:\n")
    options = re.split(r"\n  (?=--)", ours.partition("\n\n")[0])
    explained = {option: rest for option, *rest in (each.split() for each in options)}
    assert set(explained) >= {"--minigts=TOPOLOGY", "--minigts-on=PROVIDERS", "--minigts-fresh"}
    assert [option for option, words in explained.items() if not words] == []


def test_an_error_of_minigts_shows_the_users_line_and_none_of_ours(run: Run) -> None:
    """Also the error behind it, which is in our code, and a word that is no text."""
    done = run(
        """
        import pytest

        def test_host(run):
            run("h9", "true")

        def test_change(link):
            link("h1", "h2").change(delay="3")

        @pytest.fixture
        def slow(link):
            link("h1", "h2").change(delay="4")

        def test_fixture(slow):
            pass

        def test_number(run):
            run("h1", ["sleep", 1])
        """,
        "--minigts",
        "my.yaml",
        "--minigts-on",
        ON,
    )
    done.assert_outcomes(failed=3, errors=1)
    said = done.stdout.str()
    assert "labs.py" not in said
    assert "plugin.py" not in said
    assert "direct cause" not in said
    for line, error in (
        ('>       run("h9", "true")', "no host 'h9'; hosts are h1, h2, h3"),
        ('>       link("h1", "h2").change(delay="3")', "change: delay: '3' lacks its unit: write a time as in 10ms"),
        ('>       link("h1", "h2").change(delay="4")', "change: delay: '4' lacks its unit: write a time as in 10ms"),
        ('>       run("h1", ["sleep", 1])', "run: 1 is no text: write a command as words*or as one list of them"),
    ):
        done.stdout.fnmatch_lines_random([line.replace("[", "[[]", 1), f"E *{error}"])


def test_a_command_is_words_or_one_list_of_them(run: Run) -> None:
    done = run(
        """
        def test_run(run, host):
            assert run("h1", ["uname", "-r"]).argv[-2:] == run("h1", "uname", "-r").argv[-2:] == ("uname", "-r")
            assert host("h1").run(["uname", "-r"]).stdout == run("h1", "uname", "-r").stdout
        """,
        "--minigts",
        "my.yaml",
        "--minigts-on",
        OtherHosts.name,
    )
    done.assert_outcomes(passed=1)


def test_what_was_measured_is_in_the_junit_file(run: Run, pytester: pytest.Pytester) -> None:
    run(RTT, "--minigts", "my.yaml", "--minigts-on", ON, "--junitxml", "found.xml").assert_outcomes(passed=1)
    said = (pytester.path / "found.xml").read_text()
    assert '<property name="measured" value="h1 to h3 over plain hosts: median 20.' in said


def test_what_holds_on_one_provider_is_marked_as_that_providers(run: Run) -> None:
    done = run(
        """
        import pytest

        @pytest.mark.parametrize("hosts", [3])
        def test_kernel(lab, hosts):
            assert lab.kernel != "other"

        def test_rtt(rtt):
            assert rtt("h1", "h2").as_expected
        """,
        "-v",
        "--minigts",
        "my.yaml",
        "--minigts-on",
        f"{ON},{OtherHosts.name}",
    )
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines_random(
        [
            f"*::test_kernel?{ON}-3? PASSED*",
            f"*::test_kernel?{OtherHosts.name}-3? FAILED*",
            f"*::test_rtt?{OtherHosts.name}? PASSED*",
            f"minigts: passes on {ON}, fails on {OtherHosts.name}: *::test_kernel?3?",
        ]
    )
    assert api.all_labs() == ()


def test_what_a_provider_lacks_is_the_tests_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tc_hosts.TcHosts, "missing", lambda _: ["needs a screwdriver; buy one"])
    done = run(RTT, "--minigts", "my.yaml", "--minigts-on", ON)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["minigts: needs a screwdriver; buy one"])
    assert api.all_labs() == ()


def collected(*arguments: str) -> set[str]:
    """The folders below tests that pytest collects from in this project."""
    argv = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", *arguments]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split("/")[1] for line in done.stdout.splitlines() if line.startswith("tests/")}


@pytest.mark.parametrize(
    ("arguments", "folders"),
    [
        ([], ["lab"]),
        pytest.param(["tests/"], ["lab"], marks=pytest.mark.nightly),
        (["tests/unit/topology/test_plan.py", "tests/lab"], ["lab", "unit"]),
        pytest.param(
            ["--all-tests", "tests", "--ignore=tests/unit"],
            ["browser", "contract", "documented", "lab", "live", "topologies"],
            marks=pytest.mark.nightly,
        ),
    ],
    ids=" ".join,
)
def test_an_engineers_pytest_has_the_labs_tests_and_a_developers_all(arguments: list[str], folders: list[str]) -> None:
    assert sorted(collected(*arguments)) == folders


WITHOUT = """
import sys
for name in ("hypothesis", "pytest_timeout", "xdist"):
    sys.modules[name] = None
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("own", [False, True])
def test_packages_that_the_programs_own_tests_take_are_not_asked_of_a_user(own: bool, tmp_path: Path) -> None:
    """Of one who tests the lab that is up, or a lab by a test file in the checkout, where its settings hold."""
    words, lines = ["--collect-only", "-q", "-p", "no:cacheprovider"], "tests/lab/test_this_lab.py"
    if own:
        (tmp_path / "test_own.py").write_text("def test_it(): pass\n")
        words += [
            "-c",
            str(PROJECT / "pyproject.toml"),
            "--rootdir",
            str(tmp_path),
            str(tmp_path),
            "--minigts",
            "x.yaml",
        ]
        words += ["-p", "minigts.testing.plugin"]
        lines = "test_own.py::test_it"
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(PROJECT / "tools")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, lines in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_launchers_environment_is_found_where_the_launcher_makes_it() -> None:
    made = [python_packages.environment(lock) for lock in ("requirements-dev.lock", "requirements.lock")]
    if not Path(sys.prefix).name.startswith("venv-"):
        pytest.skip("this Python is not the launcher's")
    assert Path(sys.prefix) in made


def test_a_python_without_packages_or_environment_says_what_to_type(tmp_path: Path) -> None:
    """A pytest that has nothing but itself, in a home where no launcher has been."""
    import pluggy  # noqa: PLC0415

    beside = tmp_path / "packages"
    beside.mkdir()
    site = Path(pluggy.__file__).parents[1]
    for name in ("_pytest", "pytest", "py.py", "pluggy", "iniconfig", "packaging", "pygments"):
        (beside / name).symlink_to(site / name)
    environ = {**os.environ, "PYTHONPATH": str(beside), "HOME": str(tmp_path), "MINIGTS_CACHE": str(tmp_path)}
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    argv = [str(python), "-S", "-P", "-m", "pytest", "tests/"]
    done = subprocess.run(argv, cwd=PROJECT, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"type: {PROJECT}/minigts test tests/lab" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
