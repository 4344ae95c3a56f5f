"""Runs a test, or several, in a lab of one host: lays the suite's files there, runs each case, and gathers what came of
it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from minigts import lab as labs
from minigts import paths
from minigts.dataplane.interfaces import LINUX_SYSCTLS
from minigts.errors import CommandTimeout, InputError, MinigtsError, Problem
from minigts.foreign import Foreign, content, one_line, whole_number
from minigts.lab import Lab
from minigts.machine.proc import family, used_s
from minigts.machine.progress import Progress
from minigts.providers.base import HasCourse
from minigts.session import bring_up
from minigts.suites import installed, parts, registry
from minigts.suites.outcome import LONGEST_REASON, CaseOutcome
from minigts.suites.suite import PLACE, Case, SuiteOptions, SuiteTest, read_file
from minigts.suites.work import HOST, SuiteJob

NS_PER_S = 10**9
LONGEST_LOOK_S = 60.0
MOST_OUTPUT_BYTES = 4 << 20
"""How much of the end of a case's output is kept."""
MOST_CAPTURED_FRAMES, MOST_CAPTURED_BYTES = 100_000, 32 << 20
OWN_NAMESPACE = ("unshare", "-n")
PRINTED, WARNED = "/run/suite-output", "/run/suite-kernel"
MOST_WARNINGS = 1000
KERNEL_SAID = "--- what the kernel has said meanwhile:"
_FAULT_OF_A_KERNEL = re.compile(
    r"\] (?:BUG: |WARNING: |UBSAN: |Oops|kmemleak: .*suspected memory leak|INFO: task .* blocked|Kernel panic)"
)
"""How Linux begins its reports of faults of its own: KASAN, lockdep, WARN_ON, and what comes before a crash."""
RUNNER, CAPTURER, CAPTURED = "run-a-case", "capture-a-case", PurePosixPath("/run/suite-capture.pcap")
RUN_A_CASE = f"""#!/bin/sh
# Runs a command in a directory; prints a line with its exit code, the times of day in ns before and after it, and how
# many lines the kernel has warned with meanwhile, then these lines, and then what the command has printed. The host is
# as Linux is where nobody has set anything. New network namespaces take over how it forwards and answers to ARP, and
# have tunnels such as gre0, without which hosts are started (fb_tunnels=initns). Bridges do not show their frames to
# iptables, as where nobody has loaded br_netfilter, which is built in here; a test that wants it says so itself. Text
# is in the locale C: programs open a file for each category of any other one, and tests start hundreds of programs.
PATH={PLACE}/bin:$PATH
export LC_ALL=C
echo 0 >/proc/sys/net/core/fb_tunnels_only_for_init_net
sysctl -qw {" ".join(LINUX_SYSCTLS)}
for each in /proc/sys/net/bridge/bridge-nf-call-*; do
  [ ! -e "$each" ] || echo 0 >"$each"
done
cd "{PLACE}/$1" || exit 1
shift
dmesg --clear
before=$(date +%s%N)
"$@" >{PRINTED} 2>&1 </dev/null
code=$?
after=$(date +%s%N)
dmesg --level=emerg,alert,crit,err,warn | tail -n {MOST_WARNINGS} >{WARNED}
echo "$code $before $after $(wc -l <{WARNED})"
cat {WARNED}
tail -c {MOST_OUTPUT_BYTES} {PRINTED}
"""
SAYS_WHAT_LACKS = """
ldconfig
xargs -0 -r ldd 2>/dev/null | awk '/^\\// { of = $1 } / => not found/ { print of " needs " $1; exit }'
"""
"""Prints the first library that a program of stdin needs and the host lacks."""
CAPTURE_A_CASE = f"""#!/bin/sh
# Runs a command while tcpdump captures on all interfaces of this network namespace, also on those that come later.
rm -f {CAPTURED}
tcpdump -i any -n -c {MOST_CAPTURED_FRAMES} --immediate-mode --time-stamp-precision=nano -Z root -w {CAPTURED} \
  2>/run/suite-tcpdump &
until grep -q "^tcpdump: listening" /run/suite-tcpdump; do
  kill -0 $! 2>/dev/null || break
  sleep 0.01
done
"$@"
code=$?
sleep 0.01
kill -INT $! 2>/dev/null
wait $! 2>/dev/null
exit "$code"
"""


