"""The topology file as its user writes it: one pydantic model, from which the JSON Schema comes too.

Values arrive as strings (see `tree`), so each field has its own parser and its own error message. What concerns several
fields or several links is in `whole_file`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language import validation
from minigts.language.fields import choice, matching, quantity, text
from minigts.language.problems import quote
from minigts.language.quantities import MEMORY_MB, whole_number
from minigts.language.spec import Spec
from minigts.topology.facts.lab.bfd import Bfd
from minigts.topology.facts.lab.delays import Delays
from minigts.topology.facts.lab.description import Description
from minigts.topology.facts.lab.dns import Dns
from minigts.topology.facts.lab.ecmp import Ecmp
from minigts.topology.facts.lab.expect import Expectations
from minigts.topology.facts.lab.groups import Groups
from minigts.topology.facts.lab.ipv4 import Ipv4
from minigts.topology.facts.lab.ipv6 import Ipv6
from minigts.topology.facts.lab.kernel import Kernel
from minigts.topology.facts.lab.kubernetes import Kubernetes
from minigts.topology.facts.lab.name import LabName
from minigts.topology.facts.lab.overlay import Overlay
from minigts.topology.facts.lab.routing import Routing, RoutingChoice
from minigts.topology.facts.lab.schedule import Schedule
from minigts.topology.facts.lab.seed import Seed
from minigts.topology.facts.lab.subnets import Subnets
from minigts.topology.facts.lab.time import Time
from minigts.topology.facts.lab.tolerances import Tolerances
from minigts.topology.fields import (
    HOST_NAME,
    LONGEST_LOCATION,
)
from minigts.topology.frames import Family, families
from minigts.topology.host_settings import HostSpec
from minigts.topology.lab_setting import LabSetting
from minigts.topology.read.links import LinkSettings, LinkSpec
from minigts.topology.read.shorthands import Chain, Clos, Pair, Ring, Star
from minigts.topology.routes.addresses import DEFAULT_SUBNETS
from minigts.topology.routes.spanning_tree import HIGHEST_PRIORITY, PRIORITY_STEP

CONTROLLER = re.compile(
    r"(?:[a-z](?:[a-z0-9-]{0,13}[a-z0-9])?|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?::[0-9]{1,5})?", re.ASCII
)
CONTROLLER_HINT = "a controller: write builtin, or a host's name or an IPv4 address, as in h1 or 192.0.2.1:6653"


def _priority(value: object) -> int:
    number = whole_number(value, "a priority", 0, HIGHEST_PRIORITY)
    if number % PRIORITY_STEP:
        raise ValueError(f"{quote(value)} is not a priority: write a multiple of 4096, as in 4096 or 32768")
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


class Topology(Spec):
    """A minigts topology: hosts, the links between them, and what must hold."""

    name: LabName
    description: Description = None
    routing: Routing = RoutingChoice(protocol="routed")
    ecmp: Ecmp = None
    bfd: Bfd = None
    time: Time = None
    subnets: Subnets = DEFAULT_SUBNETS
    ipv6: Ipv6 = None
    ipv4: Ipv4 = True
    dns: Dns = False
    delays: Delays = "written"
    defaults: Defaults | None = Field(None, description="Default settings of hosts, switches and links.")
    hosts: dict[str, HostSpec | None] | None = Field(None, description="The hosts by name, in order.")
    switches: dict[str, SwitchSpec | None] | None = Field(None, description="The switches by name, in order.")
    links: tuple[LinkSpec, ...] | None = Field(None, description="The links, in order.")
    chain: Chain | None = Field(None, description="Shorthand: hosts in a row.")
    pair: Pair | None = Field(None, description="Shorthand: two hosts and one link.")
    star: Star | None = Field(None, description="Shorthand: a centre and its clients.")
    ring: Ring | None = Field(None, description="Shorthand: hosts in a ring.")
    clos: Clos | None = Field(None, description="Shorthand: hosts on leaves, and every leaf on every spine.")
    overlay: Overlay = "none"
    kernel: Kernel = None
    kubernetes: Kubernetes = None
    groups: Groups = None
    schedule: Schedule = None
    expect: Expectations = None
    tolerances: Tolerances = None
    seed: Seed = 0

    @property
    def families(self) -> tuple[Family, ...]:
        """The versions of IP of which hosts and links have addresses."""
        return families(ipv4=self.ipv4, ipv6=self.ipv6 is not None)


LAB_SETTINGS: Mapping[str, LabSetting] = {
    key: each for key, info in Topology.model_fields.items() for each in info.metadata if isinstance(each, LabSetting)
}
"""The settings of a lab by key, in the order of `Topology`."""


def planned_fields(topology: Topology) -> dict[str, object]:
    """The fields of a plan that follow from the lab's own keys alone."""
    return {
        each.field or key: each.planned(getattr(topology, key))
        for key, each in LAB_SETTINGS.items()
        if each.planned is not None
    }


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
