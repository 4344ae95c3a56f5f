"""What fingers type on a host: the program is there and does its work over a chain in virtual time, or one line says
what to do instead. `tests/unit/cli/test_help_for_fingers.py` has what they type at the prompt of this machine.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import pytest

from live.program import PATIENCE_S, Program
from minigts.lab import Lab
from minigts.overlays import Endpoint

pytestmark = [pytest.mark.touched("provision/image", "tools/minigts/cli/verbs/exec.py"), pytest.mark.virtual]

NC = "nc -l 5001 >/tmp/got & sleep 0.1; echo hello | nc -N ams 5001; wait; cat /tmp/got; rm /tmp/got"
NUTTCP = "nuttcp -S; sleep 0.1; nuttcp -T1 ams"
WG = "ip link add wg9 type wireguard && wg show wg9; ip link delete wg9"
WITHOUT_ENGINE = "unshare --mount sh -c 'mount -t tmpfs none /run; docker ps'"
"""Other tests may have joined an overlay: its engine's socket is hidden."""
RUN_AT_START = "start a program by its own command, and at each start of the host by `run:` in the topology file"
NO_REGISTRY = (
    "this host has no way out of the lab to a registry; put an image into the engine by minigts load IMAGE.tar"
)
OVERLAY = pytest.mark.parametrize("endpoints", ["vxlan"], indirect=True)

THERE = {
    "ip -brief address show lo": "127.0.0.1/8",
    "ifconfig lo": "127.0.0.1",
    "ss --numeric --tcp --all": "Local Address:Port",
    "netstat -rn": "10.255.0.2",
    "ping -c 1 bra": "1 received",
    "tcpdump --version 2>&1": "libpcap version",
    "traceroute -n -w 1 mil": " 2  10.255.0.3 ",
    "mtr --report --report-cycles 1 --no-dns mil": "  2.|-- 10.255.0.3 ",
    "dig -v 2>&1": "DiG ",
    "host -V 2>&1": "host ",
    NC: "hello",
    "echo '{\"a\": [1, 2]}' | jq .a[1]": "2",
    "nano --version": "GNU nano",
    "vi --version": "VIM - Vi IMproved",
    "vim --version": "VIM - Vi IMproved",
    "echo hello | less": "hello",
    "echo hello | pager": "hello",
    NUTTCP: "Mbps",
    "htop --version": "htop ",
    "sudo id -u": "0\n",
    "sudo -u nobody id -un": "nobody\n",
    "sudo FOO=1 sh -c 'echo $FOO'": "1\n",
    "conntrack -L 2>&1": "flow entries have been shown",
    WG: "interface: wg9",
    "docker --version": "Docker version",
}
"""A command line, and a part of what it prints."""

INSTEAD = {
    WITHOUT_ENGINE: (1, "docker: no engine runs on this host; an overlay such as swarm starts one"),
    "docker compose up": (1, "docker: Compose files are for the topology file"),
    "docker-compose up": (1, "docker-compose: Compose files are for the topology file"),
    "apt install nmap": (1, "apt: this host has no way out of the lab; write `packages: [nmap]` for it"),
    "apt-get install -y nmap tmux": (1, "apt-get: this host has no way out of the lab; write `packages: [nmap, tmux]`"),
    "yum install nmap": (1, "yum: this host has no way out of the lab; write `packages: [nmap]` for it"),
    "pip install requests": (1, "pip: this host has no way out of the lab; `packages: [python3-NAME]`"),
    "systemctl start nginx": (1, f"systemctl: hosts have no service manager; {RUN_AT_START}"),
    "service nginx start": (1, f"service: hosts have no service manager; {RUN_AT_START}"),
    "service docker start": (1, "service: the engine belongs to an overlay, which starts and ends it"),
    "hostnamectl": (1, "hostnamectl: hosts have no service manager"),
    "journalctl -f": (1, "journalctl: hosts keep no journal; minigts logs lon shows"),
    "reboot": (1, "reboot: a host is restarted from outside the lab: minigts restart lon"),
    "shutdown now": (1, "shutdown: a host is switched off from outside the lab: minigts kill lon"),
    "poweroff": (1, "poweroff: a host is switched off from outside the lab: minigts kill lon"),
    "minigts status": (1, "minigts: this is a shell on host lon; minigts runs outside the lab"),
    "man ip": (1, "man: hosts have no manual pages"),
    "python -V": (127, "python: command not found; hosts have python3"),
    "nmap mil": (127, "nmap: command not found; `packages: [nmap]` of this host in the topology file brings it"),
    "killall ping": (127, "killall: command not found; `packages: [psmisc]` of this host in the topology file brings"),
    "frobnicate": (127, "frobnicate: command not found; `packages: [PACKAGE]` of this host in the topology file"),
}
"""A command line, its exit code, and the beginning of the last line that it prints."""


@pytest.mark.parametrize(
    ("typed", "said"),
    [pytest.param(*row, id=row[0], marks=pytest.mark.nightly if row[0] == NUTTCP else ()) for row in THERE.items()],
)
def test_a_program_does_what_is_meant(lab: Lab, typed: str, said: str) -> None:
    assert said in lab.provider.run("ams", ["bash", "-c", typed], timeout_s=60).stdout


