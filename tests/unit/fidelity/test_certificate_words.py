"""What a certificate says in words, how it weighs losses in bursts, and the rate by a train of frames."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from minigts.dataplane.round_trip import echo_ms
from minigts.fidelity import certificate, trains
from minigts.fidelity.certificate import Certificate, CertificateRow
from minigts.lab import Lab
from minigts.lab.calibration import EchoReplies
from minigts.topology.read.load import parse

LINK = "name: x\ntime: virtual\nhosts: {{a: , b: }}\nlinks: [{{ends: [a, b], rtt: 2ms, {settings}}}]\n"


def row(subject: str, ok: bool | None) -> CertificateRow:
    return CertificateRow(subject=subject, quantity="RTT", unit="ms", declared=1, measured=1, tolerance=0.1, ok=ok)


def made(*rows: CertificateRow, **said: Any) -> Certificate:
    at = datetime(2026, 11, 29, tzinfo=UTC)
    return Certificate(lab="x", provider="uml", emulator_overhead_ms=0, rows=rows, measured_at=at, **said)


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ((True, True), "all within tolerance"),
        ((True, None), "1 of 2 judged, all within tolerance"),
        ((True, False, None), "1 of 3 outside the tolerance, 1 not judged"),
    ],
)
def test_the_verdict_counts_what_is_outside_and_what_was_not_judged(
    verdicts: tuple[bool | None, ...], words: str
) -> None:
    assert made(*(row(f"r{number}", ok) for number, ok in enumerate(verdicts))).verdict == words


def test_other_load_on_the_machine_is_a_list_in_words() -> None:
    said = made(row("a-b", True), busy=("0.5 cores of others", "the hypervisor took 2 %")).summary()
    assert said["the machine meanwhile"] == "0.5 cores of others; the hypervisor took 2 %"
    assert "the machine meanwhile" not in made(row("a-b", True)).summary()


def test_losses_in_bursts_are_worth_fewer_independent_ones() -> None:
    """Bursts of 4 packets end with a packet by 1/4 and begin by 0.02 / (4 * 0.98), so neighbouring states correlate by
    1 less the two. Within a burst all is lost: `times` packets are worth one independent one, and the interval is as
    much wider."""
    bursty = parse(LINK.format(settings="loss: 2%, burst: 4packets"), "x.yaml")
    even = parse(LINK.format(settings="loss: 2%"), "x.yaml")
    change = 1 / 4 + 0.02 / (4 * 0.98)
    sent, lost, times = 20_000, 400, 1 + 2 * (1 - change) / change
    wide, narrow = (
        certificate.loss_rows(plan, plan.links[0], given, given - missing, given - missing)[0].note
        for plan, given, missing in ((bursty, sent, lost), (even, round(sent / times), round(lost / times)))
    )
    assert wide.split(" probes: ")[1] == narrow.split(" probes: ")[1]


def train(monkeypatch: pytest.MonkeyPatch, settings: str, *, answered: int | None = None) -> CertificateRow:
    """A train over a link of 100 Mbit/s, whose replies come one frame's time after the other."""
    plan = parse(LINK.format(settings=f"rate: 100mbit, {settings}"), "x.yaml")
    frame_ms = (1500 + 14) * 8 / 100_000

    def probe(_provider: object, _source: str, _target: str, *, count: int, **_how: object) -> EchoReplies:
        first_ms = echo_ms(plan, plan.paths[0])
        return EchoReplies(count, tuple(first_ms + number * frame_ms for number in range(answered or count)))

    monkeypatch.setattr(trains.calibration, "probe", probe)
    return trains.row(cast(Lab, SimpleNamespace(plan=plan, provider=None)), plan.links[0])


def test_a_train_is_as_long_as_its_frames_take(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = train(monkeypatch, "queue: 150000B")
    assert (seen.measured, seen.ok, seen.quantity) == (100.0, True, "rate")
    assert seen.note == "by a train of 99 frames"


@pytest.mark.parametrize(
    ("settings", "answered", "why"),
    [
        ("queue: 5000B", None, "a queue of 5000 bytes holds no train of 4 frames"),
        ("queue: 150000B", 90, "9 of 99 frames did not come back"),
    ],
)
def test_a_train_that_does_not_fit_or_come_back_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, settings: str, answered: int | None, why: str
) -> None:
    seen = train(monkeypatch, settings, answered=answered)
    assert seen.measured is None
    assert why in seen.note
