"""One tree of errors. Nothing here prints or exits: `cli` turns an error into a message and its `exit_code`."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from minigts.foreign import Foreign, parser_text, printable, screen_text, user_text

MOST_SHOWN = 1000
"""The most characters that are shown of a line of a command's output."""
LINES_SHOWN = 20
"""The most lines of it that are shown."""

_SECRETS = re.compile(r"(?<=://)[^/@\s\"']{1,1000}@")


def redact(text: str) -> str:
    """`text` without the user and password in its URLs: https://user:word@host/ → https://…@host/."""
    return _SECRETS.sub("\N{HORIZONTAL ELLIPSIS}@", text)


class MinigtsError(Exception):
    """An error that minigts can explain to its user. `exit_code` is the exit code of the command line."""

    exit_code = 1


class EnvironmentLacks(MinigtsError):
    """This machine lacks something; the message says what, and how to get it."""

    exit_code = 3


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong in an input file. `line` counts from 1; 0 means the file as a whole."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return printable(f"{where}: {self.message}").replace("\n", "\\n")


class InputError(MinigtsError):
    """All problems of one input, found in one pass; nothing has been changed when it is raised."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems = () if isinstance(problems, str) else tuple(sorted(problems))
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, self.problems)))


class CommandFailed(MinigtsError):
    """A command ended with a code other than 0. `host` is empty for a command on this machine.

    `out` and `err` are what it printed, which may be a stranger's words on this machine too: those of a program that
    reads a stranger's file. `stdout` and `stderr` are the same as text, for users' programs alone.
    """

    def __init__(self, host: str, argv: Sequence[str], code: int, stdout: str | Foreign, stderr: str | Foreign) -> None:
        self.host, self.argv, self.code = host, tuple(argv), code
        self.out, self.err = Foreign(stdout), Foreign(stderr)
        super().__init__(self._describe())

    @property
    def stdout(self) -> str:
        return user_text(self.out)

    @property
    def stderr(self) -> str:
        return user_text(self.err)

    def hiding(self, words: Collection[str]) -> Self:
        """The same error with an ellipsis for each of these words, which are secrets."""
        longest_first = sorted(filter(None, words), key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

        def hidden(text: str) -> str:
            return pattern.sub("\N{HORIZONTAL ELLIPSIS}", text)

        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.argv = tuple(map(hidden, self.argv))
        other.out, other.err = Foreign(hidden(parser_text(self.out))), Foreign(hidden(parser_text(self.err)))
        other.args = (other._describe(),)
        return other

    def _describe(self) -> str:
        where = f"on {self.host}: " if self.host else ""
        said = [line for text in (self.out, self.err) for line in _last_lines(text)][-LINES_SHOWN:]
        indented = "".join(f"\n    {screen_text(line, MOST_SHOWN)}" for line in said)
        return redact(f"{where}`{shlex.join(self.argv)}` ended with code {self.code}{indented}")


def _last_lines(text: Foreign) -> list[Foreign]:
    return text[-LINES_SHOWN * MOST_SHOWN :].strip().splitlines()[-LINES_SHOWN:]


class CommandTimeout(CommandFailed):
    """A command was ended because its time was up."""

    def __init__(
        self, host: str, argv: Sequence[str], timeout_s: float, stdout: str | Foreign, stderr: str | Foreign
    ) -> None:
        self.timeout_s = timeout_s
        super().__init__(host, argv, 124, stdout, stderr)

    def _describe(self) -> str:
        return super()._describe().replace("ended with code 124", f"was ended after {self.timeout_s:g} s", 1)


class BrokenOff(MinigtsError):
    """The work of one thread was ended because another thread no longer needs it. That thread reports the reason."""


class HostFailed(MinigtsError):
    """A host did not come up, or went away. The message carries its console's last lines."""

    out = Foreign()
    """What the command that the host ran had printed until then."""


@contextlib.contextmanager
def reading_from(host: str, what: str) -> Iterator[None]:
    """Within the context, the output of a host is read, which may be anything. Raises HostFailed when it cannot be
    read."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = printable(f"{error!r}".replace("\\n", " "))[:160]
        raise HostFailed(f"{host}: {what} cannot be read: {reason}") from error


@contextlib.contextmanager
def noting_failures(error: BaseException) -> Iterator[None]:
    """Within the context, clean up after `error`. A failure becomes a note of `error`, which is still to be raised."""
    try:
        yield
    except Exception as failure:
        parts = failure.exceptions if isinstance(failure, ExceptionGroup) else (failure,)
        for part in parts:
            error.add_note(f"and then: {part}")
