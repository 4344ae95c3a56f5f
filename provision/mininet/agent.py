"""The agent of Mininet's hosts on this machine's kernel. All other hosts have the compiled agent of provision/agent.

It runs commands that arrive on a line in the frames of wire.py. Every command gets its own control group, so that
ending it ends all that it started; daemons that a command leaves behind on purpose run on.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

sys.path.insert(0, "/usr/lib/minigts")

import wire

GROUPS = Path("/sys/fs/cgroup/minigts")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "TERM": "xterm-256color",
    "LANG": "C.UTF-8",
}


class Command:
    """One running command and the descriptors that carry its input and output."""

    def __init__(self, channel: int, request: dict) -> None:
        self.channel = channel
        self.group = GROUPS / str(channel)
        self.group.mkdir(parents=True, exist_ok=True)
        timeout_s = request.get("timeout_s")
        self.deadline = time.monotonic() + timeout_s if timeout_s else None
        self.timed_out = False
        self.pending_input = bytearray()
        self.input_closed = False
        self.terminal: tuple[int, ...] = ()
        self.input: int | None = None  # None once closed, since another command may get the number
        start = self._start_on_terminal if request.get("terminal") else self._start_on_pipes
        self.process = start(request)

    def _start_on_pipes(self, request: dict) -> subprocess.Popen:
        process = self._spawn(request["argv"], subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
        self.input = process.stdin.fileno()
        self.outputs = {process.stdout.fileno(): wire.STDOUT, process.stderr.fileno(): wire.STDERR}
        return process

    def _start_on_terminal(self, request: dict) -> subprocess.Popen:
        self.input, slave = os.openpty()
        self.resize(request["terminal"])
        process = self._spawn(request["argv"], slave, slave, slave)
        os.close(slave)
        # Each direction has its own descriptor, so that each can be waited for alone.
        self.terminal = (self.input, os.dup(self.input))
        self.outputs = {self.terminal[1]: wire.STDOUT}
        return process

    def _spawn(self, argv: list, stdin: int, stdout: int, stderr: int) -> subprocess.Popen:
        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        enter(self.group)
        try:
            return subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=ENVIRONMENT,
                cwd="/root",
                start_new_session=True,
                preexec_fn=None if stdin == subprocess.PIPE else take_terminal,
            )
        finally:
            enter(GROUPS.parent)

    def resize(self, size: list) -> None:
        fcntl.ioctl(self.input, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def kill(self) -> None:
        (self.group / "cgroup.kill").write_text("1")


class Agent:
    def __init__(self, line: int) -> None:
        self.line = line
        self.decoder = wire.Decoder()
        self.commands: dict[int, Command] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(line, selectors.EVENT_READ, self._requests_arrive)
        wakeup, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(wakeup, selectors.EVENT_READ, self._children_ended)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select(self._time_left_s()):
                current = self.selector.get_map().get(key.fd)
                if current is not None and current.data is key.data:  # not closed by an earlier event of this round
                    key.data(key.fd)
            self._end_overdue()

    def _send(self, channel: int, kind: int, payload: bytes = b"") -> None:
        data = memoryview(wire.Frame(channel, kind, payload).encode())
        while data:
            data = data[os.write(self.line, data) :]

    def _time_left_s(self) -> float | None:
        deadlines = [c.deadline for c in self.commands.values() if c.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for command in self.commands.values():
            if command.deadline is not None and command.deadline <= now:
                command.deadline, command.timed_out = None, True
                command.kill()

    def _requests_arrive(self, line: int) -> None:
        data = os.read(line, 65536)
        self._send(0, wire.TAKEN, wire.COUNT.pack(len(data)))
        for channel, kind, payload in self.decoder.feed(data):
            if kind == wire.RUN:
                self._run(channel, json.loads(payload))
            elif command := self.commands.get(channel):
                self._direct(command, kind, payload)

    def _run(self, channel: int, request: dict) -> None:
        try:
            command = Command(channel, request)
        except (OSError, subprocess.SubprocessError) as error:
            self._send(channel, wire.STDERR, f"{request['argv'][0]}: {error}\n".encode())
            self._send(channel, wire.EXIT, json.dumps({"code": 127, "timeout": False}).encode())
            return
        self.commands[channel] = command
        for descriptor, kind in command.outputs.items():
            os.set_blocking(descriptor, False)
            self.selector.register(
                descriptor, selectors.EVENT_READ, lambda fd, c=command, k=kind: self._output_arrives(c, k, fd)
            )
        os.set_blocking(command.input, False)

    def _direct(self, command: Command, kind: int, payload: bytes) -> None:
        if kind == wire.KILL:
            command.kill()
        elif kind == wire.RESIZE:
            command.resize(json.loads(payload))
        elif kind == wire.INPUT:
            command.pending_input += payload
            command.input_closed |= not payload
            self._feed(command)

    def _feed(self, command: Command) -> None:
        """Write as much input as the command accepts now; the rest waits until its input is writable again."""
        if command.input is None:
            return
        try:
            while command.pending_input:
                del command.pending_input[: os.write(command.input, command.pending_input)]
        except BlockingIOError:
            pass
        except OSError:
            command.pending_input.clear()
        watched = command.input in self.selector.get_map()
        if command.pending_input and not watched:
            self.selector.register(command.input, selectors.EVENT_WRITE, lambda _: self._feed(command))
        if not command.pending_input and watched:
            self.selector.unregister(command.input)
        if command.input_closed and not command.pending_input and not command.terminal:
            command.process.stdin.close()
            command.input = None

    def _output_arrives(self, command: Command, kind: int, descriptor: int) -> None:
        try:
            data = os.read(descriptor, wire.CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._send(command.channel, kind, data)
        else:
            self.selector.unregister(descriptor)
            del command.outputs[descriptor]

    def _children_ended(self, wakeup: int) -> None:
        os.read(wakeup, 4096)
        for command in list(self.commands.values()):
            if command.process.poll() is not None:
                self._finish(command)
        reap_orphans({c.process.pid for c in self.commands.values()})

    def _finish(self, command: Command) -> None:
        """Pass on the output of a command that has ended, even if a daemon still holds its pipes."""
        del self.commands[command.channel]
        for descriptor, kind in list(command.outputs.items()):
            while descriptor in command.outputs and has_data(descriptor):
                self._output_arrives(command, kind, descriptor)
            if descriptor in command.outputs:
                self.selector.unregister(descriptor)
        if command.input is not None and command.input in self.selector.get_map():
            self.selector.unregister(command.input)
        for stream in (command.process.stdin, command.process.stdout, command.process.stderr):
            if stream is not None:
                stream.close()
        for descriptor in command.terminal:
            os.close(descriptor)
        try:
            command.group.rmdir()
        except OSError:
            pass  # a daemon is still in it
        code = command.process.returncode
        ended = {"code": code if code >= 0 else 128 - code, "timeout": command.timed_out}
        self._send(command.channel, wire.EXIT, json.dumps(ended).encode())


def enter(group: Path) -> None:
    """Move this process into a control group, so that all that it starts is in the group from the beginning."""
    (group / "cgroup.procs").write_text("0")


def has_data(descriptor: int) -> bool:
    with selectors.PollSelector() as once:
        once.register(descriptor, selectors.EVENT_READ)
        return bool(once.select(0))


def reap_orphans(own: set[int]) -> None:
    """Wait for ended children that other processes left to process 1, but not for `own` ones, which Popen awaits."""
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) if has_children() else None
        if ended is None or ended.si_pid in own:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)


def has_children() -> bool:
    return bool(Path(f"/proc/self/task/{os.getpid()}/children").read_text())
