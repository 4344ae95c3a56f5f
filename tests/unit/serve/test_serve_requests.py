"""Requests to `minigts serve` that are none: each is answered with a code, or its connection closed; nothing is logged
as a traceback, and the next request is answered as ever."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
import wired_hosts
from aiohttp import WSMsgType, web

from minigts import lab as labs
from minigts.errors import InputError
from minigts.lab import Lab
from minigts.serve import terminals
from minigts.serve.auth import Access
from minigts.serve.listening import bind
from minigts.serve.server import LIMIT_BYTES, Server
from minigts.topology.read.load import parse

Talk = Callable[[Access], Awaitable[list[bytes]]]
ANSWER_S, NOTHING_S = 60.0, 0.5
SIDE_BY_SIDE = 25


def talked(tmp_path: Path, talk: Talk) -> tuple[list[bytes], list[str]]:
    """What a server of a lab that is not there answers, and what it says itself."""
    said: list[str] = []

    async def run() -> list[bytes]:
        with bind("127.0.0.1", 0) as listening:
            access = Access("127.0.0.1", listening.getsockname()[1])
            server = Server(Lab(tmp_path / "none"), access, tmp_path, 1.0)
            runner = server.runner(said.append)
            await runner.setup()
            await web.SockSite(runner, listening).start()
            try:
                return await talk(access)
            finally:
                await runner.cleanup()

    return asyncio.run(run()), said


async def asked(access: Access, request: bytes, patience_s: float = ANSWER_S) -> bytes:
    """All that comes until the connection ends, or nothing more does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", access.port)
    answer = b""
    try:
        writer.write(request)
        while piece := await asyncio.wait_for(reader.read(1 << 16), patience_s):
            answer += piece
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.close()
    return answer


def head(access: Access, line: str, *more: str, token: bool = True) -> bytes:
    own = [f"Host: 127.0.0.1:{access.port}", f"Origin: http://127.0.0.1:{access.port}", "Connection: close"]
    own += [f"Authorization: Bearer {access.token}"] if token else []
    return "\r\n".join([line, *own, *more, "", ""]).encode("utf-8", "surrogateescape")


def body(access: Access, path: str, content: bytes, *more: str) -> bytes:
    return head(access, f"POST {path} HTTP/1.1", f"Content-Length: {len(content)}", *more) + content


