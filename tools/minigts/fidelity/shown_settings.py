"""Reads a host's settings from its kernel (queueing disciplines, interfaces, MTU, offloads, addresses, routes), and
compares them with what should be set now. Reading starts one command on the host; the rest is pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from minigts.dataplane import filters, kernel_settings, names, shaping, shown_state, switch
from minigts.errors import HostFailed, reading_from
from minigts.foreign import parser_text, whole_number
from minigts.lab import Lab, Record, current, routes, shown_links, trees
from minigts.language import documents
from minigts.topology.plan.elements import Host, HostPort, Port, Switch
from minigts.topology.plan.plan import Plan
from minigts.topology.routes import ipv6
from minigts.topology.tcp import Window, window

READ_TIMEOUT_S = 20.0
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True)
class HostSettings:
    """The settings that one host shows. `qdiscs` is the output of `tc -j qdisc show`; the other fields are by port."""

    qdiscs: str
    mtus: Mapping[str, int]
    features: Mapping[str, Mapping[str, Any]]
    ipv6: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Global IPv6 addresses by port; empty in a lab without IPv6."""
    vlans: Mapping[str, str] = field(default_factory=dict)
    """The VLANs of a switch's ports: `10`, or for a trunk `10, 20 tagged`; empty for others."""
    wires: shown_links.Wires | None = None
    """The wires of the host's ports, where wires have rate and delay; the host does not know them."""
    reached: shown_state.Shown | None = None
    """Interfaces that are up, addresses, routes and forwarding; None in recordings without them."""
    kernel: Mapping[str, str] | None = None
    """Settings of the host's kernel by name (`topology/sysctls`); None in recordings without them."""
    by_protocol: tuple[str, ...] = ()
    """How the routes from the host's routing protocol differ; empty without a protocol."""
    of_names: tuple[str, ...] = ()
    """How the host's name server differs; empty without one."""
    filters: filters.Shown | None = None
    """The filters on its ports; read only where the ports, and not the wires, delay what arrives."""

    def gro(self, port: Port) -> str:
        """Generic receive offload of a port: `on` or `off`."""
        return "on" if self.features.get(port.name, {}).get("generic-receive-offload", {}).get("active") else "off"

    def fact(self, port: Port) -> str:
        """`eth1: MTU 1500, on are rx-checksumming, tx-checksumming`."""
        features = self.features.get(port.name, {})
        on = sorted(name for name, value in features.items() if isinstance(value, dict) and value.get("active"))
        also = "" if self.reached is None else shown_state.added_addresses(port, self.reached)
        return f"{port.name}: MTU {self.mtus.get(port.name)}, on are {', '.join(on)}{also}"

    @property
    def facts_of_kernel(self) -> tuple[str, ...]:
        """`kernel: net.core.rmem_default 212992, …`; empty where none were read."""
        listed = ", ".join(f"{name} {value}" for name, value in sorted((self.kernel or {}).items()))
        return (f"kernel: {listed}",) if listed else ()


def read_back(
    lab: Lab, machine: Host | Switch, record: Record, wires: Mapping[str, shown_links.Wires] | None
) -> HostSettings:
    """The machine's settings now, of all its ports; `wires` are the lab's (`shown_links.read_wires`).

    Raises what `Provider.run` raises.
    """
    vlans = f"{switch.SHOW_VLANS}; " if isinstance(machine, Switch) and machine.vlans else ""
    features = "ethtool --json -k '*' 2>/dev/null || echo '[]'"
    state = f"{shown_state.SHOW}; {kernel_settings.show(machine)}"
    script = f"tc -j qdisc show; ip -j address show; {vlans}{features}; {state}"
    delayed_here = current.link_carrier(lab) is None
    script += f"; {filters.show(machine.ports)}" if delayed_here else ""
    said = lab.provider.run(machine.name, ["sh", "-c", script], timeout_s=READ_TIMEOUT_S).stdout
    shown = parse(machine, parser_text(said))
    if None in (shown.reached, shown.kernel) or (delayed_here and shown.filters is None):
        raise HostFailed(f"{machine.name}: some of its addresses, routes, kernel settings and filters cannot be read")
    found = (*routes.differences(lab, machine, record), *trees.differences(lab, machine, record))
    own = None if wires is None else wires[machine.name]
    return replace(shown, wires=own, by_protocol=found, of_names=_of_names(lab, machine))


def _of_names(lab: Lab, machine: Host | Switch) -> tuple[str, ...]:
    """How the host's name server, if the lab has them, differs from what it should be."""
    if not lab.plan.dns or not isinstance(machine, Host):
        return ()
    argv = ["sh", "-c", names.show(lab.plan)]
    said = lab.provider.run(machine.name, argv, timeout_s=READ_TIMEOUT_S).stdout
    return tuple(names.differences(lab.plan, machine, parser_text(said)))


