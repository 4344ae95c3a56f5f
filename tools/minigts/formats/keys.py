"""The one table of the keys that containerlab, netlab and the Topology Zoo document, and what a lab makes of each.
Pure.

The readers use it, `docs/imports.md` shows it, and the tests try each of its keys. It follows containerlab's
schemas/clab.schema.json and docs/manual, netlab's netsim/defaults/attributes.yml and docs, as of 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Fate = Literal["honoured", "error", "note"]
"""`error`: the key affects delay, rate, loss, addresses or connections, and a lab cannot have it. `note`: the key does
not affect the network, and is left out."""


@dataclass(frozen=True)
class Key:
    fate: Fate
    why: str
    """What a lab makes of it, or has instead."""


Place: TypeAlias = Mapping[str, Key]
"""The keys of one kind of place."""


def _all(fate: Fate, why: str, words: str) -> dict[str, Key]:
    return {word: Key(fate, why) for word in words.split()}


def _honoured(**keys: str) -> dict[str, Key]:
    return {word: Key("honoured", why) for word, why in keys.items()}


_PROGRAMS = "every host has minigts' own system and runs no program of the file's"
_ENGINE = "the container engine's own affair"
_FOREIGN_FILES = "files of this machine's, which may hold addresses and routes; copy them by `files:`"
_CONTROL_LINE = "a host is reached by `minigts exec` and `shell`, over no network"
_NO_MANAGEMENT = f"there is no management network: {_CONTROL_LINE}"
_PORTS = (
    "the port of that number, by the links' order or by `interfaces:`; one with a name of its own is `eth1`, `eth2`, … "
    "here, which is a note, and keeps its name beside it by `interfaces:`"
)
_CLAB_LINK = {
    **_honoured(
        type="`veth`, `veth-stitch`, and `dummy`, which is a switch with nobody else on it; all others are errors",
        endpoints=f"the two ends; of their interfaces {_PORTS}",
        endpoint="of a dummy link its one end",
        mtu="`mtu:`",
        ipv4="`subnet:`, and `addresses:` where they are not the first of their network",
    ),
    **_all("error", "IPv6 addresses are minigts' own, by `ipv6:`", "ipv6"),
    **_all("note", "only templates read it", "vars labels"),
}
CONTAINERLAB: Mapping[str, Place] = {
    "file": {
        **_honoured(name="`name:`", topology="the lab"),
        **_all("note", _ENGINE, "prefix settings debug"),
        **_all("note", _NO_MANAGEMENT, "mgmt"),
        **_all("error", "it stands under `topology:`", "kinds defaults groups nodes links"),
    },
    "topology": _honoured(
        nodes="hosts and switches",
        links="links",
        defaults="settings of all nodes",
        kinds="settings of all nodes of a kind",
        groups="settings of all nodes of a group; a node's own win, then its group's, its kind's, the defaults",
    ),
    "node": {
        **_honoured(
            kind="`linux` is a host, with IPv6 on by `run:`, `frr` one with Debian's FRR, `bridge` and `ovs-bridge` a "
            "switch; all others are errors",
            group="the group whose settings it has",
            cpu="`cpus:`: whole processors, or a share of one",
            memory="`memory:`; less than 128 MB is 128 MB, which is a note",
            env="`environment:`",
            exec="`run:`, in minigts' own system, with the interfaces' names here; of a bridge a note",
            sysctls="`run:`, by `sysctl -w`",
            labels="`location:`, of the label `location`; the others are notes",
        ),
        **_all("note", _PROGRAMS, "image type entrypoint cmd user license components extras healthcheck config"),
        **_all(
            "note", _ENGINE, "image-pull-policy restart-policy auto-remove runtime cpu-set shm-size devices cap-add"
        ),
        **_all("note", _ENGINE, "privileged cgroupns-mode cgroup-parent pid-mode tmpfs security-opts link-apply-mode"),
        **_all("note", _ENGINE, "startup-delay position enforce-startup-config suppress-startup-config"),
        **_all("note", _CONTROL_LINE, "ports hostname aliases dns credentials certificate username password"),
        **_honoured(binds="`files:`, of paths beside the file, which are copied; all others are errors"),
        **_all("error", _FOREIGN_FILES, "volumes env-files"),
        **_all("error", "a configuration sets addresses and routes; set them by `run:`", "startup-config"),
        **_all("error", "its commands may set addresses and routes; set them by `run:`", "stages"),
        **_all("note", _NO_MANAGEMENT, "mgmt-ipv4 mgmt-ipv6"),
        **_all("error", "a host has a network of its own; `none` is the same here", "network-mode"),
    },
    "node of kind `frr`": {
        **_honoured(extras="`run:`, by which FRR starts: of `frr.daemons`; without it all that Debian's package has"),
        "startup-config": Key("honoured", "`files:`, to `/etc/frr/frr.conf`, of a path beside the file"),
    },
    "link": _CLAB_LINK,
    "endpoint": {
        **_honoured(
            node="the end",
            interface=_PORTS,
            ipv4="as of the link",
            mac="`macs:`",
        ),
        **_all("error", "IPv6 addresses are minigts' own, by `ipv6:`", "ipv6"),
        **_all("note", "only templates read it", "vars"),
    },
}

_MODULES = "bgp ospf isis eigrp ripv2 routing srv6 sr mpls evpn vxlan bfd dhcp lag stp gateway vrf vlan vrfs vlans ra"
_MODULE = "only netlab itself has its configuration modules: `minigts netlab up` brings the file up with them"
_PLUGIN = "a plugin may change everything"
_OWN_ADDRESSES = "addresses follow from the links' order, or from a link's `prefix`"
_NETLAB_NODE = {
    **_honoured(
        device="`linux`, and `frr`, a host on which Debian's FRR runs; all others are errors",
        cpu="`cpus:`",
        memory="`memory:`, of MB",
        role="`bridge` is a switch; `host` and `router` are hosts, which all forward",
        mtu="`mtu:` of its links that say none",
    ),
    **_honoured(clab="containerlab's own keys of the node, see below"),
    **_all("note", _PROGRAMS, "box image skip_config unmanaged"),
    **_all("note", _ENGINE, "provider providers libvirt virtualbox tools outputs"),
    **_all("note", _NO_MANAGEMENT, "mgmt"),
    **_all("note", "only netlab's drawings have it", "graph"),
    **_all("error", _PLUGIN, "clone"),
    **_all("error", "its templates may set addresses and routes; set them by `run:`", "config"),
    **_all("error", _OWN_ADDRESSES, "id interfaces loopback"),
    **_all("error", _MODULE, f"module {_MODULES}"),
}
_NETLAB_TC = _honoured(
    delay="`delay:`, of ms, one way",
    jitter="`jitter:`, of ms; frames keep their order, and `order: free` lets them overtake",
    loss="`loss:`, of %",
    corrupt="`corrupt:`, of %",
    duplicate="`duplicate:`, of %",
    reorder="`reorder:`, of %",
    rate="`rate:`, of kbit/s",
)
_NETLAB_ATTACHED = {
    **_honoured(
        tc="of a link for both directions, of an interface for what leaves by it",
        bandwidth="`rate:`, of kbit/s, where `tc.rate` says none",
        mtu="`mtu:`; of all the link's interfaces the same",
    ),
    **_all("note", "only routing modules read it", "role"),
    **_all("error", "a link or port that is down; `minigts link` cuts one", "shutdown"),
    **_all("error", _OWN_ADDRESSES, "pool unnumbered"),
    **_all("error", _MODULE, f"vlan_name {_MODULES}"),
}
NETLAB: Mapping[str, Place] = {
    "file": {
        **_honoured(
            name="`name:`",
            nodes="hosts and switches",
            links="links, also in groups",
            groups="settings of their members; a node's own win, then those of the innermost group",
            defaults="see below",
            prefix="networks by name, for links",
        ),
        **_all("note", _ENGINE, "provider version tools validate message providers outputs"),
        **_all("error", _OWN_ADDRESSES, "addressing"),
        **_all("error", _PLUGIN, "plugin fabric files configlets"),
        **_all("error", "netlab has made this file of another one: import that", "input"),
        **_all("note", "only netlab's drawings have it", "graph"),
        **_all("error", _MODULE, f"module {_MODULES}"),
    },
    "defaults": {
        **_honoured(
            device="that of nodes without one",
            interfaces="`mtu` of links and nodes that say none",
            devices="of `linux` and `frr`: their `mtu`, `memory` and `cpu`",
        ),
        **_all("note", _ENGINE, "provider providers version tools outputs const netlab multilab warnings paths"),
        **_all("note", "only netlab reads it", "attributes graph"),
        **_all("error", _OWN_ADDRESSES, "addressing prefix"),
        **_all("error", "write it at its own place", "groups links tc node"),
        **_all("error", _MODULE, f"module {_MODULES}"),
    },
    "interfaces": _honoured(mtu="as above"),
    "device": {
        **_honoured(mtu="as of a node", memory="as of a node", cpu="as of a node"),
        **_all("note", _PROGRAMS, "image box clab libvirt virtualbox provider description support"),
        **_all("note", "only netlab reads it", "interface_name features group_vars"),
    },
    "group": {
        **_NETLAB_NODE,
        **_honoured(
            members="nodes, groups, and `h*` for all nodes that begin so",
            type="`node`; groups of VLANs and VRFs are errors",
            node_data="as settings of the group",
            _auto_create="members that are no nodes become some",
        ),
        **_all("note", "only Ansible reads it", "vars"),
    },
    "node": {
        **_NETLAB_NODE,
        **_honoured(
            group="groups that it is in",
            name="its name, in a list",
            id="its number, by which netlab gives addresses of a link's `prefix`",
        ),
    },
    "clab": {
        key: known if known.fate == "note" else Key("error", "a key of netlab's own says it, or nothing here does")
        for key, known in CONTAINERLAB["node"].items()
    },
    "link": {
        **_NETLAB_ATTACHED,
        **_honoured(
            interfaces="the ends, as a list",
            name="`name:`, where it is one of ours; else it is a note",
            type="`p2p`, `lan`, and `stub`, which is a switch with nobody else on it; all others are errors",
            prefix="`subnet:`, of IPv4, and `addresses:` where netlab gives others than the first",
            bridge="the bridge node that the link runs over",
            disable="the link is not there",
            members="links that share the settings beside it",
        ),
        **_all("note", "only netlab reads it", "linkindex graph group"),
    },
    "interface": {
        **_NETLAB_ATTACHED,
        **_honoured(
            node="the end",
            ipv4="`addresses:`, where it is not what the order of the links gives",
            ifindex=_PORTS,
            ifname=_PORTS,
        ),
        **_all("note", "a port has its number", "name"),
        **_all("error", "IPv6 addresses are minigts' own, by `ipv6:`", "ipv6"),
    },
    "tc": _NETLAB_TC,
    "prefix": {
        **_honoured(ipv4="`subnet:`", allocation="`p2p`, `sequential` and `id_based`: which address each node has"),
        **_all("error", "IPv6 addresses are minigts' own, by `ipv6:`", "ipv6"),
        **_all("note", "only netlab reads it", "_name"),
    },
}
ANSIBLES = ("ansible_", "netlab_")
"""The prefixes of a netlab node's keys that only Ansible reads."""

