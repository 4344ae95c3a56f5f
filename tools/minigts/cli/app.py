"""The program `minigts`: its start, its signals, its exit codes.

Exit codes: 0 ok, 1 a check or a lab failed, 2 wrong usage or input, 3 the environment lacks something, 130 and 143
interrupted, 141 the reader of standard output has gone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import minigts
from minigts import paths
from minigts.cli import console, verbs
from minigts.errors import InputError
from minigts.machine import interruption

PRIVATE = 0o077
"""The umask for files that minigts writes for itself: labs' records, logs and sockets are for their owner alone. Files
for the user, such as results, follow the user's own umask (paths.users_umask)."""

COMPLETES = "_MINIGTS_COMPLETE"
"""The environment variable with which a shell asks for completions. typer chooses its name; the launcher uses it, too.
"""


class _Program(TyperGroup):
    """Finds the verbs by their files. Turns an error that minigts can explain into a message and an exit code; any
    other exception is a bug, and its traceback is shown. For a verb of a similar program it names minigts' own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**(settings | {"commands": {}}))
        self.commands: Any = verbs.Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return verbs.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb as help lists it, without its parameters; `resolve_command` returns the whole verb, which runs."""
        return verbs.verb(cmd_name).help_entry(cmd_name) if cmd_name in self.commands else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            from minigts.cli.help_from_source import SPOKEN

            if (ours := SPOKEN.get(args[0])) is not None:
                raise InputError(f"no verb {args[0]!r}: {ours}")
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and self.commands[name], rest

    def invoke(self, ctx: Any) -> Any:
        debug = bool(ctx.params.get("verbose")) or bool(os.environ.get("MINIGTS_DEBUG"))
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise typer.Exit(console.silence()) from None
        except (Exception, KeyboardInterrupt) as error:
            told: BaseException = error
            if not console.is_expected(error):
                if interruption.seconds_since() is None:
                    raise
                told = KeyboardInterrupt()  # which a library may have put into an error of its own
            raise typer.Exit(console.explain(told, debug=debug)) from error
        return result


app = typer.Typer(
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point. A SIGTERM, and a terminal that is closed, unwind the program as an error does: what it has
    started is taken down."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, partial(_hang_up, [stream for stream in (1, 2) if os.isatty(stream)]))
    # debugfs and others are in directories that a plain user's PATH lacks.
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    os.environ.setdefault(paths.UMASK, f"{os.umask(PRIVATE):03o}")
    if os.environ.get(COMPLETES):
        from typer.completion import completion_init  # type: ignore[attr-defined]  # what add_completion would do

        completion_init()
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, _interrupt)
        app(prog_name="minigts")
    except KeyboardInterrupt as interrupted:  # before a verb has begun
        sys.exit(console.explain(interrupted, debug=False))


def _terminate(number: int, _frame: FrameType | None) -> None:
    interruption.note()
    sys.exit(128 + number)


def _hang_up(terminals: Sequence[int], number: int, frame: FrameType | None) -> None:
    """End as by SIGTERM. What is written goes nowhere: the terminal is gone, and each write would be an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in terminals:
        os.dup2(nowhere, stream)
    _terminate(number, frame)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    interruption.note()
    raise KeyboardInterrupt


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"minigts {minigts.__version__}")
        raise typer.Exit()


@app.callback()
def root(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The GÉANT Testbed Service on one machine: hosts with kernels of their own, links that hold their delay.

    [bold]First minute:[/bold]  minigts run experiments/multihop.yaml

    [bold]Step by step:[/bold]  minigts up topologies/pair.yaml, then status, exec, shell, check, and down
    """
