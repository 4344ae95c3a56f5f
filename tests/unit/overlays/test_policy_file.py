"""Policies: the file with its errors, and the rules that a host gets."""

from __future__ import annotations

import json

import pytest

from minigts.errors import InputError
from minigts.overlays import Endpoint, policy

HOSTS = ("ams", "bra", "mil")
ENDS = {name: Endpoint(name, f"172.31.{index}.2", 1500, ()) for index, name in enumerate(HOSTS)}

SHOP = """\
name: shop
default: deny
groups:
  web: [ams]
  store: [bra, mil]
rules:
  - allow: {from: web, to: store, protocol: tcp, ports: [5201, 12865]}
  - deny: {from: any, to: web, protocol: icmp}
"""


def test_a_host_gets_the_rules_for_its_own_container() -> None:
    shop = policy.parse(SHOP, "shop.yaml", HOSTS)

    for_bra, for_ams = (policy.ruleset(shop, ENDS, host) for host in ("bra", "ams"))

    assert "ip daddr 172.31.1.2 jump to_container" in for_bra
    assert "    ip saddr { 172.31.0.2 } tcp dport { 5201, 12865 } counter accept\n    counter drop\n" in for_bra
    assert "icmp" not in for_bra
    assert "    ip saddr { 172.31.0.2, 172.31.1.2, 172.31.2.2 } meta l4proto icmp counter drop\n" in for_ams
    assert "dport" not in for_ams


def test_the_first_rule_that_fits_stands_first() -> None:
    text = SHOP.replace("rules:", "rules:\n  - deny: {from: web, to: bra-only}").replace(
        "  store:", "  bra-only: [bra]\n  store:"
    )
    rules = policy.ruleset(policy.parse(text, "shop.yaml", HOSTS), ENDS, "bra").splitlines()
    verdicts = [line.split()[-1] for line in rules if " counter " in f"{line} "]
    assert verdicts == ["drop", "accept", "drop"]


def test_an_empty_group_opens_nothing() -> None:
    text = SHOP.replace("web: [ams]", "web: []")
    assert "dport" not in policy.ruleset(policy.parse(text, "shop.yaml", HOSTS), ENDS, "bra")


def test_a_network_that_enforces_by_itself_gets_the_rules_by_host() -> None:
    text = SHOP.replace("web: [ams]", "web: [ams]\n  nobody: []") + "  - allow: {from: nobody, to: any}\n"

    assert json.loads(policy.document(policy.parse(text, "shop.yaml", HOSTS), HOSTS)) == {
        "default": "deny",
        "rules": [
            {"action": "allow", "from": ["ams"], "to": ["bra", "mil"], "protocol": "tcp", "ports": [5201, 12865]},
            {"action": "deny", "from": ["ams", "bra", "mil"], "to": ["ams"], "protocol": "icmp", "ports": []},
        ],
    }


@pytest.mark.parametrize(
    ("was", "written", "said"),
    [
        ("default: deny", "default: denny", "2: default: 'denny' is not a default: write allow or deny; did you mean"),
        ("[bra, mil]", "[bra, mill]", "5: groups.store[1]: no host 'mill'; did you mean 'mil'?"),
        ("to: store", "to: stor", "7: rules[0].allow.to: no group 'stor'; did you mean 'store'?"),
        (
            "5201, 12865",
            "5201, 70000",
            "7: rules[0].allow.ports[1]: '70000' is out of range: a port is from 1 to 65535",
        ),
        ("protocol: icmp", "ports: [7]", "8: rules[1].deny: ports belong to a protocol"),
        ("protocol: icmp", "protcol: icmp", "8: rules[1].deny.protcol: unknown key; did you mean 'protocol'?"),
        ("from: web, ", "", "7: rules[0].allow: 'from' is missing"),
        ("  - deny:", "  - forbid:", "8: rules[1].forbid: unknown key; keys here are allow, deny"),
        ("web: [ams]", "any: [ams]", "4: groups.any: 'any' is every container already"),
    ],
)
def test_a_mistake_is_said_with_its_line(was: str, written: str, said: str) -> None:
    assert was in SHOP
    with pytest.raises(InputError) as caught:
        policy.parse(SHOP.replace(was, written), "shop.yaml", HOSTS)
    assert f"shop.yaml:{said}" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "name: x", "a: &b [*b]"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        policy.parse(text, "shop.yaml", HOSTS)
