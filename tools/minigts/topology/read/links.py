"""A link as a topology file has it, and the kinds of values that other parts of the model share with it."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model, model_validator

from minigts.language import interface_names
from minigts.language.blocks import MAC, OWN_MACS
from minigts.language.fields import MADE, matching, quantity, whole
from minigts.language.problems import Finding, Misplaced, shown
from minigts.language.quantities import TIME_MS
from minigts.language.spec import Spec
from minigts.topology.facts.lab.subnets import Network
from minigts.topology.fields import HOST_NAME, HOST_NAME_HINT, LEAST_MTU, MOST_MTU, NAME, NAME_HINT
from minigts.topology.frames import VLANS
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.read.per_direction import COST, BothWays, Read, of_key
from minigts.topology.setting import Setting


def _round_trip(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("rtt covers both directions: for one delay each write delay: {to: 10ms, from: 30ms}")
    return value


def two_ends(value: object) -> list[object]:
    """The value, which is a list of two. Raises ValueError."""
    if not isinstance(value, list) or len(value) != 2:
        got = f"{len(value)} given" if isinstance(value, list) else f"found {shown(value)}"
        raise ValueError(f"a link has exactly two ends, as in [ams, bra]; {got}")
    return value


def _some_vlans(value: object) -> list[object]:
    if value == []:
        raise ValueError("no VLAN is given: write them as in [10, 20], or leave vlans out")
    if not isinstance(value, list):
        raise ValueError(f"{shown(value)} is not a list of VLANs: write it as in [10, 20]")
    if twice := [number for number, count in Counter(map(str, value)).items() if count > 1]:
        raise ValueError(f"VLAN {twice[0]} is given twice")
    return value


class Unfit(ValueError):
    """Why a text cannot be what it should be."""


def _of_ends(
    value: object, what: str, example: str, read: Callable[[str], str], whats: str | None = None
) -> dict[str, str]:
    """A mapping of a link's ends to texts, each as `read` returns it. Raises ValueError, Misplaced."""
    if not isinstance(value, dict) or not value:
        wanted = f"write it as in {{ams: {example}}}"
        raise ValueError(f"{shown(value)} is no mapping of the link's ends to {whats or f'{what}es'}: {wanted}")
    findings: list[Finding] = []
    found: dict[str, str] = {}
    for end, written in value.items():
        try:
            found[str(end)] = read(written if isinstance(written, str) else "")
        except Unfit as error:
            findings.append(((end,), f"{shown(written)} is not an {what}: {error}"))
        except ValueError:
            findings.append(((end,), f"{shown(written)} is not an {what}: write it as in {example}"))
    if findings:
        raise Misplaced(findings)
    return found


def _addresses(value: object) -> dict[str, str]:
    return _of_ends(value, "IPv4 address", "192.168.7.20", lambda text: str(ipaddress.IPv4Address(text)))


def _mac(text: str) -> str:
    if not MAC.fullmatch(text.lower()) or text.lower().startswith(OWN_MACS):
        raise ValueError
    return text.lower()


def _macs(value: object) -> dict[str, str]:
    return _of_ends(value, f"one machine's MAC address outside of {OWN_MACS}", "02:00:00:00:00:01", _mac)


def _interface(text: str) -> str:
    if interface_names.number_of(text) is None and (why := interface_names.why_not(text)) is not None:
        raise Unfit(why)
    return text


def _interfaces(value: object) -> dict[str, str]:
    return _of_ends(value, "interface name", "eth2 or uplink", _interface, "interfaces' names")


HostName: TypeAlias = Annotated[str, *matching(HOST_NAME_HINT, HOST_NAME)]
_Vlan: TypeAlias = Annotated[int, *whole("a VLAN", VLANS[0], VLANS[-1])]
Name: TypeAlias = Annotated[str, *matching(NAME_HINT, NAME)]


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
            Annotated[Read, *of_key(settings)] | None,
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

    mtu: Annotated[int, *whole("an MTU", LEAST_MTU, MOST_MTU)] | None = Field(
        None, description="Largest IP packet in bytes. Default: 1500."
    )

    cost: Annotated[BothWays[int], *COST] | None = Field(
        None,
        description="What the link costs, from 1 to 65535: the lowest sum is the route. Default: by round trips.",
    )

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
    name: Name | None = Field(None, description="Name of the link. Default: its ends, such as ams-bra.")
    subnet: Network | None = Field(
        None,
        description="IPv4 network of this link's segment. Default: the next free /24 of `subnets`, or a larger one.",
    )
    addresses: (
        Annotated[
            dict[str, str],
            BeforeValidator(_addresses),
            WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}),
        ]
        | None
    ) = Field(
        None,
        description="IPv4 addresses of the link's ends, by their names, in the segment's `subnet`. Default: the lowest "
        "free ones, in the order of the links.",
    )
    macs: (
        Annotated[
            dict[str, str],
            BeforeValidator(_macs),
            WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}),
        ]
        | None
    ) = Field(None, description="MAC addresses of the link's ends, by their names. Default: by link and end.")
    interfaces: (
        Annotated[
            dict[str, str],
            BeforeValidator(_interfaces),
            WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}),
        ]
        | None
    ) = Field(
        None,
        description="Names for the interfaces of the link's ends, by their names: eth2 is the port of that number, and "
        "uplink stands beside it. Default: the lowest free number from eth1 on, in the order of the links.",
    )
    vlan: _Vlan | None = Field(
        None,
        description="The VLAN that the link is in, untagged, from 1 to 4094: its switch has it as an access port. "
        "Default: none, where no link of the switch has one.",
    )
    vlans: (
        Annotated[
            tuple[_Vlan, ...],
            BeforeValidator(_some_vlans),
            WithJsonSchema({"type": "array", "items": {"type": "integer"}, "minItems": 1, "uniqueItems": True}),
        ]
        | None
    ) = Field(
        None,
        description="The VLANs that the link carries tagged, as a trunk; a host has an interface for each, eth1.10. "
        "Default between switches: all that their hosts are in.",
    )

    @model_validator(mode="after")
    def _access_or_trunk(self) -> Self:
        if self.vlan is not None and self.vlans is not None:
            raise ValueError("both vlan and vlans are given; vlan is untagged, vlans are tagged: give one of them")
        return self
