"""Links to tc commands, and back from what tc shows. The tc output is real (iproute2 6.1), netem's as of 6.15."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from minigts.dataplane import shaping, wire
from minigts.topology import disciplines
from minigts.topology.facts.links.queue import SIZES
from minigts.topology.plan.elements import HostPort, Port
from minigts.topology.read.load import load, parse

CLSACT = {"kind": "clsact", "handle": "ffff:", "dev": "eth1", "parent": "ffff:fff1", "options": {}}
TBF = {
    "kind": "tbf",
    "handle": "8005:",
    "dev": "eth1",
    "root": True,
    "refcnt": 3,
    "options": {"rate": 6250000, "burst": 25000, "lat": 37750},
}
SEED = zlib.crc32(b"0/h1-h2/0")
"""Of the direction towards the first end."""
NETEM = {
    "kind": "netem",
    "handle": "8006:",
    "dev": "ifb-eth1",
    "root": True,
    "refcnt": 2,
    "options": {
        "limit": 2906,
        "delay": {"delay": 0.010875, "jitter": 0.001, "correlation": 0},
        "loss-random": {"loss": 0.001, "correlation": 0},
        "rate": {"rate": 12_500_000_000_000, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0},
        "seed": SEED,
        "ecn": False,
        "gap": 0,
    },
}


ORDERED = {
    "jitter_correlation_percent": 0.0,
    "jitter_distribution": None,
    "jitter_table": None,
    "jitter_order": "kept",
}
"""What is read back of a plain jitter. No kernel shows a distribution."""
NOT_SHOWN = dict.fromkeys(("rate_burst_bytes", "rate_peak_mbit", "rate_excess", "blackhole_bytes"))
UNBROKEN = {"burst_loss_percent": 100.0, "burst_between_percent": 0.0}
"""What is read back where no bursts have losses of their own."""


def port(link: str) -> HostPort:
    return parse(f"name: x\npair: {{link: {link}}}\n", "f.yaml").host("h1").ports[0]


SHAPED = port("{rtt: 21.75ms, jitter: 1ms, loss: 0.1%, rate: 50mbit}")
PLAIN = port("{}")


def changed(qdisc: dict[str, object], **options: object) -> dict[str, object]:
    before = qdisc["options"]
    assert isinstance(before, dict)
    return {**qdisc, "options": {**before, **options}}


def commands(port: Port, emulator_overhead_ms: float = 0.0) -> list[str]:
    """What a port's script starts on its host, in order, the lines of its batches each as a command."""
    head, batch = shaping.script([port], emulator_overhead_ms).split("tc -batch - <<'END'\n")
    assert batch.endswith("\nEND\n")
    return [*head.splitlines(), *(f"tc {line}" for line in batch.splitlines()[:-1])]


MISCHIEF = port("{delay: 5ms, loss: 2%, burst: 8packets, reorder: 10%, duplicate: 3%, corrupt: 1%, slot: 4ms}")
MISCHIEF_SHOWN = {
    "limit": 35157,
    "delay": {"delay": 0.005, "jitter": 0, "correlation": 0},
    "loss-gemodel": {"p": 0.00255103, "r": 0.125, "1-h": 1, "1-k": 0},
    "duplicate": {"duplicate": 0.03, "correlation": 0},
    "reorder": {"reorder": 0.1, "correlation": 0},
    "corrupt": {"corrupt": 0.01, "correlation": 0},
    "slot": {"min-delay": 0.004, "max-delay": 0.004, "packets": 0, "bytes": 0},
    "seed": SEED,
    "ecn": False,
    "gap": 1,
}


