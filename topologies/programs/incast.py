"""Incast: one host asks many for a block each at the same time, and asks again when it has all of them.

On each host that answers:  incast.py serve PORT
On the host that asks:      incast.py ask PORT HOST… --bytes 32000 --rounds 20 [--congestion dctcp] [--probes]

The connections stay open for all rounds. Those of Reno use PORT, those of DCTCP PORT + 1, since TCP agrees on ECN when
a connection opens. Before it measures, the host that asks has the others switch tail loss probes (RFC 8985, section 7)
off, or on for `--probes`: `net.ipv4.tcp_early_retrans`. The first round does not count: windows begin anew in it.

`ask` prints one JSON document: `goodput_mbit`, the payload of all rounds over their time, in Mbit/s; `timeouts`, how
often a retransmission timer of the answering hosts expired during these rounds (`TcpExtTCPTimeouts`); `worst_ms`, the
longest round in ms; and `rounds_ms`, all of them.
"""

import argparse
import json
import selectors
import socket
import socketserver
import sys
import threading
import time
from pathlib import Path

CONGESTION = ("reno", "dctcp")
PROBES = Path("/proc/sys/net/ipv4/tcp_early_retrans")
NETSTAT = Path("/proc/net/netstat")
PATIENCE_S = 30.0


def timeouts(netstat: str) -> int:
    """TCPTimeouts of /proc/net/netstat, whose lines are pairs: `TcpExt: TCPTimeouts …`, then `TcpExt: 3 …`."""
    names, values = (line.split() for line in netstat.splitlines() if line.startswith("TcpExt:"))
    return int(values[names.index("TCPTimeouts")])


class Answer(socketserver.StreamRequestHandler):
    """Answers a line each: `give BYTES` with so many bytes, `probes 0` or `probes 3` and `timeouts` with a line."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        for line in self.rfile:
            word, *number = line.decode().split()
            if word == "give":
                self.wfile.write(bytes(int(number[0])))
            elif word == "probes":
                PROBES.write_text(number[0])
                self.wfile.write(b"0\n")
            else:
                self.wfile.write(b"%d\n" % timeouts(NETSTAT.read_text()))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, congestion: str) -> None:
        super().__init__(("", port), Answer, bind_and_activate=False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        self.server_bind()
        self.server_activate()


def serve(port: int) -> None:
    servers = [Server(port + place, congestion) for place, congestion in enumerate(CONGESTION)]
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()


def connected(host: str, port: int, congestion: str) -> socket.socket:
    plug = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    plug.settimeout(PATIENCE_S)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plug.connect((host, port + CONGESTION.index(congestion)))
    return plug


def told(plugs: list[socket.socket], line: str) -> int:
    """The sum of the numbers with which the hosts answer the line, one host after the other."""
    total = 0
    for plug in plugs:
        plug.sendall(line.encode())
        answer = b""
        while not answer.endswith(b"\n"):
            answer += received(plug, 64)
        total += int(answer)
    return total


def received(plug: socket.socket, most: int) -> bytes:
    got = plug.recv(most)
    if not got:
        raise ConnectionError("a host that answers closed its connection")
    return got


def round_s(plugs: list[socket.socket], size: int) -> float:
    """Ask all for `size` bytes each, and return how long it took until the last byte of the last one was there."""
    began = time.monotonic()
    left = dict.fromkeys(plugs, size)
    with selectors.DefaultSelector() as waiting:
        for plug in plugs:
            plug.sendall(b"give %d\n" % size)
            waiting.register(plug, selectors.EVENT_READ)
        while left:
            ready = waiting.select(PATIENCE_S)
            if not ready:
                raise TimeoutError(f"{len(left)} of {len(plugs)} blocks did not come within {PATIENCE_S:g} s")
            for key, _ in ready:
                plug = key.fileobj
                left[plug] -= len(received(plug, 1 << 20))
                if left[plug] <= 0:
                    del left[plug]
                    waiting.unregister(plug)
    return time.monotonic() - began


def summary(rounds_s: list[float], answered: int, expired: int) -> dict[str, object]:
    """What `ask` prints, of rounds in seconds in each of which `answered` bytes came."""
    return {
        "goodput_mbit": round(answered * len(rounds_s) * 8 / sum(rounds_s) / 1e6, 3),
        "timeouts": expired,
        "worst_ms": round(1000 * max(rounds_s), 3),
        "rounds_ms": [round(1000 * each, 3) for each in rounds_s],
    }


def ask(given: argparse.Namespace) -> None:
    plugs = [connected(host, given.port, given.congestion) for host in given.hosts]
    told(plugs, f"probes {3 if given.probes else 0}\n")
    round_s(plugs, given.bytes)
    before = told(plugs, "timeouts\n")
    rounds_s = [round_s(plugs, given.bytes) for _ in range(given.rounds)]
    expired = told(plugs, "timeouts\n") - before
    sys.stdout.write(json.dumps(summary(rounds_s, given.bytes * len(plugs), expired)) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="one host asks many at the same time")
    verbs = parser.add_subparsers(required=True)
    serving = verbs.add_parser("serve")
    serving.add_argument("port", type=int)
    serving.set_defaults(do=lambda given: serve(given.port))
    asking = verbs.add_parser("ask")
    asking.add_argument("port", type=int)
    asking.add_argument("hosts", nargs="+")
    asking.add_argument("--bytes", type=int, default=32_000)
    asking.add_argument("--rounds", type=int, default=20)
    asking.add_argument("--congestion", choices=CONGESTION, default=CONGESTION[0])
    asking.add_argument("--probes", action="store_true")
    asking.set_defaults(do=ask)
    given = parser.parse_args()
    try:
        given.do(given)
    except OSError as error:
        sys.exit(f"incast: {error}")


if __name__ == "__main__":
    main()
