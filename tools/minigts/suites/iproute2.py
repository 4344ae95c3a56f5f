"""The tests of iproute2: the folder `testsuite` of its sources.

Each is a script of the shell that runs in a network namespace of its own, with the names of the programs in variables,
as the Makefile there has it. It fails where it has written a file of errors, and is skipped where it ends with 127.
Tested are the programs that hosts have, which are Debian's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.suites import parts
from minigts.suites.suite import Case, CasePart, SuiteOptions, SuiteTest, Verdict, files_below

COMMON, TESTS, ENDING = "lib/generic.sh", "tests", ".t"
SKIPPED = 127
FAILED = 1
RUN = f"""
export TC=tc IP=ip SS=ss BRIDGE=bridge DEV=lo IPVER="$1" SNAME=Debian
export STD_ERR=/run/suite-stderr STD_OUT=/run/suite-stdout ERRF=/run/suite-errors
rm -f "$ERRF"
if [ -r /proc/config.gz ]; then
    gunzip -c /proc/config.gz | sed -n 's/^CONFIG_/export CONFIG_/p' >/run/suite-config
    . /run/suite-config
fi
if [ -x tools/generate_nlmsg ]; then ./tools/generate_nlmsg; fi
sh "$1"
code=$?
if [ "$code" -eq {SKIPPED} ]; then exit {SKIPPED}; fi
if [ -e "$ERRF" ]; then
    echo "errors:"
    cat "$ERRF"
    exit {FAILED}
fi
"""
"""Runs the script that it is given, as `testsuite/Makefile` does."""
_ERRORS = re.compile(r"^errors:\n(.+(?:\n.+){0,3})", re.MULTILINE)


class Iproute2:
    name = "iproute2"
    about = "the folder testsuite of iproute2's sources"
    program = ""
    has_tolerance = False
    longest_s = 300.0
    memory = "256MB"
    packages: Sequence[str] = ()

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        del options
        found = sorted((directory / TESTS).rglob(f"*{ENDING}"))
        if not found or not (directory / COMMON).is_file():
            raise InputError([Problem(str(directory), 0, f"has no {COMMON} and no {TESTS}, as iproute2's has")])
        return [
            SuiteTest(
                name=path.relative_to(directory / TESTS).with_suffix("").as_posix(),
                cases=(
                    Case(
                        name="",
                        argv=("sh", "-c", RUN, "sh", path.relative_to(directory).as_posix()),
                        own_namespace=True,
                    ),
                ),
            )
            for path in found
        ]

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """All scripts, and what they read; without iproute2's own sources, to which the folder has a link."""
        del test
        return dict(files_below(directory, [directory / name for name in ("lib", TESTS, "tools")]))

    def parts(self, output: str) -> Sequence[CasePart]:
        """None: a script ends with one verdict."""
        del output
        return ()

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        last = parts.last_line(output, "and said nothing")
        if code == 0:
            return "passed", ""
        if code == SKIPPED:
            return "skipped", f"skipped: {last}"
        found = _ERRORS.search(output)
        return "failed", " ".join(found[1].split()) if found else last
