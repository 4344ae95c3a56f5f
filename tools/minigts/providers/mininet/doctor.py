"""What `minigts doctor` says of the provider `mininet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from minigts.providers.base import Finding

REMEDY = (
    "as root, on a kernel with openvswitch, netem and ifb: "
    "apt-get install mininet openvswitch-switch iperf3 netperf tcpdump jq"
)


def findings(natively_missing: Sequence[str], uml: Iterable[Finding]) -> Iterator[Finding]:
    """In this machine's own kernel, when nothing is missing for that, or else in one of User-Mode Linux, of which `uml`
    tells. Pure.
    """
    if not natively_missing:
        yield Finding("kernel", "ok", "this machine's own holds the network, in namespaces without a way out")
        return
    meaning = f"one of User-Mode Linux holds the network, since {natively_missing[0]}; hosts share one processor"
    yield Finding("kernel", "slow", meaning, REMEDY)
    yield from uml
