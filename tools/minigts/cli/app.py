"""The program `minigts`: how it starts, and what becomes of an error.

Exit codes: 0 ok, 1 a check or a lab failed, 2 wrong usage or input, 3 the environment lacks something, 130 and 143
interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo

import minigts
from minigts import paths
from minigts.cli import screen
from minigts.errors import InputError
from minigts.machine import interruption

PRIVATE = 0o077
"""The umask of what minigts writes for itself: labs' records and logs, sockets are their owner's alone. What it writes
for its user, such as results, is as the user's own umask says (paths.users_umask)."""

COMPLETES = "_MINIGTS_COMPLETE"
"""The variable by which a shell asks what may come next (typer's own name for it). The launcher knows it, too."""


class _Guarded(TyperGroup):
    """Turns an error that minigts can explain into its message and exit code; others are bugs. Whoever types a verb of
    a similar program is told of ours."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            from minigts.cli.help_from_source import SPOKEN

            if (ours := SPOKEN.get(args[0])) is not None:
                raise InputError(f"no verb {args[0]!r}: {ours}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        debug = bool(ctx.params.get("verbose")) or bool(os.environ.get("MINIGTS_DEBUG"))
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise typer.Exit(screen.silence()) from None
        except (Exception, KeyboardInterrupt) as error:
            if not screen.explicable(error):
                raise
            raise typer.Exit(screen.explain(error, debug=debug)) from error
        return result


app = typer.Typer(
    cls=_Guarded,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """What `./minigts` runs. A SIGTERM unwinds the program like an error: what it started is taken down."""
    signal.signal(signal.SIGTERM, _terminate)
    # debugfs and others lie where a plain user's PATH does not look.
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    os.environ.setdefault(paths.UMASK, f"{os.umask(PRIVATE):03o}")
    if os.environ.get(COMPLETES):
        from typer.completion import completion_init  # type: ignore[attr-defined]  # what add_completion would do

        completion_init()
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, _interrupt)
        build_only(next(iter(sys.argv[1:]), ""))
        app(prog_name="minigts")
    except KeyboardInterrupt as interrupted:  # before a verb has begun
        sys.exit(screen.explain(interrupted, debug=False))


def build_only(word: str) -> None:
    """Leave the other verbs out where that is one: to build them all takes longer than most of them run. `test` leaves
    out none, since tests of verbs run in its process."""
    if word == "test":
        return
    commands = [each for each in app.registered_commands if get_command_name(_name(each)) == word]
    groups = [each for each in app.registered_groups if each.name == word]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups


def _name(command: CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback is not None else "")


def _terminate(number: int, _frame: FrameType | None) -> None:
    interruption.note()
    sys.exit(128 + number)


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
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """The GÉANT Testbed Service on one machine: hosts with kernels of their own, links that hold their delay.

    [bold]First minute:[/bold]  minigts run experiments/multihop.yaml

    [bold]By hand:[/bold]  minigts up topologies/pair.yaml, then status, exec, shell, check, and down
    """
