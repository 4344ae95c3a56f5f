"""A connection to a member of NATS, as far as JetStream needs it: requests that are answered."""

import json
import socket
import time

from history import Refused

PORT, TIMEOUT_S = 4222, 1.0
STREAM, SUBJECT = "ORDERS", "orders"


class Member:
    """A member, over one connection as long as it lasts."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._inbox = f"_INBOX.{host}"
        """Where answers come: the cluster carries them to whoever listens there, so each connection has its own."""
        self._line: socket.socket | None = None
        self._asked = 0
        self._heard = b""

    def ask(self, subject: str, payload: str = "") -> dict[str, object]:
        """Its answer, a JSON document. Raises Refused where nothing was sent, OSError where nobody knows."""
        if self._line is None:
            self._line = self._connected()
        self._asked += 1
        inbox, sent = f"{self._inbox}.{self._asked}", payload.encode()
        try:
            self._line.sendall(f"PUB {subject} {inbox} {len(sent)}\r\n".encode() + sent + b"\r\n")
            return dict(json.loads(self._answer(inbox)))
        except OSError:
            self._line.close()
            self._line = None
            raise

    def _connected(self) -> socket.socket:
        try:
            line = socket.create_connection((self._host, PORT), TIMEOUT_S)
        except OSError as error:
            raise Refused(str(error)) from error
        self._heard = b""
        told = f'CONNECT {{"verbose": false, "pedantic": false}}\r\nSUB {self._inbox}.* 1\r\n'
        line.sendall(told.encode())
        return line

    def _answer(self, inbox: str) -> bytes:
        """The payload of the message that came to `inbox`; others, which came too late, are left out."""
        until_s = time.monotonic() + TIMEOUT_S
        while True:
            words = self._until(b"\r\n", until_s).split()
            if words[:1] == [b"PING"]:
                self._sendall(b"PONG\r\n")
            elif words[:1] == [b"MSG"]:
                length = int(words[-1])
                payload = self._bytes(length + 2, until_s)[:length]
                if words[1].decode() == inbox:
                    return payload

    def _sendall(self, told: bytes) -> None:
        assert self._line is not None
        self._line.sendall(told)

    def _until(self, end: bytes, until_s: float) -> bytes:
        while end not in self._heard:
            self._hear(until_s)
        told, _, self._heard = self._heard.partition(end)
        return told

    def _bytes(self, length: int, until_s: float) -> bytes:
        while len(self._heard) < length:
            self._hear(until_s)
        told, self._heard = self._heard[:length], self._heard[length:]
        return told

    def _hear(self, until_s: float) -> None:
        assert self._line is not None
        self._line.settimeout(max(until_s - time.monotonic(), 0.001))
        told = self._line.recv(1 << 16)
        if not told:
            raise ConnectionError("the member has closed the connection")
        self._heard += told

    def make_stream(self) -> None:
        """A stream in three copies, on disk; it may be there already. Raises OSError where it is not made."""
        asked = {"name": STREAM, "subjects": [SUBJECT], "num_replicas": 3, "storage": "file"}
        self._done(self.ask(f"$JS.API.STREAM.CREATE.{STREAM}", json.dumps(asked)))

    def add(self, value: str) -> None:
        """Publish the value; return when the stream says that it has it."""
        self._done(self.ask(SUBJECT, value))

    def state(self) -> tuple[int, int]:
        """The numbers of the stream's first and last message."""
        state = self._done(self.ask(f"$JS.API.STREAM.INFO.{STREAM}"))["state"]
        assert isinstance(state, dict)
        return int(state["first_seq"]), int(state["last_seq"])

    def message(self, number: int) -> str:
        """The message's value, in base64."""
        got = self._done(self.ask(f"$JS.API.STREAM.MSG.GET.{STREAM}", json.dumps({"seq": number})))["message"]
        assert isinstance(got, dict)
        return str(got["data"])

    @staticmethod
    def _done(answer: dict[str, object]) -> dict[str, object]:
        if "error" in answer:
            raise OSError(json.dumps(answer["error"]))
        return answer
