"""Who is answered by `minigts serve`, and who is not: the rules alone, and the server over a real connection."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import tc_hosts
from aiohttp import web
from pydantic import ValidationError

from minigts import lab as labs
from minigts import paths
from minigts.errors import InputError
from minigts.lab import Lab, metrics
from minigts.serve import lessons, runs, terminals
from minigts.serve.auth import Access, checked_address, said_token
from minigts.serve.listening import bind
from minigts.serve.server import Server, SetLink
from minigts.topology.link_settings import BY_FIELD
from minigts.topology.read.load import parse

ACCESS = Access("127.0.0.1", 8137, "right")
OWN = {"host": "127.0.0.1:8137", "origin": "http://127.0.0.1:8137", "changes": True, "allowed": True}
Asking = Callable[[aiohttp.ClientSession, Access], Awaitable[tuple[int, Mapping[str, str], str]]]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(OWN, id="the page itself"),
        pytest.param(
            OWN | {"host": "localhost:8137", "origin": "http://localhost:8137"}, id="by loopback's other name"
        ),
        pytest.param(OWN | {"origin": None, "changes": False}, id="to look, as a browser's own address line does"),
    ],
)
def test_answered(request_: dict[str, object]) -> None:
    assert ACCESS.refusal(**request_) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        pytest.param(OWN | {"allowed": False}, "token", id="no token"),
        pytest.param(OWN | {"allowed": False, "changes": False, "origin": None}, "token", id="no token, only to look"),
        pytest.param(OWN | {"origin": "http://evil.example"}, "are refused", id="another origin"),
        pytest.param(OWN | {"origin": "null"}, "are refused", id="a page in a sandbox, as a report"),
        pytest.param(OWN | {"origin": "http://127.0.0.1:9"}, "are refused", id="another port"),
        pytest.param(OWN | {"origin": "https://127.0.0.1:8137"}, "are refused", id="another scheme"),
        pytest.param(OWN | {"origin": None}, "Origin", id="a change without an origin"),
        pytest.param(OWN | {"host": "evil.example:8137"}, "evil.example", id="another name that leads here"),
        pytest.param(OWN | {"host": "127.0.0.1"}, "127.0.0.1", id="no port"),
        pytest.param(OWN | {"host": None}, "None", id="no host"),
    ],
)
def test_refused(request_: dict[str, object], why: str) -> None:
    assert why in (ACCESS.refusal(**request_) or "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("authorization", "protocols", "said"),
    [
        ("Bearer right", None, "right"),
        ("bearer Right", None, "Right"),
        (None, "minigts, minigts.token.right", "right"),
        (None, "minigts.token.right,minigts", "right"),
        ("Bearer ", None, ""),
        ("Basic right", None, None),
        (None, "minigts", None),
        (None, None, None),
    ],
)
def test_the_token_is_said_in_a_header(authorization: str | None, protocols: str | None, said: str | None) -> None:
    assert said_token(authorization, protocols) == said


@pytest.mark.parametrize("given", ["wrong", "", "righté", "rightright", None])
def test_a_token_is_right_or_wrong(given: str | None) -> None:
    assert ACCESS.is_token("right")
    assert not ACCESS.is_token(given)


def test_a_ticket_shows_one_report() -> None:
    ticket = ACCESS.ticket("one")
    assert ACCESS.is_ticket("one", ticket)
    assert not ACCESS.is_ticket("two", ticket)
    assert not ACCESS.is_ticket("one", None)
    assert not Access("127.0.0.1", 8137, "another").is_ticket("one", ticket)
    assert ACCESS.token not in ticket


def test_bound_elsewhere_loopback_is_no_name_of_it() -> None:
    assert Access("192.0.2.7", 80).hosts == {"192.0.2.7:80"}
    assert Access("::1", 80).hosts == {"[::1]:80", "localhost:80"}


def test_two_servers_have_tokens_of_their_own() -> None:
    assert Access("127.0.0.1", 1).token != Access("127.0.0.1", 1).token
    assert "token" not in repr(Access("127.0.0.1", 1))


@pytest.mark.parametrize("word", ["0.0.0.0", "::", "example.org", ""])
def test_an_address_is_one_address(word: str) -> None:
    with pytest.raises(InputError, match="--listen"):
        checked_address(word)


def test_a_port_that_is_taken_is_named() -> None:
    with bind("127.0.0.1", 0) as first, pytest.raises(InputError, match="cannot listen at"):
        bind("127.0.0.1", first.getsockname()[1])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 0, "columns": 80}', '{"rows": 24, "columns": 99999}'])
def test_a_terminal_has_a_size(text: str) -> None:
    with pytest.raises(InputError):
        terminals.size(text)


@pytest.mark.parametrize("name", ["..", "../secret", "none"])
def test_a_report_is_one_of_the_results(name: str, tmp_path: Path) -> None:
    (tmp_path / "results" / "one").mkdir(parents=True)
    (tmp_path / "results" / "one" / "report.html").write_text("<p>")
    (tmp_path / "report.html").write_text("secret")
    assert runs.reports(tmp_path / "results") == ["one"]
    with pytest.raises(InputError):
        runs.report(tmp_path / "results", name)


async def answered(
    session: aiohttp.ClientSession, access: Access, method: str, path: str, **more: object
) -> tuple[int, Mapping[str, str], str]:
    url = f"http://127.0.0.1:{access.port}{path}"
    async with session.request(method, url, allow_redirects=False, **more) as answer:  # type: ignore[arg-type]
        return answer.status, answer.headers, await answer.text()


def served(tmp_path: Path, asking: Asking, lab: Lab | None = None) -> tuple[int, Mapping[str, str], str]:
    """What a client is told by a server of a lab, or of one that is not there: what is refused never comes to it."""

    async def run() -> tuple[int, Mapping[str, str], str]:
        with bind("127.0.0.1", 0) as listening:
            access = Access("127.0.0.1", listening.getsockname()[1])
            runner = web.AppRunner(Server(lab or Lab(tmp_path / "none"), access, tmp_path, 1.0).application())
            await runner.setup()
            await web.SockSite(runner, listening).start()
            try:
                async with aiohttp.ClientSession() as session:
                    return await asking(session, access)
            finally:
                await runner.cleanup()

    return asyncio.run(run())


def token(access: Access) -> dict[str, str]:
    return {"Authorization": f"Bearer {access.token}"}


def test_no_browser_sends_the_token_of_the_printed_address(tmp_path: Path) -> None:
    """It stands behind the #. What is served sets no cookie, which would go to every port of the address."""
    assert ACCESS.url == "http://127.0.0.1:8137/#token=right"
    for path in ("/", "/page/page.js", "/nothing"):
        _, headers, text = served(
            tmp_path, lambda session, access, path=path: answered(session, access, "GET", path, headers=token(access))
        )
        assert "Set-Cookie" not in headers
        assert "cookie" not in text.lower().replace("cookies", "")


