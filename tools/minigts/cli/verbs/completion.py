"""`minigts completion`: print a shell's completion script; `cli/completion.py` finds the words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from minigts.cli.app import COMPLETES
from minigts.cli.verbs import PROJECT, Verb

verb = Verb(PROJECT, 490)


class Shell(StrEnum):
    """The shells that have a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@verb.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a script with which a shell completes verbs, options, labs, hosts, links, overlays and files.

    bash:  put  eval "$(minigts completion bash)"  into ~/.bashrc

    zsh:  put  eval "$(minigts completion zsh)"  into ~/.zshrc, after compinit

    fish:  minigts completion fish >~/.config/fish/completions/minigts.fish

    Example:  minigts completion bash
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # as its documentation has it

    script = get_completion_script(prog_name="minigts", complete_var=COMPLETES, shell=shell)
    if shell is Shell.ZSH:  # calls the program as it was typed, such as ./minigts; bash's script does
        script = script.replace("complete_zsh minigts)", "complete_zsh ${words[1]})").replace("#compdef minigts\n", "")
    typer.echo(script)
