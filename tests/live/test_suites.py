"""Suites of tests that others wrote, run in labs. Linux's own are not part of minigts, and neither is packetdrill: a
suite's way is tried with a program that stands in packetdrill's place, and packetdrill itself where the machine has it.
"""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from live.program import Program, Traces, until
from minigts.suites import folder
from minigts.suites.comparison import summaries
from minigts.suites.outcome import CaseOutcome

pytestmark = [
    pytest.mark.touched("tools/minigts/suites", "tools/minigts/cli/verbs/suite.py"),
    pytest.mark.virtual,
    pytest.mark.timeout(1800),
]
PATIENCE_S = 1500.0
RUNNER = """#!/bin/bash
declare -A ip_args=(
	[ipv4]="--ip_version=ipv4
		--local_ip=192.168.0.1
		--gateway_ip=192.168.0.1
		--netmask_ip=255.255.0.0
		--remote_ip=192.0.2.1"
	[ipv6]="--ip_version=ipv6
		--mtu=1520
		--local_ip=fd3d:0a0b:17d6::1
		--gateway_ip=fd3d:0a0b:17d6:8888::1
		--remote_ip=fd3d:fa7b:d17d::1"
)
ip_versions="ipv4 ipv6"
"""
STAND_IN = """#!/bin/sh
for last; do :; done
echo "$@"
ip -brief link
. ./defaults.sh
exec sh "$last"
"""
"""In packetdrill's place: it says its arguments and interfaces, and runs the script as one of the shell's."""
FRAMES = """echo $GREETING
ip link set lo up
before=$(date +%s%N)
ping -q -c 2 -i 0.3 -p 6d696e69677473 -s 30 127.0.0.1 | head -n 1
sleep 0.2
echo $(($(date +%s%N) - before))
"""
PIPES = "echo piped | cat /dev/stdin; bash -c 'cat <(echo substituted)'; "
"""What needs the links of /dev that udev makes elsewhere."""
NS_PER_TICK = 10**6
NANOSECONDS = b"\x4d\x3c\xb2\xa1"
"""How a pcap begins whose times are in nanoseconds, written by a little-endian machine."""
DATA = """// Data that is acknowledged at once, and an end that is not answered for 500 ms.
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
+.5 < P. 1:101(100) ack 1 win 257
+0 > . 1:1(0) ack 101
+0 read(4, ..., 100) = 100
+.1 close(4) = 0
+{after} > F. 1:1(0) ack 101
"""
"""A script of our own for packetdrill: the last segment comes at once."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "scripts"
    made.mkdir()
    (made / "ksft_runner.sh").write_text(RUNNER)
    (made / "defaults.sh").write_text("echo defaults\n")
    return made


def run(program: Program, place: Path, *words: str) -> tuple[Path, list[CaseOutcome], int]:
    """Run the suite; return its folder, what came of each case and time, and the exit code."""
    results = place.parent / "results"
    started = program.start("suite", "run", "packetdrill", str(place), *words, "--results", str(results))
    said, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode in (0, 1), said + told
    made = Path(said.strip().splitlines()[-1])
    return made, folder.outcomes(made), started.returncode


def compiled(place: Path) -> Path:
    """What a user has installed for hosts: a program of their own in sbin, a link to it, and another `tc`."""
    made = place.parent / "compiled"
    for name in ("sbin/greet", "usr/sbin/tc"):
        path = made / name
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\necho tc of mine\n")
        path.chmod(0o755)
    (made / "usr/bin").mkdir()
    (made / "usr/bin/hail").symlink_to("/sbin/greet")
    (place / "tcp_mine.pkt").write_text("set -e; greet; hail; tc; readlink /sbin; tty -s || echo in /bin\n")
    return made


@pytest.fixture
def stand_in(place: Path) -> tuple[str, str]:
    """The words that name the program, with scripts for it beside the others."""
    (place / "tcp_clock.pkt").write_text(
        f"date +%s%N; sleep 1.5; {PIPES}echo locale $LC_ALL; head -c 8 /dev/urandom | od -An -x; date +%s%N\n"
    )
    (place / "tcp_late.pkt").write_text("echo tcp_late.pkt:3: error: late; exit 1\n")
    (place / "tcp_stuck.pkt").write_text("echo waits; sleep 1000\n")
    (place / "tcp_warned.pkt").write_text("echo passed; echo '<4>BUG: KASAN: none in tcp_x' >/dev/kmsg\n")
    path = place.parent / "stand-in"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return ("--program", str(path))


def test_verdicts_times_and_output_are_those_of_each_case(
    program: Program, traces: Traces, place: Path, stand_in: tuple[str, str]
) -> None:
    junit = place.parent / "junit.xml"
    mine = compiled(place)
    words = ("--longest", "20s", "--tolerance", "700", "--junit", str(junit), "--installed", str(mine))
    made, found, code = run(program, place, *stand_in, *words)
    assert code == 1
    by_name = {each.name: each for each in found}
    assert {name: each.verdict for name, each in by_name.items()} == {
        f"{test} {case}": verdict
        for test, verdict in (
            ("tcp_clock", "passed"),
            ("tcp_late", "failed"),
            ("tcp_mine", "passed"),
            ("tcp_stuck", "failed"),
            ("tcp_warned", "failed"),
        )
        for case in ("ipv4", "ipv6")
    }
    assert by_name["tcp_warned ipv4"].reason == "the kernel: BUG: KASAN: none in tcp_x"
    assert "\npassed\n--- what the kernel has said meanwhile:\n[" in folder.output(made, by_name["tcp_warned ipv4"])
    assert by_name["tcp_late ipv4"].reason == "tcp_late.pkt:3: error: late"
    assert by_name["tcp_stuck ipv6"].reason == "did not end in 20 s of the lab's time; it had printed last: waits"
    assert 1.5 <= by_name["tcp_clock ipv4"].lab_s < 1.7
    output = folder.output(made, by_name["tcp_clock ipv6"])
    assert "--verbose --ip_version=ipv6 --mtu=1520" in output
    assert "--tolerance_usecs=700 tcp_clock.pkt" in output
    assert "\ndefaults\n" in output
    assert "\npiped\nsubstituted\nlocale C\n" in output
    assert "\ntc of mine\ntc of mine\ntc of mine\nusr/sbin\nin /bin\n" in folder.output(made, by_name["tcp_mine ipv4"])
    assert f"hosts have `{mine}` in place of Debian's" in (made / folder.TABLE).read_text()
    assert "eth" not in output, "a case has a network namespace of its own"
    assert len({each.fingerprint for each in found}) == len(found)
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("10", "6")
    assert not traces.left()


@pytest.mark.nightly
def test_cases_are_the_same_each_time_beside_any_load(
    program: Program, traces: Traces, place: Path, stand_in: tuple[str, str]
) -> None:
    words = ("--only", "tcp_clock ipv4", "--times", "2", "--load", "0,8,32", "--jobs", "2", "--same-output")
    _, found, code = run(program, place, *stand_in, *words)
    assert code == 0
    assert sorted((each.time, each.load) for each in found) == [(1, 0), (2, 0), (3, 8), (4, 8), (5, 32), (6, 32)]
    for case in summaries(found):
        assert not case.changes_output
        assert not case.changes_course
    assert not traces.left()


@pytest.mark.nightly
def test_frames_are_captured_and_a_case_does_the_same(
    program: Program, traces: Traces, place: Path, stand_in: tuple[str, str]
) -> None:
    """Also with several tests in one lab, and with a variable of the user's."""
    (place / "tcp_frames.pkt").write_text(FRAMES)
    words = (
        *stand_in,
        "--only",
        "tcp_frames",
        "--only",
        "tcp_clock ipv4",
        "--in-a-lab",
        "2",
        "--env",
        "GREETING=hello",
    )
    (plain, found, _), (captured, again, code) = run(program, place, *words), run(program, place, *words, "--capture")
    assert code == 0
    assert [each.name for each in found] == ["tcp_clock ipv4", "tcp_frames ipv4", "tcp_frames ipv6"]
    assert [bool(each.start_s) for each in found] == [True, False, False], "they share a lab"
    one, other = (folder.output(made, each[1]).splitlines() for made, each in ((plain, found), (captured, again)))
    assert "hello" in one
    assert one[:-1] == other[:-1]
    assert abs(int(one[-1]) - int(other[-1])) < 3 * NS_PER_TICK
    assert not list(plain.rglob("*.pcap"))
    frames = (captured / "output" / "tcp_frames" / "ipv4-1.pcap").read_bytes()
    assert frames[:4] == NANOSECONDS
    assert frames.count(b"minigts") == 4, "two requests and two answers"
    assert not traces.left()


