"""What a host's kernel shows of its links (queueing disciplines, MTU, offloads), and how that differs from what should
be set now. Reading starts one command on the host; all else is pure.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from minigts.dataplane import shaping
from minigts.errors import HostFailed
from minigts.lab import Lab, Record, links
from minigts.topology import ipv6
from minigts.topology.plan import End, Host, Switch

READ_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class HostSettings:
    """As one host shows them. `qdiscs` is the output of `tc -j qdisc show`; the others are by port."""

    qdiscs: str
    mtus: Mapping[str, int]
    features: Mapping[str, Mapping[str, Any]]
    ipv6: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Global addresses by port; read in a lab that has them."""
    wires: links.Wires | None = None
    """What the host's ports send into, where the links have rate and delay of their own; the host does not know."""

    def gro(self, port: End) -> str:
        """Generic receive offload of a port: `on` or `off`."""
        return "on" if self.features.get(port.name, {}).get("generic-receive-offload", {}).get("active") else "off"

    def fact(self, port: End) -> str:
        """`eth1: MTU 1500, on are rx-checksumming, tx-checksumming`."""
        features = self.features.get(port.name, {})
        on = sorted(name for name, value in features.items() if isinstance(value, dict) and value.get("active"))
        return f"{port.name}: MTU {self.mtus.get(port.name)}, on are {', '.join(on)}"


def read_back(lab: Lab, machine: Host | Switch, wires: Mapping[str, links.Wires] | None) -> HostSettings:
    """What the machine shows now, of all its ports, with the wires that were read of the lab (`links.read_wires`).

    Raises what `Provider.run` raises.
    """
    ports = " ".join(shlex.quote(port.name) for port in machine.ports)
    devices = "link" if lab.plan.ipv6 is None else "address"
    script = f"tc -j qdisc show; ip -j {devices} show; for port in {ports}; do ethtool --json -k $port; done"
    shown = parse(machine, lab.provider.run(machine.name, ["sh", "-c", script], timeout_s=READ_TIMEOUT_S).stdout)
    return replace(shown, wires=None if wires is None else wires[machine.name])


def parse(machine: Host | Switch, text: str) -> HostSettings:
    """The JSON documents of `tc -j qdisc show`, `ip -j link show` or `ip -j address show` and, for each port, `ethtool
    --json -k`.

    Raises HostFailed when it is no such output.
    """
    try:
        qdiscs, devices, *features = _documents(text)
        settings = HostSettings(
            qdiscs=json.dumps(qdiscs),
            mtus={str(device["ifname"]): int(device["mtu"]) for device in devices},
            ipv6={str(device["ifname"]): _global_addresses(device) for device in devices},
            features={port.name: dict(of_port) for port, (of_port,) in zip(machine.ports, features, strict=True)},
        )
        for port in machine.ports:
            shaping.read_back(port, settings.qdiscs)
            settings.fact(port)
            settings.gro(port)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{error!r}".replace("\\n", " ")[:160]
        raise HostFailed(f"{machine.name}: what it shows of its links cannot be read: {reason}") from error
    return settings


def differences(
    ports: Sequence[End], record: Record, shown: HostSettings, beside: ipv6.Host | None = None
) -> list[str]:
    """How what a host shows of its ports differs from what should be set now, a sentence each; `beside` is what it has
    of IPv6.
    """
    return [
        *links.differences(ports, record, shown.qdiscs, shown.wires),
        *(difference for port in ports for difference in _interface_differences(port, record, shown)),
        *(difference for port in ports if beside is not None for difference in _ipv6_differences(port, beside, shown)),
    ]


def _interface_differences(port: End, record: Record, shown: HostSettings) -> Iterator[str]:
    mtu, gro = shown.mtus.get(port.name), shown.gro(port)
    if mtu != port.mtu:
        yield f"{port.name}: MTU is {mtu}, should be {port.mtu}"
    if gro != record.settings.gro:
        yield f"{port.name}: generic receive offload is {gro}, should be {record.settings.gro}"


def _ipv6_differences(port: End, beside: ipv6.Host, shown: HostSettings) -> Iterator[str]:
    address, found = beside.port(port.name).address, shown.ipv6.get(port.name, ())
    if found != (address,):
        yield f"{port.name}: IPv6 address is {', '.join(found) or 'none'}, should be {address}"


def _global_addresses(device: Mapping[str, Any]) -> tuple[str, ...]:
    found = (each for each in device.get("addr_info", ()) if each["family"] == "inet6" and each["scope"] == "global")
    return tuple(str(each["local"]) for each in found)


def _documents(text: str) -> list[Any]:
    """JSON documents that follow each other."""
    decoder, documents, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        documents.append(document)
        rest = rest[end:].lstrip()
    return documents
