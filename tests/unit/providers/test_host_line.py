"""What the supervisor takes of a host's control line: an agent's frames, with a bound; who says else is ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from minigts.errors import HostFailed
from minigts.providers.agent import client, ended, protocol
from minigts.providers.agent.agent_line import AgentHost

WELL = b'{"code": 0, "timeout": false}'
PATIENCE_S = 20


def head(kind: int, length: int) -> bytes:
    return protocol.HEADER.pack(1, kind, length)


def frame(kind: int, payload: bytes = b"") -> bytes:
    return protocol.Frame(1, kind, payload).encode()


LIES = {
    "a length of 4 GiB": (
        head(protocol.STDOUT, 0xFFFFFFFF),
        "it began a frame of 4294967295 bytes on its control line",
    ),
    "a byte more than any": (head(protocol.STDOUT, protocol.LONGEST_ANSWER + 1), "it began a frame of 65537 bytes"),
    "a request": (frame(protocol.RUN, b"{}"), "it sent a frame of kind 1 on its control line"),
    "no kind": (frame(77), "it sent a frame of kind 77"),
    "what it has taken, in two bytes": (frame(protocol.TAKEN, b"xx"), "it said what it has taken in 2 bytes"),
    "an end that says nothing": (frame(protocol.EXIT), "it said that a command has ended, and not how"),
    "an end without a code": (
        frame(protocol.EXIT, b'{"timeout": false}'),
        "it said that a command has ended, and not how",
    ),
    "an end that is a list": (frame(protocol.EXIT, b"[]"), "it said that a command has ended, and not how"),
    "an end in deep brackets": (frame(protocol.EXIT, b"[" * 60_000), "it said that a command has ended, and not how"),
    "an end that is no number": (frame(protocol.EXIT, b'{"code": "0", "timeout": false}'), "as none can end"),
    "an end that no command has": (frame(protocol.EXIT, b'{"code": 256, "timeout": false}'), "as none can end"),
    "an end that is neither": (frame(protocol.EXIT, b'{"code": true, "timeout": 1}'), "as none can end"),
}


async def _served(tmp_path: Path, act: Callable[[AgentHost, asyncio.StreamWriter], Awaitable[None]]) -> list[str]:
    """What was found wrong while `act` was the host's end of the line."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(["sleep", "100"])
    host, faults = AgentHost("ams", process, ours), list[str]()
    host.on_fault = faults.append
    serving = asyncio.create_task(host.serve(str(tmp_path / "control.sock")))
    try:
        _, writer = await asyncio.open_connection(sock=theirs)
        await act(host, writer)
        writer.close()
        await asyncio.wait_for(serving, PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    return faults


def served(tmp_path: Path, said: bytes) -> list[str]:
    async def say(_host: AgentHost, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        with contextlib.suppress(ConnectionError):  # it has been heard enough
            await writer.drain()

    return asyncio.run(_served(tmp_path, say))


@pytest.mark.parametrize(("said", "found"), LIES.values(), ids=LIES)
def test_who_says_what_no_agent_says_is_named_for_it(said: bytes, found: str, tmp_path: Path) -> None:
    (fault,) = served(tmp_path, protocol.HELLO + frame(protocol.STDOUT, b"well") + said + frame(protocol.EXIT, WELL))
    assert found in fault


def test_what_agents_say_is_heard_whatever_comes_before_the_greeting(tmp_path: Path) -> None:
    longest = frame(protocol.STDERR, bytes(protocol.LONGEST_ANSWER))
    said = protocol.HELLO + frame(protocol.TAKEN, protocol.COUNT.pack(9)) + longest + frame(protocol.EXIT, WELL)
    assert served(tmp_path, b"noise" * 100_000 + said) == []


def test_a_frame_that_is_too_long_is_not_waited_for(tmp_path: Path) -> None:
    """Of 100 MB that follow its head none are kept, nor even read."""
    sent: list[int] = []

    async def go_on(_host: AgentHost, writer: asyncio.StreamWriter) -> None:
        writer.write(protocol.HELLO + head(protocol.STDOUT, 0xFFFFFFFF))
        with contextlib.suppress(ConnectionError):
            for _ in range(1600):
                writer.write(bytes(1 << 16))
                sent.append(1 << 16)
                await writer.drain()

    assert len(asyncio.run(_served(tmp_path, go_on))) == 1
    assert sum(sent) < 10 << 20


def test_credit_that_a_host_gives_itself_is_a_window_at_the_most(tmp_path: Path) -> None:
    """A client's input is no further ahead of what an agent has taken than its line holds."""
    ahead: list[int] = []

    async def take(host: AgentHost, writer: asyncio.StreamWriter) -> None:
        writer.write(protocol.HELLO + 50 * frame(protocol.TAKEN, protocol.COUNT.pack(0xFFFFFFFF)))
        while not (tmp_path / "control.sock").exists():
            await asyncio.sleep(0.01)
        _, client_writer = await asyncio.open_unix_connection(str(tmp_path / "control.sock"))
        client_writer.write(frame(protocol.RUN, b"{}") + frame(protocol.INPUT, bytes(100_000)))
        await asyncio.sleep(0.3)
        ahead.append(host._line._credit)
        client_writer.close()

    asyncio.run(_served(tmp_path, take))
    assert 0 <= ahead[0] <= protocol.WINDOW


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_said_ends_in_words(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    said = bytearray()
    for _ in range(200):
        piece = bytearray(frame(chance.choice((protocol.STDOUT, protocol.STDERR, protocol.EXIT, protocol.TAKEN)), WELL))
        if chance.random() < 0.02:
            piece[chance.randrange(len(piece))] ^= 1 << chance.randrange(8)
        said += piece
    for fault in served(tmp_path, protocol.HELLO + said):
        assert fault.isprintable() and len(fault) < 200


def test_a_client_hears_why_its_host_was_ended(tmp_path: Path) -> None:
    (tmp_path / "hosts" / "ams").mkdir(parents=True)
    words = {"timeout_s": 1.0, "check": True, "stdin": b"", "on_output": None}
    ended.note(tmp_path, "ams", "by the clock: it asked for a time that has passed")
    with pytest.raises(HostFailed, match="host ams is not running: ams was ended by the clock: it asked for a time"):
        client.run(tmp_path, "ams", ["true"], **words)  # type: ignore[arg-type]
    ended.forget(tmp_path, "ams")
    with pytest.raises(HostFailed, match=r"host ams is not running$"):
        client.run(tmp_path, "ams", ["true"], **words)  # type: ignore[arg-type]


def test_an_agents_own_ends_are_well_formed() -> None:
    for code in (0, 127, 137, 255):
        protocol.require_answer(protocol.Frame(1, protocol.EXIT, json.dumps({"code": code, "timeout": False}).encode()))


def test_a_client_of_a_fork_takes_over_a_command_and_hears_all_that_came_before(tmp_path: Path) -> None:
    """Another client does not get the command of one that is there."""
    told: list[protocol.Frame] = []

    async def heard(reader: asyncio.StreamReader, decoder: protocol.Decoder, kind: int) -> protocol.Frame:
        while True:
            for each in decoder.feed(await reader.read(1 << 16)):
                told.append(each)
                if each.kind == kind:
                    return each

    async def take_over(host: AgentHost, writer: asyncio.StreamWriter) -> None:
        writer.write(protocol.HELLO)
        path = str(tmp_path / "control.sock")
        while not Path(path).exists():
            await asyncio.sleep(0.01)
        reader, first = await asyncio.open_unix_connection(path)
        decoder = protocol.Decoder()
        first.write(protocol.Frame(7, protocol.RUN, b"{}").encode())
        await heard(reader, decoder, protocol.HOST)
        writer.write(frame(protocol.STDOUT, b"x" * 20_000) * 3)
        first.write(protocol.Frame(7, protocol.HEARD, b"").encode())
        answer = await heard(reader, decoder, protocol.HEARD)
        assert answer == protocol.Frame(7, protocol.HEARD, protocol.COUNT.pack(1))
        assert sum(each.kind == protocol.STDOUT for each in told) == 3
        other_reader, other = await asyncio.open_unix_connection(path)
        other.write(protocol.Frame(3, protocol.TAKE_OVER, protocol.COUNT.pack(1)).encode())
        other.write(protocol.Frame(3, protocol.HEARD, b"").encode())
        assert await heard(other_reader, protocol.Decoder(), protocol.HEARD) == protocol.Frame(
            3, protocol.HEARD, protocol.COUNT.pack(0)
        )
        first.close()
        other.close()

    assert asyncio.run(_served(tmp_path, take_over)) == []


def test_a_command_that_went_on_through_a_fork_has_a_client_again(tmp_path: Path) -> None:
    async def act() -> protocol.Frame:
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(["sleep", "100"])
        host = AgentHost("ams", process, ours, last_channel=4)
        path = str(tmp_path / "control.sock")
        serving = asyncio.create_task(host.serve(path))
        _, writer = await asyncio.open_connection(sock=theirs)
        while not Path(path).exists():
            await asyncio.sleep(0.01)
        reader, client_writer = await asyncio.open_unix_connection(path)
        for payload in (protocol.COUNT.pack(9), protocol.COUNT.pack(3)):  # the first is none of this agent's
            client_writer.write(protocol.Frame(1, protocol.TAKE_OVER, payload).encode())
        client_writer.write(protocol.Frame(1, protocol.HEARD, b"").encode())
        decoder, found = protocol.Decoder(), list[protocol.Frame]()
        while not any(each.kind == protocol.HEARD for each in found):
            found += decoder.feed(await reader.read(1 << 16))
        writer.write(protocol.Frame(3, protocol.STDOUT, b"on").encode())
        while not any(each.kind == protocol.STDOUT for each in found):
            found += decoder.feed(await reader.read(1 << 16))
        client_writer.close()
        writer.close()
        await asyncio.wait_for(serving, PATIENCE_S)
        process.kill()
        process.wait()
        return found[-1]

    assert asyncio.run(act()) == protocol.Frame(1, protocol.STDOUT, b"on")
