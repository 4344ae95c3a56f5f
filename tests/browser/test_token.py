"""The token of `minigts serve` in a real browser: the page has it, and a page on another port of the address never."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from aiohttp import web
from playwright.sync_api import sync_playwright

from minigts.lab import Lab
from minigts.lab.forwarding import LISTENS_AT as FORWARDED
from minigts.serve.auth import Access
from minigts.serve.listening import bind
from minigts.serve.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ASK = """async () => (await fetch('/lesson/1-delay-adds-up',
  {headers: {Authorization: `Bearer ${sessionStorage.getItem('minigts-token')}`}})).status"""


@contextmanager
def served(place: Path) -> Iterator[Access]:
    """A server whose lab is not there: its own pages are shown, and who may ask is looked at."""
    loop, runners = asyncio.new_event_loop(), []
    with bind("127.0.0.1", 0) as listening:
        access = Access("127.0.0.1", listening.getsockname()[1])

        async def begin() -> None:
            runners.append(web.AppRunner(Server(Lab(place / "none"), access, place, 1.0).application()))
            await runners[0].setup()
            await web.SockSite(runners[0], listening).start()

        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        asyncio.run_coroutine_threadsafe(begin(), loop).result(20)
        yield access
        asyncio.run_coroutine_threadsafe(runners[0].cleanup(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@contextmanager
def guest(address: str, heard: list[str]) -> Iterator[int]:
    """A program in a lab, as `forward` shows it: it keeps all that a browser says to it."""

    class Hears(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<p>hello</p>")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Hears)
    threading.Thread(target=server.serve_forever).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_a_page_on_another_port_of_the_address_is_never_sent_it(browser_program: str, tmp_path: Path) -> None:
    heard: list[str] = []
    with (
        served(tmp_path) as access,
        guest("127.0.0.1", heard) as beside,
        guest(FORWARDED, heard) as forwarded,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=browser_program, args=["--disable-dev-shm-usage"])
        context = browser.new_context()
        page = context.new_page()
        page.goto(access.url)
        assert page.evaluate("location.href") == f"http://127.0.0.1:{access.port}/"
        assert page.evaluate(ASK) == 200
        page.reload()
        assert (page.evaluate(ASK), page.evaluate("document.cookie"), context.cookies()) == (200, "", [])
        for address in (f"http://127.0.0.1:{beside}/", f"http://{FORWARDED}:{forwarded}/"):
            page.goto(address)
            assert page.evaluate("sessionStorage.length + localStorage.length") == 0
            page.evaluate(f"fetch('http://127.0.0.1:{beside}/x', {{mode: 'no-cors', credentials: 'include'}})")
            cannot = page.evaluate(
                f"fetch('http://127.0.0.1:{access.port}/lesson/1-delay-adds-up').then(() => 'read', () => 'refused')"
            )
            assert cannot == "refused"
        stranger = context.new_page()
        stranger.goto(f"http://127.0.0.1:{access.port}/")
        assert "the token is missing" in stranger.inner_text("#problem")
        assert stranger.evaluate(ASK) == 403
        browser.close()
    assert len(heard) >= 4
    assert access.token not in "".join(heard)
