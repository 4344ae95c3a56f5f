"""The columns of samples.csv with measured figures: those that several tools fill, and those that no tool fills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Declared = Literal["delay", "jitter", "loss", "rate"]
"""What a topology declares of a link."""


@dataclass(frozen=True)
class Column:
    """One measured figure of a sample.

    `unit` is None where it is that of the sample's value, empty for a plain count. `quantity` is its name in claims,
    empty where no claim can name it; a claim about the quantity that it is `part_of` may name it instead. `follows`
    lists the declared properties of links any of which determines the figure; over links that declare none of them, and
    where the list is empty, only the processors determine it. With `panel` it gets a panel of its own in figures by
    default; with `tabled` tables of results have its medians. `better` is the better direction, None where unknown.
    """

    name: str
    label: str
    unit: str | None = None
    quantity: str = ""
    part_of: str = ""
    follows: tuple[Declared, ...] = ()
    panel: bool = False
    tabled: bool = False
    better: Literal["higher", "lower"] | None = None

    def heading(self, value_unit: str) -> str:
        """`loss in %`, `retransmits`; `value_unit` is the unit of the sample's value."""
        unit = value_unit if self.unit is None else self.unit
        return f"{self.label} in {unit}" if unit else self.label


VALUE = "value"


def value(label: str, unit: str, quantity: str, follows: Declared) -> Column:
    """The column of a tool's main figure."""
    return Column(VALUE, label, unit, quantity, follows=(follows,))


MIN = Column("min", "lowest of a sample", tabled=True)
MEAN = Column("mean", "mean of a sample", tabled=True)
MEDIAN, P99, MAX, STDEV = (Column(name, name) for name in ("median", "p99", "max", "stdev"))
MIDDLES = frozenset(column.name for column in (MIN, MEDIAN, MEAN))
"""The columns that could also represent a sample of many round trips; the plan's prediction holds for them, too."""
SENT, OFFERED = Column("sent", "sent"), Column("offered", "offered")
LOSS = Column("loss_percent", "loss", "%", quantity="loss", follows=("loss", "rate"), panel=True, tabled=True)
JITTER = Column("jitter_ms", "jitter", "ms", quantity="jitter", follows=("jitter", "rate"), panel=True, tabled=True)
OUT_OF_ORDER = Column("out_of_order", "out of order", "")

SHARED = (MIN, MEDIAN, MEAN, P99, MAX, STDEV, SENT, OFFERED, LOSS, JITTER, OUT_OF_ORDER)
"""The columns that any tool may fill, in the order of samples.csv; a tool's own columns follow."""

PROCESSOR = Column("cpu_percent", "CPU", "%", quantity="cpu", panel=True)
COST = Column("cpu_ns_per_byte", "CPU a byte", "ns", quantity="cost", tabled=True)
QUEUE_BYTES, QUEUE_PACKETS = Column("queue_bytes", "queue", "bytes"), Column("queue_packets", "queue", "packets")
QUEUE_DROPPED, QUEUE_MARKED = Column("queue_dropped", "dropped", ""), Column("queue_marked", "marked", "")
OF_QUEUES = (QUEUE_BYTES, QUEUE_PACKETS, QUEUE_DROPPED, QUEUE_MARKED)
"""The columns of series.csv that have a link's queue over time; samples.csv has none of them."""

BESIDE = (
    Column("cpu_source_percent", "CPU source", "%", part_of="cpu", tabled=True),
    Column("cpu_target_percent", "CPU target", "%", part_of="cpu", tabled=True),
    Column("cpu_source_inside_percent", "CPU source inside", "%", part_of="cpu"),
    Column("cpu_target_inside_percent", "CPU target inside", "%", part_of="cpu"),
    Column("group_source_percent", "group source", "%"),
    Column("group_target_percent", "group target", "%"),
    PROCESSOR,
    COST,
    Column("cpu_source_ns_per_byte", "CPU source a byte", "ns", part_of="cost"),
    Column("cpu_target_ns_per_byte", "CPU target a byte", "ns", part_of="cost"),
    Column("stress_s", "stress", "s"),
    Column("cross_mbit", "cross", "Mbit/s"),
    Column("cross_loss_percent", "cross loss", "%"),
)
"""The columns that are read from both hosts while any tool runs."""
