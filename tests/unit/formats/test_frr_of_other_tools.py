"""FRR in other tools' files: nodes of kind `frr`, Linux nodes with FRR's image, and netlab's device `frr`."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.formats import detect, network
from minigts.formats.network import Network, NetworkMachine
from minigts.topology.read.load import load

CLAB = """\
name: lab
topology:
  groups: {{routers: {{kind: frr, extras: {{frr: {{daemons: [ospfd, zebra]}}}}}}}}
  nodes:
    r1: {r1}
    h1: {{kind: linux, image: alpine:3}}
  links: [{{endpoints: ["r1:{port}", "h1:eth1"]}}]
"""


def clab(r1: str, *, port: str = "eth1", file: str = "t.clab.yml", leave_out: bool = False) -> Network:
    return detect.read(CLAB.format(r1=r1, port=port), file, leave_out=leave_out)


def router(read: Network) -> NetworkMachine:
    return next(each for each in read.machines if each.name == "r1")


def starts(read: Network) -> str:
    (command,) = (each for each in router(read).run if "frrinit.sh" in each)
    return command


@pytest.mark.parametrize("kind", ["frr", "frrouting"])
def test_a_node_of_kind_frr_has_its_configuration_and_all_daemons(kind: str, tmp_path: Path) -> None:
    read = clab(f"{{kind: {kind}, startup-config: r1/frr.conf}}")
    assert router(read).packages == ("frr",)
    assert router(read).files == (("r1/frr.conf", "/etc/frr/frr.conf"),)
    assert "bgpd|ospfd|ospf6d" in starts(read)
    assert read.routing == "neighbours"
    assert any("FRR of r1: FRR finds their routes" in note for note in read.notes)
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / "frr.conf").write_text("router ospf\n")
    (tmp_path / "lab.yaml").write_text(network.text(read))
    plan = load(tmp_path / "lab.yaml")
    software = plan.host("r1").software
    assert software is not None
    assert [each.name for each in software.packages] == ["frr"]
    assert plan.host("h1").software is not None
    assert "frrinit" not in str(plan.host("h1").software)


def test_only_the_daemons_that_a_group_names_start_and_before_the_nodes_own_commands() -> None:
    read = clab("{group: routers, exec: [\"vtysh -c 'show version'\"]}")
    assert starts(read).startswith("sed -i -E 's/^(ospfd)=no/")
    assert [("frrinit" in each, "vtysh" in each) for each in router(read).run][-2:] == [(True, False), (False, True)]


def test_a_linux_node_with_frrs_image_starts_what_it_mounts() -> None:
    binds = "[daemons:/etc/frr/daemons, r1/frr.conf:/etc/frr/frr.conf]"
    read = clab(f"{{kind: linux, image: 'quay.io/frrouting/frr:8.5.4', binds: {binds}}}")
    assert router(read).packages == ("frr",)
    assert starts(read) == "chown -R frr:frr /etc/frr; /usr/lib/frr/frrinit.sh start"
    assert read.routing == "neighbours"
    other = clab("{kind: linux, image: 'quay.io/frr-tools/shell:1'}")
    assert (router(other).packages, other.routing) == ((), "routed")


@pytest.mark.parametrize(
    ("r1", "says"),
    [
        ("{kind: frr, startup-config: /etc/hosts}", "startup-config /etc/hosts cannot be honoured"),
        ('{kind: frr, startup-config: "router ospf\\n"}', "write it to a file beside this one"),
        ("{kind: frr, extras: {frr: {daemons: [sharpd]}}}", "daemon sharpd cannot be honoured: Debian's package has"),
        ("{kind: linux, startup-config: r1/frr.conf}", "startup-config cannot be honoured"),
        ("{kind: quagga}", "only Linux nodes, FRR and bridges can be imported"),
    ],
)
def test_what_frr_here_cannot_do_is_an_error_with_its_line(r1: str, says: str) -> None:
    with pytest.raises(InputError, match=r"t\.clab\.yml:5: ") as refused:
        clab(r1)
    assert says in str(refused.value)


def test_a_configuration_that_names_an_interface_which_is_another_one_here_is_lost(tmp_path: Path) -> None:
    (tmp_path / "frr.conf").write_text("interface net0\n ip ospf area 0\n")
    file = str(tmp_path / "t.clab.yml")
    Path(file).write_text("-")
    with pytest.raises(InputError, match=r"startup-config frr\.conf cannot be honoured: it names net0"):
        clab("{kind: frr, startup-config: frr.conf}", port="net0", file=file)
    left = clab("{kind: frr, startup-config: frr.conf}", port="net0", file=file, leave_out=True)
    assert router(left).files == ()


NETLAB = """\
defaults: {{device: linux, devices: {{frr: {{memory: 300}}, linux: {{memory: 200}}}}}}
nodes: {{r1: {r1}, h1: {{}}}}
links: [r1-h1]
"""


@pytest.mark.parametrize("r1", ["{device: frr}", "{device: frr, cpu: 1}"])
def test_netlabs_device_frr_is_a_host_on_which_frr_runs(r1: str) -> None:
    read = detect.read(NETLAB.format(r1=r1), "t.yml")
    assert (router(read).packages, router(read).memory_mb) == (("frr",), 300)
    assert starts(read).endswith("frrinit.sh start")
    (plain,) = (each for each in read.machines if each.name == "h1")
    assert (plain.packages, plain.run, plain.memory_mb) == ((), (), 200)


def test_netlabs_group_of_a_device_has_its_nodes() -> None:
    text = "groups: {frr: {memory: 400}}\n" + NETLAB.format(r1="{device: frr}")
    read = detect.read(text, "t.yml")
    assert [each.memory_mb for each in read.machines] == [400, 200]


def test_netlabs_modules_are_netlabs_own() -> None:
    with pytest.raises(InputError, match=r"t\.yml:2: .*module cannot be honoured: .*`minigts netlab up`"):
        detect.read(NETLAB.format(r1="{device: frr, module: [ospf]}"), "t.yml")
