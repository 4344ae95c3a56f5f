"""A connection to Valkey, and the master that this host's Sentinel names."""

import socket

from history import Refused

SENTINEL, TIMEOUT_S = ("127.0.0.1", 26379), 1.0
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
            raise Refused(rest.decode())  # such as by a replica that was asked to write
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


class Client:
    """Asks the master, over one connection as long as it lasts."""

    def __init__(self) -> None:
        self._connection: Connection | None = None

    def ask(self, *words: str) -> object:
        """Its answer. Raises Refused where nothing was done, OSError where nobody knows."""
        try:
            self._connection = self._connection or Connection(master())
        except OSError as error:
            raise Refused(str(error)) from error
        try:
            return self._connection.ask(*words)
        except (Refused, OSError):
            self._connection.close()
            self._connection = None
            raise

    def done(self, *words: str) -> dict[str, object]:
        """As `ask`, where its answer says no more than that it was done."""
        self.ask(*words)
        return {}
