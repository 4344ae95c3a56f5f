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
    ),
    Field(
        description="A modelled processor, in virtual time only: frames and calls take time. Default: none, they take "
        "nothing."
    ),
]
