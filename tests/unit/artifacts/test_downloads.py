"""One file by its address: fetched whole, or refused within limits of size and time."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from minigts.artifacts.downloads import LIMITS, DownloadLimits, DownloadRefused, fetch

CONTENT = bytes(range(256)) * 300


class Server(BaseHTTPRequestHandler):
    """Answers what its path asks for."""

    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404, "\x1b[2J")
            return
        if self.path == "/circle":
            self.send_response(302)
            self.send_header("Location", "/circle")
            self.end_headers()
            return
        self.send_response(200)
        if self.path == "/short":
            self.send_header("Content-Length", str(len(CONTENT) + 1))
        self.end_headers()
        self.wfile.write(CONTENT)
        while self.path == "/endless":
            self.wfile.write(b"x")
            time.sleep(0.01)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def refusal(address: str, limits: DownloadLimits = LIMITS) -> str:
    with pytest.raises(DownloadRefused) as refused:
        fetch(address, io.BytesIO(), limits)
    assert str(refused.value).isprintable()
    return str(refused.value)


def test_a_file_is_fetched_whole(address: str) -> None:
    into = io.BytesIO()
    fetch(f"{address}/file", into)
    assert into.getvalue() == CONTENT


@pytest.mark.parametrize(
    ("path", "limits", "said"),
    [
        ("/missing", LIMITS, "HTTP status 404"),
        ("/circle", LIMITS, "HTTP status 302"),
        ("/short", LIMITS, "broke off after"),
        ("/endless", DownloadLimits(most_s=0.2), "took longer than 0.2 s"),
        ("/file", DownloadLimits(most_bytes=50), "is larger than 50 bytes"),
    ],
)
def test_what_is_no_download_is_refused(path: str, limits: DownloadLimits, said: str, address: str) -> None:
    assert said in refusal(f"{address}{path}", limits)


MALFORMED = (
    *("http://", "http://[::1", "http://a b/", "http://127.0.0.1:port/", "https://127.0.0.1:1/", "http://\udc80/"),
    *("http://user:secret@127.0.0.1:1/x", "http://127.0.0.1:1/\x1b[2J", "http://" + "a" * 300 + "/", "http://.../"),
)


@pytest.mark.parametrize("place", MALFORMED, ids=ascii)
def test_an_address_that_is_none_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    said = refusal(place)
    assert "cannot be fetched" in said
    assert "secret" not in said
