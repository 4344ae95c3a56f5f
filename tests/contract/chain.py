"""What the contract is tested on: some hosts in a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from minigts.providers.base import Provider
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

Make = Callable[[Path], Provider]
"""Run directory -> provider."""
MakeLab = Callable[[int], Provider]
"""Number of hosts -> a lab that is up."""


def chain(hosts: int) -> Plan:
    """Hosts h1, h2, … in a row."""
    link = "{rtt: 2ms, rate: 100mbit}"
    return parse(f"name: contract\nchain: {{hosts: {hosts}, link: {link}}}\n", "contract.yaml")
