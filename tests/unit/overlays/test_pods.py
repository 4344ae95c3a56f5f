"""Pods of a cluster by their names: commands and logs on their nodes, and errors that list what there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_lab import Answering, fake_lab
from minigts import overlays
from minigts.artifacts.container_images import ContainerImage
from minigts.cli.app import app
from minigts.errors import CommandFailed, CommandTimeout, MinigtsError
from minigts.foreign import Foreign
from minigts.lab import Lab
from minigts.overlays import containers, pods
from minigts.overlays.phases import Joined, run_phase, write
from minigts.topology.read.load import parse

TEXT = """\
name: three
defaults: {host: {memory: 1GB}}
chain: {hosts: [plane, one, two], link: {rtt: 10ms}}
"""
PLAN = parse(TEXT, "three.yaml")
PODS = {
    "default/web-0": ("one", "", [("web", "c1", "running"), ("side", "c2", "ended with code 3")]),
    "default/late-0": ("", "0/3 nodes are available", [("late", "", "was not started")]),
    "shop/db-0": ("two", "", [("db", "", "waits: ErrImageNeverPull: it is not there")]),
}
LOG = "2026-11-27T21:04:05.1Z stdout P a long \n2026-11-27T21:04:05.2Z stdout F line\n"
ran: list[tuple[str, tuple[str, ...]]] = []
"""What ran on hosts, besides phases."""


class Cluster(Answering):
    """It answers as a control plane and as nodes that have these pods."""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        code, stdout = 0, ""
        if argv[-1] == "pods":
            assert host == "plane"
            for name, (node, why, containers) in PODS.items():
                made = [dict(zip(("name", "id", "state"), one, strict=True)) for one in containers]
                stdout += f"{name}={json.dumps({'node': node, 'uid': 'u', 'unscheduled': why, 'containers': made})}\n"
        elif argv[-1] == "start":
            stdout = "ADDRESS=172.31.0.2\nMTU=1500\nENTER=7\n"
        elif argv[-1] == "leave":
            raise CommandFailed(host, argv, 1, "", "abcdef.0123456789 is no token")
        elif argv[-1] == "has":
            stdout = "HAS=yes\n" if host == "plane" else ""
        elif argv[0] in ("bash", "sh", "kubectl"):
            ran.append((host, tuple(argv)))
            code, stdout = (0, LOG) if argv[0] != "sh" or argv[-2] == "/var/log/pods/default_web-0_u/web" else (2, "")
        return code, stdout


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Over which no overlay is laid yet."""
    monkeypatch.setattr(overlays.Overlay, "programs", lambda *_: None)
    made = fake_lab(PLAN, tmp_path / "state", monkeypatch, Cluster)
    ran.clear()
    return made


@pytest.fixture
def cluster(lab: Lab) -> Lab:
    overlays.join(lab, "kubernetes", lambda _: None)
    return lab


@pytest.mark.parametrize("word", ["pod/web-0", "pod/default/web-0", "pod/web-0:web"])
@pytest.mark.usefixtures("cluster")
def test_a_command_runs_in_the_pod_on_its_own_node(word: str) -> None:
    CliRunner().invoke(app, ["exec", word, "--", "ip", "address"])
    assert ran == [("one", ("bash", str(pods.ENTER), "c1", "ip", "address"))]


