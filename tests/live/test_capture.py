"""What passes a link, captured while it passes, with the lab's own time."""

from __future__ import annotations

import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from live.exact import EXACT_MS
from live.program import Program, until
from minigts.dataplane.round_trip import echo_ms
from minigts.foreign import user_text
from minigts.lab import Lab, capture

pytestmark = pytest.mark.virtual
PCAP = 0xA1B2C3D4
HEADER_BYTES, RECORD = 24, struct.Struct("<IIII")
US_MS = 0.001
"""What a pcap counts in, and so cuts off of each time."""


def moments_ms(pcap: bytes) -> list[float]:
    """When each frame passed."""
    assert struct.unpack_from("<I", pcap) == (PCAP,)
    found, at = [], HEADER_BYTES
    while at < len(pcap):
        seconds, micros, held, _ = RECORD.unpack_from(pcap, at)
        found.append(seconds * 1e3 + micros / 1e3)
        at += RECORD.size + held
    return found


def captured(lab: Lab, end: str, count: int) -> list[float]:
    """Of echoes over the first link, while `count` frames pass that end."""
    (where,), said, pcap = capture.points(lab, "ams-bra", [end]), bytearray(), bytearray()
    argv = capture.command(where, ["icmp"], frames=count, seconds=None, text=False)
    codes: list[int] = []

    def capturing() -> None:
        code = capture.capture(
            lab, [(where, argv)], lambda _, piece: pcap.extend(piece), lambda _, piece: said.extend(piece)
        )
        codes.append(code)

    thread = threading.Thread(target=capturing)
    thread.start()
    assert until(lambda: b"listening on" in said)
    lab.provider.run("ams", ["ping", "-c", str(count // 2), "-i", "0.5", lab.plan.host("bra").address], timeout_s=60)
    thread.join(60)
    assert codes == [0], bytes(said)
    return moments_ms(bytes(pcap))


def test_a_request_and_its_reply_lie_a_round_trip_apart_where_they_begin(lab: Lab) -> None:
    lab.provider.run("ams", ["ping", "-c", "1", lab.plan.host("bra").address], timeout_s=60)  # ARP
    first, answer, *_ = captured(lab, "ams", 4)
    assert answer - first == pytest.approx(echo_ms(lab.plan, lab.plan.path("ams", "bra")), abs=EXACT_MS + US_MS)


def test_at_the_far_end_they_follow_each_other(lab: Lab) -> None:
    request, reply, *_ = captured(lab, "bra", 4)
    assert 0 <= reply - request < EXACT_MS + US_MS


def test_both_ends_are_one_file_in_which_a_frame_takes_the_links_delay(lab: Lab, tmp_path: Path) -> None:
    program, file = Program(lab.rundir.parents[1]), tmp_path / "both.pcapng"
    words = ("capture", "--lab", lab.name, "-w", str(file), "--count", "4", "--at", "ams", "--at", "bra")
    with ThreadPoolExecutor() as beside:
        capturing_both = beside.submit(program.run, *words, "ams-bra", "icmp")
        assert until(lambda: listening(lab, "ams") and listening(lab, "bra"))
        lab.provider.run("ams", ["sleep", "1"], timeout_s=60)  # a process that there is does not listen yet
        lab.provider.run("ams", ["ping", "-c", "2", "-i", "0.5", lab.plan.host("bra").address], timeout_s=60)
        assert capturing_both.result(60).returncode == 0
    frames = sorted(frames_of(file.read_bytes()), key=lambda frame: frame[1])  # on a busy machine one may come late
    sent, arrived, replied, answered = frames[:4]
    assert [sent[0], arrived[0], replied[0], answered[0]] == ["ams", "bra", "bra", "ams"]
    round_trip_ms = echo_ms(lab.plan, lab.plan.path("ams", "bra"))
    assert (answered[1] - sent[1]) / 1e6 == pytest.approx(round_trip_ms, abs=EXACT_MS)
    assert (arrived[1] - sent[1]) / 1e6 == pytest.approx(round_trip_ms / 2, abs=EXACT_MS)
    lab.provider.put("ams", file, PurePosixPath("/root/both.pcapng"))
    read = user_text(lab.provider.run("ams", ["tcpdump", "-n", "-r", "/root/both.pcapng"], timeout_s=60).stdout)
    assert len(read.splitlines()) == 8


def listening(lab: Lab, machine: str) -> bool:
    return lab.provider.run(machine, ["pgrep", "-x", "tcpdump"], timeout_s=60, check=False).code == 0


def frames_of(pcapng: bytes) -> list[tuple[str, int]]:
    """The machine at which each frame passed, and when, in nanoseconds."""
    names: list[str] = []
    frames: list[tuple[str, int]] = []
    at = 0
    while at < len(pcapng):
        kind, length = struct.unpack_from("<II", pcapng, at)
        if kind == 1:
            (name_bytes,) = struct.unpack_from("<H", pcapng, at + 18)
            names.append(pcapng[at + 20 : at + 20 + name_bytes].decode().split()[0])
        if kind == 6:
            interface, high, low = struct.unpack_from("<III", pcapng, at + 8)
            frames.append((names[interface], high << 32 | low))
        at += length
    return frames


def test_a_container_that_is_not_there_is_refused(lab: Lab) -> None:
    program = Program(lab.rundir.parents[1])
    refused = program.run("capture", "--lab", lab.name, "-c", "--at", "ams", "ams-bra")
    assert (refused.returncode, "--at is for links only" in refused.stderr) == (2, True)
    without = program.run("capture", "--lab", lab.name, "--container", "ams")
    assert (without.returncode, "no overlay is joined" in without.stderr) == (2, True)


def test_the_verb_writes_a_pcap_and_ends_in_time(lab: Lab, tmp_path: Path) -> None:
    program = Program(lab.rundir.parents[1])
    file = tmp_path / "ams.pcap"
    words = ("capture", "--lab", lab.name, "-w", str(file), "--for", "0.2")
    said = program.run("capture", "ams-bra", "--lab", lab.name, "-w", str(file), "icmp", "--for", "0.2")
    assert said.stderr.splitlines() == ["capturing at ams eth1; ctrl-c ends it", "0 frames at ams eth1"]
    assert moments_ms(file.read_bytes()) == []
    refused = program.run(*words, "ams-bra", "no such filter")
    assert (refused.returncode, "syntax error" in refused.stderr) == (2, True)


def test_what_passes_in_the_last_second_is_captured_too(lab: Lab, tmp_path: Path) -> None:
    program, file = Program(lab.rundir.parents[1]), tmp_path / "all.pcap"
    echoes = f"setsid ping -q -i 0.1 -c 3000 {lab.plan.host('bra').address} >/dev/null 2>&1 & echo $!"
    ping = user_text(lab.provider.run("ams", ["sh", "-c", echoes], timeout_s=60).stdout).strip()
    program.succeeds("capture", "--lab", lab.name, "-w", str(file), "--for", "2", "ams-bra", "icmp")
    lab.provider.run("ams", ["kill", ping], timeout_s=60)
    found = moments_ms(file.read_bytes())
    assert found[-1] - found[0] >= 1800


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ams-lon"], "no link 'ams-lon'"),
        (["nix"], "no machine or link 'nix'"),
        (["--at", "lon", "ams-bra"], "'lon' is no end of ams-bra: ams and bra are"),
        (["--at", "bra", "ams"], "ams is a machine: only a link has ends"),
        (["-w", "/nowhere/x.pcap", "ams"], "/nowhere/x.pcap cannot be written"),
    ],
)
def test_what_cannot_be_captured_is_refused(lab: Lab, words: list[str], says: str) -> None:
    refused = Program(lab.rundir.parents[1]).run("capture", "--lab", lab.name, *words)
    assert (refused.returncode, says in refused.stderr) == (2, True), refused.stderr


def test_nothing_is_left_running_on_the_host(lab: Lab) -> None:
    assert user_text(lab.provider.run("ams", ["pgrep", "-x", "tcpdump"], timeout_s=60, check=False).stdout) == ""
