"""The server's port and the parser of results that netperf's tests share. A netserver listens at every endpoint."""

from __future__ import annotations

import re

from minigts.tools.base import ParseError, PathUnderTest, complaint, number

PORT = 12865
_KEY_VALUE = re.compile(r"([A-Z][A-Z0-9_]*)(?:\[\d+\])?=(.*)")


def client(way: PathUnderTest) -> tuple[str, ...]:
    """The beginning of a client's command line."""
    return ("netperf", "-6" if way.family == "ipv6" else "-4", "-H", way.address)


class NetperfOutput:
    """The lines `KEY=VALUE` that netperf's `-k` selects. Raises ParseError where `needed` is not among them."""

    def __init__(self, stdout: str, stderr: str, needed: str) -> None:
        matches = filter(None, (_KEY_VALUE.fullmatch(line.strip()) for line in stdout.splitlines()))
        self.pairs = tuple((match[1], match[2]) for match in matches)
        self._values = dict(self.pairs)
        if needed not in self._values:
            reason = complaint(stderr) or complaint(_without_values(stdout))
            raise ParseError(f"netperf: {reason or 'no final values'}")

    def text(self, key: str) -> str:
        return self._values.get(key, "")

    def number(self, key: str) -> float:
        """The key's value as a number. Raises ParseError where it is none."""
        return number(self.text(key), key)


def _without_values(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _KEY_VALUE.fullmatch(line.strip()))
