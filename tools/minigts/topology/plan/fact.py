"""What a field of a plan is to a lab that is up: each field says it where it is declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Whether a field may be another one in an edited file of a lab that is up."""

    stays: str = ""
    """Why the lab, or the machine, keeps what it has."""
    key: str = ""
    """Its key in a file. Default: the field's name."""
    described: bool = False
    """Whether no host knows it, so that it holds from the next command on."""
    network: bool = False
    """Whether ways and addresses follow from it, which a changed copy of the plan finds again."""


PARTS = Fact()
"""A field that is compared part by part (`topology.difference`): names, ports, links."""
NETWORK = Fact(network=True)
"""As `PARTS`, of the network."""
DESCRIBED = Fact(described=True)


def fields_with_facts(*models: type[BaseModel]) -> Iterator[tuple[str, Fact]]:
    """The fields of these models that say what they are, each once."""
    seen = set[str]()
    for model in models:
        for name, info in model.model_fields.items():
            for fact in (each for each in info.metadata if isinstance(each, Fact)):
                if name not in seen:
                    seen.add(name)
                    yield name, fact
