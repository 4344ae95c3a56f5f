"""Compose files: what becomes of them on a host, and what a lab cannot honour, each with its line and a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.overlays import containers
from minigts.topology.containers import ComposeSettings, Health, PlannedContainer, PublishedPort, Volume, waves
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read import compose_file
from minigts.topology.read.compose_values import substitute
from minigts.topology.read.load import load

TOPOLOGY = """\
name: x
overlay: swarm
hosts:
  a:
    compose: {file: shop/compose.yaml, images: {"redis:7": images/redis.tar}}
    environment: {LEVEL: debug, EMPTY: ""}
  b:
links: [{ends: [a, b]}]
"""
COMPOSE = """\
version: "3.8"
x-of-the-users-own: {what: ever}
services:
  client:
    image: shop/client:1
    depends_on: {store: {condition: service_started}}
    entrypoint: /run.sh
    command: serve --port ${PORT:-8000} "two words"
    environment: [LEVEL, "PORT=${PORT:-8000}", "PRICE=$$5", "WHO=given"]
    env_file: [variables.env]
    expose: ["8000"]
    working_dir: /srv
    user: "33:33"
    restart: on-failure
    labels: ["of=${LEVEL}"]
  store:
    image: redis:7
    container_name: db
    hostname: keeper
    ports: ["6380:6379", {target: 80, published: 8080}]
    volumes:
      - data:/data
      - ./site:/srv:ro
      - {type: bind, source: ../other, target: /other, read_only: true}
    networks: {default: {aliases: [cache]}}
    healthcheck: {test: redis-cli ping, interval: 1m30s, timeout: 500ms, retries: 3}
volumes: {data: }
"""


def plan_of(directory: Path, compose: str, topology: str = TOPOLOGY) -> Plan:
    (directory / "shop").mkdir(exist_ok=True)
    (directory / "shop" / "compose.yaml").write_text(compose)
    (directory / "lab.yaml").write_text(topology)
    return load(directory / "lab.yaml")


@pytest.fixture
def services(tmp_path: Path) -> tuple[PlannedContainer, ...]:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "variables.env").write_text(
        "# of the shop\nWHO=file\nexport A='x y' # said\nB=\"1\"\nC= 2 \n\n"
    )
    return plan_of(tmp_path, COMPOSE).host("a").containers


def test_services_are_containers_in_the_order_in_which_they_start(
    services: tuple[PlannedContainer, ...], tmp_path: Path
) -> None:
    store, client = services
    assert client == PlannedContainer(
        name="client",
        image="docker-daemon:shop/client:1",
        command=("serve", "--port", "8000", "two words"),
        environment=("WHO=given", "A=x y", "B=1", "C=2", "LEVEL=debug", "PORT=8000", "PRICE=$5"),
        restart="on-failure",
        beside=ComposeSettings(entrypoint=("/run.sh",), working_directory="/srv", user="33:33", labels=("of=debug",)),
    )
    assert store == PlannedContainer(
        name="store",
        image=f"{tmp_path}/images/redis.tar",
        ports=(PublishedPort(port=6380, container_port=6379), PublishedPort(port=8080, container_port=80)),
        volumes=(
            Volume(source="data", target="/data"),
            Volume(source=f"{tmp_path}/shop/site", target="/srv", read_only=True),
            Volume(source=f"{tmp_path}/other", target="/other", read_only=True),
        ),
        beside=ComposeSettings(
            hostname="keeper",
            names=("db", "keeper", "cache"),
            health=Health(
                test=("CMD-SHELL", "redis-cli ping"), interval_ns=90 * 10**9, timeout_ns=500 * 10**6, retries=3
            ),
        ),
    )


def test_the_engine_is_asked_for_what_the_file_says(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, COMPOSE.replace("    env_file: [variables.env]\n", ""))
    store, client = plan.host("a").containers
    asked = containers.settings(plan.host("a"), client, "minigts/image:0")
    assert {key: asked[key] for key in ("Entrypoint", "WorkingDir", "User", "Labels")} == {
        "Entrypoint": ["/run.sh"],
        "WorkingDir": "/srv",
        "User": "33:33",
        "Labels": {"of": "debug"},
    }
    assert containers.settings(plan.host("a"), store, "minigts/image:0")["Healthcheck"] == {
        "Test": ["CMD-SHELL", "redis-cli ping"],
        "Interval": 90 * 10**9,
        "Timeout": 500 * 10**6,
        "StartPeriod": 0,
        "Retries": 3,
    }


@pytest.mark.parametrize(
    ("host", "line"), [("a", "10.0.0.1 store.a store db keeper cache"), ("b", "10.0.0.1 store.a store")]
)
def test_further_names_are_known_on_the_files_host_alone(tmp_path: Path, host: str, line: str) -> None:
    plan = plan_of(tmp_path, COMPOSE.replace("    env_file: [variables.env]\n", ""))
    addresses = {"store.a": "10.0.0.1", "client.a": "10.0.0.2"}
    assert line in containers.names_file(plan.host(host), plan.hosts, addresses).splitlines()


SPREAD = """\
services:
  web:
    image: shop/web:1
    environment: [LEVEL]
    depends_on: [shop]
    x-minigts: {host: a}
  shop:
    image: shop/shop:1
    depends_on: [store]
    x-minigts: {host: a}
  store:
    image: shop/store:1
    depends_on: [disk]
    x-minigts: {host: b}
  disk:
    image: shop/disk:1
    x-minigts: {host: a}
