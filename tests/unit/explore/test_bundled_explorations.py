"""An exploration in one file: all that a replay takes; nothing of it runs here unless it is trusted."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import InputError
from minigts.explore import bundling, folder, host_files, replaying, timeline
from minigts.explore.outcome import Outcome
from minigts.explore.program import Program, ProgramFile
from minigts.explore.work import Exploration
from minigts.results import crate
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import load

TEST = ProgramFile(content=base64.b64encode(b"exit 1\n").decode(), program=True)
PAIR = """
name: pair
hosts:
  a: {files: [{source: start.sh, target: /root/start.sh}, {source: web, target: /root/web}]}
  b: {files: [{source: start.sh, target: /root/start.sh}]}
links: [{ends: [a, b], rtt: 2ms}]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Of two hosts that take a file, of which one takes a directory, too."""
    own = tmp_path / "own"
    (own / "web").mkdir(parents=True)
    (own / "start.sh").write_text("echo started\n")
    (own / "start.sh").chmod(0o750)
    (own / "web" / "index.html").write_text("hello")
    (own / "pair.yaml").write_text(PAIR)
    return load(own / "pair.yaml", time="virtual")


@pytest.fixture
def place(plan: Plan, tmp_path: Path) -> Path:
    """The folder of an exploration of which seed 2 failed."""
    exploration = Exploration(
        minigts="1.2",
        topology="pair",
        plan=plan,
        provider="uml",
        test=Program(words=("check.sh",), files={"check.sh": TEST}),
        faults="faults: {partition: {every: 1s, for: 1s}, length: 1min}\n",
        first=1,
        last=2,
        longest_s=1,
        started="2026-11-27T00:00:00+00:00",
        host_files=host_files.kept_files(plan),
    )
    made = folder.create(tmp_path / "results", exploration, datetime(2026, 11, 27, tzinfo=UTC))
    folder.keep(made, Outcome(seed=1, verdict="passed"), {})
    line = timeline.text_of([{"at_s": 1.0, "event": "cut", "link": "a-b"}])
    files = {timeline.FILE: line, "echoes.txt": "3", "logs/a/dmesg.log": "[ 0.0] hello\n"}
    folder.keep(made, Outcome(seed=2, verdict="failed", detail="3 are lost"), files)
    (made / "notes.txt").write_text("of the user's own")
    return made


def test_a_bundle_has_what_a_replay_takes_and_nothing_else(place: Path, tmp_path: Path) -> None:
    files = bundling.write(place, tmp_path / "a.zip")
    assert [each.name.removeprefix("results/") for each in files] == [
        "explore.json",
        "failed/000002/echoes.txt",
        "failed/000002/logs/a/dmesg.log",
        "failed/000002/timeline.jsonl",
        "failed/000002/timeline.txt",
        "faults.yaml",
        "seeds.jsonl",
        "test/check.sh",
    ]
    bundling.write(place, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        graph = json.loads(archive.read(crate.METADATA))["@graph"]
    assert [each["@id"] for each in graph if each["@type"] == "File"] == [each.name for each in files]
    assert "the test `check.sh` under the seeds 1 to 2".lower() in graph[1]["description"].lower()


def test_a_link_out_of_the_folder_is_not_published(place: Path, tmp_path: Path) -> None:
    (place / "failed" / "link").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="leads out of the results folder"):
        bundling.write(place, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_it_is_unpacked_where_it_is_trusted_and_is_the_same(place: Path, tmp_path: Path) -> None:
    bundling.write(place, tmp_path / "a.zip")
    (tmp_path / "elsewhere").mkdir()
    found = bundling.unpack(tmp_path / "a.zip", tmp_path / "elsewhere", trusted=True)
    assert found == tmp_path / "elsewhere" / "a"
    assert folder.read(found) == folder.read(place)
    assert replaying.find_outcome(found, folder.read(found), 2) == replaying.find_outcome(place, folder.read(place), 2)
    assert folder.recorded_files(found, 2) == folder.recorded_files(place, 2)
    with pytest.raises(InputError, match="is there already"):
        bundling.unpack(tmp_path / "a.zip", tmp_path / "elsewhere", trusted=True)


def test_without_trust_what_it_would_do_is_listed_and_nothing_is_done(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundling.write(place, tmp_path / "a.zip")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    said = CliRunner().invoke(app, ["replay", str(tmp_path / "a.zip"), "--seed", "2"])
    assert said.exit_code == 2, said.output
    told = " ".join(said.stderr.split())
    assert "run the test `check.sh` as you, with check.sh of it" in told
    assert "/web, for host a" in told
    assert "start.sh, for" not in told
    assert "add --trust" in told
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_verb_says_how_it_is_replayed(place: Path, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["bundle", str(place), "-o", str(tmp_path / "a.zip")])
    assert said.exit_code == 0, said.output
    assert "minigts replay a.zip --seed N --trust" in said.stderr


def test_a_file_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("no archive")
    with pytest.raises(InputError, match="is no ZIP archive"):
        bundling.unpack(tmp_path / "a.zip", tmp_path, trusted=True)


def test_hosts_take_the_kept_files_when_their_own_are_gone(plan: Plan, tmp_path: Path) -> None:
    kept = host_files.kept_files(plan)
    digest = hashlib.sha256(b"echo started\n").hexdigest()
    assert {name: oct(file.mode) for name, file in kept.items()} == {digest: "0o750"}
    assert [Path(each).name for each in host_files.elsewhere(plan, kept)] == ["web"]
    (tmp_path / "own" / "start.sh").unlink()
    laid = host_files.plan_with_files(plan, kept, tmp_path / "files")
    sources = [[Path(file.source) for file in host.software.files] for host in laid.hosts if host.software]
    assert sources == [[tmp_path / "files" / digest, tmp_path / "own" / "web"], [tmp_path / "files" / digest]]
    found = sources[1][0]
    assert (found.read_text(), oct(found.stat().st_mode & 0o777)) == ("echo started\n", "0o750")
    assert found.stat().st_mtime == host_files.MOMENT_S


def test_a_kept_file_with_another_content_is_refused(plan: Plan, tmp_path: Path) -> None:
    (digest, file), *_ = host_files.kept_files(plan).items()
    other = file.model_copy(update={"content": base64.b64encode(b"rm -rf /\n").decode()})
    with pytest.raises(InputError, match="is not what its digest says"):
        host_files.plan_with_files(plan, {digest: other}, tmp_path / "files")
