"""The client side of a host's control socket, which the lab's supervisor serves."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from minigts import paths
from minigts.errors import CommandFailed, CommandTimeout, HostFailed
from minigts.foreign import Foreign
from minigts.machine.parallel import Turn, breakable
from minigts.providers.agent import ended as endings
from minigts.providers.agent import halting, protocol, sockets
from minigts.providers.agent.patience import LOOK_S, Conditions, Patience
from minigts.providers.base import CommandResult

GRACE_S = 10.0
"""Seconds after a command's own limit until a silent host counts as gone."""
CONNECT_S = 5.0
GREETING_S = 2.0
"""Seconds that a supervisor may take to say whether its host's agent has greeted. One that is late is believed to be
there all the same."""
MOST_KEPT_BYTES = 32 << 20
"""Bytes of a command's output, both streams together, that are kept in memory."""
MOST_KEPT_STREAMED_BYTES = 256 << 10
"""The same where the output is also passed on as it arrives."""
NOT_STARTED = 127
"""The exit code of a command that an agent could not start."""
LACKS = {
    errno.EAGAIN: "it has as many processes as its kernel allows",
    errno.ENOMEM: "its memory is exhausted",
}
"""What the host lacks when fork(2) fails there with these errors."""
CUT_MARK = "\n[minigts keeps no more of this output than {} bytes]\n"


class OutputTooLong(CommandFailed):
    """A command was ended because its output was longer than what is kept in memory."""

    def __init__(self, host: str, argv: Sequence[str], most_bytes: int) -> None:
        self.most_bytes = most_bytes
        super().__init__(host, argv, 1, "", "")

    def _describe(self) -> str:
        before, _, _ = super()._describe().partition(" ended with code")
        return (
            f"{before} was ended: it wrote more than {self.most_bytes >> 20} MB of output. Stream the output "
            f"(minigts exec without --json, or `on_output`), or write it to a file there and fetch that by minigts cp"
        )


def run(
    rundir: Path,
    host: str,
    argv: Sequence[str],
    *,
    timeout_s: float,
    check: bool,
    stdin: bytes,
    on_output: Callable[[bytes], None] | None,
    turn: int | None = None,
    on_stdout: Callable[[bytes], object] | None = None,
    on_look: Callable[[], object] | None = None,
    conditions: Conditions | None = None,
) -> CommandResult:
    """Run a command and wait for its end; see `Provider.run`. `on_stdout` gets the standard output, which is then not
    in the result. `on_look` is called about once a second; an error that it raises ends the command.

    `turn` is the caller's turn on the lab's clock, 0 if it has none: the lab's time passes while the caller waits, and
    this machine's time does not matter. None means that the lab uses this machine's time.
    """
    started = time.monotonic()
    kept = _Kept(host, argv, is_streamed=on_output is not None)
    ended: protocol.Ended | None = None
    patience = Patience(host, argv[0], conditions or Conditions(), limit_s=timeout_s + GRACE_S)
    wait = None if turn is None else _Wait(host, turn, for_end=on_output is None)
    connection = _connect(rundir, host, conditions)
    with contextlib.closing(_Line(connection, patience, on_look, wait)) as line, kept.on_failure():
        line.send(*_request(argv, timeout_s, None), *_inputs(stdin))
        if wait is not None:
            line.send(wait.frame)
        for frame in line.frames():
            if frame.kind == protocol.EXIT:
                ended = _ended(host, frame)
                break
            if on_stdout is not None and frame.kind == protocol.STDOUT:
                on_stdout(frame.payload)
                continue
            kept.take(frame)
            if on_output is not None:
                with line.resting():
                    on_output(frame.payload)
                if wait is not None:
                    line.send(wait.frame)
        if ended is None:
            raise _gone(rundir, host, argv, conditions)
    if (lack := kept.lack(ended)) is not None:
        raise HostFailed(f"host {host} cannot start `{argv[0]}`: {lack}{_why(rundir, host, conditions)}")
    return kept.result(ended, timeout_s, time.monotonic() - started, check=check)


