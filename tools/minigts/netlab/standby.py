"""A process that has loaded what netlab's programs need, and does what each is asked for in a child of its own.

To load it takes longer than most commands, and netlab's `validate` runs dozens. A message to its socket is a folder, a
program's name and its words, with a NUL between them and the program's input, output and errors; the answer is the
exit code. The child ends with whoever has asked.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from minigts.machine import shell

LONGEST = 1 << 20
"""The most bytes of a message; more than Linux takes in one."""
Program = Callable[[str, Sequence[str]], int]
"""What a program of that name does with these words; its exit code."""


class Standby:
    def __init__(self, address: Path) -> None:
        self._asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.open(address.parent, os.O_PATH)
        self._asked.bind(f"/proc/self/fd/{folder}/{address.name}")  # a path of any length
        os.close(folder)
        self._children: dict[socket.socket, int] = {}

    def serve(self, process: subprocess.Popen[bytes], does: Program) -> int:
        """Answer until that process has ended; its exit code. This process may have one thread only. Until it listens,
        and afterwards, programs load all by themselves."""
        importlib.import_module("minigts.netlab.labs")
        gc.freeze()  # else the first collection in each child would copy every page
        self._asked.listen(128)
        ended = os.pidfd_open(process.pid)
        try:
            while True:
                watched: list[int | socket.socket] = [ended, self._asked, *self._children]
                ready, _, _ = select.select(watched, [], [])
                for connection in self._children.keys() & {*ready}:
                    self._end(connection)
                if self._asked in ready:
                    self._begin(does)
                elif ended in ready:
                    return process.wait()
        finally:
            self._asked.close()
            os.close(ended)
            for connection in [*self._children]:
                self._end(connection)

    def _begin(self, does: Program) -> None:
        connection, _ = self._asked.accept()
        message, descriptors, *_ = socket.recv_fds(connection, LONGEST, 3)
        folder, name, *words = message.decode(errors="replace").split("\0") if message else ("", "")
        parent = os.getpid()
        if len(descriptors) != 3:
            connection.close()
        elif child := shell.fork():
            self._children[connection] = child
        else:
            shell.die_with_parent(parent)
            _become(connection, descriptors, Path(folder), lambda: does(name, words))
        for each in descriptors:
            os.close(each)

    def _end(self, connection: socket.socket) -> None:
        """Whoever has asked has the answer, or has ended without."""
        child = self._children.pop(connection)
        connection.close()
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _become(connection: socket.socket, descriptors: Sequence[int], folder: Path, does: Callable[[], int]) -> NoReturn:
    """Be the program in this new process."""
    code = 1
    try:
        for number, each in enumerate(descriptors):
            os.dup2(each, number)
        os.chdir(folder)
        code = does()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    with suppress(OSError):
        connection.send(b"%d" % code)
    os._exit(code)
