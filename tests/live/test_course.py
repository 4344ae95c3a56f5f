"""A lab's course has the same fingerprint each time, on a busy machine, too; where another one parts is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from live.conftest import MakeLab
from live.explored import explored
from live.measured import measured
from live.program import Program, spinning
from minigts.cli.views.labs import lab_facts
from minigts.lab import Lab
from minigts.providers.base import HasCourse
from minigts.providers.course import NS_PER_S, RECORD, RecordedCourse
from minigts.results import courses, manifest
from minigts.results.course_difference import difference_lines, interval, parting
from minigts.results.courses import LabCourse

pytestmark = pytest.mark.virtual

LOSSY = """\
name: lossy
seed: {seed}
hosts: {{h1: , h2: , h3: {{sysctls: {{net.ipv4.ip_default_ttl: {ttl}}}}}}}
links:
  - {{ends: [h1, h2], rtt: 4ms, rate: 50mbit, loss: 2%}}
  - {{ends: [h2, h3], rtt: 6ms, rate: 50mbit}}
"""
EXPERIMENT = """\
name: echoes
title: Echoes and TCP over a link that loses
topology: {topology}
overlays: [none]
seed: 7
repetitions: 2
measurements:
  - {{name: echoes, tool: ping, paths: [first-to-each], options: {{count: 30, interval: 50ms}}}}
  - {{name: tcp, tool: iperf3-tcp, paths: [first-to-each], options: {{duration: 1s}}}}
"""


def experiment(place: Path, seed: int = 1, ttl: int = 64) -> Path:
    place.mkdir()
    (place / "lossy.yaml").write_text(LOSSY.format(seed=seed, ttl=ttl))
    (place / "echoes.yaml").write_text(EXPERIMENT.format(topology=place / "lossy.yaml"))
    return place / "echoes.yaml"


def fingerprint(run: Path) -> str:
    (facts,) = manifest.read(run).courses
    assert facts.events > 1000
    return facts.fingerprint


@pytest.mark.nightly
def test_an_experiment_has_the_same_course_again_on_a_busy_machine_and_another_with_another_seed(
    program: Program, tmp_path: Path
) -> None:
    same = experiment(tmp_path / "same")
    one = measured(program, same, tmp_path / "one")
    with spinning(4):
        two = measured(program, same, tmp_path / "two")
    assert (one / "samples.csv").read_bytes() == (two / "samples.csv").read_bytes()
    assert fingerprint(one) == fingerprint(two)
    said = program.succeeds("compare", str(one), str(two))
    assert re.search(r"course: the same, \d+ events in [\d.]+ s of the lab", said)

    other = measured(program, experiment(tmp_path / "other", seed=2), tmp_path / "other-results")
    assert fingerprint(other) != fingerprint(one)
    said = program.run("compare", str(one), str(other)).stdout
    assert re.search(r"course: they part between [\d.]+ s and [\d.]+ s of the lab, in what came from h\d", said)


@pytest.mark.nightly
def test_compare_names_the_first_event_of_two_recorded_runs(program: Program, tmp_path: Path) -> None:
    recording = Program(program.state, environment={RECORD: "all"})
    one = measured(recording, experiment(tmp_path / "a"), tmp_path / "one")
    other = measured(recording, experiment(tmp_path / "b", ttl=63), tmp_path / "other")
    said = program.run("compare", str(one), str(other)).stdout
    assert re.search(r"course: they part at [\d.]+ s of the lab, on h3; then: the lab came up and was measured", said)
    assert re.search(r"  A: at [\d.]+ s h3 .*64", said)
    assert re.search(r"  B: at [\d.]+ s h3 .*63", said)


def ended(lab: Lab, extra: str = "") -> RecordedCourse:
    """The lab's course at 6 s, with one ping more from that host at 3.5 s."""
    provider = lab.provider
    assert isinstance(provider, HasCourse)
    with provider.together():
        provider.sleep_until(3.5)
        if extra:
            provider.run(extra, ["ping", "-c", "1", "-q", "10.0.0.1"], timeout_s=10, check=False)
        provider.sleep_until(6)
        provider.run("h1", ["true"], timeout_s=10)
    return provider.course()


def test_one_ping_more_is_found_with_its_host_and_moment(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(RECORD, "all")
    text = LOSSY.format(seed=1, ttl=64)
    labs = [make_lab(text, name) for name in ("one", "two", "six")]
    plain, again, pinged = (ended(lab, extra) for lab, extra in zip(labs, ("", "", "h3"), strict=True))
    assert plain.fingerprint == again.fingerprint
    found = interval(plain, pinged)
    assert found is not None
    assert found.from_ns == 3 * NS_PER_S
    assert ("h3", "to") in found.chains

    both = [LabCourse(course=each) for each in (plain, pinged)]
    files = [tmp_path / "labs" / name / "course.recording" for name in ("one", "six")]
    exact = parting(both[0], both[1], (files[0], files[1]))
    assert exact is not None
    assert exact.host == "h3"
    assert exact.moment_ns == round(3.5 * NS_PER_S)
    assert '"ping"' in exact.events[1]
    assert next(difference_lines(both[0], both[1], (files[0], files[1]))).startswith(
        "they part at 3.5 s of the lab, on h3;"
    )
    assert pinged.recording is not None
    assert pinged.recording.why is None


def test_status_tells_the_fingerprint_that_the_lab_has_then(make_lab: MakeLab) -> None:
    lab = make_lab(LOSSY.format(seed=1, ttl=64), "seen")
    told, provider = lab_facts(lab)["course"], lab.provider
    assert isinstance(provider, HasCourse)
    course = provider.course()
    assert told == {"seconds": course.seconds, "fingerprint": course.fingerprint}
    assert course.seconds > 0


@pytest.mark.nightly
def test_a_replay_has_the_course_that_was_explored(program: Program, tmp_path: Path) -> None:
    (tmp_path / "lossy.yaml").write_text(LOSSY.format(seed=1, ttl=64))
    (tmp_path / "test.sh").write_text("#!/bin/sh\nminigts exec h1 -- ping -c 20 -i 0.1 -q h3\nexit 1\n")
    (tmp_path / "test.sh").chmod(0o755)
    made, found = explored(
        program, tmp_path / "results", tmp_path / "lossy.yaml", tmp_path / "test.sh", "--seeds", "1-2"
    )
    assert len({each.course for each in found.values()}) == 2
    kept = courses.LabCourse.model_validate_json((made / "failed" / "000001" / "course.json").read_text())
    assert kept.course.fingerprint == found[1].course
    assert kept.phases[0].doing.endswith("test begun")
    again = program.run("replay", str(made), "--seed", "1")
    assert f"course: the recorded course: {kept.course.events} events, {found[1].course}" in again.stderr
