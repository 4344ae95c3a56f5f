"""Other tools' files: what is written is read again as it was, and what is wrong in one is said with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import foreign_writers
from minigts.cli import completion
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.formats import detect, gts_syntax, network
from minigts.formats.containerlab_commands import IPV6_ON
from minigts.formats.network import Network, NetworkLink, NetworkMachine, Ways
from minigts.topology.read.load import load, parse
from minigts.topology.to_network import network_of

PROJECT = Path(__file__).parents[3]
OURS = sorted((PROJECT / "topologies").glob("*.yaml"))
runner = CliRunner()

delays = st.integers(0, 10_000_000).map(lambda us: us / 1000)
losses = st.integers(0, 100_000).map(lambda thousandths: thousandths / 1000)
rates = st.integers(8, 100_000_000).map(lambda kbit: kbit / 1000)


def both(values: st.SearchStrategy[float], *, alike: bool) -> st.SearchStrategy[Ways | None]:
    pairs = values.map(lambda value: (value, value)) if alike else st.tuples(values, values)
    return st.none() | pairs


@st.composite
def networks(draw: st.DrawFn, kind: str) -> Network:
    """Of what that format can say."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789" + ("" if kind == "gts" else "-")
    name = st.text(letters, min_size=1, max_size=15).filter(lambda word: word[0].isalpha() and word[-1] != "-")
    size = draw(st.integers(2, 6))
    names = draw(st.lists(name, min_size=2 * size, max_size=2 * size, unique=True))
    made = []
    for each in names[:size]:
        switch = draw(st.booleans())
        sizes = (
            (None, None) if switch else draw(st.just((None, None)) | st.tuples(st.integers(1, 9), st.integers(1, 9)))
        )
        made.append(
            NetworkMachine(
                each,
                is_switch=switch,
                location=None
                if kind == "netlab"
                else draw(st.none() | st.sampled_from(["AMS", 'a "city"', "x\\y$z", "null"])),
                cpus=sizes[0],
                memory_mb=None if sizes[1] is None else sizes[1] * 1024,
                controller=draw(st.sampled_from([None, "builtin"])) if switch and kind == "gts" else None,
            )
        )
    links = []
    for number in range(draw(st.integers(0, size))):
        ends = draw(st.permutations(names[:size]))[:2]
        shaped = kind != "containerlab"
        # Names with digits would put a host's links into their order.
        called = () if kind == "gts" else draw(st.sets(st.sampled_from(ends)))
        links.append(
            NetworkLink(
                (ends[0], ends[1]),
                name=names[size + number] if shaped else None,
                delay_ms=draw(both(delays, alike=kind == "gts")) if shaped else None,
                jitter_ms=draw(both(delays, alike=False)) if kind == "netlab" else None,
                loss_percent=draw(both(losses, alike=False)) if kind == "netlab" else None,
                rate_mbit=draw(both(rates, alike=kind == "gts")) if shaped else None,
                interfaces=tuple((end, "abcdefg"[number] * 3) for end in ends if end in called),
                mtu=None if kind == "gts" else draw(st.none() | st.integers(576, 9500).filter(lambda mtu: mtu != 1500)),
                **{
                    key: draw(both(losses, alike=False)) if kind == "netlab" else None
                    for key in ("corrupt_percent", "duplicate_percent", "reorder_percent")
                },
            )
        )
    described = draw(st.text("ab \"\\$\n'{}", max_size=20)) if kind == "gts" else ""
    return Network(
        draw(name),
        tuple(made),
        tuple(links),
        description=described,
        routing="neighbours" if kind == "gts" else "routed",
        sites=kind == "gts",
    )


def without_lines(read: Network) -> Network:
    machines = tuple(replace(each, line=1) for each in read.machines)
    return replace(read, machines=machines, links=tuple(replace(each, line=1) for each in read.links), notes=())


FILES = {"gts": "t.dsl", "containerlab": "t.clab.yml", "netlab": "t.yml"}
OTHERS = {"containerlab": foreign_writers.containerlab, "netlab": foreign_writers.netlab}


