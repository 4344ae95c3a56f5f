"""What the hosts' full kernel lacks of what Linux's own network tests ask for, as the table of docs/providers.md.

    bench/run kernel_options            # prints the table
    bench/run kernel_options --write    # writes it into the page, after a change of provision/kernel/config

The options are those of tools/testing/selftests/net/config of Linux 7.2.13, and of the same file of net/mptcp,
net/forwarding, net/packetdrill and tc-testing, but DEBUG_INFO_BTF_MODULES, which is wanted off, and HZ_1000, which is
HZ=1000 in User-Mode Linux. One that provision/kernel/config does not name may still be on, as another one selects it:
IMPLIED has those, and a live test compares the whole with the configuration that a host's kernel shows.
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
IMPLIED = frozenset(
    {"MPLS", "NETFILTER_NETLINK", "NET_SCH_FIFO", "NF_CONNTRACK_MARK", "NF_CONNTRACK_OVS", "PSAMPLE", "TAP"}
)
"""Selected by options that are named."""
LISTED = frozenset(
    re.findall(
        r"\w+",
        """
    AMT ATM BAREUDP BONDING BPF_SYSCALL BRIDGE BRIDGE_IGMP_SNOOPING BRIDGE_VLAN_FILTERING CAN CAN_DEV CAN_VXCAN
    CGROUP_BPF CLS_U32_MARK CLS_U32_PERF CRYPTO_ARIA CRYPTO_CHACHA20POLY1305 CRYPTO_SHA1 CRYPTO_SM4_GENERIC
    DEBUG_INFO_BTF DUMMY GACT_PROB GENEVE IFB INET_DIAG INET_ESP INET_ESP_OFFLOAD INET_MPTCP_DIAG IP6_NF_FILTER
    IP6_NF_IPTABLES IP6_NF_IPTABLES_LEGACY IP6_NF_MANGLE IP6_NF_MATCH_RPFILTER IP6_NF_NAT IP6_NF_RAW
    IP6_NF_TARGET_REJECT IPV6 IPV6_GRE IPV6_ILA IPV6_IOAM6_LWTUNNEL IPV6_MROUTE IPV6_MROUTE_MULTIPLE_TABLES
    IPV6_MULTIPLE_TABLES IPV6_PIMSM_V2 IPV6_ROUTER_PREF IPV6_ROUTE_INFO IPV6_RPL_LWTUNNEL IPV6_SEG6_LWTUNNEL
    IPV6_SIT IPV6_VTI IPVLAN IPVTAP IP_ADVANCED_ROUTER IP_MROUTE IP_MROUTE_MULTIPLE_TABLES IP_MULTIPLE_TABLES
    IP_NF_FILTER IP_NF_IPTABLES IP_NF_IPTABLES_LEGACY IP_NF_MANGLE IP_NF_MATCH_RPFILTER IP_NF_NAT IP_NF_RAW
    IP_NF_TARGET_REJECT IP_NF_TARGET_TTL IP_PIMSM_V1 IP_PIMSM_V2 IP_SCTP IP_SET KALLSYMS L2TP L2TP_ETH L2TP_IP
    L2TP_V3 MACSEC MACVLAN MACVTAP MPLS MPLS_IPTUNNEL MPLS_ROUTING MPTCP MPTCP_IPV6 NAMESPACES NETDEVSIM NETFILTER
    NETFILTER_ADVANCED NETFILTER_NETLINK NETFILTER_XTABLES NETFILTER_XTABLES_LEGACY NETFILTER_XT_MATCH_BPF
    NETFILTER_XT_MATCH_LENGTH NETFILTER_XT_MATCH_POLICY NETFILTER_XT_MATCH_STATISTIC NETFILTER_XT_NAT
    NETFILTER_XT_TARGET_HL NETFILTER_XT_TARGET_LOG NETFILTER_XT_TARGET_MARK NETKIT NET_ACT_BPF NET_ACT_CONNMARK
    NET_ACT_CSUM NET_ACT_CT NET_ACT_CTINFO NET_ACT_GACT NET_ACT_GATE NET_ACT_IFE NET_ACT_MIRRED NET_ACT_MPLS
    NET_ACT_NAT NET_ACT_PEDIT NET_ACT_POLICE NET_ACT_SAMPLE NET_ACT_SIMP NET_ACT_SKBEDIT NET_ACT_SKBMOD
    NET_ACT_TUNNEL_KEY NET_ACT_VLAN NET_CLS NET_CLS_ACT NET_CLS_BASIC NET_CLS_BPF NET_CLS_CGROUP NET_CLS_FLOW
    NET_CLS_FLOWER NET_CLS_FW NET_CLS_MATCHALL NET_CLS_ROUTE4 NET_CLS_U32 NET_DROP_MONITOR NET_EMATCH
    NET_EMATCH_CANID NET_EMATCH_CMP NET_EMATCH_IPSET NET_EMATCH_IPT NET_EMATCH_META NET_EMATCH_NBYTE NET_EMATCH_TEXT
    NET_EMATCH_U32 NET_FOU NET_FOU_IP_TUNNELS NET_IFE_SKBMARK NET_IFE_SKBPRIO NET_IFE_SKBTCINDEX NET_IPGRE
    NET_IPGRE_DEMUX NET_IPIP NET_IPVTI NET_L3_MASTER_DEV NET_NS NET_PKTGEN NET_SCHED NET_SCH_CAKE NET_SCH_CBS
    NET_SCH_CHOKE NET_SCH_CODEL NET_SCH_DRR NET_SCH_DUALPI2 NET_SCH_ETF NET_SCH_ETS NET_SCH_FIFO NET_SCH_FQ
    NET_SCH_FQ_CODEL NET_SCH_FQ_PIE NET_SCH_GRED NET_SCH_HFSC NET_SCH_HHF NET_SCH_HTB NET_SCH_INGRESS NET_SCH_MQPRIO
    NET_SCH_MULTIQ NET_SCH_NETEM NET_SCH_PIE NET_SCH_PLUG NET_SCH_PRIO NET_SCH_QFQ NET_SCH_RED NET_SCH_SFB
    NET_SCH_SFQ NET_SCH_SKBPRIO NET_SCH_TAPRIO NET_SCH_TBF NET_SCH_TEQL NET_TC_SKB_EXT NET_TEAM
    NET_TEAM_MODE_LOADBALANCE NET_VRF NFT_COMPAT NFT_NAT NFT_SOCKET NFT_TPROXY NF_CONNTRACK NF_CONNTRACK_LABELS
    NF_CONNTRACK_MARK NF_CONNTRACK_OVS NF_CONNTRACK_PROCFS NF_CONNTRACK_ZONES NF_FLOW_TABLE NF_NAT NF_TABLES
    NF_TABLES_INET NF_TABLES_IPV4 NF_TABLES_IPV6 NUMA OPENVSWITCH OPENVSWITCH_GENEVE OPENVSWITCH_GRE
    OPENVSWITCH_VXLAN PAGE_POOL_STATS PROC_SYSCTL PSAMPLE PTP_1588_CLOCK_MOCK RPS SYN_COOKIES SYSFS TAP
    TCP_CONG_CUBIC TCP_CONG_DCTCP TCP_MD5SIG TEST_BLACKHOLE_DEV TEST_BPF TLS TRACEPOINTS TUN USER_NS VETH VLAN_8021Q
    VXLAN XFRM_INTERFACE XFRM_USER
    """,
    )
)
REASONS: Mapping[str, tuple[str, str]] = {
    "TRACEPOINTS NET_DROP_MONITOR": (
        "tracing: events of the kernel in `/sys/kernel/tracing`, `dropwatch`",
        "it adds code to each path that a packet takes: `minigts kernel build NAME --config ENABLE_DEFAULT_TRACERS=y`",
    ),
    "DEBUG_INFO_BTF": (
        "BPF programs that use BTF, as those of `bpftrace` and congestion control in BPF",
        "it takes `pahole` and debugging information of the whole kernel, and no build of minigts has these",
    ),
    "NET_SCH_TEQL": (
        "queue discipline `teql`",
        "built in it would give each host an interface `teql0`: `minigts kernel build NAME --config NET_SCH_TEQL=y`",
    ),
    "ATM": ("ATM sockets", "nothing else needs them: `minigts kernel build NAME --config ATM=y`"),
    "RPS NUMA": ("several processors", "a host has one"),
    "TEST_BPF TEST_BLACKHOLE_DEV": ("the kernel's own tests of itself", "they are modules, and hosts load none"),
}
"""Of options that are not there: what needs them, and why they are left out."""


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
    for options, (what, why) in REASONS.items():
        ours = [option for option in options.split() if option in left]
        if ours:
            rows.append(f"| {', '.join(f'`{option}`' for option in ours)} | {what} | {why} |")
        for option in ours:
            del left[option]
    rows += [f"| `{option}` | – | – |" for option in left]
    count = f"{len(lacking)} of {len(LISTED)} options are not there:"
    return "\n".join([count, "", "| option | what needs it | why not |", "|---|---|---|", *rows])


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