@dataclass(frozen=True)
class SideCommand:
    """One of several commands that run side by side, each with a turn of its own."""

    host: str
    argv: Sequence[str]
    turn: Turn
    conditions: Conditions


def run_side_by_side(
    rundir: Path, sides: Sequence[SideCommand], *, timeout_s: float, caller: Turn
) -> list[CommandResult | HostFailed]:
    """Run commands from one moment on, as as many threads with `run`, of which none stops the other ones' time; return
    what came of each. This thread waits for all of them, so it can be halted meanwhile. Their turns end."""
    commands = [_Command(rundir, side, timeout_s) for side in sides]
    for command in commands:
        command.begin_wait()
    left = [command for command in commands if not command.is_over()]
    if left:
        caller.rest()
    while left:
        _wait_for_any(left)
        for command in [each for each in left if each.is_over()]:
            left.remove(command)
            if not left:
                caller.resume()  # before its turn ends, so that time does not pass in between
            command.side.turn.end()
    return [command.outcome for command in commands]


class _Command:
    """A command that runs beside others."""

    def __init__(self, rundir: Path, side: SideCommand, timeout_s: float) -> None:
        self.side, self._rundir, self._timeout_s = side, rundir, timeout_s
        self._started = time.monotonic()
        self._kept = _Kept(side.host, side.argv, is_streamed=False)
        patience = Patience(side.host, side.argv[0], side.conditions, limit_s=timeout_s + GRACE_S)
        self._wait = _Wait(side.host, side.turn.number, for_end=True)
        self.line: _Line | None = None
        self.outcome: CommandResult | HostFailed = HostFailed("it has not ended")
        try:
            self.line = _Line(_connect(rundir, side.host, side.conditions), patience, wait=self._wait)
            self.line.send(*_request(side.argv, timeout_s, None), *_inputs(b""))
        except HostFailed as error:
            self._end(error)

    def begin_wait(self) -> None:
        if self.line is not None:
            self.line.send(self._wait.frame)

    def is_over(self) -> bool:
        """Take what has come."""
        try:
            while self.line is not None and (frame := self.line.frame_if_any()) is not None:
                if frame.kind == protocol.EXIT:
                    self._end(self._result(_ended(self.side.host, frame)))
                else:
                    self._kept.take(frame)
            if self.line is not None and self.line.is_gone:
                self._end(_gone(self._rundir, self.side.host, self.side.argv, self.side.conditions))
        except HostFailed as error:
            self._end(error)
        return self.line is None

    def _result(self, ended: protocol.Ended) -> CommandResult:
        if (lack := self._kept.lack(ended)) is not None:
            raise HostFailed(f"host {self.side.host} cannot start `{self.side.argv[0]}`: {lack}")
        return self._kept.result(ended, self._timeout_s, time.monotonic() - self._started, check=False)

    def _end(self, outcome: CommandResult | HostFailed) -> None:
        if isinstance(outcome, HostFailed):
            with contextlib.suppress(HostFailed), self._kept.on_failure():
                raise outcome
        self.outcome = outcome
        if self.line is not None:
            self.line.close()
            self.line = None


def _wait_for_any(commands: Sequence[_Command]) -> None:
    """Wait until a command's host has said something, or it is time to look at the hosts. Raises HostFailed."""
    lines = [command.line for command in commands if command.line is not None]
    if (ready := _poll(lines)) is not None:
        for line in lines:
            line.take_ready(ready.get(line.descriptor, 0))


def _poll(lines: Sequence[_Line], further: int | None = None) -> dict[int, int] | None:
    """What is ready of the lines, and of a descriptor to read from, once one is or it is time to look; None
    where this process was halted meanwhile."""
    if halting.is_asked():
        halting.halt()
        if any(line.has_news for line in lines):
            return None
    watched = select.poll()
    for line in lines:
        watched.register(line.descriptor, line.events)
    own = halting.descriptor()
    for descriptor in (further, own):
        if descriptor is not None:
            watched.register(descriptor, select.POLLIN)
    ready = dict(watched.poll(LOOK_S * 1000))
    if own in ready:
        halting.halt()
        return None
    return ready


