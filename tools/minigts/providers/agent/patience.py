"""How long to wait for a host's answer: the rule for every such wait, in real and in virtual time.

A command may run for any time; only silence is limited. A host owes an answer from when it is sent a request until its
agent has read it, which an agent does at once whatever else its host does; the supervisor reports this (`wire.TAKEN`).
In real time a silent agent is asked (`wire.ASK`) again and again. In virtual time that would change what happens in the
lab, so the lab's clock is watched instead: a host that has been sent something has the next turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from minigts.errors import HostFailed
from minigts.machine import interruption

LOOK_S = 1.0
"""The longest interval between two looks at whether the host still answers."""
ASK_AFTER_S = 10.0
"""In real time, an agent that has been silent for so long is asked whether it still runs."""
SILENT_S = 30.0
"""In real time, how long an agent may owe an answer."""
BOOT_S = 120.0
"""In real time, how long a host may take to boot, as one that another command has just started."""
SILENT_LAB_S = 10.0
"""In virtual time, how long an agent may owe an answer by the lab's clock. A sound one owes it for less than 1 ms."""
SILENT_AT_MOST_S = 300.0
"""In virtual time, the same by this machine's time, while the lab's passes, however slowly."""
QUIET_S = 3.0
"""The host's process is examined only after so long a silence, since a lab may have hundreds of hosts."""
STOPPED_S = 10.0
"""How long the process of a host's kernel may be stopped by a SIGSTOP that is not from minigts."""
CLOCK_S = 6600.0
"""How long the lab's clock may take to answer, which it does when all kernels have ended their turns. It is more than a
kernel's turn may last, which the clock ends: twenty times the 300 s of a kernel that is alone in its lab."""
STILL_S = 600.0
"""How long another command, such as one that copies disks, may stop the lab's time."""
ENDLESS_S = 60.0
"""How long nothing may happen in a lab whose time is allowed to pass."""
INTERRUPTED_S, LATER_S = 5.0, 1.0
"""After the user has interrupted: the time until running waits end, and the limit of each wait that begins later."""


class LabTime(NamedTuple):
    """The lab's time in seconds, and whether it may pass."""

    now_s: float
    passes: bool


class LabClock(Protocol):
    """A lab's own clock, read without waiting for it."""

    @property
    def unanswered_s(self) -> float:
        """For how many seconds the clock has owed an answer; 0 when it owes none."""
        ...

    def look(self) -> LabTime | None:
        """The clock's last answer; None before the first. Raises HostFailed when the clock has ended."""
        ...


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Conditions:
    """What a provider knows about a host without asking its agent."""

    clock: Callable[[], LabClock] | None = None
    """Makes the reader of the lab's own clock; None if the lab uses this machine's time."""
    is_held: Callable[[], bool] = _never
    """Whether the host is paused (`minigts pause`), or its disk is being copied."""
    is_stopped: Callable[[], bool] = _never
    """Whether the process of the host's kernel is stopped."""
    remedy: str = ""
    """The command that helps when the host does not answer, such as `minigts restart bra`."""
    ailment: Callable[[], str] = lambda: ""
    """A clause that says what the host lacks, such as memory; empty if nothing is known."""