LAB = [
    "/live",
    "/report/x",
    "/report/x?ticket=",
    "/report/x?ticket=0",
    "/lesson/1-delay-adds-up",
    "/metrics",
    "/nothing",
]


@pytest.mark.parametrize("path", [*LAB, "/page/../live", "/page/%2e%2e/lesson/1-delay-adds-up", "//live"])
def test_without_the_token_nothing_of_a_lab_is_shown(path: str, tmp_path: Path) -> None:
    status, _, text = served(tmp_path, lambda session, access: answered(session, access, "GET", path))
    assert status in (403, 404)
    assert "token" in text or status == 404


@pytest.mark.parametrize("way", ["cookie", "query"])
def test_a_token_that_a_browser_sends_by_itself_is_none(way: str, tmp_path: Path) -> None:
    def asking(session: aiohttp.ClientSession, access: Access) -> Awaitable[tuple[int, Mapping[str, str], str]]:
        query = f"?token={access.token}" if way == "query" else ""
        headers = {"Cookie": f"minigts-{access.port}={access.token}; token={access.token}"} if way == "cookie" else {}
        return answered(session, access, "GET", f"/lesson/1-delay-adds-up{query}", headers=headers)

    assert served(tmp_path, asking)[0] == 403


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/xterm/index.js", "/xterm/xterm.css"])
def test_with_it_the_page_is_shown_and_nothing_of_others_runs_in_it(path: str, tmp_path: Path) -> None:
    status, headers, text = served(
        tmp_path, lambda session, access: answered(session, access, "GET", path, headers=token(access))
    )
    policy = headers["Content-Security-Policy"]
    assert (status, "default-src 'none'" in policy, "script-src 'self';" in policy) == (200, True, True)
    assert "frame-ancestors 'none'" in policy
    assert path != "/" or "<script>" not in text


@pytest.mark.parametrize("path", ["/set", "/cut", "/run", "/stop"])
@pytest.mark.parametrize("origin", [None, "http://evil.example"])
def test_a_change_from_elsewhere_is_refused_though_the_token_is_right(
    path: str, origin: str | None, tmp_path: Path
) -> None:
    headers = {} if origin is None else {"Origin": origin}
    status, _, text = served(
        tmp_path,
        lambda session, access: answered(session, access, "POST", path, headers=token(access) | headers),
    )
    assert (status, "origin" in text.lower() or "are refused" in text) == (403, True)


