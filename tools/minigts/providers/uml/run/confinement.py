"""Confines a User-Mode Linux kernel to its own files, and keeps it from everything that listens on this machine.

Root in a guest may load code into the guest's kernel, which is a process of the user's. So that process is restricted
before it starts, by means that need no privilege and that nobody can undo. Standard library only.

- Landlock (landlock(7)) allows only listed files; from its version 4 it also forbids TCP, from version 6 signals and
  abstract sockets.
- A seccomp filter (seccomp(2)) allows only the system calls and arguments that the program needs (system_calls.py).
- All capabilities but one, which only root has, are dropped.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts.providers.uml.run.system_calls import INSTRUCTION_BYTES, KERNEL, Calls, program

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of system calls for which the C library has no functions; all numbers here are those of x86-64."""
CAPSET = 126
VERSION = 1
"""Asks landlock_create_ruleset for the newest version that it supports."""
PATH_BENEATH = 1

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIRECTORY, REMOVE, MAKE_DIRECTORY, MAKE_FILE, MAKE_SOCKET = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 9
TRUNCATE = 1 << 14
FILE_RIGHTS = EXECUTE | WRITE | READ | TRUNCATE
"""The only rights that a rule for a file, not a directory, may name."""
HANDLED = {1: (1 << 13) - 1, 2: 1 << 13, 3: TRUNCATE, 5: 1 << 15}
"""The rights to files that each version of Landlock added; only rules grant any of them."""
TCP_FROM, SCOPES_FROM = 4, 6
TCP_BIND_AND_CONNECT = ABSTRACT_SOCKETS_AND_SIGNALS = 1 << 0 | 1 << 1

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 22, 47, 4
FILTER = 2
CAP_DAC_OVERRIDE = 1
"""The capability that root keeps, since its lab may run from another user's cache."""
LAST_CAPABILITY = 63


@dataclass(frozen=True)
class ConfinementRule:
    """Rights to a file, or to a directory and all below it. A rule for a path that does not exist grants nothing."""

    path: Path
    rights: int


def may_run(directory: Path) -> ConfinementRule:
    """Read and execute all in a directory."""
    return ConfinementRule(directory, READ | LIST | EXECUTE)


def may_read(path: Path) -> ConfinementRule:
    return ConfinementRule(path, READ | LIST)


def may_write(path: Path) -> ConfinementRule:
    """Read and write existing files and make new ones, but no directory, link, socket or device, and remove nothing.

    So no path there ever leads elsewhere for a process that opens it from outside.
    """
    return ConfinementRule(path, READ | LIST | WRITE | TRUNCATE | MAKE_FILE)


def may_keep_house(directory: Path) -> ConfinementRule:
    """Also make and remove files, directories and sockets, in a directory in which no other program opens files."""
    return ConfinementRule(
        directory, may_write(directory).rights | MAKE_DIRECTORY | MAKE_SOCKET | REMOVE | REMOVE_DIRECTORY
    )


def version() -> int:
    """The version of this machine's Landlock, from 1 on; 0 where it is absent or switched off."""
    return max(0, int(_libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)))


def prepare(rules: Sequence[ConfinementRule], *, calls: Calls = KERNEL) -> Callable[[], None]:
    """A function that a child of this process calls before it executes another program. It restricts that program, and
    all that it starts, to the files of `rules` and the system calls `calls`; TCP is allowed if `connect` is.

    Without Landlock the other restrictions still apply. The files of the rules are opened now, and the ruleset stays
    open as long as the function exists.
    """
    libc, ruleset, code = _libc(), _Ruleset.of(rules, version(), "connect" in calls), program(calls)
    held = _Program(len(code) // INSTRUCTION_BYTES, code)
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    capabilities = ctypes.create_string_buffer(
        struct.pack("=6I", 1 << CAP_DAC_OVERRIDE, 1 << CAP_DAC_OVERRIDE, 0, 0, 0, 0)
    )

    def enter() -> None:
        # For a plain user these calls fail, since there are no capabilities to drop.
        for capability in range(LAST_CAPABILITY + 1):
            if capability != CAP_DAC_OVERRIDE:
                libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        libc.syscall(CAPSET, header, capabilities)
        _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        if ruleset is not None:
            _check(libc.syscall(RESTRICT_SELF, ruleset.descriptor, 0))
        filtered = libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(held), 0, 0)
        if filtered != 0 and ctypes.get_errno() != errno.EINVAL:
            _check(-1)  # EINVAL means that this machine's kernel has no filters, which doctor reports

    return enter


class _Ruleset:
    """An open Landlock ruleset; it is closed with the object."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)

    @classmethod
    def of(cls, rules: Sequence[ConfinementRule], version: int, reaches_network: bool = False) -> _Ruleset | None:
        if version == 0:
            return None
        handled = sum(rights for since, rights in HANDLED.items() if since <= version)
        attributes = struct.pack(
            "=QQQ",
            handled,
            TCP_BIND_AND_CONNECT if version >= TCP_FROM and not reaches_network else 0,
            ABSTRACT_SOCKETS_AND_SIGNALS if version >= SCOPES_FROM else 0,
        )
        # An older kernel accepts fields that it does not know only if they are zero.
        descriptor = _check(_libc().syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
        ruleset = cls(descriptor)
        for rule in rules:
            ruleset._allow(rule, handled)
        return ruleset

    def _allow(self, rule: ConfinementRule, handled: int) -> None:
        try:
            path = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            rights = rule.rights & handled & (-1 if rule.path.is_dir() else FILE_RIGHTS)
            beneath = struct.pack("=Qi", rights, path)
            _check(_libc().syscall(ADD_RULE, self.descriptor, PATH_BENEATH, beneath, 0))
        finally:
            os.close(path)


class _Program(ctypes.Structure):
    """struct sock_fprog; the object keeps `code` alive."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
