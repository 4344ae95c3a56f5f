"""What other tools' YAML has and ours has not: anchors, nodes made by groups, mounted files; and TopoHub's GML."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.formats import detect, network
from minigts.formats.geography import Site, distance_km, fibre_ms
from minigts.formats.network import Network
from minigts.topology.read.load import load, parse, require_fit

ANCHORS = """\
name: anchor
topology:
  nodes:
    r1: &r {kind: linux, image: "alpine:3", exec: ["ip link set eth1 up"]}
    r2: *r
    r3: {<<: *r, memory: 512Mb, exec: [hostname]}
  links: [{endpoints: ["r1:eth1", "r2:eth1"]}, {endpoints: ["r2:eth2", "r3:eth1"]}]
"""
IPV6_ON = "sysctl -qw net.ipv6.conf.all.disable_ipv6=0"


def clab(text: str, *, leave_out: bool = False) -> Network:
    return detect.read(text, "t.clab.yml", leave_out=leave_out)


def run_of(read: Network) -> dict[str, tuple[str, ...]]:
    return {machine.name: machine.run for machine in read.machines}


def test_an_alias_is_what_its_anchor_marks_and_a_merge_what_is_not_given_beside_it() -> None:
    read = clab(ANCHORS)
    assert run_of(read) == {
        "r1": (IPV6_ON, "ip link set eth1 up"),
        "r2": (IPV6_ON, "ip link set eth1 up"),
        "r3": (IPV6_ON, "hostname"),
    }
    assert read.machines[2].memory_mb == 512


def test_a_merge_of_several_mappings_takes_the_first_that_has_a_key() -> None:
    text = (
        "name: m\ntopology:\n  kinds: {linux: &a {memory: 300Mb}, bridge: &b {memory: 400Mb, cpu: 2}}\n"
        "  nodes:\n    x: {kind: linux, <<: [*a, *b]}\n    y: {kind: linux}\n"
        '  links: [{endpoints: ["x:eth1", "y:eth1"]}]\n'
    )
    assert (clab(text).machines[0].memory_mb, clab(text).machines[0].cpus) == (300, 2)


def test_a_problem_in_what_an_alias_repeats_has_the_anchors_line() -> None:
    text = ANCHORS.replace("kind: linux, image", "kind: ceos, image")
    with pytest.raises(InputError) as error:
        clab(text)
    assert {problem.line for problem in error.value.problems} <= {4, 5, 6}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *x\n", "alias 'x': no value before it has this anchor"),
        ("a: &x [*x]\n", "alias 'x': no value before it has this anchor"),
        ("topology: {nodes: {a: {<<: word}}}\n", "'word' where a mapping to merge is wanted"),
    ],
)
def test_an_alias_of_nothing_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        clab(text)


def test_laughs_end_before_there_are_a_billion() -> None:
    lines = ["a: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"b{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="aliases repeat more than 50000 values"):
        clab("\n".join(lines) + "\n")


def test_our_own_language_has_no_aliases() -> None:
    with pytest.raises(InputError, match="aliases are not part of the language"):
        parse("name: x\nhosts: {a: &h {}, b: *h}\nlinks: [{ends: [a, b]}]\n", "t.yaml")


@pytest.mark.parametrize(
    "groups",
    [
        "{_auto_create: true, hosts: {members: [h1, h2], device: linux}}",
        "{hosts: {_auto_create: true, members: [h1, h2], device: linux}}",
    ],
)
def test_netlabs_nodes_may_come_from_groups_alone(groups: str) -> None:
    read = detect.read(f"name: auto\ngroups: {groups}\nlinks: [{{h1: , h2: , tc.delay: 200}}]\n", "t.yml")
    assert [machine.name for machine in read.machines] == ["h1", "h2"]
    assert [(link.ends, link.delay_ms) for link in read.links] == [(("h1", "h2"), (200, 200))]


def test_containerlabs_hosts_have_ipv6_on_and_a_file_can_switch_it_off() -> None:
    nodes = 'h1: {kind: linux, sysctls: {net.ipv6.conf.all.disable_ipv6: "1"}}, h2: {kind: linux}, br: {kind: bridge}'
    links = '[{endpoints: ["h1:eth1", "br:eth1"]}, {endpoints: ["h2:eth1", "br:eth2"]}]'
    read = clab(f"name: six\ntopology:\n  nodes: {{{nodes}}}\n  links: {links}\n")
    assert run_of(read) == {
        "h1": (IPV6_ON, "sysctl -w net.ipv6.conf.all.disable_ipv6=1"),
        "h2": (IPV6_ON,),
        "br": (),
    }


BINDS = """\
name: binds
topology:
  kinds: {{linux: {{binds: ["daemons:/etc/frr/daemons"]}}}}
  nodes:
    r1: {{kind: linux, binds: {binds}}}
    r2: {{kind: linux}}
  links: [{{endpoints: ["r1:eth1", "r2:eth1"]}}]