@pytest.mark.parametrize(("typed", "code", "said"), [(typed, *how) for typed, how in INSTEAD.items()], ids=INSTEAD)
def test_what_a_host_lacks_is_answered_in_a_line(lab: Lab, typed: str, code: int, said: str) -> None:
    """In a shell as `minigts shell` opens it, for which bash sets PS1."""
    shell = ["bash", "-lc", f"PS1=$; . /etc/bash.bashrc; {typed}"]
    done = lab.provider.run("lon", shell, timeout_s=60, check=False)
    assert (done.code, done.stdout) == (code, "")
    assert done.stderr.startswith(said), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("typed", ["apt-get --version", "apt list --installed", "service --status-all"])
def test_what_works_without_a_network_is_left_alone(lab: Lab, typed: str) -> None:
    assert lab.provider.run("ams", ["sh", "-c", typed], timeout_s=60).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nmap", "mil"], "minigts: nmap: command not found; `packages: [nmap]` of this host"),
        (["/usr/bin/nmap"], ""),
        (["sh", "-c", "nmap"], ""),
        (["bash", "-c", "exit 127"], ""),
    ],
)
def test_exec_names_the_key_that_brings_a_program(lab: Lab, words: list[str], told: str) -> None:
    done = Program(lab.rundir.parents[1]).run("exec", "--lab", lab.name, "ams", "--", *words)
    said = [line for line in done.stderr.splitlines() if line.startswith("minigts: ")]
    assert done.returncode == 127
    assert [line[: len(told)] for line in said] == ([told] if told else [])


def test_sudo_leaves_what_follows_it_to_the_shell(lab: Lab) -> None:
    """With a terminal of its own it took the next lines, and the end of the input: the shell never ended."""
    shell = Program(lab.rundir.parents[1]).start("shell", "--lab", lab.name, "ams", stdin=subprocess.PIPE)
    shown, _ = shell.communicate("sudo hostname\nuptime\nexit\n", timeout=PATIENCE_S)
    assert "load average" in shown


DOCKER = {
    "docker ps --format '{{.Names}} {{.Image}}'": (0, "measure minigts/measure\n"),
    "docker exec measure ls /": (0, "usr\n"),
    "docker exec measure cat /etc/hosts": (0, "mil\n"),
    "docker exec measure ping -c 1 mil": (0, "1 received"),
    "docker run --rm minigts/measure cat /etc/protocols": (0, "icmp"),
    "docker run -d --name web --network host minigts/measure sh -c 'echo begun; exec sleep 1000'": (0, "\n"),
    "docker logs web": (0, "begun\n"),
    "docker stop --time 0 web && docker rm web": (0, "web\n"),
    "docker images": (0, "minigts/measure"),
    "docker logs measure": (1, "docker: container measure is the overlay's own, whose servers print nothing"),
    "docker run --rm nginx": (125, f"docker: {NO_REGISTRY}"),
    "docker pull nginx": (1, f"docker: {NO_REGISTRY}"),
    "docker compose up": (1, "docker: Compose files are for the topology file: `compose: FILE` of a host"),
}
"""In this order: a command line on a host of an overlay, its exit code, and a part of what it prints."""


@OVERLAY
@pytest.mark.parametrize(("typed", "code", "said"), [(typed, *how) for typed, how in DOCKER.items()], ids=DOCKER)
@pytest.mark.usefixtures("endpoints")
def test_docker_is_that_of_the_engine(lab: Lab, typed: str, code: int, said: str) -> None:
    done = lab.provider.run("ams", ["bash", "-c", typed], timeout_s=120, check=False)
    assert (done.code, said in done.stdout + done.stderr) == (code, True), done


@OVERLAY
def test_a_measuring_container_knows_the_others_by_their_hosts_names(
    lab: Lab, endpoints: Mapping[str, Endpoint]
) -> None:
    known = "127.0.0.1 localhost\n" + "".join(f"{end.address} {host}\n" for host, end in endpoints.items())
    for host, end in endpoints.items():
        argv = [*end.prefix, "cat", "/etc/hosts"]
        assert lab.provider.run(host, argv, timeout_s=60).stdout == known


@OVERLAY
def test_status_shows_the_addresses_of_the_measuring_containers(lab: Lab, endpoints: Mapping[str, Endpoint]) -> None:
    shown = Program(lab.rundir.parents[1]).succeeds("status", "--lab", lab.name)
    assert "host\tlocation\taddress\tmeasuring container\tstate" in shown
    for host, end in endpoints.items():
        address = lab.plan.host(host).address
        assert f"\t{address}\t{end.address}\t" in shown


@OVERLAY
def test_exec_in_a_container_says_where_more_programs_are(lab: Lab, endpoints: Mapping[str, Endpoint]) -> None:
    done = Program(lab.rundir.parents[1]).run("exec", "--lab", lab.name, "--container", "ams", "--", "tcpdump")
    assert endpoints and done.returncode == 127
    assert done.stderr.splitlines()[-1] == (
        "minigts: a container has the programs of its image; a host has more: minigts exec ams -- tcpdump"
    )
