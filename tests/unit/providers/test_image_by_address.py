"""`setup uml --from`: the built parts of a release, from a file or from an address."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from providers.small_parts import exported
from typer.testing import CliRunner, Result

from minigts.cli.app import app
from minigts.providers.uml.build import image
from minigts.release import signature
from minigts.release.folder import SUMS


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder with nothing else."""
    folder = tmp_path / "release"
    folder.mkdir()
    file = exported(tmp_path, monkeypatch)
    return file.rename(folder / file.name)


@pytest.fixture
def address(file: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(file.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{file.name}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def setup(*words: str) -> Result:
    return CliRunner().invoke(app, ["setup", *words])


def sum_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_parts_come_from_a_file(file: Path) -> None:
    done = setup("uml", "--from", str(file))
    assert (done.exit_code, image.present() is not None) == (0, True)
    assert "imported images/" in done.output
    assert "everything in it is here already" in setup("uml", "--from", str(file)).output


def test_a_key_of_the_parts_is_printed_whether_they_are_built_or_not(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = setup("uml", "--key")
    assert (done.exit_code, image.present()) == (0, None)
    assert re.fullmatch(r"[0-9a-f]{16}(-[0-9a-f]{16}){2}\n", done.output)
    setup("uml", "--from", str(file))
    assert setup("uml", "--key").output == done.output
    monkeypatch.setattr(image, "key", lambda: "another")
    assert setup("uml", "--key").output.partition("-")[0] == "another"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("uml", "--key", "--shared"), "--key sets nothing up"),
        (("uml", "--key", "--from", "x"), "--key sets nothing up"),
        (("vagrant", "--key"), "provider vagrant has no built parts"),
    ],
)
def test_a_key_goes_with_nothing_else(words: tuple[str, ...], said: str) -> None:
    done = setup(*words)
    assert (done.exit_code, said in done.output) == (2, True)


def test_and_from_an_address_by_their_sum(file: Path, address: str) -> None:
    done = setup("uml", "--from", address, "--sha256", sum_of(file))
    assert (done.exit_code, image.present() is not None) == (0, True)
    assert list((file.parent / "here").glob("fetching-*")) == []


@pytest.mark.skipif(shutil.which(signature.PROGRAM) is None, reason="minisign is not installed")
def test_and_by_a_key_that_has_signed_the_sums_beside_it(file: Path, address: str, tmp_path: Path) -> None:
    (file.parent / SUMS).write_text(f"{sum_of(file)}  {file.name}\n")
    secret, public = tmp_path / "k.key", tmp_path / "k.pub"
    argv = [signature.PROGRAM, "-G", "-W", "-p", str(public), "-s", str(secret)]
    subprocess.run(argv, check=True, capture_output=True)
    signature.sign(file.parent, secret, str)
    done = setup("uml", "--from", address, "--public-key", str(public))
    assert (done.exit_code, image.present() is not None) == (0, True)


def test_an_address_without_a_sum_is_refused_and_nothing_is_fetched(address: str) -> None:
    done = setup("uml", "--from", address.replace("//", "//me:secret@"))
    assert (done.exit_code, image.present()) == (2, None)
    assert "an address needs --sha256 SUM" in " ".join(done.output.split())
    assert "secret" not in done.output


def test_another_sum_is_refused(address: str) -> None:
    done = setup("uml", "--from", address, "--sha256", "0" * 64)
    assert (done.exit_code, image.present()) == (2, None)
    assert "its SHA-256 sum is" in " ".join(done.output.split())


def test_where_nothing_is_the_address_is_named(address: str) -> None:
    done = setup("uml", "--from", f"{address}.old", "--sha256", "0" * 64)
    assert (done.exit_code, image.present()) == (3, None)
    assert "HTTP status 404" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("uml", "--sha256", "0" * 64), "add --from FILE"),
        (("mininet", "--from", "parts.tar.gz"), "provider mininet takes no built parts"),
        (("uml", "--from", "parts.tar.gz"), "cannot be read"),
        (("uml", "--from", "http://127.0.0.1:9/a", "--sha256", "short"), "64 digits"),
    ],
)
def test_what_cannot_be_meant_is_refused(file: Path, words: tuple[str, ...], said: str) -> None:
    done = setup(*words)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
