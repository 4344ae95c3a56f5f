"""Several experiments as one campaign: what is written before anything starts, and how it is found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments import prepare, run_folders
from minigts.providers.uml.build import image
from minigts.results import manifest as manifests
from minigts.results import store
from minigts.results.schema import RawSample
from minigts.serve import runs
from minigts.topology.time import Time

PROJECT = Path(__file__).parents[3]
EXPERIMENTS = PROJECT / "experiments"
FILES = sorted(EXPERIMENTS.glob("*.yaml"))
EVERY_FILE = sorted(EXPERIMENTS.rglob("*.yaml"))
"""With those in folders, which are measured one by one or by their folder."""
OPEN = (
    "changing",
    "converge-bgp",
    "converge-ospf",
    "cross-traffic",
    "distance",
    "encrypted",
    "fifty-hops",
    "floor",
    "heal-mesh",
    "heal-ring",
    "ipv6",
    "jitter-hops",
    "link-down",
    "link-down-clos",
    "page-load",
    "twenty-hops",
)
"""Their questions are those that the documents left open: nothing has been published."""
CAMPAIGN_S = 47 * 60
"""Of measuring in real time; joining overlays comes to it. It was 45 minutes before `link-down`, and 46 with it."""


def prepared(*names: str, **how: bool) -> tuple[prepare.Prepared, ...]:
    chosen = {"paper": False, "quick": True, **how}
    return prepare.prepare_all([EXPERIMENTS / f"{name}.yaml" for name in names], only=(), **chosen)


def test_what_this_machine_lacks_is_said_before_there_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "missing", lambda: ["mmdebstrap is not installed: apt-get install mmdebstrap"])
    argv = ["run", str(EXPERIMENTS / "multihop.yaml"), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(app, argv)
    assert (done.exit_code, done.output) == (3, "minigts: mmdebstrap is not installed: apt-get install mmdebstrap\n")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "file",
    # At the study's length distance has a thousand labs.
    [pytest.param(file, id=file.stem, marks=pytest.mark.nightly if file.stem == "distance" else ()) for file in FILES],
)
def test_every_experiment_says_what_it_claims_and_what_was_published(file: Path) -> None:
    experiment = prepare.prepare_sweep(file, paper=False, quick=False, only=())[0].experiment
    assert experiment.name == file.stem
    assert experiment.claims
    assert bool(experiment.published) != (file.stem in OPEN)
    documents = ("report", "study", "Hermans and de Niet 2016", "InfraBuilder/benchmark-k8s-cni-2024-01")
    assert all(any(name in entry.source for name in documents) for entry in experiment.published)
    assert experiment.paper is not None
    assert sum(each.seconds for each in prepare.prepare_sweep(file, paper=True, quick=False, only=())) > 60


def test_all_of_them_quickly_are_measured_in_time() -> None:
    everything = prepare.prepare_all(FILES, paper=False, quick=True, only=(), time="real")
    assert sum(each.seconds for each in everything) < CAMPAIGN_S


def test_a_campaign_lies_in_one_folder_and_is_written_down_before_it_starts(tmp_path: Path) -> None:
    chosen = prepared("cpu", "fragmentation", "star")
    directories = run_folders.begin(tmp_path, chosen, "uml")
    assert [directory.name for directory in directories] == ["cpu", "fragmentation", "star"]
    assert {directory.parent.parent for directory in directories} == {tmp_path}
    found, again = run_folders.reopen(directories[0].parent)
    assert found == directories
    assert [(each.experiment, each.samples) for each in again] == [(each.experiment, each.samples) for each in chosen]


def test_one_experiment_is_no_campaign(tmp_path: Path) -> None:
    [directory] = run_folders.begin(tmp_path, prepared("cpu"), "uml")
    assert (directory.parent, directory.name[:4]) == (tmp_path, "cpu-")
    assert run_folders.reopen(directory)[0] == (directory,)


def test_experiments_of_one_topology_share_a_lab_and_finished_ones_need_none(tmp_path: Path) -> None:
    chosen = prepared("cpu", "fragmentation", "star")
    directories = run_folders.begin(tmp_path, chosen, "uml")
    groups = prepare.directories_by_plan(directories, chosen)
    assert [(plan.name, [path.name for path in own]) for plan, own in groups] == [
        ("lan-unlimited", ["cpu", "fragmentation"]),
        ("star-gts", ["star"]),
    ]
    for sample in chosen[2].samples:
        raw = RawSample(
            sample=sample.id, host="c1", argv=(), code=0, stdout="", stderr="", started="", seconds=1, attempt=1
        )
        store.save(directories[2], raw)
    directories, left = run_folders.reopen(directories[0].parent)
    assert [plan.name for plan, _ in prepare.directories_by_plan(directories, left)] == ["lan-unlimited"]


def test_only_reaches_those_that_have_it() -> None:
    chosen = prepare.prepare_all(FILES, paper=False, quick=True, only=("ovs", "within"))
    assert {each.experiment.name for each in chosen} == {"overlay-ovs", "overlay-host", "multihop-overlays"}
    with pytest.raises(InputError, match="no experiment has nonsense"):
        prepare.prepare_all(FILES, paper=False, quick=True, only=("nonsense",))


def test_only_leaves_out_an_experiment_that_has_it_at_another_scale_alone() -> None:
    with pytest.raises(InputError, match="no experiment has wireguard-bare"):
        prepare.prepare_all(FILES, paper=False, quick=True, only=("wireguard-bare",))
    chosen = prepare.prepare_all(FILES, paper=False, quick=False, only=("wireguard-bare",))
    assert {each.experiment.name for each in chosen} == {"floor", "ipv6"}


@pytest.mark.parametrize(
    ("time", "replicates", "repetitions"), [("real", None, 1), ("virtual", None, 3), ("virtual", 5, 1)]
)
def test_a_quick_run_repeats_where_that_costs_little(time: Time, replicates: int | None, repetitions: int) -> None:
    look = prepare.prepare(
        EXPERIMENTS / "multihop.yaml", paper=False, quick=True, only=(), time=time, replicates=replicates
    )
    assert look.experiment.repetitions == repetitions


@pytest.mark.parametrize(
    ("paper", "paper_repetitions", "quick_repetitions"),
    [("{duration: 2min}", 3, 1), ("{repetitions: 5, duration: 2min}", 5, 1)],
)
def test_the_study_s_length_keeps_the_repetitions_of_the_file(
    tmp_path: Path, paper: str, paper_repetitions: int, quick_repetitions: int
) -> None:
    """And a short look has one, as docs/experiment-language.md says of both."""
    file = tmp_path / "multihop.yaml"
    text = (EXPERIMENTS / "multihop.yaml").read_text().replace("{repetitions: 5, duration: 2min}", paper)
    file.write_text(text)
    at_length = prepare.prepare(file, paper=True, quick=False, only=(), time="real").experiment
    look = prepare.prepare(file, paper=False, quick=True, only=(), time="real").experiment
    assert (at_length.repetitions, look.repetitions) == (paper_repetitions, quick_repetitions)
    assert "repetitions" not in json.loads(look.model_dump_json())["quick"]


@pytest.mark.parametrize("file", EVERY_FILE, ids=lambda file: str(file.stem))
def test_a_quick_run_claims_nothing_of_what_it_leaves_out(file: Path) -> None:
    whole = prepare.prepare_sweep(file, paper=False, quick=False, only=())[0].experiment
    quick = prepare.prepare_sweep(file, paper=False, quick=True, only=())[0].experiment
    taken = {(key, str(value)) for each in quick.measurements for key, values in each.vary.items() for value in values}
    vary = {key for key, _ in taken}
    for claim in quick.claims:
        assert claim in whole.claims
        assert claim.overlays <= {*quick.overlays}
        assert {item for item in (*claim.where.items(), *claim.than.items()) if item[0] in vary} <= taken
    assert quick.claims, "a quick run that claims nothing shows nothing"


def test_a_quick_run_may_make_some_of_the_measurements() -> None:
    file = EXPERIMENTS / "validation" / "beside-ns3.yaml"
    whole = prepare.prepare(file, paper=False, quick=False, only=()).experiment
    quick = prepare.prepare(file, paper=False, quick=True, only=()).experiment
    names = [each.name for each in quick.measurements]
    assert names == [each.name for each in whole.measurements if each.name in whole.quick.measurements]
    assert 0 < len(names) < len(whole.measurements)
    assert {claim.of for claim in quick.claims} == {*names} < {claim.of for claim in whole.claims}
    assert all({*figure.measurements} <= {*names} for figure in quick.figures)


def test_a_part_claims_nothing_of_other_overlays() -> None:
    floor = prepare.prepare(EXPERIMENTS / "floor.yaml", paper=False, quick=False, only=("none", "romana")).experiment
    assert {name for claim in floor.claims for name in claim.overlays} == {"none", "romana"}


def test_a_folder_stands_for_its_experiments(tmp_path: Path) -> None:
    assert prepare.files([EXPERIMENTS]) == tuple(FILES)
    classics = EXPERIMENTS / "classics"
    assert prepare.files([classics]) == tuple(sorted(classics.glob("*.yaml")))
    with pytest.raises(InputError, match="holds no experiment"):
        prepare.files([tmp_path])


FOLDERS = ("classics", "cluster", "hardware", "validation")


def test_the_folders_that_a_folder_leaves_out_are_named() -> None:
    (line,) = prepare.skipped_folders([EXPERIMENTS, EXPERIMENTS / "classics", FILES[0]])
    counts = {name: len([*(EXPERIMENTS / name).glob("*.yaml")]) for name in FOLDERS}
    assert line.startswith(f"{EXPERIMENTS}: the files of its folders are not run: ")
    assert all(f"{name} ({count})" in line for name, count in counts.items())
    assert sum(counts.values()) + len(FILES) == len(EVERY_FILE)
    assert line.endswith(f"to run those of one: minigts run {EXPERIMENTS / 'classics'}")


def test_run_says_on_stderr_what_it_leaves_out() -> None:
    done = CliRunner().invoke(app, ["run", str(EXPERIMENTS), "--dry-run", "--quick"])
    assert (done.exit_code, "the files of its folders are not run: classics (" in done.stderr) == (0, True), done.stderr


def test_examples_lists_every_experiment() -> None:
    """As many as `minigts serve` offers."""
    listed = CliRunner().invoke(app, ["examples"]).stdout.splitlines()
    assert [*map(Path, listed)] == [
        *sorted((PROJECT / "topologies").rglob("*.yaml"), key=lambda path: (len(path.parts), path)),
        *FILES,
        *sorted({*EVERY_FILE} - {*FILES}),
    ]
    assert len(EVERY_FILE) == len(runs.names())


def test_the_same_experiment_twice_is_refused() -> None:
    with pytest.raises(InputError, match="two experiments are called cpu"):
        prepared("cpu", "cpu")


def test_the_manifest_of_a_run_that_never_started_can_be_read(tmp_path: Path) -> None:
    [directory] = run_folders.begin(tmp_path, prepared("window"), "uml")
    manifest = manifests.read(directory)
    assert (manifest.ended, manifest.certificate, manifest.skipped) == (None, {}, {})


@pytest.mark.parametrize("quick", [True, False])
def test_the_manifest_says_whether_a_run_is_a_quick_one(tmp_path: Path, quick: bool) -> None:
    [directory] = run_folders.begin(tmp_path, prepared("window", quick=quick), "uml")
    assert manifests.read(directory).quick is quick
    assert ('"quick": true' in (directory / manifests.FILE).read_text(encoding="utf-8")) is quick
