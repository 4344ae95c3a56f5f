"""How long an answer of a host is waited for. Every wait for one goes by this, whoever waits, and in both times.

A command may take as long as it likes: what has a limit is silence. A host owes a word from when it is sent something
until its agent has read it off the line, which an agent does at once whatever else its host does; the supervisor passes
that on (`wire.TAKEN`). In this machine's time an agent of which nothing is heard is asked again and again. In a lab's
own time that would change what happens in it, so there it is the lab's clock that is looked at: a host that has been
sent something has its turn next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from minigts.errors import HostFailed
from minigts.machine import interruption

LOOK_S = 1.0
"""How often it is looked whether the host still answers, at the least."""
ASK_AFTER_S = 10.0
"""An agent of which nothing has been heard for so long is asked whether it is there."""
SILENT_S = 30.0
"""How long an agent may owe a word, by this machine's time, in a lab that has that."""
BOOT_S = 120.0
"""The same of a host that has not greeted yet: one that somebody else starts just now."""
SILENT_LAB_S = 10.0
"""The same by the lab's own clock. An honest agent owes it for less than a millisecond."""
SILENT_AT_MOST_S = 300.0
"""And by this machine's time while the lab's passes, however slowly: the host's turn is the next."""
QUIET_S = 3.0
"""As long as something has been heard since, its process is not looked at: a lab may have hundreds."""
STOPPED_S = 10.0
"""How long the process of a host's kernel may be stopped by somebody else than minigts (SIGSTOP)."""
CLOCK_S = 300.0
"""How long the lab's clock may take to say the time: it does so when its kernels have ended their turns."""
STILL_S = 600.0
"""How long another command may keep the lab's time from passing, as one that copies disks does."""
ENDLESS_S = 60.0
"""How long nothing at all may happen in a lab whose time may pass."""
INTERRUPTED_S, LATER_S = 5.0, 1.0
"""Once the user has broken off: until so long after that, and each wait that begins later for so long."""


class LabTime(NamedTuple):
    """The lab's time in seconds, and whether anybody lets it pass."""

    now_s: float
    passes: bool


class Clock(Protocol):
    """A lab's own clock, looked at without waiting for it."""

    @property
    def unanswered_s(self) -> float:
        """How long it has owed its answer; 0 when it owes none."""
        ...

    def look(self) -> LabTime | None:
        """What it has said last. Raises HostFailed when it has ended."""
        ...


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Conditions:
    """What is known of a host beside its line."""

    clock: Callable[[], Clock] | None = None
    """Makes what looks at the lab's own clock; None: it has this machine's time."""
    is_held: Callable[[], bool] = _never
    """Whether its user lets no time pass for it (`minigts pause`), or its disk is being copied."""
    is_stopped: Callable[[], bool] = _never
    """Whether the process of its kernel is stopped."""
    remedy: str = ""
    """What is to be done about one that does not answer: `minigts restart bra`."""
    ailment: Callable[[], str] = lambda: ""
    """A clause that says what the host itself is known to lack; empty for nothing."""


class Patience:
    """Of one who waits for what a host says. `limit_s` is when what it was asked for is over at the latest, by the
    lab's time, if there is such a limit. `asks`: an agent of which nothing is heard may be asked.
    """

    def __init__(
        self, host: str, what: str, conditions: Conditions, *, limit_s: float | None = None, asks: bool = True
    ) -> None:
        self._host, self._what, self._conditions, self._limit_s = host, what, conditions, limit_s
        self._asks = asks
        self._clock: Clock | None = None
        self.has_greeted: bool | None = None
        """None: its supervisor does not tell, as those of before, and nothing is known of its agent."""
        now = time.monotonic()
        self._began = self._heard = self._since = self._looked = self._moved = self._passed = now
        self._owed: float | None = None
        self._stopped: float | None = None
        self._lab_began: float | None = None
        self._lab_owed: float | None = None
        self._lab_seen: float | None = None
        self._overdue = False

    def owes(self) -> None:
        """The host has been sent something, or takes nothing of what it is sent."""
        if self._owed is None:
            self._owed, self._lab_owed = time.monotonic(), None

    def greeted(self, has: bool) -> None:
        self.has_greeted = has
        self.heard()
        if has:  # what it was sent meanwhile comes to it now
            self._owed = time.monotonic()

    def heard(self) -> None:
        """Something has come from it."""
        self._heard = time.monotonic()
        self._owed = self._stopped = None

    def excuse(self, seconds: float) -> None:
        """So long somebody else has taken time."""
        self._since += seconds
        self.heard()

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

    def _begin_again(self, now: float) -> None:
        self._since = self._heard = self._moved = self._passed = now
        self._owed = None if self._owed is None else now
        self._stopped = self._lab_began = self._lab_owed = None

    def _look_at_user(self, now: float) -> None:
        ago_s = interruption.seconds_since()
        if ago_s is not None and ago_s > INTERRUPTED_S and now - self._began > LATER_S:
            raise HostFailed(f"host {self._host} was not waited for any longer (`{self._what}`)")

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
            raise self._silence(f"it has taken nothing for {SILENT_S:g} s (`{self._what}`)")
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
            raise self._silence(f"the lab's clock has not said the time for {CLOCK_S:g} s, for a kernel keeps its turn")
        if told is None:
            return
        if told.now_s != self._lab_seen:
            self._lab_seen, self._moved = told.now_s, now
        if told.passes:
            self._passed = now
        elif now - self._passed > STILL_S:
            raise HostFailed(
                f"the lab's time has not passed for {STILL_S:g} s: another command keeps it, or a host does not start"
            )
        elif self._owed is not None:
            self._owed = now  # nobody can answer meanwhile
        if self._clock.unanswered_s > LOOK_S:
            self._moved = now  # a kernel has its turn, in which a program computes: CLOCK_S is for that
        if told.passes and now - self._moved > ENDLESS_S:
            raise self._silence(f"nothing has happened in the lab for {ENDLESS_S:g} s (`{self._what}`)")
        self._look_at_lab(now, told.now_s)

    def _look_at_lab(self, now: float, lab_s: float) -> None:
        if self._lab_began is None:
            self._lab_began = lab_s
        if self._limit_s is not None and lab_s - self._lab_began > self._limit_s:
            # It may have been paused for a moment between two looks, and be late by that.
            if self._overdue:
                raise self._silence(f"`{self._what}` should have ended after {self._limit_s:g} s of the lab's")
            self._overdue, self._lab_began = True, lab_s
        if self._owed is None or not self.has_greeted:
            return
        if self._lab_owed is None:
            self._lab_owed = lab_s
        if lab_s - self._lab_owed > SILENT_LAB_S:
            raise self._silence(f"it has taken nothing for {SILENT_LAB_S:g} s of the lab's (`{self._what}`)")
        if now - self._owed > SILENT_AT_MOST_S:
            raise self._silence(f"it has taken nothing for {SILENT_AT_MOST_S:g} s (`{self._what}`)")

    def _silence(self, why: str) -> HostFailed:
        remedy = f"; {self._conditions.remedy} starts it again" if self._conditions.remedy else ""
        ailment = self._conditions.ailment()
        return HostFailed(f"host {self._host} does not answer: {why}{ailment and '; '}{ailment}{remedy}")
