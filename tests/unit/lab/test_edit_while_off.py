"""A lab whose hosts and links change while one of its hosts is off: over which overlays that is refused, and how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fake_lab import fake_lab
from fake_provider import FakeProvider
from minigts.cli.app import app
from minigts.errors import HostFailed
from minigts.lab.lab import Lab
from minigts.overlays import catalogue
from minigts.overlays.phases import Joined
from minigts.overlays.teams import UNDERLAYS
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

PLAN = parse("name: three\nipv6: true\nchain: {hosts: [ams, bra, lju], link: {rtt: 10ms}}\n", "three.yaml")
ASKED = "the provider was asked"


class Altering(FakeProvider):
    """It can alter a lab, and says that it was asked to."""

    def require_room_for(self, plan: Plan) -> None:
        pass

    def alter(self, plan: Plan, progress: Callable[[str], None]) -> frozenset[str]:
        raise HostFailed(ASKED)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return fake_lab(PLAN, tmp_path / "state", monkeypatch, Altering, off=frozenset({"bra"}))


def everything(lab: Lab) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in lab.rundir.rglob("*") if path.is_file() and path.suffix != ".lock"}


def join(lab: Lab, overlay: str) -> None:
    ends = {host: {"ADDRESS": "10.0.0.1", "MTU": "1450"} for host in ("ams", "bra", "lju")}
    lab.put("overlay.json", Joined(name=overlay, programs="", ends=ends).model_dump_json())


CHANGES = [
    ("add", "host", "par", "ams", "rtt=2ms"),
    ("add", "link", "ams", "lju", "rtt=2ms"),
    ("remove", "host", "lju"),
]


OVERLAYS = sorted({*catalogue.known_names()} - {*UNDERLAYS})


@pytest.mark.parametrize(
    ("overlay", "change"), [*((name, CHANGES[0]) for name in OVERLAYS), *(("swarm", each) for each in CHANGES[1:])]
)
def test_over_an_overlay_it_is_refused_with_the_host_to_start(lab: Lab, overlay: str, change: tuple[str, ...]) -> None:
    join(lab, overlay)
    before = everything(lab)
    refused = CliRunner().invoke(app, list(change))
    assert refused.exit_code == 2, refused.output
    assert f"every host leaves overlay {overlay} and joins it anew" in " ".join(refused.stderr.split())
    assert "bra is off: minigts start bra" in " ".join(refused.stderr.split())
    assert everything(lab) == before


@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
@pytest.mark.parametrize("overlay", UNDERLAYS)
def test_plain_hosts_do_without_the_one_that_is_off(lab: Lab, overlay: str, change: tuple[str, ...]) -> None:
    join(lab, overlay)
    done = CliRunner().invoke(app, list(change))
    assert (done.exit_code, ASKED in done.stderr) == (1, True), done.output
