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
        planned=_planned,
        elsewhere=Elsewhere(what="expect", why=NOWHERE, has=lambda plan: plan.expect, lost=False),
        page="""\
optional · list, one key an entry · default: empty · `expect: [{latency: sum-of-segments}]`

What must hold in the lab. `minigts check` judges it on a lab that is up; a bare `pytest tests/` makes a test of each
entry ([testing](testing.md)).

### `expect[].latency`
optional · a word · `latency: sum-of-segments`

`sum-of-segments`: the RTT of each path is the sum of its segments' measured RTTs; hops add none. `as-declared`: the RTT
is as this file declares. `steady`: the RTT hardly varies; 99 % of each path's echo requests lie above their median by
no more than the tolerance.

[`tolerances.rtt`](#tolerancesrtt) is the tolerance of all three. In [virtual time](#time) `sum-of-segments` and
`steady` have the clock's resolution instead, 2 µs for each measured figure, unless a host on the path has modelled
[calls](#hostsprocessorcall).

### `expect[].throughput`
optional · a word · `throughput: level`

The throughput of TCP from the first host to each other host. An experiment's
[claims](experiment-language.md#claimsthroughput) have the same words.

| word | holds when |
|---|---|
| `within-ceiling` | each path reaches 85 % to 102 % of the ceiling that the plan predicts; where that is a range, from 85 % of its least to 102 % of its most |
| `falls-with-hops` | the longest path is clearly slower than the shortest |
| `step-after-first-hop` | the second hop takes more than a tenth, and more than all further hops together |
| `falls-slightly` | the longest path is clearly slower than the shortest, by a tenth at most |
| `level` | the longest path is within a tenth of the shortest, above or below |

`minigts check` measures each path once, and allows for an error of up to [`tolerances.rate`](#tolerancesrate). A result
within that error is `undecided`, which is shown and is no failure. [The decision on the judge](decisions/judge.md) has
the reasons.
""",
    ),
    Field(description="What must hold on a lab of this topology."),
]
