"""The overlay that is up by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import matching
from minigts.language.problems import Finding
from minigts.language.tree import Data
from minigts.topology import overlay_names
from minigts.topology.fields import NAME, NAME_HINT
from minigts.topology.frames import families
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.read.declared import Draft


def _problems(document: Mapping[str, Data], _: Draft) -> Iterator[Finding]:
    have = families(ipv6=document.get("ipv6") not in (None, "false"))
    if (why := overlay_names.why_unfit(str(document["overlay"]), have, "the topology")) is not None:
        yield ("overlay",), why


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
        page="""\
optional · name of an overlay · default: `none` · `overlay: swarm`

The overlay that `up` joins by default; an experiment may choose others. A variant is part of the name: `flannel-udp`.
Each overlay has a page in [provision/overlays](../provision/overlays).
""",
    ),
    Field(description="The overlay that is up by default; experiments may choose others."),
]