"""
TWO = (
    TOPOLOGY.replace(', images: {"redis:7": images/redis.tar}', "")
    .replace("  b:\n", "  b: {compose: {file: shop/compose.yaml}}\n  c:\n")
    .replace("[{ends: [a, b]}]", "[{ends: [a, b]}, {ends: [b, c]}]")
)


def test_the_services_of_one_file_run_on_the_hosts_that_it_names(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SPREAD, TWO)
    assert {host.name: [one.name for one in host.containers] for host in plan.hosts} == {
        "a": ["disk", "shop", "web"],
        "b": ["store"],
        "c": [],
    }
    assert waves({host.name: host.containers for host in plan.hosts}) == [
        {"a": ["disk.a"]},
        {"b": ["store.b"]},
        {"a": ["shop.a", "web.a"]},
    ]
    assert Plan.model_validate_json(plan_json(plan)) == plan


def test_containers_that_wait_for_nothing_elsewhere_start_together(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SPREAD.replace("    depends_on: [store]\n", ""), TWO)
    (first, second) = waves({host.name: host.containers for host in plan.hosts})
    assert (first, second) == ({"a": ["shop.a", "web.a", "disk.a"]}, {"b": ["store.b"]})
    only_b = waves({"b": plan.host("b").containers})
    assert only_b == [{"b": ["store.b"]}]  # as after a restart of b, when disk.a runs already


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("    x-minigts: {host: b}\n", "", 11, "write x-minigts: {host: …} for each service"),
        ("x-minigts: {host: b}", "x-minigts: b", 14, "write the service's host, as in x-minigts: {host: a}"),
        ("x-minigts: {host: b}", "x-minigts: {on: b}", 14, "write the service's host, as in x-minigts: {host: a}"),
        ("x-minigts: {host: b}", "x-minigts: {host: c}", 14, "no host 'c'; hosts that take this file are a, b"),
        ("[LEVEL]", "[LEVER]", 4, "this host has no variable LEVER"),
        ("    depends_on: [disk]\n", "    privileged: true\n", 13, "the engine's default rights"),
    ],
)
def test_a_service_without_a_host_of_its_own_is_an_error(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        plan_of(tmp_path, SPREAD.replace(old, new), TWO)
    (problem, *_) = caught.value.problems
    assert words in problem.message
    assert problem.line == line


def test_a_plan_comes_back_as_it_was_and_notes_what_changes_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, COMPOSE.replace("    env_file: [variables.env]\n", ""))
    assert Plan.model_validate_json(plan_json(plan)) == plan
    assert plan.notes == (f"{tmp_path}/shop/compose.yaml:1: version: changes nothing in a lab",)


def test_a_hosts_own_containers_come_first_and_the_file_may_stand_in_the_defaults(tmp_path: Path) -> None:
    topology = """\
