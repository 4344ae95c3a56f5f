"""Linux's selftests as `make -C tools/testing/selftests TARGETS="net net/mptcp" install` has installed them.

The folder has kselftest-list.txt, a line for each test, `net:altnames.sh`, and a folder for each collection of tests.
A test runs as root in its collection's folder, on a host of its own. It ends with 0 if it passed and with 4 if it was
skipped, as where the kernel or a program lacks something; with 2 if a failure is one that its authors expect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.suites import parts
from minigts.suites.suite import Case, CasePart, SuiteOptions, SuiteTest, Verdict, files_below, read_file

LIST, COMMON = "kselftest-list.txt", "kselftest"
SKIPPED, EXPECTED = 4, 2
"""The exit codes of a test that was skipped, and of one that failed as its authors expect (kselftest.h)."""
MOST_FILES = 10_000
_ENTRY = re.compile(r"([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*):([A-Za-z0-9_.+-]+)")
_SKIP = re.compile(r"^.*\bskip.*$", re.IGNORECASE | re.MULTILINE)
_FAILURE = re.compile(r"^(?:# *)?(?:not ok .*|.*\bFAIL.*|.*\berror\b.*)$", re.MULTILINE | re.IGNORECASE)


class Kselftest:
    name = "kselftest"
    about = "Linux's selftests, as `make install` there has installed them"
    program = ""
    has_tolerance = False
    longest_s = 3600.0
    memory = "512MB"
    packages: Sequence[str] = (
        *("netsniff-ng", "ndisc6", "socat", "iptables", "ebtables", "iputils-arping", "smcroute", "conntrack"),
        *("psmisc", "bc", "dc", "libcap2-bin", "python3-yaml", "ncat", "libteam-utils"),
    )
    """What several of `net`, `net/mptcp` and `net/forwarding` call; mausezahn is in netsniff-ng."""

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        """Raises InputError. The options have nothing for this suite."""
        del options
        made_by = "it is made by `make -C tools/testing/selftests install`"
        lines = read_file(directory / LIST, made_by).decode(errors="replace").splitlines()
        found = [(number, line, _ENTRY.fullmatch(line.strip())) for number, line in enumerate(lines, 1) if line.strip()]
        for number, line, entry in found:
            if entry is None or ".." in line:
                raise InputError([Problem(str(directory / LIST), number, f"{line[:60]!r} is no COLLECTION:TEST")])
        tests = [
            SuiteTest(
                name=f"{entry[1]}:{entry[2]}",
                cases=(Case(name="", argv=(f"./{entry[2]}",)),),
                directory=entry[1],
            )
            for _, _, entry in found
            if entry is not None
        ]
        return sorted(tests, key=lambda test: test.name)

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """All of the collection that its test is in, from its first folder on, and what all collections share: tests
        use files of the folders above theirs."""
        tops = dict.fromkeys((COMMON, test.directory.split("/")[0], *(["net"] if "net" in test.directory else [])))
        found = dict(files_below(directory, [directory / top for top in tops]))
        if len(found) > MOST_FILES:
            raise InputError([Problem(str(directory), 0, f"has more than {MOST_FILES} files beside {test.name}")])
        return found

    def parts(self, output: str) -> Sequence[CasePart]:
        return parts.tap_parts(output) or parts.lib_sh_parts(output)

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        found = self.parts(output)
        if code in (0, EXPECTED):
            return "passed", ""
        if code == SKIPPED:
            told = next(iter(_SKIP.findall(output)), "skipped, and said nothing")
            return "skipped", parts.summary(found, "skipped") or told
        last = parts.last_line(output, f"ended with code {code} and said nothing")
        return "failed", parts.summary(found, "failed") or [*_FAILURE.findall(output), last][0]
