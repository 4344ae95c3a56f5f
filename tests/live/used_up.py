"""How much a kernel that has been taken over uses up of what this machine's kernel counts for each user.

The kernel makes each call again and again, by a loop in its own memory, until it is refused. It holds what it has
meanwhile the user tries to do the same. It runs on a private ground (effects.py), as a user that nobody else is.

    python -m tests.live.used_up plain virtual             prints one line of JSON
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from .effects import Ground, grounds
from .traced_kernel import Traced, named, traced

LOOP = bytes.fromhex(
    "488b03"  # again: mov rax,[rbx]
    "488b7b08488b7310488b53184c8b53204c8b43284c8b4b30"  # rdi, rsi, rdx, r10, r8, r9
    "0f05"
    "48894368"  # mov [rbx+0x68],rax
    "4885c07822"  # test rax,rax; js end
    "488b4b38"  # mov rcx,[rbx+0x38]
    "48014b08"  # add [rbx+8],rcx
    "488b4b40"  # mov rcx,[rbx+0x40]
    "48014b10"  # add [rbx+0x10],rcx
    "488b4b48"  # mov rcx,[rbx+0x48]
    "48014b18"  # add [rbx+0x18],rcx
    "48ff4370"  # inc qword [rbx+0x70]
    "48ff4b78"  # dec qword [rbx+0x78]
    "75b8"  # jnz again
    "cc"  # end: int3
)
"""Makes the call at rbx, adds the steps of the first three arguments, and counts, until an error or enough of them."""
ENOUGH = 8_000_000
EPOLLS = 400
CODE_BYTES = 4096


@dataclass(frozen=True)
class UsedUp:
    what: str
    made: int
    """How many the kernel has got."""
    ended_by: str
    """The error that the next one gave; empty where it was enough."""
    limit: str
    """What this machine allows, where it says so."""
    afterwards: str
    """What the user gets then, outside of the lab."""


class Loops:
    """A traced kernel that makes calls in a loop."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._code = traced.call(9, 0, CODE_BYTES, 7, 0x22, -1, 0)
        traced.poke(self._code, LOOP)

    def many(self, number: int, *arguments: int, steps: tuple[int, ...] = (), most: int = ENOUGH) -> tuple[int, str]:
        """How often the call succeeded, and the error of the one that did not."""
        words = [number, *arguments, *[0] * (6 - len(arguments)), *steps, *[0] * (6 - len(steps)), 0, 0, most]
        place = self._traced.put(8192, struct.pack("<16Q", *(each & (2**64 - 1) for each in words)))
        self._traced.run(self._code, place)
        result, made = struct.unpack("<qQ", self._traced.peek(place + 0x68, 16))
        return made, named(result) if result < 0 else ""


PROBE = r"""
import ctypes, errno, fcntl, json, os, select, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
found = {}
def probe(name, act):
    try:
        found[name] = str([act() for _ in range(20)][-1] or "as ever")
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
def watch():
    reader, writer = os.pipe()
    select.epoll().register(reader)
def timer():
    if libc.syscall(222, 1, ctypes.create_string_buffer(struct.pack("=qii", 0, 0, 1) + bytes(64)),
                    ctypes.create_string_buffer(8)) < 0:
        raise OSError(ctypes.get_errno(), "")
def flight():
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [0])
def pipe():
    reader, writer = os.pipe()
    size = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    return f"a pipe of {size >> 10} KiB"
def signal_queue():
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
    value = ctypes.create_string_buffer(8)
    if libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) < 0:
        raise OSError(ctypes.get_errno(), "")
def process():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
for name, act in (("an epoll watch", watch), ("a timer", timer), ("a descriptor in a message", flight),
                  ("a pipe", pipe), ("a signal", signal_queue), ("a process", process)):
    probe(name, act)
print(json.dumps(found))
"""
"""What the user gets of each kind, outside of the lab."""


def as_user(uid: int) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable if uid == 0 else "/usr/bin/python3", "-I", "-c", PROBE],
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    return {str(key): str(value) for key, value in json.loads(done.stdout).items()}


Use: TypeAlias = "Callable[[Traced, Loops], tuple[int, str]]"
"""How much it got, and the error of the next."""


