"""Results of a lab in virtual time: nothing of the machine is in them, and where time counts, it is the lab's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from experiment_lab import Recorder, Replay, begin, chain, recorder_of
from test_experiment_run import ONE_OVERLAY, Overlays, go, rows

from minigts.experiment_language.model import Links
from minigts.experiments import run
from minigts.experiments.lab_control import RealLabControl
from minigts.fidelity.expectations import Measurements, expected_rows
from minigts.fidelity.host_load import LoadRecording, recording, taints
from minigts.fidelity.round_trips import link_rows
from minigts.judge.registry import WORDS
from minigts.lab import Lab, Settings
from minigts.providers.base import CommandResult
from minigts.report import comparison_page as shown
from minigts.report import render
from minigts.report.compare import compare, headline
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.topology.outage import SILENT
from minigts.topology.plan.elements import Processor
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

VIRTUAL = chain().model_copy(update={"time": "virtual"})
OF_THE_MACHINE = ("started", "seconds", "foreign_cores", "waited_cores", "steal_cores", "lag_ms")


class Clocked(Replay):
    """A replay whose lab has a clock of its own: a sample takes a second of it, a warm-up none."""

    def __init__(self, begun_s: float = 40.0) -> None:
        super().__init__()
        self.begun_s = begun_s

    def now_s(self) -> float:
        return self.begun_s + len(self.measured)

    def run(self, host: str, argv: Sequence[str], **how: Any) -> CommandResult:
        """As a provider in virtual time has it: the result's seconds are the lab's."""
        began_s = self.now_s()
        return replace(super().run(host, argv, **how), seconds=self.now_s() - began_s)


def unwatched() -> Recorder:
    @contextmanager
    def recording() -> Iterator[LoadRecording]:
        yield LoadRecording()

    return recording


def virtual_run(directory: Path, replay: Replay | None = None, experiment: Any = ONE_OVERLAY) -> Overlays:
    begin(directory, experiment, VIRTUAL)
    overlays = Overlays()
    go(directory, replay or Clocked(), overlays, unwatched())
    return overlays


def test_two_runs_give_the_same_samples_byte_for_byte(tmp_path: Path) -> None:
    """Also where the first has taken longer to come up."""
    for name, begun_s in (("a", 40.0), ("b", 40.01)):
        virtual_run(tmp_path / name, Clocked(begun_s))
    for table in ("samples.csv", "summary.csv", "claims.json"):
        assert (tmp_path / "a" / table).read_bytes() == (tmp_path / "b" / table).read_bytes()


def test_columns_of_the_machine_are_empty_and_the_raw_files_have_the_lab_s_own_time(tmp_path: Path) -> None:
    virtual_run(tmp_path)
    samples = rows(tmp_path / "samples.csv")
    assert {row[column] for row in samples for column in OF_THE_MACHINE} == {""}
    moments = [store.good(tmp_path, row["sample"]) for row in samples]
    assert [(raw.started, raw.seconds) for raw in moments if raw] == [
        (f"{40 + number:.6f}", 1.0) for number in range(len(samples))
    ]


def test_in_real_time_they_are_filled_as_ever(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, chain())
    go(tmp_path, Replay())
    assert all(row[column] for row in rows(tmp_path / "samples.csv") for column in OF_THE_MACHINE)


def test_no_figures_of_load_are_in_the_manifest(tmp_path: Path) -> None:
    virtual_run(tmp_path)
    manifest = manifests.read(tmp_path)
    assert (manifest.noise_after, manifest.guard) == (None, None)


def test_nothing_is_recorded_and_no_sample_is_marked_whatever_the_machine_does() -> None:
    with recording((1,), "virtual") as machine:
        sum(range(10**5))
    assert machine.load is None
    assert taints(machine.load) == ()
    with recording(()) as machine:
        pass
    assert machine.load is not None


def test_a_stage_in_virtual_time_asks_no_host_for_drops_nor_for_load() -> None:
    """A lab whose hosts answer nothing."""
    lab: Any = SimpleNamespace(plan=VIRTUAL)
    with RealLabControl(lab, lambda _: None).recording() as machine:
        pass
    assert machine.load is None


def test_the_processor_s_counters_are_not_watched(tmp_path: Path) -> None:
    text = ONE_OVERLAY.model_dump(mode="json", by_alias=True, exclude_none=True)
    text["measurements"][1]["watch"] = ["cpu"]
    watched = type(ONE_OVERLAY).model_validate(text)
    virtual_run(tmp_path, experiment=watched)
    assert not any(raw.around for row in rows(tmp_path / "samples.csv") if (raw := store.good(tmp_path, row["sample"])))


@pytest.mark.parametrize(("sample_s", "verified"), [(1.0, 0), (61.0, 1)])
def test_a_data_path_is_proven_again_by_the_lab_s_clock(tmp_path: Path, sample_s: float, verified: int) -> None:
    """On this machine's own clock all of it is over in a moment."""

    class Slow(Clocked):
        def now_s(self) -> float:
            return sample_s * len(self.measured)

    class Proven(Overlays):
        proofs = 0

        def verify(self, overlay: str) -> str:
            self.proofs += 1
            return super().verify(overlay)

    begin(tmp_path, ONE_OVERLAY, VIRTUAL)
    overlays, replay = Proven(), Slow()
    go(tmp_path, replay, overlays, unwatched())
    assert overlays.proofs == (1 + len(replay.measured) if verified else 2)
    assert run.VERIFIED_EVERY_S == 60


