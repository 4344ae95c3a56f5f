"""writes.py: adds one value after the other to a set, at the master that this host's Sentinel names, until /root/stop
is there. Prints a line of JSON for each: the value, when it was sent and answered (ns), and the answer: `ok`, `fail`,
or `info` where nobody knows whether it was added."""

import json
import socket
import sys
import time
from pathlib import Path

SENTINEL, EVERY_S, TIMEOUT_S = ("127.0.0.1", 26379), 0.1, 1.0
STOP = Path("/root/stop")
Address = tuple[str, int]


class Connection:
    """Valkey's protocol, RESP2: a request is an array of texts, an answer begins with its kind."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, TIMEOUT_S)
        self._answers = self._socket.makefile("rb")

    def ask(self, *words: str) -> object:
        parts = [b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)]
        self._socket.sendall(b"".join(parts))
        return self._answer()

    def _answer(self) -> object:
        line = self._answers.readline().rstrip(b"\r\n")
        if not line:
            raise ConnectionError("it has gone")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise PermissionError(rest.decode())
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        if kind == b"$":
            return self._answers.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        return rest.decode()

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


def master() -> Address:
    sentinel = Connection(SENTINEL)
    try:
        address = sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
    finally:
        sentinel.close()
    assert isinstance(address, list)
    return str(address[0]), int(address[1])


def write(connection: Connection | None, value: str) -> tuple[Connection | None, str]:
    """The connection for the next write, and the answer to this one."""
    try:
        connection = connection or Connection(master())
    except OSError:
        return None, "fail"
    try:
        connection.ask("SADD", "writes", value)
    except PermissionError:  # it is a replica now
        connection.close()
        return None, "fail"
    except OSError:
        connection.close()
        return None, "info"
    return connection, "ok"


def main() -> None:
    connection, number = None, 0
    while not STOP.exists():
        number += 1
        value, sent = f"{socket.gethostname()}-{number}", time.monotonic_ns()
        connection, answer = write(connection, value)
        line = {"value": value, "sent": sent, "answered": time.monotonic_ns(), "answer": answer}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        time.sleep(EVERY_S)


main()
