"""The findings of `minigts doctor` for the provider `mininet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from minigts.providers.base import DoctorFinding

REMEDY = (
    "as root, on a kernel with openvswitch, netem and ifb: "
    "apt-get install mininet openvswitch-switch iperf3 netperf tcpdump jq"
)


def findings(natively_missing: Sequence[str], uml: Iterable[DoctorFinding]) -> Iterator[DoctorFinding]:
    """The findings about this machine's kernel if it can hold the network; otherwise those about a User-Mode Linux
    kernel, `uml`. Pure.
    """
    if not natively_missing:
        yield DoctorFinding("kernel", "ok", "the network is in this machine's kernel, in namespaces without a way out")
        return
    meaning = f"the network is in a User-Mode Linux kernel, since {natively_missing[0]}; hosts share one processor"
    yield DoctorFinding("kernel", "slow", meaning, REMEDY)
    yield from uml
