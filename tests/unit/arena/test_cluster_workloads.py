"""What users of a cluster complain of, and where its faults are; hosts run nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_lab import Answering, fake_lab
from minigts.arena import boards, stage, workloads
from minigts.arena.boards import APPS, BOARDS
from minigts.arena.cluster_kinds import CLUSTER_KINDS, NODES, OBJECTS
from minigts.arena.expectations import Complaint
from minigts.arena.families import draw
from minigts.arena.kinds import BY_NAME, places_of
from minigts.arena.tickets import ticket
from minigts.lab import Lab
from minigts.lessons.breaks import LessonFault
from minigts.overlays import Endpoint

BOARD = "star-kubernetes"
HOSTS = ("gva", "brn", "zrh")


class Clustered(Answering):
    """Hosts on which all is well but for the lines that are lost."""

    lost: frozenset[str] = frozenset()
    asked = 0
    applied = ""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        if stdin:
            Clustered.applied = stdin.decode()
            return 0, ""
        inside = argv[0] == "nsenter"
        lines = _of_plane() if argv[0] == "env" else _view(inside=inside)
        Clustered.asked += argv[0] == "env"
        where = f"{'pod' if inside else 'host'} {host}: "
        return 0, "".join(f"{line}\n" for line in lines if not {line, where + line} & Clustered.lost)


def _of_plane() -> list[str]:
    servers = [
        f"pod {app.name} {host} 172.31.{number}.{5 + place} True"
        for number, host in enumerate(HOSTS)
        for place, app in enumerate(APPS)
    ]
    return [*(f"node {host} True" for host in HOSTS), *servers, *(f"enter {host} 1" for host in HOSTS)]


def _view(*, inside: bool) -> list[str]:
    known = {"kubernetes": "172.30.0.1", **{app.name: app.address for app in APPS}}
    opened = [*known, *(f"{app.name}-{host}" for app in APPS for host in HOSTS)]
    names = [f"name {name} {address}" for name, address in known.items()] if inside else []
    return [*(f"open {name} 1" for name in opened), *names]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    plan = boards.plan_of(BOARD, BOARD)

    class Overlay:
        def endpoints(self) -> dict[str, Endpoint]:
            return {name: Endpoint(name, "172.31.0.2", 1450, ("nsenter", "--all", "--target", "1")) for name in HOSTS}

    monkeypatch.setattr(workloads, "joined_overlay", lambda _lab: Overlay())
    monkeypatch.setattr(workloads, "HEAL_STEP_S", 0.01)
    Clustered.lost, Clustered.asked = frozenset(), 0
    return fake_lab(plan, tmp_path, monkeypatch, Clustered)


def found(lab: Lab) -> list[tuple[str, str, str, bool]]:
    return [(each.what, each.source, each.target, each.inside) for each in workloads.cluster_complaints(lab)]


def test_where_a_cluster_carries_all_nobody_complains(lab: Lab) -> None:
    assert found(lab) == []


@pytest.mark.parametrize(
    ("lost", "complaint"),
    [
        ("node brn True", ("node", "gva", "brn", False)),
        ("enter zrh 1", ("enter", "gva", "zrh", False)),
        ("host brn: open kubernetes 1", ("site", "brn", "kubernetes", False)),
        ("pod zrh: open web 1", ("site", "zrh", "web", True)),
        ("pod zrh: open store-gva 1", ("server", "zrh", "store-gva", True)),
        ("pod gva: name web 172.30.10.1", ("lookup", "gva", "web", True)),
    ],
)
def test_what_a_cluster_does_not_hold_is_a_complaint(
    lab: Lab, lost: str, complaint: tuple[str, str, str, bool]
) -> None:
    Clustered.lost = frozenset({lost})
    assert found(lab) == [complaint]


def test_a_server_that_is_not_ready_is_missed_and_not_asked(lab: Lab) -> None:
    Clustered.lost = frozenset({"pod web brn 172.31.1.5 True", *(f"{at} {host}: open web-brn 1" for at, host in WHERE)})
    (one,) = workloads.cluster_complaints(lab)
    assert (one.what, one.source, one.target, one.figure) == ("servers", "gva", "web", NODES - 1)


WHERE = [(at, host) for at in ("host", "pod") for host in HOSTS]


def test_a_cluster_is_given_time_to_heal_and_no_more(lab: Lab) -> None:
    workloads.heal(lab, 0.05)
    assert Clustered.asked == 1
    Clustered.lost = frozenset({"node brn True"})
    workloads.heal(lab, 0.05)
    assert Clustered.asked > 2


def test_a_cluster_is_given_what_it_carries_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "settle", lambda *_, **__: None)
    stage.equip(lab, draw("kubernetes", 1))
    assert Clustered.applied == BOARDS[BOARD].manifest
    Clustered.applied = ""
    stage.equip(lab, draw("kubernetes", 2))
    assert Clustered.applied == ""


def test_faults_of_objects_are_made_on_the_control_plane_and_named_by_the_object() -> None:
    plan = boards.plan_of(BOARD, BOARD)
    by_kind = {kind.name: [LessonFault(kind, place) for place in places_of(kind, plan)] for kind in CLUSTER_KINDS}
    assert all(by_kind.values())
    assert [each.hosts for each in by_kind["service-port"]] == [
        ("service/web",),
        ("service/store",),
        ("service/kube-dns",),
    ]
    assert {each.place.host for each in by_kind["service-port"]} == {"gva"}
    assert [each.hosts for each in by_kind["drained"]] == [(host,) for host in HOSTS]
    assert [each.hosts for each in by_kind["kubelet-dead"]] == [(host,) for host in HOSTS]
    assert [each.place.host for each in by_kind["server-refused"]] == ["brn", "zrh"]
    assert len(by_kind["no-way-to-pods"]) == 6
    named = {name for faults in by_kind.values() for each in faults for name in each.hosts}
    assert named == {*HOSTS, *OBJECTS}


def test_scripts_have_all_their_variables() -> None:
    for seed in range(1, 31):
        (fault,) = draw("kubernetes", seed).faults
        for name in ("name", "space", "node", "block", "server"):
            script = BY_NAME[fault.kind.name].do + BY_NAME[fault.kind.name].shows
            assert f"${name}" not in script or name in fault.place.variables, fault


def test_a_ticket_of_a_cluster_speaks_of_pods_and_services() -> None:
    plan = boards.plan_of(BOARD, BOARD)
    complaint = Complaint(what="site", source="brn", target="web", inside=True)
    said = {ticket(plan, (complaint,), f"kubernetes/{seed}") for seed in range(1, 31)}
    assert all("a pod on brn" in each and "the Service web" in each for each in said)
