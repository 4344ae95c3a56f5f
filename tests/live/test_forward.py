"""Connections from this machine to ports of hosts and containers, and commands in containers, in virtual time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from live.conftest import quiet, state_directory, take_down
from live.program import PATIENCE_S, TOPOLOGIES, Program, until
from minigts import lab as labs
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab, relay
from minigts.overlays import Endpoint
from minigts.topology.read.load import load

pytestmark = [
    pytest.mark.touched("tools/minigts/lab/relay.py", "tools/minigts/lab/forwarding.py", "provision/agent"),
    pytest.mark.virtual,
]
PORT = 4711
SIZE_BYTES = 3_000_000
SHOUT = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    said = b"".join(iter(lambda: connection.recv(65536), b""))
    connection.sendall(said.swapcase())
    connection.close()
"""
"""Answers when it has heard all."""


@contextmanager
def server(lab: Lab, host: str, address: str, inside: tuple[str, ...] = ()) -> Iterator[None]:
    """A program on a host that answers on one of its addresses."""
    start = (
        'setsid "$@" >/tmp/shout.log 2>&1 </dev/null & echo $!; until grep -q ready /tmp/shout.log; do sleep 0.1; done'
    )
    words = [*inside, "python3", "-c", SHOUT, address, str(PORT)]
    pid = user_text(
        lab.provider.run(host, ["sh", "-c", f": >/tmp/shout.log; {start}", "sh", *words], timeout_s=120).stdout
    ).strip()
    try:
        yield
    finally:
        lab.provider.run(host, ["sh", "-c", 'kill "$1"; rm /tmp/shout.log', "sh", pid], timeout_s=120, check=False)


@contextmanager
def forwarded(lab: Lab, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`minigts forward`, and the port that it says."""
    started = Program(lab.rundir.parents[1]).start("forward", "--lab", lab.name, *words)
    assert started.stdout is not None
    try:
        address, _, port = started.stdout.readline().strip().rpartition(":")
        assert address == "127.0.0.2"
        yield started, int(port)
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=PATIENCE_S)


def exchange(port: int, content: bytes) -> bytes:
    """What comes back for it, when all of it has been sent."""
    with socket.create_connection(("127.0.0.2", port), 60) as connection:
        sending = threading.Thread(target=lambda: (connection.sendall(content), connection.shutdown(socket.SHUT_WR)))
        sending.start()
        answer = connection.makefile("rb").read()
        sending.join()
        return answer


def relays(lab: Lab, host: str) -> int:
    """How many run there: their text is in their command line. The search does not find itself."""
    assert relay.__doc__ is not None
    begins = f"[{relay.__doc__[0]}]{relay.__doc__[1:30]}"
    count = ["sh", "-c", 'grep -l -- "$0" /proc/[0-9]*/cmdline 2>/dev/null | wc -l', begins]
    return int(user_text(lab.provider.run(host, count, timeout_s=PATIENCE_S).stdout))


def test_a_port_of_a_host_is_reached_whatever_address_it_is_on(lab: Lab) -> None:
    """`bra` answers on its own address alone, as a server that was told one does."""
    content = os.urandom(SIZE_BYTES)
    with server(lab, "bra", lab.plan.host("bra").address), forwarded(lab, f"bra:{PORT}") as (_, port):
        assert exchange(port, content) == content.swapcase()
        assert exchange(port, b"again") == b"AGAIN"
        assert until(lambda: relays(lab, "bra") == 0)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two hosts with a container each."""
    with state_directory(tmp_path_factory.mktemp("state")):
        made = labs.up(load(TOPOLOGIES / "pair.yaml", time="virtual"), "uml", None, quiet)
    overlays.join(made, "vxlan", quiet)
    yield made
    take_down(made)


def end_on(lab: Lab, host: str) -> Endpoint:
    joined = overlays.joined_overlay(lab)
    assert joined is not None
    return joined.endpoints()[host]


def test_a_port_of_a_container_is_reached(pair: Lab) -> None:
    end = end_on(pair, "bra")
    with (
        server(pair, "bra", end.address, end.network),
        forwarded(pair, "--container", f"bra:{PORT}") as (_, port),
    ):
        assert exchange(port, b"hello") == b"HELLO"


def test_in_the_container_are_the_overlays_addresses_and_the_engine_has_a_log(pair: Lab) -> None:
    program, own = Program(pair.rundir.parents[1]), f" {end_on(pair, 'ams').address}/"
    assert own in program.succeeds("exec", "--container", "ams", "--", "ip", "-brief", "-4", "address")
    assert own not in program.succeeds("exec", "ams", "--", "ip", "-brief", "address")
    assert "level=info" in program.succeeds("logs", "ams", "--only", "dockerd")


def test_where_nobody_listens_the_connection_ends_and_it_is_said(lab: Lab) -> None:
    with forwarded(lab, f"mil:{PORT}") as (started, port):
        assert exchange(port, b"") == b""
        assert started.stderr is not None
        said = [started.stderr.readline(), started.stderr.readline()]
        assert said[1] == f"minigts: port {PORT} of mil: Connection refused\n"


def test_ctrl_c_ends_it_and_the_connection_and_the_lab_stands_still(lab: Lab) -> None:
    with server(lab, "ham", "127.0.0.1"), forwarded(lab, f"ham:{PORT}") as (started, port):
        with socket.create_connection(("127.0.0.2", port), 60) as connection:
            connection.sendall(b"half a question")
            assert until(lambda: relays(lab, "ham") == 1)
            started.send_signal(signal.SIGINT)
            assert started.wait(PATIENCE_S) == 130
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert until(lambda: relays(lab, "ham") == 0)
        before_s = lab.provider.now_s()
        assert not until(lambda: lab.provider.now_s() != before_s, patience_s=1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), 5)
