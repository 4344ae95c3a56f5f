"""A guest's root tries to leave its machine: by hostfs, to files of the caller's, of the lab and of its neighbour."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path, PurePosixPath

import pytest

from live.conftest import MakeLab
from live.program import PROJECT, TOPOLOGIES, Program, kernel
from minigts import paths
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.providers.uml.run import confinement
from minigts.topology.time import Time

pytestmark = [pytest.mark.uml, pytest.mark.nightly]

PAIR = """name: confined
hosts: {a: , b: }
links: [{ends: [a, b], rtt: 4ms}]
"""
DOTS = "../" * 40
TRIES = r"""
mkdir -p /mnt/out
for place in "$@"; do
  umount /mnt/out 2>/dev/null
  mount -t hostfs -o "hostfs=$place" none /mnt/out || continue
  ls -A /mnt/out && echo "LISTED $place"
  for file in SECRET .ssh/SECRET disk/disk.cow console.log control.sock plan.json lab.json; do
    there=/mnt/out/$file
    head -c 100 "$there" && echo "READ $place $file"
    echo x >>"$there" && echo "WROTE $place $file"
    truncate -s 1 "$there" && echo "CUT $place $file"
    chmod 777 "$there" && echo "CHMOD $place $file"
    chown 1:1 "$there" && echo "CHOWN $place $file"
    touch -d 2001-01-01 "$there" && [ "$(stat -c %Y "$there")" = 978307200 ] && echo "TOUCHED $place $file"
    ln "$there" "$there.2" && echo "LINKED $place $file"
    mv "$there" "$there.3" && echo "MOVED $place $file"
    rm "$there" && echo "REMOVED $place $file"
  done
  echo x >/mnt/out/made && echo "MADE $place"
  mkdir /mnt/out/directory && echo "MADE $place/"
  ln -s /etc/passwd /mnt/out/symlink && echo "SYMLINK $place"
  mknod /mnt/out/null c 1 3 && echo "DEVICE $place"
