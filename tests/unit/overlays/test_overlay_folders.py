"""What overlays there are, what their folders say of them, and how the programs that some need are built."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from minigts import overlays, paths
from minigts.artifacts import overlay_programs
from minigts.errors import InputError, MinigtsError
from minigts.overlays import catalogue
from minigts.overlays.host_file import facts_for, largest_carried, patience_s
from minigts.overlays.teams import teams
from minigts.providers import registry
from minigts.topology.plan.elements import Host
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load, parse

PROJECT = paths.project_root()
FOLDERS = sorted(path for path in (PROJECT / "provision" / "overlays").iterdir() if path.is_dir())
PHASES = ("install", "join", "start", "reach", "verify", "leave", "second")
ON_THE_WIRE = {
    "none": "as sent",
    "ipip": "IP-in-IP",
    "vxlan": "VXLAN",
    "udp": "UDP",
    "esp": "ESP",
    "wireguard": "WireGuard",
    "ipv6": "as sent over IPv6",
    "vxlan6": "VXLAN over IPv6",
    "wireguard6": "WireGuard over IPv6",
}

GOOD = """\
description: a network
engines: [docker, namespace]
variants:
  fast: {encapsulation: vxlan}
  slow: {encapsulation: udp, overhead_bytes: 28}
"""


def test_a_variant_has_a_line_of_its_own_by_which_a_shell_finds_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "narrow"
    folder.mkdir()
    (folder / "overlay.yaml").write_text("description: x\nvariants: {fast: {encapsulation: vxlan}}\n")
    with pytest.raises(InputError, match=r"overlay\.yaml:2: variants: each variant stands on a line of its own"):
        catalogue.read_folder(folder)


def test_every_name_that_is_offered_is_an_overlays() -> None:
    assert [overlays.find(name).name for name in overlays.known_names()] == [*overlays.known_names()]


def test_an_overlay_is_not_laid_over_more_hosts_than_it_has_addresses_for() -> None:
    row = parse("name: row\nchain: {hosts: 251}\n", "row.yaml")
    overlays.require_fit(row, "none")
    with pytest.raises(InputError, match="an overlay has addresses for 250 hosts, and topology row has 251: "):
        overlays.require_fit(row, "swarm")


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe that counts how often it is run."""
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "overlay" / "build"
    folder.mkdir(parents=True)
    script = folder / "build.sh"
    script.write_text(f"#!/bin/sh\necho run >>{tmp_path}/runs\necho made >$1/program\n")
    script.chmod(0o755)
    return folder


