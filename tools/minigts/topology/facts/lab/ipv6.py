"""Whether hosts and links have IPv6 addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import Finding, quote
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.read.declared import Draft
from minigts.topology.routes import ipv6, segments


def _block(value: object) -> str | None:
    if not isinstance(value, str):
        raise ValueError(f"{quote(value)} does not say whether hosts have IPv6: write true, false or a /48")
    return None if value == "false" else ipv6.DEFAULT if value == "true" else ipv6.block(value)


def _problems(document: Mapping[str, Data], drafted: Draft) -> Iterator[Finding]:
    if document["ipv6"] == "false":
        return
    for link in drafted.links:
        if link.mtu < ipv6.LEAST_MTU:
            need = f"{ipv6.LEAST_MTU} bytes are the least that a link with IPv6 carries (RFC 8200)"
            yield link.where, f"MTU {link.mtu} in a topology with `ipv6:`; {need}"
    count = len(segments.segments_of(drafted))
    if count > ipv6.MOST_SEGMENTS:
        yield ("ipv6",), f"{count} segments; a /48 holds {ipv6.MOST_SEGMENTS} and the hosts' own addresses"


Ipv6: TypeAlias = Annotated[
    Annotated[
        str | None,
        BeforeValidator(_block),
        WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "examples": ["2001:db8:7::/48"]}]}),
    ]
    | None,
    LabSetting(
        planned=None,
        elsewhere=Elsewhere(what="ipv6", why=NOWHERE, has=lambda plan: plan.ipv6, lost=True),
        problems=_problems,
        status=lambda plan: None if plan.ipv6 is None else {host.name: host.address for host in plan.ipv6.hosts},
        page="""\
optional · `true`, `false`, or an IPv6 network of 48 bits · default: `false` · `ipv6: true`

Every host and each of its interfaces has an IPv6 address beside its IPv4 address, and an IPv6 route beside each IPv4
route. Addresses come from `fd6d:6967:7473::/48`, which is local by RFC 4193, or from a block of your own:
`ipv6: 2001:db8:7::/48`. [Addresses](#addresses) has the rules.

- Hosts forward IPv6. An address is used at once, without duplicate address detection.
- Hosts find their neighbours by themselves, as over IPv4. Over two hops the first echo takes three round trips instead
  of two, since a forwarding host asks from its link-local address (`fe80::`) and is then asked in turn. On a link with
  a declared loss the neighbours' addresses are set beforehand, just as ARP is exempt from such a loss.
- `/etc/hosts` has both addresses of each name. Programs take the IPv6 address first; the option `-4` of most programs
  chooses IPv4.
- Switches carry both, and have no IPv6 address of their own.
- Links need an MTU of 1280 or more (RFC 8200).

`minigts plan`, `status` and `explain` show the addresses; the certificate reads them back. The certificate and
experiments measure over IPv4 unless the [overlay](overlays.md#over-ipv6) uses IPv6, or the lab has [no IPv4](#ipv4).
Without the key IPv6 is off on links, so that no unasked-for IPv6 packets cross them
([why](decisions/names-and-addresses.md)).
""",
    ),
    Field(
        description="true: every host and link has IPv6 addresses and routes beside those of IPv4. A /48: from that "
        "block instead of fd6d:6967:7473::/48. Default: false, IPv6 is off on links."
    ),
]
