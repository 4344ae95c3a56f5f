"""watcher.py SECONDS MEMBER…: writes keys by this host's member, and watches them by one member after the other, each
from the revision after the last that it has heard of, as a client does whose connections break.

watcher.py fill: waits for the member, and writes 8 MB, so that there is something to be copied."""

import sys
import threading
import time
from contextlib import suppress
from itertools import cycle

from etcd import Member
from history import Refused, ask, values

PREFIX, EVERY_S, STAY_S, WRITERS = "writes/", 0.05, 0.5, 3
LARGE, LARGE_VALUES = "x" * (1 << 20), 8


def fill() -> None:
    member = Member()
    for number in range(LARGE_VALUES):
        while True:
            try:
                member.put(f"large/{number}", LARGE)
                break
            except (Refused, OSError):
                time.sleep(EVERY_S)


def write(number: int, during_s: float) -> None:
    member = Member()
    for value in values(during_s, EVERY_S):
        with suppress(Refused, OSError):
            member.put(f"{PREFIX}{value}-{number}", value)


def main() -> None:
    during_s, members = float(sys.argv[1]), cycle(sys.argv[2:])
    for number in range(WRITERS):
        threading.Thread(target=write, args=(number, during_s), daemon=True).start()
    start = 1
    for _ in values(during_s, EVERY_S):
        member, heard = next(members), list[int]()

        def watch(member: str = member, start: int = start, heard: list[int] = heard) -> dict[str, object]:
            heard.extend(Member(member).watch(PREFIX, start, STAY_S))
            return {"revisions": heard}

        ask(watch, op="watch", member=member, start=start)
        start = max([start - 1, *heard]) + 1


if sys.argv[1] == "fill":
    fill()
else:
    main()
