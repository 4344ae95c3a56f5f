"""A host's way out, to a network of the test's own: nothing here reaches the network that this machine is in.

The lab runs in a network namespace that has no route but to a second one. There a web server is all that answers.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from live.program import PATIENCE_S, PROJECT, Program, Traces, processes_of, until
from minigts.providers import gateway

pytestmark = [
    pytest.mark.touched("tools/minigts/providers/gateway.py", "tools/minigts/providers/uml/run/slirp.py"),
    pytest.mark.uml,
    pytest.mark.skipif(gateway.program() is None, reason=f"no {gateway.PROGRAM} here"),
]

TOPOLOGY = """
name: out
time: real
hosts: {ams: {gateway: true}, bra: }
links: [{ends: [ams, bra], rtt: 4ms}]
"""
OUTSIDE, INSIDE, PORT = "198.51.100.1", "198.51.100.2", 8000
"""TEST-NET-2 (RFC 5737): the server's address, and that of the lab's namespace."""
NAMESPACES = """
set -eu
ip link set lo up
unshare --net sleep 3600 &
other=$!
servers=$other
trap 'kill $servers' EXIT
until [ "$(readlink "/proc/$other/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add inside type veth peer name outside netns "$other"
ip address add "$INSIDE/24" dev inside
ip link set inside up
over() { nsenter --target "$other" --net "$@"; }
over ip link set lo up
over ip address add "$OUTSIDE/24" dev outside
over ip link set outside up
cd "$WEB"
nsenter --target "$other" --net "$PYTHON" -m http.server "$PORT" --bind "$OUTSIDE" >../outside.log 2>&1 &
servers="$servers $!"
"$PYTHON" -m http.server "$PORT" --bind 127.0.0.1 >../loopback.log 2>&1 &
servers="$servers $!"
answers() { (exec 3<>"/dev/tcp/$1/$PORT") 2>/dev/null; }
until answers "$OUTSIDE" && answers 127.0.0.1; do sleep 0.1; done
echo $$
cat
"""
"""Stays until its input ends. It says its process id."""
KNOCK = """
import socket, struct, sys
def total(data):
    number = sum(struct.unpack(f"!{len(data) // 2}H", data))
    number = (number >> 16) + (number & 0xFFFF)
    return ~(number + (number >> 16)) & 0xFFFF
line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
line.bind(("gateway", 0))
line.settimeout(3)
own = line.getsockname()[4]
source, target, port = socket.inet_aton("169.254.77.100"), socket.inet_aton(sys.argv[1]), int(sys.argv[2])
segment = struct.pack("!HHIIBBHHH", 41000, port, 1, 0, 5 << 4, 2, 65535, 0, 0)
summed = total(source + target + struct.pack("!BBH", 0, 6, len(segment)) + segment)
segment = segment[:16] + struct.pack("!H", summed) + segment[18:]
header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0, 64, 6, 0) + source + target
header = header[:10] + struct.pack("!H", total(header)) + header[12:]
line.send(bytes.fromhex(sys.argv[3].replace(":", "")) + own + b"\\x08\\x00" + header + segment)
try:
    while True:
        frame = line.recv(2000)
        if frame[26:30] == target and frame[23] == 6 and frame[36:38] == struct.pack("!H", 41000):
            print("opened" if frame[47] == 0x12 else "closed")
            break
except TimeoutError:
    print("silence")
"""
"""Asks for a connection by a frame made for it, which the host's own kernel might not send: ADDRESS PORT MAC."""


@dataclass(frozen=True)
class Inside:
    """The program in the lab's namespace."""

    program: Program
    enter: tuple[str, ...]
    web: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        argv = [*self.enter, str(self.program.python), "-P", "-m", "minigts", *words]
        return subprocess.Popen(
            argv,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        started = self.start(*words)
        said, complained = started.communicate(timeout=240)
        return started.returncode, said, complained

    @property
    def asked_on_loopback(self) -> str:
        """What the server there has been asked for."""
        return (self.web.parent / "loopback.log").read_text()

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "PYTHONPATH": str(PROJECT / "tools"), "MINIGTS_STATE": str(self.program.state)}


