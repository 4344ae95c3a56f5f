#!/usr/bin/python3 -SE
"""A guest's agent at the other end of an SSH connection: the image's own, for a host whose process 1 is another.

Talks the frames of wire.py on its standard input and output. When the connection ends, so do the commands that were
begun over it, but not the daemons that they have left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys

sys.path.insert(0, "/usr/lib/minigts")

import agent
import wire


class LineAgent(agent.Agent):
    """Reads on one descriptor and writes on another, for sshd hands it pipes."""

    def __init__(self, requests: int, answers: int) -> None:
        super().__init__(requests)
        self.line = answers

    def _requests_arrive(self, line: int) -> None:
        data = os.read(line, 65536)
        if not data:
            self._end()
        self._send(0, wire.TAKEN, wire.COUNT.pack(len(data)))
        for channel, kind, payload in self.decoder.feed(data):
            if kind == wire.RUN:
                self._run(channel, json.loads(payload))
            elif command := self.commands.get(channel):
                self._direct(command, kind, payload)

    def _end(self) -> None:
        for command in self.commands.values():
            command.kill()
        sys.exit()


def main() -> None:
    """The descriptors that sshd gave are kept from the commands, which get none of them."""
    requests, answers = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    agent.GROUPS = agent.GROUPS / str(os.getpid())
    os.write(answers, wire.HELLO)
    LineAgent(requests, answers).serve()


if __name__ == "__main__":
    main()
