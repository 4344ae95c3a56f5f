"""A lab by the Model Context Protocol, spoken with by the protocol's own client: on standard input, and on loopback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from live.conftest import quiet, state_directory
from live.program import PROJECT
from minigts import lab as labs
from minigts.agents.roles import TOOLS
from minigts.lab import Lab
from minigts.topology.read.load import parse

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.nightly,
    pytest.mark.touched("tools/minigts/agents", "tools/minigts/cli/verbs/mcp.py", "requirements-agents.lock"),
    pytest.mark.timeout(900),
]
TEXT = "name: spoken\nchain: {hosts: [ams, bra, lju], link: {rtt: 10ms, rate: 50mbit}}\n"
Ask = Callable[..., Awaitable[str]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("spoken")):
        made = labs.up(parse(TEXT, "spoken.yaml", time="virtual"), "uml", None, quiet)
        yield made
        labs.down(made)


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "minigts", "mcp", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT / "tools")}


def spoken_with(role: str, talk: Callable[[Ask, Client], Awaitable[None]]) -> None:
    program, *words = command("spoken", "--role", role)
    parameters = StdioServerParameters(command=program, args=words, env=environment())

    async def spoken() -> None:
        async with Client(stdio_client(parameters)) as client:
            await talk(asked_of(client), client)

    asyncio.run(spoken())


def asked_of(client: Client) -> Ask:
    async def ask(tool: str, **arguments: object) -> str:
        """What a tool says; an error begins with `refused: `."""
        answer = await client.call_tool(tool, arguments)
        text = "\n".join(each.text for each in answer.content if each.type == "text")
        return f"refused: {text}" if answer.is_error else text

    return ask


def test_each_role_has_its_tools(lab: Lab) -> None:
    async def talk(_ask: Ask, client: Client) -> None:
        assert {each.name for each in (await client.list_tools()).tools} == {*TOOLS["read"], *TOOLS["repair"]}
        pages = {str(each.uri) for each in (await client.list_resources()).resources}
        assert "minigts://docs/glossary" in pages
        assert "# Glossary" in (await client.read_resource("minigts://docs/glossary")).contents[0].text  # type: ignore[union-attr]

    spoken_with("repair", talk)


def test_an_agent_finds_a_fault_and_mends_it(lab: Lab) -> None:
    async def talk(ask: Ask, _client: Client) -> None:
        assert "bra: eth1 10.20.0.2/24 on ams-bra, eth2" in await ask("topology")
        assert "3 received, 0% packet loss" in await ask("ping", source="ams", target="lju")
        await ask("run", host="bra", command="sysctl -w net.ipv4.ip_forward=0")
        assert "100% packet loss" in await ask("ping", source="ams", target="lju", count=2)
        assert "ip_forward = 0" in await ask("look", host="bra", what="sysctls")
        await ask("run", host="bra", command="sysctl -w net.ipv4.ip_forward=1")
        assert "2 received, 0% packet loss" in await ask("ping", source="ams", target="lju", count=2)
        assert await ask("run", host="ams", command="exit 3") == "exit code 3"
        await ask("write_file", host="ams", path="/tmp/far/note", text="hallo\n")
        assert await ask("read_file", host="ams", path="/tmp/far/note") == "hallo"

    spoken_with("repair", talk)


def test_an_agent_with_all_tools_changes_links(lab: Lab) -> None:
    async def talk(ask: Ask, _client: Client) -> None:
        await ask("set_link", link="ams-bra", settings=["delay=50ms"])
        assert "time=100 ms" in await ask("ping", source="ams", target="bra", count=1)
        await ask("set_link", link="ams-bra", settings=[], reset=True)
        await ask("link", link="ams-bra", state="down")
        assert "ams-bra is down" in await ask("status")
        assert "NO-CARRIER" in await ask("look", host="ams", what="interfaces")
        await ask("link", link="ams-bra", state="up")
        assert (await ask("explain", first="lju-ams")).startswith("refused: ")

    spoken_with("full", talk)


def test_the_lab_stands_still_while_an_agent_thinks(lab: Lab) -> None:
    async def talk(ask: Ask, _client: Client) -> None:
        before = lab.provider.now_s()
        await ask("status")
        await asyncio.sleep(2)
        assert lab.provider.now_s() - before < 0.1
        await ask("wait", seconds=20)
        assert 19.99 < lab.provider.now_s() - before < 20.1

    spoken_with("read", talk)


def test_on_loopback_the_token_is_the_key(lab: Lab, tmp_path: Path) -> None:
    token = tmp_path / "token"
    words = command("spoken", "--http", "--token-file", str(token))
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()

            async def spoken(headers: dict[str, str]) -> str:
                async with (
                    create_mcp_http_client(headers) as http,
                    Client(streamable_http_client(address, http_client=http)) as client,
                ):
                    return await asked_of(client)("status")

            bearer = {"Authorization": f"Bearer {token.read_text()}"}
            assert "spoken on uml in virtual time" in asyncio.run(spoken(bearer))
            for wrong in ({}, {"Authorization": "Bearer guess"}, {**bearer, "Host": "far.example"}):
                with pytest.raises(BaseExceptionGroup):
                    asyncio.run(spoken(wrong))
            assert token.stat().st_mode & 0o077 == 0
        finally:
            server.terminate()
