"""The user's own containers on Swarm: by name, behind ports, with volumes; after a power cut; gone. The same from a
Compose file, and an image that is a host. `test_own_programs` has containers on flannel, too."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import pytest

from live.conftest import quiet, state_directory
from live.program import Program, until
from minigts import api, overlays
from minigts import lab as labs
from minigts.errors import CommandFailed
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(600)]

SAVE = "curl -sSf --unix-socket /run/docker.sock -o /root/measure.tar http://docker/images/minigts/measure/get"
IMAGES = ("curl", "-sSf", "--unix-socket", "/run/docker.sock", "http://docker/images/json")
TOPOLOGY = """\
name: own
overlay: swarm
hosts:
  ams:
  lju:
    containers:
      - name: meter
        image: measure.tar
        command: iperf3 -s
        ports: ["5299:5201"]
        restart: always
links:
  - {ends: [ams, lju], rtt: 10ms, rate: 50mbit}
"""
ALSO = """
    containers:
      - name: greeter
        image: root.tar
        command: [/bin/sh, -c, 'read -r word </srv/word; echo "$WHO: $word"; echo kept >>/var/kept/word; sleep 5000']
        environment: {WHO: greeter}
        volumes: ["./site:/srv:ro", "kept:/var/kept"]
"""
NAMES = 'while read -r line; do echo "$line"; done </etc/hosts'
KEPT = "while read -r line; do echo $line; done </var/kept/word"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A topology, and beside it what a host's engine saved of the measuring image, the same as a root file system, and
    a directory."""
    place = tmp_path_factory.mktemp("own")
    with state_directory(place / "state"):
        lab = labs.up(parse("name: one\nhosts: {ams: }\n", "one.yaml", time="virtual"), "uml", None, quiet)
        try:
            overlays.join(lab, "bridge", quiet)
            lab.provider.run("ams", ["sh", "-euc", SAVE], timeout_s=120)
            lab.provider.get("ams", PurePosixPath("/root/measure.tar"), place / "measure.tar")
        finally:
            labs.down(lab)
        _root_of(place / "measure.tar", place / "root.tar")
        (place / "site").mkdir()
        (place / "site" / "word").write_text("good day\n")
        (place / "own.yaml").write_text(
            TOPOLOGY.replace("  lju:\n", f"  mil:{ALSO}  lju:\n") + "  - {ends: [lju, mil], rtt: 10ms, rate: 50mbit}\n"
        )
        yield place


def _root_of(saved: Path, root: Path) -> None:
    with tarfile.open(saved) as archive:
        listed = archive.extractfile("manifest.json")
        assert listed is not None
        (layer,) = json.load(listed)[0]["Layers"]
        content = archive.extractfile(layer)
        assert content is not None
        root.write_bytes(content.read())


