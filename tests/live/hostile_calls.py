"""The calls by which a hostile kernel might change something on this machine: by a descriptor, and by a path.

Each has arguments with which it would have an effect where it is allowed. Numbers are those of x86-64. Left out is what
reaches the caller's own table of descriptors, memory or threads alone: close, dup2, dup3, execve, mprotect, the clones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .traced_kernel import Traced

NOTHING = -1
CWD, EMPTY_PATH = -100, 0x1000
OWN, OTHER = -1, 12345
PLANTED = b"planted\0"
LONG_AGO = struct.pack("=4q", 1000, 0, 1000, 0)
LOCK = struct.Struct("=hhqqi4x")
READ_LOCK, WRITE_LOCK, UNLOCK = 0, 1, 2

By: TypeAlias = Callable[[Traced, int], int]


@dataclass(frozen=True)
class Call:
    name: str
    by: By
    """Makes the call, by a descriptor or by a path's address; returns its result."""
    undo: By | None = None
    """What takes back an effect that is not a file's."""


def plain(name: str, number: int, *arguments: int, undo: By | None = None) -> Call:
    """A call whose first argument is the descriptor or path."""
    return Call(name, lambda traced, it: traced.call(number, it, *arguments), undo)


def with_data(name: str, number: int, data: bytes, *rest: int, before: tuple[int, ...] = ()) -> Call:
    """The second argument, or the one after `before`, leads to `data`."""
    return Call(name, lambda traced, it: traced.call(number, it, *before, traced.put(0, data), *rest))


def at(name: str, number: int, *rest: int) -> Call:
    """Of a path that is empty, so that the descriptor itself is meant."""
    return Call(name, lambda traced, it: traced.call(number, it, traced.put(0, b"\0"), *rest))


def planted(name: str, number: int, *rest: int) -> Call:
    """Of a name in the directory that the descriptor is open on."""
    return Call(name, lambda traced, it: traced.call(number, it, traced.put(0, PLANTED), *rest))


def _lock(name: str, operation: int, kind: int) -> Call:
    def set_to(kind: int) -> By:
        return lambda traced, it: traced.call(72, it, operation, traced.put(0, LOCK.pack(kind, 0, 0, 0, 0)))

    return Call(name, set_to(kind), set_to(UNLOCK))


def _status_flag(name: str, flag: int) -> Call:
    def change(traced: Traced, it: int) -> int:
        had = traced.call(72, it, 3)
        return had if had < 0 else traced.call(72, it, 4, had | flag)

    def back(traced: Traced, it: int) -> int:
        return traced.call(72, it, 4, traced.call(72, it, 3) & ~flag)

    return Call(f"fcntl F_SETFL {name}", change, back)


def _on_off(name: str, number: int) -> Call:
    def set_to(value: int) -> By:
        return lambda traced, it: traced.call(16, it, number, traced.put(0, struct.pack("=i", value)))

    return Call(f"ioctl {name}", set_to(1), set_to(0))


def _attribute(name: str, number: int) -> Call:
    def change(traced: Traced, it: int) -> int:
        return traced.call(number, it, traced.put(0, b"user.planted\0"), traced.put(64, b"x"), 1, 0)

    return Call(name, change)


def _flags(name: str, number: int, value: bytes) -> Call:
    return Call(f"ioctl {name}", lambda traced, it: traced.call(16, it, number, traced.put(0, value + bytes(64))))


def _mapped(name: str, protection: int, then: int = 0) -> Call:
    """Map a page to share, write into it, and put it on the disk."""

    def change(traced: Traced, it: int) -> int:
        page = traced.call(9, 0, 4096, protection, 1, it, 0)
        if page < 0:
            return page
        raised = traced.call(10, page, 4096, 3) if protection == 1 else 0
        if raised >= 0:
            if then:
                raised = traced.call(28, page, 4096, then)
            elif protection & 2 or raised == 0:
                try:
                    traced.poke(page, traced.peek(page, 16))
                except OSError:
                    raised = -14
            traced.call(26, page, 4096, 4)
        traced.call(11, page, 4096)
        return raised

    return Call(name, change)


def _into(name: str, number: int, arguments: Callable[[Traced, int, int], tuple[int, ...]]) -> Call:
    """From a memory file of the kernel's own, which has a few bytes, into the descriptor."""

    def change(traced: Traced, it: int) -> int:
        source = traced.call(319, traced.put(0, b"source\0"), 0)
        traced.call(1, source, traced.put(0, b"planted by a kernel"), 19)
        traced.call(8, source, 0, 0)
        result = traced.call(number, *arguments(traced, source, it))
        traced.call(3, source)
        return result

    return Call(name, change)


