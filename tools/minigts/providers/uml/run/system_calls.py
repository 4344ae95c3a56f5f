"""Lists of the system calls and arguments that a confined program may use, and the filter for such a list.

Calls that are not listed are refused. A filter (seccomp(2)) sees a call's registers, but not the memory that a pointer
leads to. So clone3(2), whose flags are in memory, is refused as unknown, and the C library then uses clone(2). A filter
cannot tell whose process an id means; pid namespaces and Landlock can. Numbers are those of x86-64. Standard library
only.
"""

from __future__ import annotations

import errno
import signal
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

NUMBERS = {
    **{"read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10},
    **{"munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16},
    **{"pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21, "pipe": 22, "sched_yield": 24},
    **{"mremap": 25, "msync": 26, "madvise": 28, "dup": 32, "dup2": 33, "nanosleep": 35, "getpid": 39},
    **{"socket": 41, "connect": 42, "accept": 43, "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47},
    **{"shutdown": 48, "bind": 49, "listen": 50, "getsockname": 51, "getpeername": 52, "socketpair": 53},
    **{"setsockopt": 54, "getsockopt": 55, "clone": 56, "execve": 59, "exit": 60, "wait4": 61, "kill": 62},
    **{"uname": 63, "fcntl": 72, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "getcwd": 79, "chdir": 80},
    **{"mkdir": 83, "rmdir": 84, "unlink": 87, "readlink": 89, "umask": 95, "gettimeofday": 96},
    **{"getrusage": 98, "sysinfo": 99, "times": 100, "ptrace": 101, "getuid": 102, "getgid": 104, "geteuid": 107},
    **{"getegid": 108, "getppid": 110, "getpgrp": 111, "capget": 125, "capset": 126, "sigaltstack": 131},
    **{"personality": 135, "statfs": 137, "fstatfs": 138, "prctl": 157, "arch_prctl": 158, "gettid": 186},
    **{"futex": 202, "sched_getaffinity": 204, "epoll_create": 213, "getdents64": 217, "set_tid_address": 218},
    **{"restart_syscall": 219, "timer_create": 222, "timer_settime": 223, "timer_gettime": 224},
    **{"timer_delete": 226, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231},
    **{"epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "openat": 257, "mkdirat": 258, "newfstatat": 262},
    **{"waitid": 247, "unlinkat": 263, "readlinkat": 267, "faccessat": 269, "ppoll": 271, "set_robust_list": 273},
    **{"epoll_pwait": 281, "timerfd_create": 283, "fallocate": 285, "timerfd_settime": 286, "accept4": 288},
    **{"signalfd4": 289, "eventfd2": 290, "epoll_create1": 291, "dup3": 292, "pipe2": 293, "recvmmsg": 299},
    **{"prlimit64": 302, "sendmmsg": 307, "seccomp": 317, "getrandom": 318, "memfd_create": 319, "execveat": 322},
    **{"statx": 332, "rseq": 334, "close_range": 436, "faccessat2": 439},
}
OLD = 335
"""From this number on a refused call is reported as unknown, and the C library does without it; older calls are
refused with EPERM."""
ALL = 0xFFFFFFFF


@dataclass(frozen=True)
class Argument:
    """A condition on the argument at `index`, counted from 0: its lower 32 bits under `mask` are one of `values`.

    The machine's kernel uses only these bits of an int. With `whole` the upper 32 bits must be 0, too, for a pointer.
    """

    index: int
    values: tuple[int, ...]
    mask: int = ALL
    whole: bool = False


def is_one_of(index: int, *values: int) -> Argument:
    return Argument(index, values)


def has_none_of(index: int, bits: int) -> Argument:
    return Argument(index, (0,), bits)


def has_all_of(index: int, bits: int) -> Argument:
    return Argument(index, (bits,), bits)


def is_null(index: int) -> Argument:
    return Argument(index, (0,), whole=True)


Arguments: TypeAlias = "tuple[Argument, ...]"
"""Conditions on a call's arguments, all of which must hold; empty for any arguments."""
Calls: TypeAlias = Mapping[str, "tuple[Arguments, ...]"]
"""For each call's name the alternatives for its arguments, one of which must hold."""


def plain(*names: str) -> Calls:
    """Allow these calls with any arguments."""
    return dict.fromkeys((each for name in names for each in name.split()), ((),))


def when(*arguments: Argument) -> tuple[Arguments]:
    """Allow a call if all these conditions hold."""
    return (arguments,)


AF_UNIX, STREAM, SEQPACKET, TYPE = 1, 1, 5, 0xF
"""Kinds of sockets whose sender cannot name the receiver."""
CLONE_VM, CLONE_THREAD = 0x100, 0x10000
OF_A_CLONE = (
    0xFF | 0x100 | 0x200 | 0x400 | 0x800 | 0x4000 | 0x10000 | 0x40000 | 0x80000 | 0x100000 | 0x200000 | 0x1000000
)
"""CLONE_… of clone(2) and the signal at the end: VM, FS, FILES, SIGHAND, VFORK, THREAD, SYSVSEM, SETTLS, PARENT_SETTID,
CHILD_CLEARTID, CHILD_SETTID. This excludes new namespaces, siblings, tracers and pidfds."""
OF_A_FORK = 0x200000 | 0x1000000 | signal.SIGCHLD
"""What the C library's fork(3) asks clone(2) for: CHILD_CLEARTID, CHILD_SETTID and the signal at the end."""
SET_ID_BITS = 0o6000
NEGATIVE = 1 << 31
"""The sign bit: a process id below 0 means a group, or every process (kill(2))."""
CANCEL = 32
"""The signal by which the C library ends a thread (pthread_cancel(3))."""
GET, PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 0x3001, 1, 15, 36, 38
F_GET_AND_SET = (1, 2, 3, 4, 5, 6)
"""F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK and F_SETLK of fcntl(2)."""
F_SETOWN, F_SETSIG, F_DUPFD, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS = 8, 10, 0, 1030, 1033, 1034
OF_A_TRACER = (0, 1, 2, 3, 4, 6, 7, 8, 12, 13, 14, 15, 24, 31, 32, 0x4200, 0x4202, 0x4204, 0x4205)
"""PTRACE_… of ptrace(2): TRACEME, PEEKTEXT, PEEKDATA, PEEKUSER, POKETEXT, POKEUSER, CONT, KILL, GETREGS, SETREGS,
GETFPREGS, SETFPREGS, SYSCALL, SYSEMU, SYSEMU_SINGLESTEP, SETOPTIONS, GETSIGINFO, GETREGSET, SETREGSET. ATTACH and SEIZE
are missing, so that a kernel can trace only its own children."""
NO_RANDOMNESS, ASKED = 0x0040000, 0xFFFFFFFF
"""ADDR_NO_RANDOMIZE of personality(2), and the value that queries the present personality."""
TCGETS, TIOCGWINSZ, FIONBIO, FIOCLEX, FIONREAD, SIOCATMARK = 0x5401, 0x5413, 0x5421, 0x5451, 0x541B, 0x8905

SET_MODE_FILTER, TSYNC, NEW_LISTENER = 1, 1, 8
"""An operation of seccomp(2), and its flags."""
NOTIF_RECV, NOTIF_SEND, NOTIF_ADDFD, NOTIF_SET_FLAGS = 0xC0502100, 0xC0182101, 0x40182103, 0x40082104
"""SECCOMP_IOCTL_… of seccomp_unotify(2), by which a kernel learns that a program of its guest has stopped, and
answers. A listener concerns only processes that the kernel has started."""

OF_ANY_PROGRAM: Calls = {
    **plain("read write close fstat poll lseek mmap mprotect munmap brk mremap madvise pread64 pwrite64 readv writev"),
    **plain("rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall exit exit_group futex sched_yield"),
    **plain("set_tid_address set_robust_list rseq getpid gettid getppid getuid getgid geteuid getegid uname getcwd"),
    **plain("nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday getrandom sysinfo getrusage times"),
    **plain("access faccessat faccessat2 newfstatat statx readlink readlinkat getdents64 statfs fstatfs dup dup2 dup3"),
    **plain("epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait ppoll eventfd2 pipe pipe2 close_range execve"),
    **plain("sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown"),
    "openat": when(has_none_of(3, SET_ID_BITS)),
    "ioctl": when(is_one_of(1, TCGETS, TIOCGWINSZ, FIONBIO, FIOCLEX)),
    "fcntl": when(is_one_of(1, *F_GET_AND_SET, F_DUPFD, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS)),
    "arch_prctl": when(is_one_of(0, 0x1001, 0x1002, 0x1003, 0x1004, GET)),
    "prlimit64": when(is_one_of(0, 0), is_null(2)),
    "sched_getaffinity": when(is_one_of(0, 0)),
    "prctl": when(is_one_of(0, PR_SET_NAME, PR_SET_NO_NEW_PRIVS)),
    "socketpair": when(is_one_of(0, AF_UNIX), Argument(1, (STREAM, SEQPACKET), TYPE)),
}
KERNEL: Calls = {
    **OF_ANY_PROGRAM,
    **plain("msync wait4 chdir fsync fdatasync ftruncate rmdir unlink getpgrp umask fallocate signalfd4"),
    **plain("memfd_create execveat timer_create timer_settime timer_gettime timer_delete waitid"),
    "clone": when(has_none_of(0, ALL ^ OF_A_CLONE)),
    "ioctl": when(
        is_one_of(1, *(TCGETS, TIOCGWINSZ, FIONBIO, FIOCLEX), *(NOTIF_RECV, NOTIF_SEND, NOTIF_ADDFD, NOTIF_SET_FLAGS))
    ),
    "kill": when(
        has_none_of(0, NEGATIVE),
        is_one_of(
            1, 0, *(signal.SIGKILL, signal.SIGTERM, signal.SIGCONT, signal.SIGSTOP, signal.SIGALRM, signal.SIGIO)
        ),
    ),
    "tgkill": when(is_one_of(2, CANCEL)),
    "fcntl": (
        *when(is_one_of(1, *F_GET_AND_SET, F_DUPFD, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS, F_SETOWN)),
        *when(is_one_of(1, F_SETSIG), is_one_of(2, 0, signal.SIGIO)),
    ),
    "prctl": (
        *when(is_one_of(0, PR_SET_NAME, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER)),
        *when(is_one_of(0, PR_SET_PDEATHSIG), is_one_of(1, signal.SIGKILL)),
    ),
    "ptrace": when(is_one_of(0, *OF_A_TRACER)),
    "seccomp": when(is_one_of(0, SET_MODE_FILTER), is_one_of(1, 0, TSYNC, NEW_LISTENER)),
    "personality": when(is_one_of(0, 0, NO_RANDOMNESS, ASKED)),
    "mkdir": when(has_none_of(1, SET_ID_BITS)),
}
"""A User-Mode Linux kernel and all that it starts: the stubs that run its guest's programs, and helpers.

fchmod(2), fchown(2), futimens(3), fsetxattr(2) and the like are missing: they need no descriptor that was opened for
writing, so by them a kernel would change the image and the program of all labs.

A kernel tries to end by kill(getpid(), SIGABRT) until that is refused, and then calls exit(3). The signal is refused
here, since it would never reach the first process of a pid namespace.
"""
CLOCK: Calls = {
    **OF_ANY_PROGRAM,
    **plain("accept4 ftruncate memfd_create timerfd_create timerfd_settime getsockopt setsockopt"),
    "clone": (
        *when(has_all_of(0, CLONE_VM | CLONE_THREAD), has_none_of(0, ALL ^ OF_A_CLONE)),
        *when(is_one_of(0, OF_A_FORK)),
    ),
    "prctl": (
        *when(is_one_of(0, PR_SET_NAME, PR_SET_NO_NEW_PRIVS)),
        *when(is_one_of(0, PR_SET_PDEATHSIG), is_one_of(1, signal.SIGKILL)),
    ),
}
"""The clock of virtual time, which starts threads, and no processes but the clock of a lab that is forked."""
FILTER: Calls = {
    **{name: arguments for name, arguments in CLOCK.items() if name not in ("execve", "openat", "socketpair")},
    "clone": when(has_all_of(0, CLONE_VM | CLONE_THREAD), has_none_of(0, ALL ^ OF_A_CLONE)),
    "prctl": OF_ANY_PROGRAM["prctl"],
}
"""The filter of frames before a way out, which runs already and opens no further files."""
STACK: Calls = {
    **OF_ANY_PROGRAM,
    **plain("socket connect bind listen accept4 getsockname getpeername setsockopt getsockopt mkdir unlink umask"),
    **plain("accept wait4 capget capset timerfd_create timerfd_settime"),
    "clone": when(has_none_of(0, ALL ^ OF_A_CLONE)),
    "seccomp": when(is_one_of(0, 0, 1, 2, 3), is_one_of(1, 0, 1)),
    "ioctl": when(is_one_of(1, TCGETS, TIOCGWINSZ, FIONBIO, FIOCLEX, FIONREAD, SIOCATMARK)),
}
"""slirp4netns behind a way out: it may make every kind of socket that a plain user may, and starts one process."""

ARCHITECTURE = 0xC000003E
RETURN, LOAD, AND, JUMP, IF_EQUAL, IF_FROM = 0x06, 0x20, 0x54, 0x05, 0x15, 0x35
"""Instructions of classic BPF, as struct sock_filter has them: code, jumps if true and false, value."""
ALLOW, FAIL_WITH = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
"""Offsets in struct seccomp_data. The lower half of each argument comes first."""
INSTRUCTION_BYTES = 8
Instruction: TypeAlias = "tuple[int, int, int, int]"
REFUSE = [(RETURN, 0, 0, FAIL_WITH | errno.EPERM)]
IS_UNKNOWN = [(RETURN, 0, 0, FAIL_WITH | errno.ENOSYS)]


def program(calls: Calls) -> bytes:
    """The filter for a list, as an array of struct sock_filter: a tree of comparisons of the call's number."""
    instructions = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (IF_EQUAL, 1, 0, ARCHITECTURE),
        *IS_UNKNOWN,
        (LOAD, 0, 0, NUMBER_AT),
        *_tree(_ranges(calls)),
    ]
    return b"".join(struct.pack("=HBBI", *each) for each in instructions)


def _ranges(calls: Calls) -> list[tuple[int, Sequence[Instruction]]]:
    """The instructions for each range of numbers, by the range's first number."""
    done = {0: REFUSE, OLD: IS_UNKNOWN}
    by_number = {NUMBERS[name]: _checks(either) for name, either in calls.items()}
    for number in by_number:
        done.setdefault(number + 1, REFUSE if number + 1 < OLD else IS_UNKNOWN)
    ordered = sorted({**done, **by_number}.items())
    return [each for before, each in zip([(-1, None), *ordered], ordered, strict=False) if each[1] != before[1]]


def _tree(ranges: Sequence[tuple[int, Sequence[Instruction]]]) -> list[Instruction]:
    if len(ranges) == 1:
        return list(ranges[0][1])
    half = len(ranges) // 2
    below, above = _tree(ranges[:half]), _tree(ranges[half:])
    if len(below) < 1 << 8:
        return [(IF_FROM, len(below), 0, ranges[half][0]), *below, *above]
    return [(IF_FROM, 0, 1, ranges[half][0]), (JUMP, 0, 0, len(below)), *below, *above]


def _checks(either: Sequence[Arguments]) -> list[Instruction]:
    if () in either:
        return [(RETURN, 0, 0, ALLOW)]
    return [*(each for arguments in either for each in _allowed_if(arguments)), *REFUSE]


def _allowed_if(arguments: Arguments) -> list[Instruction]:
    """Instructions that allow a call if all conditions hold, and otherwise continue after themselves."""
    done: list[Instruction] = [(RETURN, 0, 0, ALLOW)]
    for argument in reversed(arguments):
        lower, values = ARGUMENTS_AT + 8 * argument.index, argument.values
        matches = [(IF_EQUAL, left, 0, value) for left, value in zip(range(len(values), 0, -1), values, strict=True)]
        masked = [] if argument.mask == ALL else [(AND, 0, 0, argument.mask)]
        done = [(LOAD, 0, 0, lower), *masked, *matches, (JUMP, 0, 0, len(done)), *done]
        if argument.whole:
            done = [(LOAD, 0, 0, lower + 4), (IF_EQUAL, 1, 0, 0), (JUMP, 0, 0, len(done)), *done]
    return done