class CaseReport(NamedTuple):
    """A case that has ended, and what it has printed."""

    outcome: CaseOutcome
    output: str
    capture: bytes = b""
    """The frames as a pcap, if they were captured."""


def perform(work: SuiteJob, name: str, say: Progress) -> list[CaseReport]:
    """Run the tests in a new lab of that name, which is taken down. Raises what a lab raises; InputError for files that
    cannot be read."""
    with tempfile.TemporaryDirectory(prefix="minigts-suite-") as directory:
        files = Path(directory).resolve() / "files"
        processors, begun = _Processors(), time.monotonic()
        _lay(work, files)
        with _lab(work, name, say) as lab:
            lab.provider.put(HOST, files, PurePosixPath(PLACE))
            if work.settings.installed:
                _install(lab, Path(work.settings.installed))
            start = {"start_s": round(time.monotonic() - begun, 3), "start_processor_s": processors.since(lab)}
            ended = [_case(lab, work, test, case, processors) for test, case in work.cases]
    first = ended[0]
    return [first._replace(outcome=first.outcome.model_copy(update=start)), *ended[1:]]


class _Processors:
    """Tells the processor seconds of this process, of those below it and of a lab since it was asked for them last."""

    def __init__(self) -> None:
        self._before_s = processor_s(())

    def since(self, lab: Lab) -> float:
        before_s, now_s = self._before_s, processor_s(lab.provider.processes())
        self._before_s = now_s
        return max(0.0, round(now_s - before_s, 2))


def processor_s(processes: Iterable[int]) -> float:
    """The processor seconds of this process and of the other ones, with all below them. What nobody has waited for yet
    counts as well as what somebody has: else the lab before this one, once waited for, would count as this one's."""
    used, own = os.times(), os.getpid()
    below = set(family([own, *processes])) - {own}
    return used.user + used.system + used.children_user + used.children_system + sum(map(used_s, below))


@contextmanager
def _lab(work: SuiteJob, name: str, say: Progress) -> Iterator[Lab]:
    request = bring_up.Request(work.settings.plan, work.settings.provider, name)
    lab = bring_up.bring_up(bring_up.ready(request), say, certified=False).lab
    try:
        yield lab
    finally:
        labs.down(lab)


def _lay(work: SuiteJob, files: Path) -> None:
    """Copy what the tests need into the folder `files`."""
    (files / "bin").mkdir(parents=True)
    suite = registry.find(work.settings.suite)
    needed = {name: source for test in work.tests for name, source in suite.files(work.place, test).items()}
    for name, source in needed.items():
        target = files / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, target)
    if work.settings.program:
        program = Path(work.settings.program)
        _copy(program, files / "bin" / suite.program)
    for name, text in ((RUNNER, RUN_A_CASE), (CAPTURER, CAPTURE_A_CASE)):
        script = files / "bin" / name
        script.write_text(text, encoding="ascii")
        script.chmod(0o755)


def _install(lab: Lab, directory: Path) -> None:
    """Have the host what is installed there, in place of what it had of the same paths. Raises InputError where a
    program needs a library that the host has not."""
    lab.provider.unpack_on(HOST, PurePosixPath("/"), partial(installed.pack, directory))
    programs = b"".join(b"/%s\0" % bytes(path) for path in installed.programs(directory))
    said = lab.provider.run(HOST, ["sh", "-c", SAYS_WHAT_LACKS], timeout_s=LONGEST_LOOK_S, stdin=programs).stdout
    if said.strip():
        remedy = "which hosts have not; name its Debian package with --package"
        raise InputError([Problem(str(directory), 0, f"{one_line(said, LONGEST_REASON)}, {remedy}")])


def _copy(source: Path, target: Path) -> None:
    content = read_file(source)
    try:
        target.write_bytes(content)
        shutil.copymode(source, target)
    except OSError as error:
        raise InputError([Problem(str(source), 0, f"cannot be copied: {error.strerror or error}")]) from error


def _command(case: Case, options: SuiteOptions) -> list[str]:
    variables = [f"{name}={value}" for name, value in options.environment.items()]
    return [
        *(OWN_NAMESPACE if case.own_namespace else ()),
        *(("sh", f"{PLACE}/bin/{CAPTURER}") if options.capture else ()),
        *(("env", *variables) if variables else ()),
        *case.argv,
    ]


