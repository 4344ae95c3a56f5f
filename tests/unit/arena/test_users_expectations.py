"""What users complain of, judged by what hosts' scripts print; hosts run nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from fake_lab import Answering, fake_lab
from minigts.arena import boards, expectations
from minigts.lab import Lab
from minigts.overlays import Endpoint, policy
from minigts.topology.plan.plan import Plan

Key = tuple[str, str, str]


class Saying(Answering):
    """Hosts that all print the same lines, and which are asked for a host's own."""

    lines: ClassVar[dict[Key, str]] = {}

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        told = [f"{what} {of} {text}\n" for (what, source, of), text in Saying.lines.items() if source == host]
        return 0, "".join(told)


def all_well(plan: Plan) -> dict[Key, str]:
    """What the scripts print where nothing is wrong."""
    found: dict[Key, str] = {}
    for source in plan.hosts:
        found |= {("disk", source.name, source.name): "1", ("clock", source.name, source.name): "1800000000"}
        for target in plan.hosts:
            if target is source:
                continue
            rtt_ms = plan.path(source.name, target.name).rtt_ms
            said = {"reach": f"{rtt_ms + 0.5}", "pieces": f"{rtt_ms + 20}", "large": "1", "service": "1", "link": "1"}
            said |= {"loss": "0", "twice": "0", "order": "0", "jitter": "0.3", "transfer": "1", "ports": "1"}
            said |= {"rate": "9000000", "name": plan.own_address(target.name)}
            found |= {(what, source.name, target.name): text for what, text in said.items()}
    return found


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(expectations, "QUIET_S", 0.0)
    plan = boards.plan_of("row", "row")
    Saying.lines = all_well(plan)
    return fake_lab(plan, tmp_path, monkeypatch, Saying)


def found(lab: Lab) -> list[tuple[str, str, str]]:
    return [(each.what, each.source, each.target) for each in expectations.complaints(lab)]


def test_where_all_is_well_nobody_complains(lab: Lab) -> None:
    assert found(lab) == []


@pytest.mark.parametrize(
    ("what", "text", "complaint"),
    [
        ("reach", "none", "reach"),
        ("reach", "13.1", "slow"),
        ("reach", "1", "fast"),
        ("large", "none", "large"),
        ("pieces", "none", "pieces"),
        ("pieces", "60", "rate"),
        ("service", "none", "service"),
        ("transfer", "none", "transfer"),
        ("ports", "none", "ports"),
        ("loss", "1", "loss"),
        ("twice", "1", "twice"),
        ("order", "1", "order"),
        ("jitter", "3.1", "jitter"),
        ("link", "none", "link"),
        ("name", "10.9.9.9", "name"),
    ],
)
def test_what_does_not_hold_is_a_complaint(lab: Lab, what: str, text: str, complaint: str) -> None:
    Saying.lines[what, "ams", "bra"] = text
    assert found(lab) == [(complaint, "ams", "bra")]


def test_a_slow_transfer_a_full_disk_and_a_wrong_clock_are_complaints(lab: Lab) -> None:
    Saying.lines["rate", "lju", "bra"] = "2000000"
    Saying.lines["disk", "mil", "mil"] = "none"
    Saying.lines["clock", "ams", "ams"] = "1800000100"
    assert found(lab) == [("clock", "ams", ""), ("rate", "lju", "bra"), ("disk", "mil", "")]


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab with containers and a policy, where what the policy denies does not pass."""
    monkeypatch.setattr(expectations, "QUIET_S", 0.0)
    plan = boards.plan_of("row-romana", "row-romana")
    rules = boards.policy_of("row-romana")
    assert rules is not None

    class Overlay:
        def endpoints(self) -> dict[str, Endpoint]:
            prefix = ("nsenter", "--all", "1")
            return {host.name: Endpoint(host.name, host.address, 1500, prefix) for host in plan.hosts}

    monkeypatch.setattr("minigts.overlays.joined_overlay", lambda _lab: Overlay())
    monkeypatch.setattr(policy, "policy_in_force", lambda _lab: rules)
    names = [host.name for host in plan.hosts]
    Saying.lines = all_well(plan)
    made = fake_lab(plan, tmp_path, monkeypatch, Saying)
    # The lines are those of hosts and of their containers; only containers are held to the policy.
    for source in ("nic", "tou"):
        for target in set(names) - {source}:
            Saying.lines["service", source, target] = "none"
    return made


def test_what_a_policy_denies_is_no_complaint_until_it_passes(guarded: Lab) -> None:
    def inside() -> list[tuple[str, str, str]]:
        return [(e.what, e.source, e.target) for e in expectations.complaints(guarded) if e.inside]

    assert ("open", "nic", "par") in inside()  # it is reached
    for source in ("nic", "tou"):
        for target in ("par", "lyo"):
            Saying.lines["reach", source, target] = "none"
    assert inside() == []
    Saying.lines["service", "nic", "tou"] = "1"
    assert inside() == [("open", "nic", "tou")]
    Saying.lines["service", "nic", "tou"] = "none"
    Saying.lines["service", "par", "nic"] = "none"
    assert inside() == [("service", "par", "nic")]
    Saying.lines["reach", "par", "nic"] = "none"
    assert inside() == [("reach", "par", "nic")]
