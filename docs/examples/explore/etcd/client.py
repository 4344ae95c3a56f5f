"""client.py SECONDS [serializable]: waits until the etcd member on this host answers, and asks it every 0.1 s. It
reads, writes or swaps a register that all clients share, another one every 5 s, and after every fourth such request it
adds a value to a set, which is all keys below writes/. With `serializable` its reads are such.

client.py members: prints the set, once the member answers."""

import random
import sys
import time

from etcd import Member
from history import Refused, ask, values

EVERY_S, REGISTER_S = 0.1, 5.0


def written(member: Member, key: str, value: str) -> dict[str, object]:
    member.put(key, value)
    return {}


def held_by(member: Member, key: str) -> str | None:
    """What the key seems to hold; None as well where nobody answers."""
    try:
        return member.get(key)
    except (Refused, OSError):
        return None


def the_set(member: Member) -> list[str]:
    """The set, as soon as the member knows of a leader."""
    while True:
        try:
            return member.below("writes/")
        except (Refused, OSError):
            time.sleep(EVERY_S)


def main() -> None:
    member, chance = Member(), random.SystemRandom()
    the_set(member)
    begin_s = time.monotonic()
    serializable = sys.argv[2:] == ["serializable"]
    for number, value in enumerate(values(float(sys.argv[1]), EVERY_S), start=1):
        key = f"register-{int((time.monotonic() - begin_s) / REGISTER_S)}"
        match chance.choice(("read", "read", "write", "cas")):
            case "read":
                ask(lambda key=key: {"value": member.get(key, serializable)}, op="read", key=key)
            case "write":
                ask(lambda key=key, value=value: written(member, key, value), op="write", key=key, value=value)
            case _:
                last = held_by(member, key)
                swap = {"op": "cas", "key": key, "value": value, "from": last}
                ask(lambda key=key, value=value, last=last: {"held": member.swap(key, last, value)}, **swap)
        if number % 4 == 0:
            time.sleep(EVERY_S)
            ask(lambda value=value: written(member, f"writes/{value}", value), op="add", value=value)


if sys.argv[1] == "members":
    sys.stdout.write("\n".join(the_set(Member())) + "\n")
else:
    main()
