"""A lab that is kept, and one that is saved: what comes back, what is refused, and what a kill leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import tc_hosts
from keeping_hosts import NOON, BrokenOff, KeepingHosts
from typer.testing import CliRunner

from minigts import lab as labs
from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, HostFailed, InputError
from minigts.lab import Lab
from minigts.machine import sparse
from minigts.providers import registry
from minigts.providers.base import KeepsDisks
from minigts.topology.read.load import parse

TEXT = """
name: chain
hosts: {ams: {}, bra: {}, lon: {}}
links:
- {ends: [ams, bra], rtt: 20ms, rate: 50mbit}
- {ends: [bra, lon], rtt: 10ms, rate: 50mbit}
"""
OTHER = TEXT.replace("rtt: 10ms", "rtt: 12ms")
runner = CliRunner()


def quiet(_said: str) -> None:
    pass


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    monkeypatch.setattr(tc_hosts.TcHosts, "pace_s", 0.0)
    monkeypatch.setattr(KeepingHosts, "dies_at", "")
    monkeypatch.setitem(registry._PROVIDERS, KeepingHosts.name, KeepingHosts)
    (tmp_path / "image").write_text("first")
    return tmp_path


def up(text: str = TEXT, name: str | None = None) -> Lab:
    return labs.up(parse(text, "chain.yaml"), KeepingHosts.name, name, quiet)


@pytest.fixture
def lab() -> Lab:
    """Each disk says which host it is of, and a link is cut."""
    made = up()
    labs.set_links_up(made, "ams", "bra", up=False)
    for name, file in disks(made).items():
        file.write_text(f"of {name}")
    return made


def disks(lab: Lab) -> Mapping[str, Path]:
    assert isinstance(lab.provider, KeepsDisks)
    return lab.provider.disks()


def contents(lab: Lab) -> dict[str, str]:
    return {name: file.read_text() for name, file in disks(lab).items()}


OWN = {name: f"of {name}" for name in ("ams", "bra", "lon")}


def files_of(state: Path) -> set[str]:
    return {path.relative_to(state).parts[0] for path in state.rglob("*") if path.is_file()}


def test_the_provider_of_these_tests_is_one_that_keeps() -> None:
    assert isinstance(KeepingHosts(Path()), KeepsDisks)


def test_a_kept_lab_comes_up_on_its_disks_with_its_links_as_they_were(lab: Lab) -> None:
    assert labs.keep(lab, quiet) > 0
    assert (lab.read_record().state, lab.read_state() == "kept", lab.rundir in tc_hosts.NETWORKS) == (
        "kept",
        True,
        False,
    )
    again = up()
    assert (contents(again), again.read_record().state, again.read_record().cut) == (OWN, "up", {"ams-bra"})
    assert again.read_record().unjoined == {"ams", "bra", "lon"}
    assert sum(each["loss-random"]["loss"] == 1.0 for each in losses(again)) == 2


def losses(lab: Lab) -> list[dict[str, dict[str, float]]]:
    return [each for each in tc_hosts.NETWORKS[lab.rundir].netem.values() if "loss-random" in each]


def test_down_after_keeping_removes_everything(lab: Lab, state: Path) -> None:
    labs.keep(lab, quiet)
    labs.down(lab)
    assert files_of(state) == {"image"}
    assert contents(up()) == dict.fromkeys(OWN, "new")


def test_another_topology_is_refused_and_the_disks_stay(lab: Lab) -> None:
    labs.keep(lab, quiet)
    with pytest.raises(InputError, match=r"kept with another plan.*minigts down chain, or choose another name"):
        up(OTHER)
    assert contents(lab) == OWN
    assert contents(up(OTHER, "second")) == dict.fromkeys(OWN, "new")


def test_another_provider_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    labs.keep(lab, quiet)
    tc_hosts.register(monkeypatch)
    with pytest.raises(InputError, match="kept on provider keeping-hosts, not on tc-hosts"):
        labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    assert contents(lab) == OWN


def test_a_kept_lab_that_does_not_come_up_is_kept_as_before(lab: Lab, state: Path) -> None:
    labs.keep(lab, quiet)
    (state / "image").write_text("second")
    with pytest.raises(InputError, match="of another image"):
        up()
    assert (lab.read_state() == "kept", contents(lab)) == (True, OWN)


def test_a_kept_lab_is_not_begun_on_a_machine_that_lacks_something(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    labs.keep(lab, quiet)
    with monkeypatch.context() as lacking:
        lacking.setattr(KeepingHosts, "missing", lambda _: ["passt is not installed", "no /dev/shm"])
        with pytest.raises(EnvironmentLacks, match=r"^passt is not installed\nno /dev/shm$"):
            up()
    assert (lab.read_state(), contents(lab), lab.rundir in tc_hosts.NETWORKS) == ("kept", OWN, False)
    assert contents(up()) == OWN


@pytest.mark.parametrize("moment", ["note", "down"])
def test_keep_killed_leaves_a_lab_that_comes_up_with_its_disks(lab: Lab, moment: str, state: Path) -> None:
    KeepingHosts.dies_at = moment
    with pytest.raises(BrokenOff):
        labs.keep(lab, quiet)
    assert contents(up()) == OWN
    labs.down(lab)
    assert files_of(state) == {"image"}


@pytest.mark.parametrize("moment", ["down", "up"])
def test_up_of_a_kept_lab_killed_keeps_it(lab: Lab, moment: str) -> None:
    labs.keep(lab, quiet)
    KeepingHosts.dies_at = moment
    with pytest.raises(BrokenOff):
        up()
    assert (lab.read_state() == "kept", contents(lab)) == (True, OWN)
    assert contents(up()) == OWN


def test_keeping_twice_is_keeping_once(lab: Lab) -> None:
    assert labs.keep(lab, quiet) == labs.keep(lab, quiet)


def test_a_provider_that_cannot_keep_says_so_and_its_lab_stays_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tc_hosts.register(monkeypatch)
    plain = labs.up(parse(TEXT, "chain.yaml"), tc_hosts.TcHosts.name, None, quiet)
    with pytest.raises(EnvironmentLacks, match="provider tc-hosts cannot keep its hosts' disks"):
        labs.keep(plain, quiet)
    with pytest.raises(EnvironmentLacks, match="cannot keep"):
        labs.save(plain, "one", None, quiet)
    assert plain.read_record().state == "up"


def test_a_lab_that_was_never_complete_cannot_be_kept(lab: Lab) -> None:
    lab.write(lab.read_record().model_copy(update={"state": "starting"}))
    with pytest.raises(InputError, match="was never complete"):
        labs.keep(lab, quiet)


def test_a_verb_for_labs_that_are_up_says_that_one_is_kept(lab: Lab) -> None:
    labs.keep(lab, quiet)
    for name in (None, "chain"):
        with pytest.raises(InputError, match="lab chain is kept, and not up: bring it up with minigts up"):
            labs.open_lab(name)
    assert labs.open_lab(also_kept=True) == lab
    second = up(name="second")
    assert labs.open_lab() == labs.open_lab(also_kept=True) == second
    labs.keep(second, quiet)
    with pytest.raises(InputError, match=r"several labs are kept \(chain, second\)"):
        labs.open_lab(also_kept=True)


def test_status_lists_a_kept_lab_with_what_it_takes(lab: Lab) -> None:
    size = labs.keep(lab, quiet)
    (facts,) = json.loads(runner.invoke(app, ["status", "--json"]).stdout)
    assert (facts["state"], facts["disk_bytes"], set(facts["hosts"].values())) == ("kept", size, {"kept"})
    assert "kept with overlay — and 0.0 MB of disks" in runner.invoke(app, ["status"]).stdout


def test_down_all_keep_keeps_what_is_up_and_down_all_removes_what_is_kept(lab: Lab, state: Path) -> None:
    up(name="second")
    done = runner.invoke(app, ["down", "--all", "--keep"])
    assert done.exit_code == 0, done.output
    assert [each.read_state() == "kept" for each in labs.all_labs()] == [True, True]
    assert runner.invoke(app, ["down", "--all", "--keep"]).exit_code == 0
    gone = runner.invoke(app, ["down", "--all"])
    assert gone.stderr.count("it was kept, and 0.0 MB of disks are gone") == 2
    assert files_of(state) == {"image"}


def test_a_saved_lab_is_restored_beside_itself(lab: Lab) -> None:
    saved = labs.save(lab, "one", "swarm", quiet)
    assert (saved.lab, saved.overlay, saved.lab_time, saved.hosts) == ("chain", "swarm", NOON, ("ams", "bra", "lon"))
    assert labs.all_saved() == [labs.saved_named("one")] == [saved]
    assert lab.read_record().state == "up" and lab.rundir in tc_hosts.NETWORKS
    for file in disks(lab).values():
        file.write_text("later")
    second = labs.restore("one", "second", quiet)
    assert (second.read_state() == "kept", contents(second), second.read_record().cut) == (True, OWN, {"ams-bra"})
    assert contents(up(name="second")) == OWN
    assert set(contents(lab).values()) == {"later"}


def test_disks_are_copied_while_no_host_runs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, copy = [], sparse.copy
    monkeypatch.setattr(sparse, "copy", lambda *args: seen.append(KeepingHosts.standing) or copy(*args))
    labs.save(lab, "one", None, quiet)
    assert seen == [True] * 3


def test_a_kept_lab_can_be_saved_and_goes_on_being_kept(lab: Lab) -> None:
    labs.keep(lab, quiet)
    labs.save(lab, "one", None, quiet)
    assert lab.read_state() == "kept"
    labs.down(lab)
    assert contents(labs.restore("one", None, quiet)) == OWN
    assert contents(up()) == OWN


@pytest.mark.parametrize("name", ["../one", "", ".one", "a/b"])
def test_what_is_no_name_is_refused(lab: Lab, name: str, state: Path) -> None:
    for act in (lambda: labs.save(lab, name, None, quiet), lambda: labs.saved_named(name), lambda: labs.delete(name)):
        with pytest.raises(InputError, match="no name"):
            act()
    assert not (state / "saved").exists()


def test_a_name_that_is_taken_is_refused(lab: Lab) -> None:
    labs.save(lab, "one", None, quiet)
    with pytest.raises(InputError, match=r"there is a saved lab one: .* minigts saved --delete one"):
        labs.save(lab, "one", None, quiet)
    with pytest.raises(InputError, match=r"there is a lab chain: .* choose another name with --lab NAME"):
        labs.restore("one", None, quiet)
    assert contents(lab) == OWN


def test_a_saved_lab_that_is_not_there_is_named_with_those_that_are(lab: Lab) -> None:
    with pytest.raises(InputError, match="none is saved: minigts save NAME"):
        labs.restore("one", None, quiet)
    labs.save(lab, "first", None, quiet)
    with pytest.raises(InputError, match=r"no saved lab 'frist'; saved are first; did you mean 'first'\?"):
        labs.delete("frist")


def test_a_save_that_is_killed_leaves_nothing_behind_the_lab(
    lab: Lab, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by SIGKILL: what would clean up does not run."""
    KeepingHosts.dies_at = "note"
    with monkeypatch.context() as patch, pytest.raises(BrokenOff):
        patch.setattr("minigts.lab.snapshots.paths.remove_tree", lambda *_args, **_options: None)
        labs.save(lab, "one", None, quiet)
    assert labs.all_saved() == []
    assert (lab.rundir / "saving").is_dir()
    assert labs.save(lab, "one", None, quiet).name == "one"
    assert not (lab.rundir / "saving").exists()
    labs.down(lab)
    labs.delete("one")
    assert files_of(state) == {"image"}


