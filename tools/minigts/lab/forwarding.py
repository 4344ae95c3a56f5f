"""TCP connections from this machine's loopback to a port of a host, over the host's control line.

The host runs `relay` for each connection. No packet passes a link of the lab, nor a network of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minigts.errors import EnvironmentLacks, InputError, MinigtsError, reading_from
from minigts.lab import relay
from minigts.lab.lab import Lab
from minigts.machine.progress import Progress
from minigts.providers.agent import protocol
from minigts.providers.base import Streams
from minigts.topology.plan.elements import Host

LOOPBACK = "127.0.0.1"
"""The loopback address on a host."""
LISTENS_AT = "127.0.0.2"
"""The loopback address of this machine on which connections are accepted. A browser sends cookies by address whatever
the port: with another address than 127.0.0.1 a page in a lab does not get cookies of this machine's programs."""
PYTHON = "/usr/bin/python3"
CHANNEL = 1
PROBLEM_BYTES = 1000
"""How much of a relay's standard error is kept."""


@dataclass(frozen=True)
class Destination:
    """A TCP port of a host. `inside` in front of a command runs it in the port's network, such as a container's."""

    host: str
    port: int
    addresses: tuple[str, ...]
    """The addresses, in the order in which they are tried."""
    inside: tuple[str, ...] = ()

    @property
    def argv(self) -> list[str]:
        source = Path(relay.__file__).read_text(encoding="utf-8")
        return [*self.inside, PYTHON, "-S", "-E", "-c", source, str(self.port), *self.addresses]


def listening(port: int) -> socket.socket:
    """A socket that listens on that port of LISTENS_AT; port 0: on any free port. Raises InputError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LISTENS_AT, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on {LISTENS_AT}:{port}: {error.strerror}") from error
    return listener


def forward(lab: Lab, destination: Destination, listener: socket.socket, say: Progress) -> None:
    """Carry all connections to the listener until interrupted. `say` gets a sentence for each that failed.

    In virtual time a second of the lab takes at least a second while there is a connection. Raises EnvironmentLacks.
    """
    if not isinstance(lab.provider, Streams):
        raise EnvironmentLacks(f"provider {lab.provider.name} cannot forward")
    asyncio.run(_serve(lab.provider, destination, listener, say))


async def _serve(provider: Streams, destination: Destination, listener: socket.socket, say: Progress) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Carried(reader, writer, await _far_end(provider, destination)).carry(destination, say)
        except ConnectionError:  # the user's program has closed the connection
            pass
        except MinigtsError as error:
            say(str(error))
        finally:
            writer.close()

    server = await asyncio.start_server(carry, sock=listener)
    async with server:
        await server.serve_forever()


async def _far_end(provider: Streams, destination: Destination) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    line = await asyncio.to_thread(provider.converse, destination.host, destination.argv)
    line.settimeout(None)
    return await asyncio.open_connection(sock=line)


class _Carried:
    """One connection: the near end is the user's program, the far end the relay on the host."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._far_reader, self._far_writer = far
        self._under_way = 0
        self._room = asyncio.Event()
        self._room.set()
        self._problem = bytearray()
        self._near_has_gone = False

    async def carry(self, destination: Destination, say: Progress) -> None:
        there = asyncio.create_task(self._there())
        try:
            code = await self._back(destination)
        finally:
            there.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await there
            self._far_writer.close()
        if code is None and not self._near_has_gone:
            say(f"host {destination.host} went away")
        elif code:
            why = bytes(self._problem[-200:]).decode(errors="replace").strip().splitlines()
            say(f"port {destination.port} of {destination.host}: {why[-1] if why else f'exit code {code}'}")

    async def _there(self) -> None:
        try:
            await self._all_there()
        except ConnectionError:
            self._near_has_gone = True
            self._far_writer.close()

    async def _all_there(self) -> None:
        while piece := await self._reader.read(relay.CHUNK):
            await self._room.wait()
            self._under_way += len(piece)
            if self._under_way >= relay.WINDOW:
                self._room.clear()
            await self._send(relay.data(piece))
        await self._send(relay.data(b""))

    async def _back(self, destination: Destination) -> int | None:
        """Carry data from the host; return the relay's exit code, None when the host went away."""
        frames, records = protocol.Decoder(), relay.Records()
        while piece := await self._far_reader.read(1 << 16):
            for frame in frames.feed(piece):
                if frame.kind == protocol.EXIT:
                    with reading_from("the relay", "how it ended"):
                        return protocol.parse_end(frame.payload).code
                if frame.kind == protocol.STDERR:
                    self._problem += frame.payload
                    del self._problem[:-PROBLEM_BYTES]
                elif frame.kind == protocol.STDOUT:
                    with reading_from("the relay", "what it carries"):
                        come = list(records.feed(frame.payload))
                    for record in come:
                        await self._take(record)
        return None

    async def _take(self, record: int | bytes) -> None:
        if isinstance(record, int):
            self._under_way -= record
            self._room.set()
        elif record:
            self._writer.write(record)
            await self._writer.drain()
            await self._send(relay.acknowledgement(len(record)))
        elif self._writer.can_write_eof():
            self._writer.write_eof()

    async def _send(self, record: bytes) -> None:
        for offset in range(0, len(record), protocol.CHUNK):
            piece = record[offset : offset + protocol.CHUNK]
            self._far_writer.write(protocol.Frame(CHANNEL, protocol.INPUT, piece).encode())
        await self._far_writer.drain()


def addresses_of(lab: Lab, host: str) -> Sequence[str]:
    """The addresses at which a program on a machine may listen: its loopback, its own, and those of its segments."""
    machine = lab.plan.machine(host)
    on = machine.on_segments if isinstance(machine, Host) else machine.vlans
    return list(dict.fromkeys((LOOPBACK, *map(lab.plan.address_of, (machine, *on)))))
