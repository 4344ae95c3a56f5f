"""The cost of one lab's clock on two machines: two processes that keep step over loopback TCP.

Each process stands for a machine's clock. With a message of 64 bytes it tells the other how far the other's time may
pass before a frame of its own can arrive there: the delay of the links between them, the lookahead. Neither passes that
moment. The processes do no other work, so the time of a virtual second is the cost of keeping step. `--network` adds
the round trip of a network.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import time
from typing import Any

from bench import stage
from minigts.cli.views import tables

MESSAGE = bytes(64)
VIRTUAL_S = 10.0


def keep_step(line: socket.socket, windows: int) -> None:
    """Send and receive a message, once for each window."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(windows):
        line.sendall(MESSAGE)
        left = len(MESSAGE)
        while left:
            left -= len(line.recv(left))


def other(port: int, windows: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as line:
        keep_step(line, windows)


def taken_s(windows: int) -> float:
    with socket.create_server(("127.0.0.1", 0)) as server:
        second = multiprocessing.Process(target=other, args=(server.getsockname()[1], windows))
        second.start()
        line, _ = server.accept()
        with line:
            started = time.monotonic()
            keep_step(line, windows)
            seconds = time.monotonic() - started
        second.join()
    return seconds


def row(lookahead_ms: float, network_us: float, runs: int) -> dict[str, Any]:
    windows = round(VIRTUAL_S * 1000 / lookahead_ms)
    found = statistics.median(taken_s(windows) for _ in range(runs)) / VIRTUAL_S
    one_way_s = network_us / 2e6 * 1000 / lookahead_ms
    return {"lookahead_ms": lookahead_ms, "loopback_s": found, "network_s": found + one_way_s}


def main() -> None:
    arguments = stage.parser(__doc__, "chain6.yaml")
    arguments.add_argument("--lookahead", type=float, nargs="+", default=[0.1, 1, 5, 20], metavar="MS")
    arguments.add_argument(
        "--network", type=float, default=200.0, metavar="US", help="the round trip of a network, which is added"
    )
    arguments.add_argument("--runs", type=int, default=7)
    chosen = arguments.parse_args()
    figures = stage.Figures("joined", chosen.topology)
    rows = [row(each, chosen.network, chosen.runs) for each in chosen.lookahead]
    shown = [
        (f"{each['lookahead_ms']:g} ms", f"{1000 * each['loopback_s']:.1f} ms", f"{1000 * each['network_s']:.1f} ms")
        for each in rows
    ]
    columns = ("lookahead", ">on loopback", f">with {chosen.network:g} us of round trip")
    tables.show_table("real time that keeping step takes of each virtual second", columns, shown)
    figures.write(chosen.out, {"rows": rows})


if __name__ == "__main__":
    stage.perform(main)
