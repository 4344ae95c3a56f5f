"""Whether hosts and links have IPv4 addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.language.problems import Finding
from minigts.language.tree import Data
from minigts.topology import overlay_names
from minigts.topology.frames import families
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.read.declared import Draft
from minigts.topology.routes import segments

_EITHER = "and the topology says `ipv4: false`: take one of the two out"


def _problems(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    """What of a file with `ipv4: false` needs IPv4."""
    if document["ipv4"] != "false":
        return
    if document.get("ipv6") in (None, "false"):
        yield ("ipv4",), "hosts would have no addresses: add `ipv6: true`, or take `ipv4: false` out"
    if document.get("subnets") is not None:
        yield ("subnets",), f"it is a block of IPv4, {_EITHER}"
    without = families(ipv4=False, ipv6=True)
    if (why := overlay_names.why_unfit(str(document.get("overlay")), without, "the topology")) is not None:
        yield ("overlay",), why
    yield from _addresses(drafted)


def _addresses(drafted: Draft) -> Iterator[Finding]:
    """Addresses of IPv4 that the file gives to links, and to switches' controllers."""
    for switch in drafted.switches:
        if switch.controller not in (None, segments.BUILTIN):
            yield (*switch.where, "controller"), f"a switch asks a controller elsewhere by IPv4, {_EITHER}"
    for link in drafted.links:
        for key, there in (("subnet", link.subnet), ("addresses", link.addresses)):
            if there:
                yield link.where, f"`{key}:` is of IPv4, {_EITHER}"


Ipv4: TypeAlias = Annotated[
    Annotated[bool, *truth("hosts and links have IPv4 addresses")],
    LabSetting(
        elsewhere=Elsewhere(what="ipv4: false", why=NOWHERE, has=lambda plan: not plan.ipv4, lost=True),
        problems=_problems,
        status=lambda plan: plan.ipv4,
        page="""\
optional · `true` or `false` · default: `true` · `ipv4: false`

With `ipv4: false` hosts, switches and links have IPv6 addresses alone; it needs [`ipv6`](#ipv6). What a program does
without IPv4 can be tried so: `./minigts up topologies/ipv6-only.yaml`.

- `/etc/hosts` and name servers have the IPv6 address of each name. `127.0.0.1` stays on the loopback.
- The certificate, `expect:`, experiments and the Python interface measure over IPv6. A link's ceiling for TCP has
  IPv6's header: 1428 of 1514 bytes at an MTU of 1500, where IPv4 has 1448.
- Switches have an IPv6 address on their segment. With [`routing: ospf` or `bgp`](routing-protocols.md) the hosts run
  OSPFv3, or BGP over IPv6.
- `none` and `none-v6` are the same plain hosts. `vxlan-bare-v6` and `wireguard-bare-v6` can be laid over them, and
  carry IPv4 inside; all other overlays use IPv4 and are refused.
- `subnets`, a link's `subnet` and `addresses`, IPv4 addresses in a host's `routes`, and a switch's controller elsewhere
  than on the switch are refused.
- A host with a [`gateway`](#hostsgateway) has the IPv4 address of its way out, and a virtual machine that of its
  interface for management: neither is a link of the lab.

In a plan (`minigts plan --json`) the `address` of a host, port or switch is then a number that no interface has: the
IPv6 addresses follow from it ([why](decisions/names-and-addresses.md)).
""",
    ),
    Field(description="false: hosts and links have IPv6 addresses alone, which needs `ipv6:`. Default: true."),
]
