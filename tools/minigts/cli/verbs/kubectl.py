"""`minigts kubectl`: kubectl on a cluster's control plane, with files of this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from minigts.cli import completion, console
from minigts.cli.options import LabName, one_of, opened_lab
from minigts.cli.verbs import LABS, Verb
from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.lab import Lab

verb = Verb(LABS, 205)

DAY_S = 86_400.0
FOLLOWING = "logs"
"""kubectl's command for which `-f` is no file."""
STDIN = "-"


@verb.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def kubectl(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="kubectl's command, options and arguments.")],
    lab: LabName = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="HOST",
            help="The cluster of this host. Default: the only one.",
            autocompletion=completion.hosts,
        ),
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Run it on this terminal, as `kubectl edit` needs.")
    ] = False,
) -> None:
    """Run kubectl on the control plane of a lab's cluster of Kubernetes, and exit with its exit code.

    It goes by the control line of that host: nothing listens on this machine. Files and directories after -f are this
    machine's, `-f -` is standard input, and what is after -- is left alone. Options of minigts go before the command.

    Example:  minigts kubectl get pods --all-namespaces

    Example:  minigts kubectl apply -f app.yaml
    """
    from minigts.lab import provisioning

    opened = opened_lab(lab)
    host = _control_plane(opened, on)
    given, files = _with_files(words, Path.cwd())
    opened.read_record().require_on([host])
    for source, target in files:
        opened.provider.put(host, source, target)
    argv = provisioning.environment_command(opened, host, ["kubectl", *given])
    if terminal:
        raise typer.Exit(opened.provider.attach(host, argv))
    stdin = sys.stdin.buffer.read() if STDIN in words or "--filename=-" in words else b""
    result = opened.provider.run(host, argv, timeout_s=DAY_S, check=False, stdin=stdin, on_output=console.pass_on)
    raise typer.Exit(result.code)


def _control_plane(lab: Lab, on: str | None) -> str:
    from minigts.overlays import pods

    control_planes = pods.control_planes(lab)
    if on is not None:
        return control_planes[one_of("node", on, list(control_planes))]
    found = [*dict.fromkeys(control_planes.values())]
    if len(found) > 1:
        raise InputError(f"lab {lab.name} has {len(found)} clusters: name a host of one, as in --on {found[0]}")
    return found[0]


def _with_files(words: Sequence[str], here: Path) -> tuple[list[str], list[tuple[Path, PurePosixPath]]]:
    """The words with paths on the host in place of those on this machine, and what has to be copied: from where, to
    where. Raises InputError for a path that does not exist."""
    if FOLLOWING in words:
        return [*words], []
    given: list[str] = []
    files: list[tuple[Path, PurePosixPath]] = []
    for number, word in enumerate(words):
        if word == "--":
            return [*given, *words[number:]], files
        option, path = _file_in(word, words[number - 1] if number else "")
        if not path or path == STDIN or "://" in path:
            given.append(word)
            continue
        source = here / path
        if not source.exists():
            raise InputError(f"kubectl: there is no {path} on this machine")
        target = PurePosixPath("/run/minigts/kubectl", str(len(files)), source.name)
        files.append((source, target))
        given.append(f"{option}{target}")
    return given, files


def _file_in(word: str, before: str) -> tuple[str, str]:
    """An option that stands in the same word, and the path; the path is empty where the word has none."""
    if before in ("-f", "--filename"):
        return "", word
    if word.startswith("--filename="):
        return "--filename=", word.removeprefix("--filename=")
    if word.startswith("-f") and not word.startswith("--") and len(word) > 2:
        return "-f", word[2:].removeprefix("=")
    return "", ""
