"""What the provider mininet asks Mininet for, and what it takes away. Its hosts are tested live and by contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import EnvironmentLacks, HostFailed
from minigts.providers import supported
from minigts.providers.mininet import kernel, provider
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse

TEXT = """name: x
hosts: {a: {memory: 128MB}, b: {memory: 1GB}}
switches: {s: }
links: [{ends: [a, s]}, {ends: [s, b]}]
"""


def plan(text: str = TEXT) -> Plan:
    return parse(text, "x.yaml")


def test_mininet_is_asked_for_every_machine_and_link_by_its_planned_names() -> None:
    wanted = provider._wanted(plan())
    assert wanted["hosts"] == ["a", "b"]
    assert wanted["switches"] == ["s"]
    assert wanted["links"] == [
        ["a", "eth1", "02:6d:67:00:00:01", "s", "eth1", "02:6d:67:00:00:02"],
        ["b", "eth1", "02:6d:67:00:01:02", "s", "eth2", "02:6d:67:00:01:01"],
    ]


@pytest.mark.parametrize(("hosts", "wanted_mb"), [("a: {memory: 128MB}", 512), ("a: , b: {memory: 1GB}", 1536)])
def test_the_one_kernel_gets_its_machines_memory_together(hosts: str, wanted_mb: int) -> None:
    assert kernel.memory_mb(plan(f"name: x\nrouting: neighbours\nhosts: {{{hosts}}}\n")) == wanted_mb


def test_the_one_kernel_gets_no_more_than_it_can_use() -> None:
    assert kernel.memory_mb(plan("name: x\nchain: {hosts: 40}\n")) == kernel.LARGEST_MB


@pytest.mark.parametrize("setting", ["cpus: 2", "memory: 1024MB"])
def test_what_hosts_of_one_kernel_share_is_of_none_of_them(tmp_path: Path, setting: str) -> None:
    asking = plan(f"name: x\nhosts: {{a: {{{setting}}}}}\n")
    with pytest.raises(EnvironmentLacks, match=rf"a with `{setting}`: .* since its hosts share .* one kernel"):
        supported.require(asking, "mininet", provider.MininetProvider(tmp_path).supports)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hosts: {a: {packages: [nmap]}}", "each host's own file system lies over that of the one kernel"),
        ("dns: true\nhosts: {a: }", "its hosts may have the programs of this machine"),
    ],
)
def test_its_hosts_have_file_systems_of_their_own_and_what_is_refused_says_so(
    tmp_path: Path, text: str, why: str
) -> None:
    """As `become_machine` of provision/mininet/network.py gives each, and docs/providers.md says."""
    with pytest.raises(EnvironmentLacks, match=f"since {why}"):
        supported.require(plan(f"name: x\n{text}\n"), "mininet", provider.MininetProvider(tmp_path).supports)


def test_natively_it_needs_what_overlays_and_tools_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On hosts of an image these are there; a native lab's hosts have this machine's programs."""
    everything_but_jq = [program for program in kernel.PROGRAMS if program != "jq"]
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program: program if program in everything_but_jq else None)
    monkeypatch.setattr("pathlib.Path.exists", lambda _: True)
    assert kernel.natively_missing() == ["not installed: jq"]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where control groups are, with one that is no lab's."""
    made = tmp_path / "groups"
    (made / "other").mkdir(parents=True)
    monkeypatch.setattr(kernel, "control_groups", lambda: made)
    return made


def test_the_group_that_was_made_is_taken_away_and_no_other(tmp_path: Path, groups: Path) -> None:
    rundir = tmp_path / "lab"
    rundir.mkdir()
    own = Path(kernel.enclosure(rundir)[-1])
    (own / "minigts" / "1").mkdir(parents=True)
    for _ in range(2):
        kernel.remove_group(rundir)
    assert list(groups.iterdir()) == [groups / "other"]
    assert not (rundir / kernel.GROUP).exists()


@pytest.mark.parametrize("written", ["{groups}/other", "{groups}", "{groups}/..", "", ".", "\0"])
def test_what_is_written_down_does_not_say_which_group_is_taken_away(
    tmp_path: Path, groups: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged record must not choose directories to remove: empty ones in the working directory, or anywhere."""
    rundir = tmp_path / "lab"
    (rundir / "empty").mkdir(parents=True)
    monkeypatch.chdir(rundir)
    (rundir / kernel.GROUP).write_text(written.replace("{groups}", str(groups)))
    kernel.remove_group(rundir)
    assert (groups / "other").is_dir()
    assert (rundir / "empty").is_dir()
    assert not (rundir / kernel.GROUP).exists()


@pytest.mark.parametrize("content", ["", "[]", "null", "{", '{"a": "x"}', '{"a": -1}', '{"a": true}', "\udcff"])
def test_a_damaged_list_of_machines_is_an_error_of_the_host(tmp_path: Path, content: str) -> None:
    (tmp_path / provider.MACHINES).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(HostFailed, match=r"host a cannot be entered: the lab's machines\.json is damaged"):
        provider.MininetProvider(tmp_path).run("a", ["true"], timeout_s=1)