def test_all_that_a_link_does_to_packets_is_asked_of_netem() -> None:
    (netem,) = (line for line in commands(MISCHIEF, 5.0) if " netem " in line)
    assert netem == (
        "tc qdisc replace dev ifb-eth1 root netem delay 0.001us rate 0bit loss gemodel 0.2551020% 12.5000000%"
        " 100.0000000% 0.0000000% reorder 10.0000000% duplicate 3.0000000% corrupt 1.0000000%"
        f" slot 4000.000us 4000.000us limit 35157 seed {SEED}"
    )
    assert any("0x0806" in line and line.endswith("action ok") for line in commands(MISCHIEF))


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        ({}, []),
        ({"loss-gemodel": {"p": 0.02, "r": 0.5}}, ["loss is 3.846153846 %", "burst is 2 packets, should be 8 packets"]),
        ({"loss-gemodel": None, "loss-random": {"loss": 0.02}}, ["burst is 0 packets, should be 8 packets"]),
        ({"reorder": {}}, ["reorder is 0 %, should be 10 %"]),
        (
            {"gap": 0},
            ["reorder is 0 %, should be 10 %"],
        ),  # what it was before a change: without a gap nothing overtakes
        ({"duplicate": {"duplicate": 0.04}}, ["duplicate is 4 %, should be 3 %"]),
        ({"corrupt": {"corrupt": 0.02}}, ["corrupt is 2 %, should be 1 %"]),
        ({"slot": {"min-delay": 0.001}}, ["slot is 1 ms, should be 4 ms"]),
    ],
)
def test_what_netem_shows_of_it_is_read_back(options: dict[str, object], sentences: list[str]) -> None:
    plain = {"kind": "pfifo", "dev": "eth1", "root": True, "options": {"limit": 1000}}
    netem = changed({**NETEM, "options": MISCHIEF_SHOWN}, **options)
    found = shaping.differences(MISCHIEF, json.dumps([CLSACT, plain, netem]))
    assert len(found) == len(sentences)
    assert all(sentence in text for sentence, text in zip(sentences, found, strict=True))


VARIED = port("{delay: 10ms, jitter: {sd: 2ms, distribution: pareto, correlation: 25%, order: free}}")


def test_how_a_delay_varies_is_asked_of_netem() -> None:
    (netem,) = (line for line in commands(VARIED) if " netem " in line)
    assert "delay 10000.000us 2000.000us 25.0000000% distribution pareto rate 0bit corrupt" in netem
    uniform = port("{delay: 10ms, jitter: {sd: 1ms, correlation: 50%}}")
    (netem,) = (line for line in commands(uniform) if " netem " in line)
    assert "delay 10000.000us 1732.051us 50.0000000% rate 100tbit corrupt" in netem


def test_netem_forgets_a_table_only_if_it_is_new() -> None:
    """Where it is changed to an even jitter, and not where it is changed from one."""
    uniform = port("{delay: 10ms, jitter: 1ms}")
    new = "qdisc replace dev ifb-eth1 root pfifo"
    assert new not in shaping.changes([uniform], 0.0)
    first, *others = shaping.changes([uniform], 0.0, shaping.Arrivals(anew={"eth1"})).splitlines()
    assert first == new
    assert any("qdisc replace dev ifb-eth1 root netem" in line for line in others)
    even, pareto, none = (each.incoming for each in (uniform, VARIED, PLAIN))
    assert shaping.keeps_a_table(pareto, even)
    assert shaping.keeps_a_table(None, even)
    assert not any(shaping.keeps_a_table(*each) for each in ((even, even), (even, pareto), (pareto, none)))


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        ({}, []),
        ({"delay": {"delay": 0.01, "jitter": 0.002, "correlation": 0}}, ["jitter.correlation is 0 %, should be 25 %"]),
        ({"rate": {"rate": 12_500_000_000_000}}, ["jitter.order is kept, should be free"]),
    ],
)
def test_what_netem_shows_of_how_a_delay_varies_is_read_back(options: dict[str, object], sentences: list[str]) -> None:
    delay = {"delay": 0.01, "jitter": 0.002, "correlation": 0.25}
    held = {"limit": VARIED.incoming.delay_packets, "delay": delay, "seed": VARIED.incoming.seed}
    plain = {"kind": "pfifo", "dev": "eth1", "root": True, "options": {"limit": 1000}}
    netem = changed({**NETEM, "options": held}, **options)
    found = shaping.differences(VARIED, json.dumps([CLSACT, plain, netem]))
    assert found == [f"eth1: {sentence}" for sentence in sentences]


THROTTLED = port("{rate: {mean: 100mbit, burst: 1MB}}")
POLICED = port("{delay: 5ms, rate: {mean: 100mbit, burst: 1MB, excess: drop}}")
HOLED = port("{rate: 100mbit, blackhole: 1400B}")


