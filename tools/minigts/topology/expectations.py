"""The words of a file's `expect:`, which an experiment's `claims:` share. minigts.judge says what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

LatencyWord = Literal["sum-of-segments", "as-declared", "steady"]
ThroughputWord = Literal["within-ceiling", "falls-with-hops", "step-after-first-hop", "falls-slightly", "level"]
EXPECTATIONS: Mapping[str, tuple[str, ...]] = {
    "latency": get_args(LatencyWord),
    "throughput": get_args(ThroughputWord),
}
"""The words by quantity."""
