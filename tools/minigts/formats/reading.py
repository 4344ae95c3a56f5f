"""Which format a file is in: by its name's ending, and where several share one by what stands in it."""

from __future__ import annotations

from minigts.formats import gts
from minigts.formats.network import Network

LANGUAGE = gts.LANGUAGE


def read(text: str, file: str) -> Network:
    """The network of a file in another tool's format. Raises InputError with every problem, each with its line."""
    return gts.read(text, file)
