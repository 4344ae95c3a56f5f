"""A Debian archive of a few packages on a loopback address, made by dpkg-deb and signed by a key of its own: what a
mirror may be in a year."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = "Small archive <small@example.org>"


@dataclass(frozen=True)
class Key:
    home: Path
    keyring: Path

    def sign(self, text: str) -> bytes:
        argv = ["gpg", "--homedir", str(self.home), "--batch", "--clearsign"]
        return subprocess.run(argv, input=text.encode(), capture_output=True, check=True).stdout


@contextmanager
def key() -> Iterator[Key]:
    """A key to sign with, for as long as the block runs. In /tmp, for its agent's socket takes a short name."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        home = Path(directory)
        gpg = ["gpg", "--homedir", directory, "--batch", "--quiet"]
        try:
            subprocess.run([*gpg, "--passphrase", "", "--quick-gen-key", NAME, "ed25519", "sign"], check=True)
            subprocess.run([*gpg, "--output", str(home / "keyring.gpg"), "--export"], check=True)
            home.chmod(0o755)
            yield Key(home, home / "keyring.gpg")
        finally:
            subprocess.run(["gpgconf", "--homedir", directory, "--kill", "all"], check=True)


@dataclass(frozen=True)
class Deb:
    package: str
    version: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"pool/{self.package}_{self.version}_amd64.deb"

    def build(self, archive: Path) -> Path:
        """The package in the archive's pool."""
        target = archive / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as directory:
            tree = Path(directory) / "tree"
            (tree / "DEBIAN").mkdir(parents=True)
            tree.chmod(0o755)
            (tree / "DEBIAN").chmod(0o755)
            about = f"Package: {self.package}\nVersion: {self.version}\nArchitecture: amd64\n"
            (tree / "DEBIAN" / "control").write_text(f"{about}Maintainer: {NAME}\nDescription: small\n")
            for name, text in self.files.items():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text(text)
            argv = ["dpkg-deb", "--build", "--root-owner-group", "-Zgzip", str(tree), str(target)]
            # Whenever it is built, it has the same bytes.
            subprocess.run(argv, check=True, capture_output=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1000000000"})
        return target


@dataclass(frozen=True)
class Archive:
    """What lies in a directory, at an address; whole, but for what is removed."""

    directory: Path
    key: Key
    address: str

    def add(self, suite: str, *debs: Deb, ends_in: timedelta = timedelta(days=7)) -> None:
        """A suite of these packages, whose index is good for that long from now."""
        stanzas = "\n".join(self._stanza(deb) for deb in debs)
        place = self.directory / "dists" / suite
        packages = place / "main" / "binary-amd64" / "Packages"
        packages.parent.mkdir(parents=True, exist_ok=True)
        packages.write_text(stanzas)
        now = datetime.now(UTC)
        dates = {"Date": min(now, now + ends_in) - timedelta(days=1), "Valid-Until": now + ends_in}
        lines = [f"Origin: Small\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64\nComponents: main"]
        lines += [f"{name}: {each:%a, %d %b %Y %H:%M:%S} UTC" for name, each in dates.items()]
        lines.append(f"SHA256:\n {_sha256(packages)} {packages.stat().st_size} main/binary-amd64/Packages\n")
        (place / "InRelease").write_bytes(self.key.sign("\n".join(lines)))

    def _stanza(self, deb: Deb) -> str:
        file = deb.build(self.directory)
        control = subprocess.run(["dpkg-deb", "--field", str(file)], check=True, capture_output=True, text=True).stdout
        return f"{control}Filename: {deb.path}\nSize: {file.stat().st_size}\nSHA256: {_sha256(file)}\n"

    def remove(self, path: str) -> None:
        target = self.directory / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    def row(self, deb: Deb, day: str) -> str:
        """A line of a recipe's table of sources, for this package, which is put into the pool."""
        return f"{deb.package} {deb.version} {day} {_sha256(deb.build(self.directory))} {deb.path}\n"


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """The address of what lies in the directory, for as long as the block runs."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(directory))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
