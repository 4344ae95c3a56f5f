"""Which overlays are tried for each change: one for each mechanism, and those whose folder has just changed; at night
all of them are. `test_overlays` has mesh on a chain, and `test_ipv6` tunnels without a container's engine, WireGuard's
too."""

from __future__ import annotations

from minigts import overlays
from touched import changed

ALWAYS = {"swarm", "flannel", "ovs", "ipvlan", "calico", "ebpf"}


def has(name: str) -> bool:
    folders = {folder.name for folder in overlays.find(name).folders}
    return name in ALWAYS or not folders.isdisjoint(changed(overlays.catalogue.scripts()))
