"""register.py SECONDS: writes and reads a register in turn, every 0.1 s. Prints a line of JSON when it asks, and one
when it is answered."""

import json
import socket
import sys
import time

from valkey import Client

EVERY_S = 0.1


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), **what}) + "\n")
    sys.stdout.flush()


def main() -> None:
    client, number, until = Client(), 0, time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until:
        number += 1
        value = f"{socket.gethostname()}-{number}"
        tell(op="write", key="x", value=value)
        answer, _ = client.ask("SET", "x", value)
        tell(answer=answer)
        time.sleep(EVERY_S)
        tell(op="read", key="x")
        answer, found = client.ask("GET", "x")
        tell(answer=answer, value=found)
        time.sleep(EVERY_S)


main()