@pytest.mark.nightly
def test_an_interrupted_run_goes_on_where_it_was(
    program: Program, traces: Traces, place: Path, stand_in: tuple[str, str]
) -> None:
    (place / "tcp_computes.pkt").write_text("i=0; while [ $i -lt 10000000 ]; do i=$((i + 1)); done\n")
    words = (*stand_in, "--only", "tcp_clock", "--only", "tcp_computes", "--jobs", "1")
    results = place.parent / "results"
    started = program.start("suite", "run", "packetdrill", str(place), *words, "--results", str(results))
    assert until(lambda: any(results.glob("*/results.jsonl")))
    time.sleep(1)  # the second script computes for some seconds, and the lab's clock stands still meanwhile
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 130, told
    (made,) = results.iterdir()
    assert f"--resume {made}" in told
    assert {each.test for each in folder.outcomes(made)} == {"tcp_clock"}
    assert not traces.left()
    again, found, _ = run(program, place, *words, "--resume", str(made))
    assert again == made
    assert {each.test for each in found} == {"tcp_clock", "tcp_computes"}
    refused = program.run("suite", "run", "packetdrill", str(place), *words, "--times", "2", "--resume", str(made))
    assert (refused.returncode, "the folder's run has other times" in refused.stderr) == (2, True)


@pytest.mark.nightly
def test_packetdrill_sees_the_moments_of_the_labs_clock_beside_any_load(program: Program, place: Path) -> None:
    """To 100 us, where Linux's own scripts allow 4 ms. The second script wants the last segment 2 ms later."""
    if shutil.which("packetdrill") is None:
        pytest.skip("this machine has no packetdrill, which is in no package of Debian's")
    (place / "tcp_exact.pkt").write_text(DATA.format(after="0"))
    (place / "tcp_off.pkt").write_text(DATA.format(after=".002"))
    _, found, code = run(program, place, "--tolerance", "100", "--load", "0,8,32", "--jobs", "2")
    assert code == 1
    assert {(each.test, each.verdict) for each in found} == {("tcp_exact", "passed"), ("tcp_off", "failed")}
    assert all("timing error" in each.reason for each in found if each.test == "tcp_off")
    assert not any(case.changes_output or case.changes_course for case in summaries(found))