@pytest.mark.nightly
def test_containers_live_as_they_are_declared(directory: Path) -> None:
    with api.up(directory / "own.yaml") as lab:
        program = Program(directory / "state")
        meter, greeter = lab.container("meter"), lab.container("greeter.mil")

        # By name, over the overlay, from the other host's container.
        assert f"{meter.address} meter.lju meter" in greeter.run("sh", "-c", NAMES).stdout.splitlines()
        said = greeter.run("iperf3", "-c", "meter", "-t", "1", "-J").stdout
        assert json.loads(said)["end"]["sum_received"]["bits_per_second"] > 0

        # What passes its own interfaces, seen by the host's tcpdump in its network.
        file = directory / "meter.pcap"
        with ThreadPoolExecutor() as beside:
            words = ("capture", "-w", str(file), "--count", "3", "--container", "meter", "tcp", "port", "5201")
            seen = beside.submit(program.run, *words)
            lju = lab.host("lju")
            assert until(lambda: lju.run("pgrep", "-x", "tcpdump", check=False).code == 0)
            greeter.run("iperf3", "-c", "meter", "-t", "1")
            assert "3 frames at lju any" in seen.result(60).stderr

        # A port of the host leads into the container, from a host that the overlay's addresses mean nothing to.
        said = lab.host("ams").run("iperf3", "-c", lab.host("lju").address, "-p", "5299", "-t", "1", "-J").stdout
        assert json.loads(said)["end"]["sum_received"]["bytes"] > 100_000

        # What it is handed, and what it says.
        assert "greeter: good day" in program.succeeds("logs", "mil", "--only", "container-greeter.mil")
        assert program.succeeds("exec", "-c", "greeter", "--", "sh", "-c", "echo $WHO") == "greeter\n"
        with pytest.raises(CommandFailed, match="Read-only file system"):
            greeter.run("sh", "-c", "echo >/srv/word")

        # An image goes to those who have it not, and has the file's name there.
        file = str(directory / "root.tar")
        assert "root:latest: on ams, lju: " in program.run("load", file).stderr
        assert "root:latest: every host had it already" in program.run("load", file, "--on", "ams").stderr
        images = json.loads(lab.host("ams").run(*IMAGES).stdout)
        assert "root:latest" in [name for each in images for name in each["RepoTags"] or ()]

        # Its program ends: the engine starts that again, in the same network.
        address = meter.address
        lab.host("lju").shell("kill $(pgrep -f '^iperf3 -s$')")
        lab.host("lju").shell("sleep 3")
        assert lab.container("meter").address == address
        assert {each["state"] for each in states(program)} == {"running"}

        # A power cut: it is there again, with what it kept in its volume, and the others know where.
        program.succeeds("restart", "mil")
        greeter = lab.container("greeter")
        assert greeter.run("sh", "-c", KEPT).stdout == "kept\nkept\n"
        assert f"{greeter.address} greeter.mil greeter" in meter.run("sh", "-c", NAMES).stdout.splitlines()
        assert {each["state"] for each in states(program)} == {"running"}

        lab.leave()
        assert {each["state"] for each in states(program)} == {"not up"}
        assert lab.host("lju").shell("pgrep -f '[i]perf3|[p]orts.py|[s]leep infinity'", check=False).stdout == ""


COMPOSED = """\
name: composed
overlay: swarm
hosts:
  ams: {containers: [{name: asker, image: root.tar, command: sleep 100000}]}
  lju:
    compose: {file: shop/compose.yaml, images: {"meter:1": measure.tar, "greeter:1": root.tar}}
    environment: {WHO: from the host}
links: [{ends: [ams, lju], rtt: 10ms, rate: 50mbit}]
"""
COMPOSE = """\
services:
  greeter:
    image: greeter:1
    depends_on: {meter: {condition: service_started}}
    entrypoint: [/bin/sh, -c]
    command: ['ping -c 1 scales >/dev/null; echo "$$WHO: ${WORD:-good day}"; pwd; sleep 5000']
    environment: [WHO]
    working_dir: /srv
    volumes: [./site:/srv:ro]
  meter:
    image: meter:1
    container_name: scales
    hostname: keeper
    command: iperf3 -s
    ports: ["5299:5201"]
    healthcheck: {test: [CMD, iperf3, --version], interval: 1s}
"""
HOSTNAME = "read -r name </proc/sys/kernel/hostname; echo $name"


@pytest.mark.nightly
def test_a_compose_file_is_taken_as_it_is(directory: Path) -> None:
    (directory / "composed.yaml").write_text(COMPOSED)
    (directory / "shop" / "site").mkdir(parents=True)
    (directory / "shop" / "compose.yaml").write_text(COMPOSE)
    with api.up(directory / "composed.yaml") as lab:
        program = Program(directory / "state")

        # The client has found the other by a name that only the file gives it.
        lab.host("lju").shell("sleep 3")
        said = program.succeeds("logs", "lju", "--only", "container-greeter.lju")
        assert "from the host: good day" in said and "/srv" in said
        assert {each["container"]: each["state"] for each in states(program)} == {
            "asker": "running",
            "meter": "running, healthy",
            "greeter": "running",
        }
        assert lab.container("meter").run("sh", "-c", HOSTNAME).stdout == "keeper\n"

        # Over the overlay, from another host's container: by the service's name, not by the further ones.
        asker, meter = lab.container("asker"), lab.container("meter")
        assert "time=10.0" in asker.run("ping", "-c", "1", meter.address).stdout
        assert "scales" not in asker.run("sh", "-c", NAMES).stdout
        assert (
            json.loads(asker.run("iperf3", "-c", "meter", "-t", "1", "-J").stdout)["end"]["sum_received"]["bytes"] > 0
        )

        # And by the host's port.
        said = lab.host("ams").run("iperf3", "-c", lab.host("lju").address, "-p", "5299", "-t", "1", "-J").stdout
        assert json.loads(said)["end"]["sum_received"]["bytes"] > 100_000


