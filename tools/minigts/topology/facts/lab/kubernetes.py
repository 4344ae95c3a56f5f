"""How a cluster of Kubernetes is set up."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from minigts.language.fields import choice, truth
from minigts.language.spec import Spec
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.plan import elements


class KubernetesSpec(Spec):
    """How a cluster of Kubernetes is set up."""

    proxy: Annotated[
        Literal["iptables", "nftables", "ipvs"], choice("a mode of kube-proxy", "iptables", "nftables", "ipvs")
    ] = Field("iptables", description="The mode of kube-proxy: iptables, nftables or ipvs. Default: iptables.")
    dns: Annotated[bool, *truth("CoreDNS runs in the cluster")] = Field(
        False, description="true: CoreDNS runs, and pods find Services by their names. Default: false."
    )
    policies: Annotated[bool, *truth("NetworkPolicy objects are enforced")] = Field(
        False, description="true: kube-router enforces NetworkPolicy objects on every node. Default: false."
    )


def _planned(written: KubernetesSpec | None) -> elements.Kubernetes:
    return elements.Kubernetes() if written is None else elements.Kubernetes(**written.model_dump())


Kubernetes: TypeAlias = Annotated[
    KubernetesSpec | None,
    LabSetting(
        planned=_planned,
        elsewhere=Elsewhere(
            what="kubernetes",
            why=NOWHERE,
            has=lambda plan: plan.kubernetes != elements.Kubernetes(),
            lost=False,
        ),
    ),
    Field(
        description="How a cluster of Kubernetes is set up, where an overlay is one. Default: {proxy: iptables, dns: "
        "false, policies: false}."
    ),
]
