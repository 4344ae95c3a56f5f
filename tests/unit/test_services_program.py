"""The program that makes many Services counts kube-proxy's rules as the kernel lists them."""

from __future__ import annotations

import json

from host_programs import loaded

SERVICES = loaded("services")
OF_IPTABLES = """\
*nat
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SEP-AAA -s 172.31.1.3/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-AAA -p tcp -m tcp -j DNAT --to-destination 172.31.1.3:12865
-A KUBE-SERVICES -d 172.30.16.2/32 -p tcp -m comment --comment "default/many-1" -m tcp --dport 12865 -j KUBE-SVC-BBB
-A KUBE-SERVICES -d 172.30.0.1/32 -p tcp -m comment --comment "default/kubernetes" -m tcp --dport 443 -j KUBE-SVC-CCC
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-BBB ! -s 172.31.0.0/16 -d 172.30.16.2/32 -p tcp -m tcp --dport 12865 -j KUBE-MARK-MASQ
-A KUBE-SVC-BBB -m comment --comment "default/many-1 -> 172.31.1.3:12865" -j KUBE-SEP-AAA
COMMIT
"""


def test_rules_of_iptables_are_counted_and_the_list_of_services_is_in_its_order() -> None:
    assert SERVICES.rules_of_iptables(OF_IPTABLES) == (7, ["172.30.16.2", "172.30.0.1"])


def test_rules_of_nftables_are_counted_without_chains_and_maps() -> None:
    listed = [
        {"metainfo": {"version": "1.1.3"}},
        {"chain": {"name": "services"}},
        {"map": {"name": "service-ips", "elem": [["172.30.16.2", "drop"]]}},
        {"rule": {"chain": "services", "expr": []}},
        {"rule": {"chain": "services", "expr": []}},
        {"rule": {"chain": "service-AAA", "expr": []}},
    ]
    assert SERVICES.rules_of_nftables(json.dumps({"nftables": listed})) == (3, 2)


def test_addresses_are_all_different_and_beyond_those_of_manifests() -> None:
    addresses = [SERVICES.address_of(number) for number in range(5000)]
    assert len(set(addresses)) == 5000
    assert (addresses[0], addresses[-1]) == ("172.30.16.1", "172.30.35.250")
