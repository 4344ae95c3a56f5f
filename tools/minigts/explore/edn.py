"""Writes a history as Jepsen's checkers read it (Elle, Knossos): EDN, the data notation of Clojure. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from minigts.explore.histories import Operation, moment_ns

_KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def edn_lines(history: Iterable[Operation]) -> list[str]:
    """A line for each request and each answer, in the order of time. A key and its value are a pair, as Jepsen's
    `independent` has it; of an `info` there is no answer before the end, and its client goes on as another process."""
    happened = []
    processes: dict[str, int] = {}
    clients = 0
    for number, each in enumerate(sorted(history, key=lambda each: moment_ns(each, "sent"))):
        client, answer = str(each.get("client")), str(each.get("answer"))
        if client not in processes:
            processes[client], clients = clients, clients + 1
        process = processes[client]
        happened.append((moment_ns(each, "sent"), 1, number, process, "invoke", _request(each)))
        if answer == "info":
            del processes[client]
        at_ns = moment_ns(each, "answered")
        happened.append((at_ns, 2 if at_ns == moment_ns(each, "sent") else 0, number, process, answer, _answer(each)))
    return [
        f"{{:index {index}, :type :{kind}, :process {process}, {what}, :time {at_ns}}}"
        for index, (at_ns, _, _, process, kind, what) in enumerate(sorted(happened))
    ]


def _request(operation: Operation) -> str:
    value = operation.get("value")
    if operation.get("op") == "txn" and isinstance(value, Sequence):
        value = [[step[0], step[1], step[2] if step[0] == "append" else None] for step in value]
    elif operation.get("op") in ("read", "take"):
        value = None
    elif operation.get("op") == "cas":
        value = [operation.get("from"), value]
    return _what(operation, value)


def _answer(operation: Operation) -> str:
    value = operation.get("value")
    if operation.get("op") == "cas":
        value = [operation.get("from"), value]
    for name in ("values", "balances"):
        value = operation.get(name, value)
    return _what(operation, value)


def _what(operation: Operation, value: object) -> str:
    if "key" in operation:
        value = [operation["key"], value]
    return f":f {_keyword(operation.get('op'))}, :value {edn(value)}"


def _keyword(word: object) -> str:
    return f":{word}" if isinstance(word, str) and _KEYWORD.fullmatch(word) else edn(word)


def edn(value: object) -> str:
    """A value of JSON in EDN; the words of a transaction's steps are keywords."""
    match value:
        case None:
            return "nil"
        case bool() | int() | float():
            return json.dumps(value)
        case ["append" | "r" as word, *rest]:
            return f"[:{word} {' '.join(map(edn, rest))}]"
        case Mapping():
            return "{" + ", ".join(f"{edn(name)} {edn(each)}" for name, each in value.items()) + "}"
        case [*values]:
            return f"[{' '.join(map(edn, values))}]"
        case _:
            return json.dumps(str(value), ensure_ascii=False)
