"""A sweep: a topology's values by their places, a lab for each combination, one page of all of them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigts.cluster import jobs, merge_results
from minigts.cluster.engine import EngineFile, check_engine, is_here
from minigts.cluster.jobs import split
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiment_language.claims import expand_ranges
from minigts.experiments import prepare, run, run_folders
from minigts.language.tree import Data, Tree
from minigts.report import render
from minigts.report.read import is_sweep, labs_of, read_sweep
from minigts.results import manifest as manifests
from minigts.results import store, sweeps
from minigts.results.schema import RawSample
from minigts.topology.read.load import load
from minigts.topology.read.substitute import put_values

EXPERIMENT = """\
name: rows
title: Rows
topology: row.yaml
VARY
overlays: [none, swarm]
seed: 1
repetitions: 3
measurements:
  - {name: rtt, tool: ping, paths: [first-to-last], options: {count: 3}}
claims:
  - {latency: as-declared}
"""
ROW = "name: row\nchain: {hosts: 2, link: {delay: 5ms, rate: 20mbit}}\n"
PING = """\
PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time={ms} ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time={ms} ms
64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time={ms} ms

--- 10.0.0.2 ping statistics ---
3 packets transmitted, 3 received, 0% packet loss, time 20ms
rtt min/avg/max/mdev = {ms}/{ms}/{ms}/0.001 ms
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "row.yaml").write_text(ROW)
    return written(tmp_path, "{chain.hosts: [2 to 3], chain.link.delay: [1ms, 2ms]}")


def written(directory: Path, vary: str) -> Path:
    file = directory / "experiments" / "rows.yaml"
    file.write_text(
        EXPERIMENT.replace("VARY", f"vary: {vary}" if vary else "").replace("row.yaml", str(directory / "row.yaml"))
    )
    return file


def prepared(file: Path, replicates: int | None = None) -> Sequence[prepare.Prepared]:
    return prepare.prepare_sweep(file, paper=False, quick=False, only=(), time="virtual", replicates=replicates)


LINKS: Data = {
    "links": [
        {"ends": ["ams", "bra"], "rtt": "1ms"},
        {"name": "far", "ends": ["bra", "lju"], "rtt": "2ms"},
    ]
}


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("links.rtt", ["9ms", "9ms"]),
        ("links.ams-bra.rtt", ["9ms", "2ms"]),
        ("links.far.rtt", ["1ms", "9ms"]),
        ("links.1.rtt", ["1ms", "9ms"]),
    ],
)
def test_a_place_leads_to_all_links_or_to_one(place: str, expected: list[str]) -> None:
    data = put_values(Tree(LINKS), {place: "9ms"}).data
    assert isinstance(data, dict)
    assert [link["rtt"] for link in data["links"]] == expected  # type: ignore[index, union-attr, call-overload]
    assert LINKS["links"][0]["rtt"] == "1ms"  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("links.ams-bar.rtt", "no entry 'ams-bar'; write ams-bra, far; did you mean 'ams-bra'?"),
        ("links.2.rtt", "2 entries, from 0 to 1"),
        ("links.far.rtt.to", "there is no mapping that could have 'to'"),
    ],
)
def test_a_place_that_is_none_is_said(place: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        put_values(Tree(LINKS), {place: "9ms"})


def test_a_name_that_two_entries_have_is_no_place() -> None:
    twice = Tree({"links": [{"ends": ["ams", "bra"]}, {"ends": ["ams", "bra"]}]})
    with pytest.raises(InputError, match=r"links\.ams-bra\.rtt: 2 entries are called ams-bra"):
        put_values(twice, {"links.ams-bra.rtt": "9ms"})


def test_a_value_that_is_not_written_comes_to_its_place(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text("name: p\npair: {}\n")
    plan = load(tmp_path / "pair.yaml", values={"defaults.link.rtt": "7ms", "seed": "5"})
    assert plan.links[0].rtt_ms == 7


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2ms to 10ms by 4ms"], ["2ms", "6ms", "10ms"]),
        (["2 to 4", "9"], ["2", "3", "4", "9"]),
        (["0.5% to 1.5% by 0.5%"], ["0.5%", "1.0%", "1.5%"]),
        (["1ms to 2s"], ["1ms to 2s"]),
    ],
)
def test_steps(values: list[str], expected: list[str]) -> None:
    assert expand_ranges(values) == expected


