#!/usr/bin/env python3
"""ports.py PORT:PROCESS:ADDRESS:PORT…: TCP ports of this host that lead into containers, as docker-proxy makes them.

A container's network is that of PROCESS. The connection to ADDRESS is made in there, so the host needs no route to it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

BLOCK_BYTES = 1 << 16
OWN = os.open("/proc/self/ns/net", os.O_RDONLY)


def socket_in(network: int) -> socket.socket:
    """A socket belongs to the network in which it was made; setns(2) is of this thread, which is the only one."""
    os.setns(network, os.CLONE_NEWNET)
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    finally:
        os.setns(OWN, os.CLONE_NEWNET)


async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Until the source ends, which the target is told."""
    while data := await source.read(BLOCK_BYTES):
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()


async def listen(port: int, network: int, address: str, inside: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = socket_in(network)
        try:
            await asyncio.get_running_loop().sock_connect(made, (address, inside))
            far_reader, far_writer = await asyncio.open_connection(sock=made)
            await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))
            far_writer.close()
        except OSError as error:
            sys.stderr.write(f"port {port}: {address}:{inside}: {error}\n")
            sys.stderr.flush()
            made.close()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", port)
    await server.serve_forever()


async def main(words: list[str]) -> None:
    several = []
    for word in words:
        port, process, address, inside = word.split(":")
        network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
        several.append(listen(int(port), network, address, int(inside)))
    await asyncio.gather(*several)


asyncio.run(main(sys.argv[1:]))