def _by_pipe(name: str, number: int, arguments: Callable[[Traced, int, int], tuple[int, ...]]) -> Call:
    """From a pipe with a few bytes into the descriptor."""

    def change(traced: Traced, it: int) -> int:
        traced.call(293, traced.put(32, bytes(8)), 0x800)
        reader, writer = struct.unpack("=2i", traced.peek(traced.box + 32, 8))
        traced.call(1, writer, traced.put(0, b"planted by a kernel"), 19)
        result = traced.call(number, *arguments(traced, reader, it))
        traced.call(3, reader), traced.call(3, writer)
        return result

    return Call(name, change)


def _vector(name: str, number: int, *rest: int) -> Call:
    def change(traced: Traced, it: int) -> int:
        data = traced.put(64, b"planted by a kernel")
        return traced.call(number, it, traced.put(0, struct.pack("=2Q", data, 19)), 1, *rest)

    return Call(name, change)


def _message(name: str, with_descriptor: bool) -> Call:
    def change(traced: Traced, it: int) -> int:
        data = traced.put(64, b"planted by a kernel")
        vector = traced.put(128, struct.pack("=2Q", data, 19))
        control = traced.put(192, struct.pack("=QiiQ", 20, 1, 1, 1)) if with_descriptor else 0
        length = 24 if with_descriptor else 0
        header = traced.put(256, struct.pack("=QIIQQQQiI", 0, 0, 0, vector, 1, control, length, 0, 0))
        return traced.call(46, it, header, 0x4040)

    return Call(name, change)


def _watched(name: str, operation: int) -> Call:
    """The descriptor in an epoll of the kernel's own."""

    def change(traced: Traced, it: int) -> int:
        made = traced.call(291, 0)
        result = traced.call(233, made, operation, it, traced.put(0, struct.pack("=Iq", 1, 0)))
        traced.call(3, made)
        return result

    return Call(name, change)


def _option(name: str, level: int, option: int, value: bytes) -> Call:
    return Call(
        f"setsockopt {name}", lambda traced, it: traced.call(54, it, level, option, traced.put(0, value), len(value))
    )


NO_FILTER = struct.pack("=HBBI", 6, 0, 0, 0)

