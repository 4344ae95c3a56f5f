"""What a server does with a call that nobody waits for any more, and with many at once."""

from __future__ import annotations

import threading
import time

import anyio
import anyio.to_thread
import pytest
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from minigts.agents.desk import Desk
from minigts.agents.server import MOST_AT_ONCE, RunningCalls, server
from minigts.errors import BrokenOff
from minigts.machine import shell


def test_a_call_that_is_taken_back_ends_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def status(desk: Desk) -> str:
        try:
            return shell.run_bounded(["sleep", "60"], timeout_s=60, most_bytes=100, broken_off=desk.broken_off).stdout
        except BrokenOff:
            ended.set()
            raise

    monkeypatch.setattr(Desk, "status", status)

    async def asked() -> None:
        with anyio.move_on_after(0.5):
            await server("chain", "read").call_tool("status", {})

    started = time.monotonic()
    anyio.run(asked)
    assert ended.wait(20) and time.monotonic() - started < 20


def test_few_calls_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []
    most: list[int] = []

    def status(_desk: Desk) -> str:
        running.append(1)
        most.append(len(running))
        time.sleep(0.1)
        running.pop()
        return "said"

    monkeypatch.setattr(Desk, "status", status)

    async def asked() -> None:
        made = server("chain", "read")
        async with anyio.create_task_group() as calls:
            for _ in range(3 * MOST_AT_ONCE):
                calls.start_soon(made.call_tool, "status", {})

    anyio.run(asked)
    assert len(most) == 3 * MOST_AT_ONCE and max(most) <= MOST_AT_ONCE


def test_all_calls_are_broken_off_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Barrier(3)

    def status(desk: Desk) -> str:
        begun.wait(20)
        assert desk.broken_off.wait(20)
        raise BrokenOff("ended")

    monkeypatch.setattr(Desk, "status", status)
    calls = RunningCalls()

    async def asked() -> None:
        made = server("chain", "read", calls=calls)
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(refused, made)
            await anyio.to_thread.run_sync(begun.wait, 20)
            calls.break_off()

    async def refused(made: MCPServer) -> None:
        with pytest.raises(ToolError, match="ended"):
            await made.call_tool("status", {})

    anyio.run(asked)
