"""The launcher, started for real where no network is: its Python packages come from the file that is imported."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from test_launcher import launch, parts

pytestmark = [
    pytest.mark.touched("minigts", "requirements.lock", "requirements-dev.lock", "tools/minigts/release"),
    pytest.mark.timeout(600),
]
NOWHERE = {
    "MINIGTS_CACHE": "",
    "PIP_INDEX_URL": "http://127.0.0.1:9/",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "0",
    "PIP_NO_CACHE_DIR": "1",
}
"""Nobody answers there."""
WHEEL = "tiny-1.0-py3-none-any.whl"


def wheel() -> bytes:
    """A package with one module."""
    made = io.BytesIO()
    about = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "word = 'from the file'\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # with one date, so that its sum is one
    return made.getvalue()


def carried(place: Path, *names: str) -> Path:
    with tarfile.open(place, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(wheel())
            archive.addfile(entry, io.BytesIO(wheel()))
    return place


def launcher(project: Path, sha256: str) -> Path:
    package = parts(project)
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (project / lock).write_text(f"tiny==1.0 --hash=sha256:{sha256}\n# {lock}\n")
    (package / "__main__.py").write_text("import tiny\nprint(tiny.word)\n")
    return project / "minigts"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("image", "import", "--sha256", "0", "FILE"), marks=pytest.mark.nightly),
        ("setup", "uml", "--from", "FILE"),
        pytest.param(("setup", "uml", "--from=FILE"), marks=pytest.mark.nightly),
    ],
    ids=" ".join,
)
def test_packages_come_from_the_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    own = launcher(tmp_path / "project", hashlib.sha256(wheel()).hexdigest())
    file = carried(tmp_path / "a file.tar.gz", f"wheels/{WHEEL}")
    done = launch(
        own, *(word.replace("FILE", str(file)) for word in words), XDG_CACHE_HOME=str(tmp_path / "cache"), **NOWHERE
    )
    assert (done.returncode, done.stdout) == (0, "from the file\n"), done.stderr
    assert list((tmp_path / "cache").rglob("*.whl")) == []


@pytest.mark.parametrize(
    ("sha256", "names"),
    [
        ("0" * 64, [f"wheels/{WHEEL}"]),
        pytest.param(
            hashlib.sha256(wheel()).hexdigest(),
            [f"images/{WHEEL}", f"wheels/../../{WHEEL}"],
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["another sum", "no wheels, and one that leads elsewhere"],
)
def test_nothing_is_installed_that_the_lock_does_not_name(tmp_path: Path, sha256: str, names: list[str]) -> None:
    own, file = launcher(tmp_path / "project", sha256), carried(tmp_path / "a.tar.gz", *names)
    done = launch(own, "image", "import", str(file), XDG_CACHE_HOME=str(tmp_path / "cache"), **NOWHERE)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "could not install the Python packages of requirements.lock" in done.stderr
    assert list(tmp_path.rglob("made")) == []
    assert list(tmp_path.rglob("*.whl")) in ([], [*tmp_path.rglob("wheels/*.whl")])
