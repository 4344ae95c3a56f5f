"""A run in one file: the same bytes each time, and nothing believed of a file that comes from elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import random
import re
import shutil
import stat
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from minigts import paths
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments import provenance, reproduction
from minigts.providers.base import Provider
from minigts.report import render
from minigts.results import bundle, crate, gate, manifest, sweeps
from minigts.results.schema import PartFacts
from minigts.topology.read.load import load

SAMPLE = Path(__file__).parents[1] / "report_sample"
EXPERIMENT = "name: not read\n"
SHARE = 10
"""One bundle for so many of `--fuzz`."""
SLOW_S = 3.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A results folder, with a secret beside what is measured."""
    made = tmp_path / "sample-20261122-100000"
    shutil.copytree(SAMPLE, made)
    (made / "experiment.yaml").write_text(EXPERIMENT)
    (made / "run.lock").write_text("who ran it, and how")
    gate.sign(made, b"what acts")
    (made / "notes.txt").write_text("of the user's own")
    (made / "raw").mkdir(exist_ok=True)
    (made / "raw" / "a.json").write_text("{}")
    return made


@pytest.fixture
def packed(run: Path, tmp_path: Path) -> Path:
    bundle.write(run, tmp_path / "a.zip")
    return tmp_path / "a.zip"