done
true
"""
WITHOUT_LANDLOCK = r"""
import ctypes, os, struct, sys
# Load the number; from 444 to 446: ENOSYS, as from a kernel without it; else: allow.
steps = ((0x20, 0, 0, 0), (0x35, 0, 2, 444), (0x25, 1, 0, 446), (6, 0, 0, 0x50026), (6, 0, 0, 0x7FFF0000))
kept = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(kept))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
assert libc.syscall(444, None, 0, 1) == -1
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""An interpreter on a machine whose kernel is too old."""
needs_landlock = pytest.mark.skipif(confinement.version() == 0, reason="this machine's kernel has no Landlock")


def tries(lab: Lab, host: str, places: list[str]) -> str:
    """All that a try to reach these places said, on both streams."""
    argv = ["bash", "-c", f"exec 2>&1\n{TRIES}", "bash", *places]
    return user_text(lab.provider.run(host, argv, timeout_s=60).stdout)


def states(directory: Path) -> dict[str, tuple[int, int, int, int]]:
    """Mode, owner, size and time of modification of all that is there."""
    found = {}
    for path in (directory, *sorted(directory.rglob("*"))):
        state = path.lstat()
        found[str(path)] = (state.st_mode, state.st_uid, state.st_size, 0 if path.is_dir() else state.st_mtime_ns)
    return found


def both_ways(*places: Path) -> list[str]:
    """Each place as it is, which hostfs appends to the directory it begins in, and by way of the root."""
    return [way for place in places for way in (str(place), f"{DOTS}{str(place).lstrip('/')}")]


@needs_landlock
@pytest.mark.parametrize(
    ("provider", "time"),
    [
        ("uml", "real"),
        pytest.param("uml", "virtual", marks=pytest.mark.virtual),
        pytest.param("mininet", "real", marks=pytest.mark.mininet),
    ],
)
def test_root_in_a_guest_reaches_no_file_of_the_callers(
    provider: str, time: Time, make_lab: MakeLab, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    for secret in (home / "SECRET", home / ".ssh" / "SECRET"):
        secret.write_text("the caller's own words")
        secret.chmod(0o600)
    lab = make_lab(PAIR, provider=provider, time=time)
    if provider == "mininet" and (lab.rundir / "control-group").exists():
        pytest.skip("Mininet runs in this machine's own kernel, where root is confined by namespaces alone")
    before = states(home)
    places = both_ways(Path.home(), home, home / ".ssh", lab.rundir, lab.rundir / "hosts", PROJECT)
    places.append(DOTS)  # the root itself; a plain `/` is where hostfs begins, the host's own
    said = tries(lab, "a", places)
    assert [line for line in said.splitlines() if line.split(" ")[0].isupper()] == []
    assert "the caller's own words" not in said
    assert states(home) == before
    refused = [line for line in said.splitlines() if line.startswith("mount: /mnt/out: ") or "not permitted" in line]
    assert len(refused) >= len(places)


@needs_landlock
def test_nor_its_neighbours(make_lab: MakeLab) -> None:
    lab = make_lab(PAIR, time="real")
    other = make_lab(PAIR, "other", time="real")
    neighbours = (lab.rundir / "hosts" / "b", other.rundir / "hosts" / "a", lab.rundir / "shared" / "b")
    lab.provider.run("b", ["sync"], timeout_s=120)
    before = [states(directory) for directory in neighbours]
    said = tries(lab, "a", both_ways(*neighbours))
    assert [line for line in said.splitlines() if line.split(" ")[0].isupper()] == []
    assert [states(directory) for directory in neighbours] == before


@needs_landlock
@pytest.mark.parametrize("time", ["real", pytest.param("virtual", marks=pytest.mark.virtual)])
def test_hostfs_stays_below_its_directory(time: Time, make_lab: MakeLab) -> None:
    """By any way of writing `..`, and by a link: what a guest mounts is its own directory, or nothing. With a slash at
    its end a link that the user has made there is mounted, and shows nothing."""
    lab = make_lab(PAIR, time=time)
    lab.provider.run("a", ["sync"], timeout_s=120)
    shared = lab.rundir / "shared" / "a"
    (shared / "link").symlink_to(lab.rundir)
    before = states(lab.rundir / "hosts" / "b")
    ways = ("..", "../", "./..", "returned/..", "returned/../..", "//..//..", f"{DOTS}proc/self/cwd", "link", "link/")
    script = """
mkdir -p /mnt/out
for way in "$@"; do
  mount -t hostfs -o "hostfs=$way" none /mnt/out && { echo "MOUNTED $way"; ls -A /mnt/out; umount /mnt/out; }
done
mount -t hostfs -o hostfs=returned none /mnt/out && echo its own
"""
    said = user_text(lab.provider.run("a", ["bash", "-c", script, "bash", *ways], timeout_s=60).stdout)
    assert [line for line in said.splitlines() if line != "MOUNTED link/"] == ["its own"]
    assert states(lab.rundir / "hosts" / "b") == before


MODES = r"""
import os, sys
for path in sys.argv[1:]:
    try:
        held = os.open(path, os.O_RDONLY)
    except OSError as error:
        print(path, "opens not:", error)
        continue
    for name, act in (
        ("chmod", lambda: os.fchmod(held, 0)),
        ("chown", lambda: os.fchown(held, 1, 1)),
        ("utime", lambda: os.utime(held, (1, 1))),
        ("setxattr", lambda: os.setxattr(held, "user.x", b"x")),
    ):
        try:
            act()
            print("DONE", name, path)
        except OSError as error:
            print(name, "refused:", error)
