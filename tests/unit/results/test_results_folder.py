"""One run a folder, nothing outside it, and words for whatever somebody put into it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import synthetic
from experiment_lab import Replay, begin, chain, small
from killed_run import Stage

from minigts import paths
from minigts.errors import InputError
from minigts.experiments import run_folders
from minigts.experiments.run import run_together
from minigts.report import render
from minigts.report.read import read
from minigts.results import folder, manifest, store
from minigts.results.schema import Manifest
from minigts.session import campaign

HERE = Path(__file__).parents[1]
TOOLS = HERE.parents[1] / "tools"
OLD = HERE / "report_sample"
HOLD = "import sys; from pathlib import Path; from minigts.results.folder import exclusive\n"
HOLD += "with exclusive(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


def edit(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads((directory / "manifest.json").read_text())
    change(document)
    (directory / "manifest.json").write_text(json.dumps(document, indent=1))


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run that wants all of its samples, of a provider that there is."""
    directory = tmp_path / "results" / "small"
    directory.mkdir(parents=True)
    begin(directory, small(), chain())
    edit(directory, lambda document: document.update(provider="uml"))
    return directory


@contextmanager
def held(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """The folder while another process has it."""
    argv = [sys.executable, "-c", HOLD, str(directory)]
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def minigts(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    argv = [sys.executable, "-P", "-m", "minigts", *words]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def content(directory: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_second_run_in_a_folder_says_who_has_it_and_changes_nothing(begun: Path) -> None:
    with held(begun) as process:
        before = content(begun)
        second = minigts("run", "--resume", str(begun))
        assert second.returncode == 2
        assert f"another run is writing here: process {process.pid}, since 20" in second.stderr
        assert f"-c {begun}" in second.stderr
        assert second.stderr.count("\n") == 1
        assert content(begun) == before


def test_the_lock_dies_with_its_holder_and_the_next_one_cleans_up(begun: Path) -> None:
    with held(begun) as process:
        process.kill()
        process.wait()
        (begun / "raw").mkdir()
        left = [begun / ".manifest.json.a1b2c3_4", begun / "raw" / ".x.r1.json.zzzzzzzz"]
        for path in left:
            path.write_text("half")
        (begun / ".hidden").write_text("the user's own")
        with folder.exclusive(begun):
            assert [path for path in left if path.exists()] == []
            assert (begun / ".hidden").exists()


def test_a_campaign_and_a_run_in_it_are_not_resumed_at_once(begun: Path) -> None:
    campaign = begun.parent
    with held(begun), pytest.raises(InputError, match="another run"), run_folders.lock_folder(campaign):
        pass
    with (
        run_folders.lock_folder(campaign),
        pytest.raises(InputError, match="another run"),
        run_folders.lock_folder(begun),
    ):
        pass


def test_a_run_that_is_resumed_has_its_folder_alone_and_a_dry_run_looks_at_it_meanwhile(begun: Path) -> None:
    asked, notes = campaign.CampaignRequest(resume=begun), list[str]()
    with campaign.open_campaign(asked, notes.append):
        with (
            pytest.raises(InputError, match="another run is writing here"),
            campaign.open_campaign(asked, notes.append),
        ):
            pass
        with campaign.open_campaign(asked, notes.append, dry=True) as seen:
            assert seen.directories == (begun,)


def test_two_runs_at_once_take_each_sample_once(begun: Path) -> None:
    argv = [sys.executable, str(HERE / "killed_run.py"), str(begun)]
    environment = {**os.environ, "PYTHONPATH": f"{TOOLS}:{HERE}"}
    both = [subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1].decode() for process in both]
    codes = sorted(process.returncode for process in both)
    lines = [line for line in (begun / "run.log").read_text().splitlines() if " INFO " in line and " in 0" in line]
    assert len(lines) == len({line.split()[2] for line in lines}) == manifest.read(begun).samples_planned
    assert codes == [0, 0] or "another run is writing here" in "".join(errors)


def test_report_reads_while_a_run_writes(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(OLD, tmp_path / "old"))
    with folder.exclusive(copy):
        assert render(copy).exists()


def test_eight_hundred_parallel_writes_all_succeed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: folder.write(tmp_path / "x.json", f"{number}" * 100), range(800)))
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert len(set((tmp_path / "x.json").read_text())) <= 3


@pytest.mark.parametrize("word", ["", ".", "..", "a/b", "/etc/passwd", "../x", "a\0b", "é" * 101, "\ud800"])
def test_no_word_leads_out_of_a_folder(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match="is no name of a file in a results folder"):
        folder.inside(tmp_path, word)


