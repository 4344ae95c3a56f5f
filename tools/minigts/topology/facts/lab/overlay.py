"""The overlay that is up by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import matching
from minigts.language.problems import Finding, shown
from minigts.language.tree import Data
from minigts.topology.fields import NAME, NAME_HINT
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.read.declared import Draft
from minigts.topology.routes import ipv6


def _problems(document: Mapping[str, Data], _: Draft) -> Iterator[Finding]:
    overlay = document["overlay"]
    if document.get("ipv6") in (None, "false") and ipv6.needs_ipv6(str(overlay)):
        yield ("overlay",), f"overlay {shown(overlay)} uses IPv6, and hosts have none: add `ipv6: true`"


Overlay: TypeAlias = Annotated[
    Annotated[str, *matching(NAME_HINT, NAME)],
    LabSetting(
        elsewhere=Elsewhere(
            what="overlay",
            why=NOWHERE,
            has=lambda plan: plan.overlay != "none",
            lost=True,
            words=lambda plan: f"overlay {plan.overlay}",
        ),
        problems=_problems,
    ),
    Field(description="The overlay that is up by default; experiments may choose others."),
]
