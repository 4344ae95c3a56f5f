"""The signature of a release: of its sums, and so of each of its files, by minisign(1). Made, and checked."""

from __future__ import annotations

import base64
import binascii
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

import minigts
from minigts import paths
from minigts.artifacts import downloads
from minigts.errors import CommandFailed, EnvironmentLacks, InputError, Problem
from minigts.foreign import Foreign, one_line
from minigts.machine import shell
from minigts.release import folder as releases

PROGRAM = "minisign"
SIGNATURE = releases.SIGNATURE
TIMEOUT_S = 60.0
"""Deriving a key from its password takes minisign a second or two."""
_PUBLIC = re.compile(r"RW[A-Za-z0-9+/]{54}")
"""A public key: 42 bytes in base64, of which the first two are `Ed`."""
_MOST_BYTES = 1 << 20
_LIMITS = downloads.DownloadLimits(most_bytes=_MOST_BYTES)
_ENCRYPTED = b"Sc"
"""How a secret key's third and fourth byte say that it has a password: minisign's name for scrypt."""


def sign(release: Path, key: Path, password: Callable[[], str]) -> Path:
    """Sign a release's sums with the secret key in a file; return the signature's file. `password` is asked for a key
    that has one. A key gives the same release the same signature.

    Raises InputError for a folder that is no release, or whose files have other sums, and for a key that cannot sign;
    EnvironmentLacks without minisign.
    """
    releases.check_sums(release)
    encrypted, made = _has_password(key), release / SIGNATURE
    _require_program()
    argv = [PROGRAM, "-S", "-s", str(key), "-m", str(release / releases.SUMS), "-x", str(made)]
    said = f"minigts {minigts.__version__}"
    typed = f"{password()}\n".encode() if encrypted else b""
    try:
        shell.run([*argv, "-t", said, "-c", said], timeout_s=TIMEOUT_S, stdin=typed)
    except CommandFailed as error:
        why = "the password is wrong" if encrypted and "password" in error.err.lower() else _last(error.err)
        raise InputError([Problem(str(key), 0, f"cannot sign: {why}")]) from error
    return made


def check(release: Path, key: str) -> None:
    """Check that the public key, or the one in a file of that name, belongs to the key that has signed a release's
    sums. Raises InputError where it does not, or there is no signature; EnvironmentLacks without minisign."""
    public = _public(key)
    if not (release / SIGNATURE).is_file():
        raise InputError([Problem(str(release), 0, f"has no {SIGNATURE}: it is not signed")])
    _require_program()
    argv = [PROGRAM, "-V", "-q", "-P", public, "-m", str(release / releases.SUMS), "-x", str(release / SIGNATURE)]
    try:
        shell.run(argv, timeout_s=TIMEOUT_S)
    except CommandFailed as error:
        why = f"is not signed by {public}: {_last(error.err)}"
        raise InputError([Problem(str(release / releases.SUMS), 0, why)]) from error


def sum_beside(place: str, key: str) -> str:
    """The SHA-256 sum of a file of a release, by the signed sums that lie beside it in a folder or at an address.

    Raises what `check` raises, InputError where the sums do not have the file, and EnvironmentLacks for what cannot be
    fetched.
    """
    if not downloads.is_address(place):
        file = Path(place)
        return _signed_sum(file.parent, file.name, key)
    name = unquote(PurePosixPath(urlsplit(place).path).name)
    with tempfile.TemporaryDirectory(prefix="minigts-sums-") as temporary:
        for beside in (releases.SUMS, SIGNATURE):
            address = urljoin(place, beside)
            try:
                with (Path(temporary) / beside).open("xb") as into:
                    downloads.fetch(address, into, _LIMITS)
            except downloads.DownloadRefused as error:
                raise EnvironmentLacks(f"{downloads.public_place(address)}: {error}") from error
        return _signed_sum(Path(temporary), name, key)


def _signed_sum(release: Path, name: str, key: str) -> str:
    check(release, key)
    sums = releases.sums(release)
    if name not in sums:
        raise InputError(f"{name}: {releases.SUMS} beside it has no such file; it has {', '.join(sorted(sums))}")
    return sums[name]


def _public(key: str) -> str:
    """The public key itself: as written, or the second line of minisign's file."""
    if _PUBLIC.fullmatch(key):
        return key
    lines = _lines(Path(key), f"is neither a public key, as in RW… with 56 characters, nor a file of {PROGRAM} -G")
    if len(lines) < 2 or not _PUBLIC.fullmatch(lines[1].strip()):
        raise InputError([Problem(key, 2, f"is no public key of {PROGRAM} -G")])
    return lines[1].strip()


def _has_password(key: Path) -> bool:
    lines = _lines(key, f"is no file of a secret key, which {PROGRAM} -G writes")
    try:
        decoded = base64.b64decode(lines[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise InputError([Problem(str(key), 2, f"is no secret key of {PROGRAM} -G")]) from error
    return decoded[2:4] == _ENCRYPTED


def _lines(file: Path, why: str) -> list[str]:
    try:
        return paths.read_whole(file, _MOST_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(file), 0, why)]) from error


def _last(stderr: Foreign) -> str:
    lines = stderr.strip().splitlines()
    return one_line(lines[-1]) if lines else f"{PROGRAM} says no more"


def _require_program() -> None:
    if shutil.which(PROGRAM) is None:
        raise EnvironmentLacks(f"{PROGRAM} is not installed: apt-get install {PROGRAM}")
