"""A connection to a member of etcd, over etcd's JSON gateway."""

import base64
import http.client
import json
import time
from collections.abc import Iterator

from history import Refused

PORT, TIMEOUT_S = 2379, 1.0


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def text(value: str) -> str:
    return base64.b64decode(value).decode()


def range_of(prefix: str) -> dict[str, str]:
    """All keys that begin with `prefix`, which ends in a slash."""
    return {"key": coded(prefix), "range_end": coded(prefix[:-1] + chr(ord("/") + 1))}


class Member:
    """A member, by default the one on this host, over one connection as long as it lasts."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, path: str, **what: object) -> dict[str, object]:
        """Its answer. Raises Refused where nothing was done, OSError where nobody knows."""
        if self._connection is None:
            self._connection = self._connected()
        try:
            self._connection.request("POST", f"/v3/kv/{path}", json.dumps(what))
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            raise OSError(str(error)) from error
        if answer.status != http.client.OK:  # such as a leader that has changed: the request may still come through
            raise OSError(body.decode(errors="replace"))
        return dict(json.loads(body))

    def _connected(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._host, PORT, timeout=TIMEOUT_S)
        try:
            connection.connect()
        except OSError as error:
            raise Refused(str(error)) from error
        return connection

    def watch(self, prefix: str, start: int, for_s: float) -> Iterator[int]:
        """The revisions of what is written below `prefix`, from revision `start` on, as the member tells of them, for
        `for_s` and no longer than it goes on to tell. Raises Refused where it is not reached."""
        connection, until_s = self._connected(), time.monotonic() + for_s
        try:
            create = {**range_of(prefix), "start_revision": str(start)}
            connection.request("POST", "/v3/watch", json.dumps({"create_request": create}))
            answer = connection.getresponse()
            while time.monotonic() < until_s and (line := answer.readline()):
                for event in json.loads(line)["result"].get("events", ()):
                    yield int(event["kv"]["mod_revision"])
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def put(self, key: str, value: str) -> None:
        self.ask("put", key=coded(key), value=coded(value))

    def get(self, key: str, serializable: bool = False) -> str | None:
        """What the key holds, as of now: the member asks the others whether it is behind. A `serializable` read does
        without, and so may be old."""
        return next(iter(self._values(self.ask("range", key=coded(key), serializable=serializable))), None)

    def below(self, prefix: str) -> list[str]:
        """What all keys hold that begin with `prefix`, which ends in a slash."""
        return self._values(self.ask("range", **range_of(prefix)))

    def swap(self, key: str, before: str | None, value: str) -> bool:
        """Write `value` if the key holds `before`, or nothing where that is None; whether it did."""
        held: dict[str, object] = {"key": coded(key), "result": "EQUAL"}
        held |= {"target": "CREATE", "create_revision": "0"} if before is None else {"target": "VALUE"}
        if before is not None:
            held["value"] = coded(before)
        put = {"request_put": {"key": coded(key), "value": coded(value)}}
        return bool(self.ask("txn", compare=[held], success=[put]).get("succeeded"))

    @staticmethod
    def _values(answer: dict[str, object]) -> list[str]:
        found = answer.get("kvs", [])
        assert isinstance(found, list)
        return [text(each["value"]) for each in found]
