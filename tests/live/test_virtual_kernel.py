"""The full kernel alone on a virtual clock of its own, without a lab: what the project's patches give it.

Its root is this machine's own file system, read-only, by hostfs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minigts.machine import shell
from minigts.providers.uml.build import kernel_build

pytestmark = pytest.mark.full_kernel

POWER_OFF = f"exec {sys.executable} -ISc 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'"
SPIN = "awk 'BEGIN { while (1); }'"
"""It makes no system call."""
DRAWN = """cat /proc/sys/kernel/random/boot_id
sleep 100
head -c 999 /dev/urandom | cksum
head -c 8 /dev/hwrng 2>&- | wc -c"""
BOOT_S = 300.0


VIRTUAL = ("time-travel=inf-cpu", "time-travel-start=1000000000000000000")


def boot(directory: Path, script: str, *words: str, passing: tuple[str, ...] = VIRTUAL) -> str:
    """What a host says whose first process is this script, in virtual time unless another is asked for."""
    kernel = kernel_build.present()
    assert kernel is not None
    init = directory / "init"
    init.write_text(f"#!/bin/sh\nmount -t proc proc /proc\nexec 2>&1\n{script}\n{POWER_OFF}\n")
    init.chmod(0o755)
    argv = [
        str(kernel.directory / "linux"),
        "mem=64M",
        *("con=null", "con0=null,fd:1", "quiet"),
        *("root=none", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", f"uml_dir={directory}/"),
        *passing,
        *words,
    ]
    return shell.run(argv, timeout_s=BOOT_S, check=False).stdout.replace("\r", "")


def drawn(directory: Path, *words: str) -> list[str]:
    """The boot's id, what the kernel's generator gives later on, and how much of 8 bytes a hardware generator gives."""
    said = boot(directory, DRAWN, *words).splitlines()
    first = next(row for row, line in enumerate(said) if re.fullmatch(r"[0-9a-f-]{36}", line))
    return said[first : first + 3]


def test_a_seed_gives_the_same_random_numbers_again_and_another_one_others(tmp_path: Path) -> None:
    first, again, other = (drawn(tmp_path, f"minigts_seed={seed}") for seed in (5, 5, 6))
    assert first == again == drawn(tmp_path, "minigts_seed=5", "called=otherwise")
    assert first[2] == "0"
    assert not set(first[:2]) & set(other[:2])


def test_without_a_seed_random_numbers_are_the_machines(tmp_path: Path) -> None:
    first, other = drawn(tmp_path), drawn(tmp_path)
    assert not set(first[:2]) & set(other[:2])
    assert first[2] == "8"


@pytest.mark.parametrize("caught", ["auto", pytest.param("off", marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_a_program_that_spins_gives_way_and_goes_on(caught: str, tmp_path: Path) -> None:
    """Of its first ten seconds of processor time next to nothing passes, and of those after them each: so the time
    comes that it waits for, or that others wait for who would end it."""
    script = f"timeout 3 {SPIN} & echo before; sleep 1; echo turn; wait $!; echo ended $?; cat /proc/uptime"
    said = boot(tmp_path, script, f"seccomp={caught}")
    computes = re.search(r"awk\[\d+\] computes at 0\.(\d{9}) s: its processor time now passes for all", said)
    assert computes is not None, said
    assert int(computes[1]) < 200_000_000, "its first bursts take next to no virtual time"
    assert re.findall(r"^(before|turn|ended 124)$", said, re.MULTILINE) == ["before", "turn", "ended 124"], said
    uptime = re.search(r"^(\d+\.\d+) \d+\.\d+$", said, re.MULTILINE)
    assert uptime is not None, said
    assert 3.0 <= float(uptime[1]) < 3.3


COUNTED = 20_000_000
COMPUTES_S = 1.5
"""More than the tenth of a second after which a program was interrupted once, and less than the three of now, also
where the machine becomes half as fast between the two countings."""
ADDS = f"""{sys.executable} -ISc 'import time; began = time.monotonic(); sum(range({{numbers}}))
print("took", time.monotonic() - began)'"""
"""It makes no call between its looks at the clock."""


def test_a_program_that_computes_for_two_seconds_has_no_time_pass(tmp_path: Path) -> None:
    """So its course does not depend on how fast the machine is. Only its own two looks at the clock take time."""
    began = time.process_time()
    sum(range(COUNTED))
    numbers = int(COUNTED * COMPUTES_S / (time.process_time() - began))
    said = boot(tmp_path, f"sleep 1; {ADDS.replace('{numbers}', str(numbers))}; dmesg | grep spins")
    took = re.search(r"^took (\S+)$", said, re.MULTILINE)
    assert took is not None, said
    assert float(took[1]) < 10e-6, said
    assert "spins" not in said


CALLED = 30_000
CALLS = f"""{sys.executable} -ISc 'import os, time; began = time.monotonic()
for _ in range({CALLED:_}): {{call}}
print("took", time.monotonic() - began)'"""
"""It does nothing but call."""
ASKS = f"""{sys.executable} -ISc 'import select, time; asked, end = 0, time.monotonic() + 1
while time.monotonic() < end: asked += 1; select.select([], [], [], 0)
print("asked", asked)'"""


