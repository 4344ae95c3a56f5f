"""The block from which segments get their subnets."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import quote
from minigts.topology.fields import SMALLEST_SEGMENT
from minigts.topology.lab_setting import LabSetting


def _network(value: object) -> str:
    try:
        network = IPv4Network(value if isinstance(value, str) else "", strict=True)
    except ValueError:
        network = None
    if network is None or network.prefixlen > SMALLEST_SEGMENT or "/" not in str(value):
        raise ValueError(f"{quote(value)} is not an IPv4 network: write it as in 192.168.7.0/24, /30 at the smallest")
    return str(network)


Network: TypeAlias = Annotated[
    str, BeforeValidator(_network), WithJsonSchema({"type": "string", "examples": ["192.168.7.0/24"]})
]
Subnets: TypeAlias = Annotated[
    Network,
    LabSetting(
        page="""\
optional · IPv4 network · default: `10.20.0.0/14` · `subnets: 10.64.0.0/10`

The block of addresses from which each segment without a `subnet` gets a /24. The default holds 1024 segments. A segment
with more than 254 hosts and switches gets a larger block.
""",
    ),
    Field(description="IPv4 block from which segments without a subnet get a /24 or larger. Default: 10.20.0.0/14."),
]
