"""Archives of hosts of bad will in great numbers: whatever they hold, nothing outside of the copy is read, changed or
led to. `--fuzz N` for more.
"""

from __future__ import annotations

import errno
import io
import os
import random
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from test_archive import member, pax

from minigts.errors import HostFailed
from minigts.providers import archive

SECRET = b"the words of the user's own file"
D, F, L, H = b"5", b"0", b"2", b"1"
Name = Callable[[random.Random], bytes]


def of(name: bytes, kind: bytes, linked: bytes = b"", content: bytes = b"") -> bytes:
    """A member with headers of its own for what is longer than a header has room for."""
    more = b""
    for letter, value in ((b"L", name), (b"K", linked)):
        if len(value) > 99:
            more += member(b"././@LongLink", len(value) + 1, letter, value + b"\0")
    return more + member(name[:99], len(content), kind, content, linked=linked[:99])


def chosen(chance: random.Random, *names: bytes) -> bytes:
    return chance.choice(names)


def inside(chance: random.Random) -> bytes:
    depth = chance.choice((1, 1, 1, 1, 2, 2, 3))
    return b"./" * chance.randint(0, 1) + b"/".join(bytes([chance.choice(b"abcdefgh")]) for _ in range(depth))


def outside(chance: random.Random) -> bytes:
    """A path to the canary, or to its directory, by one of many ways. The tests run in the copy's parent."""
    way = chosen(chance, b"%(outside)s", b"../outside", b"../../outside", b"../../../outside", b"a/../../outside")
    return way + chosen(chance, b"", b"/", b"/secret", b"/./secret", b"/new")


def directory(chance: random.Random) -> bytes:
    return of(inside(chance), D)


def file(chance: random.Random) -> bytes:
    return of(inside(chance), F, content=b"content"[: chance.randint(0, 7)])


def link(chance: random.Random) -> bytes:
    return of(inside(chance), L, outside(chance) if chance.random() < 0.6 else inside(chance))


def link_upwards(chance: random.Random) -> bytes:
    """By other links' names: each seems to stay inside."""
    words = [chance.choice((b"a", b"b", b"c", b"..", b".", b"")) for _ in range(chance.randint(1, 6))]
    return of(inside(chance), L, b"/".join(words) or b".")


def in_place_of_the_target(chance: random.Random) -> bytes:
    kind = chance.choice((L, L, L, H, D, F, b"3", b"6"))
    name = chosen(chance, b".", b"./", b"./.", b"", b"back", b"../back", b"%(top)s", b"././/.")
    return of(name, kind, outside(chance) if kind in (L, H) else b"")


def hard_link(chance: random.Random) -> bytes:
    return of(inside(chance), H, chance.choice((outside, inside))(chance))


def through(chance: random.Random) -> bytes:
    name = chance.choice((b"a", b"b", b"a/b"))
    first = of(name, chance.choice((L, L, L, D)), outside(chance))
    second = of(name, chance.choice((D, L)), outside(chance)) if chance.random() < 0.5 else b""
    return first + second + of(name + chosen(chance, b"/new", b"/secret", b"/a"), chance.choice((F, D, L, H)), b"x")


def upwards(chance: random.Random) -> bytes:
    return of(outside(chance), chance.choice((F, D, L, H)), outside(chance))


def device(chance: random.Random) -> bytes:
    return of(inside(chance), chance.choice((b"3", b"4", b"6", b"7", b"V", b"M", b"D", b"S", b"\0", b"s", b"A")))


def odd_name(chance: random.Random) -> bytes:
    long = chance.choice((b"n", b"d/", b"../", b"a/../", b"/")) * chance.choice((120, 256, 2000, 4100))
    bytes_ = bytes(chance.choice(b"\n\r\t\x1b\x7f\xff\xfe\\'\"$`;|&*?~- .\xe2\x80\xae") for _ in range(9))
    return of(chance.choice((long, bytes_, b"-rf", b"\xff" * 60)), chance.choice((F, D, L)), outside(chance))


def header(chance: random.Random) -> bytes:
    key = chosen(chance, b"path", b"linkpath", b"size", b"mtime", b"uid", b"mode", b"GNU.sparse.name", b"hdrcharset")
    value = chance.choice(
        (outside(chance), inside(chance), b"1e999", b"-1", b"nan", b"9" * 30, b"", b"a\0b", b"BINARY")
    )
    content = pax((key, value))
    return member(b"x", len(content), chance.choice((b"x", b"x", b"x", b"g")), content)


KINDS: dict[str, tuple[Callable[[random.Random], bytes], ...]] = {
    "in place of the target": (in_place_of_the_target, file, directory),
    "links out": (link, link, directory, file),
    "links by way of links": (link_upwards, link_upwards, directory),
    "hard links": (hard_link, file, link, directory),
    "through links": (through, through, directory, file),
    "upwards": (upwards, directory, file),
    "directories replaced": (directory, link, directory, file, through),
    "devices and strange kinds": (device, file, directory, link),
    "names": (odd_name, file, directory),
    "headers": (header, file, link, directory),
    "all": (in_place_of_the_target, link, link_upwards, hard_link, through, upwards, device, odd_name, header, file),
}
NEVER_A_COPY = ("through links", "upwards")
HURT = "damaged"
"""What any of them sends, with bytes changed, lost and doubled."""