def test_a_credit_is_the_burst_of_the_rate() -> None:
    tbf = f"tbf rate 100000000bit burst 1000000 limit {THROTTLED.outgoing.queue_bytes}"
    assert f"tc qdisc replace dev eth1 root handle 2: {tbf}" in commands(THROTTLED)
    assert "netem" not in "".join(commands(THROTTLED))
    shown = {**TBF, "options": {"rate": 12_500_000, "burst": 1_000_000, "limit": THROTTLED.outgoing.queue_bytes}}
    assert shaping.differences(THROTTLED, json.dumps([shown])) == []
    less = changed(shown, burst=50_000)
    assert shaping.differences(THROTTLED, json.dumps([less])) == ["eth1: burst is 50000 bytes, should be 1000000 bytes"]


PEAKED = port("{rate: {mean: 100mbit, burst: 1MB, peak: 200mbit}}")


def test_a_peak_is_the_second_bucket_of_the_rate() -> None:
    tbf = f"tbf rate 100000000bit burst 1000000 peakrate 200000000bit mtu 100000 limit {PEAKED.outgoing.queue_bytes}"
    assert f"tc qdisc replace dev eth1 root handle 2: {tbf}" in commands(PEAKED)
    limit = PEAKED.outgoing.queue_bytes or 0
    # tc shows the longer time of the two buckets: here of the peak, 200 Mbit/s, as the burst is larger than the queue.
    options = {"rate": 12_500_000, "burst": 1_000_000, "minburst": 100_000, "lat": (limit - 100_000) / 25}
    shown = {**TBF, "options": options}
    assert shaping.differences(PEAKED, json.dumps([shown])) == []
    slower, none = changed(shown, minburst=50_000), changed(shown, lat=None, limit=limit)
    del none["options"]["minburst"], none["options"]["lat"]  # type: ignore[attr-defined]
    assert "eth1: the peak's burst is 50000 bytes, should be 100000 bytes" in shaping.differences(
        PEAKED, json.dumps([slower])
    )
    assert shaping.differences(PEAKED, json.dumps([none])) == [
        "eth1: the peak's burst is 0 bytes, should be 100000 bytes"
    ]


def test_a_peak_in_front_of_a_wire_lets_one_frame_pass() -> None:
    queued = port("{rate: {mean: 100mbit, burst: 1MB, peak: 200mbit}, queue: {discipline: fq}}")
    assert "peakrate 200000000bit mtu 1618 limit" in shaping.script([wire.unshaped_port(queued)], carried=True)


@pytest.mark.parametrize(
    ("dropping", "action"),
    [
        (POLICED, "action police rate 100000000bit burst 1000000 overhead 14 mtu 65535 conform-exceed drop/pipe"),
        (HOLED, "action police mtu 1414 conform-exceed drop/pipe"),
    ],
)
def test_what_exceeds_a_rate_or_a_size_is_dropped_where_it_arrives(dropping: HostPort, action: str) -> None:
    *_, last = commands(dropping)
    assert last.endswith(f"match u32 0 0 {action} action mirred egress redirect dev ifb-eth1")


def test_a_policer_has_no_queue_at_the_sender() -> None:
    assert "tc qdisc replace dev eth1 root pfifo limit 1000" in commands(POLICED)
    assert any("root handle 2: tbf rate 100000000bit" in line for line in commands(HOLED))


def test_script_of_a_shaped_port() -> None:
    assert commands(SHAPED) == [
        "ethtool -K eth1 gro off",
        "added=",
        """[ -e /sys/class/net/ifb-eth1 ] || added="$added"'link add ifb-eth1 type ifb""",
        "'",
        '[ -z "$added" ] || ip -batch - <<END',
        "$added",
        "END",
        "[ ! -e /proc/sys/net/ipv6/conf/ifb-eth1/disable_ipv6 ]"
        " || echo 1 >/proc/sys/net/ipv6/conf/ifb-eth1/disable_ipv6",
        "ip -batch - <<'END'",
        "link set dev ifb-eth1 up",
        "END",
        "tc qdisc replace dev eth1 root handle 2: tbf rate 50000000bit burst 25000 limit 260938",
        "tc qdisc replace dev ifb-eth1 root netem delay 10875.000us 1000.000us 0.0000000% rate 100tbit"
        f" loss random 0.1000000% corrupt 0.0000000% slot 0.000us 0.000us limit 2906 seed {SEED}",
        "tc qdisc replace dev eth1 clsact",
        "tc filter replace dev eth1 ingress pref 1 handle 800::1 protocol all u32 match u16 0x0806 0xffff at -2"
        " action ok",
        "tc filter replace dev eth1 ingress pref 1 handle 800::2 protocol all u32 match u32 0 0"
        " action mirred egress redirect dev ifb-eth1",
    ]


