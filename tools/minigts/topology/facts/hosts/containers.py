"""The user's own containers on a host, or a Compose file of them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from minigts.language.fields import Strict, matching
from minigts.topology.containers import IMAGE, MOST_ENTRIES, REFERENCE, ContainerSpec
from minigts.topology.facts.hosts.software import SOFTWARE
from minigts.topology.host_setting import HostSetting
from minigts.topology.software import BelowTopology

_Reference: TypeAlias = Annotated[str, *matching("an image's name, as in redis:7", REFERENCE)]


class ComposeSpec(Strict):
    """A Compose file, used unchanged."""

    file: BelowTopology
    """Path of the file, relative to the topology file's directory and inside it."""
    images: dict[_Reference, Annotated[str, *IMAGE]] = Field({}, max_length=MOST_ENTRIES)
    """Sources of images, by their names in the Compose file. Default: this machine's own engine has each image."""


class _OrItsPath:
    """The JSON Schema of a path or the mapping."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "examples": ["compose.yaml"]}, handler(core)]}


A_FILE = (BeforeValidator(lambda value: {"file": value} if isinstance(value, str) else value), _OrItsPath)
"""Annotations of a field that takes the mapping, or the file's path alone."""


Containers: TypeAlias = Annotated[
    tuple[ContainerSpec, ...] | None,
    HostSetting(from_start=lambda host: host.containers, elsewhere=SOFTWARE.elsewhere),
    Field(description="Containers of your own on the host, in the lab's overlay. Default: none."),
]


Compose: TypeAlias = Annotated[
    Annotated[ComposeSpec, *A_FILE] | None,
    HostSetting(field="containers", elsewhere=SOFTWARE.elsewhere),
    Field(description="A Compose file whose services are containers on the host. Default: none."),
]
