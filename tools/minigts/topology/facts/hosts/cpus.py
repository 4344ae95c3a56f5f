"""How many processors a host has, or which share of one."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import shown
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
    raise ValueError(f"{shown(value)} is not a number of processors: {wanted}")


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
    ),
    Field(
        description="Processors of the host, more than one only on vagrant; or in real time a share of one, from 0.05 "
        "to 0.99. Default: 1."
    ),
]
