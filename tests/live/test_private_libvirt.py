"""A libvirt of minigts' own is root's alone: its socket is all that another user needs to become root."""

from __future__ import annotations

import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import state_directory
from live.other_user import free_id
from minigts.providers.vagrant import private_libvirt

LIMIT_S = 60.0
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(private_libvirt.missing()), reason="; ".join(private_libvirt.missing())),
]
CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
    except PermissionError:
        continue
    print(path)
"""


@pytest.fixture(scope="module")
def libvirt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its directory, in one that anybody may enter."""
    place = tmp_path_factory.mktemp("state")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    with state_directory(place):
        private_libvirt.start()
        try:
            yield private_libvirt.directory()
        finally:
            private_libvirt.stop()


def sockets(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]


def test_its_directory_and_sockets_are_its_owners_alone(libvirt: Path) -> None:
    paths = [libvirt, *libvirt.iterdir(), *sockets(libvirt)]
    assert {path.name for path in paths} >= {
        "libvirt",
        "run",
        "pool",
        "libvirt-sock",
        "libvirt-sock-ro",
        "virtlogd-sock",
    }
    assert {str(path): oct(path.lstat().st_mode & 0o777) for path in paths if path.lstat().st_mode & 0o077} == {}


@pytest.mark.parametrize("inside", [False, True])
def test_no_other_user_gets_at_a_socket(libvirt: Path, *, inside: bool) -> None:
    """From without, where the directory is shut; and from within its namespaces, where it lies at /run/libvirt."""
    found = [str(path) for path in sockets(libvirt)]
    with state_directory(libvirt.parent):
        keeper = private_libvirt.keeper()
    assert keeper is not None
    prefix: tuple[str, ...] = ()
    if inside:
        prefix = ("nsenter", "--target", str(keeper), "--mount")
        found = [f"/run/libvirt/{Path(path).relative_to(libvirt / 'run')}" for path in found if "/run/" in path]
    assert len(found) >= 4
    number = str(free_id())
    nobody = ("setpriv", "--reuid", number, "--regid", number, "--clear-groups")
    argv = [*prefix, *nobody, "/usr/bin/python3", "-ISc", CONNECT, *found]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_its_owner_gets_at_it(libvirt: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(libvirt / "run" / "libvirt-sock"))
