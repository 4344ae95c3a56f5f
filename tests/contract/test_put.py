"""`put`: files and directories arrive as they are. The same for every provider."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path, PurePosixPath

import pytest

from minigts.errors import MinigtsError
from minigts.foreign import user_text
from minigts.providers.base import Provider

LIMIT_S = 60.0


def said(lab: Provider, *argv: str) -> str:
    return user_text(lab.run("h1", argv, timeout_s=LIMIT_S).stdout)


@pytest.fixture
def target(request: pytest.FixtureRequest) -> PurePosixPath:
    """A place on the host that no other test uses, and that is not there yet."""
    return PurePosixPath("/tmp/minigts-contract", f"{random.Random(request.node.name).getrandbits(40):x}", "deep")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4755, 0o400])
def test_a_files_mode_is_kept(lab: Provider, tmp_path: Path, target: PurePosixPath, mode: int) -> None:
    source = tmp_path / "file"
    source.write_text("content\n")
    source.chmod(mode)
    lab.put("h1", source, target / "file")
    assert said(lab, "cat", str(target / "file")) == "content\n"
    assert said(lab, "stat", "-c", "%a", str(target / "file")).strip() == f"{mode:o}"


def test_a_file_takes_the_targets_name(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    (tmp_path / "here").write_text("content\n")
    lab.put("h1", tmp_path / "here", target / "there")
    assert said(lab, "cat", str(target / "there")) == "content\n"


def test_binary_data_arrives_unchanged(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    data = random.Random(2).randbytes(300_000)
    (tmp_path / "data").write_bytes(data)
    lab.put("h1", tmp_path / "data", target / "data")
    assert said(lab, "sha256sum", str(target / "data")).split()[0] == hashlib.sha256(data).hexdigest()


def test_a_later_file_replaces_an_earlier_one(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    for content, mode in (("the first, which is longer\n", 0o400), ("the second\n", 0o755)):
        source = tmp_path / f"{mode}"
        source.write_text(content)
        source.chmod(mode)
        lab.put("h1", source, target / "file")
    assert said(lab, "cat", str(target / "file")) == "the second\n"
    assert said(lab, "stat", "-c", "%a", str(target / "file")).strip() == "755"


def test_a_directory_arrives_with_all_that_is_in_it(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    source = tmp_path / "tree"
    (source / "a" / "b" / "c").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "a" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "a" / "run.sh").chmod(0o755)
    (source / "a" / "b" / "c" / "ä b.txt").write_text("deep\n")
    (source / "link").symlink_to("a/run.sh")
    lab.put("h1", source, target)
    assert said(lab, str(target / "a" / "run.sh")) == "ran\n"
    assert said(lab, str(target / "link")) == "ran\n"
    assert said(lab, "cat", str(target / "a" / "b" / "c" / "ä b.txt")) == "deep\n"
    assert said(lab, "stat", "-c", "%F", str(target / "empty")).strip() == "directory"


def test_a_directory_put_again_has_the_new_files(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    source = tmp_path / "tree"
    source.mkdir()
    (source / "file").write_text("one\n")
    lab.put("h1", source, target)
    (source / "file").write_text("two\n")
    lab.put("h1", source, target)
    assert said(lab, "cat", str(target / "file")) == "two\n"


def test_hosts_have_files_of_their_own(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    (tmp_path / "file").write_text("content\n")
    lab.put("h1", tmp_path / "file", target / "file")
    assert lab.run("h2", ["cat", str(target / "file")], timeout_s=LIMIT_S, check=False).code == 1


def test_a_source_that_is_not_there_is_an_error(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    with pytest.raises(FileNotFoundError):
        lab.put("h1", tmp_path / "nothing", target / "file")


def test_an_unknown_host_is_an_error(lab: Provider, tmp_path: Path, target: PurePosixPath) -> None:
    (tmp_path / "file").write_text("content\n")
    with pytest.raises(MinigtsError, match="no host h9"):
        lab.put("h9", tmp_path / "file", target / "file")