@pytest.mark.parametrize("value", ["4ms to 2ms", "1 to 2 by 0", "1 to 999999"])
def test_steps_that_lead_nowhere(value: str) -> None:
    with pytest.raises(ValueError, match="are no steps"):
        expand_ranges([value])


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 50))
def test_steps_are_those_of_a_range(first: int, further: int, by: int) -> None:
    expected = [f"{value}ms" for value in range(first, first + further + 1, by)]
    assert expand_ranges([f"{first}ms to {first + further}ms by {by}ms"]) == expected


def test_each_combination_is_a_lab_and_says_which(experiment: Path) -> None:
    found = prepared(experiment)
    assert [each.experiment.variant for each in found] == [
        f"chain.hosts={hosts},chain.link.delay={delay}" for hosts in (2, 3) for delay in ("1ms", "2ms")
    ]
    assert [(len(each.plan.hosts), each.plan.links[0].rtt_ms) for each in found] == [(2, 2), (2, 4), (3, 2), (3, 4)]
    assert {each.samples[0].target for each in found} == {"h2", "h3"}
    again = load_text(found[3].sources["topology.yaml"], experiment.parent)
    assert again == found[3].plan


def load_text(text: bytes, place: Path) -> object:
    (place / "again.yaml").write_bytes(text)
    return load(place / "again.yaml", time="virtual")


def test_one_lab_is_prepared_as_ever_and_several_are_refused_where_one_is_wanted(experiment: Path) -> None:
    with pytest.raises(InputError, match="asks for 4 labs"):
        prepare.prepare(experiment, paper=False, quick=False, only=())
    one = written(experiment.parents[1], "")
    assert prepare.prepare(one, paper=False, quick=False, only=()).name == "rows"


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ("{chain.hosts: [1]}", "rows.yaml:4: vary: chain.hosts=1: .*does not say which hosts"),
        ("{chain.hosst: [2]}", "rows.yaml:4: vary: chain.hosst=2: .*hosst"),
        ("{pair.hosts.x.y: [2]}", "rows.yaml:4: vary: "),
        ("{hosts: [2]}", "is not a place in the topology's file"),
        ("{chain.hosts: [2, 2]}", "is given twice"),
        ("{chain.hosts: [2 to 200], chain.link.delay: [1ms to 200ms by 1ms]}", "asks for 39,800 labs; at most 10,000"),
        ("{chain.hosts: [5 to 2]}", "are no steps"),
        ("{chain.link.delay: [1ms, 1 ms]}", "is given twice"),
        ("{links.0.subnet: [10.1.0.0/24]}", "rows.yaml:4: vary.'links.0.subnet': '10.1.0.0/24': a lab's folder"),
        (f"{{hosts.h1.location: [{'x' * 190}]}}", "rows.yaml:4: vary: a lab's folder is named by its values"),
        (
            "{chain.hosts: [2]}\npaper: {vary: {chain.host: [3]}}",
            "rows.yaml:5: paper.vary.'chain.host': .*'chain.hosts'",
        ),
        ("{chain.hosts: [2, 3], seed: [1]}\nquick: {vary: {seed: [1 to 9000]}}", "rows.yaml:5: quick.vary: .* 18,000"),
    ],
)
def test_what_cannot_be_varied_is_said_with_its_line(tmp_path: Path, vary: str, said: str) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "row.yaml").write_text(ROW)
    with pytest.raises(InputError, match=said):
        prepared(written(tmp_path, vary))


def begun(experiment: Path, results: Path) -> tuple[Path, Sequence[Path]]:
    directories = run_folders.begin(results, prepared(experiment), "uml")
    return directories[0].parent, directories


def test_a_sweep_lies_in_one_folder_and_is_found_again(experiment: Path, tmp_path: Path) -> None:
    top, directories = begun(experiment, tmp_path / "results")
    assert top.parent == tmp_path / "results"
    assert top.name.startswith("rows-")
    assert is_sweep(top)
    assert set(store.runs_in(top)) == set(directories)
    reopened, again = run_folders.reopen(top)
    assert {each.experiment.variant for each in again} == {directory.name for directory in reopened}
    with (
        run_folders.lock_folder(top),
        pytest.raises(InputError, match="another run is writing here"),
        run_folders.lock_folder(directories[0]),
    ):
        pass


