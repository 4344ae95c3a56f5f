"""The line to one host's agent, shared by all who talk to it. Standard library only."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from minigts.providers.agent import sockets, wire

WAITING_LIMIT_BYTES = 1 << 20
UNREAD_LIMIT_BYTES = 64 << 20
"""A client that leaves this much of its commands' output unread is cut off."""

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


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
        self._credit = self._window = window
        self._room = asyncio.Event()
        self._room.set()

    def send(self, frame: wire.Frame) -> None:
        self._waiting += frame.encode()
        self._pump()

    def taken(self, count: int) -> None:
        """Whoever takes more than it was sent has no more credit than at the beginning."""
        self._credit = min(self._credit + count, self._window)
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
    """Whatever has a host's agent at its other end, a kernel or an SSH connection, and whoever talks to it.

    What comes from the other end is judged here, for all who talk to it: a host that says what no agent says has its
    line closed, and `on_fault` is told why.
    """

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], line: socket.socket, window: int = wire.WINDOW
    ) -> None:
        self.on_fault: Callable[[str], None] = lambda why: None
        self.name, self.process, self._socket, self._window = name, process, line, window
        self._owners: dict[int, tuple[Client, int]] = {}
        self._clients: set[Client] = set()
        self._last_channel = 0
        self._answers = asyncio.Event()

    async def serve(self, path: str) -> None:
        """Carry frames until the line ends; then close every connection, so that clients learn of it."""
        reader, writer = await asyncio.open_connection(sock=self._socket)
        self._line = Line(writer, self._window)
        server = await _serve_at(path, self._client_connects)
        decoder = wire.Decoder(wire.LONGEST_ANSWER)
        try:
            data = await _skip_to_hello(reader)
            self._answers.set()
            while True:
                for frame in decoder.feed(data):
                    self._hear(wire.require_answer(frame))
                if not (data := await reader.read(1 << 16)):
                    break
        except wire.Malformed as fault:
            self.on_fault(str(fault))
        except (ConnectionError, EOFError):
            pass
        finally:
            writer.close()
            server.close()
            for client in self._clients:
                client.writer.close()

    def _hear(self, frame: wire.Frame) -> None:
        if frame.kind == wire.TAKEN:
            self._line.taken(*wire.COUNT.unpack(frame.payload))
        else:
            self._to_client(frame)

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
        except (ConnectionError, wire.Malformed):
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
    """Its socket stays when the server closes: one that refuses tells a client at once that the kernel has ended."""
    return await asyncio.start_unix_server(connected, sock=sockets.listening(path))


async def _skip_to_hello(reader: asyncio.StreamReader) -> bytes:
    """What follows the greeting, so far; however much comes before it. Raises EOFError."""
    seen = b""
    while data := await reader.read(1 << 16):
        seen += data
        noise, greeting, rest = seen.partition(wire.HELLO)
        if greeting:
            return rest
        seen = noise[-len(wire.HELLO) :]
    raise EOFError
