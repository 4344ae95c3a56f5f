"""How many processors a host has, or which share of one."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import quote
from minigts.topology.fields import LEAST_SHARE, MOST_CPUS
from minigts.topology.host_setting import Feature, HostSetting

DEFAULT_CPUS = 1
"""What a host has whose file says nothing of it."""


def _processors(value: object) -> float:
    if isinstance(value, str) and re.fullmatch(r"0\.[0-9]{1,2}", value, re.ASCII) and float(value) >= LEAST_SHARE:
        return float(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value, re.ASCII) and 1 <= int(value) <= MOST_CPUS:
        return int(value)
    wanted = f"write a whole number from 1 to {MOST_CPUS}, or a share of one, from {LEAST_SHARE} to 0.99, as in 0.5"
    raise ValueError(f"{quote(value)} is not a number of processors: {wanted}")


def _planned(written: float | None) -> int | float:
    """The number of processors as a plan has it: an int from 1 on."""
    cpus = written or DEFAULT_CPUS
    return cpus if cpus < 1 else int(cpus)


_PROCESSORS = WithJsonSchema({"type": "number", "minimum": LEAST_SHARE, "maximum": MOST_CPUS})
Cpus: TypeAlias = Annotated[
    Annotated[float, BeforeValidator(_processors), _PROCESSORS] | None,
    HostSetting(
        from_start=lambda host: host.cpus != DEFAULT_CPUS,
        planned=_planned,
        features=(
            Feature(
                name="a share of a processor",
                asks=lambda host: f"cpus: {host.cpus}" if host.cpus < 1 else "",
                only="real",
                written=lambda value: str(value).startswith("0."),
                untimely="a share of a processor exists only in real time, and this lab runs in virtual time, "
                "where processors are free: write `time: real`, or say --time real; or give the host a modelled "
                "`processor:`",
                instead="write `cpus: 1`",
            ),
            Feature(
                name="several processors",
                asks=lambda host: f"cpus: {host.cpus}" if host.cpus > 1 else "",
                instead="write `cpus: 1`",
            ),
        ),
        page="""\
optional · whole number, 1 to 64, or a share of one, 0.05 to 0.99 · default: `1` · `cpus: 0.5`

More than one processor is for `vagrant` alone: a kernel of `uml` has one, and `mininet`'s hosts share those of one
kernel, so both refuse the file.

A share limits the host: its kernel and programs together get that share of one of the machine's processors and no more,
even on an idle machine. Shares need real time, the provider `uml`, and a machine on which minigts may make control
groups with a quota, which mostly means root. Elsewhere a share is refused, with the reason; `minigts doctor` shows
whether the machine allows it. [Providers](providers.md#what-differs-and-why) explains this. In [virtual time](#time)
processors take no time; there a slow one is [modelled](#hostsprocessor).
""",
    ),
    Field(
        description="Processors of the host, more than one only on vagrant; or in real time a share of one, from 0.05 "
        "to 0.99. Default: 1."
    ),
]
