"""Runs calls that use one lab in parallel threads. On a lab with its own clock each thread has a turn.

Such a clock stands still while any thread that has a turn is busy. All that the threads ask at one moment of the lab's
time is therefore asked at exactly that moment, however fast each thread is, and the same calls give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Lock, Thread
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Turn(Protocol):
    """The right of one thread to stop a lab's clock while the thread is busy."""

    number: int

    def rest(self) -> None:
        """Let the clock run on while this thread waits."""
        ...

    def resume(self) -> None:
        """Stop the clock for this thread again; return when it stands still."""
        ...

    def end(self) -> None: ...


class NoTurn:
    """The turn on a lab that uses this machine's time: it does nothing."""

    number = 0

    def rest(self) -> None: ...

    def resume(self) -> None: ...

    def end(self) -> None: ...


_CURRENT: ContextVar[Turn | None] = ContextVar("turn", default=None)


class _Ends:
    """The functions that end the waits of a caller's threads, so that the caller can break them off."""

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
    """A context in which this thread waits for something. When the caller of its `Together` is interrupted, another
    thread calls `end`, which must end the wait and may raise only OSError.
    """
    ends = _ENDS.get()
    if ends is None:
        yield
        return
    with ends.hold(end):
        yield


def turn_of_this_thread() -> Turn | None:
    """This thread's turn, which is one of NoTurn on a lab that uses this machine's time; None outside of `together`."""
    return _CURRENT.get()


def current_turn() -> int:
    """The number of this thread's turn; 0 if it has none."""
    turn = _CURRENT.get()
    return 0 if turn is None else turn.number


@contextmanager
def resting() -> Iterator[None]:
    """A context in which this thread does not stop the clock, since it waits for something but a host's answer."""
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
    """A call that runs in a thread of its own, once it is started."""

    def __init__(self, call: Callable[[], T], turn: Turn, caller: Turn, ends: _Ends) -> None:
        self._call, self._turn, self._caller, self._ends = call, turn, caller, ends
        self._lock = Lock()
        self._begun = self._ended = self._awaited = False
        self._value: T
        self._error: BaseException | None = None
        self._done = Event()
        """Used instead of `Thread.join`, which in Python 3.11, once interrupted, takes a running thread for ended."""

    def start(self) -> None:
        """Start the thread. When that fails or is interrupted, the call runs all the same, or never."""
        try:
            Thread(target=self._work, daemon=True).start()
        except BaseException:
            self.call_off()
            raise

    def call_off(self) -> None:
        """Never run the call, if it has not begun; whoever waits for it need not wait any longer."""
        with self._lock:
            if self._begun:
                return
            self._begun = True
        self._turn.end()
        self._done.set()

    def result(self) -> T:
        """Wait for the call's end; return its result, or raise its error."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def wait(self, *, with_a_turn: bool = True) -> None:
        """Wait for the call's end. `with_a_turn` lets the caller's turn rest meanwhile."""
        try:
            with self._lock:
                self._awaited = with_a_turn and not self._ended
                if self._awaited:
                    self._caller.rest()
            self._done.wait()
        except BaseException:  # the wait was interrupted, so the task must not resume the caller's turn
            with self._lock:
                self._awaited = False
            raise

    def _work(self) -> None:
        with self._lock:
            if self._begun:  # it was called off
                return
            self._begun = True
        _CURRENT.set(self._turn)
        _ENDS.set(self._ends)
        try:
            self._value = self._call()
        except BaseException as error:  # `result` raises it in the caller's thread
            self._error = error
        try:
            with self._lock:
                self._ended = True
                if self._awaited:
                    self._caller.resume()  # before this turn ends, so that time does not pass in between
        except BaseException as error:  # the clock has ended
            self._error = self._error or error
        finally:
            self._turn.end()
            self._done.set()


class Together:
    """Starts calls in parallel. See `together`."""

    def __init__(self, new_turn: Callable[[], Turn], own: Turn, ends: _Ends) -> None:
        self._new_turn, self._own, self._ends = new_turn, own, ends
        self._tasks: list[Task[object]] = []
        self.is_broken_off = False
        """Whether the caller was interrupted: nobody begins anything further."""

    def start(self, call: Callable[[], T]) -> Task[T]:
        task = Task(call, self._new_turn(), self._own, self._ends)
        self._tasks.append(task)  # type: ignore[arg-type]  # before its start, which an interruption may follow at once
        task.start()
        return task

    def all(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run all calls; return their results. The first error is raised after all have ended."""
        tasks = [self.start(call) for call in calls]
        for task in tasks:
            task.wait()
        return [task.result() for task in tasks]

    def wait(self) -> None:
        for task in self._tasks:
            task.wait(with_a_turn=not self.is_broken_off)

    def break_off(self) -> None:
        """End the present wait of every call, so that it fails, and end the caller's turn on the clock."""
        self.is_broken_off = True
        for task in self._tasks:
            task.call_off()
        self._ends.act()
        self._own.end()


@contextmanager
def together(
    new_turn: Callable[[], Turn] = NoTurn, lent: Callable[[], Turn | None] = lambda: None
) -> Iterator[Together]:
    """A context in which calls can be started in parallel; it ends when all of them have ended. An interruption breaks
    them off. The caller's turn is the one that it has, else what `lent` gives, else a new one."""
    before = _CURRENT.get() or lent()
    own = new_turn() if before is None else before
    token = _CURRENT.set(own)
    pool = Together(new_turn, own, _ENDS.get() or _Ends())
    try:
        yield pool
    except (KeyboardInterrupt, SystemExit):
        pool.break_off()
        raise
    finally:
        try:
            pool.wait()
        finally:
            _CURRENT.reset(token)
            if before is None:
                own.end()
