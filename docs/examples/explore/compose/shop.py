"""Takes orders, and adds them to a set in a Redis: `WRITE=later` after its answer, `WRITE=first` before it."""

import os
import queue
import socket
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORE, LATER, TIMEOUT_S = os.environ["STORE"], os.environ["WRITE"] == "later", 2
orders: "queue.Queue[str]" = queue.Queue()


def say(text: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC).isoformat()} {text}\n")
    sys.stdout.flush()


def write(order: str) -> None:
    with socket.create_connection((STORE, 6379), TIMEOUT_S) as store:
        store.sendall(f"SADD orders {order}\r\n".encode())
        if not store.recv(100).startswith(b":"):
            raise ConnectionError("the store did not take it")


def write_later() -> None:
    while True:
        order = orders.get()
        try:
            write(order)
        except OSError as error:
            say(f"order {order} was not written: {error}")


class Order(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        order, code = self.path.removeprefix("/orders/"), 201
        try:
            if LATER:
                orders.put(order)
            else:
                write(order)
        except OSError as error:
            code = 503
            say(f"order {order} was refused: {error}")
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


threading.Thread(target=write_later, daemon=True).start()
ThreadingHTTPServer(("", 8000), Order).serve_forever()
