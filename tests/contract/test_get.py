"""`get`: files and directories come back as they are. The same for every provider."""

from __future__ import annotations

import hashlib
import random
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

import pytest

from minigts.errors import MinigtsError
from minigts.providers import archive
from minigts.providers.archive import Copy
from minigts.providers.base import Provider

LIMIT_S = 60.0


@pytest.fixture
def there(request: pytest.FixtureRequest, lab: Provider, tmp_path: Path) -> PurePosixPath:
    """A directory on host h1 that no other test uses, with a file in it."""
    target = PurePosixPath("/tmp/minigts-get", f"{random.Random(request.node.name).getrandbits(40):x}")
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("content\n")
    lab.put("h1", source, target)
    return target


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o400])
def test_a_files_mode_and_content_are_kept(lab: Provider, tmp_path: Path, there: PurePosixPath, mode: int) -> None:
    lab.run("h1", ["chmod", f"{mode:o}", str(there / "file")], timeout_s=LIMIT_S)
    lab.get("h1", there / "file", tmp_path / "here")
    assert (tmp_path / "here").read_text() == "content\n"
    assert (tmp_path / "here").stat().st_mode & 0o7777 == mode


def test_a_file_does_not_get_its_owners_rights_here(lab: Provider, tmp_path: Path, there: PurePosixPath) -> None:
    lab.run("h1", ["chmod", "6755", str(there / "file")], timeout_s=LIMIT_S)
    lab.get("h1", there / "file", tmp_path / "here")
    assert (tmp_path / "here").stat().st_mode & 0o7777 == 0o755


def test_binary_data_comes_back_unchanged(lab: Provider, tmp_path: Path, there: PurePosixPath) -> None:
    data = random.Random(3).randbytes(3_000_000)
    (tmp_path / "data").write_bytes(data)
    lab.put("h1", tmp_path / "data", there / "data")
    lab.get("h1", there / "data", tmp_path / "back")
    assert hashlib.sha256((tmp_path / "back").read_bytes()).digest() == hashlib.sha256(data).digest()


def test_an_empty_file_comes_back(lab: Provider, tmp_path: Path, there: PurePosixPath) -> None:
    (tmp_path / "empty").touch()
    lab.put("h1", tmp_path / "empty", there / "empty")
    lab.get("h1", there / "empty", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


def test_a_directory_comes_back_with_all_that_is_in_it(lab: Provider, tmp_path: Path, there: PurePosixPath) -> None:
    source = tmp_path / "tree"
    (source / "a" / "b").mkdir(parents=True)
    (source / "empty").mkdir(mode=0o750)
    (source / "a" / "b" / "ä b.txt").write_text("deep\n")
    (source / "link").symlink_to("a/b")
    (source / "elsewhere").symlink_to("/etc")
    lab.put("h1", source, there / "tree")
    copy = lab.get("h1", there / "tree", tmp_path / "back")
    assert (copy.size_bytes, copy.is_directory, copy.left_out, copy.left_out_number) == (5, True, ("elsewhere",), 1)
    assert {str(path.relative_to(tmp_path / "back")) for path in (tmp_path / "back").rglob("*")} == {
        "a",
        "a/b",
        "a/b/ä b.txt",
        "empty",
        "link",
    }
    assert (tmp_path / "back" / "link" / "ä b.txt").read_text() == "deep\n"
    assert (tmp_path / "back" / "empty").stat().st_mode & 0o777 == 0o750


def test_a_copy_from_host_to_host_is_the_same_there(lab: Provider, tmp_path: Path, there: PurePosixPath) -> None:
    """Links of a host are about its own files, so all of them arrive."""
    script = 'cd "$1"; mkdir -m 750 tree; echo deep >"tree/ä b.txt"; ln -s /etc tree/elsewhere; ln -s "ä b.txt" tree/l'
    lab.run("h1", ["sh", "-euc", script, "sh", str(there)], timeout_s=LIMIT_S)
    target = there / "handed on"

    def hand_on(packed: IO[bytes]) -> Copy:
        return lab.unpack_on(
            "h2", target.parent, lambda into: archive.hand_on("h1", packed, target, into, beside=tmp_path)
        )

    copy = lab.archive_of("h1", there / "tree", hand_on)
    assert (copy.size_bytes, copy.is_directory, copy.left_out_number) == (5, True, 0)
    look = 'cd "$1"; stat -c "%a %U" .; cat "ä b.txt" l; readlink elsewhere; ls -A'
    said = lab.run("h2", ["sh", "-euc", look, "sh", str(target)], timeout_s=LIMIT_S).stdout.split("\n")
    assert said == ["750 root", "deep", "deep", "/etc", "elsewhere", "l", "ä b.txt", ""]
    assert list(tmp_path.iterdir()) == [tmp_path / "source"]


@pytest.mark.parametrize("name", ["/proc/sys/kernel/ostype", "file"])
def test_a_file_from_host_to_host_is_the_file(lab: Provider, tmp_path: Path, there: PurePosixPath, name: str) -> None:
    if lab.name == "fake" and name.startswith("/proc"):
        pytest.skip("its hosts are directories, and have no /proc")

    def hand_on(packed: IO[bytes]) -> Copy:
        write = partial(archive.hand_on, "h1", packed, there / "handed on", beside=tmp_path)
        return lab.unpack_on("h2", there, lambda into: write(into=into))

    copy = lab.archive_of("h1", there / name, hand_on)
    said = lab.run("h2", ["cat", str(there / "handed on")], timeout_s=LIMIT_S).stdout
    assert said == ("content\n" if name == "file" else "Linux\n")
    assert (copy.size_bytes, copy.is_directory) == (len(said), False)


@pytest.mark.parametrize(("host", "path"), [("h1", "/no/such/file"), ("h9", "/etc/hostname")])
def test_what_is_not_there_is_an_error_and_leaves_nothing(lab: Provider, tmp_path: Path, host: str, path: str) -> None:
    with pytest.raises(MinigtsError, match="no host h9" if host == "h9" else path):
        lab.get(host, PurePosixPath(path), tmp_path / "here")
    assert list(tmp_path.iterdir()) == []
