"""A policy as NetworkPolicy objects of Kubernetes can say it: of each container, who may open which connections to it.

Of a policy's rules the first that fits a connection decides; a NetworkPolicy can only allow, and what one allows no
other denies. So what the rules let through is worked out for each pair of containers. What a NetworkPolicy cannot say:
it names TCP, UDP and SCTP and no other protocol, so it lets ICMP through with everything, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Literal, TypedDict

from minigts.errors import InputError
from minigts.language import documents

Action = Literal["allow", "deny"]
LAST_PORT = 65535
OTHERS = "others"
"""Every protocol that a rule cannot name."""
Rule = TypedDict(
    "Rule",
    {
        "action": Action,
        "from": list[str],
        "to": list[str],
        "protocol": Literal["tcp", "udp", "icmp"] | None,
        "ports": list[int],
    },
)


class Rules(TypedDict):
    """A policy whose groups are hosts, as `policy.document` writes it."""

    default: Action
    rules: list[Rule]


def document(name: str, rules: str, hosts: Collection[str]) -> str:
    """What policy `name` lets through to each host's container, by the hosts of one network, as JSON. `rules` is its
    `policy.document`. Pure.

    {"bra": [{"from": ["ams"], "ports": [{"protocol": "TCP", "port": 5201, "endPort": 5201}]},
             {"from": ["mil"], "ports": []}]}       # no ports: everything

    Raises InputError for a policy that no NetworkPolicy can hold.
    """
    policy: Rules = documents.document(rules)
    let_through: dict[str, list[dict[str, list[object]]]] = {}
    for target in hosts:
        allowed: list[dict[str, list[object]]] = []
        for source in hosts:
            if source == target or (ports := _ports(name, policy, source, target)) is None:
                continue
            same = next((each for each in allowed if each["ports"] == ports), None)
            if same is None:
                allowed.append({"from": [source], "ports": [*ports]})
            else:
                same["from"].append(source)
        let_through[target] = allowed
    return json.dumps(let_through)


def _ports(name: str, policy: Rules, source: str, target: str) -> list[dict[str, object]] | None:
    """What is let through from one container to the other: as `ports` of a NetworkPolicy's rule, empty for everything;
    None for nothing."""
    verdicts = {each: _verdict(policy, source, target, each) for each in ("tcp", "udp", "icmp", OTHERS)}
    if set(verdicts.values()) == {("allow", frozenset[int]())}:
        return []
    for protocol, words in (("icmp", "ICMP"), (OTHERS, "protocols other than TCP, UDP and ICMP")):
        if verdicts[protocol][0] == "allow":
            raise InputError(
                f"policy {name} lets {words} through from {source} to {target}, and not everything: a "
                "NetworkPolicy, which a cluster has for it, can let that through only with everything"
            )
    ports = [{"protocol": each.upper(), **span} for each in ("tcp", "udp") for span in _spans(*verdicts[each])]
    return ports or None


def _verdict(policy: Rules, source: str, target: str, protocol: str) -> tuple[Action, frozenset[int]]:
    """What becomes of connections by that protocol, and the ports of which the contrary is true."""
    action, others = policy["default"], set[int]()
    for rule in reversed(policy["rules"]):
        named = source in rule["from"] and target in rule["to"]
        if not named or rule["protocol"] not in (None, protocol):
            continue
        if not rule["ports"]:
            action, others = rule["action"], set()
        elif rule["action"] == action:
            others -= {*rule["ports"]}
        else:
            others |= {*rule["ports"]}
    return action, frozenset(others)


def _spans(action: Action, others: Collection[int]) -> Iterator[dict[str, int]]:
    """The ports that are let through, as a NetworkPolicy has them; an empty one is every port."""
    if action == "deny":
        yield from ({"port": port, "endPort": port} for port in sorted(others))
    elif not others:
        yield {}
    else:
        edges = [0, *sorted(others), LAST_PORT + 1]
        for before, after in pairwise(edges):
            if after - before > 1:
                yield {"port": before + 1, "endPort": after - 1}
