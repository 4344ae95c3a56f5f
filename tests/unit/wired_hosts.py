"""Hosts as in `tc_hosts`, in virtual time: between them are wires, and they add nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tc_hosts

from fake_provider import WIRINGS, CarriedLinks
from minigts.providers import registry
from minigts.topology.link_setting import LOSS_OF_ALL


class WiredHosts(CarriedLinks, tc_hosts.TcHosts):
    """See `providers.base.CarriesLinks`."""

    def _probe(self, network: tc_hosts.Network, host: str, address: str, count: int) -> str:
        held = WIRINGS[self.rundir].wires
        path = tc_hosts._path(network.plan, host, address)
        ports = [(each.name, port.name) for each in network.plan.machines for port in each.ports if port.link in path]
        if any(held[port].loss == LOSS_OF_ALL for port in ports):
            return json.dumps({"sent": count, "rtts_us": []})
        return json.dumps({"sent": count, "rtts_us": [sum(held[port].delay_ns for port in ports) / 1000] * count})

    def down(self) -> None:
        super().down()
        WIRINGS.pop(self.rundir, None)


def use(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """As `tc_hosts.use`, in either time."""
    tc_hosts.use(monkeypatch, place)
    register(monkeypatch)


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, `tc-hosts` can be asked for in either time."""
    tc_hosts.register(monkeypatch)
    monkeypatch.setitem(registry._IN_VIRTUAL_TIME, WiredHosts.name, WiredHosts)