@pytest.mark.parametrize("loss_percent", [0.0, 100.0])
def test_arp_is_held_up_as_all_else_unless_the_link_loses_some(loss_percent: float) -> None:
    incoming = SHAPED.incoming.model_copy(update={"loss_percent": loss_percent})
    arp = commands(SHAPED.model_copy(update={"incoming": incoming}))[-2]
    assert arp.endswith("match u16 0x0806 0xffff at -2 action mirred egress redirect dev ifb-eth1")


def test_an_unshaped_port_has_a_plain_queue_and_no_redirect() -> None:
    assert commands(PLAIN) == [
        "ethtool -K eth1 gro off",
        "tc qdisc replace dev eth1 root pfifo limit 1000",
        "tc qdisc replace dev eth1 clsact",
        "tc qdisc del dev eth1 clsact",
    ]


def test_script_of_several_ports_holds_each_one_s_commands_and_starts_tc_once() -> None:
    head, batch = shaping.script([SHAPED, PLAIN]).split("tc -batch - <<'END'\n")
    together = [*head.splitlines(), *(f"tc {line}" for line in batch.splitlines()[:-1])]
    assert sorted(together) == sorted([*commands(SHAPED), *commands(PLAIN)])


def test_delays_alone_are_set_again_and_everything_is_shown() -> None:
    batch = shaping.delays_again([SHAPED, PLAIN], 0.12).splitlines()
    delay = next(command for command in commands(SHAPED, 0.12) if "netem" in command)
    assert batch == [delay.removeprefix("tc "), "qdisc show"]


def test_each_direction_of_each_link_has_random_numbers_of_its_own_and_the_file_s_seed_changes_all() -> None:
    def seeds(top: str) -> list[int | None]:
        plan = parse(f"name: x\n{top}chain: {{hosts: 3, link: {{rtt: 1ms, loss: 1%}}}}\n", "f.yaml")
        return [port.incoming.seed for host in plan.hosts for port in host.ports]

    first, again, other = seeds(""), seeds("seed: 0\n"), seeds("seed: 1\n")
    assert first == again
    assert len({*first, *other}) == 8
    assert None not in first
    assert PLAIN.incoming.seed is None


def test_a_kernel_without_seeds_is_no_difference() -> None:
    options = NETEM["options"]
    assert isinstance(options, dict)
    old = {**NETEM, "options": {key: value for key, value in options.items() if key != "seed"}}
    assert shaping.differences(SHAPED, json.dumps([TBF, CLSACT, old])) == []
    assert shaping.differences(SHAPED, json.dumps([TBF, CLSACT, changed(NETEM, seed=7)])) == [
        f"eth1: seed is 7, should be {SEED}"
    ]


def test_script_of_no_ports_is_empty() -> None:
    assert shaping.script([]) == ""


@pytest.mark.parametrize(("overhead_ms", "delay"), [(0.0, "10875.000us"), (0.12, "10755.000us"), (99.0, "0.000us")])
def test_emulator_overhead_is_taken_off_and_never_below_nothing(overhead_ms: float, delay: str) -> None:
    netem = next(command for command in commands(SHAPED, overhead_ms) if "netem" in command).split()
    assert netem[netem.index("delay") + 1] == delay


@pytest.mark.parametrize(
    ("rate", "mtu", "queue", "burst"),
    [
        (50.0, 1500, 260_000, 25_000),
        (1.0, 1500, 64_000, 15_140),
        (1000.0, 1500, 2_500_000, 500_000),
        (50.0, 1500, 9_000, 9_000),
    ],
)
def test_burst_covers_a_late_timer_within_the_queue(rate: float, mtu: int, queue: int, burst: int) -> None:
    assert shaping.burst_bytes(rate, mtu, queue) == burst


def test_read_back_of_what_was_set() -> None:
    found = shaping.read_back(SHAPED, json.dumps([TBF, CLSACT, NETEM]))
    of_netem = {
        "delay_ms": 10.875,
        "jitter_ms": 1.0,
        **ORDERED,
        **UNBROKEN,
        "loss_percent": 0.1,
        "burst_packets": 0.0,
        "slot_ms": 0.0,
        **NOT_SHOWN,
    }
    of_netem |= dict.fromkeys(("reorder_percent", "duplicate_percent", "corrupt_percent"), 0.0)
    queue = {**dict.fromkeys((*disciplines.OPTIONS, *SIZES)), "queue_discipline": "fifo"}
    settings = {**queue, "rate_mbit": 50.0, "queue_bytes": 260_938, **of_netem}
    assert found == shaping.ReadBack(settings, 25_000, redirected=True, delay_packets=2906, seed=SEED)
    assert shaping.differences(SHAPED, json.dumps([TBF, CLSACT, NETEM])) == []


