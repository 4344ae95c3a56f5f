"""Work in a lab's hosts, in virtual time: files to them and back, and commands on all of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from live.program import PATIENCE_S, Program, until
from minigts.lab import Lab, files
from minigts.lab.files import There

pytestmark = pytest.mark.virtual
SIZE_BYTES = 20 << 20
SPREAD_US = 50
"""How far apart in the lab's time programs may begin that are asked for at one moment."""


def program(lab: Lab, *arguments: str) -> str:
    return Program(lab.rundir.parents[1]).succeeds(*arguments)


def test_what_goes_to_a_host_comes_back_by_way_of_another(lab: Lab, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(SIZE_BYTES))
    sent.chmod(0o741)
    first, last = There.of("ams", "/var/tmp/first"), There.of("lon", "/var/tmp/last")
    files.put(lab, sent, first, recursive=False)
    assert files.copy_between_hosts(lab, first, last, recursive=False).size_bytes == SIZE_BYTES
    back = files.get(lab, last, tmp_path / "back", recursive=False).place
    assert back.read_bytes() == sent.read_bytes()
    assert back.stat().st_mode & 0o7777 == 0o741
    mounted = 'mount | grep hostfs | grep -v " on /usr/lib/modules"'  # what its kernel has built in stays
    left = ["sh", "-c", f'ls -A /var/tmp | grep "^\\."; rm /var/tmp/first /var/tmp/last; {mounted}']
    assert lab.provider.run("lon", left, timeout_s=120, check=False).stdout == ""
    assert list((lab.rundir / "shared" / "lon" / "returned").iterdir()) == []


def test_a_copy_takes_next_to_no_time_of_the_lab(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(os.urandom(SIZE_BYTES))
    before_s = lab.provider.now_s()
    files.put(lab, tmp_path / "sent", There.of("bra", "/var/tmp/sent"), recursive=False)
    files.get(lab, There.of("bra", "/var/tmp/sent"), tmp_path / "back", recursive=False)
    assert lab.provider.now_s() - before_s < 0.5


def test_on_all_hosts_it_is_the_same_moment(lab: Lab) -> None:
    said = program(lab, "exec", "--all", "--lab", lab.name, "--", "date", "+%s%N").splitlines()
    moments = {host: int(ns) for host, ns in (line.split() for line in said)}
    assert sorted(moments) == sorted(host.name for host in lab.plan.hosts)
    assert max(moments.values()) - min(moments.values()) < SPREAD_US * 1000


def test_interrupted_on_all_hosts_it_ends_at_once_and_so_do_the_commands(lab: Lab) -> None:
    sleep = ["sh", "-c", "echo begun; exec sleep 5000123"]
    started = Program(lab.rundir.parents[1]).start("exec", "--all", "--lab", lab.name, "--", *sleep)
    assert started.stdout is not None
    assert all(started.stdout.readline().endswith("begun\n") for _ in lab.plan.hosts)
    started.send_signal(signal.SIGINT)
    assert started.wait(PATIENCE_S) == 130
    look = ["pgrep", "-f", "^sleep 5000123$"]
    assert until(lambda: lab.provider.run("lon", look, timeout_s=PATIENCE_S, check=False).code != 0)


def test_the_server_of_a_client_that_is_interrupted_serves_the_next(lab: Lab) -> None:
    ours, port = Program(lab.rundir.parents[1]), "5999"
    program(lab, "exec", "--lab", lab.name, "bra", "--", "iperf3", "-s", "-D", "-p", port, "-I", "/run/served")
    try:
        client = ("exec", "--lab", lab.name, "ams", "--", "iperf3", "-c", "bra", "-p", port, "--forceflush", "-t")
        began = ours.start(*client, "1000")
        assert began.stdout is not None
        assert any("bits/sec" in line for line in began.stdout)
        began.send_signal(signal.SIGINT)
        began.communicate(timeout=PATIENCE_S)
        assert began.returncode == 130
        ours.succeeds(*client, "1")
    finally:
        program(lab, "exec", "--lab", lab.name, "bra", "--", "sh", "-c", 'kill "$(tr -d "\\0" </run/served)"')
