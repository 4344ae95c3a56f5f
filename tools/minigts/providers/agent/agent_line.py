"""The line to one host's agent, which all clients of the host share. Standard library only."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Protocol

from minigts.providers.agent import protocol, sockets

WAITING_LIMIT_BYTES = 1 << 20
UNREAD_LIMIT_BYTES = 64 << 20
"""A client that leaves this much of its commands' output unread is disconnected after a CUT frame."""
NOT_FOR_THE_AGENT = (protocol.WAIT, protocol.PACE)
"""Frames for the lab's clock, which does not pass them on to the agent."""

HEARD_TURNS = 3
"""How many turns of the loop pass until what has been read off a line is with the clients."""

NOBODY: Mapping[str, str] = MappingProxyType({})

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(eq=False)
class Client:
    """A client's connection. `channels` maps its channel of each running command to the agent's channel. `host` is the
    light host for which its commands are; empty for the host of the agent itself."""

    writer: asyncio.StreamWriter
    host: str = ""
    channels: dict[int, int] = field(default_factory=dict)

    def send(self, frame: protocol.Frame) -> bool:
        """Send a frame; False when the client has left too much unread and is disconnected."""
        if self.writer.is_closing():
            return True
        if self.writer.transport.get_write_buffer_size() <= UNREAD_LIMIT_BYTES:
            self.writer.write(frame.encode())
            return True
        self.writer.write(protocol.Frame(0, protocol.CUT, b"").encode())
        self.writer.close()  # takes effect when the client has read what is buffered
        return False


class AgentInput:
    """Writes to an agent, never more than `window` bytes ahead of what the agent has read."""

    def __init__(self, writer: asyncio.StreamWriter, window: int) -> None:
        self._writer = writer
        self._waiting = bytearray()
        self._credit = self._window = window
        self._for_the_agent = self._taken = 0
        self._room = asyncio.Event()
        self._room.set()

    def send(self, frame: protocol.Frame) -> int:
        """Send a frame; return how many bytes the agent will have read in total once it has read this frame."""
        data = frame.encode()
        if frame.kind not in NOT_FOR_THE_AGENT:
            self._for_the_agent += len(data)
        self._waiting += data
        self._pump()
        return self._for_the_agent

    def note_read(self, count: int) -> int:
        """Note that the agent has read `count` more bytes; return the total. The credit never exceeds the window, even
        if the agent claims more than it was sent."""
        self._credit = min(self._credit + count, self._window)
        self._taken += count
        self._pump()
        return self._taken

    async def room(self) -> None:
        """Wait until at most WAITING_LIMIT_BYTES wait to be written."""
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


