"""The line to one host's agent, shared by all who talk to it. Standard library only."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from minigts.providers.agent import sockets, wire

WAITING_LIMIT_BYTES = 1 << 20
UNREAD_LIMIT_BYTES = 64 << 20
"""A client that leaves this much of its commands' output unread is cut off, and told so."""
NOT_FOR_THE_AGENT = (wire.WAIT, wire.PACE)
"""What a lab's clock keeps of what is written."""

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(eq=False)
class Client:
    """A connection to a host's socket, with its running commands: its own channel -> the agent's channel."""

    writer: asyncio.StreamWriter
    channels: dict[int, int] = field(default_factory=dict)

    def send(self, frame: wire.Frame) -> bool:
        """False when it has left so much unread that this is the end."""
        if self.writer.is_closing():
            return True
        if self.writer.transport.get_write_buffer_size() <= UNREAD_LIMIT_BYTES:
            self.writer.write(frame.encode())
            return True
        self.writer.write(wire.Frame(0, wire.CUT, b"").encode())
        self.writer.close()  # once it has read what there is
        return False


class Line:
    """Writes to an agent, never more than a window ahead of what it has taken."""

    def __init__(self, writer: asyncio.StreamWriter, window: int) -> None:
        self._writer = writer
        self._waiting = bytearray()
        self._credit = self._window = window
        self._for_the_agent = self._taken = 0
        self._room = asyncio.Event()
        self._room.set()

    def send(self, frame: wire.Frame) -> int:
        """How many bytes the agent will have taken when it has taken this, too."""
        data = frame.encode()
        if frame.kind not in NOT_FOR_THE_AGENT:
            self._for_the_agent += len(data)
        self._waiting += data
        self._pump()
        return self._for_the_agent

    def taken(self, count: int) -> int:
        """How many bytes the agent has taken altogether. Who takes more than it was sent has no more credit than at the
        beginning."""
        self._credit = min(self._credit + count, self._window)
        self._taken += count
        self._pump()
        return self._taken

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


class Process(Protocol):
    """What a supervisor has started: subprocess.Popen, or what is as that."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def kill(self) -> None: ...
    def send_signal(self, number: int, /) -> None: ...


class Host:
    """Whatever has a host's agent at its other end, a kernel or an SSH connection, and whoever talks to it.

    What comes from the other end is judged here, for all who talk to it: a host that says what no agent says has its
    line closed, and `on_fault` is told why. `before_end` is called when the line has ended, before any client learns
    of it.
    """

    def __init__(
        self,
        name: str,
        process: Process,
        line: socket.socket,
        window: int = wire.WINDOW,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.on_fault: Callable[[str], None] = lambda why: None
        self.name, self.process, self._socket, self._window = name, process, line, window
        self._before_end = before_end
        self._untaken: deque[tuple[int, Client, int]] = deque()
        self._owners: dict[int, tuple[Client, int]] = {}
        self._clients: set[Client] = set()
        self._last_channel = 0
        self._answers = asyncio.Event()
        self._has_ended = False

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
            self._has_ended = True
            self._before_end()
            writer.close()
            await _close(server)
            self._answers.set()
            for client in self._clients:
                client.writer.close()

    def _hear(self, frame: wire.Frame) -> None:
        if frame.kind == wire.TAKEN:
            self._has_taken(*wire.COUNT.unpack(frame.payload))
        else:
            self._to_client(frame)

    def _has_taken(self, count: int) -> None:
        """Whoever waits for the agent to take something learns that it does, also if it has not come to that yet."""
        taken = self._line.taken(count)
        for client, channel in dict.fromkeys((client, channel) for _, client, channel in self._untaken):
            client.send(wire.Frame(channel, wire.TAKEN, b""))
        while self._untaken and self._untaken[0][0] <= taken:
            self._untaken.popleft()

    def _to_client(self, frame: wire.Frame) -> None:
        client, channel = self._owners.get(frame.channel, (None, 0))
        if client is not None:
            if not client.send(wire.Frame(channel, frame.kind, frame.payload)):
                self._end_commands(client)
            elif frame.kind == wire.EXIT:
                client.channels.pop(channel, None)
        if frame.kind == wire.EXIT:
            self._owners.pop(frame.channel, None)

    def _end_commands(self, client: Client) -> None:
        for channel in client.channels.values():
            self._line.send(wire.Frame(channel, wire.KILL, b""))
            self._owners.pop(channel, None)
        client.channels.clear()

    async def _client_connects(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._has_ended:
            writer.close()
            return
        client = Client(writer)
        self._clients.add(client)
        decoder = wire.Decoder()
        try:
            if not self._answers.is_set():
                client.send(wire.Frame(0, wire.HOST, b"\0"))
            await self._answers.wait()
            client.send(wire.Frame(0, wire.HOST, wire.GREETED))
            while data := await reader.read(1 << 16):
                for frame in decoder.feed(data):
                    self._to_agent(client, frame)
                await self._line.room()
        except (ConnectionError, wire.Malformed):
            pass
        finally:
            self._clients.discard(client)
            self._end_commands(client)
            writer.close()

    def _to_agent(self, client: Client, frame: wire.Frame) -> None:
        if frame.kind == wire.RUN:
            self._last_channel += 1
            client.channels[frame.channel] = self._last_channel
            self._owners[self._last_channel] = (client, frame.channel)
        channel = client.channels.get(frame.channel)
        if channel is not None:
            end = self._line.send(wire.Frame(channel, frame.kind, frame.payload))
            if frame.kind in (wire.RUN, wire.ASK):
                self._untaken.append((end, client, frame.channel))


async def _serve_at(path: str, connected: Connected) -> asyncio.Server:
    """Its socket stays when the server closes: one that refuses tells a client at once that the kernel has ended."""
    return await asyncio.start_unix_server(connected, sock=sockets.listening(path))


async def _close(server: asyncio.Server) -> None:
    """A connection that has been accepted, and has no transport yet when its server closes, would be nobody's: asyncio
    keeps it open and tells no one.
    """
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener.fileno())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    server.close()


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
