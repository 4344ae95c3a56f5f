from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import typer.testing
from experiment_lab import SMALL, Recorder, Replay, begin, chain, endpoints, recorded, recorder_of, small

from minigts.cli.app import app
from minigts.errors import CommandTimeout, HostFailed, InputError, MinigtsError
from minigts.experiment_language.model import Links
from minigts.experiments.derive import derive
from minigts.experiments.load import parse
from minigts.experiments.matrix import matrix
from minigts.experiments.run import RunOutcome, RunProgress, run_together
from minigts.lab.queues import End, Queue
from minigts.overlays import Endpoint
from minigts.providers.base import CommandResult
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import Laid, PartFacts
from minigts.topology.outage import SILENT, Outage
from minigts.topology.schedule import Moment

PLAN = chain()
ONE_OVERLAY = parse(SMALL.replace("[none, swarm]", "[none]").replace("repetitions: 2", "repetitions: 1"), "x")
CALM = recorder_of()
MEASURED = len(matrix(ONE_OVERLAY, PLAN))


class Overlays:
    """Counts joins and leaves, and holds that they pair."""

    def __init__(self, join: Callable[[str], Mapping[str, Endpoint]] | None = None) -> None:
        self.calls: list[str] = []
        self.recording: Recorder = CALM
        self._join = join or (lambda overlay: endpoints(PLAN, overlay))
        self.with_ = Laid()

    def join(self, overlay: str) -> Mapping[str, Endpoint]:
        self.calls.append(f"join {overlay}")
        return self._join(overlay)

    def leave(self, overlay: str) -> None:
        self.calls.append(f"leave {overlay}")

    def verify(self, overlay: str) -> str:
        return f"{overlay} as ever"

    def overlay_record(self, overlay: str) -> Laid:
        return self.with_

    def second(self, host: str) -> Endpoint:
        raise InputError(f"no second container on {host}")

    def set_links(self, links: Links) -> None:
        self.calls.append(f"links {links.model_dump(exclude_defaults=True)}")

    def links_kept(self) -> AbstractContextManager[None]:
        return nullcontext()

    def play(self, moments: Sequence[Moment]) -> Iterable[tuple[float, Mapping[str, float]]]:
        return ()

    def queues(
        self, ends: Sequence[End], every_s: float, ended: Callable[[], bool]
    ) -> Iterable[tuple[float, Mapping[End, Queue]]]:
        return ()

    def set_link(self, name: str, *, up: bool, how: Outage = SILENT) -> None:
        self.calls.append(f"link {name} {'up' if up else 'down'}")

    def processor_seconds(self) -> Mapping[str, float]:
        return {}


def go(
    directory: Path, replay: Replay, overlays: Overlays | None = None, recorder: Recorder = CALM
) -> tuple[RunOutcome, list[RunProgress]]:
    seen: list[RunProgress] = []
    used = overlays or Overlays()
    used.recording = recorder
    (outcome,) = run_together([directory], replay, used, seen.append)  # type: ignore[arg-type]
    return outcome, seen


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def derived(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in ("samples.csv", "summary.csv", "claims.json")}


def test_a_run_takes_every_sample_once_overlay_by_overlay(tmp_path: Path) -> None:
    begin(tmp_path, small(), PLAN)
    replay, overlays = Replay(), Overlays()
    outcome, seen = go(tmp_path, replay, overlays)
    samples = matrix(small(), PLAN)
    assert overlays.calls == ["join none", "leave none", "join swarm", "leave swarm"]
    assert len(replay.measured) == len(samples) == outcome.done
    assert outcome.failed == ()
    assert [row["sample"] for row in rows(tmp_path / "samples.csv")] == [sample.id for sample in samples]
    assert [host for host, _ in replay.measured] == [sample.source for sample in samples]
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, len(samples), len(samples))
    assert seen[-1].seconds_left == pytest.approx(0, abs=0.01)
    assert manifests.read(tmp_path).ended is not None


def test_each_path_is_warmed_up_once_for_each_overlay(tmp_path: Path) -> None:
    begin(tmp_path, small(), PLAN)
    replay = Replay()
    go(tmp_path, replay)
    assert len(replay.warmed) == 2 * len({(sample.source, sample.target) for sample in matrix(small(), PLAN)})