def probes(plan: Plan) -> tuple[Any, list[Sequence[str]]]:
    """A lab over whose links every round trip takes a second, and what it was asked for."""
    asked: list[Sequence[str]] = []

    def answer(host: str, argv: Sequence[str], **_: object) -> CommandResult:
        asked.append(argv)
        return CommandResult(host, tuple(argv), 0, json.dumps({"sent": 3, "rtts_us": [1e6] * 3}), "", 0.0)

    return SimpleNamespace(plan=plan, provider=SimpleNamespace(run=answer, pace_s=0.004)), asked


@pytest.mark.parametrize(("time", "tries"), [("real", 3), ("virtual", 1)])
def test_what_lies_outside_its_tolerance_would_be_the_same_again(time: str, tries: int) -> None:
    plan = parse(f"name: x\ntime: {time}\npair: {{link: {{rtt: 10ms}}}}\n", "t.yaml")
    lab, asked = probes(plan)
    row, _ = link_rows(lab, plan.links[0])
    assert not row.ok
    assert len(asked) == tries


@pytest.mark.parametrize(
    ("link", "quantity", "word"),
    [
        ("rtt: 10ms", "throughput", "falls-with-hops"),
        ("rtt: 10ms", "throughput", "level"),
        ("rate: 50mbit", "latency", "sum-of-segments"),
    ],
)
def test_an_expectation_about_the_processor_is_not_measured_and_says_so(link: str, quantity: str, word: str) -> None:
    assert word in WORDS
    text = f"name: x\ntime: virtual\nchain: {{hosts: 3, link: {{{link}}}}}\nexpect: [{{{quantity}: {word}}}]\n"

    class Unasked(Measurements):
        further_round_trips = ()

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} was measured")

        latencies = throughputs = property(lambda self: self.__getattr__("a figure"))  # type: ignore[assignment]

    lab: Any = None
    (row,) = expected_rows(parse(text, "t.yaml"), Unasked(lab, lambda _: None))
    assert (row.ok, row.measured) == (None, None)
    lack = {"throughput": "rate", "latency": "delay"}[quantity]
    assert row.note == f"says nothing in virtual time, where the processor is free: no link declares a {lack}"


def modelled(plan: Plan, *hosts: str, call_ns: int = 0) -> Plan:
    own = Processor(frame_ns=20_000, byte_ns=2.0, call_ns=call_ns)
    changed = [host.model_copy(update={"processor": own if host.name in hosts else None}) for host in plan.hosts]
    return plan.model_copy(update={"hosts": tuple(changed)})


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (chain(), "real time"),
        (VIRTUAL, "virtual time, with a free processor"),
        (
            modelled(VIRTUAL, "ams", "bra", "lon"),
            "virtual time, with a modelled processor (20000 ns a frame and 2 ns a byte)",
        ),
        (
            modelled(VIRTUAL, "ams", "bra"),
            "virtual time, with a modelled processor (20000 ns a frame and 2 ns a byte on ams and bra)",
        ),
        (
            modelled(VIRTUAL, "ams", call_ns=5_000),
            "virtual time, with a modelled processor "
            "(20000 ns a frame and 2 ns a byte and 5000 ns a system call on ams)",
        ),
    ],
)
def test_page_and_captions_name_the_time_and_the_processor_with_its_figures(
    tmp_path: Path, plan: Plan, words: str
) -> None:
    begin(tmp_path, ONE_OVERLAY, plan)
    go(tmp_path, Clocked(), recorder=recorder_of() if plan.time == "real" else unwatched())
    page = render(tmp_path).read_text()
    head, _, rest = page.partition("</header>")
    assert f"provider replay · {words} · " in head
    assert f"Provider: replay, in {words}." in rest


def test_results_of_two_times_are_compared_with_a_remark(tmp_path: Path) -> None:
    for name, plan in (("a", chain()), ("b", VIRTUAL), ("c", VIRTUAL)):
        begin(tmp_path / name, ONE_OVERLAY, plan)
        go(tmp_path / name, Clocked(), recorder=recorder_of() if plan.time == "real" else unwatched())
    found = compare(tmp_path / "a", tmp_path / "b")
    assert headline(found)[0] == (
        "small: A was measured in real time, B in virtual time, with a free processor; what takes processor time "
        "differs for that alone."
    )
    rows_ = [row for table in shown.tables(found) if table.heading == "Settings that differ" for row in table.rows]
    assert ("lab", "time") in [row[:2] for row in rows_]
    assert headline(compare(tmp_path / "b", tmp_path / "c")) == ["No difference: every sample is the same in both."]


@pytest.mark.parametrize(("time", "expected"), [("real", True), ("virtual", False)])
def test_what_a_cut_link_drops_is_expected_in_real_time_alone(
    time: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In virtual time nobody counts drops: there is nothing that could drop by itself."""
    done: list[tuple[object, ...]] = []
    lab = SimpleNamespace(plan=chain().model_copy(update={"time": time}), read_record=lambda: "before")
    stage = RealLabControl(cast("Lab", lab), lambda _: None)
    drops = SimpleNamespace(expect_once=lambda: done.append(("expected once",)), expected=None)
    stage.__dict__["drops"] = drops
    for name in ("set_links_up", "restore_links", "set_for_experiment"):
        monkeypatch.setattr(
            f"minigts.lab.{name}", lambda _lab, *what, name=name, **how: done.append((name, *what, how))
        )
    once = [("expected once",)] * expected
    stage.set_link("ams-bra", up=False)
    assert done == [*once, ("set_links_up", "ams", "bra", {"up": False, "how": SILENT})]
    done.clear()
    with stage.links_kept():
        pass
    assert done == [*once, ("restore_links", "before", {})]
    done.clear()
    stage.set_links(Links(rate="unlimited"))
    assert drops.expected is (True if expected else None)
    assert done == [("set_for_experiment", Settings(unlimited=True), {})]
