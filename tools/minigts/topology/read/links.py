"""A link as a topology file has it, and the kinds of values that other parts of the model share with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model, model_validator

from minigts.language.fields import MADE, matching, quantity
from minigts.language.problems import quote
from minigts.language.quantities import TIME_MS
from minigts.language.spec import Spec
from minigts.topology.end_setting import EndSetting
from minigts.topology.facts.ends.addresses import Addresses
from minigts.topology.facts.ends.cost import Cost
from minigts.topology.facts.ends.interfaces import Interfaces
from minigts.topology.facts.ends.macs import Macs
from minigts.topology.facts.ends.mtu import Mtu
from minigts.topology.facts.ends.name import LinkName
from minigts.topology.facts.ends.relationship import Relationship
from minigts.topology.facts.ends.subnet import Subnet
from minigts.topology.facts.ends.vlan import Vlan, Vlans
from minigts.topology.fields import HOST_NAME, HOST_NAME_HINT
from minigts.topology.link_setting import Setting
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.read.per_direction import Read, key_annotations


def _round_trip(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("rtt covers both directions: for one delay each write delay: {to: 10ms, from: 30ms}")
    return value


def two_ends(value: object) -> list[object]:
    """The value, which is a list of two. Raises ValueError."""
    if not isinstance(value, list) or len(value) != 2:
        got = f"{len(value)} given" if isinstance(value, list) else f"found {quote(value)}"
        raise ValueError(f"a link has exactly two ends, as in [ams, bra]; {got}")
    return value


HostName: TypeAlias = Annotated[str, *matching(HOST_NAME_HINT, HOST_NAME)]


class _RoundTrip(Spec):
    rtt: Annotated[float, *quantity(TIME_MS), BeforeValidator(_round_trip)] | None = Field(
        None, description="Round-trip time; each direction gets half of it. Not together with delay."
    )


def _keys() -> dict[str, Any]:
    """A link's keys for its two directions, each with the settings under it."""
    under: dict[str, list[Setting]] = {}
    for each in (setting for setting in LINK_SETTINGS if not setting.of_other_unit):
        under.setdefault(each.head, []).append(each)
    return {
        key: (
            Annotated[Read, *key_annotations(settings)] | None,
            Field(None, description=" ".join(each.about for each in settings)),
        )
        for key, settings in under.items()
    }


if TYPE_CHECKING:

    class _EachWay(_RoundTrip):
        delay: Read | None = None

else:
    _EachWay = create_model("_EachWay", __base__=_RoundTrip, __cls_kwargs__=MADE, **_keys())


class LinkSettings(_EachWay):
    """What a link does to packets, in each direction on its own. A setting that is left out has no effect.

    Where the two directions differ, a setting is a mapping: `to` is from the first end to the second, `from` is back.
    """

    mtu: Mtu = None
    cost: Cost = None

    @model_validator(mode="after")
    def _one_delay(self) -> Self:
        if self.rtt is not None and self.delay is not None:
            raise ValueError("both rtt and delay are given; delay is one way, rtt is both ways: give one of them")
        return self


class LinkSpec(LinkSettings):
    """A link between two hosts, two switches, or a host and a switch. Links that meet in a switch are one segment."""

    ends: Annotated[
        tuple[HostName, HostName],
        BeforeValidator(two_ends),
        WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}),
    ] = Field(description="The two hosts or switches that the link joins.")
    name: LinkName = None
    relationship: Relationship = None
    subnet: Subnet = None
    addresses: Addresses = None
    macs: Macs = None
    interfaces: Interfaces = None
    vlan: Vlan = None
    vlans: Vlans = None

    @model_validator(mode="after")
    def _access_or_trunk(self) -> Self:
        if self.vlan is not None and self.vlans is not None:
            raise ValueError("both vlan and vlans are given; vlan is untagged, vlans are tagged: give one of them")
        return self


END_SETTINGS: Mapping[str, EndSetting] = {
    key: each for key, info in LinkSpec.model_fields.items() for each in info.metadata if isinstance(each, EndSetting)
}
"""The settings of a link's ends by key, in the order of a link's keys."""
BY_HAND = tuple(
    key for key in LinkSpec.model_fields if key != "ends" and (key not in END_SETTINGS or END_SETTINGS[key].by_hand)
)
"""The keys of a link that `minigts add` takes."""
