"""Where minigts keeps things outside a project: images in the cache, running labs in the state directory."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """Images and what else can be made again; `MINIGTS_CACHE` overrides the XDG directory."""
    return _chosen("MINIGTS_CACHE", platformdirs.user_cache_path("minigts"))


def data_root() -> Path:
    """What only the user can bring, such as programs of their own; `MINIGTS_DATA` overrides the XDG directory."""
    return _chosen("MINIGTS_DATA", platformdirs.user_data_path("minigts"))


def state_root() -> Path:
    """Run directories of labs; `MINIGTS_STATE` overrides the XDG directory."""
    return _chosen("MINIGTS_STATE", platformdirs.user_state_path("minigts"))


def project_root() -> Path:
    """The checkout this program runs from: its provision/ directory is part of the program."""
    return Path(__file__).resolve().parents[2]


def _chosen(variable: str, default: Path) -> Path:
    return Path(os.environ.get(variable) or default).absolute()