name: x
defaults: {host: {compose: shop/compose.yaml, environment: {PORT: "1"}}}
pair: {hosts: [a, b]}
hosts: {c: {containers: [{name: own, image: own.tar}], environment: {PORT: "2"}}}
links: [{ends: [b, c]}]
"""
    plan = plan_of(tmp_path, "services: {web: {image: web, command: run $PORT}}", topology)
    assert [[one.name for one in host.containers] for host in plan.hosts] == [["web"], ["web"], ["own", "web"]]
    assert [host.containers[-1].command for host in plan.hosts] == [("run", "1"), ("run", "1"), ("run", "2")]


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("plain", "plain"),
        ("$A", "1"),
        ("${A}${A}", "11"),
        ("$A-b", "1-b"),
        ("$$A", "$A"),
        ("${NO:-d}", "d"),
        ("${NO-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY-d}", ""),
        ("${A:-d}", "1"),
        ("${A:+d}", "d"),
        ("${NO+d}", ""),
        ("${EMPTY+d}", "d"),
        ("${EMPTY:+d}", ""),
        ("${A:?no}", "1"),
        ("${NO:-${A:-x}y}", "1y"),
        ("${NO:-a:b-c}", "a:b-c"),
        ("${NO:-}", ""),
    ],
)
def test_variables_are_filled_in_as_in_compose(written: str, filled: str) -> None:
    assert substitute(written, {"A": "1", "EMPTY": ""}) == filled


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("$NO", "this host has no variable NO: write it under the host's `environment:`, or a default"),
        ("${NO}", "your shell's variables are not used"),
        ("${NO:?set it}", "this host has no variable NO, which is required: set it"),
        ("${EMPTY:?}", "this host has no variable EMPTY, which is required"),
        ("100$", "has a \\$ that begins no variable: write \\$\\$"),
        ("${A", "has a brace that does not end"),
        ("${A!}", "names no variable"),
        ("${}", "names no variable"),
        ("${1}", "names no variable"),
    ],
)
def test_a_variable_that_is_none_is_an_error(written: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        substitute(written, {"A": "1", "EMPTY": ""})


def test_the_users_own_shell_gives_no_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "1")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / ".env").write_text("PORT=2\n")
    with pytest.raises(InputError, match=r"compose.yaml:1: services.web.command: this host has no variable PORT"):
        plan_of(tmp_path, "services: {web: {image: 'redis:7', command: run $PORT}}")


WEB = "services:\n  web:\n    image: redis:7\n"


@pytest.mark.parametrize("key", sorted(compose_file._REFUSED))
def test_every_key_that_a_lab_cannot_honour_is_named_with_a_reason(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError) as error:
        plan_of(tmp_path, f"{WEB}    {key}: something\n")
    (problem,) = error.value.problems
    assert (problem.file, problem.line) == (f"{tmp_path}/shop/compose.yaml", 4)
    assert problem.message == f"services.web.{key}: {compose_file._REFUSED[key]}"


OF_THE_SPECIFICATION = """
annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs container_name cpu_count
cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset credential_spec depends_on deploy
develop device_cgroup_rules devices dns dns_opt dns_search domainname entrypoint env_file environment expose extends
external_links extra_hosts gpus group_add healthcheck hostname image init ipc isolation label_file labels links logging
mac_address mem_limit mem_reservation mem_swappiness memswap_limit models network_mode networks oom_kill_disable
oom_score_adj pid pids_limit platform ports post_start pre_stop privileged profiles provider pull_policy read_only
restart runtime scale secrets security_opt shm_size stdin_open stop_grace_period stop_signal storage_opt sysctls tmpfs
tty ulimits use_api_socket user userns_mode uts volumes volumes_from working_dir
"""
"""The keys of a service by the Compose Specification."""


@pytest.mark.parametrize("key", OF_THE_SPECIFICATION.split())
def test_no_key_of_the_specification_is_unknown(tmp_path: Path, key: str) -> None:
    try:
        plan_of(tmp_path, f"services:\n  web:\n    image: redis:7\n    {key}: something\n")
    except InputError as told:
        assert "unknown key" not in str(told)


@pytest.mark.parametrize(
    ("key", "reason"), [("logging", "the engine keeps a container's output"), ("tty", "a container has no terminal")]
)
def test_what_a_lab_does_instead_is_said(tmp_path: Path, key: str, reason: str) -> None:
    with pytest.raises(InputError, match=f"services.web.{key}: {reason}"):
        plan_of(tmp_path, f"{WEB}    {key}: something\n")


@pytest.mark.parametrize(
    ("compose", "line", "words"),
    [
        ("- web\n", 1, "a list where a mapping is wanted"),
        ("volumes: {a: }\n", 1, "'services' is missing"),
        ("services: {}\n", 1, "services: there are none: write one"),
        ("services: {web: &one {image: a}, two: *one}\n", 1, "alias 'one': .*write out what it stands for"),
        ("services: {web: {command: x}}\n", 1, "services.web: 'image' is missing"),
        (f"{WEB}    comand: x\n", 4, "services.web.comand: unknown key; did you mean 'command'"),
        ("services:\n  Web:\n    image: redis:7\n", 2, "services.Web: 'Web' is not a name"),
        ("services:\n  b:\n    image: redis:7\n", 3, "container 'b' has a host's name"),
        ("services:\n  web:\n    image: -x\n", 3, "services.web.image: '-x' names no image"),
        (f"{WEB}    command: 'sh -c \"'\n", 4, "services.web.command: .* is no command"),
        (f"{WEB}    entrypoint: []\n", 4, "services.web.entrypoint: an empty command"),
        (f"{WEB}    environment: [NAME]\n", 4, "services.web.environment: this host has no variable NAME"),
        (f"{WEB}    environment: {{A B: x}}\n", 4, "services.web.environment.'A B': 'A B' is no variable's name"),
        (f"{WEB}    environment: text\n", 4, "'text' where a mapping or a list of NAME=VALUE is wanted"),
        (f"{WEB}    env_file: no.env\n", 4, "services.web.env_file: 'no.env' is not there"),
        (f"{WEB}    env_file: ../../etc/passwd\n", 4, "services.web.env_file: .*is not there"),
        (f"{WEB}    env_file: {{path: a, format: raw}}\n", 4, "services.web.env_file.*no key 'format'"),
        (f"{WEB}    ports: ['80']\n", 4, r"services.web.ports\[0\]: '80' leaves the host's port to chance: .* 80:80"),
        (f"{WEB}    ports: ['53:53/udp']\n", 4, r"services.web.ports\[0\]: .*a host publishes TCP ports only"),
        (f"{WEB}    ports: ['127.0.0.1:80:80']\n", 4, r"services.web.ports\[0\]: .*without an address"),
        (f"{WEB}    ports: ['80-81:80-81']\n", 4, r"services.web.ports\[0\]: .*one each"),
        (f"{WEB}    ports: ['80:99999']\n", 4, r"services.web.ports\[0\]: 99999 is no port"),
        (f"{WEB}    ports: [{{target: 80}}]\n", 4, r"services.web.ports\[0\]: .*leaves the host's port to chance"),
        (f"{WEB}    ports: [{{target: 80, mode: host}}]\n", 4, r"services.web.ports\[0\].mode: no key 'mode'"),
        (f"{WEB}    volumes: [/data]\n", 4, r"services.web.volumes\[0\]: '/data' has no name: .*data:/data"),
        (f"{WEB}    volumes: ['data:/data']\n", 4, r"services.web.volumes\[0\]: no volume 'data': declare it"),
        (f"{WEB}    volumes: ['~/x:/x']\n", 4, r"services.web.volumes\[0\]: .*a lab has no home directory"),
        (f"{WEB}    volumes: ['./x:/x:z']\n", 4, r"services.web.volumes\[0\]: .*no SELinux: leave z out"),
        (f"{WEB}    volumes: ['./x:x']\n", 4, r"services.web.volumes\[0\]: .* is no volume"),
        (f"{WEB}    volumes: [{{type: tmpfs, target: /x}}]\n", 4, "'tmpfs' is no kind of volume that a lab has"),
        (f"{WEB}    volumes: [{{type: bind, source: x, target: /x}}]\n", 4, "'x' is no source of the kind bind"),
        (f"{WEB}    restart: on-failure:3\n", 4, "services.web.restart: 'on-failure:3' is not a restart policy"),
        (f"{WEB}    depends_on: [store]\n", 4, "services.web.depends_on: no service 'store'"),
        (f"{WEB}    depends_on: [web]\n", 4, "services.web.depends_on: none of web can start first"),
        (
            f"{WEB}    depends_on: {{web: {{condition: service_healthy}}}}\n",
            4,
            "services.web.depends_on.web.condition: 'service_healthy': a lab starts services in order",
        ),
        (f"{WEB}    depends_on: {{web: {{required: false}}}}\n", 4, "depends_on.web.required: only true is possible"),
        (
            f"{WEB}    depends_on: {{two: {{restart: true}}}}\n  two: {{image: x}}\n",
            4,
            "depends_on.two.restart: only false is possible",
        ),
        (
            f"{WEB}    volumes: [{{type: bind, source: ./x, target: /x, consistency: cached}}]\n",
            4,
            r"services.web.volumes\[0\].consistency: no key 'consistency'",
        ),
        (f"{WEB}    networks: [other]\n", 4, "services.web.networks: no network 'other'"),
        (
            f"{WEB}    networks: {{default: {{ipv4_address: 10.0.0.1}}}}\n",
            4,
            "networks.default.ipv4_address: only `aliases` are honoured",
        ),
        (
            f"{WEB}    networks: [one]\n  two: {{image: x}}\nnetworks: {{one: }}\n",
            4,
            "web.networks: shares no network with two",
        ),
        (f"{WEB}networks: {{one: {{driver: overlay}}}}\n", 4, "networks.one.driver: all containers of a lab share"),
        (f"{WEB}volumes: {{one: {{external: true}}}}\n", 4, "volumes.one.external: a volume is a directory"),
        (f"{WEB}    container_name: A_b\n", 4, "services.web.container_name: 'A_b' is not a name"),
        (f"{WEB}    container_name: two\n  two: {{image: x}}\n", 2, "services.web: 'two' is two's name, too"),
        (f"{WEB}    healthcheck: {{test: [redis-cli]}}\n", 4, "services.web.healthcheck.test: a test is a text"),
        (f"{WEB}    healthcheck: {{interval: 5}}\n", 4, "healthcheck.interval: '5' is not a duration: .* 1m30s"),
        (f"{WEB}    healthcheck: {{interval: 25h}}\n", 4, "healthcheck.interval: '25h' is out of range"),
        (f"{WEB}    healthcheck: {{start_interval: 5s}}\n", 4, "healthcheck.start_interval: unknown key"),
        (f"{WEB}    working_dir: here\n", 4, "services.web.working_dir: 'here' is not a directory from the root"),
        (f"{WEB}    user: 'a b'\n", 4, "services.web.user: 'a b' is not a user"),
        (f"{WEB}    labels: ['a b=1']\n", 4, r"services.web.labels\[0\]: 'a b' is no label"),
    ],
)
def test_what_a_lab_cannot_do_is_one_error_with_its_line(tmp_path: Path, compose: str, line: int, words: str) -> None:
    topology = TOPOLOGY.replace(', images: {"redis:7": images/redis.tar}', "")
    with pytest.raises(InputError, match=words) as error:
        plan_of(tmp_path, compose, topology)
    (problem,) = error.value.problems
    assert problem.line == line or problem.file.endswith("lab.yaml")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("A=1\nno variable\n", "variables.env:2: 'no variable' is no variable"),
        ("A=$B\n", "variables.env:1: 'A=\\$B': a lab substitutes nothing here"),
        ('A="x\\n"\n', "variables.env:1: .*single quotes"),
        ("A='x\n", "variables.env:1: .*in one line"),
        ("A=\x1b\n", "holds the control character"),
    ],
)
def test_a_file_of_variables_is_read_as_it_stands(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "variables.env").write_text(content)
    with pytest.raises(InputError, match=words):
        plan_of(tmp_path, "services: {web: {image: 'redis:7', env_file: variables.env}}")


@pytest.mark.parametrize(
    ("compose", "words"),
    [
        ("no.yaml", r"lab.yaml:5: hosts.a.compose: 'no.yaml' is not there"),
        ("../x.yaml", r"lab.yaml:5: hosts.a.compose.file: '../x.yaml' is no path below the topology"),
        ("{file: shop/compose.yaml, images: {other: x.tar}}", r"hosts.a.compose.images.other: 'other' is no image of"),
        ("{file: shop/compose.yaml, images: {other: redis}}", r"hosts.a.compose.images.other: 'redis' is no image"),
        ("{files: shop/compose.yaml}", r"hosts.a.compose.files: unknown key; did you mean 'file'"),
        ("[shop/compose.yaml]", r"hosts.a.compose: a list where a mapping is wanted"),
        ("leads-out.yaml", r"hosts.a.compose: 'leads-out.yaml' leads out of the topology's directory"),
        ("shop", r"shop: is a directory, not a file"),
        ("empty.yaml", r"empty.yaml: nothing in it; a Compose file starts with `services:`"),
    ],
)
def test_a_file_that_is_none_is_said_where_it_is_named(tmp_path: Path, compose: str, words: str) -> None:
    (tmp_path / "leads-out.yaml").symlink_to("/etc/passwd")
    (tmp_path / "empty.yaml").touch()
    topology = TOPOLOGY.replace('{file: shop/compose.yaml, images: {"redis:7": images/redis.tar}}', compose)
    with pytest.raises(InputError, match=words):
        plan_of(tmp_path, WEB, topology)


def test_variables_of_programs_have_names_that_no_shell_could_set(tmp_path: Path) -> None:
    """As of Elasticsearch's image; they go to the container as they are, in a topology's own containers, too."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "of.env").write_text("xpack.security=false\n")
    compose = "services:\n  web:\n    image: web\n    env_file: of.env\n    environment: {VARIABLES}\n"
    for written in ("{discovery.type: single-node}", "[discovery.type=single-node]"):
        plan = plan_of(
            tmp_path,
            compose.replace("{VARIABLES}", written),
            TOPOLOGY.replace(', images: {"redis:7": images/redis.tar}', ""),
        )
        (web,) = plan.host("a").containers
        assert web.environment == ("xpack.security=false", "discovery.type=single-node")
        assert containers.settings(plan.host("a"), web, "x")["Env"] == [*web.environment]
        assert Plan.model_validate_json(plan_json(plan)) == plan


def test_what_an_engine_does_by_itself_may_be_said(tmp_path: Path) -> None:
    compose = """\
services: {web: {image: web, networks: [own], volumes: ["data:/data"], labels: {a.b/c: d}}}
networks: {own: {driver: bridge, internal: false, external: "false"}}
volumes: {data: {driver: local}}
"""
    plan = plan_of(tmp_path, compose, TOPOLOGY.replace(', images: {"redis:7": images/redis.tar}', ""))
    assert [container.name for container in plan.host("a").containers] == ["web"]