def declared(tmp_path: Path, text: str) -> tuple[overlays.Overlay, ...]:
    """The overlays of a folder `net` with that overlay.yaml, beside one called `other`."""
    for name, content in (("net", text), ("other", "description: another\ndata_path: {encapsulation: none}\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "overlay.yaml").write_text(content)
    return catalogue.read_folder(tmp_path / "net")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
def test_a_folder_holds_what_it_promises(folder: Path) -> None:
    declaration = catalogue.read_folder(folder)[0].declaration
    assert (folder / "README.md").exists()
    assert (folder / "build" / "build.sh").exists() == bool(declaration.programs and declaration.programs.built)


@pytest.mark.parametrize("name", overlays.known_names())
def test_an_overlay_has_every_phase(name: str, tmp_path: Path) -> None:
    """Its files are read over the default phases, as on a host; none of them is run."""
    overlay = overlays.find(name)
    plan = load(PROJECT / "topologies" / "pair.yaml")
    write_facts(tmp_path, plan, plan.hosts[0], overlay)
    phases = [*PHASES, *(["policy"] if overlay.declaration.policy == "itself" else [])]

    script = 'source "$0" true; for phase; do declare -F "$phase"; done'
    argv = ["bash", "-c", script, str(FOLDERS[0].parent / "phase.sh"), *phases]
    asked = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment(tmp_path))
    assert (asked.stderr, asked.stdout.split()) == ("", phases)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
def test_an_overlay_takes_over_phases_and_nothing_by_accident(folder: Path) -> None:
    """A function of its own that has the name of a shared one would be called in its place."""
    meant = {*PHASES, "has", "load", "container_settings", "further_host_settings", "further_settings"}
    assert functions(folder) & functions(folder.parent) <= meant


def functions(folder: Path) -> set[str]:
    return {name for path in folder.glob("*.sh") for name in re.findall(r"^(\w+)\(\)", path.read_text(), re.MULTILINE)}


def test_an_overlay_is_its_folder_and_each_further_variant_a_name_of_its_own(tmp_path: Path) -> None:
    fast, slow = declared(tmp_path, GOOD)
    assert [(each.name, each.variant) for each in (fast, slow)] == [("net", "fast"), ("net-slow", "slow")]
    assert [each.data_path.mtu_over(9000) for each in (fast, slow)] == [8950, 8972]
    assert {"flannel", "flannel-udp", "calico-never"} <= set(overlays.known_names())
    assert "flannel-vxlan" not in overlays.known_names()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (GOOD, "", "nothing in it"),
        ("description: a network\n", "", "1: 'description' is missing"),
        ("engines", "engine", "2: engine: unknown key; did you mean 'engines'?"),
        ("namespace]", "container]", "2: engines[1]: 'container' is not an engine: write docker or namespace"),
        ("vxlan}", "vxlam}", "4: variants.fast.encapsulation: 'vxlam' is not an encapsulation: write none, .*'vxlan'"),
        (", overhead_bytes: 28", "", "5: variants.slow: what udp adds depends on the program: add `overhead_bytes:`"),
        ("28}", "28, mtu: 1400}", "5: variants.slow: say `mtu:` or `overhead_bytes:`, not both"),
        ("28}", "many}", "5: variants.slow.overhead_bytes: .*valid integer"),
        ("engines:", "data_path: {encapsulation: none}\nengines:", "either `variants:` or, without any, `data_path:"),
        ("engines:", "programs: {}\nengines:", "2: programs: programs are either `built: true` or `supplied:"),
        ("engines:", "programs: {built: true}\nengines:", "2: programs.built: there is no .*net/build/build.sh"),
        ("engines:", "policy: iptables\nengines:", "2: policy: .* write nftables, itself or objects"),
        ("engines:", "extends: othr\nengines:", "2: extends: no folder 'othr'; did you mean 'other'?"),
        ("  slow", "  Slow One", "5: variants.'Slow One': 'Slow One' is no variant's name: write small letters"),
        ("engines: [", "engines: [[", "overlay.yaml:"),
    ],
)
def test_a_bad_overlay_yaml_says_where_and_what_would_be_right(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    text = GOOD.replace(before, after, 1)
    assert text != GOOD
    with pytest.raises(InputError, match=message.replace("?", r"\?").replace("[1]", r"\[1\]")) as refused:
        declared(tmp_path, text)
    assert f"{tmp_path / 'net' / 'overlay.yaml'}:" in str(refused.value)
    assert refused.value.exit_code == 2


def test_what_one_overlay_extends_comes_first(tmp_path: Path) -> None:
    [net] = declared(tmp_path, "description: more\nextends: other\ndata_path: {encapsulation: none}\n")
    assert [folder.name for folder in net.folders] == ["other", "net"]


def test_an_overlay_that_needs_docker_is_refused_where_there_is_none() -> None:
    mininet = registry.make("mininet", Path())
    overlays.require_engine(registry.make("uml", Path()), "swarm")
    overlays.require_engine(mininet, "calico-never")
    with pytest.raises(
        InputError, match=r"'swarm' needs Docker on every host.* provider mininet .*none, none-v6, ovs"
    ) as refused:
        overlays.require_engine(mininet, "swarm")
    assert refused.value.exit_code == 2


def table_rows(page: str, first_column: str) -> list[list[str]]:
    """The cells of the tables in a page of docs whose first column has that heading."""
    rows = []
    for table in re.findall(
        rf"^\| {first_column} \|.*\n\|-.*\n((?:\|.*\n)+)", (PROJECT / page).read_text(), re.MULTILINE
    ):
        rows += [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table.splitlines()]
    return rows


def row_of(folder: Path) -> list[str]:
    first, *others = catalogue.read_folder(folder)
    mark = "¹" if first.kernel_modules else ""
    further = ", ".join(
        f"`{each.name.removeprefix(first.name)}`{'¹' if each.kernel_modules and not mark else ''}" for each in others
    )
    declaration = first.declaration
    policy = f"; policy{'' if mark else '¹'}" if declaration.policy else ""
    wire = dict.fromkeys(ON_THE_WIRE[each.data_path.encapsulation] for each in (first, *others))
    return [
        f"`{first.name}`{mark}{f' ({further})' if further else ''}",
        f"{declaration.description}{policy}",
        ", ".join(wire),
    ]


def test_the_page_has_every_overlay_as_its_folder_describes_it() -> None:
    wanted = sorted(row_of(folder) for folder in FOLDERS)
    lines = "\n".join(f"| {' | '.join(row)} |" for row in wanted)
    assert sorted(table_rows("docs/overlays.md", "network")) == wanted, (
        f"docs/overlays.md has to have these rows:\n{lines}"
    )


def test_what_is_declared_is_what_was_measured() -> None:
    """docs/overlays.md has what `verify` saw on the links and what the containers' interfaces said."""
    rows = table_rows("docs/overlays.md", "overlay")
    measured = {(name.strip("`¹ "), int(mtu), wire) for name, _, mtu, wire, *_ in rows if mtu.isdigit()}
    names = {name for name, _, _ in measured}
    assert len(names) > 20
    for name in names:
        path = overlays.find(name).data_path
        seen = {(mtu, wire) for row, mtu, wire in measured if row == name}
        assert (path.mtu_over(1500), path.encapsulation) in {(mtu, wire.partition(",")[0]) for mtu, wire in seen}


def write_facts(place: Path, plan: Plan, host: Host, overlay: overlays.Overlay) -> None:
    facts = facts_for(plan, host, overlay, "/var/lib/a b'c", "docker")
    (place / "host.json").write_text(facts.model_dump_json())


def variables(tmp_path: Path, host: str) -> dict[str, str]:
    """What host.sh makes of the facts of that host of chain6.yaml, while flannel-wireguard is joined."""
    plan = load(PROJECT / "topologies" / "chain6.yaml")
    write_facts(tmp_path, plan, plan.host(host), overlays.find("flannel-wireguard"))
    script = (
        'set -euo pipefail; OVERLAYS=$1; source "$1/host.sh"; shift\n'
        'for name; do declare -n value=$name; printf "%s=%s\\n" "$name" "${value[*]@Q}"; done\n'
        'echo "COUNT=$(host_count)"; is_leader && echo LEADS=yes; is_neighbour bra && echo NEAR_BRA=yes'
    )
    names = re.findall(r"^  ([A-Z_]+)=", (FOLDERS[0].parent / "host.sh").read_text(), re.MULTILINE)
    argv = ["bash", "-c", f"{script} || true", "-", str(FOLDERS[0].parent), *names]
    text = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment(tmp_path)).stdout
    return dict(line.split("=", 1) for line in text.splitlines())


