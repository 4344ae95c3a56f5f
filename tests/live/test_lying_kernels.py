"""A kernel that does what none does is ended and named, and the others go on. The clock is the one that labs have."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lying_kernels as lying
from live.conftest import MakeLab, quiet
from lying_kernels import BUFFER_AT, LONG, START, TIME_AT, WAIT, Clock, Kernel
from minigts.errors import HostFailed
from minigts.lab import Lab, lifecycle
from minigts.providers.agent import ended, lab_processes, protocol
from minigts.providers.uml.build import clock_build as clocks
from minigts.providers.uml.clock.client import ClockClient
from minigts.providers.uml.clock.process import SOCKET
from minigts.providers.uml.run import command_line
from minigts.providers.uml.run.supervisor import Launch
from minigts.providers.uml.virtual import VirtualUmlProvider

pytestmark = [pytest.mark.virtual, pytest.mark.nightly]
MOST_MB = 64.0
END_OF_TIME = 2**64 - 1
CHAIN = """\
name: chain3
defaults: {link: {rate: 50mbit, rtt: 20ms}}
hosts: {ams: , bra: , lju: }
links:
  - {ends: [ams, bra]}
  - {ends: [bra, lju]}
"""


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(clocks.ensure(quiet).program, tmp_path)


def test_a_clock_that_does_not_know_a_word_is_another_versions(clock: Clock, tmp_path: Path) -> None:
    (tmp_path / SOCKET).symlink_to("s")
    try:
        with (
            ClockClient(tmp_path) as client,
            pytest.raises(HostFailed, match="another version's, without no_such_word"),
        ):
            client.ask("no_such_word", host=1)
    finally:
        clock.end()


def a_byte_on_the_calendar(liar: Kernel) -> None:
    liar.calendar.sendall(b"x")


def a_message_that_is_none(liar: Kernel) -> None:
    liar.tell(77)


def a_second_start(liar: Kernel) -> None:
    liar.tell(START)


def the_end_of_a_turn_that_it_has_not(liar: Kernel) -> None:
    liar.wait(liar.now_ns + 10**15)
    liar.tell(WAIT)


def five_bytes_on_a_port(liar: Kernel) -> None:
    liar.port.socket.sendall(b"xxxxx")


def questions_whose_answers_it_does_not_read(liar: Kernel) -> None:
    for _ in range(100_000):
        liar.port.say(1, hears=False)


def memory_that_it_takes_away(liar: Kernel) -> None:
    liar.port.chain([(BUFFER_AT, 100, 0, 0)])
    os.ftruncate(liar.port.file, 4096)
    liar.port.kick()


def memory_that_is_a_disks(liar: Kernel) -> None:
    with Path(__file__).open("rb") as file:
        liar.port.say(lying.SET_MEM_TABLE, struct.pack("=II4Q", 1, 0, 0, 4096, 0, 0), [file.fileno()])


def memory_that_is_a_device(liar: Kernel) -> None:
    with Path("/dev/zero").open("rb") as file:
        liar.port.say(lying.SET_MEM_TABLE, struct.pack("=II4Q", 1, 0, 0, 4096, 0, 0), [file.fileno()])


def memory_beyond_any_hosts(liar: Kernel) -> None:
    os.ftruncate(liar.port.file, 1 << 46)
    liar.port.say(lying.SET_MEM_TABLE, struct.pack("=II4Q", 1, 0, 0, 1 << 46, 0, 0), [liar.port.file])


def more_descriptors_than_fit(liar: Kernel) -> None:
    liar.port.say(lying.SET_MEM_TABLE, struct.pack("=II4Q", 1, 0, 0, 4096, 0, 0), [liar.port.file] * 200)


def output_for_which_it_does_not_wait(liar: Kernel) -> None:
    frame = protocol.Frame(1, protocol.STDOUT, bytes(protocol.CHUNK)).encode()
    liar.console.memory[BUFFER_AT : BUFFER_AT + len(frame)] = frame
    for _ in range(60):  # 240 pieces, which fit into the queue even if the clock has taken none yet
        liar.console.chain([(BUFFER_AT, len(frame), 0, 0)], times=4)
        liar.console.kick(hears=False)


def a_frame_of_twenty_megabytes(liar: Kernel) -> None:
    liar.port.chain([*((0, 1 << 20, 1, index + 1) for index in range(19)), (0, 1 << 20, 0, 0)])
    liar.port.kick()


def a_frame_without_a_header(liar: Kernel) -> None:
    liar.port.send(bytes(12 + 13))


def a_chain_that_leads_back(liar: Kernel) -> None:
    liar.port.chain([(BUFFER_AT, 1000, 1, 1), (BUFFER_AT, 1000, 1, 0)])
    liar.port.kick()


def a_head_of_four_gigabytes_on_its_console(liar: Kernel) -> None:
    liar.console.send(protocol.HEADER.pack(1, protocol.STDOUT, 0xFFFFFFFF))


def a_moment_that_has_passed(liar: Kernel) -> None:
    liar.wait(liar.now_ns + 1000)
    liar.turn()
    liar.wait(liar.now_ns - 1)


def a_time_of_its_own_that_goes_back(liar: Kernel) -> None:
    liar.wait(liar.now_ns + 1000)
    liar.turn()
    liar.put(LONG, TIME_AT, 1)
    liar.wait(liar.now_ns + 1000)


def the_end_of_time(liar: Kernel) -> None:
    liar.put(LONG, TIME_AT, END_OF_TIME)
    liar.wait(END_OF_TIME)


def a_frame_at_the_end_of_time(liar: Kernel) -> None:
    liar.port.chain([(BUFFER_AT, 100, 0, 0)])
    liar.note(END_OF_TIME - 6_000_000)
    liar.wait(liar.now_ns + 1000)


def a_frame_of_a_port_that_it_has_not(liar: Kernel) -> None:
    liar.note(liar.now_ns, device=77)
    liar.wait(liar.now_ns + 1000)


def more_notes_than_there_is_room_for(liar: Kernel) -> None:
    liar.note(liar.now_ns, count=100_000)
    liar.wait(liar.now_ns + 1000)


def this_moment_again_and_again(liar: Kernel) -> None:
    while True:
        liar.wait(liar.now_ns)
        liar.turn()


def messages_without_a_turn(liar: Kernel) -> None:
    liar.wait(liar.now_ns + 10**15)
    while True:
        liar.tell(0)


def silence_in_its_turn(liar: Kernel) -> None:
    """The clock has been told to bear it for two seconds."""


LIES: dict[Callable[[Kernel], None], str] = {
    a_byte_on_the_calendar: "it sent a part of a message",
    a_message_that_is_none: "it sent what is no message",
    a_second_start: "it reported that it starts, and has started already",
    the_end_of_a_turn_that_it_has_not: "it ended a turn that it had not",
    five_bytes_on_a_port: "it sent a part of a message",
    questions_whose_answers_it_does_not_read: "it does not read what it is told",
    memory_that_it_takes_away: "it has taken its memory away",
    memory_that_is_a_disks: "its memory is no file in this machine's memory",
    memory_that_is_a_device: "its memory is no file in this machine's memory",
    memory_beyond_any_hosts: "it told of 70368744177664 bytes of memory",
    more_descriptors_than_fit: "it sent more than 8 descriptors at once",
    output_for_which_it_does_not_wait: "it does not wait until what it has put out is read",
    a_frame_of_twenty_megabytes: "it sent more than 65557 bytes at once",
    a_frame_without_a_header: "it sent a frame of 13 bytes",
    a_chain_that_leads_back: "it sent more than 65557 bytes at once",
    a_head_of_four_gigabytes_on_its_console: "it began a frame of 4294967295 bytes",
    a_moment_that_has_passed: "it asked for a time that has passed, by 1 ns",
    a_time_of_its_own_that_goes_back: "its time went back",
    the_end_of_time: "it went further than it might",
    a_frame_at_the_end_of_time: "it noted a frame for a time that is not in its turn",
    a_frame_of_a_port_that_it_has_not: "it noted a frame of a port that it has not, number 77",
    more_notes_than_there_is_room_for: "it noted 100000 frames",
    this_moment_again_and_again: "it took 10000 turns",
    messages_without_a_turn: "it sends message after message",
    silence_in_its_turn: "it has not ended its turn for 2 s",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_who_lies_is_ended_and_named_and_the_other_goes_on(lie: Callable[[Kernel], None], clock: Clock) -> None:
    with lying.two(clock) as (honest, liar):
        without_it = clock.open_files() - lying.OF_A_KERNEL
        with contextlib.suppress(OSError):  # the clock closes its end
            lie(liar)
        lost = clock.lost()
        assert (lost["host"], lost["start"]) == (1, 71)
        assert lost["why"].startswith(LIES[lie])
        assert [host["state"] for host in clock.ask("hosts")["hosts"]][1] == "absent"
        assert clock.ask("hosts")["hosts"][1]["lost"] == lost["why"]
        lying.require_time_goes_on(clock, honest)
        assert clock.own_memory_mb() < MOST_MB
        lying.require_open_files(clock, without_it)


COMPUTES = "while True: pass"
GETS_LITTLE = "import time\nwhile True:\n    time.sleep(0.2)\n    sum(range(100_000))"
"""As a kernel on a machine where much else computes."""


@pytest.mark.parametrize(("works", "lasts"), [(COMPUTES, False), (GETS_LITTLE, True)], ids=["computes", "gets little"])
def test_a_turn_counts_by_the_processor_time_of_the_kernels_process(works: str, lasts: bool, clock: Clock) -> None:
    """The clock has been told to bear two seconds of a processor, and two seconds without any."""
    with subprocess.Popen([sys.executable, "-ISc", works]) as process, lying.two(clock) as (honest, liar):
        try:
            told = json.dumps({"host": 1, "start": 71, "process": process.pid})
            clock.control.send(told.encode())
            if lasts:
                time.sleep(8)
                assert [host["state"] for host in clock.ask("hosts")["hosts"]][1] == "running"
                liar.is_honest()
            else:
                # Twenty times as long by this machine's clock it may last at most.
                assert clock.lost(60)["why"] == "it has not ended its turn in 2 s of a processor"
            lying.require_time_goes_on(clock, honest)
        finally:
            process.kill()


def test_its_page_cannot_be_made_shorter(clock: Clock) -> None:
    with lying.two(clock) as (honest, liar):
        with pytest.raises(PermissionError):
            os.ftruncate(liar.page_file, 0)
        liar.is_honest()
        lying.require_time_goes_on(clock, honest)


def test_frames_under_way_have_a_bound_and_are_dropped_and_counted_beyond(tmp_path: Path) -> None:
    """256 MiB on links without a rate: 4,100 frames of 65,000 bytes; a minute long, so that none arrives."""
    clock = Clock(clocks.ensure(quiet).program, tmp_path, delay_ns=60_000_000_000)
    with lying.two(clock) as (_, liar):
        for _ in range(50):
            liar.port.chain([(BUFFER_AT, 65_000, 0, 0)], times=100)
            liar.port.kick()
        liar.is_honest()
        assert clock.own_memory_mb() < 256 + MOST_MB
        wires = clock.ask("wires")["wires"]
        sent = next(one for one in wires if one["host"] == 1)
        assert sent["frames"] == 5000
        assert 4000 < sent["frames"] - sent["overrun"] < 4200
        assert "no more of what it sends is kept under way" in clock.log.read_text()


def test_output_that_grows_while_it_is_read_ends(clock: Clock) -> None:
    """The queue is filled again and again while the clock empties it: it takes what a queue holds, and answers."""
    with lying.two(clock) as (honest, liar):
        stop = threading.Event()

        def fill() -> None:
            while not stop.is_set():
                liar.port.chain([(BUFFER_AT, 100, 0, 0)], times=64)

        filling = threading.Thread(target=fill)
        filling.start()
        for _ in range(20):
            liar.port.kick()
        stop.set()
        filling.join()
        liar.is_honest()
        lying.require_time_goes_on(clock, honest)


def test_a_line_that_nobody_reads_holds_up_its_own_host_alone(clock: Clock) -> None:
    frame = protocol.Frame(1, protocol.STDOUT, bytes(protocol.CHUNK)).encode()
    with lying.two(clock) as (honest, liar):
        liar.console.socket.settimeout(lying.PATIENCE_S)
        for _ in range(1000):
            if clock.ask("hosts")["hosts"][1]["state"] == "absent":
                break
            liar.console.memory[BUFFER_AT : BUFFER_AT + len(frame)] = frame
            liar.console.chain([(BUFFER_AT, len(frame), 0, 0)])
            try:
                liar.console.kick()
            except OSError:
                break
        assert clock.lost()["why"] == "nobody has read its control line for 2 s"
        lying.require_time_goes_on(clock, honest)


FAKE = """
import os, socket, struct, sys, time
line = int(sys.argv[1])
own = sorted(n for n in map(int, os.listdir("/proc/self/fd")) if n > 2 and n != line and n < 1000)
at = "/proc/self/fd/{}".format
sockets = [n for n in own if os.path.exists(at(n)) and os.readlink(at(n)).startswith("socket:")]
calendar = socket.socket(fileno=sockets[0])
calendar.sendall(struct.pack("=IIQ", 1, 1, 0))
_, files, _, _ = socket.recv_fds(calendar, 16, 4)
for at, value in ((4096, 1), (4100, 1), (4104, 0), (4108, 0)):
    os.pwrite(files[0], struct.pack("=I", value), at)
