"""GTS's own language: its dialects, its Groovy, and what is said of a file that is wrong."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments.prepare import prepare
from minigts.formats import gts, network
from minigts.results.schema import TOPOLOGY
from minigts.topology.read.load import load, parse

PROJECT = Path(__file__).parents[3]
EXAMPLES = sorted((PROJECT / "topologies" / "gts").iterdir())
PAIR = """\
Pair {
  host { id="h1" location="AMS" port { id="p1" } }
  host { id="h2" location="BRA" port { id="p1" } }
  link { id="l1" port { id="src" } port { id="dst" } }
  adjacency h1.p1, l1.src
  adjacency h2.p1, l1.dst
}
"""
runner = CliRunner()


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as refused:
        parse(text, "t.dsl")
    return [str(problem).removeprefix("t.dsl:").strip() for problem in refused.value.problems]


def changed(*changes: tuple[str, str]) -> str:
    text = PAIR
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_each_dialect_has_a_plan_and_its_import_has_the_same(file: Path) -> None:
    plan = load(file)
    imported = parse(network.text(gts.read(file.read_text(), file.name)), "imported.yaml")
    assert imported == plan.model_copy(update={"notes": ()})


def test_a_pair() -> None:
    plan = parse(PAIR, "t.dsl")
    assert plan.name == "pair"
    assert plan.routing == "neighbours"
    assert [(host.name, host.location) for host in plan.hosts] == [("h1", "AMS"), ("h2", "BRA")]
    assert [(link.name, link.ends, link.rtt_ms, link.delay_from) for link in plan.links] == [
        ("l1", ("h1", "h2"), 17.7, "measured")
    ]
    assert plan.notes == ()


def test_switches_flavours_and_notes() -> None:
    plan = load(PROJECT / "topologies" / "gts" / "flavours.gts")
    assert (plan.hosts[0].cpus, plan.hosts[0].memory_mb) == (2, 2048)
    assert plan.switches[0].controller == "127.0.0.1:6653"
    assert [link.rate_mbit for link in plan.links] == [100, 50]
    assert [link.delay_from for link in plan.links] == ["same site", "file"]
    assert sum("imageId of vm1, bms1" in note for note in plan.notes) == 1


def test_a_controller_is_the_host_behind_the_control_port() -> None:
    read = gts.read((PROJECT / "topologies" / "gts" / "openflow.dsl").read_text(), "t.dsl")
    assert {each.name: each.controller for each in read.machines if each.is_switch} == {
        "ofxams": "controller:6633",
        "ofxlju": "controller:6633",
    }
    assert [link.name for link in read.links] == ["l1", "l2", "l3", "lc1"]


@pytest.mark.parametrize(
    ("written", "mbit"),
    [
        ("100", 100),
        ('"100"', 100),
        ("1000000000", 1000),
        ('"10gbit"', 10_000),
        ('"64 kbps"', 0.064),
        ('"2.5Mbit/s"', 2.5),
        ("20 * 5", 100),
    ],
)
def test_rates(written: str, mbit: float) -> None:
    text = changed(('id="l1"', f'id="l1" capacity={written}'))
    assert parse(text, "t.dsl").links[0].rate_mbit == mbit


def test_the_slowest_of_a_link_and_its_four_ports_holds() -> None:
    text = changed(('id="l1"', 'id="l1" capacity=100'), ('port { id="p1" }', 'port { id="p1" lineRate="10mbit" }'))
    assert [link.rate_mbit for link in parse(text, "t.dsl").links] == [10]


def test_ids_are_told_apart_without_regard_to_case() -> None:
    text = changed(('id="h1"', 'id="H1"'), ("h2.p1", "H2.P1"))
    assert [host.name for host in parse(text, "t.dsl").hosts] == ["h1", "h2"]


GROOVY = """\
type Many {
  def sites = ["AMS", 'BRA']   // a comment
  String word = "h"
  int n = 2 * 2 - 1
  /* and
     another */
  for (int i = 0; i < n; i++) {
    host { id = word + (i + 1); location = sites[i % sites.size()]; port { id="p1" } port { id="p2" } }
  }
  for (i in 1..<n) { link { id="l$i" port { id="src" } port { id="dst" } } }
  (n - 1).times {
    adjacency "h${it + 1}.p2", "l${it + 1}.src"
    adjacency this."h${it + 2}".p1, "l${it + 1}.dst"
  }
  ["x"].each { word2 -> description = '$word' + "\\$" + word2 }
}
"""


def test_groovy_that_means_the_same_each_time_is_read() -> None:
    plan = parse(GROOVY, "t.gts")
    assert [(host.name, host.location) for host in plan.hosts] == [("h1", "AMS"), ("h2", "BRA"), ("h3", "AMS")]
    assert [link.ends for link in plan.links] == [("h1", "h2"), ("h2", "h3")]
    assert plan.description == "$word$x"


WRONG = {
    "twice": (
        changed(('id="h2"', 'id="H1"')),
        ["3: the id 'H1' is given twice, first on line 2", "6: adjacency to 'h2.p1': no host, switch or link 'h2'"],
    ),
    "dangling": (
        changed(("h2.p1, ", "h2.p7, ")),
        ["6: adjacency to 'h2.p7': h2 (line 3) has no port 'p7'; its ports are p1"],
    ),
    "joined twice": (
        changed(("h2.p1, l1.dst", "h2.p1, l1.src")),
        [
            "4: link l1: no adjacency for its port 'dst' (line 4): it leads nowhere",
            "6: port l1.src (line 4) is joined twice, first on line 5",
        ],
    ),
    "loose": (
        changed(("  adjacency h2.p1, l1.dst\n", "")),
        ["4: link l1: no adjacency for its port 'dst' (line 4): it leads nowhere"],
    ),
    "two machines": (changed(("h2.p1, l1.dst", "h1.p1, h2.p1")), ["6: joins h1.p1 and h2.p1, two machines' ports"]),
    "to itself": (
        changed(('port { id="p1" } }', 'port { id="p1" } port { id="p2" } }'), ("h2.p1,", "h1.p2,")),
        ["4: link l1 joins h1 to itself, on lines 5 and 6"],
    ),
    "attribute twice": (
        changed(('location="AMS"', 'location="AMS"\n location="BRA"')),
        ["3: 'location' is given twice, first on line 2"],
    ),
    "port twice": (
        changed(('port { id="p1" }', 'port { id="p1" } port { id="P1" }')),
        ["2: h1 has the port 'P1' twice, first on line 2"],
    ),
    "mistyped": (
        changed(("location", "locaton")),
        ["2: h1 has no 'locaton'; did you mean 'location'?"],
    ),
    "no site": (changed(("AMS", "AMX")), ["2: hosts.h1.location: no site 'AMX'; sites are AMS, BRA"]),
    "kind": (changed(("host {", "hots {")), ["2: no kind of resource 'hots'; did you mean 'host'?"]),
    "outside": (
        changed(("host {", "externalDomain {")),
        [
            "2: 'externalDomain': nothing outside the lab can be linked; remove it, and the links that lead there; "
            "a host gets a way out by `gateway: true`"
        ],
    ),
    "id": (changed(('id="h1"', 'id="1h"')), ["2: '1h' is not an id: letters and digits"]),
    "no id": (changed(('id="h1" ', "")), ["2: this host has no id"]),
    "rate": (changed(('id="l1"', 'id="l1" capacity="fast"')), ["4: 'fast' is not a rate"]),
    "delay": (changed(('id="l1"', 'id="l1" delay=10')), ["4: delay: '10' lacks its unit"]),
    "flavour": (changed(('id="h1"', 'id="h1" flavorId="huge"')), ["2: 'huge' is not a flavour"]),
    "ports": (changed((' port { id="dst" }', "")), ["4: link l1 has 1 ports; a link has two"]),
    "brace": (PAIR.rstrip()[:-1], ["6: the file ends, and the block that begins on line 1 has no }"]),
    "text": (changed(('"AMS"', '"AMS')), ["2: a text that has no end in its line"]),
    "several": (
        changed(('id="h1"', 'id=="h1"'), ('id="l1"', "id=")),
        ["2: '=' cannot stand behind '='", "4: '{' cannot stand behind 'port'"],
    ),
    "condition": (changed(("  link", "  if (true) { }\n  link")), ["4: 'if' is Groovy, a condition"]),
    "class": (changed(("Pair {", "import java.io.File\nPair {")), ["1: 'import' is Groovy, other people's code"]),
    "variable": (changed(('location="AMS"', "location=AMS")), ["2: no variable 'AMS'; a text is written \"AMS\""]),
    "set again": (changed(("Pair {", "Pair { def n = 1\n n = 2")), ["2: the variable 'n' is set again"]),
    "method": (
        changed(('location="AMS"', 'location="AMS".reverse()')),
        ["2: 'reverse'() is Groovy that cannot be read"],
    ),
    "second": (PAIR + PAIR, ["8: a second topology begins here, the first on line 1"]),
    "nothing": ("// nothing\n", ["nothing in it"]),
    "deep": ("A {" + "a {" * 40, ["1: brackets in brackets, more than 30 deep"]),
    "endless": (
        "A { (1..999).each { (1..999).each { (1..999).each { x -> } } } }",
        ["1: its loops come to more than 20000 statements"],
    ),
    "long": ("A { def a = 1..9999999 }", ["1: from '1' to '9999999': not up to 1000 whole numbers"]),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_with_its_line(text: str, expected: list[str]) -> None:
    found = problems(text)
    for message in expected:
        assert any(line.startswith(message) for line in found), found
    assert len(found) == len(expected) or len(found) <= len(expected) + 1, found


@pytest.mark.parametrize(
    "text",
    [
        "A {" + ' x="' + "a" * 49_000 + '"}',
        "A {" + "x=1 " * 12_000 + "}",
        "A {" + "\nx y" * 12_000 + "}",
        "A {\n" + 'host { id="h" }\n' * 3_000 + "}",
        "A { x=1" + "+1" * 24_000 + "}",
        "A { x=" + "-" * 48_000 + "1 }",
        "A { x=a" + "[0]" * 16_000 + " }",
        "A { (1..99).each { a -> (1..99).each { b -> x = \"${a}${b}\" + 'y' * 9 } } }",
        "A { def a = 'aaaaaaaaaa'\n" + "".join(f"def a{n} = a{n - 1 or ''} * 9\n" for n in range(1, 900)) + "}",
        "A /*" + "*" * 49_000,
        "A '''" + "'" * 49_000,
        "A { " + "/* */" * 9_000,
    ],
    ids=range(12),
)
def test_no_file_takes_over_a_second(text: str) -> None:
    problems("A { }")  # the grammar is read once
    began = time.process_time()
    assert problems(text)
    assert time.process_time() - began < 1.0


def test_a_location_that_cannot_be_shown_is_shown_otherwise() -> None:
    text = (
        'A { host { id="h1" location="\u2028" port {id="p"} } host { id="h2" location="AMS" port {id="p"} } '
        'link { id="l" delay="1ms" port {id="a"} port {id="b"} } adjacency h1.p, l.a adjacency h2.p, l.b }'
    )
    assert parse(text, "a.dsl").hosts[0].location == "\ufffd"


def test_import_prints_a_topology_and_says_once_what_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "pair.dsl"
    file.write_text(changed(('id="h1"', 'id="h1" imageId="x"'), ('id="h2"', 'id="h2" imageId="y"')))
    done = runner.invoke(app, ["import", str(file)])
    assert done.exit_code == 0
    assert parse(done.stdout, "t.yaml").links[0].rtt_ms == 17.7
    assert done.stderr.count("imageId of h1, h2") == 1


def test_import_writes_a_file_and_leaves_one_alone(tmp_path: Path) -> None:
    file, into = tmp_path / "pair.dsl", tmp_path / "pair.yaml"
    file.write_text(PAIR)
    assert runner.invoke(app, ["import", str(file), "-o", str(into)]).exit_code == 0
    before = into.read_bytes()
    again = runner.invoke(app, ["import", str(file), "-o", str(into)])
    assert (again.exit_code, into.read_bytes()) == (2, before)


def test_an_experiment_on_a_gts_file_keeps_it_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "pair.dsl").write_text(PAIR)
    (tmp_path / "e.yaml").write_text(
        f"name: e\ntopology: {tmp_path / 'pair.dsl'}\ntitle: T\noverlays: [none]\nrepetitions: 1\nseed: 1\n"
        "measurements: [{name: rtt, tool: ping, paths: [each-segment]}]\n"
    )
    prepared = prepare(tmp_path / "e.yaml", paper=False, quick=False, only=())
    kept = prepared.sources[TOPOLOGY].decode()
    assert parse(kept, "topology.yaml", time="virtual") == prepared.plan
    assert prepared.topology_sha256 == hashlib.sha256(kept.encode()).hexdigest()


@pytest.mark.parametrize("verb", ["plan", "import"])
def test_a_bad_file_is_exit_code_2(tmp_path: Path, verb: str) -> None:
    file = tmp_path / "bad.gts"
    file.write_text("Pair { host }")
    done = runner.invoke(app, [verb, str(file)])
    assert done.exit_code == 2
    assert f"{file}:1: " in done.stderr


@pytest.mark.parametrize(("wrong", "said"), [(1, 1), (19, 19), (20, 20), (40, 20)])
def test_of_very_many_problems_the_first_twenty_are_said(wrong: int, said: int) -> None:
    hosts = "".join(f'  host {{ id="w {number}" }}\n' for number in range(wrong))
    assert len(problems(PAIR.replace("Pair {\n", f"Pair {{\n{hosts}"))) == said
