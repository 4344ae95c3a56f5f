"""The user's own containers in a plan, and what becomes of them before anything is started."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest

from fake_lab import fake_lab
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab
from minigts.overlays import containers
from minigts.providers.base import Provider
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import parse

TOPOLOGY = """\
name: x
defaults: {host: {containers: [{name: cache, image: cache.tar}]}}
pair: {hosts: [a, b]}
hosts:
  c:
    containers:
      - name: web
        image: ../web.tar
        command: sh -c 'sleep 1'
        environment: {LEVEL: 3, WORDS: two words}
        ports: [80, "8080:81"]
        volumes: ["./site:/srv:ro", "/etc/ssl:/ssl", "data:/var"]
        restart: always
      - {name: fetched, image: docker-daemon:shop/web:1, command: [run, "a b"]}
links: [{ends: [b, c]}]
overlay: swarm
"""
ADDRESSES = {"cache.a": "10.0.0.1", "cache.b": "10.0.0.2", "web.c": "10.0.0.3"}


@pytest.fixture
def plan() -> Plan:
    return parse(TOPOLOGY, "/labs/mine/x.yaml")


def test_paths_begin_where_the_topology_lies(plan: Plan) -> None:
    web, fetched = plan.host("c").containers
    assert web.image == "/labs/web.tar"
    assert [volume.source for volume in web.volumes] == ["/labs/mine/site", "/etc/ssl", "data"]
    assert [volume.read_only for volume in web.volumes] == [True, False, False]
    assert fetched.image == "docker-daemon:shop/web:1"


def test_words_are_parted_as_a_shell_does(plan: Plan) -> None:
    web, fetched = plan.host("c").containers
    assert web.command == ("sh", "-c", "sleep 1")
    assert fetched.command == ("run", "a b")
    assert web.environment == ("LEVEL=3", "WORDS=two words")
    assert [(each.port, each.container_port) for each in web.ports] == [(80, 80), (8080, 81)]


def test_the_nearest_declaration_holds_as_a_whole(plan: Plan) -> None:
    assert [[one.name for one in host.containers] for host in plan.hosts] == [["cache"], ["cache"], ["web", "fetched"]]


def test_a_plan_is_read_back_as_it_was(plan: Plan) -> None:
    assert Plan.model_validate_json(plan_json(plan)) == plan


@pytest.mark.parametrize(
    ("host", "short"),
    [("a", {"cache": "10.0.0.1", "web": "10.0.0.3"}), ("c", {"web": "10.0.0.3"})],
)
def test_a_short_name_is_the_hosts_own_or_the_only_one(plan: Plan, host: str, short: dict[str, str]) -> None:
    lines = containers.names_file(plan.host(host), plan.hosts, ADDRESSES).splitlines()
    named = {line.split()[2]: line.split()[0] for line in lines if len(line.split()) == 3}
    assert lines[0] == "127.0.0.1 localhost"
    assert {line.split()[1]: line.split()[0] for line in lines[1:]} == ADDRESSES
    assert named == short


def test_the_engine_is_asked_for_what_was_declared(plan: Plan) -> None:
    asked = containers.settings(plan.host("c"), plan.host("c").containers[0], "minigts/image:0")
    assert asked == {
        "Image": "minigts/image:0",
        "Cmd": ["sh", "-c", "sleep 1"],
        "Env": ["LEVEL=3", "WORDS=two words"],
        "HostConfig": {
            "NetworkMode": "container:web.c.network",
            "RestartPolicy": {"Name": "always"},
            "Binds": [
                "/run/minigts/names.txt:/etc/hosts",
                "/var/lib/minigts/volumes/web/0:/srv:ro",
                "/var/lib/minigts/volumes/web/1:/ssl",
                "data:/var",
            ],
            "LogConfig": {"Type": "json-file"},
        },
    }


@dataclasses.dataclass
class Hosts:
    engine: str = "docker"
    name: str = "some"


@pytest.mark.parametrize(
    ("engine", "overlay", "words"),
    [
        ("docker", "none", "overlay none has no place for the containers of x: overlays that have are .*swarm"),
        ("namespace", "swarm", "provider some has no place for the containers of x"),
        ("docker", "swarm", "container cache of host a: there is no /labs/mine/cache.tar"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_started(plan: Plan, engine: str, overlay: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        containers.require(plan, cast("Provider", Hosts(engine)), overlay)


def test_a_file_on_a_host_gets_other_content_in_place_of_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = fake_lab(parse("name: x\nhosts: {a: }\n", "x.yaml"), tmp_path / "state", monkeypatch)
    file = PurePosixPath("/run/minigts/names/containers")
    (tmp_path / "before").write_text("10.0.0.1 cache.a\n10.0.0.3 web.c\n")
    lab.provider.put("a", tmp_path / "before", file)
    containers.fill(lab, lab.plan.host("a"), file, "10.0.0.2 cache.b\n")
    lab.provider.get("a", file, tmp_path / "now")
    assert (tmp_path / "now").read_text() == "10.0.0.2 cache.b\n"


ENGINE = "#!/bin/sh\necho 'Error: No such image: shop/web:1' >&2\nexit 1\n"


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (ENGINE, "gave no such image: Error: No such image: shop/web:1; pull or"),
        (None, "neither"),
    ],
)
def test_an_image_that_the_engine_lacks_is_said_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str | None, words: str
) -> None:
    if engine is not None:
        (tmp_path / "docker").write_text(engine)
        (tmp_path / "docker").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    alone = parse(
        "name: x\npair: {hosts: [a, b]}\n"
        "hosts: {c: {containers: [{name: fetched, image: 'docker-daemon:shop/web:1'}]}}\n"
        "links: [{ends: [b, c]}]\noverlay: swarm\n",
        "/labs/mine/x.yaml",
    )
    with pytest.raises(MinigtsError, match=words) as caught:
        containers.require(alone, cast("Provider", Hosts()), "swarm")
    assert caught.value.__notes__ == ["it is the image of container fetched of host c"]


def test_a_plan_without_containers_needs_no_place_for_them() -> None:
    containers.require(parse("name: x\npair: {}\n", "x.yaml"), cast("Provider", SimpleNamespace(engine="x")), "none")


def test_a_plans_own_words_are_distrusted(plan: Plan, tmp_path: Path) -> None:
    text = plan_json(plan).replace("docker-daemon:shop/web:1", "docker-daemon:--help")
    with pytest.raises(ValueError, match="names no image"):
        Plan.model_validate_json(text)


@pytest.mark.parametrize(
    ("name", "up", "found"),
    [
        ("web", ADDRESSES, ("c", "web", "10.0.0.3")),
        ("cache.b", ADDRESSES, ("b", "cache", "10.0.0.2")),
        ("web.c", {}, "container web.c is not up: no overlay with a place for containers is joined"),
        ("webb", ADDRESSES, "no container 'webb'; did you mean"),
        ("cache", ADDRESSES, "no container 'cache'"),
    ],
)
def test_a_container_is_found_by_its_name_where_it_is_up(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, name: str, up: dict[str, str], found: object
) -> None:
    lab = cast("Lab", SimpleNamespace(plan=plan))
    monkeypatch.setattr(containers, "_addresses", lambda _lab: up)
    if isinstance(found, str):
        with pytest.raises(InputError, match=re.escape(found)):
            containers.find(lab, name)
    else:
        assert tuple(vars(containers.find(lab, name)).values()) == found