calendar.sendall(struct.pack("=IIQ", 3, 2, 0))
time.sleep(600)
"""
"""In place of a kernel: it reports, and ends its first turn with a request for the beginning of time."""


def test_a_lab_goes_on_without_a_host_whose_kernel_lies(make_lab: MakeLab) -> None:
    lab = make_lab(CHAIN, "liar")
    provider = lab.provider
    assert isinstance(provider, VirtualUmlProvider)
    first, second, liar = (host.name for host in lab.plan.hosts)
    before_s = provider.now_s()
    launch = Launch.read(lab.rundir / lab_processes.LAUNCH)
    provider._tell_supervisor(dataclasses.replace(launch, instead=(sys.executable, "-I", "-c", FAKE)))
    command_line.have_restarted(lab.rundir, liar)
    command_line.end(lab.rundir, liar)
    _await(lambda: ended.log(lab.rundir, liar).exists())
    says = f"{liar} was ended by the clock: it asked for a time that has passed, by [0-9]+ ns"
    with pytest.raises(HostFailed, match=f"host {liar} is not running: {says}; minigts restart {liar} starts it again"):
        provider.run(liar, ["true"], timeout_s=10)
    _reach(lab, first, second)
    states = lab.state_of_hosts()
    assert [states[first], states[second]] == ["answers"] * 2
    assert "was ended by the clock" in states[liar]
    assert "was ended by the clock" in provider.logs(liar)[ended.LOG].read_text()
    provider._tell_supervisor(launch)
    lifecycle.restart(lab, liar)
    assert not ended.log(lab.rundir, liar).exists()
    _reach(lab, first, liar)
    assert provider.now_s() > before_s


def _reach(lab: Lab, source: str, target: str) -> None:
    lab.provider.run(source, ["ping", "-n", "-c", "3", lab.plan.host(target).address], timeout_s=60)


def _await(what: Callable[[], bool], patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)
