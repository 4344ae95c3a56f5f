"""The languages as subjects of `fuzzing`: whatever a file holds, it is accepted, or refused in words to be shown."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import foreign_writers
from fuzzing import Subject, mutate_text
from minigts.errors import InputError
from minigts.experiment_language.model import Experiment
from minigts.experiments import load as experiments
from minigts.experiments.matrix import matrix
from minigts.foreign import UNPRINTABLE
from minigts.formats import detect, network
from minigts.language.problems import require_none
from minigts.language.tree import read_tree
from minigts.overlays import policy
from minigts.results.schema import Hardware, Manifest
from minigts.topology import containers
from minigts.topology.containers import PlannedContainer
from minigts.topology.plan import plan as plans
from minigts.topology.plan.plan import Plan
from minigts.topology.read import compose_file
from minigts.topology.read import load as topologies
from minigts.topology.to_network import network_of

PROJECT = Path(__file__).parents[1]
OVERLAYS = ("none", "swarm", "weave")
HOSTS = ("ams", "bra", "mil")
LONGEST_MESSAGE = 2000
LONGEST_TEXT = 150_000
GRAPHML = """\
<graphml><key attr.name="label" for="node" id="d0" /><key attr.name="Latitude" for="node" id="d1" />
<key attr.name="Longitude" for="node" id="d2" /><key attr.name="LinkSpeedRaw" for="edge" id="d3" />
<graph id="g"><node id="0"><data key="d0">Wien</data><data key="d1">48.2</data><data key="d2">16.3</data></node>
<node id="1"><data key="d0">Praha</data><data key="d1">50.0</data><data key="d2">14.4</data></node>
<edge source="0" target="1"><data key="d3">1000000000.0</data></edge></graph></graphml>
"""
GML = """\
Creator "x"
# a comment
graph [ multigraph 1 label "g" directed 0
  node [ id 0 label "Wien" Latitude 48.2 Longitude 16.3 graphics [ x 1 y [ z 2 ] ] ]
  node [ id 1 label "S&#227;o" Latitude 50.0 Longitude 14.4 ]
  edge [ source 0 target 1 LinkSpeedRaw 1000000000.0 key 0 ]
]
"""
POLICY = """\
name: shop
default: deny
groups: {web: [ams], store: [bra, mil], nobody: []}
rules:
  - allow: {from: web, to: store, protocol: tcp, ports: [5201, 12865]}
  - deny: {from: any, to: web, protocol: icmp}
  - allow: {from: nobody, to: any}
"""
COMPOSE = """\
version: "3.8"
x-ours: {a: b}
services:
  client:
    image: shop/client:1
    depends_on: {store: {condition: service_started}}
    entrypoint: [/run.sh, "${A:-x}"]
    command: serve --port ${PORT:-8000} "two words"
    environment: [LEVEL=1, "PORT=${PORT:-$A}", "PRICE=$$5"]
    env_file: variables.env
    expose: ["8000"]
    working_dir: /srv
    user: "33:33"
    labels: [of=shop]
  store:
    image: redis:7
    container_name: db
    ports: ["6380:6379", {target: 80, published: 8080}]
    volumes: ["data:/data", "./site:/srv:ro", {type: bind, source: ../other, target: /other, read_only: true}]
    networks: {default: {aliases: [cache]}}
    healthcheck: {test: [CMD, redis-cli, ping], interval: 1m30s, retries: 3}
    restart: on-failure
volumes: {data: }
"""


def subjects() -> tuple[Subject, ...]:
    """A subject for each language."""
    good, bad = (PROJECT / "topologies", PROJECT / "tests" / "topologies")
    policies = re.findall(r"```yaml\n(.*?)```", (PROJECT / "docs" / "policy.md").read_text("utf-8"), re.DOTALL)
    return (
        Subject("topologies", (*_files(good), *_files(bad)), mutate_text, refusing(_topology)),
        Subject("experiments", _files(PROJECT / "experiments"), _mutate_experiment, refusing(_experiment)),
        Subject(
            "gts", tuple(path.read_bytes() for path in sorted((good / "gts").iterdir())), mutate_text, refusing(_gts)
        ),
        Subject("formats", _others_files(), mutate_text, refusing(_other_format)),
        Subject("policies", (POLICY.encode(), *(text.encode() for text in policies)), mutate_text, refusing(_policy)),
        Subject("compose", (COMPOSE.encode(),), mutate_text, refusing(_compose)),
    )


def _files(folder: Path) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(folder.glob("*.yaml")) if path.stat().st_size < 20_000)


def _others_files() -> tuple[bytes, ...]:
    """Ours, as other tools write them, and a graph with coordinates."""
    networks = [network_of(_plan(f"topologies/{name}.yaml")) for name in ("pair", "star", "switched", "chain6")]
    writers = (foreign_writers.containerlab, foreign_writers.netlab)
    written = [write(each).encode() for each in networks for write in writers]
    return (*written, GRAPHML.encode(), GML.encode())


def refusing(read: Callable[[bytes], None]) -> Callable[[bytes], bool]:
    """Whether `read` accepts what it is given. An InputError must be one that a terminal can show."""

    def take(data: bytes) -> bool:
        try:
            read(data)
        except InputError as error:
            text = str(error)
            assert not (bad := UNPRINTABLE.search(text)), f"{bad[0]!a} in {text[:500]!a}"
            assert 0 < len(text) <= LONGEST_TEXT, len(text)
            assert all(0 < len(line) <= LONGEST_MESSAGE for line in text.split("\n")), max(text.split("\n"), key=len)[
                :500
            ]
            return False
        return True

    return take


def _text(data: bytes) -> str:
    """What a file with this content would be read as; a file itself takes longer than its reading."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8") from None