def test_samples_that_vary_are_no_labs(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "none.udp.a-b.cross=20mbit.r1.json").write_text("{}")
    assert not is_sweep(tmp_path / "raw")
    assert not is_sweep(tmp_path)


def test_a_campaign_with_a_sweep_is_none_itself(experiment: Path, tmp_path: Path) -> None:
    alone = tmp_path / "experiments" / "alone.yaml"
    alone.write_text(experiment.read_text().replace("name: rows", "name: alone").replace("vary:", "#"))
    both = prepare.prepare_all((experiment, alone), paper=False, quick=False, only=(), time="virtual")
    directories = run_folders.begin(tmp_path / "results", both, "uml")
    (top,) = (tmp_path / "results").iterdir()
    assert not is_sweep(top)
    assert is_sweep(top / "rows")
    for directory in directories:
        measured(directory)
    assert "vacuous in 4 of 4 labs" in render(top).read_text()
    assert (top / "rows" / "report.html").is_file()
    assert (top / "alone" / "report.html").is_file()


def measured(directory: Path, overlays: Sequence[str] = ("none", "swarm")) -> None:
    manifest = manifests.read(directory)
    (_, path), *_ = [(None, each) for each in manifest.plan.paths if each.source == "h1"][-1:]
    for sample in prepare.time_limits.samples(manifest):
        if sample.overlay in overlays:
            store.save(directory, raw(sample.id, path.rtt_ms + 0.05))
    run.finish(directory)


def raw(sample: str, ms: float = 5.0) -> RawSample:
    said = PING.format(ms=f"{ms:.3f}")
    return RawSample(
        sample=sample, host="h1", argv=("ping",), code=0, stdout=said, stderr="", started="1.0", seconds=1.0, attempt=1
    )


def test_all_labs_are_one_page(experiment: Path, tmp_path: Path) -> None:
    top, directories = begun(experiment, tmp_path / "results")
    for directory in directories:
        measured(directory)
    found = read_sweep(top)
    assert found.samples.total == 4 * 2 * 3
    assert {row.settings for row in found.summary} == {
        (("chain.hosts", hosts), ("chain.link.delay", delay)) for hosts in "23" for delay in ("1ms", "2ms")
    }
    assert [(claim.overlay, claim.verdict, claim.detail) for claim in found.claims] == [
        (overlay, "vacuous", "vacuous in 4 of 4 labs") for overlay in ("none", "swarm")
    ]
    page = render(top)
    assert page == top / "report.html"
    assert (top / "figures" / "rtt-by-chain-hosts.svg").is_file()
    assert "vacuous in 4 of 4 labs" in page.read_text()
    for directory in directories:
        assert f'<a href="{quote(directory.name)}/">{directory.name}</a>' in page.read_text()
    written = f"minigts run {top.name}/{found.labs[0]}/experiment.yaml --time virtual"
    assert written in page.read_text()


