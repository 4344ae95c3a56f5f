"""The bench that moves a cluster of Kubernetes to another version: which version is meant, and the go.mod that it
drafts. At night it is tried against Go's module source."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from minigts import paths
from minigts.errors import EnvironmentLacks, InputError

PROJECT = paths.project_root()
CLUSTER = PROJECT / "provision" / "overlays" / "kubernetes" / "build" / "cluster"
KNOWN = ("v1.34.4", "v1.35.4", "v1.35.10", "v1.36.0-rc.1", "v1.36.1")
THEIRS = {
    "Go": "1.26.0",
    "GoDebug": [{"Key": "default", "Value": "go1.26"}],
    "Require": [{"Path": "k8s.io/api", "Version": "v0.0.0"}],
    "Replace": [
        {"Old": {"Path": "k8s.io/streaming"}, "New": {"Path": "./staging/src/k8s.io/streaming"}},
        {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
        {"Old": {"Path": "example.org/other"}, "New": {"Path": "example.org/fork", "Version": "v1.0.0"}},
    ],
}
DRAFTED = """\
module minigts/kubernetes

go 1.26.0

godebug default=go1.26

require (
	k8s.io/component-base v0.37.2
	k8s.io/kubernetes v1.37.2
)

replace (
	k8s.io/api => k8s.io/api v0.37.2
	k8s.io/streaming => k8s.io/streaming v0.37.2
)
"""
"""Kubernetes' own modules, the new ones too."""


@pytest.fixture
def bump(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PROJECT)
    return importlib.import_module("bench.bump")


@pytest.mark.parametrize(
    ("wanted", "version"), [("1.35", "v1.35.10"), ("1.35.4", "v1.35.4"), ("v1.36", "v1.36.1"), ("v1.34.4", "v1.34.4")]
)
def test_a_series_means_its_newest_version(bump: ModuleType, wanted: str, version: str) -> None:
    assert bump.version_of(wanted, KNOWN) == version


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("newest", "'newest' is no version of Kubernetes: write 1.35.4, or 1.35 for its newest"),
        ("1.35.5", "there is no Kubernetes 1.35.5 .*; there are v1.35.4, v1.35.10"),
        ("1.99", "there is no Kubernetes 1.99 .*; there are v1.34.4, v1.35.4, v1.35.10, v1.36.1"),
    ],
)
def test_a_version_that_is_not_to_be_had_is_refused_with_those_that_are(
    bump: ModuleType, wanted: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        bump.version_of(wanted, KNOWN)


def test_each_of_kubernetes_own_modules_has_the_version_that_belongs_to_it(bump: ModuleType) -> None:
    assert bump.go_mod(THEIRS, "v1.37.2") == DRAFTED


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("case watchEvent := <-watcher.ResultChan():", True),
        ("case watchEvent, ok := <-watcher.ResultChan():", False),
    ],
)
def test_it_says_where_client_go_needs_no_correction(bump: ModuleType, tmp_path: Path, line: str, needed: bool) -> None:
    (tmp_path / "tools" / "record").mkdir(parents=True)
    (tmp_path / "tools" / "record" / "event.go").write_text(f"select {{\n{line}\n}}\n")
    assert bump.is_to_be_corrected(tmp_path) is needed


def test_without_go_it_says_so(bump: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="there is no Go on this machine"):
        bump.bump("1.35.4", tmp_path)


def bumped(bump: ModuleType, wanted: str, into: Path) -> Sequence[str]:
    """The lines of go.mod; skips where there is no Go, or no module source answers."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go on this machine")
    try:
        bump.bump(wanted, into)
    except EnvironmentLacks as error:
        if any(word in str(error) for word in ("dial tcp", "i/o timeout", "lookup ")):
            pytest.skip(f"no module source answers: {error}")
        raise
    return (into / "go.mod").read_text().splitlines()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_version_of_today_gives_the_files_of_today(bump: ModuleType, tmp_path: Path) -> None:
    lines = (CLUSTER / "go.mod").read_text().splitlines()
    (version,) = [line.split()[1] for line in lines if line.startswith("\tk8s.io/kubernetes ")]
    bumped(bump, version, tmp_path)
    for name in ("go.mod", "go.sum"):
        assert (tmp_path / name).read_bytes() == (CLUSTER / name).read_bytes()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("series", ["1.35", "1.37"])
def test_a_newer_version_has_all_modules_and_packages(bump: ModuleType, tmp_path: Path, series: str) -> None:
    lines = bumped(bump, series, tmp_path)
    assert any(line.startswith(f"\tk8s.io/kubernetes v{series}.") for line in lines)
    own = [line for line in lines if " => k8s.io/" in line]
    assert len(own) > 30
    assert {line.rpartition(" ")[2].rpartition(".")[0] for line in own} == {f"v0{series.removeprefix('1')}"}