def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOST_JSON": str(tmp_path / "host.json")}


def test_phases_know_their_host_and_its_links(tmp_path: Path) -> None:
    plan = load(PROJECT / "topologies" / "chain6.yaml")
    first, second, third, *_ = plan.hosts
    seen = variables(tmp_path, second.name)

    assert seen["HOST_NAME"] == f"'{second.name}'"
    assert seen["HOST_INDEX"] == "'1'"
    assert seen["LEADER_ADDRESS"] == f"'{first.address}'"
    assert seen["PEER_NAMES"] == " ".join(f"'{host.name}'" for host in plan.hosts if host != second)
    assert seen["PEER_INDEXES"] == "'0' '2' '3' '4' '5'"
    assert seen["LINK_INTERFACES"] == " ".join(f"'{port.name}'" for port in second.ports)
    assert seen["LINK_PEERS"] == f"'{first.name}' '{third.name}'"
    assert seen["LINK_PEER_ADDRESSES"] == f"'{first.ports[0].address}' '{third.ports[0].address}'"
    assert seen["VARIANT"] == "'wireguard'"
    assert seen["KERNEL_MODULES"] == "'wireguard'"
    assert seen["PROGRAMS"] == r"'/var/lib/a b'\''c'"
    assert (seen["OVERLAY_MTU"], seen["LINK_MTU"]) == ("'1420'", "'1500'")
    assert (seen["COUNT"], "LEADS" in seen) == ("6", False)


def test_phases_know_the_leader(tmp_path: Path) -> None:
    plan = load(PROJECT / "topologies" / "chain6.yaml")
    seen = variables(tmp_path, plan.hosts[0].name)
    assert "LEADS" in seen
    assert seen["POLICY_BY"] == "''"


