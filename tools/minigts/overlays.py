"""Overlays: which script, on which host, in which order, with which environment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Endpoint:
    """Where an overlay can be measured from and to, on one host.

    `prefix` in front of a command runs it in the measuring container; `mtu` is the overlay interface's, in bytes.
    """

    host: str
    address: str
    mtu: int
    prefix: tuple[str, ...]
