"""What a file in GTS's language is told by. A module of its own, since the parser takes long to load."""

from __future__ import annotations

from minigts.language.source import Language

LANGUAGE = Language(
    name="GTS topology",
    opening="its name, as in `Pair {`",
    largest_bytes=100_000,
    instead_of_aliases="write a loop",
)
"""As many words as `gts_syntax` reads have half of that, with their spaces."""
SUFFIXES = (".dsl", ".gts")