def test_no_link_leads_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "raw").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"raw/x\.json: leads out of the results folder"):
        folder.inside(tmp_path / "run", "raw", "x.json")
    with pytest.raises(InputError, match="leads out"):
        store.pending((), tmp_path / "run")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("plan", "hosts", 0, "name"), "../../../../evil"),
        (("plan", "hosts", 0, "ports", 0, "name"), "x; touch /tmp/pwned #"),
        (("experiment", "name"), "../evil"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (
                (("plan", "hosts", 0, "address"), "10.0.0.1/8 dev lo\nroute flush table main"),
                (("experiment", "measurements", 0, "name"), "../../evil"),
                (("experiment", "overlays", 0), "../evil"),
            )
        ),
    ],
)
def test_resume_believes_no_manifest(begun: Path, place: tuple[Any, ...], value: str) -> None:
    def change(document: Any) -> None:
        for step in place[:-1]:
            document = document[step]
        document[place[-1]] = value

    edit(begun, change)
    around = content(begun.parent.parent)
    refused = minigts("run", "--resume", str(begun))
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert f"{begun}/manifest.json:" in refused.stderr
    changed = {name for name, was in content(begun.parent.parent).items() if around.get(name) != was}
    assert changed <= {str(begun / folder.LOCK)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(provider="cloud"), "no provider 'cloud' in this minigts; there are "),
        (lambda d: d["experiment"].update(overlays=["none", "warp"]), "no overlay 'warp' in this minigts; there are "),
        (lambda d: d.update(version=3), "version 3 of results is of another minigts"),
        (lambda d: d.update(version=0), "version 0 of results is of another minigts"),
        (lambda d: d.pop("plan"), "plan: is missing"),
        (lambda d: d.update(colour="red"), "colour: is no key that is known here"),
    ],
)
def test_a_manifest_that_cannot_be_resumed_is_one_clear_error(
    begun: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    edit(begun, change)
    with pytest.raises(InputError) as caught:
        run_folders.reopen(begun)
    assert message in str(caught.value)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    "text", ["9" * 5000, str(2**64), "NaN", "Infinity", "1e999", "-1e16", '"\\ud800"', "[" * 70 + "]" * 70]
)
def test_numbers_and_depths_that_nothing_has_are_refused_with_the_file(begun: Path, text: str) -> None:
    written = (begun / "manifest.json").read_text()
    (begun / "manifest.json").write_text(written.replace('"samples_planned": 28', f'"samples_planned": {text}'))
    assert (begun / "manifest.json").read_text() != written
    with pytest.raises(InputError, match=r"manifest\.json(:\d+)?: "):
        manifest.read(begun)


def test_a_seed_of_netems_own_is_read_back(begun: Path) -> None:
    """tc(8) shows one of 64 bits, which the manifest's readback keeps."""
    shown = {"ams": [{"kind": "netem", "options": {"seed": 2**64 - 1}}]}
    manifest.write(begun, manifest.read(begun).model_copy(update={"readback": shown}))
    assert manifest.read(begun).readback == shown


def test_what_is_no_plain_file_is_never_waited_for(tmp_path: Path) -> None:
    for name, make in {
        "folder": lambda path: path.mkdir(),
        "pipe": os.mkfifo,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "loop": lambda path: path.symlink_to(path),
    }.items():
        copy = Path(shutil.copytree(OLD, tmp_path / name))
        (copy / "summary.csv").unlink()
        make(copy / "summary.csv")
        with pytest.raises(InputError, match=r"summary\.csv: (cannot be read|leads out)"):
            read(copy)


def test_a_raw_file_by_another_samples_name_is_refused(begun: Path) -> None:
    run_together([begun], Replay(), Stage(), lambda _progress: None)  # type: ignore[arg-type]
    first, second, *_ = sorted((begun / "raw").glob("*.json"))
    shutil.copy(first, second)
    with pytest.raises(InputError, match=f"{second.name}: is no raw sample; remove it"):
        store.good(begun, second.name.removesuffix(".json"))


def test_a_folder_says_its_version(begun: Path) -> None:
    assert json.loads((begun / "manifest.json").read_text())["version"] == 2


def test_what_is_written_is_read_back_through_the_same_class(begun: Path) -> None:
    run_together([begun], Replay(), Stage(), lambda _progress: None)  # type: ignore[arg-type]
    found = read(begun)
    assert isinstance(found.manifest, Manifest)
    assert found.manifest == manifest.read(begun)
    assert [claim.model_dump() for claim in found.claims] == json.loads((begun / "claims.json").read_text())
    assert sum(row.n for row in found.summary) == found.samples.total == found.manifest.samples_planned


def test_a_campaign_that_holds_itself_is_read_once(tmp_path: Path) -> None:
    synthetic.write(tmp_path / "campaign" / "star", next(kind for kind in synthetic.KINDS if kind.name == "star"))
    (tmp_path / "campaign" / "again").symlink_to(tmp_path / "campaign")
    assert [path.name for path in store.runs_in(tmp_path / "campaign")] == ["star"]
    (tmp_path / "campaign" / "out").symlink_to(OLD)
    with pytest.raises(InputError, match="leads out of the results folder"):
        store.runs_in(tmp_path / "campaign")


def test_a_write_that_is_broken_off_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.write_whole(tmp_path / "x", "old")
    monkeypatch.setattr(os, "fsync", lambda _handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        paths.write_whole(tmp_path / "x", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"x": "old"}