@pytest.fixture
def inside(program: Program, tmp_path: Path) -> Iterator[Inside]:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "index.html").write_text("a page\n")
    (tmp_path / "out.yaml").write_text(TOPOLOGY)
    plain = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    settings = {"INSIDE": INSIDE, "OUTSIDE": OUTSIDE, "PORT": str(PORT), "WEB": str(tmp_path / "web")}
    with subprocess.Popen(
        ["unshare", *plain, "--net", "bash", "-c", NAMESPACES],
        env={**os.environ, **settings, "PYTHON": "/usr/bin/python3"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        if not (pid := holder.stdout.readline().strip()):
            pytest.skip("no network namespaces here")
        enter = ["nsenter", "--target", pid, "--net", *(["--user", "--preserve-credentials"] if plain else [])]
        try:
            yield Inside(program, tuple(enter), tmp_path / "web")
        finally:
            program.run("down", "--all")
            holder.communicate(timeout=PATIENCE_S)


def curl(inside: Inside, host: str, address: str) -> tuple[int, str]:
    code, said, _ = inside.run("exec", host, "--", "curl", "-s", "-m", "60", f"http://{address}:{PORT}/")
    return code, said


def knock(inside: Inside, address: str) -> str:
    shown = inside.run("exec", "ams", "--", "ip", "neighbour", "show", "dev", "gateway")[1]
    mac = re.search("lladdr ([0-9a-f:]+)", shown)
    assert mac is not None, shown
    return inside.run("exec", "ams", "--", "python3", "-c", KNOCK, address, str(PORT), mac[1])[1].strip()


def test_the_host_gets_out_and_no_other_and_nobody_gets_at_loopback(inside: Inside, tmp_path: Path) -> None:
    code, _, said = inside.run("up", str(tmp_path / "out.yaml"))
    assert code == 0, said
    assert "lab out has a way out to the networks of this machine, through ams" in said
    assert curl(inside, "ams", OUTSIDE) == (0, "a page\n")
    assert curl(inside, "bra", OUTSIDE) == (7, "")
    assert knock(inside, OUTSIDE) == "opened"
    before = inside.asked_on_loopback
    assert {knock(inside, address) for address in ("127.0.0.1", "0.0.0.0", "169.254.77.2", "169.254.77.3")} == {
        "silence"
    }
    assert inside.asked_on_loopback == before
    code, _, said = inside.run("restart", "ams")
    assert code == 0, said
    assert curl(inside, "ams", OUTSIDE) == (0, "a page\n")


def stacks(inside: Inside) -> list[int]:
    """Process ids of the lab's slirp4netns."""
    found = []
    for pid in processes_of(inside.program.state):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(gateway.PROGRAM.encode()):
            found.append(pid)
    return found


@pytest.mark.nightly
def test_an_up_that_is_killed_leaves_nothing_once_it_is_down(inside: Inside, tmp_path: Path) -> None:
    traces = Traces.before(inside.program.state)
    started = inside.start("up", str(tmp_path / "out.yaml"))
    assert until(lambda: stacks(inside) != [])
    traces.look()
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=PATIENCE_S)
    inside.program.succeeds("down", "out")
    assert traces.left() == []


@pytest.mark.nightly
def test_it_goes_with_the_lab_s_supervisor(inside: Inside, tmp_path: Path) -> None:
    code, _, said = inside.run("up", str(tmp_path / "out.yaml"))
    assert code == 0, said
    (stack,) = stacks(inside)
    parent = int(Path(f"/proc/{stack}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert until(lambda: stacks(inside) == [])


def test_without_a_way_out_no_program_for_it_runs(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "out.yaml").write_text(TOPOLOGY.replace("gateway: true", "gateway: false"))
    code, _, said = inside.run("up", str(tmp_path / "out.yaml"))
    assert code == 0, said
    assert "way out" not in said
    assert stacks(inside) == []
    assert curl(inside, "ams", OUTSIDE) == (7, "")
