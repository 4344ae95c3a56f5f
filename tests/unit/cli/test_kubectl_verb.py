"""kubectl on the control plane: which host it runs on, and which files of this machine go along."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.cli.verbs.kubectl import _with_files
from minigts.errors import InputError

IN_HOST = "/run/minigts/kubectl"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("app.yaml", "more/db.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("kind: Pod\n")
    return tmp_path


@pytest.mark.parametrize(
    ("written", "given", "copied"),
    [
        ("get pods -A", "get pods -A", []),
        ("apply -f app.yaml", f"apply -f {IN_HOST}/0/app.yaml", ["app.yaml"]),
        ("apply -fapp.yaml", f"apply -f{IN_HOST}/0/app.yaml", ["app.yaml"]),
        ("delete --filename=more/db.yaml", f"delete --filename={IN_HOST}/0/db.yaml", ["more/db.yaml"]),
        (
            "-n shop apply --filename app.yaml -R -f more",
            f"-n shop apply --filename {IN_HOST}/0/app.yaml -R -f {IN_HOST}/1/more",
            ["app.yaml", "more"],
        ),
        ("apply -f - -f http://x/y", "apply -f - -f http://x/y", []),
        ("logs -f web-0", "logs -f web-0", []),
        ("exec web-0 -- tail -f app.yaml", "exec web-0 -- tail -f app.yaml", []),
    ],
)
def test_files_of_this_machine_go_along(here: Path, written: str, given: str, copied: list[str]) -> None:
    words, files = _with_files(written.split(), here)
    assert " ".join(words) == given
    expected = [
        (here / path, PurePosixPath(IN_HOST, str(number), Path(path).name)) for number, path in enumerate(copied)
    ]
    assert files == expected


def test_a_file_that_is_not_there_is_said_before_anything_is_copied(here: Path) -> None:
    with pytest.raises(InputError, match=r"kubectl: there is no web\.yaml on this machine"):
        _with_files(["apply", "-f", "app.yaml", "-f", "web.yaml"], here)


def test_without_a_lab_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    done = CliRunner().invoke(app, ["kubectl", "get", "pods"])
    assert done.exit_code == 2
    assert "no lab is up" in done.output