def table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_sweeps_tables_say_what_varied_and_there_is_one_of_all(experiment: Path, tmp_path: Path) -> None:
    top, directories = begun(experiment, tmp_path / "results")
    for directory in directories:
        measured(directory)
        values = dict(part.split("=") for part in directory.name.split(","))
        for name in ("samples.csv", "summary.csv"):
            rows = table(directory / name)
            assert rows
            assert all(row[place] == value for row in rows for place, value in values.items())
    assert sweeps.write_together(top, labs_of(top)) == ("all-samples.csv", "all-summary.csv")
    whole = table(top / "all-samples.csv")
    assert whole == [row for directory in labs_of(top) for row in table(directory / "samples.csv")]
    own = [(directory / "samples.csv").read_bytes().splitlines(keepends=True) for directory in labs_of(top)]
    joined = (top / "all-samples.csv").read_bytes().splitlines(keepends=True)
    assert joined == [*own[0], *(line for lines in own[1:] for line in lines[1:])]
    assert [(row["chain.hosts"], row["chain.link.delay"]) for row in whole[:: 2 * 3]] == [
        (hosts, delay) for hosts in "23" for delay in ("1ms", "2ms")
    ]
    assert is_sweep(top)
    assert read_sweep(top).files == ("all-samples.csv", "all-summary.csv")
    columns = {name for row in read_sweep(top).summary for name in row.cell.columns}
    assert not columns & {"chain.hosts", "chain.link.delay"}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            "{latency: rises, by: chain.hosts}",
            "claims[0].by: chain.hosts differs from lab to lab, and a claim is",
        ),
        ("{latency: rises, by: chain.hots}", "claims[0].by: no setting that varies 'chain.hots'"),
        (
            "{latency: bounded, where: {chain.hosts: 3}, range: under 9 ms}",
            "claims[0].where: chain.hosts differs",
        ),
    ],
)
def test_a_claim_across_labs_is_refused(experiment: Path, claim: str, said: str) -> None:
    """It would be undecided in each of them."""
    experiment.write_text(experiment.read_text().replace("{latency: as-declared}", claim))
    with pytest.raises(InputError) as refused:
        prepared(experiment)
    assert said in str(refused.value)


def test_a_claim_that_fails_in_one_lab_fails_and_says_where(experiment: Path, tmp_path: Path) -> None:
    top, directories = begun(experiment, tmp_path / "results")
    for directory in directories:
        measured(directory)
    claims = directories[2] / "claims.json"
    told = json.loads(claims.read_text())
    told[0] |= {"verdict": "failed", "detail": "too far"}
    claims.write_text(json.dumps(told))
    first = read_sweep(top).claims[0]
    assert first.verdict == "failed"
    assert first.detail == "vacuous in 3 of 4 labs; not in chain.hosts=3,chain.link.delay=1ms (failed: too far)"


def test_many_values_are_a_field_of_colours(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "row.yaml").write_text(ROW)
    top, directories = begun(
        written(tmp_path, "{chain.hosts: [2, 3], chain.link.delay: [1ms to 10ms]}"), tmp_path / "results"
    )
    for directory in directories:
        measured(directory, ["none"])
    assert "<image" in (render(top).parent / "figures" / "rtt-by-chain-hosts.svg").read_text()


