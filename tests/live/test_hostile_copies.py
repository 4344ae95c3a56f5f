"""A host whose root has replaced tar: whatever it sends, a copy gives the other host, and the user, nothing of this
machine's, and no link to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.program import TOPOLOGIES, Program
from minigts.machine import beneath

pytestmark = [pytest.mark.uml, pytest.mark.touched("tools/minigts/providers", "tools/minigts/lab/files.py")]
SECRET = "the user's own words"
EVIL = """
import io, sys, tarfile
made = io.BytesIO()
with tarfile.open(fileobj=made, mode="w") as into:
    for name, kind, leads_to in eval(open("/root/members").read()):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind.encode(), leads_to
        into.addfile(member)
sys.stdout.buffer.write(made.getvalue())
"""
REPLACE = """
[ -e /usr/bin/tar.real ] || mv /usr/bin/tar /usr/bin/tar.real
printf %s "$1" >/root/evil.py
cat >/usr/bin/tar <<'END'
#!/bin/sh
case " $* " in *" -c "*) exec python3 /root/evil.py ;; esac
exec /usr/bin/tar.real "$@"
END
chmod 755 /usr/bin/tar
echo said >/var/log/said.log; echo harmless >/root/notes.txt; mkdir -p /root/d; echo harmless >/root/d/inner
"""
DIRECTORY, LINK = "5", "2"
MEMBERS = {
    "a link in place of the file": [(".", LINK, "{key}")],
    "a link of the file's name": [("./notes.txt", LINK, "{key}")],
    "a link in place of a directory": [(".", LINK, "{secrets}")],
    "the directory replaced": [(".", DIRECTORY, ""), (".", LINK, "{secrets}")],
}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Of a lab in real time with hosts ams and bra, where root in ams has replaced tar."""
    program = Program(tmp_path_factory.mktemp("state"))
    try:
        program.succeeds("up", "--time", "real", "--overlay", "none", str(TOPOLOGIES / "pair.yaml"))
        program.succeeds("exec", "ams", "--", "sh", "-euc", REPLACE, "sh", EVIL)
        yield program
    finally:
        program.run("down", "--all")


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    place = tmp_path / "secrets"
    place.mkdir()
    for name in ("key", "inner.log"):
        (place / name).write_text(SECRET)
    return place


def will_send(program: Program, members: list[tuple[str, str, str]], secrets: Path) -> None:
    here = [(name, kind, leads.format(key=secrets / "key", secrets=secrets)) for name, kind, leads in members]
    program.succeeds("exec", "ams", "--", "sh", "-euc", 'printf %s "$1" >/root/members', "sh", repr(here))


def everything(place: Path) -> dict[str, bytes | str]:
    """All that is there, a link by what it leads to."""
    return {
        str(path.relative_to(place)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in place.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("source", [("ams:notes.txt",), ("-r", "ams:d")])
@pytest.mark.parametrize("kind", MEMBERS)
def test_no_other_host_gets_what_a_link_leads_to_here(
    evil: Program, secrets: Path, kind: str, source: tuple[str, ...]
) -> None:
    will_send(evil, MEMBERS[kind], secrets)
    done = evil.run("cp", *source, "bra:/var/tmp/got")
    look = "! grep -rs user /var/tmp; ls -A /var/tmp"
    assert evil.succeeds("exec", "bra", "--", "sh", "-c", look) == ""
    assert (done.returncode, done.stdout) == (1, "")
    assert "host ams sent no whole archive" in done.stderr


@pytest.mark.parametrize("source", [("ams:notes.txt",), ("-r", "ams:d")])
@pytest.mark.parametrize("kind", MEMBERS)
def test_no_link_of_a_hosts_choice_is_left_here(
    evil: Program, secrets: Path, tmp_path: Path, kind: str, source: tuple[str, ...]
) -> None:
    will_send(evil, MEMBERS[kind], secrets)
    before = everything(tmp_path)
    done = evil.run("cp", *source, str(tmp_path / "got"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "host ams sent no whole archive" in done.stderr
    assert everything(tmp_path) == before


@pytest.mark.parametrize("kind", MEMBERS)
def test_no_log_of_the_users_is_among_a_hosts(evil: Program, secrets: Path, tmp_path: Path, kind: str) -> None:
    will_send(evil, MEMBERS[kind], secrets)
    evil.succeeds("logs", "ams", "--into", str(tmp_path / "logs"))
    found = beneath.texts(tmp_path / "logs" / "ams")
    assert {"console.log", "dmesg.log"} <= set(found)
    assert "inner.log" not in found
    assert SECRET not in "".join(found.values())
    assert SECRET not in evil.succeeds("logs", "ams")


def test_in_a_copied_directory_links_stay_links_and_those_that_lead_out_are_left_out(
    evil: Program, secrets: Path, tmp_path: Path
) -> None:
    links = [("./out", LINK, str(secrets)), ("./same", LINK, "inner"), ("./upwards", LINK, "../secrets/key")]
    will_send(evil, [(".", DIRECTORY, ""), *links], secrets)
    done = evil.run("cp", "-r", "ams:d", str(tmp_path / "got"))
    assert done.returncode == 0
    assert everything(tmp_path / "got") == {"same": "inner"}
    assert "left out 2 links that lead out of the copy: out, upwards" in " ".join(done.stderr.split())
    evil.succeeds("cp", "-r", "ams:d", "bra:/var/tmp/tree")
    said = evil.succeeds("exec", "bra", "--", "sh", "-c", "cd /var/tmp/tree; readlink out same upwards; rm -r ../tree")
    assert said.splitlines() == [str(secrets), "inner", "../secrets/key"]


def test_what_a_host_really_has_is_copied_to_the_other(evil: Program) -> None:
    script = "cd /root; mkdir -p tree/deep; head -c 3000000 /dev/urandom >tree/deep/data; ln -s deep/data tree/data"
    evil.succeeds("exec", "bra", "--", "sh", "-euc", script)
    done = evil.run("cp", "-r", "bra:tree", "ams:/var/tmp/")
    assert (done.returncode, "3.0 MB" in done.stderr) == (0, True), done.stderr
    sums = [
        evil.succeeds("exec", host, "--", "sha256sum", f"{place}/tree/data").split()[0]
        for host, place in (("bra", "/root"), ("ams", "/var/tmp"))
    ]
    assert sums[0] == sums[1]
    evil.succeeds("cp", "bra:/proc/sys/kernel/ostype", "ams:/var/tmp/ostype")
    assert evil.succeeds("exec", "ams", "--", "cat", "/var/tmp/ostype") == "Linux\n"