def parse(machine: Host | Switch, text: str) -> HostSettings:
    """Reads the JSON documents of `tc -j qdisc show`, of `ip -j link show` or `ip -j address show`, of the ports' VLANs
    for a switch with VLANs, and of `ethtool --json -k` for all ports or each; then the output of `reached.SHOW`,
    `kernel_settings.show` and `filters.show`.

    Raises HostFailed for any other text.
    """
    try:
        of_host, shows_filters, of_filters = text.partition(filters.BEGIN)
        of_network, shows_kernel, of_kernel = of_host.partition(kernel_settings.BEGIN)
        of_ports, shows_routes, of_routes = of_network.partition(shown_state.BEGIN)
        qdiscs, devices, *features = _documents(of_ports)
        vlans = switch.shown_vlans(features.pop(0)) if isinstance(machine, Switch) and machine.vlans else {}
        settings = HostSettings(
            qdiscs=json.dumps(qdiscs),
            mtus={str(device["ifname"]): int(device["mtu"]) for device in devices},
            vlans=vlans,
            ipv6={str(device["ifname"]): _global_addresses(device) for device in devices},
            features={str(one["ifname"]): dict(one) for document in features for one in document if one},
            reached=shown_state.read(devices, of_routes) if shows_routes else None,
            kernel=kernel_settings.read(of_kernel) if shows_kernel else None,
            filters=filters.read(of_filters) if shows_filters else None,
        )
        for port in machine.ports:
            shaping.read_back(port, settings.qdiscs)
            settings.fact(port)
            settings.gro(port)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{error!r}".replace("\\n", " ")[:160]
        raise HostFailed(f"{machine.name}: the settings of its links cannot be read: {reason}") from error
    return settings


def differences(
    plan: Plan, machine: Host | Switch, record: Record, shown: HostSettings, only: Port | None = None
) -> list[str]:
    """How the settings of a machine's ports, or of `only` one, differ from what should be set now, a sentence each."""
    ports = machine.ports if only is None else (only,)
    beside = plan.ipv6_of(machine.name)
    return [
        *(difference.text for difference in ways(plan, machine, record, shown, ports)),
        *shaping_differences(plan, ports, record, shown),
        *(difference for port in ports for difference in _interface_differences(port, record, shown)),
        *(difference for port in ports for difference in _vlan_differences(plan, machine, port, shown)),
        *(difference for port in ports if beside is not None for difference in _ipv6_differences(port, beside, shown)),
        *shown.by_protocol,
        *(() if only is not None else shown.of_names),
        *(() if shown.kernel is None or only is not None else kernel_settings.differences(machine, shown.kernel)),
    ]


def shaping_differences(plan: Plan, ports: Sequence[Port], record: Record, shown: HostSettings) -> list[str]:
    """How the shaping of these ports, and the filters that lead to it, differ from what should be set now."""
    now = [current.port_now(plan, port, record) for port in ports]
    also = () if shown.filters is None else (text for port in now for text in filters.differences(port, shown.filters))
    return [*shown_links.differences(plan, ports, record, shown.qdiscs, shown.wires), *also]


def ways(
    plan: Plan, machine: Host | Switch, record: Record, shown: HostSettings, ports: Sequence[Port]
) -> list[shown_state.StateDifference]:
    """How the interfaces, addresses and routes of these ports differ from what should be set now."""
    now = [current.port_now(plan, port, record) for port in ports]
    return [] if shown.reached is None else shown_state.differences(plan, machine, shown.reached, now)


def _interface_differences(port: Port, record: Record, shown: HostSettings) -> Iterator[str]:
    mtu, gro = shown.mtus.get(port.name), shown.gro(port)
    if mtu != port.mtu:
        yield f"{port.name}: MTU is {mtu}, should be {port.mtu}"
    if gro != record.settings.gro:
        yield f"{port.name}: generic receive offload is {gro}, should be {record.settings.gro}"


def _vlan_differences(plan: Plan, machine: Host | Switch, port: Port, shown: HostSettings) -> Iterator[str]:
    """Differences in a switch port's VLANs, or in the VLAN interfaces of a host behind a trunk."""
    if isinstance(port, HostPort):
        for own in port.on_segments:
            if own.vlan is not None and shown.mtus.get(own.name) != port.mtu:
                found = f"MTU is {shown.mtus[own.name]}" if own.name in shown.mtus else "there is none"
                yield f"{own.name}: {found}, should be of VLAN {own.vlan} with MTU {port.mtu}"
    elif isinstance(machine, Switch) and machine.vlans:
        link = next(link for link in plan.links if link.name == port.link)
        wanted, found = link.vlans_in_words, shown.vlans.get(port.name, "none")
        if found != wanted:
            yield f"{port.name}: VLAN is {found}, should be {wanted}"


def _ipv6_differences(port: Port, beside: ipv6.Ipv6Host, shown: HostSettings) -> Iterator[str]:
    for own in port.on_segments if isinstance(port, HostPort) else ():
        address, found = beside.port(own.name).address, shown.ipv6.get(own.name, ())
        if found != (address,):
            yield f"{own.name}: IPv6 address is {', '.join(found) or 'none'}, should be {address}"


def _global_addresses(device: Mapping[str, Any]) -> tuple[str, ...]:
    found = (each for each in device.get("addr_info", ()) if each["family"] == "inet6" and each["scope"] == "global")
    return tuple(str(each["local"]) for each in found)


def _documents(text: str) -> list[Any]:
    """The JSON documents in a text of several."""
    text = documents.bounded_text(text)
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches everywhere
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


WINDOW_TIMEOUT_S = 20.0
RECEIVE, SEND = "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"
LEAST_BYTES = 200_000
"""A bandwidth-delay product below this many bytes is not limited by the buffers that hosts have after their start."""


def tcp_window(lab: Lab, source: str, target: str) -> Window:
    """The window from `source` to `target`. Raises what `Provider.run` raises, and HostFailed for unreadable output."""
    return window(_largest(lab, target, RECEIVE), _largest(lab, source, SEND))


def _largest(lab: Lab, host: str, file: str) -> int:
    """The third of `4096 131072 6291456`: the least, initial and largest size that the kernel chooses (tcp(7))."""
    shown = lab.provider.run(host, ["cat", file], timeout_s=WINDOW_TIMEOUT_S).stdout
    with reading_from(host, file):
        _, _, largest = shown.split()
        return whole_number(largest)
