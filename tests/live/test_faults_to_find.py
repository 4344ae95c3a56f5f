"""`minigts break` on a lab: each fault has its effect, and is undone; what a student does, from start to check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import Program
from minigts.lab import Lab
from minigts.lessons import breaks
from minigts.lessons.break_kinds import KINDS
from minigts.lessons.model import lesson

pytestmark = [pytest.mark.touched("tools/minigts/lessons"), pytest.mark.virtual, pytest.mark.timeout(900)]
ROW = """
name: faults
hosts: {a: , b: , c: , d: }
links:
  - {ends: [a, b], rtt: 20ms, rate: 20mbit}
  - {ends: [b, c], rtt: 20ms, rate: 20mbit}
  - {ends: [c, d], rtt: 20ms, rate: 20mbit}
"""


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Lab]]:
    place = tmp_path_factory.mktemp("faults")
    (place / "faults.yaml").write_text(ROW)
    program = Program(place / "state")
    program.succeeds("up", str(place / "faults.yaml"))
    try:
        yield program, Lab(program.rundir("faults"))
    finally:
        program.run("down", "--all")


QUICK = ("no-route", "dead-daemon", "carrier", "carrier-one-end")


@pytest.mark.parametrize(
    "kind", [kind.name if kind.name in QUICK else pytest.param(kind.name, marks=pytest.mark.nightly) for kind in KINDS]
)
def test_a_fault_has_its_effect_and_is_mended(row: tuple[Program, Lab], kind: str) -> None:
    program, lab = row
    program.succeeds("break", "--seed", "ana", "--of", kind)
    fault = breaks.draw(lab.plan, "ana", [kind])
    assert breaks.shows(lab, fault)
    again = program.run("break", "--seed", "bor")
    assert (again.returncode, "is broken already" in again.stderr) == (2, True)
    other = next(host.name for host in lab.plan.hosts if host.name not in fault.hosts)
    assert program.run("break", "--answer", kind, other).stdout == f"ok  what: {kind}\nno  where: {other}\n"
    assert program.run("break", "--answer", "rule" if kind != "rule" else "mtu", fault.place.host).returncode == 1
    for right in fault.hosts:
        assert program.run("break", "--answer", kind, right).returncode == 0
    assert program.succeeds("break", "--reveal").startswith(f"{kind} on {fault.place.host}: ")
    program.succeeds("break", "--mend")
    assert not breaks.shows(lab, fault)


@pytest.mark.parametrize(("kind", "far"), [("carrier", "0"), ("carrier-one-end", "1")])
def test_an_unplugged_cable_is_seen_at_its_ends_and_plugged_in_again(
    row: tuple[Program, Lab], kind: str, far: str
) -> None:
    program, lab = row
    program.succeeds("break", "--seed", "ana", "--of", kind)
    fault = breaks.draw(lab.plan, "ana", [kind])
    (there,) = (port for port in lab.plan.host(fault.place.far_end).ports if port.link == fault.place.link)
    for host, port, carrier in (
        (fault.place.host, fault.place.variables["dev"], "0"),
        (fault.place.far_end, there.name, far),
    ):
        assert program.succeeds("exec", host, "--", "cat", f"/sys/class/net/{port}/carrier").strip() == carrier
    # By hand, as whoever plugs the cable in; then there is nothing left to undo.
    program.succeeds("link", fault.place.link, "up")
    assert not breaks.shows(lab, fault)
    program.succeeds("break", "--mend")
    assert lab.read_record().cut == frozenset()
    program.succeeds("link", fault.place.link, "down", "--silent")
    assert "is down already: take another seed" in program.run("break", "--seed", "ana", "--of", kind).stderr
    program.succeeds("link", fault.place.link, "up")


@pytest.mark.nightly
def test_a_student_finds_and_mends_a_fault(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "ana"
    here = ("--folder", str(folder))
    program.succeeds("lesson", "14", "start", "--seed", "ana", *here)
    program.succeeds("up", str(folder / "topology.yaml"))
    assert "not broken yet" in program.run("lesson", "14", "check", *here).stdout
    program.succeeds("lesson", "14", "break", *here)
    lab, fault = Lab(program.rundir("lesson-14")), lesson(14).fault("ana")
    assert breaks.shows(lab, fault)

    (folder / "answers.yaml").write_text(f"answers: {{what: {fault.kind.name}, where: {fault.place.host}}}\n")
    assert "still broken" in program.run("lesson", "14", "check", *here).stdout
    broken = breaks.require_broken(lab)
    program.succeeds("exec", broken.place.host, "--", "sh", "-c", broken.undo)  # as by hand
    assert "lesson 14: passed" in program.succeeds("lesson", "14", "check", *here)

    program.succeeds("lesson", "14", "break", *here)
    program.succeeds("break", "--mend")
    assert "mend it yourself" in program.run("lesson", "14", "check", *here).stdout