@pytest.mark.parametrize(("call", "own_s"), [("os.getppid()", 0.0), ("time.monotonic()", 256e-9)])
@pytest.mark.parametrize(
    ("words", "least_s"), [((), 0.020), (("minigts_call=0",), 0.020), (("minigts_call=5000",), 0.150)]
)
def test_calls_without_a_pause_take_time(
    words: tuple[str, ...], least_s: float, call: str, own_s: float, tmp_path: Path
) -> None:
    """The first 10,000 are free, each further one takes 1 us; or what the command line says, from the first one on. A
    look at the clock counts as a call, and takes its own time besides."""
    calls = CALLS.replace("{call}", call)
    took = re.search(r"^took (\S+)$", boot(tmp_path, f"sleep 1; {calls}", *words), re.MULTILINE)
    assert took is not None
    least_s += CALLED * own_s
    assert least_s <= float(took[1]) < least_s + 0.005


STARTED = 500
STARTS_FREE = 200
START_S = 0.002


def test_starts_of_programs_without_a_pause_take_time(tmp_path: Path) -> None:
    """The first 200 are free, and each further one takes 2 ms, beside what its calls take: a script that waits by
    starting a program again and again waits for a second with some 700 starts and not thousands."""
    starts = f"for _ in $(seq {STARTED}); do /bin/true; done"
    said = boot(tmp_path, f"sleep 1; cat /proc/uptime; {starts}; cat /proc/uptime; sleep 1; {starts}; cat /proc/uptime")
    first, second, third = (float(each) for each in re.findall(r"^(\d+\.\d+) \d+\.\d+$", said, re.MULTILINE))
    least_s = (STARTED - STARTS_FREE) * START_S
    assert least_s <= second - first < least_s + 0.1
    assert least_s <= third - second - 1 < least_s + 0.1, "a pause gives the free ones again"


SENT = 20_000
CALLS_FREE = SENT_FREE = 10_000
CALL_S, SENT_S = 1e-6, 10e-6
SENDS = f"""{sys.executable} -ISc 'import os, socket, time
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
read, write = os.pipe()
def flood(send, take):
    time.sleep(1); began = time.monotonic()
    for _ in range({SENT}): send(b"x"); take(1)
    print("took", time.monotonic() - began)
flood(one.send, other.recv)
flood(lambda data: os.write(one.fileno(), data), other.recv)
flood(lambda data: os.write(write, data), lambda size: os.read(read, size))'"""
"""Messages by send(2) and by write(2), and as many bytes through a pipe; each with a call that takes it away."""


def test_messages_without_a_pause_take_time(tmp_path: Path) -> None:
    """The first 10,000 are free, and each further one takes 10 us, beside what its calls take. What is written to no
    socket takes what its calls do."""
    said = boot(tmp_path, SENDS)
    sent, written, piped = (float(each) for each in re.findall(r"^took (\S+)$", said, re.MULTILINE))
    calls_s = (2 * SENT - CALLS_FREE) * CALL_S
    messages_s = (SENT - SENT_FREE) * SENT_S
    for took_s in (sent, written):
        assert calls_s + messages_s <= took_s + 0.001 < calls_s + messages_s + 0.03
    assert calls_s <= piped + 0.001 < calls_s + 0.03


CARRIER = f"""{sys.executable} -ISc '
import fcntl, os, socket, struct
flags = {{"IFF_TAP": 2, "IFF_NO_PI": 0x1000, "IFF_UP": 1}}
tap, sock = os.open("/dev/net/tun", os.O_RDWR), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def told(): return open("/sys/class/net/tap0/operstate").read().strip()
def carry(there): fcntl.ioctl(tap, 0x400454E2, struct.pack("i", there))
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"tap0", flags["IFF_TAP"] | flags["IFF_NO_PI"]))
carry(0)
fcntl.ioctl(sock, 0x8914, struct.pack("16sH22x", b"tap0", flags["IFF_UP"]))
before = told()
carry(1)
print("carrier", before, told())'"""
"""A tap loses its carrier, is set up (SIOCSIFFLAGS), and gets its carrier (TUNSETCARRIER), without a pause."""


def test_a_link_has_its_carrier_once_the_call_that_gave_it_returns(tmp_path: Path) -> None:
    """Its state is set by one of the kernel's workers, which the call only wakes."""
    said = boot(tmp_path, f"mount -t sysfs sys /sys; {CARRIER}")
    assert re.search(r"^carrier unknown up$", said, re.MULTILINE), said


def test_a_program_that_asks_until_something_is_ready_asks_thousands_of_times_and_not_millions(tmp_path: Path) -> None:
    asked = re.search(r"^asked (\d+)$", boot(tmp_path, f"sleep 1; {ASKS}"), re.MULTILINE)
    assert asked is not None
    assert 5_000 < int(asked[1]) < 20_000


