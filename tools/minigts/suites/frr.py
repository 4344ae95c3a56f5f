"""FRR's topotests: tests/topotests of its sources. Their routers are network namespaces of one host, made by munet.

A test is a file of pytest's, and its functions are the parts. The daemons are those of Debian's package `frr`, so the
sources should have its version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.suites import parts
from minigts.suites.suite import Case, CasePart, SuiteOptions, SuiteTest, Verdict, files_below, read_file

SETTINGS = "pytest.ini"
SHARED = ("lib", "munet")
"""The folders that all tests use."""
NONE_FOUND = 5
"""pytest's exit code where there is no test."""
RUN = """
mkdir -p /run/suite
cat >/run/suite/host_without_modules.py <<'END'
import os
from pathlib import Path

import pytest


def is_there(module, load):
    listed = Path("/lib/modules", os.uname().release, "modules.builtin").read_text()
    return f"/{module.replace('-', '_')}.ko" in listed.replace("-", "_")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    from lib import topotest

    topotest.module_present_linux = is_there
END
cat >/run/suite/exabgp <<'END'
#!/bin/sh
for word; do
    shift
    case $word in
    -v) word=--version ;;
    -e) word=--env ;;
    esac
    set -- "$@" "$word"
done
exec /usr/sbin/exabgp "$@"
END
chmod +x /run/suite/exabgp
export PYTHONPATH=/run/suite PATH=/run/suite:$PATH
exec python3 -B -m pytest -v -rpfEsxX -p no:cacheprovider -p host_without_modules "$1"
"""
"""Runs pytest with a plugin: topotests look for the kernel's modules in /proc/modules, which hosts lack, since all is
built into their kernel. Debian 13's ExaBGP 4.2.25 knows its long options only, and topotests use the short ones."""
_LEFT_OUT = re.compile(r"^norecursedirs *= *(.+)$", re.MULTILINE)
_BROKEN = re.compile(r"^INTERNALERROR> (\S.*)$", re.MULTILINE)


class Frr:
    name = "frr"
    about = "FRR's tests/topotests, of the version of Debian's package frr"
    program = ""
    has_tolerance = False
    longest_s = 3600.0
    memory = "2GB"
    packages: Sequence[str] = (
        *("frr", "frr-pythontools", "gdb-minimal", "python3-pytest", "python3-yaml", "python3-jsonschema"),
        *("python3-toml", "python3-pexpect", "net-tools", "python3-scapy", "python3-xmltodict", "bridge-utils"),
        *("iptables", "exabgp", "snmp", "snmpd", "snmptrapd", "frr-snmp", "frr-rpki-rtrlib", "patch"),
    )

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        del options
        left_out = _LEFT_OUT.search(read_file(directory / SETTINGS, "FRR's has one").decode(errors="replace"))
        besides = {*(left_out[1].split() if left_out else ()), *SHARED}
        found = sorted(path for path in directory.glob("*/test_*.py") if path.parent.name not in besides)
        if not found:
            raise InputError(
                [Problem(str(directory), 0, "has no folders with test_*.py, as FRR's tests/topotests has")]
            )
        return [
            SuiteTest(
                name=path.relative_to(directory).with_suffix("").as_posix(),
                cases=(Case(name="", argv=("sh", "-c", RUN, "sh", path.relative_to(directory).as_posix())),),
            )
            for path in found
        ]

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """The test's own folder, and what all tests use."""
        own = test.name.split("/")[0]
        tops = [directory / name for name in (*SHARED, own)]
        at_top = {path.name: path for path in sorted(directory.iterdir()) if path.is_file()}
        return {**at_top, **dict(files_below(directory, tops))}

    def parts(self, output: str) -> Sequence[CasePart]:
        return parts.pytest_parts(output)

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        found = self.parts(output)
        if code == NONE_FOUND or (code == 0 and found and all(each.verdict == "skipped" for each in found)):
            return "skipped", parts.summary(found, "skipped") or "there is no test"
        if code == 0:
            return "passed", ""
        last = parts.last_line(output, f"ended with code {code} and said nothing")
        return "failed", parts.summary(found, "failed") or [last, *_BROKEN.findall(output)][-1]