def test_two_runs_with_the_same_outputs_give_the_same_tables_but_for_the_times(tmp_path: Path) -> None:
    tables = []
    for name in ("a", "b"):
        begin(tmp_path / name, small(), PLAN)
        go(tmp_path / name, Replay())
        samples = [{**row, "started": ""} for row in rows(tmp_path / name / "samples.csv")]
        tables.append((samples, (tmp_path / name / "summary.csv").read_bytes()))
    assert tables[0] == tables[1]


def test_deriving_again_changes_no_byte(tmp_path: Path) -> None:
    begin(tmp_path, small(), PLAN)
    go(tmp_path, Replay())
    before = derived(tmp_path)
    for name in before:
        (tmp_path / name).unlink()
    derive(tmp_path)
    assert derived(tmp_path) == before


@pytest.mark.parametrize("stop", range(1, MEASURED + 1))
@pytest.mark.parametrize("error", [KeyboardInterrupt, HostFailed])
def test_a_run_interrupted_at_any_sample_resumes_and_takes_none_twice(
    tmp_path: Path, stop: int, error: type[BaseException]
) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def interrupt(number: int, _argv: Sequence[str]) -> None:
        if number == stop:
            raise error("now")

    first, second, overlays = Replay(interrupt), Replay(), Overlays()
    with pytest.raises(error):
        go(tmp_path, first, overlays)
    assert overlays.calls == ["join none", "leave none"]
    assert manifests.read(tmp_path).ended is None
    outcome, _ = go(tmp_path, second)
    assert first.measured[: stop - 1] + second.measured == Replayed.all_of(tmp_path)
    assert outcome.done == MEASURED == len(rows(tmp_path / "samples.csv"))
    ids = [row["sample"] for row in rows(tmp_path / "samples.csv")]
    assert len(set(ids)) == len(ids)


class Replayed:
    """What the raw files say was run, in the matrix's order."""

    @staticmethod
    def all_of(directory: Path) -> list[tuple[str, tuple[str, ...]]]:
        found = [store.good(directory, sample.id) for sample in matrix(ONE_OVERLAY, PLAN)]
        return [(raw.host, raw.argv) for raw in found if raw is not None]