"""


def test_files_that_are_mounted_from_beside_the_file_are_copied(tmp_path: Path) -> None:
    text = BINDS.format(binds='["r1/frr.conf:/etc/frr/frr.conf:ro", "r1/daemons:/etc/frr/daemons", "./www:/srv/www"]')
    read = clab(text)
    assert read.machines[0].files == (
        ("r1/daemons", "/etc/frr/daemons"),
        ("r1/frr.conf", "/etc/frr/frr.conf"),
        ("./www", "/srv/www"),
    )
    assert read.machines[1].files == (("daemons", "/etc/frr/daemons"),)
    for name in ("r1/daemons", "r1/frr.conf", "www/index.html", "daemons"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "lab.yaml").write_text(network.text(read))
    load(tmp_path / "lab.yaml")


@pytest.mark.parametrize(
    ("bind", "why"),
    [
        ("/lib/modules:/lib/modules", "files are taken from beside this file"),
        ("~/x:/x", "files are taken from beside this file"),
        ("../x:/x", "files are taken from beside this file"),
        ("$NO_SUCH/x:/x", "\\$NO_SUCH has no value in your environment, and no default"),
        ("__clabNodeDir__/x:/x", "__clabNodeDir__ is not filled in here"),
        ("x:/run/x", "/run is not on its disk"),
        ("x", "a colon"),
    ],
)
def test_other_mounts_are_an_error_or_left_out(bind: str, why: str) -> None:
    text = BINDS.format(binds=f'["{bind}"]')
    with pytest.raises(InputError, match=why):
        clab(text)
    assert clab(text, leave_out=True).machines[0].files == (("daemons", "/etc/frr/daemons"),)


def test_a_file_that_names_an_interface_of_another_name_here_is_an_error_or_left_out(tmp_path: Path) -> None:
    text = BINDS.format(binds='["r1:/etc/frr"]').replace('"r1:eth1"', '"r1:net2"').replace("kinds:", "x-kinds:")
    text = text.replace("  x-kinds" + text.partition("  x-kinds")[2].partition("\n")[0] + "\n", "")
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / "frr.conf").write_text("interface net2\n ip ospf area 0\n")
    file = tmp_path / "t.clab.yml"
    file.write_text(text)
    with pytest.raises(InputError, match="bind r1 cannot be honoured: it names net2, which is eth1 here"):
        detect.read(text, str(file))
    assert detect.read(text, str(file), leave_out=True).machines[0].files == ()
    (tmp_path / "r1" / "frr.conf").write_text("interface net20\n")
    assert detect.read(text, str(file)).machines[0].files == (("r1", "/etc/frr"),)


TOPOHUB = """\
graph [
  name "small"
  directed 0
  stats [ nodes 3 ]
  node [ id 0 name "Wien" lon 16.37 lat 48.2 ]
  node [ id 1 label "Graz" type "City" lon 15.44 lat 47.07 ]
  node [ id 2 label "Linz" lon 14.29 lat 48.3 ]
  edge [ source 0 target 1 dist 200.0 ]
  edge [ source 1 target 2 ]
]
"""


def test_topohubs_graphs_have_their_places_and_their_distances() -> None:
    read = detect.read(TOPOHUB, "small.gml")
    require_fit(read, "small.gml")
    assert [machine.name for machine in read.machines] == ["wien", "graz", "linz"]
    between = fibre_ms(distance_km(Site("", 47.07, 15.44), Site("", 48.3, 14.29)))
    assert [link.delay_ms for link in read.links] == [(fibre_ms(200.0),) * 2, (between,) * 2]
    assert not any("no coordinates" in note for note in read.notes)


def test_a_distance_that_is_none_is_an_error() -> None:
    with pytest.raises(InputError, match="no distance in km"):
        detect.read(TOPOHUB.replace("dist 200.0", 'dist "far"'), "small.gml")


def test_a_containers_limit_that_is_too_little_for_a_kernel_is_the_least_and_noted() -> None:
    nodes = "    a: {kind: linux, memory: 64Mb}\n    b: {kind: linux, memory: 524288k}\n"
    text = f"name: m\ntopology:\n  nodes:\n{nodes}  links:\n    - endpoints: ['a:eth1', 'b:eth1']\n"
    read = detect.read(text, "m.clab.yml")
    assert [machine.memory_mb for machine in read.machines] == [128, 512]
    assert "memory of a: 128 MB here, the least that a host with a kernel of its own has" in read.notes
