"""Says where a seed is that hardly gets on, such as one with a program in an endless loop of calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from minigts.errors import MinigtsError
from minigts.foreign import one_line
from minigts.lab import Lab
from minigts.language.figures import digits, duration
from minigts.machine.progress import Progress
from minigts.providers.base import SeesWork, WorkOfHost

EVERY_S = 60.0
"""How often it is looked, by this machine's clock."""
SLOW = 0.5
"""A seed hardly gets on whose lab has passed less than this for each of this machine's seconds."""
LITTLE = 0.05
"""Hosts that take less than this share of a processor do nothing: the lab waits for its test, or for a processor."""
LONGEST_PROGRAM = 80


@contextmanager
def watch(lab: Lab, name: str, say: Progress, every_s: float = EVERY_S) -> Iterator[None]:
    """While this lasts, look from time to time whether the time of a lab in virtual time gets on, and say so if not:
    which seed, at which time of the lab, and what has worked meanwhile. Nothing runs on the hosts for this, so their
    course stays what it is."""
    if lab.time != "virtual" or not isinstance(lab.provider, SeesWork):
        yield
        return
    over = threading.Event()
    watching = threading.Thread(target=_look, args=(lab, lab.provider, name, say, every_s, over), daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def _look(lab: Lab, hosts: SeesWork, name: str, say: Progress, every_s: float, over: threading.Event) -> None:
    with suppress(MinigtsError):  # a lab that is gone ends the seed, and whoever runs it says so
        begun_s = before_s = lab.provider.now_s()
        before, looks = hosts.work(), 0
        while not over.wait(every_s):
            looks += 1
            now_s, now = lab.provider.now_s(), hosts.work()
            if now_s - before_s < SLOW * every_s:
                place = f"{name} is at {digits(now_s - begun_s)} s of the lab's time after {duration(looks * every_s)}"
                say(f"{place}: {busiest(hosts, before, now, every_s)}")
            before_s, before = now_s, now


def busiest(hosts: SeesWork, before: Mapping[str, WorkOfHost], now: Mapping[str, WorkOfHost], every_s: float) -> str:
    """What has worked between two looks, in words: `sh loop.sh on ams works (48 s of 60 s of a processor)`."""
    took = {host: work.seconds - before[host].seconds for host, work in now.items() if host in before}
    host = max(took, key=took.__getitem__, default="")
    if not host or took[host] < LITTLE * every_s:
        waited_s = sum(work.waited_s - before[each].waited_s for each, work in now.items() if each in before)
        if waited_s > SLOW * every_s:
            return "its hosts wait for this machine's processors, which are busy with other work"
        return "its hosts do nothing, the lab waits for the test"
    since = before[host].programs
    programs = {process: used - since.get(process, 0.0) for process, used in now[host].programs.items()}
    process = max(programs, key=programs.__getitem__, default=0)
    words = one_line(hosts.program(process), LONGEST_PROGRAM) or "a program"
    return f"{words} on {host} works ({digits(took[host], 2)} of {digits(every_s)} s of a processor)"
