"""What a host's disk does when its power is cut."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.quantities import Words
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import CACHED, Host

DURABLE = "durable"
_DISK = Words("a kind of disk", (DURABLE, CACHED))


def _asks(host: Host) -> str:
    return f"disk: {CACHED}" if host.disk == CACHED else ""


Disk: TypeAlias = Annotated[
    Annotated[str, BeforeValidator(_DISK.parse), WithJsonSchema(_DISK.schema)] | None,
    HostSetting(
        planned=lambda written: CACHED if written == CACHED else "",
        features=(
            Feature(
                name="a disk with a cache",
                asks=_asks,
                only="virtual",
                written=lambda value: value == CACHED,
                untimely="a disk with a cache exists only in virtual time, whose kernel has it, and this lab runs in "
                "real time: leave `disk` out",
            ),
        ),
        elsewhere=Elsewhere(what="disk", why="no other format has it", has=lambda host: host.disk, lost=False),
        page="""\
optional, in [virtual time](#time) · `durable` or `cached` · default: `durable` · `disk: cached`

What the host's disk does when its power is cut. A `durable` one has all that was ever written to it. A `cached` one has a
cache of 16 MB: what was not flushed when `minigts kill --power-cut` ends the host is there or is not, by a seed
([what a power cut loses](explore.md#what-a-power-cut-loses)). A write and a flush take 1 ms of the lab's time then, and
the host's file system has a journal of 16 MB. Without one a file system would be damaged by the cut.
""",
    ),
    Field(
        description="The host's disk, in virtual time: durable, or cached, which loses what was not flushed when the "
        "host's power is cut. Default: durable."
    ),
]
