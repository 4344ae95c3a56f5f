"""A client's history: it prints a line of JSON right before it asks, and one when it is answered."""

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator


class Refused(Exception):
    """The request was certainly not done."""


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), **what}) + "\n")
    sys.stdout.flush()


def ask(do: Callable[[], dict[str, object]], **operation: object) -> None:
    """Ask by `do`, which returns what belongs to the answer. It raises Refused where nothing was done, OSError where
    nobody knows."""
    tell(**operation)
    try:
        tell(answer="ok", **do())
    except Refused:
        tell(answer="fail")
    except OSError:
        tell(answer="info")


def values(during_s: float, every_s: float = 0.1) -> Iterator[str]:
    """Values that nobody else has, such as `a-17` on host a: one `every_s` after the one before was dealt with."""
    number, until_s = 0, time.monotonic() + during_s
    while time.monotonic() < until_s:
        number += 1
        yield f"{socket.gethostname()}-{number}"
        time.sleep(every_s)
