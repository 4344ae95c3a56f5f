"""Broken input in great numbers: each mutant ends as it should, in time, and within memory.

A `Subject` is what is tried: files to start from, a way to break them, and a function that takes one broken file.
Mutant number N of a subject is the same each time. A child process takes them, one after the other, so that what ends
the process shows which mutant did it.
"""

from __future__ import annotations

import multiprocessing
import random
import re
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path

LONGEST_S = 8.0
"""Of a mutant, in seconds of the processor: a busy machine makes nothing slow. The plan of 210 hosts and 1010 links
takes two of them, and may be drawn."""
LARGEST_MB = 300.0
"""What a mutant may add to the memory in use."""
PATIENCE_S = 300.0
"""Without a word from the child: something waits that does not count, such as a pipe."""
_KEPT = 20
"""Failures are kept as they are; more of them tell no more."""


@dataclass(frozen=True)
class Subject:
    """What is tried. `take` returns whether it accepted the mutant, and raises when that ended as it should not."""

    name: str
    seeds: Sequence[bytes]
    mutate: Callable[[bytes, Sequence[bytes], random.Random], bytes]
    take: Callable[[bytes], bool]


@dataclass(frozen=True)
class Failure:
    """A mutant that ended wrongly, and how."""

    number: int
    how: str


@dataclass(frozen=True)
class Outcome:
    """What became of the mutants: how many were taken and accepted, the slowest and the largest with its number."""

    subject: str
    mutants: int = 0
    accepted: int = 0
    slowest: tuple[float, int] = (0.0, -1)
    """Seconds of the processor."""
    largest: tuple[float, int] = (0.0, -1)
    """MB."""
    failures: tuple[Failure, ...] = ()
    failed: int = 0
    """How many failed; `failures` has the first of them."""


class _TooLong(BaseException):
    """Raised in a mutant whose time is over; no `except Exception` on the way catches it."""


def mutant(subject: Subject, number: int) -> bytes:
    """The mutant of that number."""
    chance = random.Random(f"{subject.name}/{number}")
    return subject.mutate(chance.choice(subject.seeds), subject.seeds, chance)


def fuzz(subject: Subject, first: int, last: int, progress: Callable[[Outcome], None] = lambda _: None) -> Outcome:
    """Take the mutants from `first` to before `last`. A child that a mutant ends is replaced for the next one."""
    outcome = Outcome(subject.name)
    while first < last:
        outcome, first = _in_a_child(subject, first, last, outcome, progress)
    return outcome


def _in_a_child(
    subject: Subject, first: int, last: int, outcome: Outcome, progress: Callable[[Outcome], None]
) -> tuple[Outcome, int]:
    """The outcome so far, and the mutant to go on with."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_take_all, args=(subject, first, last, theirs), daemon=True)
    child.start()
    theirs.close()
    at = first
    try:
        while ours.poll(PATIENCE_S):
            report = ours.recv()
            at = report.last + 1
            outcome = report.added_to(outcome)
            progress(outcome)
            if at >= last:
                return outcome, at
    except EOFError:
        pass
    child.kill()
    child.join()
    if at < last:
        ended = f"the process ended with {child.exitcode}, by this mutant or one of the {_EVERY} after it"
        outcome = _Report(at, failures=[Failure(at, ended)]).added_to(outcome)
        at += _EVERY
    return outcome, at


_EVERY = 25
"""Mutants between two words of the child."""


@dataclass
class _Report:
    """Some mutants' outcome, the last of which is `last`."""

    last: int
    mutants: int = 0
    accepted: int = 0
    slowest: tuple[float, int] = (0.0, -1)
    largest: tuple[float, int] = (0.0, -1)
    failures: list[Failure] = field(default_factory=list)

    def added_to(self, outcome: Outcome) -> Outcome:
        return replace(
            outcome,
            mutants=outcome.mutants + self.mutants,
            accepted=outcome.accepted + self.accepted,
            slowest=max(outcome.slowest, self.slowest),
            largest=max(outcome.largest, self.largest),
            failures=(*outcome.failures, *self.failures)[:_KEPT],
            failed=outcome.failed + len(self.failures),
        )


def _take_all(subject: Subject, first: int, last: int, to: Connection) -> None:
    signal.signal(signal.SIGPROF, _time_is_over)
    for start in range(first, last, _EVERY):
        report = _Report(start)
        for number in range(start, min(start + _EVERY, last)):
            _take_one(subject, number, report)
        to.send(report)


def _time_is_over(_number: int, _frame: object) -> None:
    raise _TooLong


def _take_one(subject: Subject, number: int, report: _Report) -> None:
    broken = mutant(subject, number)
    before_mb = _start_of_memory_mb()
    since = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    how = ""
    try:
        report.accepted += subject.take(broken)
    except _TooLong:
        how = f"took more than {LONGEST_S:g} s, when it was here:\n{traceback.format_exc(limit=-6)}"
    except BaseException:  # whatever it is, it is what is looked for
        how = traceback.format_exc(limit=-8)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds, mb = time.process_time() - since, _peak_memory_mb() - before_mb
    if mb > LARGEST_MB:
        how += f"took {mb:.0f} MB"
    if how:
        report.failures.append(Failure(number, how))
    report.last, report.mutants = number, report.mutants + 1
    report.slowest = max(report.slowest, (seconds, number))
    report.largest = max(report.largest, (mb, number))


_RESET_PEAK = "5"
"""proc_pid_clear_refs(5): from now on, the peak is that since now."""


