"""What frames and system calls take of a host's processor."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import quantity
from minigts.language.quantities import BYTE_NS, CALL_NS, FRAME_NS
from minigts.language.spec import Spec
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan import elements


class ProcessorSpec(Spec):
    """Time that frames on the host's ports, one after the other, and system calls take of its processor, in virtual
    time."""

    frame: Annotated[int, *quantity(FRAME_NS, whole=True)] = Field(
        0, description="Time for each frame, in or out, of any size. Default: 0ns."
    )
    byte: Annotated[float, *quantity(BYTE_NS)] = Field(
        0.0, description="Time for each byte of a frame, Ethernet header included. Default: 0ns."
    )
    call: Annotated[int, *quantity(CALL_NS, whole=True)] = Field(
        0, description="Time for each system call of the host's programs. Default: 0ns."
    )


def _planned(written: ProcessorSpec | None) -> elements.Processor | None:
    """The modelled processor, or None where it takes no time."""
    if written is None or not (written.frame or written.byte or written.call):
        return None
    return elements.Processor(frame_ns=written.frame, byte_ns=written.byte, call_ns=written.call)


Processor: TypeAlias = Annotated[
    ProcessorSpec | None,
    HostSetting(
        from_start=lambda host: host.processor is not None,
        planned=_planned,
        features=(
            Feature(
                name="a modelled processor",
                asks=lambda host: "" if host.processor is None else "processor:",
                only="virtual",
                written=lambda value: value is not None,
                untimely="a modelled processor exists only in virtual time, and this lab runs in real time: write "
                "`time: virtual`, or say --time virtual",
            ),
        ),
        elsewhere=Elsewhere(what="processor", why="no other format has it", has=lambda host: host.processor, lost=True),
        page="""\
optional, in [virtual time](#time) only · mapping · default: none, frames take no time ·
`processor: {frame: 20us, byte: 2ns}`

In virtual time a processor takes no time, so a host forwards as much as its links carry. This key gives the host a
modelled processor. Every frame that passes a port of the host, in or out, occupies the processor for `frame` plus
`byte` times the frame's length. Frames are served one after the other: with `{frame: 20us}` a host that forwards
carries 25,000 frames a second on any machine. Every system call of the host's programs takes `call`. Programs and
frames do not wait for each other, so a program may send more frames than the processor serves; the excess is dropped.
Sending, receiving, forwarding and encapsulating have no costs of their own
([why](decisions/programs-in-virtual-time.md)).

### `hosts.*.processor.frame`
optional · `ns`, `us` or `ms`, 0 to 10 ms, whole nanoseconds · default: `0ns` · `frame: 20us`

### `hosts.*.processor.byte`
optional · `ns` or `us`, 0 to 10 us · default: `0ns` · `byte: 0.8ns`

Ethernet headers count, as in a link's [rate](#linksrate).

### `hosts.*.processor.call`
optional · `ns`, `us` or `ms`, 0 to 1 ms, whole nanoseconds · default: `0ns` · `call: 2us`

A program that sends datagrams makes one system call for each: with `{call: 5us}` it sends at most 200,000 a second.
Without the key a call takes no time until the host has made 10,000 calls without a pause; each further call takes 1 us
until the host pauses.
""",
    ),
    Field(
        description="A modelled processor, in virtual time only: frames and calls take time. Default: none, they take "
        "nothing."
    ),
]