class Trial:
    """One kernel tries all, and gives each thing back before the next; what it cannot give back comes last."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.before = as_user(ground.uid)

    def all(self) -> list[UsedUp]:
        with traced(self._ground.kernel("a")) as held:
            loops = Loops(held)
            found = [UsedUp(what, *loops.many(*call, most=FEW), "", "") for what, call in FEW_TRIES.items()]
            found.extend(self._use(held, loops, *each) for each in TRIES)
        return found

    def _use(self, held: Traced, loops: Loops, what: str, act: Use, limit: str, probe: str) -> UsedUp:
        """What came of `act`; `probe` names what the user then tries."""
        first = _next(held)
        made, ended_by = act(held, loops)
        then = as_user(self._ground.uid)[probe]
        held.call(436, first, 0xFFFFFFFF, 0)
        if act is timers:
            _delete_timers(held, loops, made)
        afterwards = then if then == self.before[probe] else f"{then} (before: {self.before[probe]})"
        return UsedUp(what, made, ended_by, limit, afterwards)


def epoll_watches(traced: Traced, loops: Loops) -> tuple[int, str]:
    epolls = [traced.call(291, 0) for _ in range(EPOLLS)]
    begin = _next(traced)
    files, _ = loops.many(290, 0, 0)
    made, error = 0, ""
    event = traced.put(0, struct.pack("=Iq", 1, 0))
    for epoll in epolls:
        came, error = loops.many(233, epoll, 1, begin, event, steps=(0, 0, 1), most=max(files, 1))
        made += came
        if error:
            break
    return made, error


def _next(traced: Traced) -> int:
    """The descriptor that the next file gets."""
    made = traced.call(290, 0, 0)
    traced.call(3, made)
    return made


def timers(traced: Traced, loops: Loops) -> tuple[int, str]:
    event = traced.put(0, struct.pack("=qii", 0, 0, 1) + bytes(64))
    return loops.many(222, 1, event, traced.put(128, bytes(8)))


def _delete_timers(traced: Traced, loops: Loops, last_made: int) -> None:
    """But those that the kernel had before; their numbers follow each other."""
    (last,) = struct.unpack("=i", traced.peek(traced.box + 128, 4))
    loops.many(226, last - last_made + 1, steps=(1,), most=last_made)


def signals(traced: Traced, loops: Loops) -> tuple[int, str]:
    return loops.many(62, traced.call(39), 40)


def in_flight(traced: Traced, loops: Loops) -> tuple[int, str]:
    made, error = 0, ""
    for _ in range(200):
        came = traced.call(53, 1, 1 | 0x800, 0, traced.put(0, bytes(8)))
        if came < 0:
            return made, named(came)
        sender = struct.unpack("=2i", traced.peek(traced.box, 8))[0]
        data = traced.put(64, b"x")
        vector = traced.put(128, struct.pack("=2Q", data, 1))
        control = traced.put(1024, struct.pack("=Qii", 16 + 4 * 250, 1, 1) + struct.pack("=250i", *[1] * 250))
        header = traced.put(256, struct.pack("=QIIQQQQiI", 0, 0, 0, vector, 1, control, 16 + 4 * 250, 0, 0))
        came, error = loops.many(46, sender, header, 0x4040)
        made += came * 250
        if error != "EAGAIN":
            break
    return made, error


def pipes(traced: Traced, loops: Loops) -> tuple[int, str]:
    return loops.many(293, traced.put(0, bytes(8)), 0x800)


def files(traced: Traced, loops: Loops) -> tuple[int, str]:
    return loops.many(290, 0, 0)


def mappings(traced: Traced, loops: Loops) -> tuple[int, str]:
    memory = traced.call(319, traced.put(0, b"own\0"), 0)
    traced.call(77, memory, 4096)
    return loops.many(9, 0, 4096, 1, 1, memory, 0, most=200_000)


def locks(traced: Traced, loops: Loops) -> tuple[int, str]:
    count = 10_000
    memory = traced.call(319, traced.put(0, b"own\0"), 0)
    place = traced.call(9, 0, 32 * count, 3, 0x22, -1, 0)
    traced.poke(place, b"".join(struct.pack("=hhxxxxqqi4x", 1, 0, 2 * each, 1, 0) for each in range(count)))
    return loops.many(72, memory, 6, place, steps=(0, 0, 32), most=count)


def _said(path: str) -> str:
    return Path(path).read_text().split()[0]


TRIES: tuple[tuple[str, Use, str, str], ...] = (
    ("epoll watches", epoll_watches, f"{_said('/proc/sys/fs/epoll/max_user_watches')} for each user", "an epoll watch"),
    ("timers", timers, "RLIMIT_SIGPENDING", "a timer"),
    ("descriptors in messages under way", in_flight, "RLIMIT_NOFILE", "a descriptor in a message"),
    (
        "pipes",
        pipes,
        f"{_said('/proc/sys/fs/pipe-user-pages-soft')} pages for each user, then two for a pipe",
        "a pipe",
    ),
    ("open files", files, "RLIMIT_NOFILE of each process", "a process"),
    ("locks of its own files", locks, "none", "a process"),
    ("queued signals", signals, "RLIMIT_SIGPENDING", "a signal"),
    ("mappings", mappings, f"{_said('/proc/sys/vm/max_map_count')} for each process", "a process"),
)
FEW = 100
FEW_TRIES = {
    "inotify": (294, 0),
    "keys": (248, 0, 0, 0, 0, 0),
    "message queues": (240, 0, 0o102, 0o600, 0),
    "asynchronous input and output (io_setup)": (206, 1, 0),
    "io_uring": (425, 1, 0),
    "locked memory (mlock)": (149, 0x1000, 4096),
    "System V memory": (29, 0, 4096, 0o600),
    "user namespaces": (272, 0x10000000),
}


def main() -> None:
    user, time = sys.argv[1:]
    with grounds(user, time) as ground:
        sys.stdout.write(json.dumps([asdict(each) for each in Trial(ground).all()]) + "\n")


if __name__ == "__main__":
    main()
