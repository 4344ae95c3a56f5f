"""The package of Debian: what of the lock goes in for which Python, what is shared, and what its files say."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import minigts
from minigts import paths
from minigts.cli.app import app
from minigts.machine import shell
from minigts.release import debian_package
from minigts.release import folder as releases

pytestmark = pytest.mark.touched("tools/minigts/release", "pyproject.toml", "requirements.lock")

LOCK = """numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via minigts
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:ac
pydantic==2.1 \\
    --hash=sha256:ad
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:ae
"""


@pytest.mark.parametrize(("python", "numpy", "hashes"), [("3.11", "2.4.6", "aa ab ad"), ("3.13", "2.5.5", "ac ad")])
def test_each_python_gets_the_lock_s_own_packages_for_it(python: str, numpy: str, hashes: str) -> None:
    taken = "".join(debian_package.entries(LOCK, python))
    assert re.findall(r"^(\S+)==(\S+)", taken, re.MULTILINE) == [("numpy", numpy), ("pydantic", "2.1")]
    assert re.findall(r"sha256:(\S+)", taken) == hashes.split()
    assert ";" not in taken


@pytest.mark.parametrize("python", debian_package.PYTHONS)
def test_the_project_s_lock_has_one_version_of_each_for_each_python(python: str) -> None:
    whole = (paths.project_root() / "requirements.lock").read_text(encoding="utf-8")
    names = [each.partition("==")[0] for each in debian_package.entries(whole, python)]
    assert len(names) == len(set(names)) > 50
    assert {"numpy", "pydantic-core", "nicegui"} <= set(names)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a package of a few files in place of the lock's, into a new folder of that name."""

    def install(argv: list[str], **_: object) -> None:
        tree = Path(argv[argv.index("--target") + 1])
        python = next(each for each in argv if each.startswith("--python-version")).partition("=")[2]
        (tree / "bin").mkdir(parents=True, exist_ok=True)
        for name, content in {
            "pure/__init__.py": "same",
            "pure-1.dist-info/METADATA": "Name: pure\nLicense-Expression: MIT\n",
            "fast/__init__.py": "same",
            "fast/core.abi3.so": "same",
            "fast.libs/libz.so.1": "same",
            "numpy/version.py": python,
        }.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(content)

    real = shell.run

    def run(argv: list[str], **settings: object) -> object:
        return install(argv) if "pip" in argv else real(argv, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(releases, "pack_python", lambda into, _say: None)
    monkeypatch.setattr(debian_package.shell, "run", run)

    def made(name: str) -> Path:
        (tmp_path / name).mkdir()
        return debian_package.build(tmp_path / name, lambda _: None, uncommitted=True)

    return made


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_what_is_the_same_for_all_pythons_is_there_once(package: Callable[[str], Path], tmp_path: Path) -> None:
    file = package("one")
    assert file.name == f"minigts_{minigts.__version__}_amd64.deb"
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "--raw-extract", str(file), str(root)], check=True)
    lib = root / "usr/lib/minigts/lib"
    assert sorted(each.name for each in (lib / "shared").iterdir()) == ["pure", "pure-1.dist-info"]
    for python in debian_package.PYTHONS:
        site = lib / f"python{python}" / "site-packages"
        assert sorted(each.name for each in site.iterdir()) == ["fast", "fast.libs", "minigts.pth", "numpy"]
        assert (site / "numpy/version.py").read_text() == python
        assert (site / "minigts.pth").read_text() == "/usr/lib/minigts/lib/shared\n"
    assert (root / "usr/lib/minigts/bin/python3").readlink() == Path("../../../bin/python3")
    assert (root / "usr/bin/minigts").stat().st_mode & 0o777 == 0o755
    assert (lib / "shared/pure/__init__.py").stat().st_mode & 0o777 == 0o644
    control = (root / "DEBIAN/control").read_text(encoding="utf-8")
    assert "@" not in control.replace(debian_package.MAINTAINER, "")
    assert {"mmdebstrap", "e2fsprogs", "uidmap"} <= set(re.split(r"[\s,]+", control))
    assert "pure-1: MIT" in (root / "usr/share/doc/minigts/copyright").read_text(encoding="utf-8")
    assert package("two").read_bytes() == file.read_bytes()


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    file = tmp_path / f"minigts_{minigts.__version__}_amd64.deb"
    file.write_text("mine")
    done = CliRunner().invoke(app, ["release", "deb", str(tmp_path), "--uncommitted"])
    assert (done.exit_code, file.read_text()) == (2, "mine")
    assert "exists already" in done.output
