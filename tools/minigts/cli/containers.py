"""Commands in a lab's containers, and in the containers' networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minigts.errors import InputError

if TYPE_CHECKING:
    from minigts.lab import Lab
    from minigts.overlays import Endpoint


def is_pod(name: str) -> bool:
    """Whether it is the name of a pod, which no host or container of a topology has."""
    return name.startswith("pod/")


def container_entry(lab: Lab, name: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The host of a container, and by host the command that runs another one in the container. `name` is a container of
    the topology, a pod, or a host, which stands for its measuring container. Raises InputError when there is none."""
    from minigts.overlays import containers, pods

    if is_pod(name):
        pod = pods.running(lab, name)
        return pod.host, {pod.host: pod.prefix}
    if any(host.name == name for host in lab.plan.hosts):
        return name, measuring_entries(lab, [name])
    place = containers.find(lab, name)
    return place.host, {place.host: place.prefix}


def measuring_entries(lab: Lab, hosts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By host, the command that runs another one in the measuring container. Raises InputError when there is none."""
    return {host: end.prefix for host, end in _measuring(lab, hosts).items()}


def container_network(lab: Lab, name: str) -> tuple[str, tuple[str, ...]]:
    """The host of a container, and the command that runs a program of the host in the container's network. `name` is as
    in `container_entry`. Raises InputError when there is none."""
    from minigts.overlays import containers, pods

    if is_pod(name):
        pod = pods.running(lab, name)
        return pod.host, pod.network
    if any(host.name == name for host in lab.plan.hosts):
        return name, container_of(lab, name).network
    place = containers.find(lab, name)
    return place.host, place.network


def container_of(lab: Lab, host: str) -> Endpoint:
    """The measuring container on a host. Raises InputError when there is none."""
    return _measuring(lab, [host])[host]


def _measuring(lab: Lab, hosts: Sequence[str]) -> dict[str, Endpoint]:
    from minigts import overlays

    now = overlays.joined_overlay(lab)
    if now is None or not now.ends:
        raise InputError(
            f"no overlay is joined on lab {lab.name}, so there is no container: minigts up --overlay swarm"
        )
    ends = now.endpoints()
    without = [host for host in hosts if host not in ends or not ends[host].prefix]
    if without:
        raise InputError(f"with overlay {now.name} there is no measuring container on {', '.join(without)}")
    return {host: ends[host] for host in hosts}