def test_a_restore_that_is_killed_is_no_lab_and_down_removes_it(
    lab: Lab, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labs.save(lab, "one", None, quiet)
    labs.down(lab)

    def die(*_args: object) -> bytes:
        raise BrokenOff

    with monkeypatch.context() as patch, pytest.raises(BrokenOff):
        patch.setattr("minigts.lab.snapshots.paths.remove_tree", lambda *_args, **_options: None)
        patch.setattr("minigts.lab.snapshots.sparse.copy", die)
        labs.restore("one", None, quiet)
    (half,) = labs.all_labs()
    assert half.read_state() not in ("up", "kept")
    labs.down(half)
    assert files_of(state) == {"image", "saved"}


def test_a_full_disk_is_one_error_and_leaves_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("minigts.lab.snapshots.sparse.copy", full)
    with pytest.raises(EnvironmentLacks, match=r"no room for the disks in .* MB are free"):
        labs.save(lab, "one", None, quiet)
    assert (labs.all_saved(), (lab.rundir / "saving").exists()) == ([], False)


def test_a_damaged_saved_lab_is_not_listed_and_can_be_deleted(lab: Lab, state: Path) -> None:
    labs.save(lab, "one", None, quiet)
    (state / "saved" / "one" / "saved.json").write_text('{"format": 2}')
    assert labs.all_saved() == []
    with pytest.raises(InputError, match=r"its saved\.json is damaged; delete it with: minigts saved --delete one"):
        labs.restore("one", "second", quiet)
    labs.delete("one")
    assert not (state / "saved" / "one").exists()


def test_saved_lists_and_deletes(lab: Lab) -> None:
    assert "no lab is saved" in runner.invoke(app, ["saved"]).stderr
    assert runner.invoke(app, ["save", "one"]).exit_code == 0
    (facts,) = json.loads(runner.invoke(app, ["saved", "--json"]).stdout)
    assert (facts["name"], facts["lab"], facts["overlay"]) == ("one", "chain", None)
    assert "2026-01-01 12:00:00" in runner.invoke(app, ["saved"]).stdout
    assert "saved lab one is deleted" in runner.invoke(app, ["saved", "--delete", "one"]).stderr
    assert json.loads(runner.invoke(app, ["saved", "--json"]).stdout) == []


def test_one_whose_hosts_do_not_come_up_is_restored_to_nothing(
    lab: Lab, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labs.save(lab, "one", None, quiet)

    def fail(*_args: object) -> None:
        raise HostFailed("host ams did not come up")

    monkeypatch.setattr(KeepingHosts, "up", fail)
    done = runner.invoke(app, ["restore", "one", "--lab", "second"])
    assert (done.exit_code, "ams did not come up" in done.stderr) == (1, True)
    assert [each.name for each in labs.all_labs()] == ["chain"]
    assert files_of(state) == {"image", "labs", "saved", "failed"}


def seeds(lab: Lab) -> dict[tuple[str, str], object]:
    return {end: shown.get("seed") for end, shown in tc_hosts.NETWORKS[lab.rundir].netem.items()}


@pytest.mark.parametrize("way", ["kept", "saved"])
def test_a_lab_that_comes_up_again_keeps_the_numbers_of_its_settings_and_draws_the_next(way: str) -> None:
    text = TEXT.replace("rtt: 10ms", "rtt: 10ms, loss: 5%")
    lab = up(text)
    declared = seeds(lab)
    labs.update_settings(lab, "ams-bra", {"loss_percent": 7.0})
    before, counts = seeds(lab), lab.read_record().times_set
    if way == "kept":
        labs.keep(lab, quiet)
    else:
        labs.save(lab, "saved", None, quiet)
        labs.down(lab)
        lab = labs.restore("saved", None, quiet)
    assert lab.read_record().times_set == counts == {"ams-bra": {"ams": 1, "bra": 1}}
    again = up(text)
    drawn = [each[end] for each in (declared, before, seeds(again)) for end in each if each[end] is not None]
    assert len({*drawn}) == len(drawn) - 2  # those of bra-lon stayed as they were declared until the lab came up again
    assert again.read_record().times_set == {"ams-bra": {"ams": 2, "bra": 2}, "bra-lon": {"bra": 1, "lon": 1}}
