"""How far a lab may be from its plan."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.fields import quantity
from minigts.language.problems import shown
from minigts.language.quantities import SHARE_PERCENT, TIME_MS
from minigts.language.spec import Spec
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.plan import elements


def _time_and_share(value: object) -> tuple[float, float]:
    """`0.2ms + 1%` → (0.2, 1.0); either part may be left out."""
    parts = [part.strip() for part in value.split("+")] if isinstance(value, str) and len(value) <= 40 else []
    shares = [part for part in parts if part.endswith("%")]
    times = [part for part in parts if not part.endswith("%")]
    if not parts or len(shares) > 1 or len(times) > 1:
        raise ValueError(f"{shown(value)} is not a tolerance of round trips: write it as in 0.2ms + 1%")
    return (
        TIME_MS.parse(times[0]) if times else 0.0,
        SHARE_PERCENT.parse(shares[0]) if shares else 0.0,
    )


class ToleranceSpec(Spec):
    """How far a lab may be from its plan in the certificate."""

    rtt: Annotated[
        tuple[float, float],
        BeforeValidator(_time_and_share),
        WithJsonSchema({"type": "string", "examples": ["0.2ms + 1%"]}),
    ] = Field(
        (0.2, 1.0),
        description="Tolerance of a path's median round-trip time: a time, a share, or the sum. Default: 0.2ms + 1%.",
    )
    rate: Annotated[float, *quantity(SHARE_PERCENT)] = Field(
        2.0, description="Tolerance of a link's rate, as a share. Default: 2%."
    )
    loss: Annotated[float, *quantity(SHARE_PERCENT)] = Field(
        0.1,
        description="Tolerance of a link's loss, in percentage points: with 0.1%, 1% may be measured as 0.9% to 1.1%.",
    )


def _planned(written: ToleranceSpec | None) -> elements.Tolerances:
    if written is None:
        return elements.Tolerances()
    rtt_ms, rtt_percent = written.rtt
    return elements.Tolerances(
        rtt_ms=rtt_ms, rtt_percent=rtt_percent, rate_percent=written.rate, loss_points=written.loss
    )


Tolerances: TypeAlias = Annotated[
    ToleranceSpec | None,
    LabSetting(
        planned=_planned,
        elsewhere=Elsewhere(
            what="tolerances", why=NOWHERE, has=lambda plan: plan.tolerances != elements.Tolerances(), lost=False
        ),
    ),
    Field(description="How far a lab may be from its plan. Default: {rtt: 0.2ms + 1%, rate: 2%, loss: 0.1%}."),
]
