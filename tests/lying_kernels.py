"""Kernels as a clock sees them, honest ones and others: what they write to their sockets, their page and their memory.

The names and offsets are those of provision/clock/src/calendar.rs and device.rs. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ACK, START, REQUEST, WAIT = range(4)
TIME_AT, CAPABILITIES_AT, FLAGS_AT, REQUEST_AT, NOTES_AT = 16, 4096, 4100, 4104, 4224
PAGE_BYTES = NOTES_AT + 24 + 2 * 16 * 256
HELLO = b"\x00minigts agent 1\x00"
NUMBER, LONG = struct.Struct("=I"), struct.Struct("=Q")
MESSAGE, HEADER = struct.Struct("=IIQ"), struct.Struct("=III")
SET_MEM_TABLE, SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_ENABLE, KICK = 5, 8, 9, 10, 18, 35
NEEDS_REPLY = 8
OUTPUT_AT, AVAILABLE, USED, BUFFER_AT = 0x10000, 0x2000, 0x4000, 0x80000
MEMORY_BYTES = 1 << 20
STEP_NS = 1_000_000
SLEEP_NS = 1_000_000_000
PATIENCE_S = 10.0
WIRE = {
    "rate_bps": None,
    "queue_bytes": None,
    "delay_ns": 5_000_000,
    "jitter_ns": 0,
    "loss": 0,
    "seed": 1,
    **dict.fromkeys(("burst_begins", "burst_ends", "reorder", "duplicate", "corrupt", "slot_ns"), 0),
}


OF_A_KERNEL = Counter({"socket": 4, "/memfd:memory (deleted)": 2, "/memfd:calendar (deleted)": 1})
"""The files that a clock has open for a kernel of these: its calendar, line, console and port, and what they share."""


class Clock:
    """A running clock of two hosts with a link between them."""

    def __init__(self, program: Path, directory: Path, **wire: int) -> None:
        hosts = [
            {"name": name, "ports": [f"02:00:00:00:00:0{number}"]} for number, name in enumerate(("honest", "liar"))
        ]
        wires = [{"host": number, "port": 0, "wire": WIRE | wire} for number in range(2)]
        lab = {"epoch_ns": 10**18, "at_once": 2, "longest_turn_s": 2, "hosts": hosts, "links": [[[0, 0], [1, 0]]]}
        (directory / "lab").write_text(json.dumps({**lab, "wires": wires}))
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._address, self.log = str(directory / "s"), directory / "log"
        with theirs, socket.socket(socket.AF_UNIX) as listener, self.log.open("wb") as log:
            listener.bind(self._address)
            listener.listen()
            inherited = theirs.fileno(), listener.fileno()
            self.process = subprocess.Popen(
                [program, directory / "lab", *map(str, inherited)], pass_fds=inherited, stdout=log, stderr=log
            )

    def ask(self, op: str, timeout_s: float = PATIENCE_S, **what: object) -> dict[str, Any]:
        """One question and its answer. Raises TimeoutError, ConnectionError."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(self._address)
            connection.sendall(json.dumps({"op": op, **what}).encode() + b"\n")
            answer: dict[str, Any] = json.loads(connection.makefile("rb").readline())
        return answer

    def lost(self, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """What it has told its supervisor of a host that it has ended. Raises TimeoutError."""
        self.control.settimeout(timeout_s)
        told: dict[str, Any] = json.loads(self.control.recv(1 << 16))
        return told

    def own_memory_mb(self) -> float:
        """What it holds that is no file's."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

    def open_files(self) -> Counter[str]:
        """How many files of each kind it has open."""
        kinds: Counter[str] = Counter()
        for file in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has just been closed
                place = str(file.readlink())
                kinds["socket" if place.startswith("socket:") else place] += 1
        return kinds

    def end(self) -> None:
        self.control.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Device:
    """A network card or the console: its socket, and memory with its queues in it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.file = connection, os.memfd_create("memory")
        self.sent = 0
        os.ftruncate(self.file, MEMORY_BYTES)
        self.memory = mmap.mmap(self.file, MEMORY_BYTES)

    def set_up(self) -> None:
        self.say(SET_MEM_TABLE, struct.pack("=II4Q", 1, 0, 0, MEMORY_BYTES, 0, 0), [self.file])
        for queue in range(2):
            base = OUTPUT_AT * queue
            self.say(SET_VRING_NUM, struct.pack("=II", queue, 256))
            self.say(SET_VRING_BASE, struct.pack("=II", queue, 0))
            self.say(SET_VRING_ADDR, struct.pack("=II4Q", queue, 0, base, base + USED, base + AVAILABLE, 0))
            self.say(SET_VRING_ENABLE, struct.pack("=II", queue, 1))

    def say(self, request: int, payload: bytes = b"", files: Sequence[int] = (), *, hears: bool = True) -> None:
        """Send a message, and read what is answered."""
        message = HEADER.pack(request, 1 | NEEDS_REPLY, len(payload)) + payload
        socket.send_fds(self.socket, [message], files)
        if hears:
            self.socket.settimeout(PATIENCE_S)
            self.socket.recv(HEADER.size + 64)

    def chain(self, parts: Sequence[tuple[int, int, int, int]], times: int = 1) -> None:
        """Make a chain of (address, length, flags, next) available, as often as that."""
        for index, part in enumerate(parts):
            self.memory[OUTPUT_AT + 16 * index : OUTPUT_AT + 16 * (index + 1)] = struct.pack("<QIHH", *part)
        self.sent = (self.sent + times) & 0xFFFF
        self.memory[OUTPUT_AT + AVAILABLE : OUTPUT_AT + AVAILABLE + 4] = struct.pack("<HH", 0, self.sent)

    def kick(self, *, hears: bool = True) -> None:
        self.say(KICK, struct.pack("=II", 1, 0), hears=hears)

    def send(self, content: bytes) -> None:
        self.memory[BUFFER_AT : BUFFER_AT + len(content)] = content
        self.chain([(BUFFER_AT, len(content), 0, 0)])
        self.kick()


class Kernel:
    """A kernel that has been announced to the clock, has its first turn, and has greeted."""

    def __init__(self, clock: Clock, number: int) -> None:
        pairs = [socket.socketpair() for _ in range(4)]
        self.calendar, self.line = pairs[0][0], pairs[1][0]
        self.console, self.port = Device(pairs[2][0]), Device(pairs[3][0])
        order = json.dumps({"host": number, "start": 70 + number}).encode()
        socket.send_fds(clock.control, [order], [theirs.fileno() for _, theirs in pairs])
        for _, theirs in pairs:
            theirs.close()
        self.turns = 0

    def start(self) -> None:
        """Take part: the other kernel has been announced, too."""
        self.tell(START)
        self.calendar.settimeout(PATIENCE_S)
        _, files, _, _ = socket.recv_fds(self.calendar, MESSAGE.size, 4)
        self.page = mmap.mmap(files[0], PAGE_BYTES)
        self.page_file = files[0]
        self.put(NUMBER, CAPABILITIES_AT, 1)
        for device in (self.console, self.port):
            device.set_up()
        self.console.send(HELLO)

    def tell(self, op: int) -> None:
        self.calendar.sendall(MESSAGE.pack(op, 1, 0))

    def put(self, kind: struct.Struct, at: int, value: int) -> None:
        self.page[at : at + kind.size] = kind.pack(value)

    @property
    def now_ns(self) -> int:
        return int(LONG.unpack_from(self.page, TIME_AT)[0])

    def wait(self, request_ns: int) -> None:
        """End the turn, and ask for that moment."""
        self.put(NUMBER, FLAGS_AT, 1)
        self.put(LONG, REQUEST_AT, request_ns)
        self.tell(WAIT)

    def turn(self) -> None:
        """Wait for the next one."""
        self.calendar.settimeout(PATIENCE_S)
        if not self.calendar.recv(MESSAGE.size):
            raise ConnectionError
        self.turns += 1

    def note(self, time_ns: int, count: int = 1, device: int = 1, index: int = 1) -> None:
        """Something that was sent, at that time."""
        self.page[NOTES_AT + 24 : NOTES_AT + 40] = struct.pack("=QII", time_ns, device, index)
        self.put(NUMBER, NOTES_AT + 8, count)

    def is_honest(self) -> threading.Thread:
        """Ask for a moment a step ahead, again and again, from now on."""

        def go_on() -> None:
            with contextlib.suppress(OSError):
                while True:
                    self.wait(self.now_ns + STEP_NS)
                    self.turn()

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        return thread


@contextlib.contextmanager
def two(clock: Clock) -> Iterator[tuple[Kernel, Kernel]]:
    """An honest kernel, which goes on by itself, and one with its turn, which is yours."""
    honest, liar = Kernel(clock, 0), Kernel(clock, 1)
    try:
        starting = threading.Thread(target=honest.start)
        starting.start()
        liar.start()
        starting.join()
        honest.is_honest()
        yield honest, liar
    finally:
        clock.end()


def require_open_files(clock: Clock, wanted: Counter[str]) -> None:
    """It has those open, and no others; perhaps not yet, since it closes what somebody has just left."""
    deadline = time.monotonic() + PATIENCE_S
    while clock.open_files() != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    assert clock.open_files() == wanted


def require_time_goes_on(clock: Clock, honest: Kernel) -> None:
    """Somebody lets a second of the lab's time pass: it passes, and the honest kernel has its turns in it."""
    before_ns, turns = _now_ns(clock), honest.turns
    answer = clock.ask("sleep", until_ns=before_ns + SLEEP_NS, turn=0)
    assert answer["now_ns"] == before_ns + SLEEP_NS
    assert honest.turns - turns >= 0.9 * SLEEP_NS / STEP_NS


def _now_ns(clock: Clock) -> int:
    """As soon as nobody has a turn."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return int(clock.ask("now", timeout_s=2)["now_ns"])
        except TimeoutError:
            if time.monotonic() > deadline:
                raise
