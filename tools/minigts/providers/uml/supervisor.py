"""The process that owns a lab of User-Mode Linux kernels: starts them, keeps their control lines, ends with them.

Run as `python -m minigts.providers.uml.supervisor RUNDIR [PARENT]`; told its parent's id, it ends with it. It reads
RUNDIR/launch.json, writes RUNDIR/supervisor.json before it starts anything, and listens on hosts/NAME/control.sock for
clients that speak the frames of wire.py. A client that goes away takes its commands with it. Standard library only, so
that it starts fast and stays small.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from minigts import shell
from minigts.providers.uml import process, wire
from minigts.providers.uml.kernel import Machine, command_line, memory_directory

SOCKET_BUFFER_BYTES = 4 << 20
BUFFER_OPTIONS = ((32, socket.SO_SNDBUF), (33, socket.SO_RCVBUF))
"""SO_SNDBUFFORCE and SO_RCVBUFFORCE, which Python does not name and which let root pass net.core.wmem_max (socket(7)),
each with what others have to be content with."""
WAITING_LIMIT_BYTES = 1 << 20
UNREAD_LIMIT_BYTES = 64 << 20
"""A client that leaves this much of its commands' output unread is cut off."""


Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Launch:
    """What to start. `links` holds, for each link, the (host, port index) of its two ends."""

    boot_directory: Path
    """Holds `linux` and the libraries it runs with."""
    base: Path
    machines: tuple[Machine, ...]
    links: tuple[tuple[tuple[str, int], tuple[str, int]], ...]
    instead: tuple[str, ...] = ()
    """What runs in place of each kernel, if anything; it gets the descriptor of its control line as last argument."""

    @classmethod
    def read(cls, path: Path) -> Launch:
        raw = json.loads(path.read_text())
        machines = tuple(Machine(**{**machine, "macs": tuple(machine["macs"])}) for machine in raw["machines"])
        links = tuple(((a[0], a[1]), (b[0], b[1])) for a, b in raw["links"])
        return cls(Path(raw["boot_directory"]), Path(raw["base"]), machines, links, tuple(raw["instead"]))

    def write(self, path: Path) -> None:
        content = {
            "boot_directory": str(self.boot_directory),
            "base": str(self.base),
            "machines": [asdict(machine) for machine in self.machines],
            "links": self.links,
            "instead": self.instead,
        }
        path.write_text(json.dumps(content))


@dataclass(eq=False)
class Client:
    """A connection to a host's socket, with its running commands: its own channel -> the agent's channel."""

    writer: asyncio.StreamWriter
    channels: dict[int, int] = field(default_factory=dict)

    def send(self, frame: wire.Frame) -> None:
        if self.writer.transport.get_write_buffer_size() > UNREAD_LIMIT_BYTES:
            self.writer.transport.abort()
        elif not self.writer.is_closing():
            self.writer.write(frame.encode())


class Line:
    """Writes to an agent, never more than a window ahead of what it has taken."""

    def __init__(self, writer: asyncio.StreamWriter, window: int) -> None:
        self._writer = writer
        self._waiting = bytearray()
        self._credit = window
        self._room = asyncio.Event()
        self._room.set()

    def send(self, frame: wire.Frame) -> None:
        self._waiting += frame.encode()
        self._pump()

    def taken(self, count: int) -> None:
        self._credit += count
        self._pump()

    async def room(self) -> None:
        """Wait until what is to be written has become little."""
        await self._room.wait()

    def _pump(self) -> None:
        now = self._waiting[: self._credit]
        if now and not self._writer.is_closing():
            self._writer.write(bytes(now))
        del self._waiting[: len(now)]
        self._credit -= len(now)
        if len(self._waiting) > WAITING_LIMIT_BYTES:
            self._room.clear()
        else:
            self._room.set()


