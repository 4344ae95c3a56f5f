"""A policy as NetworkPolicy objects: what each pair of containers may say to each other, and what cannot be said so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_lab import Answering, fake_lab
from minigts import overlays
from minigts.errors import InputError
from minigts.lab import Lab
from minigts.overlays import policy, policy_objects
from minigts.topology.read.load import parse

HOSTS = ("ams", "bra", "mil")
EVERYTHING: list[dict[str, object]] = []


def document(text: str) -> str:
    head = "name: shop\ngroups: {web: [ams], store: [bra]}\n"
    read = policy.parse(head + text, "shop.yaml", HOSTS)
    return policy_objects.document(read.name, policy.document(read, HOSTS), HOSTS)


def let_through(text: str, source: str, target: str) -> object:
    """`ports` of what is let through from one container to the other, or None."""
    rules = json.loads(document(text))[target]
    found = [rule["ports"] for rule in rules if source in rule["from"]]
    assert len(found) <= 1
    return found[0] if found else None


def tcp(first: int, last: int) -> dict[str, object]:
    return {"protocol": "TCP", "port": first, "endPort": last}


OPEN = "  - allow: {from: web, to: store, protocol: tcp, ports: [5201, 80]}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default: allow\n", EVERYTHING),
        ("default: deny\n", None),
        ("default: deny\nrules:\n" + OPEN, [tcp(80, 80), tcp(5201, 5201)]),
        # The first that fits decides, whatever comes after it.
        ("default: deny\nrules:\n  - deny: {from: web, to: any}\n" + OPEN, None),
        (
            "default: deny\nrules:\n  - deny: {from: any, to: store, protocol: tcp, ports: [80]}\n" + OPEN,
            [tcp(5201, 5201)],
        ),
        (
            "default: deny\nrules:\n  - deny: {from: web, to: store, protocol: tcp, ports: [1, 80, 81]}\n"
            "  - allow: {from: web, to: store, protocol: tcp}\n",
            [tcp(2, 79), tcp(82, 65535)],
        ),
        (
            "default: allow\nrules:\n"
            "  - allow: {from: web, to: store, protocol: udp}\n  - deny: {from: any, to: store}\n",
            [{"protocol": "UDP"}],
        ),
        ("default: deny\nrules:\n" + OPEN + "  - allow: {from: any, to: any, protocol: tcp}\n", [{"protocol": "TCP"}]),
    ],
)
def test_what_rules_let_through_in_their_order_is_what_objects_allow(text: str, expected: object) -> None:
    assert let_through(text, "ams", "bra") == expected


def test_containers_of_which_the_same_is_let_through_share_a_rule() -> None:
    made = json.loads(document("default: deny\nrules: [{allow: {from: any, to: store}}]\n"))
    assert made == {"ams": [], "bra": [{"from": ["ams", "mil"], "ports": []}], "mil": []}


@pytest.mark.parametrize(
    ("text", "lets"),
    [
        ("default: allow\nrules: [{deny: {from: web, to: store, protocol: tcp, ports: [80]}}]\n", "ICMP"),
        ("default: deny\nrules: [{allow: {from: web, to: store, protocol: icmp}}]\n", "ICMP"),
        (
            "default: allow\nrules: [{deny: {from: web, to: store, protocol: icmp}}]\n",
            "protocols other than TCP, UDP and ICMP",
        ),
    ],
)
def test_what_no_object_can_say_is_refused_by_the_pair_of_containers(text: str, lets: str) -> None:
    with pytest.raises(InputError, match=f"^policy shop lets {lets} through from ams to bra, and not everything: "):
        document(text)


TOLD: dict[str, str] = {}
"""By host: what its phase `policy` was told last."""


class Node(Answering):
    """It answers as a node whose phases succeed."""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        assert argv[0] != "nft"
        if argv[-1] == "policy":
            TOLD[host] = next(word for word in argv if word.startswith("POLICY=")).removeprefix("POLICY=")
        stdout = "ADDRESS=172.31.0.2\nMTU=1500\nENTER=7\n" if argv[-1] == "start" else ""
        return 0, stdout


def cluster(place: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> Lab:
    text = f"name: three\n{more}defaults: {{host: {{memory: 1GB}}}}\nchain: {{hosts: [ams, bra, mil]}}\n"
    plan = parse(text, "three.yaml")
    monkeypatch.setattr(overlays.Overlay, "programs", lambda *_: None)
    made = fake_lab(plan, place / "state", monkeypatch, Node)
    overlays.join(made, "kubernetes", lambda _: None)
    TOLD.clear()
    return made


CLOSED = "name: closed\ndefault: deny\ngroups: {web: [ams]}\nrules: [{allow: {from: web, to: any, protocol: tcp}}]\n"


def test_every_node_is_told_what_its_clusters_objects_let_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = cluster(tmp_path, monkeypatch, "kubernetes: {policies: true}\n")
    policy.apply(lab, policy.parse(CLOSED, "closed.yaml", HOSTS))
    ways = [{"from": ["ams"], "ports": [{"protocol": "TCP"}]}]
    expected = {"ams": [], "bra": ways, "mil": ways}
    assert [json.loads(TOLD[host]) for host in HOSTS] == [expected] * 3
    policy.remove(lab)
    assert dict.fromkeys(HOSTS, "") == TOLD


@pytest.mark.parametrize(
    ("more", "text", "message"),
    [
        ("", CLOSED, r"clusters of lab three enforce no NetworkPolicy: write `kubernetes: \{policies: true\}`"),
        ("kubernetes: {policies: true}\n", CLOSED.replace("tcp", "icmp"), "policy closed lets ICMP through from ams"),
    ],
)
def test_a_refused_policy_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, text: str, message: str
) -> None:
    lab = cluster(tmp_path, monkeypatch, more)
    with pytest.raises(InputError, match=message) as refused:
        policy.apply(lab, policy.parse(text, "closed.yaml", HOSTS))
    assert refused.value.exit_code == 2
    assert (TOLD, policy.policy_in_force(lab)) == ({}, None)
