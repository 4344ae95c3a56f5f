"""The topology file as its user writes it: one pydantic model, from which the JSON Schema comes too.

Values arrive as strings (see `tree`), so each field has its own parser and its own error message. What concerns several
fields or several links is in `checks`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from minigts.language import validation
from minigts.language.fields import choice, matching, quantity, text, truth, whole
from minigts.language.problems import shown
from minigts.language.quantities import BFD_MS, MEMORY_MB, SHARE_PERCENT, TIME_MS, whole_number
from minigts.language.spec import Spec
from minigts.topology.facts.hosts.kernel import KERNEL_NAME
from minigts.topology.fields import (
    EXPECTATIONS,
    HOST_NAME,
    LARGEST_SEED,
    LONGEST_DESCRIPTION,
    LONGEST_LOCATION,
    Hashed,
    LatencyWord,
    ThroughputWord,
)
from minigts.topology.host_settings import HostSpec
from minigts.topology.read.links import HostName, LinkSettings, LinkSpec, Name, Network
from minigts.topology.read.shorthands import Chain, Clos, Pair, Ring, Star
from minigts.topology.routes import ipv6 as v6
from minigts.topology.routes.addresses import DEFAULT_SUBNETS
from minigts.topology.routes.spanning_tree import HIGHEST_PRIORITY, PRIORITY_STEP
from minigts.topology.schedule import Step
from minigts.topology.time import Time


def _time_and_share(value: object) -> tuple[float, float]:
    """`0.2ms + 1%` → (0.2, 1.0); either part may be left out."""
    parts = [part.strip() for part in value.split("+")] if isinstance(value, str) and len(value) <= 40 else []
    shares = [part for part in parts if part.endswith("%")]
    times = [part for part in parts if not part.endswith("%")]
    if not parts or len(shares) > 1 or len(times) > 1:
        raise ValueError(f"{shown(value)} is not a tolerance of round trips: write it as in 0.2ms + 1%")
    return (
        TIME_MS.parse(times[0]) if times else 0.0,
        SHARE_PERCENT.parse(shares[0]) if shares else 0.0,
    )


def _beside(value: object) -> str | None:
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} does not say whether hosts have IPv6: write true, false or a /48")
    return None if value == "false" else v6.DEFAULT if value == "true" else v6.block(value)


_HASHES = get_args(Hashed)


_BFD_SCHEMA = {
    "anyOf": [{"enum": [False]}, {"type": "string", "pattern": BFD_MS.pattern, "examples": [BFD_MS.example]}]
}


def _bfd_ms(value: object) -> int | None:
    """The interval of BFD in ms; None for `false`."""
    return None if value in (None, False, "false") else BFD_MS.parse_whole(value)


def _hashed(value: object) -> str | None:
    words: dict[str, str | None] = {"true": "layer4", "false": None} | {word: word for word in _HASHES}
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{shown(value)} does not say how flows are spread: write true, false, layer3 or layer4")
    return words[str(value)]


def _members(value: object) -> list[object]:
    if not isinstance(value, list) or len(value) < 2:
        got = f"{len(value)} given" if isinstance(value, list) else f"found {shown(value)}"
        raise ValueError(f"a group is a list of two hosts or more, as in [ams, bra]; {got}")
    return value


CONTROLLER = re.compile(
    r"(?:[a-z](?:[a-z0-9-]{0,13}[a-z0-9])?|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?::[0-9]{1,5})?", re.ASCII
)
CONTROLLER_HINT = "a controller: write builtin, or a host's name or an IPv4 address, as in h1 or 192.0.2.1:6653"
_Beside: TypeAlias = Annotated[
    str | None,
    BeforeValidator(_beside),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "examples": ["2001:db8:7::/48"]}]}),
]
_Members: TypeAlias = Annotated[
    tuple[HostName, ...],
    BeforeValidator(_members),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}),
]


def _priority(value: object) -> int:
    number = whole_number(value, "a priority", 0, HIGHEST_PRIORITY)
    if number % PRIORITY_STEP:
        raise ValueError(f"{shown(value)} is not a priority: write a multiple of 4096, as in 4096 or 32768")
    return number


_PRIORITY = (
    BeforeValidator(_priority),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": HIGHEST_PRIORITY, "multipleOf": PRIORITY_STEP}),
)


class SwitchSpec(Spec):
    """Open vSwitch on a machine of its own. Nothing is required: `s1:` alone declares a switch that learns."""

    location: Annotated[str, text("a location", LONGEST_LOCATION, one_line=True)] | None = Field(
        None, description="Where the switch stands, for figures and tables."
    )
    memory: Annotated[int, *quantity(MEMORY_MB, whole=True)] | None = Field(
        None, description="Memory of its machine, from 128MB. Default: 512MB."
    )
    controller: Annotated[str, *matching(CONTROLLER_HINT, CONTROLLER)] | None = Field(
        None,
        description="OpenFlow controller: builtin, or a host of the switch's segment or an IPv4 address, with :PORT "
        "unless that is 6653. Default: none, the switch learns by itself.",
    )
    spanning_tree: (
        Annotated[Literal["none", "stp", "rstp"], choice("a spanning tree", "none", "stp", "rstp")] | None
    ) = Field(
        None,
        description="The protocol by which switches that form a ring block links: stp, rstp or none. Default: none.",
    )
    priority: Annotated[int, *_PRIORITY] | None = Field(
        None,
        description="Priority in the spanning tree: the switch with the lowest one is the root. A multiple of 4096, "
        "from 0 to 61440. Default: 32768.",
    )


class Defaults(Spec):
    """Default settings of hosts, switches and links."""

    link: LinkSettings | None = Field(None, description="Settings of every link that does not give its own.")
    host: HostSpec | None = Field(None, description="Settings of every host that does not give its own.")
    switch: SwitchSpec | None = Field(None, description="Settings of every switch that does not give its own.")


class Expect(Spec):
    """One thing that must hold on a lab of this topology; `minigts check` judges it. One key an entry."""

    latency: Annotated[LatencyWord, choice("an expectation", *EXPECTATIONS["latency"])] | None = Field(
        None,
        description="sum-of-segments: the RTT of each path is the sum of what its segments measured. as-declared: it "
        "is what the file declares. steady: the RTT hardly varies.",
    )
    throughput: Annotated[ThroughputWord, choice("an expectation", *EXPECTATIONS["throughput"])] | None = Field(
        None,
        description="TCP throughput from the first host. within-ceiling: 85 % to 102 % of the ceiling in the plan. "
        "falls-with-hops: less over the most hops than over one. step-after-first-hop: the second hop takes more than "
        "a tenth, and more than all further ones. falls-slightly: less over the most hops, by a tenth at most. level: "
        "over the most hops within a tenth of one hop.",
    )

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if (self.latency is None) == (self.throughput is None):
            raise ValueError("an expectation has exactly one key: latency or throughput")
        return self


class ToleranceSpec(Spec):
    """How far a lab may be from its plan in the certificate."""

    rtt: Annotated[
        tuple[float, float],
        BeforeValidator(_time_and_share),
        WithJsonSchema({"type": "string", "examples": ["0.2ms + 1%"]}),
    ] = Field(
        (0.2, 1.0),
        description="Tolerance of a path's median round-trip time: a time, a share, or the sum. Default: 0.2ms + 1%.",
    )
    rate: Annotated[float, *quantity(SHARE_PERCENT)] = Field(
        2.0, description="Tolerance of a link's rate, as a share. Default: 2%."
    )
    loss: Annotated[float, *quantity(SHARE_PERCENT)] = Field(
        0.1,
        description="Tolerance of a link's loss, in percentage points: with 0.1%, 1% may be measured as 0.9% to 1.1%.",
    )


class KubernetesSpec(Spec):
    """How a cluster of Kubernetes is set up."""

    proxy: Annotated[
        Literal["iptables", "nftables", "ipvs"], choice("a mode of kube-proxy", "iptables", "nftables", "ipvs")
    ] = Field("iptables", description="The mode of kube-proxy: iptables, nftables or ipvs. Default: iptables.")
    dns: Annotated[bool, *truth("CoreDNS runs in the cluster")] = Field(
        False, description="true: CoreDNS runs, and pods find Services by their names. Default: false."
    )
    policies: Annotated[bool, *truth("NetworkPolicy objects are enforced")] = Field(
        False, description="true: kube-router enforces NetworkPolicy objects on every node. Default: false."
    )


class Topology(Spec):
    """A minigts topology: hosts, the links between them, and what must hold."""

    name: Name = Field(description="Name of the topology; results and labs carry it.")
    description: Annotated[str, text("a description", LONGEST_DESCRIPTION)] | None = Field(
        None, description="What it is for: the lesson or the figure."
    )
    routing: Annotated[
        Literal["routed", "neighbours", "ospf", "bgp"],
        choice("a routing mode", "routed", "neighbours", "ospf", "bgp"),
    ] = Field(
        "routed",
        description="routed: static routes, every host reaches every other. neighbours: a host reaches only the "
        "hosts it shares a link with, as in GTS. ospf, bgp: as routed, by routes that the hosts find by that protocol, "
        "and again when a link fails. Default: routed.",
    )
    ecmp: Annotated[Hashed | None, BeforeValidator(_hashed), WithJsonSchema({"enum": [True, False, *_HASHES]})] = Field(
        None,
        description="true or layer4: hosts spread flows over all equally good ways, by addresses and ports. layer3: by "
        "addresses alone. Default: false, one way.",
    )
    bfd: Annotated[int | None, BeforeValidator(_bfd_ms), WithJsonSchema(_BFD_SCHEMA)] = Field(
        None,
        description="How often neighbours of the routing protocol tell each other by BFD that they are there; after "
        "three of these times one counts as gone. Default: false, no BFD.",
    )
    time: Annotated[Time, choice("a lab's time", "real", "virtual")] | None = Field(
        None,
        description="virtual: the lab has a clock of its own, so that results do not depend on the machine; only on "
        "uml. real: the lab has the machine's clock. Default: virtual on uml, else real.",
    )
    subnets: Network = Field(
        DEFAULT_SUBNETS,
        description="IPv4 block from which segments without a subnet get a /24 or larger. Default: 10.20.0.0/14.",
    )
    ipv6: _Beside | None = Field(
        None,
        description="true: every host and link has IPv6 addresses and routes beside those of IPv4. A /48: from that "
        "block instead of fd6d:6967:7473::/48. Default: false, IPv6 is off on links.",
    )
    ipv4: Annotated[bool, *truth("hosts and links have IPv4 addresses")] = Field(
        True,
        description="false: hosts and links have IPv6 addresses alone, which needs `ipv6:`. Default: true.",
    )
    dns: Annotated[bool, *truth("each host has a name server")] = Field(
        False,
        description="true: each host has a name server, which knows the lab's hosts and containers. Not on mininet. "
        "Default: false, hosts' names are in /etc/hosts alone.",
    )
    delays: Annotated[Literal["written", "sites"], choice("where delays come from", "written", "sites")] = Field(
        "written",
        description="sites: a link without a delay gets the one between its ends' locations, which are GTS's sites. "
        "written: it has none. Default: written.",
    )
    defaults: Defaults | None = Field(None, description="Default settings of hosts, switches and links.")
    hosts: dict[str, HostSpec | None] | None = Field(None, description="The hosts by name, in order.")
    switches: dict[str, SwitchSpec | None] | None = Field(None, description="The switches by name, in order.")
    links: tuple[LinkSpec, ...] | None = Field(None, description="The links, in order.")
    chain: Chain | None = Field(None, description="Shorthand: hosts in a row.")
    pair: Pair | None = Field(None, description="Shorthand: two hosts and one link.")
    star: Star | None = Field(None, description="Shorthand: a centre and its clients.")
    ring: Ring | None = Field(None, description="Shorthand: hosts in a ring.")
    clos: Clos | None = Field(None, description="Shorthand: hosts on leaves, and every leaf on every spine.")
    overlay: Name = Field("none", description="The overlay that is up by default; experiments may choose others.")
    kernel: Annotated[str, *KERNEL_NAME] | None = Field(
        None,
        description="The kernel of every host and switch that has none of its own, by a name of `minigts kernel list`. "
        "Default: standard.",
    )
    kubernetes: KubernetesSpec | None = Field(
        None,
        description="How a cluster of Kubernetes is set up, where an overlay is one. "
        "Default: {proxy: iptables, dns: false, policies: false}.",
    )
    groups: dict[Name, _Members] | None = Field(
        None,
        description="Groups of two hosts or more, by names of your own. Each group gets an overlay of its own. "
        "Default: one overlay over all hosts.",
    )
    schedule: tuple[Step, ...] | None = Field(
        None, description="What links do over time, when `minigts play` or a measurement plays it. Default: nothing."
    )
    expect: tuple[Expect, ...] | None = Field(None, description="What must hold on a lab of this topology.")
    tolerances: ToleranceSpec | None = Field(
        None, description="How far a lab may be from its plan. Default: {rtt: 0.2ms + 1%, rate: 2%, loss: 0.1%}."
    )
    seed: Annotated[int, *whole("a seed", 0, LARGEST_SEED)] = Field(
        0,
        description="Seed of everything random: loss, jitter and the like, and in virtual time the hosts' random "
        "numbers. Default: 0.",
    )


SHORTHANDS = ("chain", "pair", "star", "ring", "clos")
"""The keys of `Topology` that expand to hosts and links, in the order in which these come in the plan."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a topology file, for editors. Pure: the shipped topologies/schema.json is this."""
    schema = validation.json_schema(Topology)
    for kind in ("hosts", "switches"):
        schema["properties"][kind]["anyOf"][0]["propertyNames"] = {"pattern": f"^{HOST_NAME.pattern}$"}
    return schema


def json_schema_text() -> str:
    """`json_schema` as the bytes of the shipped file."""
    return validation.schema_text(json_schema())
