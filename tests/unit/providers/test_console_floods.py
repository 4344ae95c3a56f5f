"""What a host says may be of any length and hold anything: what reads it takes time that grows with that alone, keeps a
bounded part of it, and has one error for what it cannot read.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from minigts.cli import console as terminal
from minigts.errors import CommandFailed, HostFailed, MinigtsError
from minigts.experiments import counters
from minigts.fidelity import shown_settings
from minigts.foreign import printable
from minigts.lab import relay, usage
from minigts.lab.pcapng import Merged
from minigts.machine.lines import Lines
from minigts.providers.agent.provider import MOST_LOG_BYTES, copy_end
from minigts.providers.uml.run import command_line, console
from minigts.providers.uml.run.console import Console
from minigts.serve import terminals as served
from minigts.tools import iperf3_tcp, iperf3_udp, netperf_rr, ping
from minigts.topology.read.load import parse

SIZE = 10_000_000
QUICK_S = 20.0
"""Of processor time. Each takes some seconds at the most; what grows with the square of ten million takes hours."""
PLAN = parse("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms}}\n", "two.yaml")

FLOODS = {
    "answers without an end": "icmp_seq=1 ",
    "answers with an end": "icmp_seq=1 ttl=64 time=1",
    "times": "[1.1] 64 bytes from a: icmp_seq=1 ",
    "digits": "1",
    "counts": "1 packets transmitted, 1 received,",
    "shares": "= 1.1/1.1/",
    "blanks": " ",
    "lines": "\n",
    "words": "a-b: on [",
    "documents": "1 ",
    "keys": "A=",
    "openings": "[",
    "quotes": '"',
    "escapes": "\x1b",
    "stress": "stress-ng: metrc: [1] cpu 1 1.0 ",
    "moments": "@ 1\n",
}


def _serve(text: str) -> None:
    for line in Lines(served.MOST_LINE_BYTES).feed(text.encode()):
        served.ANSWER.search(line), served.SENT.match(line)


def _host_lines(text: str) -> None:
    shown = terminal.HostLines(["ams"])
    data = text.encode()
    for at in range(0, len(data), 16384):
        shown.take("ams", data[at : at + 16384])
    shown.end("ams")


READERS: dict[str, Callable[[str], object]] = {
    "ping": ping.parse,
    "ping series": ping.series,
    "iperf3 TCP": iperf3_tcp.parse,
    "iperf3 UDP": iperf3_udp.parse,
    "netperf": netperf_rr.parse,
    "stress-ng": counters.stress_ng,
    "ethtool": counters.ethtool_features,
    "a device": counters.device,
    "the processor": counters.processor_use,
    "what a host shows": lambda text: shown_settings.parse(PLAN.machines[0], text),
    "what a host counts": usage.parse_counters,
    "the page's echoes": _serve,
    "output of many hosts": _host_lines,
    "what is printed": printable,
    "a failure": lambda text: str(CommandFailed("ams", ["true"], 1, text, text)),
}


WORST = (
    ("ping", "answers without an end"),
    ("ping", "digits"),
    ("ping", "counts"),
    ("ping", "shares"),
    ("ping series", "times"),
    ("iperf3 TCP", "openings"),
    ("iperf3 UDP", "quotes"),
    ("netperf", "keys"),
    ("stress-ng", "stress"),
    ("ethtool", "lines"),
    ("ethtool", "words"),
    ("a device", "lines"),
    ("the processor", "moments"),
    ("what a host shows", "documents"),
    ("what a host counts", "digits"),
    ("the page's echoes", "answers without an end"),
    ("the page's echoes", "answers with an end"),
    ("output of many hosts", "digits"),
    ("what is printed", "escapes"),
    ("a failure", "blanks"),
)
"""For each reader what it has most to do with; all others took no longer when they were tried."""


@pytest.mark.parametrize(("reader", "flood"), WORST)
def test_ten_million_bytes_in_a_line_or_in_lines_are_read_quickly(
    reader: str, flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "pass_on", lambda _: None)
    text = (FLOODS[flood] * (SIZE // len(FLOODS[flood]) + 1))[:SIZE]
    began = time.process_time()
    with suppress(MinigtsError, ValueError, LookupError, RecursionError):
        READERS[reader](text)
    assert time.process_time() - began < QUICK_S


def test_lines_come_whole_and_the_longest_in_parts() -> None:
    lines = Lines(10)
    assert [*lines.feed(b"one\ntw"), *lines.feed(b"o\n"), *lines.feed(b"x" * 25)] == [
        b"one",
        b"two",
        b"x" * 10,
        b"x" * 10,
    ]
    assert [*lines.feed(b"yz\nlast"), lines.rest(), lines.rest()] == [b"xxxxxyz", b"last", b""]


def test_a_failure_shows_the_end_of_what_was_said_and_no_more() -> None:
    shown = str(CommandFailed("ams", ["true"], 1, "a" * SIZE + "\nthe last line\n", ""))
    assert len(shown) < 100_000
    assert shown.endswith("the last line")


def test_what_printed_replies_say_is_still_read() -> None:
    said = (
        "PING 10.9.0.2 (10.9.0.2) 56(84) bytes of data.\n"
        "[1767225600.123456] 64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=4.84 ms\n"
        "[1767225600.223456] 64 bytes from ams (10.9.0.2): icmp_seq=2 ttl=64 time=5 ms (DUP!)\n"
        "\n--- 10.9.0.2 ping statistics ---\n"
        "2 packets transmitted, 2 received, +1 duplicates, +1 errors, 0% packet loss, time 1ms\n"
        "rtt min/avg/max/mdev = 4.840/4.920/5.000/0.080 ms\n"
    )
    run = ping.parse(said)
    assert (run.replies_ms, run.sent, run.loss_percent) == ((4.84, 5.0), 2, 0.0)
    assert [rtt for _, rtt in ping.series(said)["value"]] == [4.84, 5.0]


def _console(tmp_path: Path) -> Console:
    return Console(tmp_path / "console.log")


def test_what_a_kernel_says_is_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_bytes(b"before\n")
    made = _console(tmp_path)
    for word in (b"one\n", b"two\n"):
        os.write(made.descriptor, word)
        made.take()
    os.write(made.descriptor, b"three\n")
    made.close()
    made.take()  # as when its line ends after that
    assert (tmp_path / "console.log").read_bytes() == b"before\none\ntwo\nthree\n"


def test_no_kernel_can_make_its_console_larger(tmp_path: Path) -> None:
    """Nor smaller, nor take the seal off: its process has the descriptor."""
    made = _console(tmp_path)
    for size in (console.WINDOW_BYTES + 1, 1 << 31, 0):
        with pytest.raises(PermissionError):
            os.truncate(made.descriptor, size)
    with pytest.raises(PermissionError):
        os.pwrite(made.descriptor, b"x", 1 << 31)
    with pytest.raises(PermissionError):
        fcntl.fcntl(made.descriptor, fcntl.F_ADD_SEALS, 0)
    made.close()


@pytest.mark.parametrize("place", [1 << 40, 0, console.WINDOW_BYTES - 1, 7])
def test_wherever_it_puts_the_descriptor_its_console_goes_on(tmp_path: Path, place: int) -> None:
    made = _console(tmp_path)
    os.write(made.descriptor, b"before\n")
    made.take()
    os.lseek(made.descriptor, place, os.SEEK_SET)
    made.take()
    made.take()
    with suppress(PermissionError):
        os.write(made.descriptor, b"after\n")
    made.take()
    os.write(made.descriptor, b"at last\n")
    made.close()
    assert (tmp_path / "console.log").stat().st_size <= console.MOST_BYTES
    assert b"at last" in (tmp_path / "console.log").read_bytes()


def test_a_file_that_is_full_keeps_its_end(tmp_path: Path) -> None:
    made = _console(tmp_path)
    for number in range(30):
        os.write(made.descriptor, b"%03d" % number + bytes(1 << 19))
        made.take()
        assert (tmp_path / "console.log").stat().st_size <= console.MOST_BYTES
    assert os.fstat(made.descriptor).st_blocks * 512 <= 1 << 20
    made.close()
    kept = (tmp_path / "console.log").read_bytes()
    assert kept.startswith(console.MARK)
    assert b"029" in kept
    assert b"000" not in kept


@pytest.mark.parametrize("late", [b"while it is copied\n", b"before it is rewound\n"])
def test_what_a_kernel_writes_while_its_output_is_taken_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bytes
) -> None:
    made = _console(tmp_path)
    os.write(made.descriptor, bytes(console.REWIND_BYTES) + b"early\n")
    seek, read = os.lseek, os.pread

    def rewound(descriptor: int, at: int, whence: int) -> int:
        if late.startswith(b"before") and (at, whence) == (0, os.SEEK_SET):
            os.write(descriptor, late)
        return seek(descriptor, at, whence)

    def copied(descriptor: int, size: int, at: int) -> bytes:
        if late.startswith(b"while") and at == 0:
            os.write(descriptor, late)
        return read(descriptor, size, at)

    monkeypatch.setattr(os, "lseek", rewound)
    monkeypatch.setattr(os, "pread", copied)
    made.take()
    monkeypatch.undo()
    os.write(made.descriptor, b"afterwards\n")
    made.close()
    assert (tmp_path / "console.log").read_bytes().endswith(b"early\n" + late + b"afterwards\n")


def test_of_a_log_without_end_the_end_is_copied(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        log.truncate(2 << 30)  # it takes nothing, and would become two gigabytes
        log.seek(2 << 30)
        log.write(b"the last line\n")
    copy_end(tmp_path / "log", tmp_path / "copy")
    content = (tmp_path / "copy").read_bytes()
    assert content.startswith(b"[minigts has left out 2139095054 bytes before this]\n")
    assert content.endswith(b"the last line\n")
    assert len(content) < MOST_LOG_BYTES + 100


def test_a_frame_of_more_than_any_is_no_capture() -> None:
    header = bytes.fromhex("4d3cb2a1020004000000000000000000000004000100 0000")
    merged = Merged(["ams eth1", "bra eth1"])
    with pytest.raises(HostFailed, match="what bra eth1 sends is no capture: a frame of 4294967295 bytes"):
        merged.feed(1, header + b"\0" * 8 + b"\xff" * 8)


def test_an_end_that_sends_nothing_lets_the_other_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigts.lab.pcapng.MOST_HELD_BYTES", 10_000)
    header = bytes.fromhex("4d3cb2a1020004000000000000000000000004000100 0000")
    frame = bytes(8) + (1000).to_bytes(4, "little") * 2 + bytes(1000)
    merged = Merged(["ams eth1", "bra eth1"])
    merged.feed(0, header + frame * 20)
    assert merged.is_full
    with pytest.raises(HostFailed, match="bra eth1 sends no capture"):
        merged.release(everything=True)
    merged.feed(1, header)
    assert len(merged.release(everything=True)) > 20_000
    assert not merged.is_full


def test_a_relay_sends_no_record_of_gigabytes() -> None:
    with pytest.raises(ValueError, match="a record of 2147483647 bytes"):
        list(relay.Records().feed((0x7FFFFFFF).to_bytes(4)))


def test_what_a_kernel_has_died_of_is_found_in_what_it_said_since_it_was_started(tmp_path: Path) -> None:
    kept = _console(tmp_path)
    os.write(kept.descriptor, b"[ 1.0] all is well\n")
    assert kept.panic() == ""
    os.write(kept.descriptor, b"[ 2.0] Kernel panic - not syncing: Out of \x1b[2Jmemory\r\nCPU: 0\n")
    assert kept.panic() == "Out of [2Jmemory"
    kept.close()
    again = _console(tmp_path)
    assert again.panic() == ""
    again.close()
    assert again.panic() == ""


def test_of_kernels_those_are_recorded_that_have_not_ended(tmp_path: Path) -> None:
    """One that is off must not keep the others from being found."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    command_line.record(tmp_path, {"ams": os.getpid(), "bra": ended.pid})
    assert list(json.loads((tmp_path / command_line.RECORD).read_text())) == ["ams"]