def _topology(data: bytes) -> None:
    plan = topologies.parse(_text(data), "t.yaml", known_overlays=OVERLAYS)
    text = plans.plan_json(plan)
    assert Plan.model_validate_json(text) == plan


def _gts(data: bytes) -> None:
    topologies.parse(_text(data), "t.dsl", known_overlays=OVERLAYS)


def _other_format(data: bytes) -> None:
    text = _text(data)
    file = "t.graphml" if text.lstrip().startswith("<") else "t.gml" if "graph [" in text else "t.yml"
    try:
        read = detect.read(text, file)
    except InputError:
        # What it cannot honour may be left out; all else is refused as before.
        read = detect.read(text, file, leave_out=True)
        assert read.notes or read.lost
    try:
        plan = topologies.parse(network.text(read), "t.yaml", known_overlays=OVERLAYS)
    except InputError:
        return
    for write in detect.WRITERS.values():
        write(network_of(plan))


def _policy(data: bytes) -> None:
    wanted = policy.parse(_text(data), "p.yaml", HOSTS)
    policy.document(wanted, HOSTS)


def _compose(data: bytes) -> None:
    tree = read_tree(_text(data), "compose.yaml", compose_file.LANGUAGE)
    found = compose_file.read(
        tree,
        compose_file.ComposeHost("a", ("a", "b"), {"A": "1"}, {"redis:7": "redis.tar"}, "shop", lambda path: "B='2'"),
    )
    require_none([*tree.problems, *(tree.problem("compose.yaml", each) for each in found.findings)], "compose.yaml")
    for each in containers.plan_containers(found.services, "/lab"):
        assert PlannedContainer.model_validate_json(each.model_dump_json()) == each


def _experiment(data: bytes) -> None:
    read = experiments.parse(_text(data), "e.yaml")
    scales = [read.quick_version()] if read.paper is None else [read.quick_version(), read.paper_version()]
    for experiment in (read, *scales):
        again = Manifest.model_validate_json(_manifest(experiment).model_dump_json(indent=1, by_alias=True))
        assert again.experiment == experiment
    samples = matrix(read, _plan(read.topology if read.topology in _TOPOLOGIES else "topologies/chain6.yaml"))
    assert all(re.fullmatch(r"[A-Za-z0-9.,%=_-]+", sample.id) for sample in samples)
    for sample in samples[:3]:
        read.measurement(sample.measurement).under(sample.condition)


def _manifest(experiment: Experiment) -> Manifest:
    return Manifest(
        minigts="0",
        experiment=experiment,
        topology_sha256="",
        plan=_plan("topologies/pair.yaml"),
        provider="uml",
        machine=Hardware(cpu="", cores=1, memory_mb=1, kernel=""),
        samples_planned=0,
        started="",
    )


_TOPOLOGIES = {f"topologies/{path.name}" for path in (PROJECT / "topologies").glob("*.yaml")}


@cache
def _plan(topology: str) -> Plan:
    return topologies.load(PROJECT / topology)


def _mutate_experiment(seed: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Of a part of the file, so that a mutant is read in a moment: without comments, with some of its entries."""
    lines = [line for line in seed.decode().splitlines(keepends=True) if line.strip() and not line.startswith("#")]
    kept: list[str] = []
    for block in re.split(r"(?m)^(?=\S)", "".join(lines)):
        head, *entries = re.split(r"(?m)^(?=  - )", block)
        if entries:
            some = max(1, round(len(entries) * chance.random() ** 2))
            kept.append(head + "".join(entry for entry in entries[:some]))
        elif not block.startswith("description"):
            kept.append(block)
    return mutate_text("".join(kept).encode(), others, chance)