def attach(
    rundir: Path, host: str, argv: Sequence[str], *, paced: bool = False, conditions: Conditions | None = None
) -> int:
    """Run a command on this process's terminal; returns its exit code.

    `paced` makes a lab with its own clock run in real time until the command ends.
    """
    patience = Patience(host, argv[0], conditions or Conditions())
    with contextlib.closing(_Line(_connect(rundir, host, conditions), patience)) as line, _raw_terminal():
        line.send(*_request(argv, None, _terminal_size()))
        if paced:
            line.send(protocol.Frame(1, protocol.PACE, b""))
        signal.signal(signal.SIGWINCH, lambda *_: line.send_later(_frame(protocol.RESIZE, _terminal_size())))
        line.listen_to(sys.stdin.fileno(), lambda typed: line.send(protocol.Frame(1, protocol.INPUT, typed or b"\x04")))
        for frame in line.frames():
            if frame.kind == protocol.EXIT:
                return _ended(host, frame).code
            with line.resting():
                _write_all(sys.stdout.fileno(), frame.payload)
    raise _gone(rundir, host, argv, conditions)


def converse(
    rundir: Path,
    host: str,
    argv: Sequence[str],
    *,
    paced: bool = False,
    terminal: tuple[int, int] | None = None,
    conditions: Conditions | None = None,
) -> socket.socket:
    """Start a command; return its connection once the host's agent has read the request. See `Streams.converse`, and
    `attach` for `paced`."""
    connection = _connect(rundir, host, conditions)
    try:
        for frame in _request(argv, None, terminal):
            connection.sendall(frame.encode())
        if paced:
            connection.sendall(protocol.Frame(1, protocol.PACE, b"").encode())
        with breakable(partial(connection.shutdown, socket.SHUT_RDWR)):
            _wait_until_taken(connection, Patience(host, argv[0], conditions or Conditions(), asks=False))
    except OSError as error:
        connection.close()
        raise _gone(rundir, host, argv, conditions) from error
    except BaseException:
        connection.close()
        raise
    return connection


class _Wait:
    """What the lab's clock is told of who waits for a command."""

    def __init__(self, host: str, turn: int, *, for_end: bool) -> None:
        self.host, self._turn, self._for_end = host, turn, for_end

    def move(self) -> None:
        """The turn has moved, as the whole process has."""
        self._turn = halting.turn_number(self._turn)

    @property
    def frame(self) -> protocol.Frame:
        return protocol.Frame(1, protocol.WAIT, protocol.WAITING.pack(self._turn, self._for_end))


