"""A link that goes down takes the carrier of its ends, in both times: kernels tell it, at an exact moment in virtual
time, and come up with what was left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory
from minigts import lab as labs
from minigts.foreign import parser_text
from minigts.lab import Lab, schedule_player, shown_links
from minigts.topology.outage import SILENT, Outage
from minigts.topology.read.load import parse
from minigts.topology.schedule import Moment

CHAIN = "name: carried\ndefaults: {link: {rate: 50mbit}}\nchain: {hosts: [ams, bra, lju], link: {rtt: 10ms}}\n"
LIMIT_S = 60.0
TELLS_S = 1.0
"""Linux tells of another carrier at once, or a second after it last told of one (net/core/link_watch.c)."""


@pytest.fixture(
    params=[
        pytest.param("virtual", marks=pytest.mark.virtual),
        pytest.param("real", marks=[pytest.mark.alone, pytest.mark.nightly]),
    ],
)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("carried")):
        made = labs.up(parse(CHAIN, "carried.yaml", time=request.param), "uml", None, quiet)
        yield made
        labs.down(made)


def said(lab: Lab, host: str, command: str) -> str:
    return parser_text(lab.provider.run(host, ["sh", "-euc", command], timeout_s=LIMIT_S).stdout)


def carriers(lab: Lab) -> dict[str, str]:
    """Of each host, its interfaces' carriers by its kernel: `10` is one on its first, and none on its second."""
    ports = {"ams": 1, "bra": 2, "lju": 1}
    return {
        host: "".join(said(lab, host, f"cat /sys/class/net/eth{number}/carrier")[0] for number in range(1, count + 1))
        for host, count in ports.items()
    }


WHOLE = {"ams": "1", "bra": "11", "lju": "1"}


@pytest.mark.touched("tools/minigts/lab/outages.py", "tools/minigts/lab/carriers.py", "provision/kernel/patches/0024*")
@pytest.mark.timeout(900)
def test_ends_lose_their_carrier_and_have_it_again(lab: Lab) -> None:
    assert carriers(lab) == WHOLE
    for how, found in (
        (Outage(), {"ams": "0", "bra": "01"}),
        (Outage(end="bra"), {"ams": "1", "bra": "01"}),
        (SILENT, {"ams": "1", "bra": "11"}),
        (Outage(end="ams"), {"ams": "0", "bra": "11"}),
    ):
        labs.set_links_up(lab, "ams", "bra", up=False, how=how)
        said(lab, "ams", f"sleep {2 * TELLS_S}")
        assert carriers(lab) == WHOLE | found, how
        shown = json.loads(said(lab, "ams", "ip -json link show dev eth1"))[0]
        assert ("NO-CARRIER" in shown["flags"]) is (found["ams"] == "0")
        assert said(lab, "ams", "ping -c 1 -W 1 bra >/dev/null 2>&1 || echo lost").strip() == "lost"
    labs.restart(lab, "ams")
    assert carriers(lab) == WHOLE | {"ams": "0"}
    labs.set_links_up(lab, "ams", "bra", up=True)
    said(lab, "ams", f"sleep {2 * TELLS_S}")
    assert carriers(lab) == WHOLE
    assert said(lab, "ams", "ping -c 3 -W 2 bra >/dev/null && echo came").strip() == "came"


@pytest.mark.touched("tools/minigts/lab/schedule_player.py")
@pytest.mark.timeout(900)
def test_a_schedule_takes_carriers_and_gives_them_back(lab: Lab) -> None:
    """In real time, too, where the ends' carriers follow the cut by the time of a command."""
    gone = Moment(at_s=2.0, link="ams-bra", up=False, carrier_lost=True, lost_at="bra")
    watching = "timeout 12 ip -o monitor link > /tmp/links 2>&1 & sleep 13; cat /tmp/links"
    with lab.provider.together() as pool:
        watched = [pool.start(lambda host=host: said(lab, host, watching)) for host in ("ams", "bra")]
        made = list(schedule_player.play_moments(lab, (gone, Moment(at_s=6.0, link="ams-bra", up=True))))
        by_ams, by_bra = (each.result() for each in watched)
    assert "NO-CARRIER" not in by_ams
    assert [line.count("NO-CARRIER") for line in by_bra.splitlines() if "eth1" in line] == [1, 0]
    assert carriers(lab) == WHOLE
    assert [each.moment.at_s <= each.at_s < each.moment.at_s + LIMIT_S for each in made] == [True, True]


@pytest.mark.virtual
@pytest.mark.touched("tools/minigts/lab/schedule_player.py", "provision/kernel/patches/0024*")
@pytest.mark.timeout(900)
def test_a_flap_comes_at_its_moment_and_twice_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A flap of 0.1 ms: the kernel tells of it to whoever listens, and two labs say the same of it."""
    flap = (
        Moment(at_s=1.0, link="ams-bra", up=False, carrier_lost=True),
        Moment(at_s=1.0001, link="ams-bra", up=True),
        Moment(at_s=3.0, link="ams-bra", up=False, carrier_lost=True, lost_at="bra"),
        Moment(at_s=3.5, link="ams-bra", up=True),
    )
    watching = "timeout 8 ip -ts monitor link > /tmp/links 2>&1 & date +%s.%N; sleep 9; cat /tmp/links"

    def told(number: int) -> tuple[str, str, str]:
        with state_directory(tmp_path_factory.mktemp(f"flap{number}")):
            made = labs.up(parse(CHAIN, "carried.yaml", time="virtual"), "uml", None, quiet)
            try:
                with made.provider.together() as pool:
                    watched = [pool.start(lambda host=host: said(made, host, watching)) for host in ("ams", "bra")]
                    for _ in schedule_player.play_moments(made, flap):
                        pass
                    first, second = (each.result() for each in watched)
                return first, second, links_shown(made)
            finally:
                labs.down(made)

    first, second = told(1), told(2)
    assert first == second
    by_ams, by_bra, _ = first
    assert by_ams.count("eth1") == 2, by_ams  # once without a carrier, once with: the flap of 0.1 ms is told
    assert "NO-CARRIER" in by_bra


def links_shown(lab: Lab) -> str:
    return "".join(f"{host} {said(lab, host, 'ip -s link show dev eth1')}" for host in ("ams", "bra"))


@pytest.mark.virtual
@pytest.mark.timeout(900)
def test_a_kernel_that_has_no_carrier_sends_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    with state_directory(tmp_path_factory.mktemp("nothing")):
        made = labs.up(parse(CHAIN, "carried.yaml", time="virtual"), "uml", None, quiet)
        try:
            labs.set_links_up(made, "ams", "bra", up=False, how=Outage())
            said(made, "ams", f"sleep {2 * TELLS_S}")
            wires = shown_links.read_wires(made) or {}
            before = wires["ams"]["eth1"]
            said(made, "ams", "ping -c 5 -i 0.1 -W 1 10.20.0.2 >/dev/null 2>&1 || true")
            after = (shown_links.read_wires(made) or {})["ams"]["eth1"]
            assert after.frames == before.frames
            assert after.wire.no_carrier == 1
        finally:
            labs.down(made)