SPREAD = """\
name: spread
overlay: swarm
hosts:
  ams: {compose: {file: spread/compose.yaml, images: {"any:1": root.tar}}}
  lju: {compose: {file: spread/compose.yaml, images: {"any:1": root.tar}}}
links: [{ends: [ams, lju], rtt: 10ms}]
"""
SPREAD_SERVICES = """\
services:
  first: {image: "any:1", command: sleep 5000, depends_on: [second], x-minigts: {host: ams}}
  second: {image: "any:1", command: sleep 5000, depends_on: [third], x-minigts: {host: lju}}
  third: {image: "any:1", command: sleep 5000, x-minigts: {host: ams}}
"""


def test_the_services_of_one_file_start_on_their_hosts_in_their_order(directory: Path) -> None:
    (directory / "spread").mkdir()
    (directory / "spread" / "compose.yaml").write_text(SPREAD_SERVICES)
    (directory / "spread.yaml").write_text(SPREAD)
    with api.up(directory / "spread.yaml") as lab:
        program = Program(directory / "state")
        placed = {each["container"]: (each["host"], each["state"]) for each in states(program)}
        assert placed == {"first": ("ams", "running"), "second": ("lju", "running"), "third": ("ams", "running")}

        def started(name: str, host: str) -> str:
            url = f"http://docker/containers/{name}.{host}/json"
            said = lab.host(host).run("curl", "-sSf", "--unix-socket", "/run/docker.sock", url).stdout
            at: str = json.loads(said)["State"]["StartedAt"]
            return at

        assert started("third", "ams") < started("second", "lju") < started("first", "ams")
        assert "time=10.0" in lab.container("first").run("ping", "-c", "1", "second").stdout


ROOTED = """\
name: rooted
hosts:
  ams:
    image: root.tar
    environment: {WORD: good day}
    files: [{source: note, target: /srv/, mode: 600}]
    run: ['echo "$WORD" >/srv/said; cat </srv/note || read -r note </srv/note; echo "$note"; iperf3 -s -D']
  lju:
links: [{ends: [ams, lju], rtt: 10ms, rate: 50mbit}]
"""


@pytest.mark.nightly
def test_an_image_is_what_commands_on_a_host_see(directory: Path, tmp_path: Path) -> None:
    (directory / "rooted.yaml").write_text(ROOTED)
    (directory / "note").write_text("from here\n")
    with api.up(directory / "rooted.yaml") as lab:
        program = Program(directory / "state")
        ams = lab.host("ams")

        # Its root is the image's; kernel, names and network are the host's, and so are its links' figures.
        assert ams.run("sh", "-c", "echo $WORD; pwd; cd /; echo *").stdout.splitlines()[:2] == ["good day", "/root"]
        with pytest.raises(CommandFailed, match="dockerd"):
            ams.run("dockerd", "--version")
        assert "time=10.0" in ams.run("ping", "-c", "1", "lju").stdout
        said = lab.host("lju").run("iperf3", "-c", "ams", "-t", "1", "-J").stdout
        assert json.loads(said)["end"]["sum_received"]["bytes"] > 100_000
        assert lab.check().ok

        # What it was handed, what it ran, and files both ways, in its root.
        assert "from here" in program.succeeds("logs", "ams", "--only", "run-1")
        program.succeeds("cp", str(directory / "note"), "ams:/srv/copied")
        program.succeeds("cp", "ams:/srv/said", str(tmp_path / "said"))
        assert (tmp_path / "said").read_text() == "good day\n"

        # A power cut: its disk is there again, what ran has run again, and an overlay is laid over it as over any host.
        program.succeeds("restart", "ams")
        assert ams.run("sh", "-c", "read -r note </srv/copied; echo $note").stdout == "from here\n"
        lab.join("vxlan")
        assert min(lab.rtt("ams", "lju", containers=True, count=2).rtts_ms) == pytest.approx(10, abs=0.1)


def states(program: Program) -> list[dict[str, str]]:
    (lab,) = json.loads(program.succeeds("status", "--json"))
    found: list[dict[str, str]] = lab["containers"]
    return found