class _Line:
    """A connection that sends to a host and receives from it at once, for as long as its `Patience` lasts. One with a
    `wait` can be moved to a fork of the lab (halting.py)."""

    def __init__(
        self,
        connection: socket.socket,
        patience: Patience,
        on_look: Callable[[], object] | None = None,
        wait: _Wait | None = None,
    ) -> None:
        self._connection, self._patience, self._on_look, self._waits = connection, patience, on_look, wait
        connection.setblocking(False)
        self._decoder = protocol.Decoder()
        self._heard: deque[protocol.Frame] = deque()
        self.is_gone = False
        """Whether the host has gone away."""
        self._channel = 0
        """The agent's number of the command's channel, once it was asked for."""
        halting.enter(self)
        self._frames: list[Iterator[protocol.Frame]] = []
        self._outgoing = memoryview(b"")
        self._is_blocked = False
        self._further: tuple[int, Callable[[bytes], None]] | None = None

    def close(self) -> None:
        halting.leave(self)
        self._connection.close()

    def settle(self) -> bool:
        """See `halting.Opened`."""
        if self._waits is None or self._has_more() or self._heard or self.is_gone:
            return False
        self.send(protocol.Frame(1, protocol.HEARD, b""))
        self._connection.settimeout(CONNECT_S)
        try:
            self._channel = 0
            while not self._channel and not self.is_gone:
                self._take(self._connection.recv(1 << 16))
        except OSError:
            self.is_gone = True
        self._connection.setblocking(False)
        return not self.is_gone and all(frame.kind != protocol.EXIT for frame in self._heard)

    def move(self, rundir: Path) -> None:
        """See `halting.Opened`."""
        assert self._waits is not None
        self._patience.begin_anew()
        connection = sockets.open_connection(rundir / "hosts" / self._waits.host, paths.CONTROL_SOCKET, CONNECT_S)
        connection.setblocking(False)
        halting.exchange(self._connection, connection)
        self._decoder = protocol.Decoder()
        self._waits.move()
        self.send(protocol.Frame(1, protocol.TAKE_OVER, protocol.COUNT.pack(self._channel)), self._waits.frame)

    @property
    def descriptor(self) -> int:
        return self._connection.fileno()

    @property
    def has_news(self) -> bool:
        """Whether something has come that nobody has taken."""
        return bool(self._heard) or self.is_gone

    @property
    def events(self) -> int:
        return select.POLLIN | (select.POLLOUT if self._has_more() else 0)

    def send(self, *frames: protocol.Frame | Iterator[protocol.Frame]) -> None:
        """Send frames as soon as the socket has room; reading notices a host that goes away."""
        self._frames += [iter([each]) if isinstance(each, protocol.Frame) else each for each in frames]
        self._write()

    def send_later(self, frame: protocol.Frame) -> None:
        """Queue a frame without sending it: for a signal's handler, which may have interrupted `send`."""
        self._frames.append(iter([frame]))

    def listen_to(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        """Also read from this descriptor while waiting; `take` gets its data, and empty bytes at its end."""
        self._further = (descriptor, take)

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """A context whose duration does not count as the host's silence."""
        began = time.monotonic()
        yield
        self._patience.excuse(time.monotonic() - began)

    def frames(self) -> Iterator[protocol.Frame]:
        """The frames that the host sends, until it goes away, without those of the supervisor. Raises HostFailed."""
        with breakable(partial(self._connection.shutdown, socket.SHUT_RDWR)):
            while True:
                while (frame := self.frame_if_any()) is not None:
                    yield frame
                if self.is_gone:
                    return
                if self._patience.is_due():
                    self._look()
                self._wait()

    def frame_if_any(self) -> protocol.Frame | None:
        """The next frame that has come, if there is one. Raises HostFailed."""
        while self._heard:
            frame = self._heard.popleft()
            if frame.kind == protocol.CUT:
                raise HostFailed("too much of its output was left unread: read it faster, or write it to a file")
            if frame.kind != protocol.TAKEN:
                return frame
        return None

    def _take(self, data: bytes) -> None:
        """Take what the host has sent; nothing means that it has gone."""
        self.is_gone = self.is_gone or not data
        for frame in self._decoder.feed(data):
            self._patience.note_words()
            if frame.kind == protocol.HEARD:
                (self._channel,) = protocol.COUNT.unpack(frame.payload)
            elif frame.kind == protocol.HOST:  # at once: an answer behind it ends what it owes since then
                self._patience.note_greeting(frame.payload == protocol.GREETED)
            else:
                self._heard.append(frame)

    def take_ready(self, found: int) -> None:
        """Take what a poll has `found` ready. Raises HostFailed for a host that does not answer."""
        self._take_found(found)
        if self._patience.is_due():
            self._look()

    def _take_found(self, found: int) -> None:
        if found & select.POLLOUT:
            self._write()
        if found & ~select.POLLOUT and (data := self._read()) is not None:
            self._take(data)

    def _look(self) -> None:
        if self._patience.look():
            self.send(protocol.Frame(1, protocol.ASK, b""))
        if self._on_look is not None:
            self._on_look()

    def _wait(self) -> None:
        """Wait until the host has sent something, at most until it is time to look. This process may be halted."""
        ready = _poll([self], None if self._further is None else self._further[0])
        if ready is None:
            return
        halting.refuse_in_thread()
        if self._further is not None and ready.get(self._further[0]):
            self._take_further()
        self._take_found(ready.get(self.descriptor, 0))

    def _read(self) -> bytes | None:
        try:
            return self._connection.recv(1 << 16)
        except BlockingIOError:
            return None
        except OSError:  # it has gone, or this end has been broken off
            return b""

    def _take_further(self) -> None:
        assert self._further is not None
        descriptor, take = self._further
        typed = os.read(descriptor, protocol.CHUNK)
        if not typed:
            self._further = None
        take(typed)

    def _has_more(self) -> bool:
        while not self._outgoing and self._frames:
            frame = next(self._frames[0], None)
            if frame is None:
                self._frames.pop(0)
            else:
                self._outgoing = memoryview(frame.encode())
                if frame.kind in (protocol.RUN, protocol.ASK):
                    self._patience.owes()
        return bool(self._outgoing)

    def _write(self) -> None:
        try:
            while self._has_more():
                self._outgoing = self._outgoing[self._connection.send(self._outgoing) :]
                if self._is_blocked:
                    self._is_blocked = False
                    self._patience.note_words()
        except BlockingIOError:
            self._is_blocked = True
            self._patience.owes()
        except OSError:
            self._frames, self._outgoing = [], memoryview(b"")


class _Kept:
    """The output of a command, up to a number of bytes of both streams together. Output that is also streamed is cut
    there; other output raises OutputTooLong.
    """

    def __init__(self, host: str, argv: Sequence[str], *, is_streamed: bool) -> None:
        self._host, self._argv, self._is_streamed = host, tuple(argv), is_streamed
        self._most_bytes = MOST_KEPT_STREAMED_BYTES if is_streamed else MOST_KEPT_BYTES
        self._said = {protocol.STDOUT: bytearray(), protocol.STDERR: bytearray()}
        self._is_cut = False

    def take(self, frame: protocol.Frame) -> None:
        """Raises OutputTooLong."""
        room = self._most_bytes - sum(map(len, self._said.values()))
        self._said[protocol.STDOUT if frame.kind == protocol.STDOUT else protocol.STDERR].extend(frame.payload[:room])
        self._is_cut |= len(frame.payload) > room
        if self._is_cut and not self._is_streamed:
            raise OutputTooLong(self._host, self._argv, self._most_bytes)

    def _text(self, kind: int) -> Foreign:
        return Foreign(self._said[kind].decode(errors="replace"))

    @contextlib.contextmanager
    def on_failure(self) -> Iterator[None]:
        """A context in which an error of the host gets what the command has printed."""
        try:
            yield
        except HostFailed as error:
            error.out = self._text(protocol.STDOUT)
            raise

    def lack(self, ended: protocol.Ended) -> str | None:
        """What the host's kernel lacked to start the command, from its agent's error such as `true: Resource
        temporarily unavailable (os error 11)`; None if the command started or does not exist there.
        """
        said = self._text(protocol.STDERR)
        if ended.code != NOT_STARTED or not said.startswith(f"{self._argv[0]}: "):
            return None
        return next((lack for number, lack in LACKS.items() if said.endswith(f" (os error {number})\n")), None)

    def result(self, ended: protocol.Ended, timeout_s: float, seconds: float, *, check: bool) -> CommandResult:
        """The command's result, with a mark where its output was cut. Raises CommandTimeout, CommandFailed."""
        out, err = self._text(protocol.STDOUT), self._text(protocol.STDERR)
        err += CUT_MARK.format(self._most_bytes) if self._is_cut else ""
        if ended.timeout:
            raise CommandTimeout(self._host, self._argv, timeout_s, out, err)
        if check and ended.code != 0:
            raise CommandFailed(self._host, self._argv, ended.code, out, err)
        return CommandResult(self._host, self._argv, ended.code, out, err, seconds)


def _connect(rundir: Path, host: str, conditions: Conditions | None) -> socket.socket:
    if host in ("", ".", "..") or "/" in host or not os.path.lexists(rundir / "hosts" / host):
        raise HostFailed(f"there is no host {host} in this lab")
    try:
        return sockets.open_connection(rundir / "hosts" / host, paths.CONTROL_SOCKET, CONNECT_S)
    except OSError as error:  # its kernel has ended, or the lab is being taken down
        raise HostFailed(f"host {host} is not running{_why(rundir, host, conditions)}") from error


def _wait_until_taken(connection: socket.socket, patience: Patience) -> None:
    """Read up to the frame which says that the host's agent has read the first request. Raises HostFailed, OSError."""
    patience.owes()
    connection.settimeout(GREETING_S)
    try:
        first = _one_frame(connection, patience)
    except TimeoutError:  # it is stopped, or late
        connection.settimeout(CONNECT_S)
        return
    connection.settimeout(LOOK_S)
    while first.kind != protocol.TAKEN:
        if first.kind == protocol.HOST:
            patience.note_greeting(first.payload == protocol.GREETED)
            patience.owes()
        first = _one_frame(connection, patience)
    connection.settimeout(CONNECT_S)


def _one_frame(connection: socket.socket, patience: Patience) -> protocol.Frame:
    """Raises ConnectionError when the host has gone, TimeoutError when a supervisor says nothing at all."""
    head = _exactly(connection, protocol.HEADER.size, patience)
    channel, kind, length = protocol.HEADER.unpack(head)
    if (kind, length) not in ((protocol.HOST, 1), (protocol.TAKEN, 0)):
        raise ConnectionResetError("it answered before it was asked")
    return protocol.Frame(channel, kind, _exactly(connection, length, patience))


def _exactly(connection: socket.socket, size: int, patience: Patience) -> bytes:
    data = b""
    while len(data) < size:
        try:
            piece = connection.recv(size - len(data))
        except TimeoutError:
            if patience.has_greeted is None and not data:
                raise
            patience.look()
            continue
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _request(
    argv: Sequence[str], timeout_s: float | None, terminal: Sequence[int] | None
) -> tuple[protocol.Frame, ...]:
    request: dict[str, Any] = {"argv": list(argv), "timeout_s": timeout_s}
    if terminal is not None or timeout_s is None:
        request["terminal"] = terminal
    return (_frame(protocol.RUN, request),)


def _inputs(data: bytes) -> tuple[Iterator[protocol.Frame], protocol.Frame]:
    """The frames of a command's input, and the frame that ends it."""
    offsets = range(0, len(data), protocol.CHUNK)
    pieces = (protocol.Frame(1, protocol.INPUT, data[offset : offset + protocol.CHUNK]) for offset in offsets)
    return pieces, protocol.Frame(1, protocol.INPUT, b"")


def _frame(kind: int, content: object) -> protocol.Frame:
    return protocol.Frame(1, kind, json.dumps(content).encode())


def _ended(host: str, frame: protocol.Frame) -> protocol.Ended:
    try:
        return protocol.parse_end(frame.payload)
    except ValueError as error:
        raise HostFailed(f"host {host} does not say how a command ended: {error}") from error


def _gone(rundir: Path, host: str, argv: Sequence[str], conditions: Conditions | None) -> HostFailed:
    return HostFailed(f"host {host} went away while it ran `{argv[0]}`{_why(rundir, host, conditions)}")


def _why(rundir: Path, host: str, conditions: Conditions | None) -> str:
    """A clause with the recorded reason why the host has ended, if there is one, and the command that restarts it."""
    if why := endings.end_clause(rundir, host):
        return why
    return f"; {conditions.remedy} starts it again" if conditions is not None and conditions.remedy else ""


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _terminal_size() -> list[int]:
    size = os.get_terminal_size(sys.stdin.fileno()) if sys.stdin.isatty() else os.terminal_size((80, 24))
    return [size.lines, size.columns]


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # keeps what was typed ahead
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