BY_DESCRIPTOR: tuple[Call, ...] = (
    *(plain(f"fchmod {mode:o}", 91, mode) for mode in (0, 0o300, 0o700, 0o777, 0o4755)),
    at("fchmodat2", 452, 0o777, EMPTY_PATH),
    plain("fchown to its own user", 93, OWN, OWN),
    plain("fchown to another", 93, OTHER, OTHER),
    at("fchownat", 260, OTHER, OTHER, EMPTY_PATH),
    Call("utimensat", lambda traced, it: traced.call(280, it, 0, traced.put(0, LONG_AGO), 0)),
    plain("utimensat to now", 280, 0, 0, 0),
    Call("futimesat", lambda traced, it: traced.call(261, it, 0, traced.put(0, LONG_AGO))),
    _attribute("fsetxattr", 190),
    Call("fremovexattr", lambda traced, it: traced.call(199, it, traced.put(0, b"user.kept\0"))),
    Call(
        "setxattrat",
        lambda traced, it: traced.call(
            463, it, traced.put(0, b"\0"), EMPTY_PATH, traced.put(8, b"user.planted\0"), traced.put(64, bytes(16)), 16
        ),
    ),
    at("file_setattr", 469, 0, 24, EMPTY_PATH),
    _flags("FS_IOC_SETFLAGS", 0x40086602, struct.pack("=L", 0x40)),
    _flags("FS_IOC_SETFLAGS append", 0x40086602, struct.pack("=L", 0x20)),
    _flags("FS_IOC_FSSETXATTR", 0x401C5820, struct.pack("=I", 0x80)),
    _flags("FS_IOC_SETVERSION", 0x40087602, struct.pack("=L", 7)),
    Call("ioctl FICLONE", lambda traced, it: traced.call(16, it, 0x40049409, 0)),
    _flags("FIDEDUPERANGE", 0xC0189436, bytes(24)),
    _flags("FS_IOC_ENABLE_VERITY", 0x40806685, struct.pack("=II", 1, 1)),
    _flags("FIFREEZE", 0xC0045877, b""),
    _flags("FITRIM", 0xC0185879, struct.pack("=3Q", 0, 1, 1 << 62)),
    _flags("RNDADDTOENTCNT", 0x40045201, struct.pack("=i", 8)),
    _flags("TCSETS", 0x5402, bytes(36)),
    _flags("TIOCSTI", 0x5412, b"x"),
    _flags("FIOSETOWN", 0x8901, struct.pack("=i", 1)),
    _flags("FIOCLEX", 0x5451, b""),
    _on_off("FIONBIO", 0x5421),
    _on_off("FIOASYNC", 0x5452),
    *(
        _status_flag(name, flag)
        for name, flag in {
            "O_NONBLOCK": 0o4000,
            "O_ASYNC": 0o20000,
            "O_APPEND": 0o2000,
            "O_DIRECT": 0o40000,
            "O_NOATIME": 0o1000000,
        }.items()
    ),
    plain("fcntl F_SETOWN", 72, 8, 1),
    Call("fcntl F_SETOWN_EX", lambda traced, it: traced.call(72, it, 15, traced.put(0, struct.pack("=ii", 1, 1)))),
    plain("fcntl F_SETSIG", 72, 10, 9),
    _lock("fcntl F_SETLK to read", 6, READ_LOCK),
    _lock("fcntl F_SETLK to write", 6, WRITE_LOCK),
    _lock("fcntl F_OFD_SETLK to read", 37, READ_LOCK),
    _lock("fcntl F_OFD_SETLK to write", 37, WRITE_LOCK),
    plain("fcntl F_SETLEASE", 72, 1024, READ_LOCK, undo=lambda traced, it: traced.call(72, it, 1024, UNLOCK)),
    plain("fcntl F_NOTIFY", 72, 1026, 0x8000003F),
    plain("fcntl F_ADD_SEALS", 72, 1033, 8),
    plain("fcntl F_SETPIPE_SZ", 72, 1031, 1 << 20),
    Call("fcntl F_SET_RW_HINT", lambda traced, it: traced.call(72, it, 1036, traced.put(0, struct.pack("=Q", 5)))),
    plain("flock LOCK_SH", 73, 1 | 4, undo=lambda traced, it: traced.call(73, it, 8)),
    plain("flock LOCK_EX", 73, 2 | 4, undo=lambda traced, it: traced.call(73, it, 8)),
    plain("fsync", 74),
    plain("fdatasync", 75),
    plain("syncfs", 306),
    plain("sync_file_range", 277, 0, 4096, 7),
    plain("readahead", 187, 0, 1 << 20),
    plain("fadvise64 DONTNEED", 221, 0, 0, 4),
    plain("fallocate", 285, 0, 0, 4096),
    plain("fallocate beyond the end", 285, 1, 1 << 20, 4096),
    plain("fallocate to punch a hole", 285, 3, 0, 4096),
    plain("fallocate to zero", 285, 0x10, 0, 4096),
    plain("fallocate to collapse", 285, 8, 0, 4096),
    _mapped("mmap to write", 3),
    _mapped("mmap to read, then mprotect to write", 1),
    _mapped("mmap and MADV_REMOVE", 3, 9),
    _mapped("mmap to read and MADV_PAGEOUT", 1, 21),
    with_data("write", 1, b"planted by a kernel", 19),
    with_data("pwrite64", 18, b"planted by a kernel", 19, 0),
    _vector("writev", 20),
    _vector("pwritev2 RWF_APPEND", 328, 0, 0, 0x10),
    _into("sendfile", 40, lambda traced, source, it: (it, source, traced.put(96, bytes(8)), 19)),
    _into("copy_file_range", 326, lambda traced, source, it: (source, 0, it, 0, 19, 0)),
    _by_pipe("splice", 275, lambda traced, source, it: (source, 0, it, 0, 19, 2)),
    _by_pipe("tee", 276, lambda traced, source, it: (source, it, 19, 2)),
    _vector("vmsplice", 278, 2),
    plain("lseek", 8, 5, 1),
    Call(
        "linkat", lambda traced, it: traced.call(265, it, traced.put(0, b"\0"), CWD, traced.put(8, PLANTED), EMPTY_PATH)
    ),
    Call(
        "symlinkat", lambda traced, it: traced.call(266, traced.put(0, b"/etc/passwd\0"), it, traced.put(32, PLANTED))
    ),
    planted("mkdirat", 258, 0o700),
    planted("mknodat of a pipe", 259, 0o10644, 0),
    planted("mknodat of a device", 259, 0o20666, 0x103),
    planted("openat to make a file", 257, 0o101, 0o644),
    planted("openat to make a file with a user's bit", 257, 0o101, 0o4755),
    Call("openat O_TMPFILE", lambda traced, it: traced.call(257, it, traced.put(0, b".\0"), 0o20200001, 0o600)),
    planted("unlinkat", 263, 0),
    Call("renameat", lambda traced, it: traced.call(264, it, traced.put(0, b"kept\0"), it, traced.put(32, PLANTED))),
    at("name_to_handle_at", 303, 0, 0, EMPTY_PATH),
    plain("inotify_add_watch", 254, 0, 0xFFF),
    plain("quotactl_fd", 443, 0, 0, 0),
    at("open_tree", 428, EMPTY_PATH | 1),
    at("mount_setattr", 442, EMPTY_PATH, 0, 32),
    _watched("epoll_ctl with it in an epoll", 1),
    Call("epoll_ctl on it", lambda traced, it: traced.call(233, it, 1, 0, traced.put(0, struct.pack("=Iq", 1, 0)))),
    with_data("timerfd_settime", 286, struct.pack("=4q", 0, 0, 1000, 0), 0, before=(0,)),
    with_data("signalfd4", 289, bytes(8), 8, 0),
    *(
        _option(name, 1, number, value)
        for name, number, value in (
            ("SO_SNDBUF", 7, struct.pack("=i", 4608)),
            ("SO_RCVBUFFORCE", 33, struct.pack("=i", 1 << 24)),
            ("SO_PASSCRED", 16, struct.pack("=i", 1)),
            ("SO_PEEK_OFF", 42, struct.pack("=i", 3)),
            ("SO_RCVTIMEO", 20, struct.pack("=2q", 0, 1)),
        )
    ),
    plain("bind", 49, 0, 2),
    plain("listen", 50, 5),
    plain("connect", 42, 0, 2),
    plain("ftruncate to 0", 77, 0),
    plain("ftruncate to more", 77, 1 << 33),
    with_data("recvfrom", 45, bytes(64), 64, 0x40, 0, 0),
    with_data("sendto", 44, b"planted by a kernel", 19, 0x4040, 0, 0),
    _message("sendmsg", with_descriptor=False),
    _message("sendmsg with a descriptor", with_descriptor=True),
    plain("shutdown to read", 48, 0),
    plain("shutdown to write", 48, 1),
)
"""Those that may end the kernel's own host come last."""


