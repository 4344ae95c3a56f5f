"""What must hold on a lab of a topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self, TypeAlias

from pydantic import Field, model_validator

from minigts.language.fields import choice
from minigts.language.spec import Spec
from minigts.topology.fields import EXPECTATIONS, LatencyWord, ThroughputWord
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting


class Expect(Spec):
    """One thing that must hold on a lab of this topology; `minigts check` judges it. One key an entry."""

    latency: Annotated[LatencyWord, choice("an expectation", *EXPECTATIONS["latency"])] | None = Field(
        None,
        description="sum-of-segments: the RTT of each path is the sum of what its segments measured. as-declared: it "
        "is what the file declares. steady: the RTT hardly varies.",
    )
    throughput: Annotated[ThroughputWord, choice("an expectation", *EXPECTATIONS["throughput"])] | None = Field(
        None,
        description="TCP throughput from the first host. within-ceiling: 85 % to 102 % of the ceiling in the plan. "
        "falls-with-hops: less over the most hops than over one. step-after-first-hop: the second hop takes more than "
        "a tenth, and more than all further ones. falls-slightly: less over the most hops, by a tenth at most. level: "
        "over the most hops within a tenth of one hop.",
    )

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if (self.latency is None) == (self.throughput is None):
            raise ValueError("an expectation has exactly one key: latency or throughput")
        return self


def _planned(written: Sequence[Expect] | None) -> tuple[dict[str, str], ...]:
    return tuple(expectation.model_dump(exclude_none=True) for expectation in written or ())


Expectations: TypeAlias = Annotated[
    tuple[Expect, ...] | None,
    LabSetting(
        planned=_planned, elsewhere=Elsewhere(what="expect", why=NOWHERE, has=lambda plan: plan.expect, lost=False)
    ),
    Field(description="What must hold on a lab of this topology."),
]