class Patience:
    """Judges one wait for a host. `what` names the command. `limit_s` is the longest that the command may take, in the
    lab's time; None for no limit. `asks` says whether a silent agent may be asked.
    """

    def __init__(
        self, host: str, what: str, conditions: Conditions, *, limit_s: float | None = None, asks: bool = True
    ) -> None:
        self._host, self._what, self._conditions, self._limit_s = host, what, conditions, limit_s
        self._asks = asks
        self._clock: LabClock | None = None
        self.has_greeted: bool | None = None
        """Whether the host's agent has greeted; None if its supervisor has not said so."""
        now = time.monotonic()
        self._began = self._heard = self._since = self._looked = self._moved = self._passed = now
        self._owed: float | None = None
        self._stopped: float | None = None
        self._lab_began: float | None = None
        self._lab_owed: float | None = None
        self._lab_seen: float | None = None
        self._overdue = False

    def owes(self) -> None:
        """Note that the host was sent something, or that its line is full: it owes an answer."""
        if self._owed is None:
            self._owed, self._lab_owed = time.monotonic(), None

    def note_greeting(self, has: bool) -> None:
        self.has_greeted = has
        self.note_words()
        if has:  # what it was sent before reaches it now
            self._owed = time.monotonic()

    def note_words(self) -> None:
        """Note that the host has sent something."""
        self._heard = time.monotonic()
        self._owed = self._stopped = None

    def excuse(self, seconds: float) -> None:
        """Do not count these seconds, which the caller spent itself."""
        self._since += seconds
        self.note_words()

    def is_due(self) -> bool:
        """Whether it is time to `look`."""
        return time.monotonic() - self._looked >= LOOK_S

    def look(self) -> bool:
        """Whether the agent is to be asked if it is there. Raises HostFailed for a host that does not answer."""
        now = self._looked = time.monotonic()
        self._look_at_user(now)
        if self._conditions.is_held():
            self._begin_again(now)
            return False
        self._look_at_process(now)
        if self._conditions.clock is not None:
            self._look_at_clock(now)
            return False
        return self._look_at_machine(now)

    def begin_anew(self) -> None:
        """Judge the wait as one that begins now, by the clock that the host has now."""
        self._clock = None
        self._lab_seen, self._overdue = None, False
        self._begin_again(time.monotonic())

    def _begin_again(self, now: float) -> None:
        self._since = self._heard = self._moved = self._passed = now
        self._owed = None if self._owed is None else now
        self._stopped = self._lab_began = self._lab_owed = None

    def _look_at_user(self, now: float) -> None:
        ago_s = interruption.seconds_since()
        if ago_s is not None and ago_s > INTERRUPTED_S and now - self._began > LATER_S:
            raise HostFailed(f"the wait for host {self._host} was interrupted (`{self._what}`)")

    def _look_at_process(self, now: float) -> None:
        if now - self._heard < QUIET_S or not self._conditions.is_stopped():
            self._stopped = None
            return
        self._stopped = now if self._stopped is None else self._stopped
        if now - self._stopped > STOPPED_S:
            raise self._silence(f"its kernel's process has been stopped for {STOPPED_S:g} s")

    def _look_at_machine(self, now: float) -> bool:
        if self._limit_s is not None and now - self._since > self._limit_s:
            raise self._silence(f"`{self._what}` should have ended after {self._limit_s:g} s")
        if self.has_greeted is None:
            return False
        owed_s = 0.0 if self._owed is None else now - self._owed
        if self.has_greeted is False:
            if now - self._since > BOOT_S:
                raise self._silence(f"it has not come up for {BOOT_S:g} s")
            return False
        if owed_s > SILENT_S:
            raise self._silence(f"it has read nothing for {SILENT_S:g} s (`{self._what}`)")
        if self._owed is None and self._asks and now - self._heard > ASK_AFTER_S:
            self.owes()
            return True
        return False

    def _look_at_clock(self, now: float) -> None:
        assert self._conditions.clock is not None
        if self._clock is None:
            self._clock = self._conditions.clock()
        told = self._clock.look()
        if self._clock.unanswered_s > CLOCK_S:
            raise self._silence(f"the lab's clock has not answered for {CLOCK_S:g} s: a kernel does not end its turn")
        if told is None:
            return
        if told.now_s != self._lab_seen:
            self._lab_seen, self._moved = told.now_s, now
        if told.passes:
            self._passed = now
        elif now - self._passed > STILL_S:
            raise HostFailed(
                f"the lab's time has not passed for {STILL_S:g} s: another command stops it, or a host does not start"
            )
        elif self._owed is not None:
            self._owed = now  # no host can answer while time stands still
        if self._clock.unanswered_s > LOOK_S:
            self._moved = now  # a program computes in a kernel's turn: CLOCK_S limits that
        if told.passes and now - self._moved > ENDLESS_S:
            raise self._silence(f"nothing has happened in the lab for {ENDLESS_S:g} s (`{self._what}`)")
        self._look_at_lab(now, told.now_s)

    def _look_at_lab(self, now: float, lab_s: float) -> None:
        if self._lab_began is None:
            self._lab_began = lab_s
        if self._limit_s is not None and lab_s - self._lab_began > self._limit_s:
            # It may have been paused between two looks, and be late by that.
            if self._overdue:
                raise self._silence(f"`{self._what}` should have ended after {self._limit_s:g} s of the lab's time")
            self._overdue, self._lab_began = True, lab_s
        if self._owed is None or not self.has_greeted:
            return
        if self._lab_owed is None:
            self._lab_owed = lab_s
        if lab_s - self._lab_owed > SILENT_LAB_S:
            raise self._silence(f"it has read nothing for {SILENT_LAB_S:g} s of the lab's time (`{self._what}`)")
        if now - self._owed > SILENT_AT_MOST_S:
            raise self._silence(f"it has read nothing for {SILENT_AT_MOST_S:g} s (`{self._what}`)")

    def _silence(self, why: str) -> HostFailed:
        remedy = f"; {self._conditions.remedy} starts it again" if self._conditions.remedy else ""
        ailment = self._conditions.ailment()
        return HostFailed(f"host {self._host} does not answer: {why}{ailment and '; '}{ailment}{remedy}")