def test_a_finished_run_resumed_does_nothing(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    go(tmp_path, Replay())
    before, overlays, again = derived(tmp_path), Overlays(), Replay()
    go(tmp_path, again, overlays)
    assert (again.measured, overlays.calls, derived(tmp_path)) == ([], [], before)


def test_a_failed_sample_is_kept_and_tried_again(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def refuse(number: int, argv: Sequence[str]) -> CommandResult | None:
        return (
            CommandResult("ams", tuple(argv), 1, recorded("iperf3.18-refused.json"), "", 0.1) if number == 1 else None
        )

    outcome, _ = go(tmp_path, Replay(refuse))
    first = matrix(ONE_OVERLAY, PLAN)[0].id
    assert outcome.failed == ()
    kept = store.earlier(tmp_path, first)
    assert [(raw.attempt, raw.code) for raw in kept] == [(1, 1)]
    good = store.good(tmp_path, first)
    assert good is not None
    assert good.attempt == 2
    assert rows(tmp_path / "samples.csv")[0]["attempts"] == "2"


def test_a_sample_that_never_works_is_given_up_and_the_rest_goes_on(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def no_udp(_number: int, argv: Sequence[str]) -> CommandResult | None:
        if "-u" not in argv:
            return None
        return CommandResult("ams", tuple(argv), 1, recorded("iperf3.18-busy.json"), "", 0.1)

    outcome, _ = go(tmp_path, Replay(no_udp))
    assert outcome.failed == tuple(s.id for s in matrix(ONE_OVERLAY, PLAN) if s.measurement == "udp")
    bad = [row for row in rows(tmp_path / "samples.csv") if row["ok"] == "false"]
    assert {row["error"] for row in bad} == {"iperf3: the server is busy running a test. try again later (code 1)"}
    assert {(row["attempts"], row["value"]) for row in bad} == {("3", "")}
    assert "udp" not in {row["measurement"] for row in rows(tmp_path / "summary.csv")}
    again, _ = go(tmp_path, Replay())
    assert again.failed == ()
    assert {row["attempts"] for row in rows(tmp_path / "samples.csv") if row["measurement"] == "udp"} == {"4"}


def test_a_command_whose_time_is_up_is_a_failed_attempt(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def hang(number: int, argv: Sequence[str]) -> None:
        if number == 1:
            raise CommandTimeout("ams", argv, 15.5, recorded("iperf3.18-interrupted.json"), "")

    go(tmp_path, Replay(hang))
    failed = store.earlier(tmp_path, matrix(ONE_OVERLAY, PLAN)[0].id)[0]
    assert (failed.code, failed.seconds) == (124, 15.5)
    assert failed.error == "iperf3: interrupt - the client has terminated (code 124)"


def test_a_good_output_with_a_bad_code_is_no_result(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def odd(number: int, argv: Sequence[str]) -> CommandResult | None:
        return CommandResult("ams", tuple(argv), 3, recorded("iperf3.18-tcp.json"), "", 1.0) if number == 1 else None

    go(tmp_path, Replay(odd))
    assert store.earlier(tmp_path, matrix(ONE_OVERLAY, PLAN)[0].id)[0].error == "the command ended with code 3"


def test_an_overlay_without_an_endpoint_is_said_by_name(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    with pytest.raises(MinigtsError, match="overlay none has no endpoint on ams"):
        go(tmp_path, Replay(), Overlays(lambda _: {}))


def test_the_manifest_says_what_the_overlay_was_laid_with(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    overlays = Overlays()
    overlays.with_ = Laid(programs=PartFacts(key="flanneld", sha256="0" * 64), policy={"name": "shop"})
    go(tmp_path, Replay(), overlays)
    found = manifests.read(tmp_path).overlays["none"]
    assert (found.programs, found.policy) == (overlays.with_.programs, {"name": "shop"})
    assert found.endpoints["lon"].mtu == 1500


def test_facts_that_joining_put_into_the_manifest_are_kept(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def join(overlay: str) -> Mapping[str, Endpoint]:
        manifest = manifests.read(tmp_path)
        manifests.write(tmp_path, manifest.model_copy(update={"tools": {"iperf3": "3.18"}}))
        return endpoints(PLAN, overlay)

    go(tmp_path, Replay(), Overlays(join))
    found = manifests.read(tmp_path)
    assert found.tools == {"iperf3": "3.18"}
    assert found.overlays["none"].endpoints["lon"].mtu == 1500


def test_the_tables_say_what_was_measured_predicted_and_published(tmp_path: Path) -> None:
    begin(tmp_path, small(), PLAN)
    go(tmp_path, Replay())
    by_cell = {
        (row["overlay"], row["measurement"], row["source"], row["target"]): row
        for row in rows(tmp_path / "summary.csv")
    }
    first, second = by_cell["none", "latency", "ams", "bra"], by_cell["swarm", "latency", "bra", "lon"]
    assert (first["kind"], first["n"], first["published"], first["predicted"]) == ("path", "2", "21.75", "21.75")
    assert (second["kind"], second["published"], second["predicted"]) == ("segment", "4.7", "4.7")
    assert by_cell["none", "latency", "ams", "lon"]["published"] == "26.45"
    assert float(by_cell["none", "tcp", "ams", "lon"]["predicted"]) == pytest.approx(100 * 1448 / 1514)
    assert float(by_cell["swarm", "tcp", "ams", "lon"]["predicted"]) == pytest.approx(100 * 1398 / 1514)
    assert float(first["median"]) == pytest.approx(22.1, abs=0.05)
    verdicts = json.loads((tmp_path / "claims.json").read_text())
    assert [(entry["claim"], entry["overlay"], entry["verdict"]) for entry in verdicts] == [
        ("latency: sum-of-segments", "none", "undecided"),
        ("latency: sum-of-segments", "swarm", "undecided"),
        ("throughput: falls-with-hops of tcp", "none", "undecided"),
        ("throughput: falls-with-hops of tcp", "swarm", "undecided"),
    ]
    assert all("2 samples, and fewer than 5 decide nothing" in entry["detail"] for entry in verdicts)


def test_the_log_names_every_sample_and_how_the_run_ended(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    go(tmp_path, Replay())
    log = (tmp_path / "run.log").read_text()
    assert all(sample.id in log for sample in matrix(ONE_OVERLAY, PLAN))
    assert log.splitlines()[-1].endswith("ended, 0 samples without a result")


def test_a_sample_under_which_the_machine_was_starved_is_kept_and_taken_again(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    outcome, _ = go(tmp_path, Replay(), recorder=recorder_of(1.5, 1.5, 0.0))
    first = matrix(ONE_OVERLAY, PLAN)[0].id
    assert outcome.failed == ()
    assert [bool(raw.tainted) for raw in store.earlier(tmp_path, first)] == [True, True]
    row, *others = rows(tmp_path / "samples.csv")
    assert (row["tainted"], row["repeats"], row["attempts"], row["ok"]) == ("", "2", "3", "true")
    assert {(other["tainted"], other["repeats"]) for other in others} == {("", "0")}
    guard = manifests.read(tmp_path).guard
    assert guard is not None
    assert (guard.tainted, guard.repeated) == (0, 2)


def test_a_sample_that_is_starved_at_every_attempt_stays_and_is_marked(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    outcome, _ = go(tmp_path, Replay(), recorder=recorder_of(1.5, 1.5, 1.5, 0.0))
    assert outcome.failed == ()
    row = rows(tmp_path / "samples.csv")[0]
    assert (row["tainted"], row["foreign_cores"]) == ("other programs used 1.50 processors", "1.5")
    assert "tainted: other programs used 1.50 processors" in (tmp_path / "run.log").read_text()
    cells = {(line["measurement"], line["source"], line["target"]): line for line in rows(tmp_path / "summary.csv")}
    assert cells[row["measurement"], row["source"], row["target"]]["tainted"] == "1"


def test_on_a_machine_that_stays_starved_not_every_sample_is_repeated(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    replay = Replay()
    go(tmp_path, replay, recorder=recorder_of(1.5))
    first, *others = rows(tmp_path / "samples.csv")
    assert (first["repeats"], {other["repeats"] for other in others}) == ("2", {"0"})
    assert all(row["tainted"] for row in (first, *others))
    assert len(replay.measured) == MEASURED + 2
    guard = manifests.read(tmp_path).guard
    assert guard is not None
    assert (guard.tainted, guard.repeated) == (MEASURED, 2)


def test_a_tainted_sample_does_not_count_beside_others(tmp_path: Path) -> None:
    twice = parse(SMALL.replace("[none, swarm]", "[none]"), "x")
    begin(tmp_path, twice, PLAN)
    go(tmp_path, Replay(), recorder=recorder_of(1.5, 1.5, 1.5, 0.0))
    starved = rows(tmp_path / "samples.csv")[0]
    place = ("measurement", "source", "target")
    cell = next(
        r for r in rows(tmp_path / "summary.csv") if [r[key] for key in place] == [starved[key] for key in place]
    )
    assert (cell["n"], cell["tainted"]) == ("1", "1")


def test_a_run_interrupted_between_two_attempts_has_what_there_is(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)

    def interrupt(number: int, _argv: Sequence[str]) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, Replay(interrupt), recorder=recorder_of(1.5))
    derive(tmp_path)
    assert [row["repeats"] for row in rows(tmp_path / "samples.csv")] == ["1"]
    outcome, _ = go(tmp_path, Replay())
    assert outcome.done == MEASURED
    assert rows(tmp_path / "samples.csv")[0]["attempts"] == "2"


def test_a_report_of_a_run_without_tables_makes_them_of_its_samples(tmp_path: Path) -> None:
    begin(tmp_path, ONE_OVERLAY, PLAN)
    assert store.runs_without_tables(tmp_path) == ()  # nothing was taken yet

    def interrupt(number: int, _argv: Sequence[str]) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, Replay(interrupt))
    assert store.runs_without_tables(tmp_path) == (tmp_path,)
    ran = typer.testing.CliRunner().invoke(app, ["report", str(tmp_path)])
    assert ran.exit_code == 0, ran.stderr
    assert len(rows(tmp_path / "samples.csv")) == 2
    assert "This run is incomplete" in (tmp_path / "report.html").read_text()
    assert store.runs_without_tables(tmp_path) == ()
