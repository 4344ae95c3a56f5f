"""What a topology says of a host's Compose file: where it lies, and where the images are that it names."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from minigts.language.fields import Strict, matching
from minigts.topology.containers import IMAGE, MOST_ENTRIES, REFERENCE
from minigts.topology.software import BelowTopology

_Reference: TypeAlias = Annotated[str, *matching("an image's name, as in redis:7", REFERENCE)]


class ComposeSpec(Strict):
    """A Compose file, taken as it is."""

    file: BelowTopology
    """Where it lies, from the topology file's directory on, and not outside of it."""
    images: dict[_Reference, Annotated[str, *IMAGE]] = Field({}, max_length=MOST_ENTRIES)
    """Where images are, by the names that the file has for them. Default: each is one of the machine's own engine."""


class _OrItsPath:
    """In the schema: a path, or the mapping."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "examples": ["compose.yaml"]}, handler(core)]}


A_FILE = (BeforeValidator(lambda value: {"file": value} if isinstance(value, str) else value), _OrItsPath)
"""The mapping, or the file alone."""
