"""Files below a directory of a stranger's: no link on the way to them is followed, with openat2(2) and without it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigts import paths
from minigts.machine import beneath

WITHOUT_THE_CALL = r"""
import ctypes, os, struct, sys
# Load the number; 437: the answer; else: allow.
steps = ((0x20, 0, 0, 0), (0x15, 0, 1, 437), (6, 0, 0, 0x50000 | int(sys.argv[1])), (6, 0, 0, 0x7FFF0000))
kept = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(kept))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
assert libc.syscall(437, -1, None, None, 0) == -1 and ctypes.get_errno() == int(sys.argv[1])
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""An interpreter that a kernel without openat2(2), or a filter that refuses it, answers with the given error."""
TRY = r"""
import os, sys
from pathlib import Path
from minigts.machine import beneath
with beneath.open_directory(Path(sys.argv[1])) as directory:
    try:
        os.close(beneath.open_beneath(directory, sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    except OSError as error:
        print(error.errno)
    else:
        print(0)
"""
LINK = -1
"""One of the two errors for a link: ELOOP, or ENOTDIR where a directory is opened."""
PATHS = {
    "file": 0,
    "./d//e/file": 0,
    "d/e": 0,
    ".": 0,
    "absent": errno.ENOENT,
    "file/x": errno.ENOTDIR,
    "link": LINK,
    "away/secret": LINK,
    "round/file": LINK,
    "d/up/secret": LINK,
    "../outside/secret": errno.EXDEV,
    "d/../file": errno.EXDEV,
    "/etc/passwd": errno.EXDEV,
}
"""What opening them gives: a descriptor (0), or an error."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    made = tmp_path / "place"
    (made / "d" / "e").mkdir(parents=True)
    for file in (made / "file", made / "d" / "e" / "file"):
        file.write_text("content")
    (made / "link").symlink_to("file")
    (made / "away").symlink_to(tmp_path / "outside")
    (made / "round").symlink_to("d/e")
    (made / "d" / "up").symlink_to("../../outside")
    os.mkfifo(made / "pipe")
    return made


def tried(refusal: int | None, place: Path, name: str, flags: int, mode: int = 0) -> int:
    words = ["-c", TRY, str(place), name, str(flags), str(mode)]
    without = [] if refusal is None else ["-c", WITHOUT_THE_CALL, str(refusal)]
    done = subprocess.run(
        [sys.executable, *without, *words],
        env={**os.environ, "PYTHONPATH": str(paths.import_root())},
        capture_output=True,
        text=True,
        check=True,
    )
    found = int(done.stdout)
    return LINK if found in (errno.ELOOP, errno.ENOTDIR) and "/x" not in name else found


REFUSALS = [pytest.param(None, id="by openat2"), *(pytest.param(e, id=errno.errorcode[e]) for e in (38, 1))]


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", PATHS)
def test_no_link_is_followed_and_no_way_leads_out(place: Path, name: str, refusal: int | None) -> None:
    assert tried(refusal, place, name, os.O_RDONLY) == PATHS[name]


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize(
    ("name", "flags", "ends"),
    [
        ("d/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0),
        ("file", os.O_WRONLY | os.O_CREAT | os.O_EXCL, errno.EEXIST),
        ("link", os.O_WRONLY | os.O_CREAT, LINK),
        ("away/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, LINK),
        ("away", os.O_PATH | os.O_DIRECTORY, LINK),
        ("link", os.O_PATH, LINK),
        ("d/e", os.O_PATH | os.O_DIRECTORY, 0),
    ],
)
def test_nor_is_anything_made_by_way_of_one(place: Path, name: str, flags: int, ends: int, refusal: int | None) -> None:
    mode = 0o640 if flags & os.O_CREAT else 0
    assert tried(refusal, place, name, flags, mode) == ends
    assert [path.name for path in (place.parent / "outside").iterdir()] == ["secret"]
    if ends == 0 and mode:
        assert (place / name).stat().st_mode & 0o777 == 0o640 & ~paths.users_umask()


def test_the_directory_itself_is_no_link(place: Path) -> None:
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"), beneath.open_directory(place / "away"):
        pass


def test_a_name_with_a_zero_byte_is_no_path(place: Path) -> None:
    with beneath.open_directory(place) as directory, pytest.raises(ValueError, match="null byte"):
        beneath.open_beneath(directory, "file\0", os.O_RDONLY)


def test_plain_files_are_read_and_nothing_else(place: Path) -> None:
    assert beneath.read(place, "d/e/file", 7) == b"content"
    with pytest.raises(OSError, match="more than 6 bytes"):
        beneath.read(place, "file", 6)
    assert beneath.end_of(place, "file", 3) == b"ent"
    for name in ("link", "pipe", "d", "away/secret"):
        with pytest.raises(OSError):
            beneath.read(place, name, 100)


def test_of_a_listed_directory_what_is_no_plain_file_is_named_and_not_read(place: Path) -> None:
    assert beneath.listing(place) == beneath.Listing(("file",), ("away", "link", "pipe", "round"))
    assert beneath.texts(place, 3) == {
        **dict.fromkeys(("away", "link", "pipe", "round"), beneath.NOT_READ),
        "file": "ent",
    }
