"""The page's terminals and echo requests on hosts. Both end with the page's connection; while one is open, a second of
a lab in virtual time takes a second.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from aiohttp import WSMsgType, web
from pydantic import BaseModel, ConfigDict, Field

from minigts.errors import InputError
from minigts.lab import Lab, provisioning
from minigts.language import documents
from minigts.machine.lines import Lines
from minigts.providers.agent import protocol
from minigts.providers.base import Streams

CHANNEL = 1
MOST_ROWS, MOST_COLUMNS = 500, 1000
OF_A_SIZE = documents.Bounds(elements=100, bytes=1000)
MOST_LINE_BYTES = 1000
ANSWER = re.compile(rb"icmp_seq=(\d{1,9}) (?:[a-z]{1,10}=\d{1,5} )?time=(\d{1,9}(?:\.\d{1,9})?) ms")
UNANSWERED = re.compile(rb"no answer yet for icmp_seq=(\d{1,9})")
SENT = re.compile(rb"(\d{1,9}) packets transmitted")
INTERVAL_S = 0.2
MOST_S = 60


@asynccontextmanager
async def _line(
    lab: Lab, host: str, argv: Sequence[str], terminal: tuple[int, int] | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    provider = lab.provider
    if not isinstance(provider, Streams):
        raise InputError(f"lab {lab.name} has no terminals: its provider has no connections to commands on a host")
    line = await asyncio.to_thread(provider.converse, host, argv, terminal=terminal)
    reader, writer = await asyncio.open_unix_connection(sock=line)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _payloads(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The command's output, until it ends or its host goes away."""
    decoder = protocol.Decoder()
    while data := await reader.read(1 << 16):
        for frame in decoder.feed(data):
            if frame.kind == protocol.EXIT:
                return
            if frame.kind in (protocol.STDOUT, protocol.STDERR):
                yield frame.payload


class Size(BaseModel):
    """The page's message with a terminal's size, as whole numbers: `{"rows": 24, "columns": 80}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rows: Annotated[int, Field(ge=1, le=MOST_ROWS)]
    columns: Annotated[int, Field(ge=1, le=MOST_COLUMNS)]


def size(text: str) -> Size:
    """The size in the page's message. Raises InputError."""
    try:
        return documents.model(text, Size, OF_A_SIZE)
    except ValueError:
        what = f"its rows, 1 to {MOST_ROWS}, and its columns, 1 to {MOST_COLUMNS}, as whole numbers"
        raise InputError(f"a terminal's size is {what}") from None


async def terminal(socket: web.WebSocketResponse, lab: Lab, host: str) -> None:
    """Connect a websocket to a shell on that host. Bytes are input and output; a text is the terminal's size, which is
    also the first message."""
    first = size(str((await socket.receive()).data))
    argv = await asyncio.to_thread(provisioning.shell_argv, lab, host)
    async with _line(lab, host, argv, (first.rows, first.columns)) as (reader, writer):

        async def show() -> None:
            async for payload in _payloads(reader):
                await socket.send_bytes(payload)
            await socket.close()

        showing = asyncio.create_task(show())
        try:
            async for message in socket:
                for frame in _frames(message.type, message.data):
                    writer.write(frame.encode())
                await writer.drain()
        finally:
            showing.cancel()


def _frames(kind: WSMsgType, data: Any) -> list[protocol.Frame]:
    """The frames to the host for a message of the page. Raises InputError."""
    if kind == WSMsgType.TEXT:
        chosen = size(data)
        return [protocol.Frame(CHANNEL, protocol.RESIZE, json.dumps([chosen.rows, chosen.columns]).encode())]
    if kind != WSMsgType.BINARY:
        return []
    pieces = (data[offset : offset + protocol.CHUNK] for offset in range(0, len(data), protocol.CHUNK))
    return [protocol.Frame(CHANNEL, protocol.INPUT, piece) for piece in pieces]


async def echoes(socket: web.WebSocketResponse, lab: Lab, source: str, target: str, seconds: int) -> None:
    """Send echo requests for `seconds`; the websocket gets each answer's number and RTT in ms, the number of a request
    that had no answer when the next one was sent, and at the end how many were sent."""
    address = address_from(lab, source, target)
    argv = ["ping", "-n", "-O", "-i", str(INTERVAL_S), "-w", str(seconds), "-W", "1", address]
    async with _line(lab, source, argv) as (reader, _):

        async def follow() -> None:
            said = Lines(MOST_LINE_BYTES)
            async for payload in _payloads(reader):
                for line in said.feed(payload):
                    if found := ANSWER.search(line):
                        await socket.send_json({"number": int(found[1]), "rtt_ms": float(found[2])})
                    elif found := UNANSWERED.search(line):
                        await socket.send_json({"unanswered": int(found[1])})
                    elif found := SENT.match(line):
                        await socket.send_json({"sent": int(found[1])})
            await socket.close()

        following = asyncio.create_task(follow())
        try:
            async for _message in socket:  # the page sends nothing; the end of its connection ends the requests
                pass
        finally:
            following.cancel()


def address_from(lab: Lab, source: str, target: str) -> str:
    """The address at which `source` reaches `target`. Raises InputError where it does not."""
    with suppress(KeyError):
        if (path := lab.plan.path(source, target)).reachable:
            return lab.plan.address_over(path)
    raise InputError(f"{source} does not reach {target} over plain hosts")