class Host:
    """A running kernel and whoever talks to it."""

    def __init__(
        self, name: str, kernel: subprocess.Popen[bytes], line: socket.socket, window: int = wire.WINDOW
    ) -> None:
        self.name, self.kernel, self._socket, self._window = name, kernel, line, window
        self._owners: dict[int, tuple[Client, int]] = {}
        self._clients: set[Client] = set()
        self._last_channel = 0
        self._answers = asyncio.Event()
        self._ended = asyncio.Event()

    async def serve(self, path: str) -> None:
        """Carry frames until the kernel ends; then close every connection, so that clients learn of it."""
        reader, writer = await asyncio.open_connection(sock=self._socket)
        self._line = Line(writer, self._window)
        server = await _serve_at(path, self._client_connects)
        decoder = wire.Decoder()
        try:
            await _skip_to_hello(reader)
            self._answers.set()
            while data := await reader.read(1 << 16):
                for frame in decoder.feed(data):
                    if frame.kind == wire.TAKEN:
                        self._line.taken(*wire.COUNT.unpack(frame.payload))
                    else:
                        self._to_client(frame)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._ended.set()
            server.close()
            for client in self._clients:
                client.writer.close()

    def _to_client(self, frame: wire.Frame) -> None:
        client, channel = self._owners.get(frame.channel, (None, 0))
        if client is not None:
            client.send(wire.Frame(channel, frame.kind, frame.payload))
            if frame.kind == wire.EXIT:
                del client.channels[channel]
        if frame.kind == wire.EXIT:
            self._owners.pop(frame.channel, None)

    async def _client_connects(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(writer)
        self._clients.add(client)
        decoder = wire.Decoder()
        try:
            await self._answers.wait()
            while data := await reader.read(1 << 16):
                for frame in decoder.feed(data):
                    self._to_agent(client, frame)
                await self._line.room()
        except ConnectionError:
            pass
        finally:
            self._clients.discard(client)
            for channel in client.channels.values():
                self._line.send(wire.Frame(channel, wire.KILL, b""))
                self._owners.pop(channel, None)
            writer.close()

    def _to_agent(self, client: Client, frame: wire.Frame) -> None:
        if frame.kind == wire.RUN:
            self._last_channel += 1
            client.channels[frame.channel] = self._last_channel
            self._owners[self._last_channel] = (client, frame.channel)
        channel = client.channels.get(frame.channel)
        if channel is not None:
            self._line.send(wire.Frame(channel, frame.kind, frame.payload))


async def _serve_at(path: str, connected: Connected) -> asyncio.Server:
    """The socket appears when it listens, never before; and it stays when the server closes, for one that refuses
    tells a client at once that the kernel has ended."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{path}.new")
    server = await asyncio.start_unix_server(connected, sock=listener)
    Path(f"{path}.new").rename(path)
    return server


async def _skip_to_hello(reader: asyncio.StreamReader) -> None:
    await reader.readuntil(wire.HELLO)


class Kernels:
    """All kernels of a lab, with both ends of every link.

    The ends are kept and outlive the kernels, so that one can be started again on its own links. What comes to one that
    has ended is thrown away.
    """

    def __init__(self, launch: Launch, rundir: Path) -> None:
        self._launch, self._rundir = launch, rundir
        self._machines = {machine.name: machine for machine in launch.machines}
        self._ends: dict[tuple[str, int], socket.socket] = {}
        for first, second in launch.links:
            self._ends[first], self._ends[second] = _link()
        self._running: dict[str, Host] = {}
        self._serving: list[asyncio.Task[None]] = []

    def start_all(self) -> None:
        for name in self._machines:
            self._start(name)

    async def attend(self) -> None:
        """Collect kernels as they end, and start those again that somebody has asked for."""
        while True:
            for name, host in self._running.items():
                if host.kernel.poll() is not None:
                    self._ended(name)
            await asyncio.sleep(0.2)

    async def end_all(self) -> None:
        for host in self._running.values():
            host.kernel.kill()
        await asyncio.gather(*self._serving)
        while any(host.kernel.poll() is None for host in self._running.values()):
            await asyncio.sleep(0.01)

    def _start(self, name: str) -> None:
        machine = self._machines[name]
        for end in self._ends_of(name):
            asyncio.get_running_loop().remove_reader(end)
        self._running[name] = _start_kernel(machine, self._launch, self._rundir, self._ends)
        self._serving.append(asyncio.create_task(self._running[name].serve(machine.control)))

    def _ended(self, name: str) -> None:
        asked = process.again(self._rundir, name)
        if asked.exists():
            asked.unlink()
            self._start(name)
            return
        for end in self._ends_of(name):
            asyncio.get_running_loop().add_reader(end, _throw_away, end)

    def _ends_of(self, name: str) -> list[socket.socket]:
        return [self._ends[name, index] for index in range(len(self._machines[name].macs))]


def _throw_away(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.recv(1 << 16, socket.MSG_DONTWAIT)


def _start_kernel(machine: Machine, launch: Launch, rundir: Path, ends: dict[tuple[str, int], socket.socket]) -> Host:
    ours, theirs = socket.socketpair()
    links = [ends[machine.name, index].fileno() for index in range(len(machine.macs))]
    argv = command_line(machine, rundir, launch.base, theirs.fileno(), links)
    if launch.instead:
        argv = [*launch.instead, str(theirs.fileno())]
    with (rundir / machine.console).open("ab") as console:
        kernel = shell.start(
            argv,
            output=console.fileno(),
            pass_fds=(theirs.fileno(), *links),
            env={
                "LD_LIBRARY_PATH": ".",
                "TMPDIR": str(memory_directory() or rundir),
                process.MARK: str(rundir),
            },
            cwd=launch.boot_directory,
            new_session=False,
            dies_with_parent=True,
        )
    theirs.close()
    return Host(machine.name, kernel, ours)


def _link() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in pair:
        for forced, asked in BUFFER_OPTIONS:
            try:
                end.setsockopt(socket.SOL_SOCKET, forced, SOCKET_BUFFER_BYTES)
            except PermissionError:
                end.setsockopt(socket.SOL_SOCKET, asked, SOCKET_BUFFER_BYTES)
    return pair


async def supervise(rundir: Path) -> None:
    launch = Launch.read(rundir / process.LAUNCH)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    kernels = Kernels(launch, rundir)
    kernels.start_all()
    attending = asyncio.create_task(kernels.attend())
    await stop.wait()
    attending.cancel()
    await kernels.end_all()


def main() -> None:
    rundir = Path(sys.argv[1])
    if len(sys.argv) > 2:
        shell.die_with_parent(int(sys.argv[2]))
    os.chdir(rundir)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    process.record(rundir)
    asyncio.run(supervise(rundir))


if __name__ == "__main__":
    main()