def test_rounding_by_tc_is_no_difference() -> None:
    qdiscs = [
        changed(TBF, burst=24_997, lat=37_751),
        CLSACT,
        changed(NETEM, delay={"delay": 0.010874976, "jitter": 0.000999936}, **{"loss-random": {"loss": 0.0009999999}}),
    ]
    assert shaping.differences(SHAPED, json.dumps(qdiscs)) == []


def test_emulator_overhead_is_expected_when_reading_back() -> None:
    assert shaping.differences(SHAPED, json.dumps([TBF, CLSACT, NETEM]), 0.12) == [
        "eth1: delay is 10.875 ms, should be 10.755 ms"
    ]


@pytest.mark.parametrize(
    ("qdiscs", "difference"),
    [
        ([CLSACT, NETEM], "rate is none, should be 50 Mbit/s"),
        ([changed(TBF, rate=1_250_000, lat=188_750), CLSACT, NETEM], "rate is 10 Mbit/s, should be 50 Mbit/s"),
        ([changed(TBF, lat=1000), CLSACT, NETEM], "queue is 31250 bytes, should be 260938 bytes"),
        ([changed(TBF, burst=1514, lat=41508), CLSACT, NETEM], "burst is 1514 bytes, should be 25000 bytes"),
        ([TBF, NETEM], "arriving frames are not redirected, so delay and loss have no effect"),
        ([TBF, CLSACT], "no netem on ifb-eth1"),
        ([TBF, CLSACT, {**NETEM, "dev": "ifb-eth2"}], "no netem on ifb-eth1"),
        ([TBF, CLSACT, changed(NETEM, limit=1000)], "delay's limit is 1000 packets, should be 2906 packets"),
        ([TBF, CLSACT, changed(NETEM, **{"loss-random": {"loss": 0.01}})], "loss is 1 %, should be 0.1 %"),
        (
            [TBF, CLSACT, changed(NETEM, delay={"delay": 0.01, "jitter": 0.001})],
            "delay is 10 ms, should be 10.875 ms",
        ),
        ([TBF, CLSACT, changed(NETEM, delay={"delay": 0.010875})], "jitter is 0 ms, should be 1 ms"),
    ],
)
def test_each_difference_is_said(qdiscs: list[object], difference: str) -> None:
    assert shaping.differences(SHAPED, json.dumps(qdiscs)) == [f"eth1: {difference}"]


def test_what_is_set_but_not_declared_is_a_difference() -> None:
    assert shaping.differences(PLAIN, json.dumps([TBF, CLSACT, NETEM])) == [
        "eth1: rate is 50 Mbit/s, should be none",
        "eth1: a queueing discipline clsact that is not the lab's: nothing is held here",
    ]
    assert shaping.differences(PLAIN, "[]") == []


def test_a_user_s_own_on_an_interface_of_a_vlan_is_found_and_taken_off() -> None:
    plan = load(Path(__file__).parents[3] / "topologies" / "vlans.yaml")
    trunk = next(port for host in plan.hosts for port in host.ports if port.tagged)
    name = f"{trunk.name}.{trunk.tagged[0].vlan}"
    none = {"kind": "noqueue", "handle": "0:", "dev": name, "root": True, "options": {}}
    before = shaping.differences(trunk, json.dumps([none]))
    netem = {**none, "kind": "netem", "handle": "8001:", "options": {"limit": 1000}}
    assert shaping.differences(trunk, json.dumps([netem])) == [
        *before,
        f"{trunk.name}: the queueing discipline on {name} is netem, should be noqueue",
    ]
    assert f"tc qdisc del dev {name} root" in shaping.removal_script([trunk])


@pytest.mark.parametrize("text", ["{", "3", '["x"]', '[{"kind":"tbf","dev":"eth1","options":{}}]', "null"])
def test_what_is_not_tc_output_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        shaping.differences(SHAPED, text)