def test_phases_know_the_hosts_of_their_group_alone(tmp_path: Path) -> None:
    """A chain in two groups, a host in the middle in none: each has its own leader, and no link to the other."""
    plan = parse("name: x\nchain: {hosts: 5}\ngroups: {left: [h2, h1], right: [h4, h5]}\n", "x")
    vxlan = overlays.find("vxlan")
    last, second = (
        facts_for(plan, plan.host("h5"), vxlan, "", "docker"),
        facts_for(plan, plan.host("h2"), vxlan, "", "docker"),
    )

    assert (last.leader, last.position, last.index) == (plan.host("h4").address, 1, 4)
    assert [peer.name for peer in last.peers] == ["h4"]
    assert (second.leader, second.position) == (second.address, 0)
    assert [link.peer for link in second.links] == ["h1"]
    assert [team.names for team in teams(plan, "vxlan")] == [("h2", "h1"), ("h4", "h5")]
    assert [team.names for team in teams(plan, "none")] == [("h2", "h1"), ("h4", "h5"), ("h3",)]


def facts_that_are_read() -> Iterator[str]:
    """The keys of host.json that host.sh names."""
    yield from re.findall(r"\\\(\[?\.([a-z0-9_]+)", (FOLDERS[0].parent / "host.sh").read_text())


def test_every_fact_is_read(tmp_path: Path) -> None:
    plan = load(PROJECT / "topologies" / "pair.yaml")
    facts = facts_for(plan, plan.hosts[0], overlays.find("none"), "", "docker")
    assert set(json.loads(facts.model_dump_json())) == set(facts_that_are_read())


def test_programs_are_built_once(recipe: Path, tmp_path: Path) -> None:
    first = overlay_programs.ensure(recipe, lambda _: None)
    second = overlay_programs.ensure(recipe, lambda _: None)

    assert first == second
    assert (first / "program").read_text() == "made\n"
    assert (tmp_path / "runs").read_text() == "run\n"


def test_programs_are_built_while_those_of_another_overlay_are(recipe: Path, tmp_path: Path) -> None:
    other = recipe.with_name("other")
    other.mkdir()
    (other / "build.sh").write_text(
        f"#!/bin/sh\ntouch {tmp_path}/begun\nwhile [ ! -e {tmp_path}/enough ]; do sleep 0.1; done\n"
    )
    (other / "build.sh").chmod(0o755)
    building = threading.Thread(target=overlay_programs.ensure, args=(other, lambda _: None))
    building.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    try:
        assert (overlay_programs.ensure(recipe, lambda _: None) / "program").exists()
    finally:
        (tmp_path / "enough").touch()
        building.join(30)
    assert (overlay_programs.store() / overlay_programs.key(other)).is_dir()


def test_changed_recipe_is_built_anew(recipe: Path) -> None:
    first = overlay_programs.ensure(recipe, lambda _: None)
    (recipe / "go.sum").write_text("another")

    assert overlay_programs.ensure(recipe, lambda _: None) != first


def test_failed_build_keeps_nothing_and_says_why(recipe: Path, tmp_path: Path) -> None:
    (recipe / "build.sh").write_text("#!/bin/sh\necho half >$1/program\necho no compiler >&2\nexit 1\n")

    with pytest.raises(MinigtsError, match="no compiler"):
        overlay_programs.ensure(recipe, lambda _: None)
    assert [path.suffix for path in (tmp_path / "cache" / "programs").iterdir()] == [".lock"]


@pytest.mark.parametrize(("rtt", "seconds"), [("20ms", 1), ("900ms", 1), ("950ms", 2), ("4s", 8)])
def test_phases_wait_as_long_as_an_echo_may_take(rtt: str, seconds: int) -> None:
    plan = parse(f"name: far\npair: {{hosts: [ams, bra], link: {{rtt: {rtt}}}}}\n", "far.yaml")
    assert patience_s(plan) == seconds


@pytest.mark.parametrize(("mtu", "largest"), [(1500, "1400"), (1450, "1350")])
def test_a_proof_sends_nothing_larger_than_a_black_hole_carries(mtu: int, largest: str) -> None:
    chain = "name: x\nchain: {hosts: 3, segments: [{rtt: 1ms}, {rtt: 1ms%s}]}\n"
    assert largest_carried(parse(chain % "", "x.yaml"), mtu) == {}
    assert largest_carried(parse(chain % ", blackhole: 1400B", "x.yaml"), mtu) == {"LARGEST": largest}