def code(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


BODIES = [
    b"",
    b"\xff\xfe",
    b'{"link": "\xff"}',
    b'{"link": "\\ud800"}',
    b'{"link": "' + b"a" * 60_000 + b'"}',
    b'{"link": "a", "delay_ms": 1e999}',
    b'{"link": "a", "delay_ms": ' + b"1" * 5000 + b"}",
    b'{"link": "a", "delay_ms": NaN}',
    b"[" * 60_000,
    b'{"a":' * 10_000,
    b"[" + b"{}," * 15_000 + b"{}]",
    b'{"link": "\\u001b[31m\\u0007"}',
    b"null",
    b"7",
]


@pytest.mark.parametrize("path", ["/set", "/cut", "/run"])
def test_a_body_that_is_none_is_a_sentence(path: str, tmp_path: Path) -> None:
    async def talk(access: Access) -> list[bytes]:
        return [await asked(access, body(access, path, each)) for each in BODIES]

    answers, said = talked(tmp_path, talk)
    assert {code(each) for each in answers} <= {400, 503}
    assert all(b"Traceback" not in each and b"\x1b" not in each for each in answers)
    assert said == []


def test_each_fault_has_its_code(tmp_path: Path) -> None:
    def requests(access: Access) -> dict[bytes, set[int]]:
        packed = gzip.compress(b"[" + b"0," * 10_000_000 + b"0]")
        return {
            body(access, "/set", b"x" * (LIMIT_BYTES + 1)): {413},
            body(access, "/set", packed, "Content-Encoding: gzip"): {400, 413},
            body(access, "/set", b"no gzip", "Content-Encoding: gzip"): {400},
            body(access, "/set", b"{}", "Content-Type: text/plain; charset=none-such"): {400},
            body(access, "/set", b"{}", "Content-Encoding: none-such"): {400},
            head(access, "POST /set HTTP/1.1", "Content-Length: -1"): {400},
            head(access, "POST /set HTTP/1.1", "Content-Length: 10", "Content-Length: 11"): {400},
            head(access, "POST /set HTTP/1.1", "Transfer-Encoding: chunked") + b"zz\r\n": {400},
            head(access, "POST /set HTTP/1.1", f"Content-Length: {10**20}") + b"{}": {0, 400, 413},
            head(access, f"GET /{'a' * 20_000} HTTP/1.1"): {400, 414},
            head(access, "GET / HTTP/1.1", f"X-Long: {'a' * 20_000}"): {400, 431},
            head(access, "GET / HTTP/1.1", *(f"X-{number}: a" for number in range(1000))): {400, 431},
            head(access, "GET / HTTP/9.9"): {400, 505},
            head(access, "\x16\x03\x01\x02"): {400},
            head(access, "NONE-SUCH / HTTP/1.1"): {400, 405},
            head(access, "PUT /set HTTP/1.1"): {405},
            head(access, "GET /none HTTP/1.1"): {404},
            head(access, "GET /%00%ff%2e%2e%2f HTTP/1.1"): {400, 404},
            head(access, "GET /report/%ff%00?ticket=%ff HTTP/1.1", token=False): {403, 404},
            head(access, "GET /lesson/..%2f..%2fREADME HTTP/1.1"): {400, 404},
            head(access, "GET /page/..%2f..%2f..%2f..%2fetc%2fpasswd HTTP/1.1"): {403, 404},
            head(access, "GET /echoes/a/b?seconds=00000000" + "9" * 5000 + " HTTP/1.1"): {400, 503},
            head(access, "GET /live HTTP/1.1", "Upgrade: websocket", "Connection: upgrade"): {503},
            head(access, "GET /terminal/a HTTP/1.1", "Upgrade: websocket"): {503},
            head(access, "GET /live HTTP/1.1"): {503},
        }

    async def talk(access: Access) -> list[bytes]:
        got = []
        for request, wanted in requests(access).items():
            answer = await asked(access, request)
            assert code(answer) in wanted, (request[:100], answer[:200])
            got.append(answer)
        return got

    answers, said = talked(tmp_path, talk)
    assert all(b"Traceback" not in each for each in answers)
    assert said == []


def test_rubbish_is_answered_or_closed_and_the_next_request_is_served(
    tmp_path: Path, pytestconfig: pytest.Config, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests that are right, damaged at random: `--fuzz 100000` for a tenth as many."""
    count = max(100, pytestconfig.getoption("fuzz") // 10)
    draw = random.Random(32)

    def damaged(right: bytes) -> bytes:
        made = bytearray(right)
        for _ in range(draw.randint(1, 6)):
            at, length = draw.randrange(len(made) + 1), draw.choice((0, 1, 1, 5, 40))
            pieces = (draw.randbytes(3), b"\r\n", b"\0", b":", b" ", b"\xff", b"%", b"a" * 9000, b"{", b"1" * 30)
            piece = draw.choice(pieces)
            made[at : at + length] = piece
        return bytes(made)

    async def talk(access: Access) -> list[bytes]:
        socket = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
        content = json.dumps({"link": "a-b", "delay_ms": 5}).encode()
        rights = [
            body(access, "/set", content),
            body(access, "/cut", b'{"link": "a-b", "up": true}'),
            head(access, "GET / HTTP/1.1"),
            head(access, "GET /lesson/1-delay-adds-up HTTP/1.1"),
            head(access, "GET /report/x?ticket=1 HTTP/1.1"),
            head(access, "GET /live HTTP/1.1", "Sec-WebSocket-Protocol: minigts", *socket) + b"\x81\x85abcdhello",
        ]
        answers = []
        for _ in range(count // SIDE_BY_SIDE):
            several = (asked(access, damaged(draw.choice(rights)), NOTHING_S) for _ in range(SIDE_BY_SIDE))
            answers += await asyncio.gather(*several)
            assert code(await asked(access, head(access, "GET / HTTP/1.1"))) == 200
        return answers

    answers, said = talked(tmp_path, talk)
    assert all(b"Traceback" not in each for each in answers)
    assert not {code(each) for each in answers} & {500}
    assert said == []
    assert not [record for record in caplog.records if record.exc_info]


def test_a_fault_of_the_server_s_own_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(_server: Server, _request: web.Request) -> web.StreamResponse:
        raise ZeroDivisionError("of its own")

    monkeypatch.setattr(Server, "_stop", breaks)

    async def talk(access: Access) -> list[bytes]:
        return [await asked(access, body(access, "/stop", b""))]

    (answer,), said = talked(tmp_path, talk)
    assert code(answer) == 500
    assert said == ["a request was not answered: ZeroDivisionError: of its own"]


NUMBERS = (
    *(
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "-Infinity",
        "1" * 5000,
        "-" + "9" * 400,
        "1e308",
        "1.5",
        "-0.0",
        "0",
        "-1",
    ),
    *(
        "true",
        "null",
        '"5"',
        '""',
        "[]",
        "{}",
        "[1e999]",
        '{"a": 1e999}',
        str(2**63),
        str(2**64),
        "5e-324",
        '"\\ud800"',
    ),
)
MESSAGES = {
    "/set": '{"link": "a-b", "delay_ms": 5, "loss_percent": 1, "rate_mbit": 10, "queue_bytes": 60000}',
    "/cut": '{"link": "a-b", "up": true}',
    "/run": '{"experiment": "none"}',
}
SIZE = '{"rows": 24, "columns": 80}'


def with_each_number(message: str) -> list[str]:
    """The message with each of NUMBERS in the place of each of its values, and of the whole."""
    values = {key: json.dumps(value) for key, value in json.loads(message).items()}
    others = [{**values, key: number} for key in values for number in NUMBERS]
    return [*NUMBERS, *("{" + ", ".join(f'"{key}": {value}' for key, value in each.items()) + "}" for each in others)]


@pytest.mark.parametrize("path", MESSAGES)
def test_any_number_in_any_place_of_a_request_is_a_sentence(path: str, tmp_path: Path) -> None:
    """The lab is not there, so what could be is answered with 503; all else with 400."""
    contents = with_each_number(MESSAGES[path])

    async def talk(access: Access) -> list[bytes]:
        return [await asked(access, body(access, path, each.encode())) for each in contents]

    answers, said = talked(tmp_path, talk)
    assert {code(each) for each in answers} <= {400, 503}
    wrong = ("1e999", "NaN", "true", '"5"')
    for content, answer in zip(contents, answers, strict=True):
        if any(f'"delay_ms": {number}' in content for number in wrong):
            assert code(answer) == 400, content
    assert all(b"Traceback" not in each for each in answers)
    assert said == []


@pytest.mark.parametrize("text", with_each_number(SIZE))
def test_a_terminal_s_size_is_two_whole_numbers(text: str) -> None:
    with pytest.raises(InputError, match="a terminal's size is its rows, 1 to 500, and its columns, 1 to 1000"):
        terminals.size(text)


def test_a_terminal_s_size_of_any_number_closes_it_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    wired_hosts.register(monkeypatch)
    plan = parse("name: two\nhosts: {a: , b: }\nlinks: [{ends: [a, b], delay: 1ms}]\ntime: virtual\n", "two.yaml")
    lab, said = labs.up(plan, wired_hosts.WiredHosts.name, None, lambda _: None), list[str]()

    async def closed(session: aiohttp.ClientSession, access: Access, text: str) -> tuple[WSMsgType, object, str]:
        own, offered = f"http://127.0.0.1:{access.port}", ("minigts", f"minigts.token.{access.token}")
        async with session.ws_connect(f"{own}/terminal/a", protocols=offered, origin=own) as socket:
            await socket.send_str(text)
            answer = await socket.receive(ANSWER_S)
            return answer.type, answer.data, str(answer.extra)

    async def run() -> list[tuple[WSMsgType, object, str]]:
        with bind("127.0.0.1", 0) as listening:
            access = Access("127.0.0.1", listening.getsockname()[1])
            runner = Server(lab, access, tmp_path, 1.0).runner(said.append)
            await runner.setup()
            await web.SockSite(runner, listening).start()
            try:
                async with aiohttp.ClientSession() as session:
                    return [await closed(session, access, text) for text in with_each_number(SIZE)]
            finally:
                await runner.cleanup()

    for kind, number, why in asyncio.run(run()):
        assert (kind, number) == (WSMsgType.CLOSE, aiohttp.WSCloseCode.INTERNAL_ERROR)
        assert why.startswith("a terminal's size is its rows")
    assert said == []
