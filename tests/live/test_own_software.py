"""Hosts have what the topology says of one's own software: files, an environment, commands as they start."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.conftest import MakeLab, state_directory
from live.program import Program
from minigts import lab as labs
from minigts import paths
from minigts.errors import HostFailed, InputError
from minigts.foreign import content

pytestmark = pytest.mark.touched(
    "tools/minigts/lab/provisioning.py", "tools/minigts/lab/files.py", "provision/packages"
)

SERVER = """#!/usr/bin/python3
import http.server, os, sys
os.chdir(sys.argv[1])
print("serving", os.environ["WORD"], flush=True)
http.server.HTTPServer(("", 8080), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
LAB = """
name: own
defaults: {host: {environment: {WORD: a word}}}
hosts:
  server:
    files:
      - {source: site, target: /srv/}
      - {source: server.py, target: /usr/local/bin/server, mode: 755}
    run:
      - server /srv/site &
      - until ss --listening --no-header --numeric --tcp | grep :8080; do sleep 0.1; done
  client:
    run: ["until curl --silent --fail --output page server:8080; do sleep 0.1; done"]
links:
  - {ends: [server, client], rtt: 20ms, rate: 50mbit}
"""


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """The file of a lab with a web server and its client."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("a page\n")
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "own.yaml").write_text(LAB)
    return tmp_path / "own.yaml"


@pytest.mark.parametrize(
    "provider",
    [pytest.param("uml", marks=pytest.mark.virtual), pytest.param("mininet", marks=pytest.mark.mininet)],
)
def test_a_program_of_ones_own_serves_its_files_to_another_host(
    make_lab: MakeLab, topology: Path, provider: str
) -> None:
    lab = make_lab(topology, provider=provider)
    assert lab.provider.run("client", ["cat", "page"], timeout_s=120).stdout == "a page\n"
    assert '/1.1" 200 -' in lab.provider.run("server", ["cat", "/var/log/run-1.log"], timeout_s=120).stdout
    assert ":8080" in (lab.rundir / "run" / "server-2.log").read_text()
    said = Program(lab.rundir.parents[1]).succeeds("exec", "--lab", lab.name, "client", "--", "sh", "-c", "echo $WORD")
    assert said == "a word\n"


@pytest.mark.virtual
def test_a_host_that_is_started_again_runs_its_commands_again(make_lab: MakeLab, topology: Path) -> None:
    lab = make_lab(topology)
    with state_directory(topology.parent):
        labs.restart(lab, "server")
    fetch = ["curl", "--silent", "--fail", "server:8080"]
    assert lab.provider.run("client", fetch, timeout_s=120).stdout == "a page\n"


@pytest.mark.virtual
def test_a_command_that_fails_ends_up_and_its_output_is_kept(make_lab: MakeLab, topology: Path) -> None:
    topology.write_text(LAB.replace("server /srv/site &", "server /srv/nowhere"))
    with pytest.raises(HostFailed) as caught:
        make_lab(topology)
    first, *said = str(caught.value).splitlines()
    assert first == f"{topology}:10: hosts.server.run[0]: on host server `server /srv/nowhere` ended with code 1"
    assert said[-1] == "    FileNotFoundError: [Errno 2] No such file or directory: '/srv/nowhere'"
    with state_directory(topology.parent):
        assert labs.all_labs() == []
    kept = topology.parent / "failed" / "own" / "run" / "server-1.log"
    assert kept.read_text().endswith("'/srv/nowhere'\n")


@pytest.mark.virtual
def test_a_host_has_its_packages_and_others_have_not(make_lab: MakeLab) -> None:
    """Fetched the first time, from Debian; then taken from the cache."""
    text = "name: packages\nhosts: {a: {packages: [hello], run: [hello]}, b: }\nlinks: [{ends: [a, b]}]"
    lab = make_lab(text)
    assert (lab.rundir / "run" / "a-1.log").read_text().endswith("# hello\nHello, world!\n")
    assert lab.provider.run("b", ["sh", "-c", "command -v hello"], timeout_s=120, check=False).code != 0
    with state_directory(lab.rundir.parents[1]):
        labs.restart(lab, "a")
    assert lab.provider.run("a", ["hello"], timeout_s=120).stdout == "Hello, world!\n"


BRINGS_ALL = r"""
set -eu
mkdir -p /var/tmp/all/DEBIAN /var/tmp/all/usr/bin /var/tmp/archives
printf 'Package: all-of-them\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: them\n' \
  >/var/tmp/all/DEBIAN/control
for each in $(/usr/lib/command-not-found --names) vim; do
  [ ! -L /usr/local/bin/$each ] || [ -e /usr/bin/$each ] || [ -e /usr/sbin/$each ] || {
    printf '#!/bin/sh\necho the program\n' >/var/tmp/all/usr/bin/$each
    chmod 755 /var/tmp/all/usr/bin/$each
    echo $each
  }
done
dpkg-deb --build /var/tmp/all /var/tmp/archives/all.deb >&2
"""


@pytest.mark.virtual
def test_a_program_that_a_package_brings_wins_over_what_stands_in_for_it(make_lab: MakeLab) -> None:
    lab = make_lab("name: pair\npair: {hosts: [ams, bra], link: {rtt: 10ms}}\n")
    names = content(lab.provider.run("ams", ["bash", "-c", BRINGS_ALL], timeout_s=120).stdout).split()
    assert {"docker-compose", "pip3", "vim", "man"} <= set(names)
    install = (paths.project_root() / "provision/packages/install.sh").read_bytes()
    lab.provider.run("ams", ["bash", "-s", "/var/tmp/archives"], timeout_s=120, stdin=install)
    for name in names:
        found = lab.provider.run("ams", ["bash", "-c", f"{name} --version"], timeout_s=120, check=False)
        assert found.stdout == "the program\n", name
    advice = lab.provider.run("ams", ["bash", "-c", "apt-get install x"], timeout_s=120, check=False)
    assert "packages: [x]" in advice.stderr, "what the image has itself is still advised on"


@pytest.mark.virtual
@pytest.mark.nightly
def test_a_package_that_there_is_not_is_named_with_its_line(make_lab: MakeLab) -> None:
    text = "name: packages\npair: {hosts: [a, b],\n host: {packages: [no-such-package]}}"
    with pytest.raises(InputError, match=r"^test.yaml:3: pair.host.packages\[0\]: Debian has no package 'no-such-"):
        make_lab(text)
