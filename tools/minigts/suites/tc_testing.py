"""Linux's tests of traffic control: tools/testing/selftests/tc-testing of its sources, as they are or installed.

tdc.py there runs the tests of a file in tc-tests one after the other, each in a network namespace that it makes, and
writes TAP. Each file is a test here, and those that it describes are its parts. Programs for BPF are there only where
the folder was compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.suites import parts
from minigts.suites.suite import Case, CasePart, SuiteOptions, SuiteTest, Verdict, files_below

DRIVER, TESTS, ENDING = "tdc.py", "tc-tests", ".json"
SKIPPED = 4


class TcTesting:
    name = "tc-testing"
    about = "Linux's tools/testing/selftests/tc-testing"
    program = ""
    has_tolerance = False
    longest_s = 1800.0
    memory = "512MB"
    packages: Sequence[str] = ("python3-pyroute2", "python3-scapy", "iptables")
    """tdc.py makes its namespaces with pyroute2 where it is there, and else starts `ip` for each step."""

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        del options
        found = sorted((directory / TESTS).rglob(f"*{ENDING}"))
        if not found or not (directory / DRIVER).is_file():
            raise InputError([Problem(str(directory), 0, f"has no {DRIVER} with tests in {TESTS}, as Linux's has")])
        return [
            SuiteTest(
                name=path.relative_to(directory / TESTS).with_suffix("").as_posix(),
                cases=(Case(name="", argv=("python3", DRIVER, "-f", path.relative_to(directory).as_posix())),),
            )
            for path in found
        ]

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """All but the descriptions of other tests."""
        mine = f"{TESTS}/{test.name}{ENDING}"
        return {
            name: path
            for name, path in files_below(directory, [directory])
            if name == mine or not (name.startswith(f"{TESTS}/") and name.endswith(ENDING))
        }

    def parts(self, output: str) -> Sequence[CasePart]:
        return parts.tap_parts(output)

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        found = self.parts(output)
        if code == SKIPPED or (code == 0 and found and all(each.verdict == "skipped" for each in found)):
            return "skipped", parts.summary(found, "skipped") or parts.last_line(output, "skipped, and said nothing")
        if code == 0:
            return "passed", ""
        told = parts.last_line(output, f"ended with code {code} and said nothing")
        return "failed", parts.summary(found, "failed") or told
