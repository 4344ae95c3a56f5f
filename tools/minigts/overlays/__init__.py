"""Networks laid over a lab: which there are, how one is joined, proved and left, and policies between its containers.

What an overlay does on a host is shell, in provision/overlays. Here is what is known of it, and in which order its
phases run.
"""

from minigts.overlays.altering import alter
from minigts.overlays.catalogue import Overlay, find, known
from minigts.overlays.life import (
    Endpoint,
    Joined,
    join,
    joined,
    leave,
    own_containers,
    rejoin,
    require,
    require_engine,
    require_fit,
    run_on,
    second,
    verify,
)
from minigts.overlays.teams import UNDERLAY

__all__ = [
    "UNDERLAY",
    "Endpoint",
    "Joined",
    "Overlay",
    "alter",
    "find",
    "join",
    "joined",
    "known",
    "leave",
    "own_containers",
    "rejoin",
    "require",
    "require_engine",
    "require_fit",
    "run_on",
    "second",
    "verify",
]