def sent(kind: str, number: int, places: dict[bytes, bytes]) -> bytes:
    chance = random.Random(f"{kind} {number}")
    makers = KINDS[chance.choice([*KINDS]) if kind == HURT else kind]
    parts = [of(b".", D)] if chance.random() < 0.85 else []
    parts += [chance.choice(makers)(chance) for _ in range(chance.choice((1, 2, 3, 4, 12)))]
    content = b"".join(parts)
    if kind == HURT:
        for _ in range(chance.randint(1, 4)):
            a, b = sorted(chance.randint(0, len(content)) for _ in range(2))
            content = chance.choice(
                (
                    content[:a] + content[b:],
                    content[:b] + content[a:b] + content[b:],
                    content[:a] + bytes([chance.randrange(256)]) + content[a + 1 :],
                    content[:a],
                    content[:a] + chance.randbytes(600) + content[a:],
                )
            )
    return _placed(content, places) + bytes(1024)


def _placed(content: bytes, places: dict[bytes, bytes]) -> bytes:
    """With this machine's paths where they belong, and the sums of headers as they then are."""
    made = bytearray(content)
    for at in range(0, len(made) - 511, 512):
        block = bytes(made[at : at + 512])
        for word, path in places.items():
            while word in block and len(path) < 99:
                here = block.index(word)
                block = (block[:here] + path + block[here + len(word) :])[:512].ljust(512, b"\0")
        if block != bytes(made[at : at + 512]):
            sums = bytearray(block)
            sums[148:156] = b" " * 8
            sums[148:156] = b"%06o\0 " % sum(sums)
            made[at : at + 512] = sums
    return bytes(made)


def states(directory: Path) -> dict[str, tuple[object, ...]]:
    """All that is there, with its content and whatever a host might change of it."""
    found = {}
    for path in (directory, *sorted(directory.rglob("*"))):
        state = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (state.st_mode, state.st_uid, state.st_nlink, state.st_mtime_ns, state.st_ino, content)
    return found


def is_a_loop(path: Path) -> bool:
    """Whether a link leads to itself, which the kernel follows nowhere, and realpath somewhere."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def everything(top: Path) -> list[Path]:
    """All paths below, also those in directories without rights, which a plain user's tests give back."""
    found = []
    for place, folders, files in os.walk(top):
        found += [Path(place, name) for name in (*folders, *files)]
        for name in folders:
            if not Path(place, name).is_symlink():
                Path(place, name).chmod(0o700)
    return found


@pytest.mark.parametrize("kind", [*KINDS, HURT])
def test_whatever_a_host_sends_is_a_copy_or_one_refusal(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    canary = tmp_path / "outside"
    canary.mkdir()
    (canary / "secret").write_bytes(SECRET)
    (canary / "secret").chmod(0o600)
    before, accepted = states(canary), 0
    for number in range(max(20, request.config.getoption("--fuzz") // len(KINDS))):
        top = tmp_path / f"{number}"
        top.mkdir()
        places = {b"%(outside)s": bytes(canary), b"%(top)s": bytes(top / "back")}
        broken = sent(kind, number, places)
        try:
            archive.unpack("ams", io.BytesIO(broken), top / "back")
            accepted += 1
        except HostFailed as error:
            assert "\n" not in str(error), number
        assert states(canary) == before, number
        assert {path.name for path in top.iterdir()} <= {"back"}, number
        assert not (top / "back").is_symlink(), number
        for path in everything(top):
            if path.is_symlink():
                assert not path.readlink().is_absolute(), number
                assert is_a_loop(path) or Path(os.path.realpath(path)).is_relative_to(top / "back"), number
            elif path.is_file():
                assert SECRET not in path.read_bytes(), number
                assert path.stat().st_nlink == 1, number
            else:
                assert path.is_dir(), number
        _hand_on(number, broken, top, canary, before)
        shutil.rmtree(top)
    assert kind in NEVER_A_COPY or accepted, "nothing of this kind was ever a copy, so little was tried"


def _hand_on(number: int, broken: bytes, top: Path, canary: Path, before: dict[str, tuple[object, ...]]) -> None:
    """The same to another host: its tar, which is GNU's, unpacks what it is given; a tenth is really unpacked."""
    handed = io.BytesIO()
    try:
        archive.hand_on("ams", io.BytesIO(broken), PurePosixPath("/srv/copy"), handed, top)
    except HostFailed:
        return
    handed.seek(0)
    with tarfile.open(fileobj=handed) as got:
        seen_link = False
        for one in got:
            parts = PurePosixPath(one.name).parts
            assert parts[0] == "copy", number
            assert ".." not in parts, number
            assert one.type in (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE), number
            assert one.mode & ~0o777 == 0, number
            assert not seen_link or one.issym(), number
            seen_link = one.issym()
    if number % 10 == 0:
        there = top / "there"
        there.mkdir()
        argv = ["tar", "-x", "-m", "--no-same-owner", "-C", str(there)]
        subprocess.run(argv, input=handed.getvalue(), capture_output=True, check=False)
        assert states(canary) == before, number
        assert {path.name for path in there.iterdir()} <= {"copy"}, number
