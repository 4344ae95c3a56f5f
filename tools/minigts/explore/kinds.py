"""The kinds of faults that a plan may have, each with what is drawn of it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from minigts.language.fields import Strict, quantity
from minigts.language.quantities import (
    CLOCK_PERCENT,
    DURATION_S,
    LOSS_PERCENT,
    SHARE_PERCENT,
    TIME_MS,
    WAIT_MS,
    Quantity,
)

Kind = Literal[
    "partition",
    "kill",
    "kill-process",
    "pause",
    "slow-link",
    "loss",
    "duplicate",
    "reorder",
    "corrupt",
    "flap",
    "clock-skew",
    "disk-full",
    "clock-rate",
    "preempt",
    "power-cut",
    "disk-error",
    "disk-slow",
]
OF_DISKS: tuple[Kind, ...] = ("power-cut", "disk-error", "disk-slow")
"""What only disks of virtual time have."""
OF_A_HOST: tuple[Kind, ...] = ("kill", "kill-process", "pause", "clock-skew", "disk-full", "clock-rate", *OF_DISKS)
"""Of which a host has one at a time."""
OF_OWN_KERNELS: tuple[Kind, ...] = ("kill", "pause", "clock-skew", "clock-rate", "disk-full")
"""What befalls a host whose kernel is its own. Of another one it would befall the machine."""
OF_FRAMES: dict[Kind, str] = {
    "loss": "loss_percent",
    "duplicate": "duplicate_percent",
    "reorder": "reorder_percent",
    "corrupt": "corrupt_percent",
}
"""What becomes of a share of a link's frames, and the field of a link's settings that has the share."""
OF_A_LINK: tuple[Kind, ...] = ("slow-link", *OF_FRAMES, "flap")
Span: TypeAlias = tuple[float, float]
Requests = Literal["all", "reads", "writes"]
Signal = Literal["KILL", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV", "STOP"]
PROGRAM = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,14}$"
"""A program's name as the kernel keeps it, which cuts it after 15 characters."""


def span(kind: Quantity) -> tuple[BeforeValidator, WithJsonSchema]:
    """`2s to 15s`, or one quantity for both ends; parsed to the two in the kind's unit."""

    def parse(value: object) -> Span:
        first, _, last = value.partition(" to ") if isinstance(value, str) else (value, "", "")
        low = kind.parse(first.strip() if isinstance(first, str) else first)
        high = kind.parse(last.strip()) if last else low
        if low > high:
            raise ValueError(f"{value} ends before it begins: write the smaller one first")
        return low, high

    one = kind.pattern.removeprefix("^").removesuffix("$")
    schema = {"type": "string", "pattern": f"^{one}( to {one})?$", "examples": [kind.example]}
    return BeforeValidator(parse), WithJsonSchema(schema)


class Often(Strict):
    """Faults of one kind."""

    every: Annotated[float, *quantity(DURATION_S)]
    """The mean time from one to the next; each time is drawn between 0 and twice that."""
    lasts: Annotated[Span, *span(DURATION_S)] = Field(alias="for")
    """How long each lasts, drawn between the two."""
    of: tuple[str, ...] = ()
    """The hosts, or of a fault of links the links, of which one is drawn. Default: all."""

    @property
    def amount(self) -> Span:
        """Between which two its amount is drawn; two zeros: it has none."""
        return 0.0, 0.0


class Partition(Often):
    """Hosts that are cut off: at least one and at most half of `of`. Links between them stay whole."""

    ways: Literal["both", "one", "either"] = "both"
    """Which ways are cut: both; one, so that they hear and are not heard or the other way round, which is drawn; or
    either of the two, which is drawn first."""


class OfAHost(Often):
    """A fault of a host that has no amount: kill, pause, disk-full, power-cut."""


class ProcessFault(Strict):
    """All processes of one program on a host, what they get, and how they begin again."""

    program: Annotated[str, StringConstraints(pattern=PROGRAM)]
    """Its name, as `ps -o comm` has it: at most 15 characters."""
    signal: Signal = "KILL"
    """What it is sent. With `STOP` it goes on at the end, by `CONT`."""
    restart: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None
    """A line for sh, in the background of the host, that starts it again at the fault's end. Default: nothing does."""


class KillProcess(Often, ProcessFault):
    """A program on a host whose processes get a signal, and which may be started again at the end."""


class SlowLink(Often):
    """A link that is slower in both directions."""

    delay: Annotated[Span, *span(TIME_MS)] = (100.0, 1000.0)
    """The delay that is added each way."""

    @property
    def amount(self) -> Span:
        return self.delay


class Loss(Often):
    """A link that loses packets in both directions."""

    loss: Annotated[Span, *span(LOSS_PERCENT)] = (5.0, 50.0)
    """The share of packets that it loses."""

    @property
    def amount(self) -> Span:
        return self.loss


class Duplicate(Often):
    """A link that carries packets twice, in both directions."""

    duplicate: Annotated[Span, *span(SHARE_PERCENT)] = (1.0, 20.0)
    """The share of packets that come twice."""

    @property
    def amount(self) -> Span:
        return self.duplicate


class Reorder(Often):
    """A link on which packets overtake others, in both directions. Its links need a delay."""

    reorder: Annotated[Span, *span(SHARE_PERCENT)] = (1.0, 20.0)
    """The share of packets that are sent without the link's delay."""

    @property
    def amount(self) -> Span:
        return self.reorder


class Corrupt(Often):
    """A link that changes a bit of packets, in both directions. Checksums find most of these."""

    corrupt: Annotated[Span, *span(SHARE_PERCENT)] = (1.0, 20.0)
    """The share of packets with such a bit."""

    @property
    def amount(self) -> Span:
        return self.corrupt


class Flap(Often):
    """A link that goes down, with its carrier, and comes up again."""

    ends: Literal["both", "one", "either"] = "both"
    """Which of its ends lose their carrier: both; one, which is drawn; or either of the two, which is drawn first."""


class ClockSkew(Often):
    """A host whose time of day is stepped forward or back, and back again at the end."""

    by: Annotated[Span, *span(DURATION_S)] = (0.1, 5.0)
    """The size of the step."""

    @property
    def amount(self) -> Span:
        return self.by


class ClockRate(Often):
    """A host whose clocks, but for its kernel's log, run fast or slow, and at their own rate again at the end."""

    by: Annotated[Span, *span(CLOCK_PERCENT)] = (0.01, 5.0)
    """By which part they are faster or slower."""

    @property
    def amount(self) -> Span:
        return self.by


class Preempt(Often):
    """A host whose programs lose the processor at moments that the seed draws. It may have another fault meanwhile."""

    calls: Annotated[Span, *span(SHARE_PERCENT)] = (0.1, 5.0)
    """The share of system calls' beginnings and ends at which the calling thread waits."""
    wait: Annotated[float, *quantity(WAIT_MS)] = 10.0
    """The longest wait, in ms; each doubling up to it is as likely."""

    @property
    def amount(self) -> Span:
        return self.calls


class DiskError(Often):
    """A host's disk that fails to read or write a share of what files have."""

    share: Annotated[Span, *span(SHARE_PERCENT)] = (1.0, 20.0)
    """The share of requests that fail."""
    requests: Requests = "all"
    """Which requests fail."""

    @property
    def amount(self) -> Span:
        return self.share


class DiskSlow(Often):
    """A host's disk that answers each request later."""

    delay: Annotated[Span, *span(TIME_MS)] = (10.0, 1000.0)
    """How much later."""

    @property
    def amount(self) -> Span:
        return self.delay