class SupervisedProcess(Protocol):
    """A process that a supervisor has started: subprocess.Popen, or a class with these methods."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def kill(self) -> None: ...
    def send_signal(self, number: int, /) -> None: ...


class AgentHost:
    """A host's process (a kernel or an SSH connection), the line to its agent, and the clients of that agent.

    Frames from the host are checked here for all clients: if one is malformed, the line is closed and `on_fault` is
    called with the reason. `before_end` is called when the line has ended, before any client learns of it.

    `last_channel` is the last channel that the agent has had on an earlier line; it does not greet again. None: the
    agent has still to greet.
    """

    def __init__(
        self,
        name: str,
        process: SupervisedProcess,
        line: socket.socket,
        window: int = protocol.WINDOW,
        before_end: Callable[[], None] = lambda: None,
        *,
        last_channel: int | None = None,
    ) -> None:
        self.on_fault: Callable[[str], None] = lambda why: None
        self.name, self.process, self._socket, self._window = name, process, line, window
        self._before_end = before_end
        self._untaken: deque[tuple[int, Client, int]] = deque()
        self._owners: dict[int, tuple[Client, int]] = {}
        self._clients: set[Client] = set()
        self._has_greeted, self._last_channel = last_channel is not None, last_channel or 0
        self._answers = asyncio.Event()
        self._has_ended = False

    async def serve(self, path: str, sharing: Mapping[str, str] = NOBODY) -> None:
        """Carry frames until the line ends; then close every client's connection. `sharing` has, by the paths of their
        sockets, the light hosts that share the host's kernel."""
        reader, writer = await asyncio.open_connection(sock=self._socket)
        self._line = AgentInput(writer, self._window)
        servers = [
            await _serve_at(each, partial(self._client_connects, host)) for each, host in {path: "", **sharing}.items()
        ]
        decoder = protocol.Decoder(protocol.LONGEST_ANSWER)
        try:
            data = b"" if self._has_greeted else await _skip_to_hello(reader)
            self._answers.set()
            while True:
                for frame in decoder.feed(data):
                    self._hear(protocol.require_answer(frame))
                if not (data := await reader.read(1 << 16)):
                    break
        except protocol.Malformed as fault:
            self.on_fault(str(fault))
        except (ConnectionError, EOFError):
            pass
        finally:
            self._has_ended = True
            self._before_end()
            writer.close()
            await _close(servers)
            self._answers.set()
            for client in self._clients:
                client.writer.close()

    def _hear(self, frame: protocol.Frame) -> None:
        if frame.kind == protocol.TAKEN:
            self._has_taken(*protocol.COUNT.unpack(frame.payload))
        else:
            self._to_client(frame)

    def _has_taken(self, count: int) -> None:
        """Tell each client with an unread request that the agent is reading, even if not yet that request."""
        taken = self._line.note_read(count)
        for client, channel in dict.fromkeys((client, channel) for _, client, channel in self._untaken):
            client.send(protocol.Frame(channel, protocol.TAKEN, b""))
        while self._untaken and self._untaken[0][0] <= taken:
            self._untaken.popleft()

    def _to_client(self, frame: protocol.Frame) -> None:
        client, channel = self._owners.get(frame.channel, (None, 0))
        if client is not None:
            if not client.send(protocol.Frame(channel, frame.kind, frame.payload)):
                self._end_commands(client)
            elif frame.kind == protocol.EXIT:
                client.channels.pop(channel, None)
        if frame.kind == protocol.EXIT:
            self._owners.pop(frame.channel, None)

    def _end_commands(self, client: Client) -> None:
        for channel in client.channels.values():
            self._line.send(protocol.Frame(channel, protocol.KILL, b""))
            self._owners.pop(channel, None)
        client.channels.clear()

    async def _client_connects(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._has_ended:
            writer.close()
            return
        client = Client(writer, host)
        self._clients.add(client)
        decoder = protocol.Decoder()
        try:
            if not self._answers.is_set():
                client.send(protocol.Frame(0, protocol.HOST, b"\0"))
            await self._answers.wait()
            client.send(protocol.Frame(0, protocol.HOST, protocol.GREETED))
            while data := await reader.read(1 << 16):
                for frame in decoder.feed(data):
                    if frame.kind == protocol.HEARD:
                        await self._tell_what_is_heard(client, frame.channel)
                    else:
                        self._to_agent(client, frame)
                await self._line.room()
        except (ConnectionError, protocol.Malformed):
            pass
        finally:
            self._clients.discard(client)
            self._end_commands(client)
            writer.close()

    def _to_agent(self, client: Client, frame: protocol.Frame) -> None:
        if frame.kind == protocol.RUN:
            self._last_channel += 1
            client.channels[frame.channel] = self._last_channel
            self._owners[self._last_channel] = (client, frame.channel)
        elif frame.kind == protocol.TAKE_OVER:
            self._take_over(client, frame)
            return
        channel = client.channels.get(frame.channel)
        if channel is not None:
            sent = protocol.Frame(channel, frame.kind, frame.payload)
            end = self._line.send(sent.run_of(client.host) if frame.kind == protocol.RUN else sent)
            if frame.kind in (protocol.RUN, protocol.ASK):
                self._untaken.append((end, client, frame.channel))

    def _take_over(self, client: Client, frame: protocol.Frame) -> None:
        """Raises Malformed."""
        if len(frame.payload) != protocol.COUNT.size:
            raise protocol.Malformed("it named no channel")
        (channel,) = protocol.COUNT.unpack(frame.payload)
        if 0 < channel <= self._last_channel and channel not in self._owners:
            client.channels[frame.channel] = channel
            self._owners[channel] = (client, frame.channel)

    async def _tell_what_is_heard(self, client: Client, channel: int) -> None:
        """Answer once all that has come on the line is on its way to the clients."""
        while not self._has_ended and _unread(self._socket):
            await asyncio.sleep(0)
        for _ in range(HEARD_TURNS):
            await asyncio.sleep(0)
        number = client.channels.get(channel, 0)
        client.send(protocol.Frame(channel, protocol.HEARD, protocol.COUNT.pack(number)))


def _unread(line: socket.socket) -> int:
    """How many bytes of a socket nobody has read (unix(7), SIOCINQ)."""
    (count,) = struct.unpack("i", fcntl.ioctl(line, termios.FIONREAD, bytes(4)))
    return int(count)


async def _serve_at(path: str, connected: Connected) -> asyncio.Server:
    """The socket's file stays when the server closes, so that a refused connection tells a client at once that the
    kernel has ended."""
    return await asyncio.start_unix_server(connected, sock=sockets.listening(path))


async def _close(servers: Sequence[asyncio.Server]) -> None:
    """Close servers after all accepted connections have a transport: asyncio would leave others open for ever."""
    for listener in (each for server in servers for each in server.sockets):
        asyncio.get_running_loop().remove_reader(listener.fileno())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for server in servers:
        server.close()


async def _skip_to_hello(reader: asyncio.StreamReader) -> bytes:
    """Read up to the agent's greeting, whatever precedes it; return the data after it. Raises EOFError."""
    seen = b""
    while data := await reader.read(1 << 16):
        seen += data
        noise, greeting, rest = seen.partition(protocol.HELLO)
        if greeting:
            return rest
        seen = noise[-len(protocol.HELLO) :]
    raise EOFError
