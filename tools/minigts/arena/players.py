"""Who plays incidents by themselves: somebody who does nothing, and a list of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from minigts.arena.decisions import decide
from minigts.arena.play import Play
from minigts.arena.scores import ArenaAnswer
from minigts.errors import InputError
from minigts.language.fields import unknown


class ArenaPlayer(Protocol):
    """Plays an incident by the tools of `play.call`, and answers."""

    def __call__(self, play: Play, /) -> ArenaAnswer: ...


def _nothing(_play: Play) -> ArenaAnswer:
    """Calls nothing, and says that nothing is wrong."""
    return ArenaAnswer()


PLAYERS: Mapping[str, ArenaPlayer] = {"nothing": _nothing, "scripted": decide}
"""The players by name."""


def find_player(name: str) -> ArenaPlayer:
    """Raises InputError."""
    if name not in PLAYERS:
        raise InputError(unknown("player", "players", name, list(PLAYERS)))
    return PLAYERS[name]
