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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from minigts import paths
from minigts.errors import CommandFailed, CommandTimeout, HostFailed
from minigts.foreign import Foreign
from minigts.machine.parallel import breakable
from minigts.providers.agent import ended as endings
from minigts.providers.agent import protocol, sockets
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
    with contextlib.closing(_Line(_connect(rundir, host, conditions), patience, on_look)) as line, kept.on_failure():
        line.send(*_request(argv, timeout_s, None), *_inputs(stdin))
        if turn is not None:
            line.send(_wait(turn, for_end=on_output is None))
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
                if turn is not None:
                    line.send(_wait(turn, for_end=False))
        if ended is None:
            raise _gone(rundir, host, argv, conditions)
    if (lack := kept.lack(ended)) is not None:
        raise HostFailed(f"host {host} cannot start `{argv[0]}`: {lack}{_why(rundir, host, conditions)}")
    return kept.result(ended, timeout_s, time.monotonic() - started, check=check)


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


class _Line:
    """A connection that sends to a host and receives from it at once, for as long as its `Patience` lasts."""

    def __init__(
        self, connection: socket.socket, patience: Patience, on_look: Callable[[], object] | None = None
    ) -> None:
        self._connection, self._patience, self._on_look = connection, patience, on_look
        connection.setblocking(False)
        self._frames: list[Iterator[protocol.Frame]] = []
        self._outgoing = memoryview(b"")
        self._is_blocked = False
        self._further: tuple[int, Callable[[bytes], None]] | None = None

    def close(self) -> None:
        self._connection.close()

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
        decoder = protocol.Decoder()
        with breakable(partial(self._connection.shutdown, socket.SHUT_RDWR)):
            while True:
                data = self._wait()
                if data == b"":
                    return
                for frame in decoder.feed(data or b""):
                    self._patience.note_words()
                    if frame.kind == protocol.HOST:
                        self._patience.note_greeting(frame.payload == protocol.GREETED)
                    elif frame.kind == protocol.CUT:
                        raise HostFailed(
                            "too much of its output was left unread: read it faster, or write it to a file"
                        )
                    elif frame.kind != protocol.TAKEN:
                        yield frame
                if self._patience.is_due():
                    self._look()

    def _look(self) -> None:
        if self._patience.look():
            self.send(protocol.Frame(1, protocol.ASK, b""))
        if self._on_look is not None:
            self._on_look()

    def _wait(self) -> bytes | None:
        """Data from the host: empty when the host has gone, None when none has arrived."""
        watched = select.poll()
        watched.register(self._connection, select.POLLIN | (select.POLLOUT if self._has_more() else 0))
        if self._further is not None:
            watched.register(self._further[0], select.POLLIN)
        ready = dict(watched.poll(LOOK_S * 1000))
        if self._further is not None and ready.get(self._further[0]):
            self._take_further()
        found = ready.get(self._connection.fileno(), 0)
        if found & select.POLLOUT:
            self._write()
        return self._read() if found & ~select.POLLOUT else None

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
    if host not in {path.name for path in rundir.glob("hosts/*")}:
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


def _wait(turn: int, *, for_end: bool) -> protocol.Frame:
    return protocol.Frame(1, protocol.WAIT, protocol.WAITING.pack(turn, for_end))


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
