"""hostap's tests of Wi-Fi: tests/hwsim of its sources, which are compiled where they are.

The radios are those of mac80211_hwsim, of which the host's kernel makes as many as are asked for, so a kernel that has
it is needed. A test is a module of Python, `sae` for test_sae.py, and its functions are the parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from minigts.errors import InputError, Problem
from minigts.suites import parts
from minigts.suites.suite import Case, CasePart, SuiteOptions, SuiteTest, Verdict, files_below, read_file

TESTS, START = "tests/hwsim", "test_"
PROGRAMS = (
    *("wpa_supplicant/wpa_supplicant", "wpa_supplicant/wpa_cli", "hostapd/hostapd", "hostapd/hostapd_cli"),
    *("hostapd/hlr_auc_gw", "wlantest/wlantest", "wlantest/wlantest_cli"),
)
MORE_PROGRAMS = ("wpa_supplicant/eapol_test",)
"""What few tests use: they are skipped where it was not compiled."""
RADIOS = 7
CHOSEN = "HWSIM_TESTS"
"""The variable by which a user names some functions of a module."""
RUN = f"""
if [ ! -d /sys/class/mac80211_hwsim ]; then
    echo "the host's kernel has no mac80211_hwsim; docs/suites.md has the command that builds one, for --kernel"
    exit 1
fi
export PATH="/run/suite:$PATH" USER=0 VM=VM LOGDIR=/var/log/hwsim
mkdir -p "$LOGDIR" /run/suite /run/dbus /lib/firmware
printf '#!/bin/sh\\nexec "$@"\\n' >/run/suite/sudo
chmod +x /run/suite/sudo
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
[ ! -d /sys/kernel/tracing ] || mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
getent group admin >/dev/null || groupadd --system admin
cp vm/regdb/* /lib/firmware/
iw reg reload
[ -e /run/dbus/pid ] || dbus-daemon --config-file=vm/dbus.conf
[ -e /sys/class/net/wlan{RADIOS - 1} ] || python3 -B -c '
from hwsim import HWSimController

controller = HWSimController()
for _ in range({RADIOS}):
    controller.create_radio()
'
begin=$(openssl x509 -in auth_serv/server.pem -noout -startdate | cut -d= -f2)
later_ns=$((($(date -d "$begin" +%s) + 86400 - $(date +%s)) * 1000000000))
set_clock() {{
    now_ns=$(($(date +%s%N) + $1))
    date -s "@$((now_ns / 1000000000)).$(printf %09d $((now_ns % 1000000000)))" >/dev/null
}}
set_clock "$later_ns"
set -f
if [ -n "${CHOSEN}" ]; then set -- ${CHOSEN}; else set -- -f "$1"; fi
./start.sh VM && python3 -B -u run-tests.py --logdir "$LOGDIR" --long "$@"
code=$?
./stop.sh
set_clock "0 - $later_ns"
exit "$code"
"""
"""Prepares the host as tests/hwsim/vm of hostap's sources does its machine, and runs a module. All is root's, so that
`sudo` has nothing to do. Tests that take long are run as well, since a wait costs nothing here. The tests' certificates
are those of a year, so it is the day after their first one then, and the lab's time of day again at the end, since a
case's time is taken by it."""
_NEEDED = re.compile(rf"^\s*(?:from|import)\s+{START}(\w+)", re.MULTILINE)
ENDED_EARLY = "Terminating early due to device reset failure"


class Hwsim:
    name = "hwsim"
    about = "hostap's sources, compiled there, with tests/hwsim"
    program = ""
    has_tolerance = False
    longest_s = 7200.0
    memory = "1GB"
    packages: Sequence[str] = (
        *("libnl-3-200", "libnl-genl-3-200", "libnl-route-3-200", "libdbus-1-3", "libsqlite3-0", "libpcap0.8t64"),
        *("iw", "dbus", "psmisc", "socat", "tshark", "bridge-utils", "net-tools", "ebtables", "wireless-tools"),
        *("netbase", "python3-dbus", "python3-gi", "python3-pyrad", "python3-netifaces", "python3-openssl"),
        *("python3-pycryptodome", "openssl"),
    )
    """The libraries are those of the programs, compiled on Debian 12 or 13."""

    def tests(self, directory: Path, options: SuiteOptions) -> Sequence[SuiteTest]:
        del options
        found = sorted((directory / TESTS).glob(f"{START}*.py"))
        if not found:
            raise InputError([Problem(str(directory), 0, f"has no {TESTS}/{START}*.py, as hostap's sources have")])
        if lacking := [name for name in PROGRAMS if not (directory / name).is_file()]:
            raise InputError(
                [Problem(str(directory), 0, f"has no {', '.join(lacking)}: compile it there, as docs/suites.md has it")]
            )
        return [
            SuiteTest(
                name=name,
                cases=(Case(name="", argv=("sh", "-c", RUN, "sh", name)),),
                directory=TESTS,
            )
            for name in (path.stem.removeprefix(START) for path in found)
        ]

    def files(self, directory: Path, test: SuiteTest) -> Mapping[str, Path]:
        """The programs, and what the module needs: the runner imports every module that is there, and hostap has more
        than a hundred."""
        tests = directory / TESTS
        modules = {f"{START}{name}.py" for name in _with_imported(tests, test.name)}
        at_top = {
            f"{TESTS}/{path.name}": path
            for path in sorted(tests.iterdir())
            if path.is_file() and (path.name in modules or not path.match(f"{START}*.py"))
        }
        programs = {name: directory / name for name in (*PROGRAMS, *MORE_PROGRAMS) if (directory / name).is_file()}
        folders = [tests / "auth_serv", tests / "tnc", tests / "vm", directory / "wpaspy"]
        return {**at_top, **programs, **dict(files_below(directory, folders))}

    def parts(self, output: str) -> Sequence[CasePart]:
        return [*parts.hwsim_parts(output)]

    def verdict(self, code: int, output: str) -> tuple[Verdict, str]:
        found = self.parts(output)
        failed = parts.summary(found, "failed")
        if code == 0 and found and not failed and ENDED_EARLY not in output:
            if all(each.verdict == "skipped" for each in found):
                return "skipped", parts.summary(found, "skipped")
            return "passed", ""
        early = f"ended early, after {found[-1].name}: a radio could not be reset" if ENDED_EARLY in output else ""
        return "failed", "; ".join(filter(None, (failed, early))) or parts.last_line(output, f"ended with code {code}")


def _with_imported(tests: Path, name: str) -> set[str]:
    """A module, and those that it imports and that these do."""
    found: set[str] = set()
    left = [name]
    while left:
        each = left.pop()
        if each not in found and (path := tests / f"{START}{each}.py").is_file():
            found.add(each)
            left += _NEEDED.findall(read_file(path).decode(errors="replace"))
    return found
