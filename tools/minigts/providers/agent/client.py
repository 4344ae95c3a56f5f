"""Talks to one host of a lab through its socket, which the supervisor serves."""

from __future__ import annotations

import contextlib
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
from pathlib import Path
from typing import Any

from minigts.errors import CommandFailed, CommandTimeout, HostFailed
from minigts.providers.agent import ended as endings
from minigts.providers.agent import sockets, wire
from minigts.providers.base import Result

GRACE_S = 10.0
"""How much longer than its own limit a command may be silent before the host counts as gone."""
CONNECT_S = 5.0


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
) -> Result:
    """Run a command and wait for its end; see `Provider.run`. With `on_stdout` its standard output is handed over, and
    is not in the result.

    `turn` is this caller's on the lab's clock, 0 if it acts alone: time passes there while it waits, and how much of
    this machine's that takes is no matter. None: the lab has this machine's time.
    """
    started = time.monotonic()
    stdout, stderr = bytearray(), bytearray()
    ended: dict[str, Any] | None = None
    with contextlib.closing(_connect(rundir, host)) as connection:
        connection.settimeout(timeout_s + GRACE_S if turn is None else None)
        _send_request(connection, {"argv": list(argv), "timeout_s": timeout_s}, stdin)
        if turn is not None:
            _wait(connection, turn, for_end=on_output is None)
        for frame in _frames(connection, host, argv):
            if frame.kind == wire.EXIT:
                ended = json.loads(frame.payload)
                break
            if on_stdout is not None and frame.kind == wire.STDOUT:
                on_stdout(frame.payload)
            else:
                (stdout if frame.kind == wire.STDOUT else stderr).extend(frame.payload)
            if on_output is not None:
                on_output(frame.payload)
                if turn is not None:
                    _wait(connection, turn, for_end=False)
    if ended is None:
        raise HostFailed(f"host {host} went away while it ran `{argv[0]}`{endings.in_words(rundir, host)}")
    output = (stdout.decode(errors="replace"), stderr.decode(errors="replace"))
    if ended["timeout"]:
        raise CommandTimeout(host, argv, timeout_s, *output)
    if check and ended["code"] != 0:
        raise CommandFailed(host, argv, ended["code"], *output)
    return Result(host, tuple(argv), ended["code"], *output, time.monotonic() - started)


def attach(rundir: Path, host: str, argv: Sequence[str], *, paced: bool = False) -> int:
    """Run a command with this process's terminal as its own; returns its exit code.

    `paced`: the lab has a clock of its own, and meanwhile a second of it is to take a second.
    """
    with contextlib.closing(_connect(rundir, host)) as connection, _raw_terminal():
        request = {"argv": list(argv), "timeout_s": None, "terminal": _terminal_size()}
        connection.sendall(wire.Frame(1, wire.RUN, json.dumps(request).encode()).encode())
        if paced:
            connection.sendall(wire.Frame(1, wire.PACE, b"").encode())
        signal.signal(signal.SIGWINCH, lambda *_: _send(connection, wire.RESIZE, _terminal_size()))
        decoder = wire.Decoder()
        waiting = [connection, sys.stdin]
        while True:
            readable, _, _ = select.select(waiting, [], [])
            if sys.stdin in readable:
                typed = os.read(sys.stdin.fileno(), wire.CHUNK)
                connection.sendall(wire.Frame(1, wire.INPUT, typed or b"\x04").encode())
                waiting = waiting if typed else [connection]
            if connection in readable:
                data = _received(connection)
                if not data:
                    raise HostFailed(f"host {host} went away{endings.in_words(rundir, host)}")
                for frame in decoder.feed(data):
                    if frame.kind == wire.EXIT:
                        return int(json.loads(frame.payload)["code"])
                    os.write(sys.stdout.fileno(), frame.payload)


def converse(
    rundir: Path, host: str, argv: Sequence[str], *, paced: bool = False, terminal: tuple[int, int] | None = None
) -> socket.socket:
    """Start a command; the line to it. See `Converses`, and for `paced` `attach`."""
    connection = _connect(rundir, host)
    try:
        request = {"argv": list(argv), "timeout_s": None, "terminal": terminal}
        connection.sendall(wire.Frame(1, wire.RUN, json.dumps(request).encode()).encode())
        if paced:
            connection.sendall(wire.Frame(1, wire.PACE, b"").encode())
    except OSError as error:
        connection.close()
        raise HostFailed(f"host {host} went away") from error
    return connection


def _connect(rundir: Path, host: str) -> socket.socket:
    if host not in {path.name for path in rundir.glob("hosts/*")}:
        raise HostFailed(f"there is no host {host} in this lab")
    try:
        return sockets.connected(rundir / "hosts" / host, "control.sock", CONNECT_S)
    except OSError as error:  # its kernel has ended, or the lab is being taken down
        raise HostFailed(f"host {host} is not running{endings.in_words(rundir, host)}") from error


def _frames(connection: socket.socket, host: str, argv: Sequence[str]) -> Iterator[wire.Frame]:
    decoder = wire.Decoder()
    while True:
        try:
            data = _received(connection)
        except TimeoutError:
            raise HostFailed(f"host {host} does not answer (`{argv[0]}`)") from None
        if not data:
            return
        yield from decoder.feed(data)


def _received(connection: socket.socket) -> bytes:
    """What has come in; nothing when the other side is gone."""
    try:
        return connection.recv(1 << 16)
    except ConnectionError:
        return b""


def _send_request(connection: socket.socket, request: dict[str, Any], data: bytes) -> None:
    """The request, all its input, and the input's end. A host that goes away meanwhile is noticed by reading."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(wire.Frame(1, wire.RUN, json.dumps(request).encode()).encode())
        for offset in range(0, len(data), wire.CHUNK):
            connection.sendall(wire.Frame(1, wire.INPUT, data[offset : offset + wire.CHUNK]).encode())
        connection.sendall(wire.Frame(1, wire.INPUT, b"").encode())


def _wait(connection: socket.socket, turn: int, *, for_end: bool) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(wire.Frame(1, wire.WAIT, wire.WAITING.pack(turn, for_end)).encode())


def _send(connection: socket.socket, kind: int, content: object) -> None:
    connection.sendall(wire.Frame(1, kind, json.dumps(content).encode()).encode())


def _terminal_size() -> list[int]:
    size = os.get_terminal_size(sys.stdin.fileno()) if sys.stdin.isatty() else os.terminal_size((80, 24))
    return [size.lines, size.columns]


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # what was typed ahead is kept
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