def _renamed(name: str, number: int, planted_first: bool = False) -> Call:
    """Of a path and the same with `.planted` at its end, which stands behind it in the box."""

    def change(traced: Traced, it: int) -> int:
        path = traced.peek(it, 3000).split(b"\0")[0]
        other = traced.put(8192, path + b".planted\0")
        return traced.call(number, other, it) if planted_first else traced.call(number, it, other)

    return Call(name, change)


def _by_path_at(name: str, number: int, *rest: int) -> Call:
    return Call(name, lambda traced, it: traced.call(number, CWD, it, *rest))


BY_PATH: tuple[Call, ...] = (
    plain("chmod", 90, 0o777),
    _by_path_at("fchmodat", 268, 0o777),
    _by_path_at("fchmodat2", 452, 0o777, 0),
    plain("chown", 92, OTHER, OTHER),
    plain("lchown", 94, OTHER, OTHER),
    _by_path_at("fchownat", 260, OTHER, OTHER, 0),
    plain("utime", 132, 0),
    plain("utimes", 235, 0),
    _by_path_at("utimensat", 280, 0, 0),
    _attribute("setxattr", 188),
    _attribute("lsetxattr", 189),
    plain("truncate", 76, 1),
    plain("unlink", 87),
    _by_path_at("unlinkat", 263, 0),
    _by_path_at("unlinkat of a directory", 263, 0x200),
    plain("rmdir", 84),
    _renamed("rename", 82),
    _renamed("rename onto it", 82, planted_first=True),
    _renamed("link", 86),
    _renamed("symlink", 88),
    plain("open to write", 2, 1),
    _by_path_at("openat to write", 257, 1, 0),
    _by_path_at("openat to empty it", 257, 0o1001, 0),
    plain("creat", 85, 0o644),
    plain("mknod", 133, 0o10644, 0),
    plain("mkdir", 83, 0o700),
    plain("statfs", 137, 0),
    plain("swapon", 167, 0),
    plain("acct", 163),
    plain("chroot", 161),
    plain("umount2", 166, 2),
)