@pytest.mark.parametrize("word", sorted({"this", "in", "for", "def", "adjacency"} | gts_syntax.reserved_words()))
def test_a_word_of_groovy_may_be_a_name(word: str) -> None:
    for machine, link in ((word, "between"), ("one", word)):
        machines = (NetworkMachine(machine, line=1), NetworkMachine("two", line=1))
        links = (NetworkLink((machine, "two"), line=1, name=link),)
        written = Network(machine, machines, links, routing="neighbours", sites=True)
        text = detect.WRITERS["gts"](written).text
        assert without_lines(detect.read(text, FILES["gts"])) == written, text


def _as_read(kind: str, written: Network) -> Network:
    """As it is read: in a lab in pieces no host has a route, and shares of processors exist only in real time.
    Containerlab's hosts have IPv6 on."""
    if kind == "gts":
        return written
    hosts = {machine.name for machine in written.machines if not machine.is_switch}
    apart = [piece for piece in network.pieces(written.machines, written.links) if not hosts.isdisjoint(piece)]
    shares = any(machine.cpus is not None and machine.cpus < 1 for machine in written.machines)
    on = (IPV6_ON,) if kind == "containerlab" else ()
    machines = tuple(each if each.is_switch else replace(each, run=(*on, *each.run)) for each in written.machines)
    routing, time = "neighbours" if len(apart) > 1 else "routed", "real" if shares else ""
    return replace(written, machines=machines, routing=routing, time=time)


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=60)
@given(data=st.data())
def test_what_is_written_is_read_as_it_was(kind: str, data: st.DataObject) -> None:
    written = data.draw(networks(kind))
    if kind in OTHERS:
        text = OTHERS[kind](written)
    else:
        text, notes, lost = detect.WRITERS[kind](written)
        assert not (notes or lost), (notes, lost)
    assert without_lines(detect.read(text, FILES[kind])) == _as_read(kind, written), text


@pytest.mark.parametrize("kind", [*FILES, "dot", "mermaid"])
@pytest.mark.parametrize("file", OURS, ids=lambda file: file.stem)
def test_every_topology_of_ours_can_be_written(file: Path, kind: str) -> None:
    before = network_of(load(file))
    text = OTHERS[kind](before) if kind in OTHERS else detect.WRITERS[kind](before).text
    for machine in before.machines:
        assert machine.name.replace("-", "" if kind == "gts" else "-") in text
    if kind in FILES:
        after = detect.read(text, FILES[kind])
        assert [len(after.machines), len(after.links)] == [len(before.machines), len(before.links)]
        assert [link.ends for link in after.links] == [
            tuple(end.replace("-", "" if kind == "gts" else "-") for end in link.ends) for link in before.links
        ]


def test_a_topology_of_ours_keeps_its_plan_over_netlab() -> None:
    plan = load(PROJECT / "topologies" / "chain6.yaml")
    text = foreign_writers.netlab(network_of(plan))
    again = parse(network.text(detect.read(text, "t.yml")), "t.yaml")
    assert (again.links, again.paths) == (plan.links, plan.paths)


CLAB = """\
name: srv
prefix: x
topology:
  defaults: {kind: linux}
  nodes:
    h1: {image: "alpine:3", cpu: 2, memory: 1Gb, exec: [ls]}
    h2:
    br: {kind: bridge}
  links:
    - endpoints: ["h1:eth1", "br:eth1"]
    - {type: veth, endpoints: [{node: h2, interface: eth1}, {node: br, interface: eth2}], mtu: 1400}
"""
NETLAB = """\
name: lan
defaults.device: linux
nodes: [h-1, h2, {name: h3, memory: 256}]
links:
  - h-1-h2
  - [h-1, h2, h3]
  - {h2: , h3: {tc: {loss: 1}}, bandwidth: 10000, tc: {delay: 5ms}}
"""
GRAPHML = """\
<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d0" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d2" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3" />
  <key attr.name="Network" attr.type="string" for="graph" id="d4" />
  <graph edgedefault="undirected">
    <data key="d4">Small &amp; Net</data>
    <node id="0"><data key="d0">Wien</data><data key="d1">48.20849</data><data key="d2">16.37208</data></node>
    <node id="1"><data key="d0">Praha</data><data key="d1">50.08804</data><data key="d2">14.42076</data></node>
    <node id="2"><data key="d0">Nowhere</data></node>
    <edge source="0" target="1"><data key="d3">1000000000.0</data></edge>
    <edge source="1" target="2" />
  </graph>
</graphml>
"""