def _case(lab: Lab, work: SuiteJob, test: SuiteTest, case: Case, processors: _Processors) -> CaseReport:
    begun = time.monotonic()
    options = work.settings.options
    argv = ["sh", f"{PLACE}/bin/{RUNNER}", test.directory, *_command(case, options)]
    longest_s = work.settings.longest_s
    found = CaseOutcome(
        test=test.name, case=case.name, time=work.turn, load=work.load, verdict="failed", lab_s=longest_s
    )
    try:
        said = lab.provider.run(HOST, argv, timeout_s=longest_s, check=True).stdout
        ended = _read(work, said, found)
    except CommandTimeout:
        ended = _unended(lab, work, found)
    except MinigtsError as error:
        why = one_line(Foreign(str(error)), LONGEST_REASON - 1)
        ended = CaseReport(found.model_copy(update={"verdict": "error", "reason": why, "lab_s": 0.0}), "")
    took = {
        "real_s": round(time.monotonic() - begun, 3),
        "processor_s": processors.since(lab),
        "fingerprint": _fingerprint(lab),
    }
    return CaseReport(ended.outcome.model_copy(update=took), ended.output, _capture(lab) if options.capture else b"")


def _unended(lab: Lab, work: SuiteJob, found: CaseOutcome) -> CaseReport:
    """A case that did not end in time, with what it had printed."""
    tail = ["tail", "-c", str(MOST_OUTPUT_BYTES), PRINTED]
    output = content(lab.provider.run(HOST, tail, timeout_s=LONGEST_LOOK_S, check=False).stdout)
    last = parts.last_line(output, "nothing")
    reason = f"did not end in {work.settings.longest_s:g} s of the lab's time; it had printed last: {last}"
    return CaseReport(found.model_copy(update=_printed(work, output, reason)), output)


def _printed(work: SuiteJob, output: str, reason: str) -> dict[str, object]:
    """The fields of an outcome that follow from what a case has printed."""
    return {
        "reason": one_line(Foreign(reason), LONGEST_REASON - 1),
        "parts": parts.counts(registry.find(work.settings.suite).parts(output)),
        "lines": output.count("\n"),
        "output_sha256": hashlib.sha256(output.encode()).hexdigest(),
    }


def _capture(lab: Lab) -> bytes:
    """The frames of the case that has ended; none if tcpdump has written no file, as where the case never ended."""
    with tempfile.TemporaryDirectory(prefix="minigts-suite-") as directory:
        target = Path(directory).resolve() / CAPTURED.name
        try:
            lab.provider.get(HOST, CAPTURED, target)
            return paths.read_whole(target, MOST_CAPTURED_BYTES)
        except (MinigtsError, OSError):
            return b""


def _read(work: SuiteJob, said: Foreign, found: CaseOutcome) -> CaseReport:
    """What the runner has said. Raises MinigtsError for what it cannot have said: a test may do anything there."""
    first, _, rest = said.partition("\n")
    try:
        code, before, after, warnings = (whole_number(word) for word in _words(first, 4))
    except ValueError as error:
        raise MinigtsError(f"the host's runner was disturbed: {error}") from error
    lines = content(rest).splitlines(keepends=True)
    warned, output = lines[:warnings], "".join(lines[warnings:])
    verdict, reason = registry.find(work.settings.suite).verdict(code, output)
    if fault := next(filter(_FAULT_OF_A_KERNEL.search, warned), ""):
        verdict, reason = "failed", f"the kernel: {fault.partition('] ')[2].strip()}{'; ' if reason else ''}{reason}"
        output += f"{KERNEL_SAID}\n{''.join(warned)}"
    update = {"verdict": verdict, "code": code, "lab_s": (after - before) / NS_PER_S}
    return CaseReport(found.model_copy(update={**update, **_printed(work, output, reason)}), output)


def _words(line: Foreign, count: int) -> Sequence[Foreign]:
    found = line.split()
    if len(found) != count:
        raise ValueError(f"{line!r} has no {count} numbers")
    return found


def _fingerprint(lab: Lab) -> str:
    try:
        return lab.provider.course().fingerprint if isinstance(lab.provider, HasCourse) else ""
    except MinigtsError:
        return ""