def test_jobs_are_the_same_whatever_is_done_and_cover_what_is_lacking(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MEASURING_S", 0.0)
    top, directories = begun(experiment, tmp_path / "results")
    every = list(split(top, directories))
    assert len(every) == 4 * 2 * 3
    assert sum(job.describes for job in every) == 4
    assert [sample for job in every for sample in job.samples] == [
        sample.id for directory in directories for sample in prepare.time_limits.samples(manifests.read(directory))
    ]
    measured(directories[1], ["none"])
    left = list(split(top, directories))
    assert {job.number: (job.samples, job.manifest) for job in left}.items() <= {
        job.number: (job.samples, job.manifest) for job in every
    }.items()
    assert {job.number for job in every} - {job.number for job in left} == {7, 8, 9}


def test_the_lab_of_later_repetitions_has_seeds_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MEASURING_S", 0.0)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "row.yaml").write_text(ROW.replace("delay: 5ms", "delay: 5ms, loss: 1%"))
    experiment = written(tmp_path, "")
    directories = run_folders.begin(tmp_path / "results", prepared(experiment, replicates=1), "uml")
    seeds: dict[str, list[set[int | None]]] = {}
    for job in split(directories[0], directories):
        ports = [port for host in job.manifest.plan.hosts for port in host.ports]
        assert [port.incoming for port in ports] == [port.outgoing for port in reversed(ports)]
        seeds.setdefault(job.overlay, []).append({port.outgoing.seed for port in ports})
    own = {port.outgoing.seed for host in manifests.read(directories[0]).plan.hosts for port in host.ports}
    assert seeds["none"] == seeds["swarm"]
    assert seeds["none"][0] == own
    assert len(set.union(*seeds["none"])) == 3 * len(own)


def test_a_job_that_is_done_again_measures_its_lab_again_and_no_other_does(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MEASURING_S", 0.0)
    top, directories = begun(experiment, tmp_path / "results")
    before = {job.number: job.describes for job in split(top, directories)}
    described, undescribed = directories[:2]
    certificate = {"rtt": "held"}
    manifests.write(described, manifests.read(described).model_copy(update={"certificate": certificate}))
    measured(undescribed, ["none"])
    assert {job.number: job.describes for job in split(top, directories)}.items() <= before.items()


def test_a_job_whose_files_are_written_in_half_is_done_again(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, directories = begun(experiment, tmp_path / "results")
    job = next(split(top, directories))
    theirs = job.manifest.model_copy(update={"skipped": {"swarm": "no"}, "certificate": {"rtt": "held"}})
    files = {f"raw/{name}.json": raw(name).model_dump_json() for name in job.samples}
    files |= {"manifest.json": theirs.model_dump_json(by_alias=True), "certificate.json": "{}", "run.log": "done\n"}
    wrote = merge_results.write

    def broken_off(path: Path, text: str) -> None:
        if path.stem == job.samples[-1]:
            raise KeyboardInterrupt
        wrote(path, text)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(merge_results, "write", broken_off)
        merge_results.keep(top, job, files)
    assert next(split(top, directories)) == job
    assert manifests.read(directories[0]).certificate, "what has all samples has this, too"
    merge_results.keep(top, job, files)
    assert job.number not in {each.number for each in split(top, directories)}


def test_what_is_no_file_of_the_job_is_not_kept(experiment: Path, tmp_path: Path) -> None:
    top, directories = begun(experiment, tmp_path / "results")
    job = next(split(top, directories))
    with pytest.raises(MinigtsError, match="belongs to no sample of this job"):
        merge_results.keep(
            top, job, {"raw/other.json": "{}", manifests.FILE: job.manifest.model_dump_json(by_alias=True)}
        )


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("nowhere", "an engine is local"),
        ("local:0", "from 1 to 4096"),
        ("local:many", "from 1 to 4096"),
        ("absent.yaml", "absent.yaml"),
    ],
)
def test_an_engine_that_is_none(on: str, said: str) -> None:
    with pytest.raises((InputError, EnvironmentLacks), match=said):
        check_engine(on)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster: [x]\n", "engine.yaml:1: cluster"),
        ("cluster: distributed.SSHCluster\nworkers: 0\n", "engine.yaml:2: workers"),
        ("cluster: distributed.SSHCluster\nqueue: x\n", "engine.yaml:2: queue"),
        ("options: {}\n", "cluster"),
        ("cluster: subprocess.getoutput\noptions: {cmd: id}\n", "engine.yaml:1: cluster: 'subprocess.getoutput' is no"),
        ("cluster: distributed.Client\n", "engine.yaml:1: cluster: 'distributed.Client' is no"),
        ("cluster: dask_jobqueue.SLURMcluster\n", "did you mean 'dask_jobqueue.SLURMCluster'"),
    ],
)
def test_an_engines_file_that_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "engine.yaml").write_text(text)
    with pytest.raises(InputError, match=said):
        check_engine(str(tmp_path / "engine.yaml"))


@pytest.mark.parametrize(
    ("on", "here"), [("local", True), ("local:2", True), ("tcp://192.0.2.1:8786", False), ("local.yaml", False)]
)
def test_room_is_asked_for_where_the_workers_are_here(on: str, here: bool) -> None:
    assert is_here(on) is here


@pytest.mark.parametrize("on", ["tcp://", "tcp://192.0.2.1", "tcp://192.0.2.1:many", "tls://[::1"])
def test_an_address_that_is_none_is_said(on: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"--on {on}: ")):
        check_engine(on)


def test_an_engines_options_are_numbers_where_they_are_written_so(tmp_path: Path) -> None:
    options = "{cores: 1, memory: 8GB, walltime: '04:00:00', share: 0.5, account: 007, spot: true, job: 1_000}"
    (tmp_path / "engine.yaml").write_text(f"cluster: dask_jobqueue.SLURMCluster\noptions: {options}\n")
    found = check_engine(str(tmp_path / "engine.yaml"))
    assert isinstance(found, EngineFile)
    assert found.options == {
        "cores": 1,
        "memory": "8GB",
        "walltime": "04:00:00",
        "share": 0.5,
        "account": "007",
        "spot": True,
        "job": "1_000",
    }
