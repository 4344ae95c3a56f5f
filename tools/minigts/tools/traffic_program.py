"""The program of `tool: traffic`, which a host's own Python runs: `traffic_program.py serve PORT` and `… send JSON`.

It needs nothing but Python's standard library. Each flow is a connection of its own. The client draws when flows arrive
and how large they are, and prints as JSON when each began, its bytes, and how long it took: `{"alone": [[1460, 0.04]],
"flows": [[0.0, 1460, 0.041], [0.3, 90000, null]]}`, in seconds; null for a flow that had not ended in time. `alone` are
flows of some of these sizes, one after the other before all others.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Any

CHUNK = 65536
MOST_ALONE = 12
"""The most flows that are sent alone, of sizes from the smallest to the largest in equal ratios."""


def sizes(draw: random.Random, asked: dict[str, Any]) -> Iterator[int]:
    """Sizes in bytes without end, by a table of [bytes, cumulative share], or by a distribution with a mean."""
    while True:
        share = draw.random()
        if asked["table"]:
            size = drawn(asked["table"], share)
        elif asked["distribution"] == "exponential":
            size = -math.log(1 - share) * asked["mean"]
        elif asked["distribution"] == "pareto":
            shape = asked["shape"]
            size = asked["mean"] * (shape - 1) / shape / (1 - share) ** (1 / shape)
        else:
            size = asked["mean"]
        yield max(1, round(size))


def drawn(table: Sequence[Sequence[float]], share: float) -> float:
    """The size below which that share of flows lies, on straight lines between the table's points."""
    before_size, before = table[0]
    for size, cumulative in table:
        if share <= cumulative:
            part = (share - before) / (cumulative - before) if cumulative > before else 1.0
            return before_size + part * (size - before_size)
        before_size, before = size, cumulative
    return table[-1][0]


def arrivals(draw: random.Random, asked: dict[str, Any]) -> Iterator[float]:
    """The moments in seconds, below `duration`, at which flows arrive with a mean gap of `gap`: by Poisson, in steady
    gaps, or by Poisson in periods that are on, with nothing in periods that are off; both last by chance."""
    gap, end, now = asked["gap"], asked["duration"], 0.0
    if asked["arrivals"] == "steady":
        yield from (number * gap for number in range(math.ceil(end / gap - 1e-9)))
        return
    bursts = asked["arrivals"] == "on-off"
    on, off = asked["on"], asked["off"]
    gap = gap * on / (on + off) if bursts else gap
    left = -math.log(1 - draw.random()) * on if bursts else math.inf
    while True:
        wait = -math.log(1 - draw.random()) * gap
        while wait > left:
            wait -= left
            now += left - math.log(1 - draw.random()) * off
            left = -math.log(1 - draw.random()) * on
        left -= wait
        now += wait
        if now >= end:
            return
        yield now


async def one(asked: dict[str, Any], size: int) -> float:
    """Send a flow, or ask for it, and return how long it took in seconds, until its last byte had come and, if it was
    sent, was confirmed."""
    began = asyncio.get_running_loop().time()
    plug = socket.socket(socket.AF_INET6 if ":" in asked["address"] else socket.AF_INET, socket.SOCK_STREAM)
    plug.setblocking(False)
    chosen(plug, asked["congestion"])
    try:
        await asyncio.get_running_loop().sock_connect(plug, (asked["address"], asked["port"]))
        reader, writer = await asyncio.open_connection(sock=plug)
    except BaseException:
        plug.close()
        raise
    try:
        writer.write(f"{asked['direction']} {size} {asked['congestion'] or '-'}\n".encode())
        if asked["direction"] == "send":
            await pour(writer, size)
            if not await reader.read(1):
                raise ConnectionError("the connection ended before the flow was confirmed")
        else:
            await drain(reader, size)
        return asyncio.get_running_loop().time() - began
    finally:
        writer.close()


def chosen(plug: socket.socket, congestion: str) -> None:
    """Set the congestion control, if one is named; and hold no flow's end back until its beginning is confirmed."""
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if congestion:
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())


async def pour(writer: asyncio.StreamWriter, size: int) -> None:
    block = bytes(CHUNK)
    for at in range(0, size, CHUNK):
        writer.write(block[: size - at])
        await writer.drain()


async def drain(reader: asyncio.StreamReader, size: int) -> None:
    while size > 0:
        got = await reader.read(CHUNK)
        if not got:
            raise ConnectionError("the connection ended before the flow did")
        size -= len(got)


async def send(asked: dict[str, Any]) -> dict[str, Any]:
    moments = list(arrivals(random.Random(f"arrivals {asked['seed']}"), asked))
    several = sizes(random.Random(f"sizes {asked['seed']}"), asked)
    drawn_sizes = [next(several) for _ in moments]
    first = representative(drawn_sizes) if asked["alone"] else ()
    alone = [[size, round(await one(asked, size), 6)] for size in first]
    loop = asyncio.get_running_loop()
    began = loop.time()
    found: list[list[Any]] = []

    async def at(moment: float, size: int) -> None:
        await asyncio.sleep(max(0.0, began + moment - loop.time()))
        row = [round(loop.time() - began, 6), size, None]
        found.append(row)
        row[2] = round(await one(asked, size), 6)

    tasks = [asyncio.create_task(at(moment, size)) for moment, size in zip(moments, drawn_sizes, strict=True)]
    if tasks:
        done, late = await asyncio.wait(tasks, timeout=asked["duration"] + asked["patience"])
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for task in done:
            task.result()
    return {"alone": alone, "flows": sorted(found, key=lambda row: row[:2])}


def representative(drawn_sizes: Sequence[int]) -> list[int]:
    """Sizes from the smallest to the largest in equal ratios; each once."""
    if not drawn_sizes:
        return []
    low, high = min(drawn_sizes), max(drawn_sizes)
    steps = [low * (high / low) ** (step / (MOST_ALONE - 1)) for step in range(MOST_ALONE)]
    return sorted({round(size) for size in steps})


async def serve(port: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            direction, size, congestion = (await reader.readline()).decode().split()
            if direction == "send":
                await drain(reader, int(size))
                writer.write(b".")
                await writer.drain()
            else:
                chosen(writer.get_extra_info("socket"), congestion.strip("-"))
                await pour(writer, int(size))
        except (ConnectionError, ValueError):
            pass  # the client has ended, or gave up
        finally:
            writer.close()

    server = await asyncio.start_server(answer, None, port, backlog=1024)
    await server.serve_forever()


def main() -> None:
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2])))
        return
    try:
        print(json.dumps(asyncio.run(send(json.loads(sys.argv[2])))))  # noqa: T201 (its output is what is read)
    except (TimeoutError, OSError) as error:
        sys.exit(f"traffic: {error}")


if __name__ == "__main__":
    main()