def test_containerlab() -> None:
    read = detect.read(CLAB, "t.clab.yml")
    assert [(each.name, each.is_switch, each.cpus, each.memory_mb) for each in read.machines] == [
        ("h1", False, 2, 1024),
        ("h2", False, None, None),
        ("br", True, None, None),
    ]
    assert [(link.ends, link.mtu) for link in read.links] == [(("h1", "br"), None), (("h2", "br"), 1400)]
    assert any(note.startswith("image of h1") for note in read.notes)


def test_netlab() -> None:
    read = detect.read(NETLAB, "t.yml")
    assert [(each.name, each.is_switch) for each in read.machines] == [
        ("h-1", False),
        ("h2", False),
        ("h3", False),
        ("lan1", True),
    ]
    assert [link.ends for link in read.links][:4] == [("h-1", "h2"), ("h-1", "lan1"), ("h2", "lan1"), ("h3", "lan1")]
    last = read.links[4]
    assert (last.delay_ms, last.rate_mbit, last.loss_percent) == ((5, 5), (10, 10), (0, 1))


def test_topology_zoo() -> None:
    read = detect.read(GRAPHML, "t.graphml")
    assert read.name == "small-net"
    assert [each.name for each in read.machines] == ["wien", "praha", "nowhere"]
    there, _ = read.links[0].delay_ms or (0, 0)
    assert 2.1 < there < 2.3  # 251 km x 1.8 at 204 km/ms
    assert (read.links[0].rate_mbit, read.links[1].delay_ms) == ((1000, 1000), None)
    assert parse(network.text(read), "t.yaml").hosts[0].location == "Wien"


GML = """\
Creator "Topology Zoo Toolset"
Version "1.0"
# Network "no"
graph [
  multigraph 1
  Network "Small &amp; Net"
  node [ id 0 label "Wien" Latitude 48.20849 Longitude 16.37208 graphics [ x 1 y [ source 2 ] ] ]
  node [ id 1
    label "Praha" Latitude 50.08804 Longitude 14.42076 ]
  node [ id 2 label "Nowhere" ]
  edge [ source 0 target 1 LinkSpeedRaw 1000000000.0 key 0 ]
  edge [ source 1 target 2 ]
]
"""


def test_gml_gives_the_network_of_the_same_graph_in_graphml() -> None:
    """But for the lines of the file, and notes on other keys."""
    one, other = detect.read(GML, "t.gml"), detect.read(GRAPHML, "t.graphml")
    assert network.text(replace(one, notes=())) == network.text(replace(other, notes=()))
    assert [link.line for link in one.links] == [11, 12]


