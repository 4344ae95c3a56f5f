"""Overlay networks on a lab: their catalogue, how hosts join, verify and leave one, and policies between containers.

What an overlay does on a host is shell, in provision/overlays. This room reads its declaration, and runs its phases in
order.
"""

from minigts.overlays.catalogue import Overlay, find, known_names
from minigts.overlays.edit import alter, finish, require_alterable
from minigts.overlays.lifecycle import (
    NotReached,
    carry,
    join,
    lab_for,
    leave,
    own_containers,
    rejoin,
    require,
    require_engine,
    require_fit,
    run_on,
    second_container,
    settle,
    verify,
)
from minigts.overlays.phases import Endpoint, Joined, joined_overlay
from minigts.overlays.teams import UNDERLAY, UNDERLAYS

__all__ = [
    "UNDERLAY",
    "UNDERLAYS",
    "Endpoint",
    "Joined",
    "NotReached",
    "Overlay",
    "alter",
    "carry",
    "find",
    "finish",
    "join",
    "joined_overlay",
    "known_names",
    "lab_for",
    "leave",
    "own_containers",
    "rejoin",
    "require",
    "require_alterable",
    "require_engine",
    "require_fit",
    "run_on",
    "second_container",
    "settle",
    "verify",
]