@pytest.mark.parametrize(
    ("word", "code", "message"),
    [
        ("pod/web", 2, "no pod/default/web; there are pod/default/late-0, pod/default/web-0, pod/shop/db-0; did you"),
        ("pod/shop/web-0", 2, "no pod/shop/web-0; there are pod/default/late-0, pod/default/web-0, pod/shop/db-0"),
        ("pod/web-0:sid", 2, "no container 'sid' in pod/default/web-0; there are web, side"),
        ("pod/web-0:side", 1, "pod/default/web-0: container side ended with code 3"),
        ("pod/late-0", 1, "pod/default/late-0: it is on no node: 0/3 nodes are available"),
        ("pod/shop/db-0", 1, "pod/shop/db-0: container db waits: ErrImageNeverPull: it is not there"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_a_pod_that_is_not_there_or_does_not_run_is_said(word: str, code: int, message: str) -> None:
    for verb in (["exec", word, "--", "true"], ["shell", word]):
        done = CliRunner().invoke(app, verb)
        assert message in done.output
        assert done.exit_code == code
    assert ran == []


@pytest.mark.usefixtures("lab")
def test_without_a_cluster_there_are_no_pods() -> None:
    done = CliRunner().invoke(app, ["exec", "pod/web-0", "--", "true"])
    assert "nothing is joined: minigts up --overlay kubernetes" in done.output
    assert done.exit_code == 2


def test_a_cluster_that_is_being_joined_has_no_pods_yet(lab: Lab) -> None:
    write(lab, Joined(name="kubernetes", programs=""))
    with pytest.raises(MinigtsError, match="overlay kubernetes is being joined, or its joining ended early") as caught:
        pods.control_planes(lab)
    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("cluster")
def test_logs_are_what_the_containers_have_written(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["logs", "pod/web-0"])
    assert shown.stdout == "==> pod/default/web-0: web <==\na long line\n"
    assert {host for host, _ in ran} == {"one"}
    CliRunner().invoke(app, ["logs", "pod/web-0", "--only", "web", "--into", str(tmp_path)])
    assert (tmp_path / "default.web-0" / "web.log").read_text() == "a long line\n"


HOSTILE = {
    "a container's name with a path": (
        "default/x",
        {"containers": [{"name": "../../y", "id": "c1", "state": "x"}]},
    ),
    "an absolute one": ("default/x", {"containers": [{"name": "/tmp/escaped", "id": "c1", "state": "running"}]}),
    "an id that is an option": ("default/x", {"containers": [{"name": "a", "id": "--network", "state": "running"}]}),
    "an uid with a path": ("default/x", {"uid": "/../../../etc"}),
    "a node with a path": ("default/x", {"node": "../one"}),
    "a pod's name with dots alone": ("default/..", {}),
    "a namespace with a terminal's escape": ("\x1b[2J/x", {}),
    "a third part": ("a/b/c", {}),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.usefixtures("cluster")
def test_a_control_plane_that_names_what_no_cluster_has_is_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod, changed = HOSTILE[name]
    told = {"node": "one", "uid": "u", "unscheduled": "", "containers": [{"name": "a", "id": "c1", "state": "running"}]}
    line = f"{pod}={json.dumps({**told, **changed})}\n"
    answers = Cluster.answer

    def answer(self: Cluster, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        return (0, line) if argv[-1] == "pods" else answers(self, host, argv, stdin)

    monkeypatch.setattr(Cluster, "answer", answer)
    into = tmp_path / "a" / "into"
    into.mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    done = CliRunner().invoke(app, ["logs", f"pod/{pod}", "--into", str(into)])
    assert "plane: what it says of its pods cannot be read" in done.output
    assert "\x1b" not in done.output
    assert done.exit_code == 1
    assert set(tmp_path.rglob("*")) == before
    assert ran == []


@pytest.mark.usefixtures("cluster")
def test_a_pod_without_a_log_says_why() -> None:
    done = CliRunner().invoke(app, ["logs", "pod/shop/db-0"])
    assert "pod/shop/db-0 has no log: container db waits: ErrImageNeverPull: it is not there" in done.output
    assert done.exit_code == 1


@pytest.mark.parametrize("own", [[], ["--on", "two"], ["--lab", "three"]])
@pytest.mark.parametrize("words", [["get", "nodes", "--lab", "x"], ["-n", "shop", "get", "nodes"]])
@pytest.mark.usefixtures("cluster")
def test_kubectl_runs_on_the_control_plane(own: list[str], words: list[str]) -> None:
    done = CliRunner().invoke(app, ["kubectl", *own, *words])
    assert done.exit_code == 0, done.output
    assert ran == [("plane", ("kubectl", *words))]


@pytest.mark.usefixtures("cluster")
def test_kubectl_of_an_unknown_node_is_refused() -> None:
    done = CliRunner().invoke(app, ["kubectl", "--on", "twoo", "get", "pods"])
    assert done.exit_code == 2
    assert "no node 'twoo'; there are plane, one, two; did you mean 'two'" in done.output


def test_an_image_is_loaded_into_the_nodes_that_lack_it(cluster: Lab, tmp_path: Path) -> None:
    run = overlays.run_on(cluster)
    (tmp_path / "web.tar").touch()
    image = ContainerImage(tmp_path / "web.tar", "archive", "k", ("sha256:1",), ("web:1",), runs=True)
    assert containers.load(cluster, image, cluster.plan.hosts[:2], run) == ["one"]


def test_who_has_written_nothing_has_an_empty_log() -> None:
    assert pods.text_of(Foreign("")) == ""


def test_a_line_that_tail_has_cut_off_is_kept_as_it_is() -> None:
    assert pods.text_of(Foreign("4:05.1Z stdout\n2026-11-27T21:04:05.2Z stderr F  x\n")) == "4:05.1Z stdout\n x\n"


def test_a_failed_phase_shows_no_secret(cluster: Lab) -> None:
    words = {"BOOTSTRAP_TOKEN": "abcdef.0123456789", "TOKEN": "abcdef", "ADDRESS": "10.0.0.1"}
    with pytest.raises(MinigtsError) as failed:
        run_phase(cluster, "leave", PLAN.hosts[0], words)
    assert "'BOOTSTRAP_TOKEN=…' 'TOKEN=…' ADDRESS=10.0.0.1" in str(failed.value)
    assert "… is no token" in str(failed.value)
    assert failed.value.__cause__ is None
    assert "abcdef" not in repr(failed.value.__dict__)


def test_an_error_that_hides_words_stays_what_it_is() -> None:
    late = CommandTimeout("h1", ["a", "secret"], 3, "", "of secret").hiding(["secret", ""])
    assert str(late) == "on h1: `a '…'` was ended after 3 s\n    of …"
    assert isinstance(late, CommandTimeout)
    assert str(CommandFailed("h1", ["a"], 1, "", "").hiding([])) == "on h1: `a` ended with code 1"