GRAPHML: Mapping[str, Place] = {
    "node": {
        **_honoured(
            label="the host's name and `location:`",
            name="as `label`, where there is none",
            Latitude="with `Longitude`: what makes its links' delays",
            Longitude="as above",
            lat="as `Latitude`, in TopoHub's files",
            lon="as `Longitude`, in TopoHub's files",
        ),
    },
    "edge": {
        **_honoured(
            LinkSpeedRaw="`rate:`, of bit/s",
            LinkSpeed="`rate:`, with `LinkSpeedUnits`, where `LinkSpeedRaw` says none",
            LinkSpeedUnits="as above",
            dist="its length in km, as a distance between its ends: its delay, in place of the coordinates'",
            LinkStatus="an edge that is planned, proposed, future or under construction is no link, which is a note",
        ),
        **_all("note", "demands of TopoHub's, and not of the network", "ecmp_fwd ecmp_bwd ecmp_unc"),
        **_all(
            "note", "a word about the edge", "type LinkLabel LinkNote LinkType description id key label NetworkDate"
        ),
        **_all("note", "yEd's drawing of it", "edgegraphics url"),
    },
}
KATHARA: Mapping[str, Place] = {
    "device": {
        **_honoured(
            sysctl="`run:`, by `sysctl -w`",
            env="`environment:`",
            mem="`memory:`, without a unit of MB; less than 128 MB is 128 MB, which is a note",
            cpus="`cpus:`: whole processors, or a share of one",
            exec="`run:`",
            ipv6="IPv6 on, by `run:`",
        ),
        **_all("error", "it leads to the machine's own network; `gateway: true` of minigts does", "bridged"),
        **_all("note", _PROGRAMS, "image shell entrypoint args"),
        **_all("note", _ENGINE, "num_terms ulimit privileged volume"),
        **_all("note", _CONTROL_LINE, "port"),
    },
}
CORE: Mapping[str, Place] = {
    "network": _honoured(
        type="`SWITCH` is a switch, and so is `HUB`, with a note; all others (radio, tunnels) are errors"
    ),
    "device": {
        **_honoured(name="the host's name"),
        **_all("note", _PROGRAMS, "type class image compose compose_name"),
        **_all("note", "only CORE's drawings have it", "icon canvas"),
        **_all("error", "the lab would be on several machines", "server"),
    },
    "interface": {
        **_honoured(
            name="the port of that number, by `interfaces:`; one with a name of its own is called otherwise here, "
            "which is a note",
            mac="`macs:`",
            ip4="`subnet:` and `addresses:`, with `ip4_mask`",
            ip4_mask="as above",
            ip6="`run:`, by `ip address add`, with `ip6_mask`; IPv6 is on, and has no routes",
            ip6_mask="as above",
            id="as `name`, where there is none",
        ),
    },
    "options": {
        **_honoured(
            delay="`delay:`, of µs",
            jitter="`jitter:`, of µs",
            bandwidth="`rate:`, of bit/s; 0: none",
            loss="`loss:`, of %",
            dup="`duplicate:`, of %",
            unidirectional="a link of its own for each direction is one link here",
        ),
        **_all("error", "a queue here is of bytes: set `queue:`", "buffer"),
        **_all("error", "minigts has no such errors; `loss:` and `corrupt:` may replace them", "mer burst mburst"),
        **_all("note", "only tunnels read it", "key"),
    },
}
FORMATS: Mapping[str, Mapping[str, Place]] = {
    "containerlab": CONTAINERLAB,
    "netlab": NETLAB,
    "GraphML": GRAPHML,
    "Kathará": KATHARA,
    "CORE": CORE,
}


def tables(format_name: str) -> Iterator[str]:
    """The table as lines of Markdown, a row for keys that share a fate and a reason."""
    yield from ("| where | key | here | |", "|---|---|---|---|")
    for place, keys in FORMATS[format_name].items():
        for fate, why, words in _together(keys):
            yield f"| {place} | {', '.join(f'`{word}`' for word in words)} | {fate} | {why} |"


def _together(keys: Place) -> Iterator[tuple[Fate, str, Sequence[str]]]:
    found: dict[Key, list[str]] = {}
    for word, key in keys.items():
        found.setdefault(key, []).append(word)
    for fate in ("honoured", "error", "note"):
        yield from ((key.fate, key.why, words) for key, words in found.items() if key.fate == fate)