def _start_of_memory_mb() -> float:
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    return _peak_memory_mb()


def _peak_memory_mb() -> float:
    found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


NASTY = (
    *("", "~", "null", "true", "no", "0", "-1", "1e999", "-1e308", ".inf", "-.inf", ".nan", "NaN", "0x7fffffff"),
    *("0o17", "0b1", "1:30:00", "2026-11-22", "1_000", "9" * 400, "9" * 5000, "-0", "1.", ".5", "1e-320", "٣", "１"),
    *("1e308%", "100%", "101%", "0ms", "1e9s", "99999999999h", "0.00001ms", "5 mbit", "5\tmbit", "1GB", "1packet"),
    *('"\\UFFFFFFFF"', '"\\ud800"', '"\\x1b[31m"', '"\\0"', '"\\u202e"', '"\\n"', "'", '"', "|", ">-", "!!str x"),
    *("!!python/object:os.system", "&a [*a]", "*a", "&a", "<<", "<<: {a: b}", "? x", "- x", "[", "]", "{", "}", "{}"),
    *("[]", "[[[[[[[[[[[[[[", "{a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: m}}}}}}}}}}}}", ": ", "#", "%YAML 1.1"),
    *("---\n", "...\n", "\r\n", "\t", "\0", "\x7f", "\x85", "\u2028", "\ufeff", "é", "🦊", "x" * 300, "x" * 70_000),
    *("/dev/zero", "/etc/passwd", "../../x", "$(id)", "; id", "a/b", "none", "any", "fit", "mtu", "100000", "1 to 2"),
    *("under 1 %", "over 9e9 ms", "host", "first-to-each", "every-pair", "each-segment", "10.0.0.0/33", "0.0.0.0/0"),
)
"""What has broken a reader of files somewhere."""
_TOKEN = re.compile(r"[^\s\[\]{},:\"'#]+")


def mutate_text(seed: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """One to six things done to a file of lines: bytes, tokens, lines and blocks are changed, doubled, moved, lost."""
    text = seed.decode("utf-8", "replace")
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 6))):
        text = chance.choice(_CHANGES)(text, others, chance)[:300_000]
    data = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.1:
        data = _bytes_changed(data, chance)
    return data


def _bytes_changed(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        if broken:
            broken[chance.randrange(len(broken))] = chance.randrange(256)
    prefix = chance.choice((b"", b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\0"))
    return prefix + bytes(broken)


def _another_token(text: str, others: Sequence[bytes], chance: random.Random) -> str:
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    hit = chance.choice(tokens)
    put = chance.choice(NASTY) if chance.random() < 0.6 else _token(others, chance)
    return text[: hit.start()] + put + text[hit.end() :]


def _token(others: Sequence[bytes], chance: random.Random) -> str:
    return chance.choice(_TOKEN.findall(chance.choice(others).decode("utf-8", "replace")) or ["x"])


def _swapped_tokens(text: str, _others: Sequence[bytes], chance: random.Random) -> str:
    tokens = list(_TOKEN.finditer(text))
    if len(tokens) < 2:
        return text
    a, b = sorted(chance.sample(tokens, 2), key=lambda hit: hit.start())
    return text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]


def _inserted(text: str, _others: Sequence[bytes], chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(NASTY) + text[at:]


def _lines_changed(text: str, others: Sequence[bytes], chance: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    a, b = sorted(chance.randrange(len(lines)) for _ in range(2))
    match chance.randrange(7):
        case 0:
            del lines[a : b + 1]
        case 1:
            lines[b:b] = lines[a : b + 1]
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case 3:
            lines[a] = " " * chance.randint(0, 9) + lines[a].lstrip(" ")
        case 4:
            lines[a : b + 1] = ["  " + line for line in lines[a : b + 1]]
        case 5:
            other = chance.choice(others).decode("utf-8", "replace").splitlines(keepends=True) or [""]
            start = chance.randrange(len(other))
            lines[a:a] = other[start : start + chance.randint(1, 5)]
        case _:
            lines[a] = lines[a].rstrip("\n") + " " + lines[b]
    return "".join(lines)


def _piece_repeated(text: str, _others: Sequence[bytes], chance: random.Random) -> str:
    a, b = sorted(chance.randint(0, len(text)) for _ in range(2))
    piece = text[a : min(b, a + 60)]
    return text[:a] + piece * chance.choice((2, 3, 10, 100, 300)) + text[a:]


def _list_grown(text: str, _others: Sequence[bytes], chance: random.Random) -> str:
    hits = list(re.finditer(r"\[([^\[\]\n]*)\]", text))
    if not hits:
        return text
    hit = chance.choice(hits)
    put = ", ".join(f"{chance.choice(('', 'a', 'h'))}{number}" for number in range(chance.choice((0, 2, 20, 300))))
    return text[: hit.start(1)] + put + text[hit.end(1) :]


def _cut(text: str, _others: Sequence[bytes], chance: random.Random) -> str:
    a, b = sorted(chance.randint(0, len(text)) for _ in range(2))
    return text[:a] if chance.random() < 0.3 else text[:a] + text[b:]


def _windows(text: str, _others: Sequence[bytes], chance: random.Random) -> str:
    return text.replace("\n", chance.choice(("\r\n", "\r", "\n\n", "\n\t")))


_CHANGES = (
    *(_another_token,) * 8,
    *(_swapped_tokens,) * 2,
    *(_inserted,) * 2,
    *(_lines_changed,) * 5,
    *(_piece_repeated, _list_grown, _list_grown, _cut, _windows),
)
