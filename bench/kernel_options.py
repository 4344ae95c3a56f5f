"""What the hosts' full kernel lacks of what Linux's own network tests ask for, as the table of docs/providers.md.

    bench/run kernel_options            # prints the table
    bench/run kernel_options --write    # writes it into the page, after a change of provision/kernel/config

The options are those of tools/testing/selftests/net/config of Linux 7.2.13, but DEBUG_INFO_BTF_MODULES, which it wants
off. One that provision/kernel/config does not name may still be on, as another one selects it: IMPLIED has those, and a
live test compares the whole with the configuration that a host's kernel shows.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence

from bench import stage
from minigts.cli import console

PAGE = stage.PROJECT / "docs" / "providers.md"
CONFIG = stage.PROJECT / "provision" / "kernel" / "config"
BEGIN, END = "<!-- bench/run kernel_options --write -->", "<!-- until here -->"
IMPLIED = frozenset({"MPLS", "NF_CONNTRACK_OVS", "TAP"})
"""Selected by OPENVSWITCH and MACVTAP."""
LISTED = frozenset(
    re.findall(
        r"\w+",
        """
    AMT BAREUDP BONDING BPF_SYSCALL BRIDGE BRIDGE_VLAN_FILTERING CAN CAN_DEV CAN_VXCAN CRYPTO_ARIA
    CRYPTO_CHACHA20POLY1305 CRYPTO_SHA1 CRYPTO_SM4_GENERIC DEBUG_INFO_BTF DUMMY GENEVE IFB INET_DIAG INET_ESP
    INET_ESP_OFFLOAD IP6_NF_FILTER IP6_NF_IPTABLES IP6_NF_IPTABLES_LEGACY IP6_NF_MANGLE IP6_NF_MATCH_RPFILTER IP6_NF_NAT
    IP6_NF_RAW IP6_NF_TARGET_REJECT IP_NF_FILTER IP_NF_IPTABLES IP_NF_IPTABLES_LEGACY IP_NF_MANGLE IP_NF_MATCH_RPFILTER
    IP_NF_NAT IP_NF_RAW IP_NF_TARGET_REJECT IP_NF_TARGET_TTL IP_SCTP IPV6 IPV6_GRE IPV6_ILA IPV6_IOAM6_LWTUNNEL
    IPV6_MROUTE IPV6_MULTIPLE_TABLES IPV6_ROUTE_INFO IPV6_ROUTER_PREF IPV6_RPL_LWTUNNEL IPV6_SEG6_LWTUNNEL IPV6_SIT
    IPV6_VTI IPVLAN IPVTAP KALLSYMS L2TP L2TP_ETH L2TP_IP L2TP_V3 MACSEC MACVLAN MACVTAP MPLS MPLS_IPTUNNEL MPLS_ROUTING
    MPTCP NET_ACT_CSUM NET_ACT_CT NET_ACT_GACT NET_ACT_MIRRED NET_ACT_PEDIT NET_ACT_TUNNEL_KEY NET_CLS_BASIC NET_CLS_BPF
    NET_CLS_FLOWER NET_CLS_MATCHALL NET_CLS_U32 NETDEVSIM NET_DROP_MONITOR NETFILTER NETFILTER_ADVANCED
    NETFILTER_XTABLES_LEGACY NETFILTER_XT_MATCH_BPF NETFILTER_XT_MATCH_LENGTH NETFILTER_XT_MATCH_POLICY NETFILTER_XT_NAT
    NETFILTER_XT_TARGET_HL NET_FOU NET_FOU_IP_TUNNELS NET_IPGRE NET_IPGRE_DEMUX NET_IPIP NET_IPVTI NETKIT
    NET_L3_MASTER_DEV NET_NS NET_PKTGEN NET_SCH_ETF NET_SCH_FQ NET_SCH_FQ_CODEL NET_SCH_HTB NET_SCH_INGRESS
    NET_SCH_NETEM NET_SCH_PRIO NET_TEAM NET_VRF NF_CONNTRACK NF_CONNTRACK_OVS NF_FLOW_TABLE NF_NAT NF_TABLES
    NF_TABLES_IPV4 NF_TABLES_IPV6 NFT_COMPAT NFT_NAT NUMA OPENVSWITCH OPENVSWITCH_GENEVE OPENVSWITCH_GRE
    OPENVSWITCH_VXLAN PAGE_POOL_STATS PROC_SYSCTL PSAMPLE RPS SYN_COOKIES SYSFS TAP TCP_CONG_DCTCP TCP_MD5SIG
    TEST_BLACKHOLE_DEV TEST_BPF TLS TRACEPOINTS TUN USER_NS VETH VLAN_8021Q VXLAN XFRM_INTERFACE XFRM_USER
    """,
    )
)
NEEDED: Mapping[str, str] = {
    "MPTCP": "Multipath TCP: `socket(…, IPPROTO_MPTCP)`, `ip mptcp`, `mptcpize`",
    "IP_SCTP": "SCTP sockets",
    "TCP_MD5SIG": "BGP sessions with a password (TCP MD5 signatures)",
    "TLS": "TLS in the kernel (`TCP_ULP`)",
    "MPLS_ROUTING MPLS_IPTUNNEL": "MPLS: `ip -f mpls route`, `encap mpls`, LDP",
    "IPV6_SEG6_LWTUNNEL IPV6_RPL_LWTUNNEL IPV6_IOAM6_LWTUNNEL IPV6_ILA": "SRv6, RPL, IOAM and ILA: `encap seg6` …",
    "IPV6_MROUTE": "multicast routing of IPv6 (PIM)",
    "IPV6_ROUTER_PREF IPV6_ROUTE_INFO": "preferences and routes in router advertisements",
    "IPV6_GRE IPV6_VTI NET_IPVTI XFRM_INTERFACE INET_ESP_OFFLOAD": "tunnels `ip6gre`, `vti`, `vti6`, `xfrm`",
    "L2TP L2TP_ETH L2TP_IP L2TP_V3": "L2TP tunnels: `ip l2tp`",
    "AMT BAREUDP": "tunnels `amt`, `bareudp`",
    "MACSEC": "MACsec: `type macsec`",
    "BONDING NET_TEAM": "link aggregation: `type bond`, `type team`",
    "NETKIT IPVTAP": "devices `netkit`, `ipvtap`",
    "NETDEVSIM NET_DROP_MONITOR PSAMPLE PAGE_POOL_STATS": "simulated devices, and what devlink observes on them",
    "CAN CAN_DEV CAN_VXCAN": "CAN sockets and devices",
    "NET_SCH_ETF": "queue discipline `etf`",
    "NET_ACT_CSUM NET_ACT_CT NET_ACT_PEDIT NET_ACT_TUNNEL_KEY": "actions of `tc filter`: `csum`, `ct`, `pedit`, …",
    "NF_FLOW_TABLE": "flow tables of `nft`",
    "IP_NF_MATCH_RPFILTER IP6_NF_MATCH_RPFILTER NETFILTER_XT_MATCH_LENGTH": "matches `rpfilter`, `length`",
    "IP_NF_TARGET_TTL NETFILTER_XT_TARGET_HL": "targets `TTL` and `HL` of `iptables`",
    "NET_PKTGEN": "the kernel's packet generator",
    "CRYPTO_ARIA CRYPTO_CHACHA20POLY1305 CRYPTO_SM4_GENERIC": "ciphers of TLS and IPsec in the kernel",
    "TRACEPOINTS DEBUG_INFO_BTF": "tracing: `perf`, `bpftrace`, BPF programs that use BTF",
    "TEST_BPF TEST_BLACKHOLE_DEV": "modules of the kernel's own tests",
    "RPS NUMA": "several processors, which a host has not",
}


def named(config: str) -> frozenset[str]:
    """The options that a configuration switches on; of lines `MPTCP=y`, with or without CONFIG_ in front."""
    return frozenset(re.findall(r"^(?:CONFIG_)?([A-Z0-9_]+)=[ym]\b", config, re.MULTILINE))


def missing(on: Iterable[str]) -> list[str]:
    """The listed options that are not on, in order."""
    return sorted(LISTED.difference(on))


def table(lacking: Sequence[str]) -> str:
    """The table as Markdown: each reason with its options, those without a reason at the end."""
    rows = []
    left = dict.fromkeys(lacking)
    for options, what in NEEDED.items():
        ours = [option for option in options.split() if option in left]
        if ours:
            rows.append(f"| {what} | {', '.join(f'`{option}`' for option in ours)} |")
        for option in ours:
            del left[option]
    rows += [f"| – | `{option}` |" for option in left]
    count = f"{len(lacking)} of {len(LISTED)} options are not there:"
    return "\n".join([count, "", "| what needs it | option |", "|---|---|", *rows])


def of_the_recipe() -> list[str]:
    """What a kernel of provision/kernel/config lacks."""
    return missing(named(CONFIG.read_text(encoding="utf-8")) | IMPLIED)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", action="store_true", help="write the table into docs/providers.md")
    shown = table(of_the_recipe())
    if not arguments.parse_args().write:
        console.out().print(shown, markup=False, soft_wrap=True)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{shown}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