TICKS = f"""{sys.executable} -ISc 'import os, time
asked, seen, last, began = 0, 0, os.times().elapsed, time.monotonic()
while seen < 50:
    now = os.times().elapsed; asked += 1
    if now != last: seen += 1; last = now
print("asked", asked, "took", time.monotonic() - began)'"""
"""It waits by times(2) until fifty ticks of 10 ms have passed, as packetdrill does for ten."""
YIELDS = f"""{sys.executable} -ISc 'import os, time; yielded, end = 0, time.monotonic() + 1
while time.monotonic() < end: os.sched_yield(); yielded += 1
print("yielded", yielded)'"""


def test_a_program_that_waits_for_ticks_asks_hundreds_of_times(tmp_path: Path) -> None:
    """It would ask half a million times, for a microsecond each; and yet it has waited as long."""
    said = re.search(r"^asked (\d+) took (\S+)$", boot(tmp_path, f"sleep 1; {TICKS}"), re.MULTILINE)
    assert said is not None
    assert 50 < int(said[1]) < 2_000
    assert 0.490 <= float(said[2]) <= 0.501


def test_a_program_that_yields_to_nobody_yields_thousands_of_times_and_not_millions(tmp_path: Path) -> None:
    said = re.search(r"^yielded (\d+)$", boot(tmp_path, f"sleep 1; {YIELDS}"), re.MULTILINE)
    assert said is not None
    assert 5_000 < int(said[1]) < 20_000


LOOKS = f"""{sys.executable} -ISc 'import ctypes, time; ask = ctypes.CDLL(None).syscall; told = (ctypes.c_int64 * 2)()
def called(): ask(228, 1, told); return told[0] * 10**9 + told[1]
def by_turns(): return [look() for look in (time.monotonic_ns, called) * 100]
times = by_turns()
print("steps", *{{after - before for before, after in zip(times, times[1:])}})
print("apart", time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns())
print("since", time.time_ns() - time.monotonic_ns())'"""
"""Looks by the vDSO, and by a call of clock_gettime(2), number 228."""


def test_looks_at_the_clock_go_on_from_each_other_whoever_tells_the_time(tmp_path: Path) -> None:
    """They take 256 ns each, and all clocks are read alike."""
    said = boot(tmp_path, f"sleep 1; {LOOKS}")
    found = dict(re.findall(r"^(steps|apart|since) (.+)$", said, re.MULTILINE))
    assert found == {"steps": "256", "apart": "-256", "since": "999999999999999744"}, said


ONLY_READS_AND_WRITES = f"""{sys.executable} -ISc 'import ctypes, os, time; forbid = ctypes.CDLL(None).prctl
time.monotonic_ns(); forbid(22, 1, 0, 0, 0)
before, after = time.monotonic_ns(), time.monotonic_ns()
os.write(1, b"took %d\\n" % (after - before)); ctypes.CDLL(None).getppid()'"""
"""seccomp(2) in its strict mode: who makes another call is killed."""


def test_a_look_at_the_clock_is_no_call(tmp_path: Path) -> None:
    said = boot(tmp_path, f"sleep 1; {ONLY_READS_AND_WRITES}; echo ended $?")
    assert re.findall(r"^(took \d+|ended \d+)$", said, re.MULTILINE) == ["took 256", "ended 137"], said


def test_a_disk_answers_in_no_time(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    copy = "dd if=/dev/zero of=/dev/ubda bs=1M count=32 conv=fsync 2>/dev/null; dd if=/dev/ubda of=/dev/null bs=1M"
    said = boot(tmp_path, f"{copy}; cat /proc/uptime", f"ubd0={disk}")
    assert "67108864 bytes" in said, said
    uptime = re.search(r"^(\d+\.\d+) \d+\.\d+$", said, re.MULTILINE)
    assert uptime is not None, said
    assert float(uptime[1]) < 0.5, said


GROUP = "/sys/fs/cgroup/small"
WRITTEN_FAST = f"""mount -t sysfs system /sys; mount -t cgroup2 groups /sys/fs/cgroup; mount -t ext4 /dev/ubda /mnt
for each in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/mnt/other bs=1M count=60; sync; sleep 0.3; done 2>/dev/null; sleep 9
echo +memory +io >/sys/fs/cgroup/cgroup.subtree_control; mkdir {GROUP}; echo 32M >{GROUP}/memory.max"""
"""After it the kernel takes the disk to be so fast that nobody who writes has to wait."""


def test_a_program_may_write_more_than_its_group_holds(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    subprocess.run(["mke2fs", "-q", "-t", "ext4", str(disk), "1G"], check=True)
    write = f"sh -c 'echo $$ >{GROUP}/cgroup.procs; exec dd if=/dev/zero of=/mnt/file bs=1M count=200'"
    said = boot(
        tmp_path, f"{WRITTEN_FAST}\n{write}; echo ended $?; cat {GROUP}/memory.events", f"ubd0={disk}", "mem=1G"
    )
    found = dict(re.findall(r"^(ended|oom_kill|max) (\d+)$", said, re.MULTILINE))
    assert (found["ended"], found["oom_kill"]) == ("0", "0"), said
    assert int(found["max"]) > 0, "it never came to its limit"
