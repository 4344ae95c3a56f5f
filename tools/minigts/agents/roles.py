"""What an agent may do: each role has the tools of those before it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from minigts.errors import InputError

Role: TypeAlias = Literal["read", "repair", "full"]
ROLES: tuple[Role, ...] = get_args(Role)


def parse_role(text: str) -> Role:
    """Raises InputError."""
    for role in ROLES:
        if role == text:
            return role
    raise InputError(f"--role: {text!r}, where {', '.join(ROLES)} are possible")
