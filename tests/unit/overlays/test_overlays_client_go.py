"""The build of Kubernetes corrects one loop of client-go in a copy of it, and ends where the loop is another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from minigts import paths

COMPILE = paths.project_root() / "provision/overlays/kubernetes/build/compile.sh"
LOOP = """\
select {
case <-e.cancelationCtx.Done():
	return
case watchEvent := <-watcher.ResultChan():
	event, ok := watchEvent.Object.(*v1.Event)
}
"""
GO = """\
#!/bin/sh
# As far as compile.sh asks it.
case "$1 $2" in
  'list -m') echo v1.34.4 ;;
  'mod download') echo "$4" >>"$SAID"; printf '{\\n\\t"Dir": "%s",\\n}\\n' "$MODULE" ;;
  'mod edit') echo "$*" >>"$SAID" ;;
  build*) [ ! -e ../client-go ] || cp ../client-go/tools/record/event.go "$BUILT" ;;
esac
"""


def compiled(tmp_path: Path, loop: str) -> subprocess.CompletedProcess[str]:
    module = tmp_path / "module/tools/record"
    module.mkdir(parents=True)
    (module / "event.go").write_text(loop)
    (module / "event.go").chmod(0o444)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/go").write_text(GO)
    (tmp_path / "bin/go").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "MODULE": str(tmp_path / "module"),
        "SAID": str(tmp_path / "said"),
        "BUILT": str(tmp_path / "built.go"),
    }
    argv = ["bash", str(COMPILE), str(tmp_path / "output")]
    return subprocess.run(argv, env=environment, text=True, capture_output=True, check=False)


def test_who_finds_the_channel_closed_returns(tmp_path: Path) -> None:
    done = compiled(tmp_path, LOOP)
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "said").read_text().splitlines()
    assert asked == ["k8s.io/client-go@v0.34.4", "mod edit -replace k8s.io/client-go=../client-go"]
    corrected = LOOP.replace("watchEvent :=", "watchEvent, open :=").replace(
        "ResultChan():\n", "ResultChan():\nif !open {\nreturn\n}\n"
    )
    assert (tmp_path / "built.go").read_text() == corrected
    assert not [left for left in tmp_path.iterdir() if left.name.startswith("tmp.")]


def test_a_loop_that_kubernetes_has_corrected_itself_is_left_as_it_is(tmp_path: Path) -> None:
    done = compiled(tmp_path, LOOP.replace("watchEvent := <-", "watchEvent, ok := <-"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text().splitlines() == ["k8s.io/client-go@v0.34.4"]
    assert not (tmp_path / "built.go").exists()


@pytest.mark.parametrize("loop", [LOOP.replace("watchEvent := <-", "event := <-"), "package record\n"])
def test_another_loop_ends_the_build(tmp_path: Path, loop: str) -> None:
    done = compiled(tmp_path, loop)
    assert done.returncode != 0
    assert "event.go of k8s.io/client-go v0.34.4 is not the file that is to be corrected" in done.stderr
    assert not (tmp_path / "built.go").exists()
