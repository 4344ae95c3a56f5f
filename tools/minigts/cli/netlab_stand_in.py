"""What netlab starts in place of Docker and sudo: it asks the process that `minigts netlab` is, and does it by itself
where nobody answers, or where a terminal belongs to it. It is run by its path, and imports nothing that takes time.

    python stand_in.py ADDRESS NAME WORD…
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

OWN = ("-P", "-m", "minigts.cli.called_by_netlab")


def main(address: str, name: str, words: Sequence[str]) -> int:
    has_terminal = any(word.startswith("-") and "t" in word for word in words[1:2])
    if name == "containerlab" or has_terminal:
        _load(name, words)
    try:
        return ask(address, name, words)
    except OSError:
        _load(name, words)


def _load(name: str, words: Sequence[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, *OWN, name, *words])


def ask(address: str, name: str, words: Sequence[str]) -> int:
    """The exit code, once it is done on this process's input and output. Raises OSError where nobody is there."""
    place, _, socket_name = address.rpartition("/")
    folder = os.open(place, os.O_PATH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
        asked.connect(f"/proc/self/fd/{folder}/{socket_name}")
        socket.send_fds(asked, ["\0".join([os.getcwd(), name, *words]).encode()], [0, 1, 2])  # noqa: PTH109
        return int(asked.recv(16) or b"1")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
