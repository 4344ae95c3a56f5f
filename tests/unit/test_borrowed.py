"""A lab that live tests borrow is given back as it was, whatever they have done to it."""

from __future__ import annotations

from pathlib import Path

import pytest
import tc_hosts

from live.borrowed import borrowed, quiet
from minigts import lab as labs
from minigts import overlays
from minigts.fidelity import measure
from minigts.lab import Lab, Settings
from minigts.topology.load import parse

TEXT = "name: chain\nchain: {hosts: 3, link: {rtt: 10ms, rate: 50mbit}}\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(tc_hosts.TcHosts, "pace_s", 0.0)
    tc_hosts.register(monkeypatch)
    lab = labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    overlays.join(lab, "none", quiet)
    measure.certify(lab, quiet)
    labs.set_link(lab, "h2", "h3", up=False)
    return lab


def state(lab: Lab) -> dict[str, object]:
    """All that is set on its hosts, and every file of its run directory."""
    network = tc_hosts.NETWORKS[lab.rundir]
    files = {str(path): path.read_bytes() for path in lab.rundir.rglob("*") if path.is_file()}
    return {"tbf": dict(network.tbf), "netem": dict(network.netem), "gro": set(network.gro), **files}


def meddle(lab: Lab) -> None:
    """What live tests do to a lab, and more."""
    labs.set_link(lab, "h1", "h2", up=False)
    labs.set_link(lab, "h2", "h3", up=True)
    labs.set_links(lab, Settings(unlimited=True, gro="on"))
    lab.write(lab.record.model_copy(update={"emulator_overhead_ms": 3.0}))
    labs.reshape(lab)
    tc_hosts.NETWORKS[lab.rundir].netem["h1", "eth1"]["delay"]["delay"] = 0.5
    measure.certify(lab, quiet)
    overlays.leave(lab, quiet)


def test_a_borrowed_lab_is_given_back_as_it_was(lab: Lab) -> None:
    before = state(lab)
    with borrowed("chain") as lent:
        assert lent == lab
        meddle(lent)
        assert state(lab) != before
    assert state(lab) == before


def test_also_when_a_test_breaks_off(lab: Lab) -> None:
    before = state(lab)
    with pytest.raises(KeyboardInterrupt), borrowed("chain") as lent:
        meddle(lent)
        raise KeyboardInterrupt
    assert state(lab) == before
