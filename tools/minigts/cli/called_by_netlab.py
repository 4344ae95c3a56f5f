"""What netlab starts for containerlab, docker and sudo: `python -m minigts.cli.called_by_netlab NAME WORD…`."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from minigts.cli import console
from minigts.errors import MinigtsError

CONTAINERLAB = "0.99.0"
"""The version of containerlab that netlab is told: newer than any that it asks for."""
FILE = "clab.yml"
NEEDS_NO_ANSWER = ("version", "info", "pull", "image", "inspect")
"""What netlab may ask Docker for about images and itself."""
OF_THE_MACHINE = ("modprobe", "ip link", "brctl", "sysctl", "iptables")
"""What netlab does as root on a machine before containers come up. Hosts here need neither modules nor bridges."""


def main(name: str, words: Sequence[str]) -> int:
    """Do what one of these programs is asked for; return its exit code."""
    does = {"containerlab": containerlab, "docker": docker, "sudo": sudo, "brctl": brctl, "groups": groups}
    try:
        return does[name](words)
    except MinigtsError as error:
        console.note(f"minigts: {error}")
        return 1


def containerlab(words: Sequence[str]) -> int:
    from minigts.netlab import labs, programs

    match words:
        case ["version", *_]:
            typer.echo(f"version: {CONTAINERLAB}\nminigts is in its place")
        case ["deploy", *rest]:
            labs.deploy(_file(rest), "real" if os.environ.get(programs.TIME) == "real" else "virtual", console.note)
        case ["destroy", *rest]:
            labs.destroy(_file(rest))
        case _:
            return _refused("containerlab", words)
    return 0


def _file(words: Sequence[str]) -> Path:
    given = [*words]
    return Path(given[given.index("-t") + 1] if "-t" in given[:-1] else FILE)


def docker(words: Sequence[str]) -> int:
    from minigts.netlab import labs

    match words:
        case ["exec", *rest]:
            return _run(rest)
        case ["cp", *rest] if len(paths := [each for each in rest if not each.startswith("-")]) == 2:
            container, _, target = paths[1].partition(":")
            labs.put(container, Path(paths[0]), target)
        case ["ps", *_]:
            typer.echo("\n".join(json.dumps(each) for each in labs.containers()))
        case [word, *_] if word in NEEDS_NO_ANSWER:
            typer.echo("[]")
        case _:
            return _refused("docker", words)
    return 0


def sudo(words: Sequence[str]) -> int:
    from minigts.netlab import labs

    match words:
        case ["ip", "netns", "exec", container, *argv]:
            command, script = labs.script_of(argv)
            return _run([container, *command], script)
        case _ if " ".join(words).startswith(OF_THE_MACHINE):
            return 0
        case _:
            return _refused("sudo", words)


def brctl(words: Sequence[str]) -> int:
    """Every bridge is there."""
    typer.echo(" ".join(words))
    return 0


def groups(_words: Sequence[str]) -> int:
    """Whoever asks may use containerlab."""
    typer.echo("clab_admins")
    return 0


def _run(words: Sequence[str], stdin: bytes = b"") -> int:
    """Run a command in a container; on this terminal with `-t`, as netlab has it for a shell."""
    from minigts.netlab import labs

    options = [*itertools.takewhile(lambda word: word.startswith("-"), words)]
    container, *argv = words[len(options) :]
    if any("t" in option for option in options):
        lab, host = labs.find(container)
        return lab.provider.attach(host, argv)
    code, out, err = labs.run(container, argv, stdin)
    sys.stdout.write(out)
    sys.stderr.write(err)
    return code


def _refused(name: str, words: Sequence[str]) -> int:
    console.note(f"minigts: {name} {' '.join(words)[:200]}: labs of netlab on minigts do not have this")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