@pytest.mark.parametrize(("said", "status"), [("minigts.token.", 403), ("minigts.token.x", 403), (None, 503)])
def test_a_websocket_says_the_token_as_a_subprotocol(said: str | None, status: int, tmp_path: Path) -> None:
    """With it the server goes on, and finds that there is no such lab."""

    async def connect(session: aiohttp.ClientSession, access: Access) -> tuple[int, Mapping[str, str], str]:
        offered = ("minigts", f"minigts.token.{access.token}" if said is None else said)
        own = f"http://127.0.0.1:{access.port}"
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{own}/live", protocols=offered, origin=own)
        return refused.value.status, {}, ""

    assert served(tmp_path, connect)[0] == status


@pytest.mark.parametrize("path", ["/live", "/terminal/ams", "/echoes/ams/bra"])
@pytest.mark.parametrize("origin", [None, "http://evil.example"])
def test_a_websocket_from_elsewhere_is_refused(path: str, origin: str | None, tmp_path: Path) -> None:
    async def connect(session: aiohttp.ClientSession, access: Access) -> tuple[int, Mapping[str, str], str]:
        offered = ("minigts", f"minigts.token.{access.token}")
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"http://127.0.0.1:{access.port}{path}", protocols=offered, origin=origin)
        return refused.value.status, {}, ""

    assert served(tmp_path, connect)[0] == 403


def test_a_name_that_was_made_to_lead_here_is_refused(tmp_path: Path) -> None:
    status, _, text = served(
        tmp_path,
        lambda session, access: answered(
            session,
            access,
            "GET",
            "/",
            headers=token(access) | {"Host": f"evil.example:{access.port}"},
        ),
    )
    assert status == 403
    assert "evil.example" in text


@pytest.mark.parametrize(
    "body", ["", "{}", '{"link": "a-b", "delay_ms": -1}', '{"link": "a-b", "loss_percent": 101}', '{"link": 1}']
)
def test_a_setting_that_cannot_be_is_one_sentence(body: str, tmp_path: Path) -> None:
    def asking(session: aiohttp.ClientSession, access: Access) -> Awaitable[tuple[int, Mapping[str, str], str]]:
        headers = token(access) | {"Origin": f"http://127.0.0.1:{access.port}"}
        return answered(session, access, "POST", "/set", headers=headers, data=body)

    status, _, text = served(tmp_path, asking)
    assert (status, text.count("\n")) == (400, 1)


def test_a_slider_may_set_whatever_is_set_under_traffic_but_a_trace() -> None:
    settable = {each.field for each in BY_FIELD.values() if each.settable}
    assert {"delay_ms", "jitter_ms", "burst_packets"} <= settable
    assert SetLink.model_fields.keys() == settable | {"link", "trace"}
    with pytest.raises(ValidationError, match="trace"):
        SetLink.model_validate({"link": "a-b", "trace": "5*10"})


def test_a_report_is_shown_in_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "report.html").write_text("<p>figures")
    status, headers, text = served(
        tmp_path, lambda session, access: answered(session, access, "GET", f"/report/one?ticket={access.ticket('one')}")
    )
    assert (status, text) == (200, "<p>figures")
    assert headers["Content-Security-Policy"].startswith("sandbox")
    assert "script-src" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize("name", lessons.names())
def test_a_lessons_page_is_html_with_its_steps(name: str) -> None:
    text = lessons.page(name)
    assert text.startswith("<h1>Lesson ")
    assert "<ol>" in text
    assert "<a" not in text
    assert re.search("<details><summary>What you see</summary>(<p>|<table>).*</details>$", text.rstrip(), re.DOTALL)


@pytest.mark.parametrize("name", ["../README", "1", "", "README"])
def test_a_lesson_is_one_of_those(name: str) -> None:
    with pytest.raises(InputError, match="no such lesson"):
        lessons.page(name)


