"""Calls side by side that use one lab, in threads; on a lab with a clock of its own each of them has a turn there.

Such a clock stands still as long as anybody who has a turn is busy. So what several threads ask at the same moment of
its time is asked at that moment, however fast each of them is: the same calls give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Lock, Thread
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Turn(Protocol):
    """The right of one thread to keep a lab's clock from going on."""

    number: int

    def rest(self) -> None:
        """Let the clock go on: others act for this thread."""
        ...

    def resume(self) -> None:
        """Return when the clock stands still for this thread again."""
        ...

    def end(self) -> None: ...


class NoTurn:
    """On a lab that has this machine's time."""

    number = 0

    def rest(self) -> None: ...

    def resume(self) -> None: ...

    def end(self) -> None: ...


_CURRENT: ContextVar[Turn | None] = ContextVar("turn", default=None)


class _Ends:
    """What ends the waits of threads that work for one caller, so that this one can break them off."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._acts: set[Callable[[], object]] = set()

    @contextmanager
    def hold(self, act: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            self._acts.add(act)
        try:
            yield
        finally:
            with self._lock:
                self._acts.discard(act)

    def act(self) -> None:
        with self._lock:
            for act in self._acts:
                with suppress(OSError):
                    act()


_ENDS: ContextVar[_Ends | None] = ContextVar("ends", default=None)


@contextmanager
def breakable(end: Callable[[], object]) -> Iterator[None]:
    """Within it this thread waits for something, unless `end`, called by another thread, has it wait no longer: that is
    done when whoever has called it side by side with others is interrupted. It must not raise but OSError.
    """
    ends = _ENDS.get()
    if ends is None:
        yield
        return
    with ends.hold(end):
        yield


def current_turn() -> int:
    """The number of this thread's turn; 0 if it has none and acts alone."""
    turn = _CURRENT.get()
    return 0 if turn is None else turn.number


@contextmanager
def resting() -> Iterator[None]:
    """Within it this thread keeps no clock from going on: it waits for something else than a host's answer."""
    turn = _CURRENT.get()
    if turn is None:
        yield
        return
    turn.rest()
    try:
        yield
    finally:
        turn.resume()


class Task(Generic[T]):
    """A call that runs in a thread of its own."""

    def __init__(self, call: Callable[[], T], turn: Turn, caller: Turn, ends: _Ends) -> None:
        self._call, self._turn, self._caller, self._ends = call, turn, caller, ends
        self._lock = Lock()
        self._ended = self._awaited = False
        self._value: T
        self._error: BaseException | None = None
        self._done = Event()
        """Not the thread's own end: Python 3.11's `join`, once interrupted, takes a thread that runs for ended."""
        Thread(target=self._work, daemon=True).start()

    def result(self) -> T:
        """What the call returned, when it has; raises what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def wait(self, *, with_a_turn: bool = True) -> None:
        """`with_a_turn`: the caller has one, which rests meanwhile."""
        try:
            with self._lock:
                self._awaited = with_a_turn and not self._ended
                if self._awaited:
                    self._caller.rest()
            self._done.wait()
        except BaseException:  # it was broken off: whoever waits no longer must not be told that it is its turn
            with self._lock:
                self._awaited = False
            raise

    def _work(self) -> None:
        _CURRENT.set(self._turn)
        _ENDS.set(self._ends)
        try:
            self._value = self._call()
        except BaseException as error:  # it is the caller's
            self._error = error
        try:
            with self._lock:
                self._ended = True
                if self._awaited:
                    self._caller.resume()  # before this turn ends, so that time does not pass in between
        except BaseException as error:  # the clock has ended: so is this
            self._error = self._error or error
        finally:
            self._turn.end()
            self._done.set()


class Together:
    """Starts calls side by side. See `together`."""

    def __init__(self, new_turn: Callable[[], Turn], own: Turn, ends: _Ends) -> None:
        self._new_turn, self._own, self._ends = new_turn, own, ends
        self._tasks: list[Task[object]] = []
        self._is_broken_off = False

    def start(self, call: Callable[[], T]) -> Task[T]:
        task = Task(call, self._new_turn(), self._own, self._ends)
        self._tasks.append(task)  # type: ignore[arg-type]
        return task

    def all(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """What each of them returned; the first error is raised after all have ended."""
        tasks = [self.start(call) for call in calls]
        for task in tasks:
            task.wait()
        return [task.result() for task in tasks]

    def wait(self) -> None:
        for task in self._tasks:
            task.wait(with_a_turn=not self._is_broken_off)

    def break_off(self) -> None:
        """Have no call wait any longer for what it waits for now: it fails. The caller keeps no clock from going on."""
        self._is_broken_off = True
        self._ends.act()
        self._own.end()


@contextmanager
def together(new_turn: Callable[[], Turn] = NoTurn) -> Iterator[Together]:
    """Within it calls can be started side by side; it ends when all of them have. Interrupted it breaks them off."""
    before = _CURRENT.get()
    own = new_turn() if before is None else before
    token = _CURRENT.set(own)
    company = Together(new_turn, own, _ENDS.get() or _Ends())
    try:
        yield company
    except (KeyboardInterrupt, SystemExit):
        company.break_off()
        raise
    finally:
        try:
            company.wait()
        finally:
            _CURRENT.reset(token)
            if before is None:
                own.end()
