"""How far a lab may be from its plan."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.fields import quantity
from minigts.language.problems import quote
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
        raise ValueError(f"{quote(value)} is not a tolerance of round trips: write it as in 0.2ms + 1%")
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
        page="""\
optional · mapping · default: `{rtt: 0.2ms + 1%, rate: 2%, loss: 0.1%}` · `tolerances: {rtt: 0.5ms, loss: 0.2%}`

How far the lab may be from this file: `minigts up` measures the lab and shows the [certificate](glossary.md#measuring),
and `minigts check` ends with 1 when a value is outside its tolerance. Each of the three has its own default.

### `tolerances.rtt`
optional · time, share, or both added · default: `0.2ms + 1%` · `rtt: 0.5ms`

The tolerance of the median round-trip time, around the sum of the segments' RTTs, declared or measured; in virtual time
this sum includes the echo's own transmission time at the links' rates. A quarter of the path's jitter is added to the
tolerance; for other distributions than `uniform` the part may be larger. In real time claims of experiments and figures
of reports use this tolerance, too.

### `tolerances.rate`
optional · share · default: `2%` · `rate: 5%`

The tolerance of a link's rate, as measured by TCP's payload.

### `tolerances.loss`
optional · share, in points · default: `0.1%` · `loss: 0.5%`

The tolerance of a link's loss: with `0.1%`, a loss of 1 % may be measured as 0.9 % to 1.1 %. The sampling error for the
number of probes is added; a loss that is too small for that number is not judged, and the certificate says so.
""",
    ),
    Field(description="How far a lab may be from its plan. Default: {rtt: 0.2ms + 1%, rate: 2%, loss: 0.1%}."),
]