def unpack(file: Path, limits: bundle.Limits = bundle.LIMITS) -> dict[str, bytes]:
    with bundle.unpack(file, file.parent, limits) as found:
        return contents(found)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_gives_the_same_bytes_whenever_it_is_packed(run: Path, packed: Path, tmp_path: Path) -> None:
    for path in run.rglob("*"):
        os.utime(path, (1, 1))
    bundle.write(run, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_bytes() == packed.read_bytes()


def test_what_comes_out_is_what_was_measured_and_nothing_that_lay_beside_it(run: Path, packed: Path) -> None:
    beside = ("run.lock", gate.SIGNATURE, "notes.txt", "README.md")
    wanted = {name: data for name, data in contents(run).items() if name not in beside}
    assert unpack(packed) == wanted
    assert "raw/a.json" in wanted
    assert [path.name for path in packed.parent.iterdir() if path.name.startswith(".")] == []


def test_a_campaign_keeps_its_folders(run: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    shutil.copytree(run, campaign / "one")
    shutil.copytree(run, campaign / "two")
    bundle.write(campaign, tmp_path / "c.zip")
    assert {name.split("/")[0] for name in unpack(tmp_path / "c.zip")} == {"one", "two"}


LABS = ("chain.hosts=3", "chain.hosts=5")
TOGETHER = ("report.html", "all-samples.csv", "all-summary.csv", "figures/latency.svg", "figures/latency.png")
"""What a sweep has beside its labs."""


def sweep(run: Path, folder: Path) -> None:
    for lab in LABS:
        shutil.copytree(run, folder / lab)
    (folder / "figures").mkdir()
    for name in TOGETHER:
        (folder / name).write_text(f"{name} of {folder.name}")
    (folder / "run.lock").write_text("who ran it, and how")


@pytest.mark.parametrize("place", ["", "one/"])
def test_a_sweep_has_the_files_to_which_its_page_leads(run: Path, tmp_path: Path, place: str) -> None:
    """Alone, and in a campaign with another experiment."""
    folder = tmp_path / "campaign"
    sweep(run, folder / place)
    if place:
        shutil.copytree(run, folder / "two")
        (folder / "report.html").write_text("of both")
    bundle.write(folder, tmp_path / "c.zip")
    found = unpack(tmp_path / "c.zip")
    assert {f"{place}{name}" for name in TOGETHER} <= found.keys()
    assert {name.removeprefix(place).split("/")[0] for name in found if name.startswith(place)} - {
        "two",
        "report.html",
    } == {
        *LABS,
        *(name for name in TOGETHER if name.startswith("all-")),
        "figures",
    }
    assert all(name in found for lab in LABS for name in (f"{place}{lab}/samples.csv", f"{place}{lab}/raw/a.json"))
    assert not [name for name in found if name.endswith("run.lock")]


def test_a_file_that_nobody_could_unpack_is_refused(run: Path, tmp_path: Path) -> None:
    with (run / "samples.csv").open("ab") as samples:
        samples.truncate(bundle.LIMITS.file_bytes + 1)
    with pytest.raises(InputError, match=r"a file of a bundle has at most \d+ MiB; results/samples.csv has more"):
        bundle.write(run, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_the_largest_file_that_is_packed_is_unpacked_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit holds for the file itself; with one byte less neither is done."""
    large = run / "raw" / "large.json"
    large.write_bytes(bytes(300_000))
    just, less = bundle.Limits(file_bytes=300_000), bundle.Limits(file_bytes=299_999)
    monkeypatch.setattr(bundle, "LIMITS", just)
    bundle.write(run, tmp_path / "a.zip")
    assert unpack(tmp_path / "a.zip", just)["raw/large.json"] == large.read_bytes()
    with pytest.raises(InputError, match=r"'results/raw/large.json' has more than"):
        unpack(tmp_path / "a.zip", less)
    monkeypatch.setattr(bundle, "LIMITS", less)
    with pytest.raises(InputError, match=r"results/raw/large.json has more"):
        bundle.write(run, tmp_path / "b.zip")


@pytest.mark.nightly
def test_every_link_of_a_campaign_s_pages_leads_into_its_bundle(run: Path, tmp_path: Path) -> None:
    """Pages as `minigts report` makes them; a link to a folder leads to what is in it."""
    folder = tmp_path / "campaign"
    sweep(run, folder / "one")
    for each in (*TOGETHER, "run.lock"):
        (folder / "one" / each).unlink()
    sweeps.write_together(folder / "one", [folder / "one" / lab for lab in LABS])
    shutil.copytree(run, folder / "two")
    render(folder)
    bundle.write(folder, tmp_path / "c.zip")
    found = unpack(tmp_path / "c.zip")
    pages = [name for name in found if name.endswith("report.html")]
    assert {"report.html", "one/report.html"} <= {*pages}
    for page in pages:
        links = re.findall(r'href="([^"#:]+)"', found[page].decode())
        for link in map(unquote, links):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
            assert place in found or any(name.startswith(f"{place}/") for name in found), (page, link)


def test_the_metadata_are_what_ro_crate_demands(run: Path, packed: Path) -> None:
    """The sentences with MUST of the specification 1.1; `rocrate-validator` looked at one such, too."""
    with zipfile.ZipFile(packed) as archive:
        document = json.loads(archive.read(crate.METADATA))
        names = archive.namelist()
    graph = {each["@id"]: each for each in document["@graph"]}
    assert len(graph) == len(document["@graph"])
    assert document["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    assert graph[crate.METADATA]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert graph[crate.METADATA]["about"] == {"@id": "./"}
    root = graph["./"]
    assert root["@type"] == "Dataset"
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    assert {each["@id"] for each in root["hasPart"]} == set(names) - {crate.METADATA}
    assert all("@type" in each for each in graph.values())
    assert references(document["@graph"]) <= graph.keys() | {crate.PROFILE}
    samples = graph["results/samples.csv"]
    assert samples["sha256"] == hashlib.sha256((run / "samples.csv").read_bytes()).hexdigest()


def references(value: object) -> set[str]:
    if isinstance(value, dict):
        return {value["@id"]} if value.keys() == {"@id"} else set().union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_no_file_is_overwritten(run: Path, packed: Path) -> None:
    with pytest.raises(InputError, match="is there already"):
        bundle.write(run, packed)


def test_a_run_that_has_not_ended_is_refused(run: Path, tmp_path: Path) -> None:
    manifest.write(run, manifest.read(run).model_copy(update={"ended": None}))
    with pytest.raises(InputError, match="run --resume"):
        bundle.write(run, tmp_path / "b.zip")


def test_no_link_gives_away_what_lies_elsewhere(run: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (run / "raw" / "b.json").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="leads out of"):
        bundle.write(run, tmp_path / "b.zip")


# Bundles from elsewhere


def altered(packed: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """The same bundle with other files in it, as somebody would make it who knows how."""
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    return zipped(packed.with_name("altered.zip"), files)


def zipped(place: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return place


def with_file(name: str) -> Callable[[dict[str, bytes]], object]:
    return lambda files: files.update({name: b"x"})


def without_sum(files: dict[str, bytes]) -> None:
    document = json.loads(files[crate.METADATA])
    for each in document["@graph"]:
        each.pop("sha256", None)
    files[crate.METADATA] = json.dumps(document).encode()


CHANGES: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "a figure": (
        lambda files: files.update({"results/samples.csv": b"ok\n"}),
        "'results/samples.csv' is not what its sum",
    ),
    "one more file": (with_file("results/raw/more.json"), "'results/raw/more.json' is not in its metadata"),
    "one file less": (lambda files: files.pop("results/samples.csv"), "'results/samples.csv' is missing"),
    "upwards": (with_file("results/../../escaped"), "is no name of a file"),
    "absolute": (with_file("/escaped"), "is no file of a bundle"),
    "empty word": (with_file("results//escaped"), "is no name of a file"),
    "beside": (with_file("escaped"), "is no file of a bundle"),
    "too deep": (with_file("results/a/b/c/d/e"), "is no file of a bundle"),
    "in a file": (with_file("results/samples.csv/x"), "what is a file"),
    "long name": (with_file("results/" + "x" * 300), "is no name of a file"),
    "no metadata": (lambda files: files.pop(crate.METADATA), "holds no ro-crate-metadata.json"),
    "metadata are no JSON": (with_file(crate.METADATA), "is not JSON"),
    "metadata are a number": (lambda files: files.update({crate.METADATA: b"7"}), "crate-metadata.json"),
    "metadata are deep": (lambda files: files.update({crate.METADATA: b"[" * 100_000}), "nested too deep"),
    "another crate": (lambda files: files.update({crate.METADATA: b'{"@graph": []}'}), "is of no RO-Crate 1.1"),
    "no sums": (without_sum, "is not what its sum says"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_bundle_that_was_altered_is_refused_in_words(packed: Path, change: str) -> None:
    how, words = CHANGES[change]
    file = altered(packed, how)
    before = {path.name for path in packed.parent.iterdir()}
    with pytest.raises(InputError) as refused:
        unpack(file)
    assert words in str(refused.value)
    assert str(file) in str(refused.value)
    assert {path.name for path in packed.parent.iterdir()} == before


def test_a_file_that_is_there_twice_is_refused(packed: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("results/samples.csv", b"x")
    with pytest.raises(InputError, match="twice"):
        unpack(packed)


def test_a_link_in_it_is_no_link(packed: Path) -> None:
    """Its content is a file's like any other, and has no sum."""
    entry = zipfile.ZipInfo("results/raw/link.json")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(InputError, match="not in its metadata"):
        unpack(packed)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (bundle.Limits(archive_bytes=1000), "MiB"),
        (bundle.Limits(directory_bytes=100), "list of files"),
        (bundle.Limits(files=2), "more than 2 files"),
        (bundle.Limits(file_bytes=1000), "has more than"),
        (bundle.Limits(all_bytes=10_000), "holds more than"),
    ],
)
def test_more_than_a_run_can_be_is_not_unpacked(packed: Path, limits: bundle.Limits, words: str) -> None:
    with pytest.raises(InputError, match=words):
        unpack(packed, limits)


def test_a_file_that_says_it_is_short_and_is_not_fills_no_disk(packed: Path) -> None:
    """Ten megabytes of zeros, packed a thousandfold."""
    file = altered(packed, lambda files: files.update({"results/raw/zeros.json": bytes(10_000_000)}))
    with pytest.raises(InputError):
        unpack(file, bundle.Limits(all_bytes=1_000_000))


def directory(place: Path) -> Path:
    place.mkdir()
    return place


def fifo(place: Path) -> Path:
    os.mkfifo(place)
    return place


def empty(place: Path) -> Path:
    place.touch()
    return place


def text(place: Path) -> Path:
    place.write_text("not packed at all\n" * 100)
    return place


def cut_at_its_end(place: Path) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("results/samples.csv", b"x")
    place.write_bytes(place.read_bytes()[:-10])
    return place


@pytest.mark.parametrize("make", [Path, directory, fifo, empty, text, cut_at_its_end])
def test_what_is_no_bundle_is_one_error(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(InputError, match=r"cannot be read|no regular file|no ZIP archive"):
        unpack(make(tmp_path / "bundle.zip"))


def test_a_bundle_that_is_damaged_at_random_is_whole_or_refused(packed: Path, request: pytest.FixtureRequest) -> None:
    whole, original = unpack(packed), packed.read_bytes()
    for number in range(max(20, request.config.getoption("--fuzz") // SHARE)):
        chance = random.Random(number)
        packed.write_bytes(hurt(original, chance))
        before = time.process_time()
        try:
            assert unpack(packed) == whole, f"damage {number}"
        except InputError as error:
            assert str(error).startswith(str(packed)), f"damage {number}"
        assert time.process_time() - before < SLOW_S, f"damage {number}"


def hurt(content: bytes, chance: random.Random) -> bytes:
    """One to four things done to it, most of them near the end, where a ZIP archive says what is in it."""
    for _ in range(chance.randint(1, 4)):
        start = chance.choice((0, len(content) * 9 // 10, max(0, len(content) - 60)))
        at = chance.randint(start, len(content))
        length = chance.randint(1, 40)
        match chance.randrange(5):
            case 0:
                content = content[:at]
            case 1:
                content = content[:at] + content[at + length :]
            case 2:
                content = content[:at] + chance.randbytes(length) + content[at:]
            case 3:
                content = content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
            case _:
                content = content[:at] + b"\xff" * length + content[at + length :]
    return content


# Before it is run again


def test_what_is_to_be_run_again_is_all_of_it(run: Path) -> None:
    topology = paths.project_root() / "topologies" / "chain6.yaml"
    shutil.copy(topology, run / "topology.yaml")
    sha256 = hashlib.sha256(topology.read_bytes()).hexdigest()
    plan = load(topology, time="real")
    manifest.write(run, manifest.read(run).model_copy(update={"plan": plan, "topology_sha256": sha256}))
    original = reproduction.read(run)
    found = manifest.read(run)
    (prepared,) = original.prepared
    assert prepared.plan == found.plan
    assert prepared.experiment == found.experiment
    assert len(prepared.samples) == found.samples_planned
    assert prepared.sources == {"experiment.yaml": EXPERIMENT.encode(), "topology.yaml": topology.read_bytes()}


def test_a_topology_that_is_not_the_manifests_is_refused(run: Path) -> None:
    (run / "topology.yaml").write_text("name: another\n")
    with pytest.raises(InputError, match="its SHA-256 is not the one"):
        reproduction.read(run)


def part(key: str, content: str) -> PartFacts:
    return PartFacts(key=key, sha256=hashlib.sha256(content.encode()).hexdigest())


IMAGE = {"image": part("a" * 16, "a")}
LOCK = {"iperf3": "3.18-2", "jq": "1.7"}


@pytest.mark.parametrize(
    ("here", "packages", "words"),
    [
        (IMAGE, LOCK, []),
        ({"image": part("a" * 16, "b")}, LOCK, ["same recipe, aaaaaaaaaaaaaaaa, and other bytes"]),
        ({"image": part("b" * 16, "b")}, LOCK, ["of another recipe: aaaaaaaaaaaaaaaa there, bbbbbbbbbbbbbbbb here"]),
        ({}, {}, ["here none is built"]),
        (
            IMAGE,
            {"iperf3": "3.19-1", "jq": "1.7"},
            ["1 of 2 packages have another version here: iperf3 3.18-2 → 3.19-1"],
        ),
    ],
)
def test_what_is_another_one_here_is_said(
    here: dict[str, PartFacts], packages: dict[str, str], words: list[str]
) -> None:
    lines = provenance.differences(IMAGE, here, LOCK, packages)
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))


def test_a_run_of_before_does_not_say_what_it_was_made_with() -> None:
    assert provenance.differences({}, IMAGE, {}, LOCK) == (
        "it does not say which image, kernel and clock it was made with",
    )


@pytest.mark.parametrize("verb", ["bundle", "reproduce"])
def test_the_verbs_say_what_is_wrong_in_a_line(tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [verb, "none.zip"])
    assert result.exit_code == 2
    assert result.output.startswith("minigts: none.zip: ")


class MadeOfParts:
    """A provider that says what its labs are made of, and nothing else."""

    def __init__(self, **directories: Path) -> None:
        self._directories = directories

    def part_directories(self) -> dict[str, Path]:
        return self._directories


def test_an_overlays_programs_have_the_digest_of_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path))
    place = tmp_path / "programs" / "0123456789abcdef"
    place.mkdir(parents=True)
    (place / "flanneld").write_text("one")
    one = provenance.programs(place.name)
    (place / "flanneld").write_text("another")
    other = provenance.programs(place.name)
    assert one is not None and other is not None
    assert (one.key, other.key) == (place.name, place.name)
    assert one.sha256 != other.sha256
    assert provenance.programs("") is None
    assert provenance.programs("fedcba9876543210") is None


def test_the_packages_are_those_of_the_part_that_has_their_list(tmp_path: Path) -> None:
    kernel, image = tmp_path / "kernel", tmp_path / "image"
    for directory in (kernel, image):
        directory.mkdir()
    (image / provenance.LOCK).write_text("iperf3 3.18-2\nno-version\nping 3:1 a\n")
    packages = provenance.packages(cast("Provider", MadeOfParts(kernel=kernel, image=image)))
    assert packages == {"iperf3": "3.18-2", "ping": "3:1 a"}
    assert provenance.packages(cast("Provider", MadeOfParts(kernel=kernel))) == {}
    assert provenance.packages(cast("Provider", object())) == {}
