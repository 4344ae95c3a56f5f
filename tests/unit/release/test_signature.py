"""The signature of a release: made by minisign, and checked with the folder or beside a file at an address."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from minigts.cli.app import app
from minigts.errors import EnvironmentLacks, InputError
from minigts.release import folder, signature

PARTS = "minigts-0.1.0-parts-x86_64.tar.gz"
WITH_PASSWORD = "correct horse"
needs_minisign = pytest.mark.skipif(shutil.which(signature.PROGRAM) is None, reason="minisign is not installed")


class Keys(NamedTuple):
    secret: Path
    public: Path


def no_password() -> str:
    raise AssertionError("nobody is asked for a password that a key does not have")


def keys(place: Path, name: str, password: str = "") -> Keys:
    made = Keys(place / f"{name}.key", place / f"{name}.pub")
    argv = [signature.PROGRAM, "-G", "-p", str(made.public), "-s", str(made.secret), *([] if password else ["-W"])]
    subprocess.run(argv, input=f"{password}\n" * 2, text=True, check=True, capture_output=True)
    return made


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """What matters of one here: a file, and its sum."""
    place = tmp_path / "release"
    place.mkdir()
    (place / PARTS).write_bytes(b"parts")
    (place / folder.SUMS).write_text(f"{hashlib.sha256(b'parts').hexdigest()}  {PARTS}\n")
    return place


@pytest.fixture
def own(tmp_path: Path) -> Keys:
    return keys(tmp_path, "own")


@pytest.fixture
def served(release: Path) -> Iterator[str]:
    """The address at which the release's folder is served, on loopback."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(release))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@needs_minisign
def test_it_is_the_same_twice_and_belongs_to_its_key_alone(release: Path, own: Keys, tmp_path: Path) -> None:
    first = signature.sign(release, own.secret, no_password).read_bytes()
    assert signature.sign(release, own.secret, no_password).read_bytes() == first
    signature.check(release, str(own.public))
    signature.check(release, own.public.read_text().splitlines()[1])
    with pytest.raises(InputError, match=r"SHA256SUMS: is not signed by RW"):
        signature.check(release, str(keys(tmp_path, "other").public))


@needs_minisign
def test_sums_that_were_changed_afterwards_are_found(release: Path, own: Keys) -> None:
    signature.sign(release, own.secret, no_password)
    with (release / folder.SUMS).open("a") as sums:
        sums.write(f"{'0' * 64}  more\n")
    with pytest.raises(InputError, match="is not signed by"):
        signature.check(release, str(own.public))


@needs_minisign
@pytest.mark.nightly
def test_a_key_with_a_password_asks_for_it(release: Path, tmp_path: Path) -> None:
    locked = keys(tmp_path, "locked", WITH_PASSWORD)
    signature.sign(release, locked.secret, lambda: WITH_PASSWORD)
    signature.check(release, str(locked.public))
    with pytest.raises(InputError, match=r"locked\.key: cannot sign: "):
        signature.sign(release, locked.secret, lambda: "wrong")


@needs_minisign
def test_a_release_whose_files_were_changed_is_not_signed(release: Path, own: Keys) -> None:
    (release / PARTS).write_bytes(b"others")
    with pytest.raises(InputError, match=f"{PARTS} has the sum"):
        signature.sign(release, own.secret, no_password)
    assert not (release / signature.SIGNATURE).exists()


def test_one_without_a_signature_is_said_to_have_none(release: Path) -> None:
    with pytest.raises(InputError, match=r"has no SHA256SUMS\.minisig: it is not signed"):
        signature.check(release, f"RW{'A' * 54}")


@pytest.mark.parametrize("text", ["", "one line\n", "untrusted comment: x\nRWshort\n"])
def test_what_is_no_key_is_refused(release: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "k"
    file.write_text(text)
    with pytest.raises(InputError, match=rf"{file}:2: is no public key"):
        signature.check(release, str(file))
    with pytest.raises(InputError, match=rf"{file}:2: is no secret key"):
        signature.sign(release, file, no_password)
    with pytest.raises(InputError, match="is neither a public key"):
        signature.check(release, str(tmp_path / "missing"))


def test_without_the_program_its_package_is_named(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (release / signature.SIGNATURE).write_text("")
    monkeypatch.setenv("PATH", str(release))
    with pytest.raises(EnvironmentLacks, match="apt-get install minisign"):
        signature.check(release, f"RW{'A' * 54}")


@needs_minisign
def test_the_signed_sum_of_a_file_is_found_beside_it_and_at_an_address(release: Path, own: Keys, served: str) -> None:
    signature.sign(release, own.secret, no_password)
    for place in (str(release / PARTS), f"{served}/{PARTS}"):
        assert signature.sum_beside(place, str(own.public)) == hashlib.sha256(b"parts").hexdigest()
    with pytest.raises(InputError, match=f"beside it has no such file; it has {PARTS}"):
        signature.sum_beside(str(release / "other.tar.gz"), str(own.public))
    (release / signature.SIGNATURE).unlink()
    with pytest.raises(EnvironmentLacks, match=r"SHA256SUMS\.minisig: cannot be fetched: HTTP status 404"):
        signature.sum_beside(f"{served}/{PARTS}", str(own.public))


@needs_minisign
def test_set_up_takes_a_file_only_with_the_sum_that_was_signed(release: Path, own: Keys) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["setup", "uml", *arguments])
        return done.exit_code, " ".join(done.output.split())

    signed = CliRunner().invoke(app, ["release", "sign", str(release), "--key", str(own.secret)])
    assert (signed.exit_code, signed.stdout) == (0, f"{release / signature.SIGNATURE}\n")
    key = ("--public-key", str(own.public))
    code, text = said(*key)
    assert (code, "--public-key is about the file that --from names" in text) == (2, True)
    code, text = said("--from", str(release / PARTS), *key, "--sha256", "0" * 64)
    assert (code, "leave one out" in text) == (2, True)
    (release / PARTS).write_bytes(b"others")
    code, text = said("--from", str(release / PARTS), *key)
    assert code == 2
    assert hashlib.sha256(b"parts").hexdigest() in text
