"""client.py SECONDS [serializable]: asks the etcd member on this host every 0.1 s. It reads, writes or swaps a register
that all clients share, another one every 5 s, and after every fourth such request it adds a value to a set, which is
all keys below writes/. Prints a line of JSON when it asks, and one when it is answered. With `serializable` its reads
are such.

client.py members: prints the set."""

import json
import random
import socket
import sys
import time
from collections.abc import Callable

from etcd import Member, Refused

EVERY_S, REGISTER_S = 0.1, 5.0


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), **what}) + "\n")
    sys.stdout.flush()


def asked(do: Callable[[], dict[str, object]]) -> None:
    try:
        tell(answer="ok", **do())
    except Refused:
        tell(answer="fail")
    except OSError:
        tell(answer="info")


def write(member: Member, key: str, value: str) -> dict[str, object]:
    member.put(key, value)
    return {}


def main() -> None:
    member, chance, number = Member(), random.SystemRandom(), 0
    begin, host, last, serializable = time.monotonic(), socket.gethostname(), None, sys.argv[2:] == ["serializable"]
    while (passed := time.monotonic() - begin) < float(sys.argv[1]):
        number += 1
        key, value = f"register-{int(passed / REGISTER_S)}", f"{host}-{number}"
        match chance.choice(("read", "read", "write", "cas")):
            case "read":
                tell(op="read", key=key)
                asked(lambda key=key: {"value": member.get(key, serializable)})
            case "write":
                tell(op="write", key=key, value=value)
                asked(lambda key=key, value=value: write(member, key, value))
            case _:
                last = held_by(member, key)
                tell(op="cas", key=key, value=value, **{"from": last})
                asked(lambda key=key, value=value, last=last: {"held": member.swap(key, last, value)})
        time.sleep(EVERY_S)
        if number % 4 == 0:
            tell(op="add", value=value)
            asked(lambda value=value: write(member, f"writes/{value}", value))
            time.sleep(EVERY_S)


def held_by(member: Member, key: str) -> str | None:
    """What the key seems to hold; None as well where nobody answers."""
    try:
        return member.get(key)
    except (Refused, OSError):
        return None


if sys.argv[1] == "members":
    sys.stdout.write("\n".join(Member().below("writes/")) + "\n")
else:
    main()
