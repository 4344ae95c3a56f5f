"""`attach`: a command on the caller's own terminal. The same for every provider."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minigts.providers.base import Provider

PROJECT = Path(__file__).parents[2]
PATIENCE_S = 120.0
CTRL_C, CTRL_D = "\x03", "\x04"
CHILD = """
import sys
from importlib import import_module
from pathlib import Path
module, name, rundir, host, *argv = sys.argv[1:]
sys.exit(getattr(import_module(module), name)(Path(rundir)).attach(host, argv))
"""


class Terminal:
    """A person at a terminal, with a program in front: what they type, and what they see."""

    def __init__(self, argv: list[str]) -> None:
        self._master, slave = pty.openpty()
        self.seen = ""
        self.resize(24, 80)
        self.before = termios.tcgetattr(slave)
        self.program = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "PYTHONPATH": f"{PROJECT / 'tools'}:{PROJECT / 'tests'}"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads here
        )
        self._slave = slave

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Goes on reading while it types, as a person does."""
        data = text.encode()
        while data:
            _, writable, _ = select.select([], [self._master], [], PATIENCE_S)
            assert writable, "the terminal takes no more"
            data = data[os.write(self._master, data[:256]) :]
            self._read(0)

    def sees(self, text: str) -> str:
        """Wait for `text` to appear; all that has been seen before it since the last time."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} is not to be seen in {self.seen!r}"
            self._read(0.1)
        before, _, self.seen = self.seen.partition(text)
        return before

    def code(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while self.program.poll() is None:
            assert time.monotonic() < deadline, f"the program does not end; seen: {self.seen!r}"
            self._read(0.05)
        self._read(0.05)
        return self.program.returncode

    @property
    def as_before(self) -> bool:
        return termios.tcgetattr(self._slave) == self.before

    def hang_up(self) -> None:
        for descriptor in (self._slave, self._master):
            os.close(descriptor)
        self._master = self._slave = -1

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        if self._master >= 0:
            self.hang_up()

    def _read(self, patience_s: float) -> None:
        while select.select([self._master], [], [], patience_s)[0]:
            self.seen += os.read(self._master, 65536).decode(errors="replace")
            patience_s = 0


Attach = Callable[..., Terminal]


@pytest.fixture
def attach(lab: Provider) -> Iterator[Attach]:
    """Opens a terminal with a command of host h1 on it."""
    terminals = []

    def on_h1(*argv: str) -> Terminal:
        kind = type(lab)
        command = [sys.executable, "-c", CHILD, kind.__module__, kind.__name__, str(lab.rundir), "h1", *argv]
        terminals.append(Terminal(command))
        return terminals[-1]

    yield on_h1
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize("code", [0, 3, 130])
def test_the_exit_code_is_the_commands(attach: Attach, code: int) -> None:
    assert attach("sh", "-c", f"exit {code}").code() == code


def test_the_command_has_a_terminal(attach: Attach) -> None:
    terminal = attach("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo all three; cat /no/such")
    terminal.sees("all three\r\n")
    terminal.sees("No such file")
    assert terminal.code() == 1


def test_what_is_typed_is_echoed_once_and_reaches_the_command(attach: Attach) -> None:
    terminal = attach("sh", "-c", "echo ready; read word; echo got $word")
    terminal.sees("ready\r\n")
    terminal.type("hello\r")
    assert terminal.sees("got hello\r\n") == "hello\r\n"
    assert terminal.code() == 0


def test_what_is_typed_before_the_command_runs_is_kept(attach: Attach) -> None:
    terminal = attach("sh", "-c", "read word; echo got $word")
    terminal.type("early\r")
    terminal.sees("got early\r\n")
    assert terminal.code() == 0


def test_control_d_ends_the_input(attach: Attach) -> None:
    terminal = attach("sh", "-c", "echo ready; cat; echo over")
    terminal.sees("ready")
    terminal.type(CTRL_D)
    terminal.sees("over")
    assert terminal.code() == 0


def test_control_c_interrupts_the_command_and_not_the_client(attach: Attach) -> None:
    terminal = attach("sh", "-c", "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.2; done")
    terminal.sees("ready")
    terminal.type(CTRL_C)
    terminal.sees("caught")
    assert terminal.code() == 7


def test_the_command_knows_the_windows_size(attach: Attach) -> None:
    terminal = attach("sh", "-c", "stty size; while read go && [ $go = go ]; do stty size; done")
    terminal.sees("24 80\r\n")
    terminal.resize(50, 132)
    until_s = time.monotonic() + PATIENCE_S
    while "50 132\r\n" not in terminal.seen:
        assert time.monotonic() < until_s, terminal.seen
        terminal.type("go\r")
        terminal._read(0.2)
    terminal.type("end\r")
    assert terminal.code() == 0


def test_a_long_paste_arrives_whole(attach: Attach) -> None:
    """More than a terminal holds at once (4096 bytes), at a moment when the command does not read."""
    terminal = attach("sh", "-c", "stty -echo; echo ready; sleep 1; head -n 600 | sha256sum; echo over")
    terminal.sees("ready")
    lines = [f"line {number} of what is pasted, all of it" for number in range(600)]
    terminal.type("".join(f"{line}\r" for line in lines))
    text = "".join(f"{line}\n" for line in lines)
    said = terminal.sees("over")
    assert hashlib.sha256(text.encode()).hexdigest() in said


def test_much_output_arrives_whole(attach: Attach) -> None:
    terminal = attach("sh", "-c", "yes 0123456789 | head -n 20000; echo over")
    assert terminal.sees("over").count("0123456789\r\n") == 20000


def test_the_terminal_is_afterwards_as_it_was(attach: Attach) -> None:
    terminal = attach("sh", "-c", "stty raw -echo; exit 0")
    assert terminal.code() == 0
    assert terminal.as_before


def test_no_such_program_is_127(attach: Attach) -> None:
    terminal = attach("no-such-program")
    assert terminal.code() == 127
    assert "no-such-program" in terminal.seen


def test_a_terminal_that_hangs_up_takes_the_command_along(attach: Attach, lab: Provider) -> None:
    terminal = attach("sh", "-c", "echo ready; sleep 5000099; true")
    terminal.sees("ready")
    terminal.hang_up()
    terminal.program.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + PATIENCE_S
    look = ["sh", "-c", "grep -lqzx 5000099 /proc/[0-9]*/cmdline 2>/dev/null"]
    while lab.run("h1", look, timeout_s=10, check=False).code == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