"""


@needs_landlock
@pytest.mark.parametrize("time", ["real", pytest.param("virtual", marks=pytest.mark.virtual)])
def test_no_mode_changes_by_what_a_guest_may_open(time: Time, make_lab: MakeLab) -> None:
    """A guest may open what it mounts, and its kernel opens more; neither changes a mode, an owner or a time."""
    lab = make_lab(PAIR, time=time)
    (lab.rundir / "shared" / "a" / "given").write_text("x")
    (lab.rundir / "shared" / "a" / "returned" / "there").write_text("x")
    before = states(lab.rundir / "shared" / "a")
    script = 'mkdir -p /mnt/in && mount -t hostfs none /mnt/in && cd /mnt/in && python3 -c "$0" "$@"'
    places = ("given", ".", "returned", "returned/there")
    said = user_text(lab.provider.run("a", ["bash", "-c", script, MODES, *places], timeout_s=60).stdout)
    assert "DONE" not in said and said.count("refused") == 16, said
    assert states(lab.rundir / "shared" / "a") == before


@needs_landlock
def test_what_is_put_arrives_and_its_place_cannot_be_written_to(make_lab: MakeLab, tmp_path: Path) -> None:
    lab = make_lab(PAIR, time="real")
    (tmp_path / "given").write_bytes(os.urandom(3 << 20))
    lab.provider.put("a", tmp_path / "given", PurePosixPath("/srv/given"))
    kept = user_text(lab.provider.run("a", ["sha256sum", "/srv/given"], timeout_s=120).stdout).split()[0]
    assert kept == hashlib.sha256((tmp_path / "given").read_bytes()).hexdigest()
    script = "mkdir -p /mnt/in && mount -t hostfs none /mnt/in && ! touch /mnt/in/new && ! mkdir /mnt/in/new"
    lab.provider.run("a", ["bash", "-c", script], timeout_s=120)
    assert {path.name for path in (lab.rundir / "shared" / "a").iterdir()} <= {"modules", "returned"}


@needs_landlock
def test_where_files_come_back_it_can_make_files_and_nothing_else(make_lab: MakeLab, tmp_path: Path) -> None:
    lab = make_lab(PAIR, time="real")
    script = f"""
mkdir -p /mnt/back; mount -t hostfs -o hostfs=returned none /mnt/back; cd /mnt/back
echo kept >file; ln -s {tmp_path} link; ln file other; mkfifo pipe; mkdir directory; mknod disk b 8 0; rm -f file
"""
    lab.provider.run("a", ["bash", "-c", script], timeout_s=60, check=False)
    returned = lab.rundir / "shared" / "a" / "returned"
    assert not [path for path in returned.iterdir() if path.is_symlink() or not path.is_file()]
    assert (returned / "file").read_text() == "kept\n"
    lab.provider.get("a", PurePosixPath("/etc/hostname"), tmp_path / "here")
    assert (tmp_path / "here").read_text() == user_text(
        lab.provider.run("a", ["cat", "/etc/hostname"], timeout_s=120).stdout
    )


def test_without_landlock_a_guest_has_no_hostfs_and_put_still_works(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable} -IS{WITHOUT_LANDLOCK}")
    python.chmod(0o755)
    program = Program(tmp_path / "state", python)
    try:
        program.succeeds("up", str(TOPOLOGIES / "pair.yaml"))  # its overlay's scripts are put there
        mount = "grep -w hostfs /proc/filesystems; mount -t hostfs none /mnt 2>&1 || true"
        assert "unknown filesystem type" in program.succeeds("exec", "ams", "--", "bash", "-c", mount)
    finally:
        program.succeeds("down", "--all")


SECRET = {"MINIGTS_DEBIAN_MIRROR": "http://user:word@192.0.2.1/debian"}


@pytest.mark.parametrize("name", ["a space, a comma, quo'te and dou\"ble", "x" * 100])
def test_a_run_directory_and_a_cache_of_any_name(name: str, tmp_path: Path) -> None:
    """They stand in no argument of a kernel, where a comma or a space would part them."""
    cache = tmp_path / f"cache {name}"
    cache.symlink_to(paths.cache_root())
    program = Program(tmp_path / name, environment={"MINIGTS_CACHE": str(cache), "TOKEN": "a", **SECRET})
    try:
        program.succeeds("up", str(TOPOLOGIES / "pair.yaml"))
        assert program.succeeds("exec", "ams", "--", "cat", "/proc/cmdline").count(name) == 0
        environ = Path(f"/proc/{kernel(program, 'pair', 'bra')}/environ").read_bytes()
        assert b"TOKEN=" not in environ
        assert b"MIRROR" not in environ
        program.succeeds("restart", "bra")
        program.succeeds("exec", "ams", "--", "ping", "-c", "1", "bra")
    finally:
        program.succeeds("down", "--all")
