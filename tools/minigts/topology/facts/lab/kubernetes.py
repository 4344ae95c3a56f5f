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
        page="""\
optional · mapping of `proxy`, `dns` and `policies` · `kubernetes: {proxy: nftables}`

How [a cluster of Kubernetes](kubernetes.md) is set up, where the topology's overlay, `--overlay` or an experiment's is
one; other overlays leave it out of account.

### `kubernetes.proxy`
optional · `iptables`, `nftables` or `ipvs` · default: `iptables` · `kubernetes: {proxy: nftables}`

The mode of kube-proxy on every node. With `ipvs` the kernel's virtual servers choose a Service's pod in turn (its
scheduler `rr`); `/proc/net/ip_vs` on a host lists them.

### `kubernetes.dns`
optional · `true` or `false` · default: `false` · `kubernetes: {dns: true}`

CoreDNS runs in the cluster, as kubeadm sets it up: two pods in the namespace `kube-system`, behind the Service
`kube-dns`. A pod finds a Service by its name, `servers`, `servers.default` or `servers.default.svc.cluster.local`; any
other name does not exist (NXDOMAIN), since a lab has no name server outside. `up` returns when both pods are ready.
Names of hosts are those of [`dns`](#dns), which is another key, and pods do not know them.

### `kubernetes.policies`
optional · `true` or `false` · default: `false` · `kubernetes: {policies: true}`

kube-router's controller of policies runs on every node, and makes the cluster's NetworkPolicy objects rules there. By
default such objects are taken, as every API server takes them, and nobody enforces them.
""",
    ),
    Field(
        description="How a cluster of Kubernetes is set up, where an overlay is one. Default: {proxy: iptables, dns: "
        "false, policies: false}."
    ),
]
