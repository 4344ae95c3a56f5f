"""Linux's packetdrill scripts: tools/testing/selftests/net/packetdrill of its sources.

packetdrill is a program of Google's that speaks the other end of a TCP connection by a tun device. Each script runs as
Linux's own runner (ksft_runner.sh) has it: in a network namespace of its own, once for each version of IP, with the
arguments that the runner in the user's directory has. The kernel's slow machines are given 14 ms of tolerance there,
and a failure on one does not count; here neither is done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.suites import parts
from minigts.suites.suite import Case, CasePart, SuiteOptions, SuiteTest, Verdict, read_file

RUNNER, ENDING = "ksft_runner.sh", ".pkt"
_ARGUMENTS = re.compile(r'^\s*\[([a-z0-9-]+)\]="([^"]*)"', re.MULTILINE)
"""`[ipv4]="--ip_version=ipv4 …"`: the runner's arguments for a version of IP."""
_VERSIONS = re.compile(r'^\s*ip_versions="([a-z0-9 -]+)"', re.MULTILINE)
"""`ip_versions="ipv4 ipv6"`: the versions for a script that names none."""
_OWN_VERSION = re.compile(r"^--ip_version=(\S+)", re.MULTILINE)
_COMPLAINT = re.compile(r"^\S+\.pkt(?::\d+)?: .+$", re.MULTILINE)
"""`tcp_close_no_rst.pkt:26: error handling packet: timing error: expected …`"""


class Packetdrill:
    name = "packetdrill"
    about = "Linux's tools/testing/selftests/net/packetdrill"
    program = "packetdrill"
    has_tolerance = True
    longest_s = 300.0
    memory = "256MB"
    packages: Sequence[str] = ()

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        runner = read_file(directory / RUNNER).decode(errors="replace")
        arguments = {name: tuple(shlex.split(words)) for name, words in _ARGUMENTS.findall(runner)}
        usual = _VERSIONS.search(runner)
        if not arguments or usual is None or not set(usual[1].split()) <= arguments.keys():
            raise InputError(
                [Problem(str(directory / RUNNER), 0, "does not say with which arguments scripts run, as Linux's does")]
            )
        scripts = sorted(directory.glob(f"*{ENDING}"))
        if not scripts:
            raise InputError([Problem(str(directory), 0, "has no scripts of packetdrill, which end in .pkt")])
        more = () if options.tolerance_us is None else (f"--tolerance_usecs={options.tolerance_us}",)
        return [_test(script, usual[1].split(), arguments, more) for script in scripts]

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """The script, and all that is no script: scripts call these."""
        beside = (path for path in sorted(directory.iterdir()) if path.suffix != ENDING and path.is_file())
        return {path.name: path for path in (directory / f"{test.name}{ENDING}", *beside)}

    def parts(self, output: str) -> Sequence[CasePart]:
        """None: a script is one test."""
        del output
        return ()

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        if code == 0:
            return "passed", ""
        last = parts.last_line(output, f"ended with code {code} and said nothing")
        return "failed", [*_COMPLAINT.findall(output), last][0]


def _test(
    script: Path, usual: Sequence[str], arguments: Mapping[str, tuple[str, ...]], more: tuple[str, ...]
) -> SuiteTest:
    versions = _OWN_VERSION.findall(read_file(script).decode(errors="replace")) or usual
    if len(versions) != len(set(versions)) or not set(versions) <= arguments.keys():
        raise InputError([Problem(str(script), 0, f"--ip_version={versions[0]}: {RUNNER} has no arguments for it")])
    return SuiteTest(
        name=script.stem,
        cases=tuple(
            Case(
                name=version,
                argv=("packetdrill", "--verbose", *arguments[version], *more, script.name),
                own_namespace=True,
            )
            for version in versions
        ),
    )
