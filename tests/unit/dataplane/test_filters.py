"""What a host shows of the filters on its ports: the lab's own two, and what somebody has changed or added."""

from __future__ import annotations

import pytest

from minigts.dataplane import filters
from minigts.dataplane.filters import differences, read
from minigts.topology.plan.elements import Port
from minigts.topology.read.load import parse

LEADS = "action order 1: mirred (Egress Redirect to device ifb-eth1) stolen"
PASSES = "action order 1: gact action pass"


def port_of(link: str) -> Port:
    plan = parse(f"name: x\npair: {{hosts: [h1, h2], link: {{{link}}}}}\n", "x.yaml", time="real")
    return plan.hosts[0].ports[0]


DELAYED, SPOILT, PLAIN = port_of("delay: 10ms"), port_of("delay: 10ms, loss: 1%"), port_of("rate: 10mbit")


POLICED = port_of("delay: 10ms, rate: {mean: 20mbit, burst: 100kB, excess: drop}, blackhole: 1400B")
HOLED = port_of("blackhole: 1400B")


def rule(handle: str, *does: str) -> str:
    key = f"filter protocol all pref 1 u32 chain 0 fh {handle} order 1 key ht 800 bkt 0 terminal flowid not_in_hw \n"
    return key + "  match 00000000/00000000 at 0\n" + "".join(f"\t{each}\n \tindex 1 ref 1 bind 1\n" for each in does)


TABLE = "filter protocol all pref 1 u32 chain 0 \nfilter protocol all pref 1 u32 chain 0 fh 800: ht divisor 1 \n"


def shown(ingress: str, egress: str = "") -> str:
    return f"\n--filters of eth1 ingress\n{ingress}--filters of eth1 egress\n{egress}"


OWN = TABLE + rule("800::1", LEADS) + rule("800::2", LEADS)


def dropping(*police: str) -> str:
    return TABLE + rule("800::1", LEADS) + rule("800::2", *(f"action order 1:  {each}" for each in police), LEADS)


POLICES = "police 0x1 rate 20Mbit burst 100000b mtu 1414b action drop/pipe overhead 14b"
MATCHALL = "filter protocol all pref 49152 matchall chain 0 \n" + (
    "filter protocol all pref 49152 matchall chain 0 handle 0x1 \n  not_in_hw\n\taction order 1: gact action drop\n"
)


def test_the_lab_s_own_are_no_difference() -> None:
    assert differences(DELAYED, read(shown(OWN))) == []
    spares_arp = TABLE + rule("800::1", PASSES) + rule("800::2", LEADS)
    assert differences(SPOILT, read(shown(spares_arp))) == []
    assert differences(PLAIN, read(shown(""))) == []


@pytest.mark.parametrize(
    ("ingress", "egress", "told"),
    [
        (OWN, MATCHALL, ["a filter matchall for leaving frames that is not the lab's (pref 49152)"]),
        (OWN + MATCHALL, "", ["a filter matchall for arriving frames that is not the lab's (pref 49152)"]),
        (
            OWN + rule("800::800", "action order 1: gact action drop"),
            "",
            ["a filter u32 for arriving frames that is not the lab's (pref 1)"],
        ),
        (OWN, OWN, ["a filter u32 for leaving frames that is not the lab's (pref 1)"]),
        (
            "",
            "",
            ["no filter leads arriving frames where they are delayed", "no filter leads ARP where they are delayed"],
        ),
        (TABLE + rule("800::1", LEADS), "", ["no filter leads arriving frames where they are delayed"]),
        (
            TABLE + rule("800::1", LEADS) + rule("800::2", "action order 1: gact action drop"),
            "",
            ["the filter for arriving frames does something else: gact action drop"],
        ),
        (
            TABLE + rule("800::1", LEADS) + rule("800::2", LEADS, "action order 2: police 0x1 rate 1Mbit burst 10Kb"),
            "",
            ["the filter for arriving frames does something else: police 0x1 rate 1Mbit burst 10Kb"],
        ),
        (
            TABLE + rule("800::1", PASSES) + rule("800::2", LEADS),
            "",
            ["the filter for ARP does something else: gact action pass"],
        ),
    ],
)
def test_each_difference_is_said(ingress: str, egress: str, told: list[str]) -> None:
    assert differences(DELAYED, read(shown(ingress, egress))) == [f"eth1: {each}" for each in told]


@pytest.mark.parametrize("text", ["nonsense", "--filters of eth1", "--filters of eth1 ingress\nfilter of mine"])
def test_what_is_no_such_output_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(text)


def test_only_the_ports_that_are_there_are_asked_for() -> None:
    assert "for port in eth1; do for side in ingress egress" in filters.show([DELAYED])


@pytest.mark.parametrize(
    ("port", "ingress", "told"),
    [
        (POLICED, dropping(POLICES), []),
        (POLICED, dropping(POLICES.replace("100000b", "98Kb")), []),  # as older programs round it
        (HOLED, dropping("police 0x1 rate 0bit burst 0b mtu 1414b action drop/pipe overhead 0b"), []),
        (POLICED, OWN, ["0 filters drop what arrives beyond its rate or size, should be 1"]),
        (
            POLICED,
            dropping(POLICES.replace("20Mbit", "2Mbit")),
            ["the rate beyond which arriving frames are dropped is 2000000.0, should be 20000000"],
        ),
        (
            POLICED,
            dropping(POLICES.replace("1414b", "1400b")),
            ["the mtu beyond which arriving frames are dropped is 1400.0, should be 1414"],
        ),
        (
            POLICED,
            dropping("police 0x1 mtu 1414b action drop/pipe"),
            [
                "the rate beyond which arriving frames are dropped is None, should be 20000000",
                "the burst beyond which arriving frames are dropped is None, should be 100000",
            ],
        ),
        (
            DELAYED,
            dropping(POLICES),
            [f"the filter for arriving frames does something else: {LEADS.partition(': ')[2]}"],
        ),
    ],
)
def test_what_a_policer_is_set_to_is_compared(port: Port, ingress: str, told: list[str]) -> None:
    assert differences(port, read(shown(ingress))) == [f"eth1: {each}" for each in told]
