"""Pods of a cluster of Kubernetes: which there are, how a command runs in one, and what one has written.

A pod is `pod/NAME` in the namespace `default`, or `pod/NAMESPACE/NAME`; `:CONTAINER` at the end is a container of it
other than the first. The cluster is asked by phase `pods` on its control plane. Commands and logs go by the control
line of the pod's own node, and cross no link of the lab.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from minigts.errors import InputError, MinigtsError, reading_from
from minigts.foreign import Foreign, identifier, parser_text, screen_text
from minigts.lab import Lab
from minigts.language import documents
from minigts.language.problems import did_you_mean
from minigts.overlays import catalogue
from minigts.overlays.phases import IN_HOST, joined_overlay, run_phase
from minigts.overlays.teams import teams

PREFIX = "pod/"
ENTER = IN_HOST / "overlays" / "kubernetes" / "enter.sh"
LOGS = "/var/log/pods"
LOGS_TIMEOUT_S = 60.0
MOST_LOG_BYTES = 4 << 20
MOST_LISTED = 40
ENDS_OF_LOGS = 'cd -- "$1" && for log in $(ls -v); do tail --bytes="$2" -- "$log"; done'


LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""A name of Kubernetes' for namespaces and containers (RFC 1123, as its API server checks it)."""
SUBDOMAIN = re.compile("[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""The same for pods and nodes."""


def _known_as(pattern: str) -> Any:
    return Field(pattern=f"^({pattern})$")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class ContainerOfPod(_Part):
    """A container of a pod. `id` is containerd's, and empty while there is none."""

    name: Annotated[str, _known_as(LABEL.pattern)]
    id: Annotated[str, _known_as("[0-9a-f]{0,64}")]
    state: Foreign
    """running; ended with code 1; waits: ErrImageNeverPull: …"""


class Pod(_Part):
    """A pod. `node` is the host that it is on; empty while it is on none, and `unscheduled` says why."""

    namespace: Annotated[str, _known_as(LABEL.pattern)]
    name: Annotated[str, _known_as(SUBDOMAIN.pattern)]
    node: Annotated[str, _known_as(f"{SUBDOMAIN.pattern}|")]
    uid: Annotated[str, _known_as("[0-9a-zA-Z-]{1,64}")]
    unscheduled: Foreign
    containers: tuple[ContainerOfPod, ...]

    @property
    def full_name(self) -> str:
        return f"{PREFIX}{self.namespace}/{self.name}"


@dataclass(frozen=True)
class PodContainer:
    """A running container of a pod, on its host."""

    host: str
    id: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """A prefix that runs a command in the container."""
        return ("bash", str(ENTER), self.id)

    @property
    def network(self) -> tuple[str, ...]:
        """A prefix that runs a program of the host in the pod's network namespace."""
        return ("bash", str(ENTER), "--network", self.id)


def control_planes(lab: Lab) -> dict[str, str]:
    """The host with the control plane of each host's cluster. Raises InputError when no cluster is joined."""
    now = joined_overlay(lab)
    has_pods = now is not None and catalogue.find(now.name).declaration.pods
    if now is not None and has_pods and not now.ends:
        raise InputError(
            f"lab {lab.name}: overlay {now.name} is being joined, or its joining ended early: then `minigts up` "
            "with the topology joins it"
        )
    if now is None or not has_pods:
        what = "nothing is joined" if now is None else f"overlay {now.name} is joined, which has no pods"
        raise InputError(f"lab {lab.name}: {what}: minigts up --overlay kubernetes")
    return {name: team.leader.name for team in teams(lab.plan, now.name) for name in team.names}


def list_pods(lab: Lab) -> list[Pod]:
    """All pods of the lab's clusters, by namespace and name. Raises InputError when no cluster is joined, HostFailed
    when a control plane is off."""
    leaders = [lab.plan.host(name) for name in dict.fromkeys(control_planes(lab).values())]
    told = lab.work_on(leaders, lambda host: run_phase(lab, "pods", host, {}))
    return sorted(
        (_pod(host, name, text) for host, printed in told.items() for name, text in printed.words),
        key=lambda pod: (pod.namespace, pod.name, pod.node),
    )


def _pod(host: str, name: Foreign, text: Foreign) -> Pod:
    """The pod of a line of phase `pods`, NAMESPACE/NAME=JSON, where the JSON has the rest. Raises HostFailed for one
    whose names no cluster of Kubernetes would have."""
    with reading_from(host, "what it says of its pods"):
        namespace, own = name.split("/")
        named = {"namespace": identifier(namespace, LABEL), "name": identifier(own, SUBDOMAIN)}
        return Pod.model_validate({**documents.document(text), **named})


def find(lab: Lab, word: str) -> tuple[Pod, str]:
    """The pod that `word` names, and the name of its container after a colon, or of none. Raises InputError, which
    lists the pods that there are."""
    name, colon, container = word.removeprefix(PREFIX).partition(":")
    wanted = f"{PREFIX}{name}" if "/" in name else f"{PREFIX}default/{name}"
    pods = list_pods(lab)
    found = [pod for pod in pods if pod.full_name == wanted]
    if not found:
        others = [pod.full_name for pod in pods]
        listed = ", ".join(others[:MOST_LISTED]) or "none"
        more = f" and {len(others) - MOST_LISTED} more" if len(others) > MOST_LISTED else ""
        raise InputError(f"no {wanted}; there are {listed}{more}{did_you_mean(wanted, others)}")
    if len(found) > 1:
        nodes = " and ".join(pod.node or "no node" for pod in found)
        raise InputError(f"{wanted} is a pod of several clusters of lab {lab.name}, on {nodes}: use kubectl")
    if colon:
        _container(found[0], container)
    return found[0], container


def running(lab: Lab, word: str) -> PodContainer:
    """A running container of the pod that `word` names: the first, unless it names one. Raises InputError for an
    unknown one, MinigtsError for one that does not run."""
    pod, name = find(lab, word)
    one = _container(pod, name) if name else pod.containers[0]
    if not pod.node or one.state != "running":
        raise MinigtsError(f"{pod.full_name}: {_why_not(pod, one)}")
    return PodContainer(pod.node, one.id)


def _container(pod: Pod, name: str) -> ContainerOfPod:
    for one in pod.containers:
        if one.name == name:
            return one
    names = [one.name for one in pod.containers]
    raise InputError(f"no container {name!r} in {pod.full_name}; there are {', '.join(names)}")


def _why_not(pod: Pod, one: ContainerOfPod) -> str:
    return (
        f"it is on no node: {screen_text(pod.unscheduled)}"
        if not pod.node
        else f"container {one.name} {screen_text(one.state)}"
    )


def logs(lab: Lab, pod: Pod, container: str = "") -> dict[str, Foreign]:
    """What the containers of a pod have written, by name: the last MOST_LOG_BYTES of each run that its node still has.
    `container`: only of this one. Raises MinigtsError when there is nothing."""
    written = {}
    for one in pod.containers:
        if pod.node and container in ("", one.name):
            place = f"{LOGS}/{pod.namespace}_{pod.name}_{pod.uid}/{one.name}"
            argv = ["sh", "-euc", ENDS_OF_LOGS, "sh", place, str(MOST_LOG_BYTES)]
            result = lab.provider.run(pod.node, argv, timeout_s=LOGS_TIMEOUT_S, check=False)
            if result.code == 0:
                written[one.name] = text_of(result.stdout)
    if not written:
        raise MinigtsError(f"{pod.full_name} has no log: {_why_not(pod, pod.containers[0])}")
    return written


def text_of(said: Foreign) -> Foreign:
    """The text in a log in the format of Kubernetes' container runtime interface. Pure.

    2026-11-27T21:04:05.123456789Z stdout F a line
    """
    text, log = [], parser_text(said)
    for line in log.removesuffix("\n").split("\n") if log else ():
        words = line.split(" ", 3)
        if len(words) < 4 or words[2] not in ("F", "P"):  # cut off by `tail`
            text.append(f"{line}\n")
        else:
            text.append(words[3] + ("\n" if words[2] == "F" else ""))
    return Foreign("".join(text))
