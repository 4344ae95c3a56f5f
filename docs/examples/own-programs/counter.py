"""Counts visits, in a Redis whose name the environment says."""

import os
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer

STORE, TIMEOUT_S = os.environ["STORE"], 3


def count() -> int:
    """One visit more: Redis' protocol answers `:2` to INCR."""
    with socket.create_connection((STORE, 6379), TIMEOUT_S) as store:
        store.sendall(b"INCR visits\r\n")
        return int(store.recv(100).decode()[1:])


class Visit(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        try:
            code, text = 200, f"visit {count()}\n"
        except OSError as error:
            code, text = 503, f"the store {STORE} does not answer: {error}\n"
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())


HTTPServer(("", 8000), Visit).serve_forever()
