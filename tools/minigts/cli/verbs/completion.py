"""`minigts completion`: what makes a shell complete; `cli/completion.py` finds the words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from minigts.cli.app import COMPLETES
from minigts.cli.verbs import PROJECT, Verb

verb = Verb(PROJECT, 490)


class Shell(StrEnum):
    """Those that have completions."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@verb.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Which shell.")]) -> None:
    """Print what makes a shell complete verbs, options, labs, hosts, links, overlays and files. Changes nothing.

    bash:  put  eval "$(minigts completion bash)"  into ~/.bashrc

    zsh:  put  eval "$(minigts completion zsh)"  into ~/.zshrc, behind compinit

    fish:  minigts completion fish >~/.config/fish/completions/minigts.fish

    Example:  minigts completion bash
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # as its documentation has it

    script = get_completion_script(prog_name="minigts", complete_var=COMPLETES, shell=shell)
    if shell is Shell.ZSH:  # what was typed, which may be ./minigts, as bash does by itself
        script = script.replace("complete_zsh minigts)", "complete_zsh ${words[1]})").replace("#compdef minigts\n", "")
    typer.echo(script)
