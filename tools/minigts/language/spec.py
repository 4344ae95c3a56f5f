"""The base of the models of a topology file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """The base of the models of a topology file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