@pytest.mark.parametrize(
    "written",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[here](javascript:alert(1))",
        "![picture](http://192.0.2.1/x.png)",
        "<http://192.0.2.1/>",
        "| a | <b onclick=x> |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_a_lessons_text_brings_no_tags_of_its_own(written: str) -> None:
    tags = set(re.findall(r"<([a-z]+)", lessons.render(written)))
    assert tags <= {"p", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_teachers_own_lesson_is_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    place = paths.project_root() / "docs" / "examples" / "own-lesson"
    monkeypatch.setenv(paths.LESSONS, str(place))
    assert lessons.own("lesson-50", lessons.names()) == "50-a-packets-length"
    assert "<h1>Lesson 50: a packet has a length</h1>" in lessons.page("50-a-packets-length")


def test_a_lab_of_a_lesson_has_that_lesson_beside_it() -> None:
    assert lessons.own("lesson-1", lessons.names()) == "1-delay-adds-up"
    assert lessons.own("chain6", lessons.names()) is None
    assert lessons.own("lesson-99", lessons.names()) is None


def test_a_lesson_is_told_to_the_page(tmp_path: Path) -> None:
    status, headers, text = served(
        tmp_path,
        lambda session, access: answered(session, access, "GET", "/lesson/1-delay-adds-up", headers=token(access)),
    )
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "<code>topology.yaml</code>" in text


TWO = "name: lesson-1\npair: {hosts: [ams, bra], link: {rtt: 2ms, rate: 50mbit}}\n"
TOLD_S = 60.0


@asynccontextmanager
async def opened(session: aiohttp.ClientSession, access: Access) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """A page that is open: what gives the next message that it is told."""
    own = f"http://127.0.0.1:{access.port}"
    offered = ("minigts", f"minigts.token.{access.token}")
    async with session.ws_connect(f"{own}/live", protocols=offered, origin=own) as page:
        yield lambda: page.receive_json(timeout=TOLD_S)


def test_a_page_is_told_of_the_lab_the_experiments_and_the_lessons_as_it_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    lab = labs.up(parse(TWO, "two.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)

    async def look(session: aiohttp.ClientSession, access: Access) -> tuple[int, Mapping[str, str], str]:
        async with opened(session, access) as told:
            return 101, {}, json.dumps([await told() for _ in range(3)])

    of_lab, of_runs, of_lessons = json.loads(served(tmp_path, look, lab)[2])
    assert (of_lab["kind"], of_runs["kind"]) == ("topology", "runs")
    assert of_lessons == {"kind": "lessons", "names": lessons.names(), "own": "1-delay-adds-up"}


def test_a_page_is_told_why_its_lab_cannot_be_read_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    lab = labs.up(parse(TWO, "two.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)

    async def look() -> dict[str, Any]:
        with bind("127.0.0.1", 0) as listening:
            access = Access("127.0.0.1", listening.getsockname()[1])
            serving = Server(lab, access, tmp_path, 0.01).serving(listening, lambda _: None)
            async with serving, aiohttp.ClientSession() as session, opened(session, access) as told:
                del tc_hosts.NETWORKS[lab.rundir]
                while (message := await told())["kind"] != "problem":
                    assert message["kind"] in {"topology", "runs", "lessons", "now"}
                return dict(message)

    assert asyncio.run(look())["text"] in {"host ams is not running", "host bra is not running"}


def test_prometheus_is_told_the_lab_s_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.use(monkeypatch, tmp_path)
    text = "name: two\npair: {hosts: [ams, bra], link: {rtt: 2ms, rate: 50mbit}}\n"
    lab = labs.up(parse(text, "two.yaml"), tc_hosts.TcHosts.name, None, lambda _: None)
    tc_hosts.NETWORKS[lab.rundir].sent["ams", "eth1"] = (1000, 10)

    def scrape(session: aiohttp.ClientSession, access: Access) -> Awaitable[tuple[int, Mapping[str, str], str]]:
        return answered(session, access, "GET", "/metrics", headers=token(access))

    status, headers, body = served(tmp_path, scrape, lab)
    assert (status, headers["Content-Type"]) == (200, metrics.CONTENT_TYPE)
    assert 'minigts_link_sent_bytes_total{lab="two",link="ams-bra",from="ams",to="bra"} 1000' in body.splitlines()
    assert body.endswith("# EOF\n")
    labs.down(lab)
    status, _, body = served(tmp_path, scrape, lab)
    assert status >= 400
    assert body.count("\n") == 1


@pytest.mark.parametrize(
    "body",
    [
        '{"link": "a", "rate_mbit": 0}',
        '{"link": "a", "queue_bytes": 999}',
        '{"link": "a", "queue_bytes": 1000000001}',
        '{"link": "a", "rate_mbit": "5"}',
        '{"link": "a", "rate_mbit": NaN}',
    ],
)
def test_a_rate_or_queue_that_cannot_be_is_one_sentence(body: str, tmp_path: Path) -> None:
    def asking(session: aiohttp.ClientSession, access: Access) -> Awaitable[tuple[int, Mapping[str, str], str]]:
        headers = token(access) | {"Origin": f"http://127.0.0.1:{access.port}"}
        return answered(session, access, "POST", "/set", headers=headers, data=body)

    status, _, text = served(tmp_path, asking)
    assert (status, text.count("\n")) == (400, 1)
    assert "rate_mbit" in text or "queue_bytes" in text
