"""The properties of files in GTS's language. They have their own module, since the parser takes long to load."""

from __future__ import annotations

from minigts.language.source import Language

LANGUAGE = Language(
    name="GTS topology",
    opening="its name, as in `Pair {`",
    largest_bytes=100_000,
    instead_of_aliases="write a loop",
)
"""The most words that `gts_syntax` reads have half of the largest size, with their spaces."""
SUFFIXES = (".dsl", ".gts")
