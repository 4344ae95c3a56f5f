"""A cluster of Kubernetes of virtual machines, by the scripts of `uml`; afterwards nothing of it is left on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from live import test_overlays
from live.conftest import quiet
from live.test_kubernetes_cluster import asked, lowest_rtt_ms, ready
from minigts import lab as labs
from minigts import overlays
from minigts.lab import Lab
from minigts.overlays import Endpoint
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.vagrant, pytest.mark.compiled, pytest.mark.timeout(3600)]
TEXT = """name: machines
defaults: {link: {rtt: 10ms, rate: 100mbit}, host: {memory: 1GB}}
hosts: {plane: {memory: 2GB}, worker: {}}
links: [{ends: [plane, worker]}]
"""


@pytest.fixture(scope="module")
def machines() -> Iterator[Lab]:
    made = labs.up(parse(TEXT, "machines.yaml", time="real"), "vagrant", "cluster-of-machines", quiet)
    try:
        yield made
    finally:
        labs.down(made)


@pytest.fixture(scope="module")
def before(machines: Lab) -> Mapping[str, str]:
    """The state of the machines before the cluster."""
    return test_overlays.state(machines)


@pytest.fixture(scope="module")
def ends(machines: Lab, before: Mapping[str, str]) -> Mapping[str, Endpoint]:
    """The measuring pods of the cluster; where processors are emulated, after some ten minutes."""
    return overlays.join(machines, "kubernetes", quiet)


def test_every_machine_is_a_ready_node_with_its_own_kernel(machines: Lab, ends: Mapping[str, Endpoint]) -> None:
    nodes = {each["metadata"]["name"]: each for each in asked(machines, "get", "nodes")["items"]}
    assert {name: ready(node) for name, node in nodes.items()} == dict.fromkeys(ends, True)
    assert {"cloud" in node["status"]["nodeInfo"]["kernelVersion"] for node in nodes.values()} == {True}


def test_pods_reach_each_other_as_declared(machines: Lab, ends: Mapping[str, Endpoint]) -> None:
    """A busy machine, and an emulated processor, only ever add."""
    assert lowest_rtt_ms(machines, ends["plane"], ends["worker"].address) >= 0.9 * 10
    overlays.verify(machines, quiet)


def test_leaving_leaves_nothing(machines: Lab, before: Mapping[str, str], ends: Mapping[str, Endpoint]) -> None:
    overlays.leave(machines, quiet)
    assert test_overlays.state(machines) == before
