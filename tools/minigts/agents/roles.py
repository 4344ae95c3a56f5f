"""What an agent may do: each role has the tools of those before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from minigts.errors import InputError

Role: TypeAlias = Literal["read", "repair", "full"]
ROLES: tuple[Role, ...] = get_args(Role)
TOOLS: Mapping[Role, tuple[str, ...]] = {
    "read": (
        *("status", "topology", "explain", "look", "ping", "trace", "logs", "events"),
        *("read_file", "capture", "wait"),
    ),
    "repair": ("run", "write_file"),
    "full": ("set_link", "link", "play", "restart"),
}
"""Those of `read` change nothing in a lab but its time; those of `repair` what is in hosts; those of `full` the lab."""


def parse_role(text: str) -> Role:
    """Raises InputError."""
    for role in ROLES:
        if role == text:
            return role
    raise InputError(f"--role: {text!r}, where {', '.join(ROLES)} are possible")