@pytest.mark.parametrize(
    ("text", "file", "message"),
    [
        (GML.replace("target 2", "target 7"), "t.gml", r"t\.gml:12: an edge to '7', and there is no such node"),
        (GML.replace("target 2 ]\n]", "target 2 ]"), "t.gml", r"t\.gml:4: a list that begins here has no end"),
        (GML.replace('"Nowhere"', '"Nowhere'), "t.gml", r"t\.gml:10: a text that begins here has no end"),
        (GML.replace("id 2", "id"), "t.gml", r"t\.gml:10: '.Nowhere.' where a key is wanted"),
        (GML.replace("id 2 ", "id 2 mark "), "t.gml", r"t\.gml:10: '.Nowhere.' where a key is wanted"),
        (GML.replace("graph [", "graph []\ngraph ["), "t.gml", r"t\.gml:5: a second graph"),
        (
            GML.replace("key 0", "latency 20"),
            "t.gml",
            r"t\.gml:11: the key 'latency' of 'wien-praha' cannot be honoured",
        ),
        (GML.replace("multigraph", "directed"), "t.gml", r"t\.gml:4: direction of 'its edges' cannot be honoured"),
        ("a 1 ]", "t.gml", r"t\.gml:1: '\]' where a key is wanted"),
        ("x " + "[ a " * 1000, "t.gml", r"t\.gml:1: lists in lists, more than 20 deep"),
        ('graph "x"', "t.gml", r"t\.gml:1: a graph is a list"),
        ("hosts: {a: }", "t.gml", r"t\.gml:1: 'hosts:' where a key is wanted"),
        ("", "t.gml", r"t\.gml:1: no GML: it has no `graph \[`"),
        (
            CLAB.replace("br: {kind: bridge}", "br: {kind: ceos}"),
            "t.yml",
            r"t\.yml:8: topology\.nodes\.br: kind 'ceos'",
        ),
        (CLAB.replace('"h1:eth1"', '"h9:eth1"'), "t.yml", r"t\.yml:10: topology\.links\[0\]\.endpoints: no node 'h9'"),
        (CLAB.replace("type: veth", "type: host"), "t.yml", r"t\.yml:11: .*it leads to an interface of the machine"),
        (NETLAB.replace("linux", "iosv"), "t.yml", r"t\.yml:3: nodes\[0\]: device 'iosv'"),
        (NETLAB.replace("5ms", "5 parsecs"), "t.yml", r"t\.yml:7: links\[2\]\.tc\.delay: "),
        (NETLAB.replace("h-1-h2", "h-1-h9"), "t.yml", r"t\.yml:5: links\[0\]: no node 'h9'"),
        ("a: b\n", "t.yml", r"t\.yml:1: neither containerlab's nor netlab's"),
        (GRAPHML.replace('target="2"', 'target="7"'), "t.graphml", r"t\.graphml:14: an edge to '7'"),
        (GRAPHML.replace("</graph>", ""), "t.graphml", r"t\.graphml:\d+: not XML: mismatched tag"),
        (f"<!DOCTYPE g [<!ENTITY a 'b'>]>{GRAPHML[39:]}", "t.graphml", r"t\.graphml:1: a DOCTYPE"),
        ("", "t.pdf", r"t\.pdf: no format is known by the ending '\.pdf'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, file: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        detect.read(text, file)


def test_mermaid_and_dot_hide_what_they_would_read_as_their_own() -> None:
    odd = Network(
        "end",
        (NetworkMachine("end", location='<b>"x"'), NetworkMachine("b")),
        (NetworkLink(("end", "b"), delay_ms=(1, 1)),),
    )
    assert detect.WRITERS["mermaid"](odd).text == (
        'graph LR\n  n0("end<br/>#lt;b#gt;#quot;x#quot;")\n  n1("b")\n  n0 ---|"2 ms"| n1\n'
    )
    assert '"end" [label="end\\n<b>\\"x\\""];' in detect.WRITERS["dot"](odd).text


@pytest.mark.parametrize("kind", completion.formats())
def test_the_verb_writes_each_format(kind: str) -> None:
    done = runner.invoke(app, ["export", str(PROJECT / "topologies" / "pair.yaml"), "--as", kind, "--leave-out"])
    assert done.exit_code == 0
    assert "ams" in done.stdout


@pytest.mark.parametrize("kind", ["visio", "containerlab", "netlab"])
def test_the_verb_refuses_another(kind: str) -> None:
    done = runner.invoke(app, ["export", str(PROJECT / "topologies" / "pair.yaml"), "--as", kind])
    assert done.exit_code == 2
    assert f"no format '{kind}'" in done.stderr


def test_completion_knows_every_format() -> None:
    assert completion.formats() == [*detect.WRITERS]
