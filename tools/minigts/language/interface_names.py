"""Names that a file gives to links' ends. Linux keeps them beside eth1, eth2, … (ip-link(8), `altname`). Pure."""

from __future__ import annotations

import re

LONGEST = 127
"""Of an alternative name, in bytes (ALTIFNAMSIZ in Linux's uapi/linux/if.h is 128)."""
HINT = f"an interface's name: at most {LONGEST} letters, digits, dots, hyphens, underscores; a letter or digit first"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST - 1}}}", re.ASCII)
_OF_PORTS = re.compile(r"(?:ifb-)?eth[0-9]+(?:\..*)?", re.ASCII | re.DOTALL)
_OF_OVERLAYS = (
    *("br-overlay", "br-vxlan", "br0", "cni0", "docker0", "docker_gwbridge", "flannel.1", "flannel.ipip", "gateway"),
    *("ovs-system", "underlay", "vxlan-ebpf", "vxlan.calico", "vxlan0", "weave", "wg0"),
)
_OF_LINUX = ("all", "default", "dummy0", "erspan0", "gre0", "gretap0", "ip6gre0", "ip6tnl0", "lo", "sit0", "tunl0")


def why_not(name: str) -> str | None:
    """Why no end of a link can have this name beside its own; None where one can."""
    if not _NAME.fullmatch(name):
        return f"it is not {HINT}"
    if _OF_PORTS.fullmatch(name):
        return "minigts itself calls a host's ports eth1, eth2, … in the order of its links"
    if name in (*_OF_OVERLAYS, *_OF_LINUX):
        return "Linux, minigts or an overlay has an interface of that name"
    return None
