"""A connection to the etcd member on this host, over etcd's JSON gateway."""

import base64
import http.client
import json

HOST, PORT, TIMEOUT_S = "127.0.0.1", 2379, 1.0


class Refused(Exception):
    """The request has reached no member: it was not done."""


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def text(value: str) -> str:
    return base64.b64decode(value).decode()


class Member:
    """The member, over one connection as long as it lasts."""

    def __init__(self) -> None:
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, path: str, **what: object) -> dict[str, object]:
        """Its answer. Raises Refused where nothing was done, OSError where nobody knows."""
        if self._connection is None:
            connection = http.client.HTTPConnection(HOST, PORT, timeout=TIMEOUT_S)
            try:
                connection.connect()
            except OSError as error:
                raise Refused(str(error)) from error
            self._connection = connection
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

    def put(self, key: str, value: str) -> None:
        self.ask("put", key=coded(key), value=coded(value))

    def get(self, key: str, serializable: bool = False) -> str | None:
        """What the key holds, as of now: the member asks the others whether it is behind. A `serializable` read does
        without, and so may be old."""
        return next(iter(self._values(self.ask("range", key=coded(key), serializable=serializable))), None)

    def below(self, prefix: str) -> list[str]:
        """What all keys hold that begin with `prefix`, which ends in a slash."""
        end = prefix[:-1] + chr(ord("/") + 1)
        return self._values(self.ask("range", key=coded(prefix), range_end=coded(end)))

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
