"""A host's way out of the lab, which the supervisor starts: slirp4netns, and a filter of frames in front of it.

slirp4netns turns packets that the host sends into connections of its own. It is confined to these and to few files. It
uses the protocol of a BESS switch (slirp4netns(1), --target-type): each frame is one message on a socket. A kernel
inherits the other end of such a socket, as it does for a link, so a kernel that its guest has taken over gains no right
that other kernels lack.

Between the two runs this module, as `python -m minigts.providers.uml.run.slirp KERNEL STACK`, each the descriptor of
such a socket. It is needed because slirp4netns connects to any address in a frame, and with crafted frames to loopback,
even with --disable-host-loopback (seen with 1.2.0 and libslirp 4.7.0). Standard library only.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from minigts import paths
from minigts.errors import HostFailed
from minigts.machine import contained, shell
from minigts.machine.contained import Namespaces
from minigts.providers.agent import lab_processes, sockets
from minigts.providers.agent.agent_line import SupervisedProcess
from minigts.providers.uml.run import bounds, confinement, system_calls
from minigts.topology.routes.addresses import GATEWAY_NAME_SERVER, GATEWAY_NETWORK

SOCKET, LOG = "out.sock", "gateway.log"
READY_DEADLINE_S = 10.0
LOG_BYTES = 500
RESOLVER = Path("/etc/resolv.conf")
"""Lists the name servers to which the host's DNS requests are passed on."""

ARP, IPV4 = 0x0806, 0x0800
ETHERNET = struct.Struct("!12xH")
"""The Ethernet header (IEEE 802.3), of which only the type is read."""
IP = struct.Struct("!BxxxxxHxB6x4s")
"""The IPv4 header (RFC 791): version and length, flags and fragment offset, protocol, destination."""
PORT = struct.Struct("!2xH")
"""The destination port of TCP and UDP."""
WITHOUT_OPTIONS, FRAGMENT, TCP, UDP, DOMAIN = 0x45, 0x3FFF, 6, 17, 53
BARRED = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")))
"""Barred destinations: this machine, link-local services such as a cloud's metadata, multicast and broadcast."""
LARGEST_FRAME_BYTES = 1 << 16
STACK_PROCESSES, STACK_LOG_BYTES = 8, 16 << 20
"""Limits for slirp4netns, which starts one short-lived process."""


def may_leave(frame: bytes) -> bool:
    """Whether a host's frame may pass to slirp4netns. ARP may: slirp4netns answers it itself."""
    if len(frame) < ETHERNET.size + IP.size:
        return False
    (kind,) = ETHERNET.unpack_from(frame)
    if kind != IPV4:
        return bool(kind == ARP)
    first, fragment, protocol, destination = IP.unpack_from(frame, ETHERNET.size)
    if first != WITHOUT_OPTIONS:
        return False
    to = IPv4Address(destination)
    if str(to) == GATEWAY_NAME_SERVER:  # stands for this machine's name server, which may be on its loopback
        behind = ETHERNET.size + IP.size
        asks = protocol in (TCP, UDP) and not fragment & FRAGMENT and len(frame) >= behind + PORT.size
        return bool(asks and PORT.unpack_from(frame, behind) == (DOMAIN,))
    return not any(to in network for network in BARRED)


def log(rundir: Path, host: str) -> Path:
    """The log of both programs of a host's way out."""
    return rundir / "gateway" / host / LOG


class WayOut:
    """The two programs of a way out, which end with this process, and `end`, the kernel's end of its socket to them."""

    def __init__(self, program: str, rundir: Path, host: str, inside: Namespaces) -> None:
        """Start both programs. Raises HostFailed."""
        self._log = log(rundir, host)
        self._place = self._log.parent
        self._place.mkdir(parents=True, exist_ok=True)
        lab_processes.remove(self._place / SOCKET)
        self.processes: list[SupervisedProcess] = []
        self._inside = inside
        self.end, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        stack = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with kernel, stack, self._log.open("ab") as output:
            self._start_stack(program, rundir, output.fileno())
            self._connect(stack)
            self._start_filter(rundir, output.fileno(), kernel, stack)

    def _start_stack(self, program: str, rundir: Path, output: int) -> None:
        options = ("--target-type=bess", "--disable-host-loopback", "--enable-seccomp", f"--cidr={GATEWAY_NETWORK}")
        confine = confinement.prepare(_rules(self._place), calls=system_calls.STACK)
        bound = bounds.KernelBounds(STACK_LOG_BYTES, STACK_PROCESSES if self._inside.counts_apart else None)

        def hold() -> None:
            bound.enter()
            confine()

        self.processes.append(
            contained.start(
                [program, *options, SOCKET],
                output=output,
                pass_fds=(),
                env={lab_processes.MARK: str(rundir)},
                cwd=self._place,
                inside=self._inside,
                before_exec=hold,
            )
        )

    def _start_filter(self, rundir: Path, output: int, kernel: socket.socket, stack: socket.socket) -> None:
        descriptors = (kernel.fileno(), stack.fileno())
        self.processes.append(
            shell.start(
                [sys.executable, "-P", "-m", __name__, *map(str, descriptors)],
                output=output,
                pass_fds=descriptors,
                env={lab_processes.MARK: str(rundir), "PYTHONPATH": str(paths.import_root())},
                cwd=self._place,
                new_session=False,
                dies_with_parent=True,
            )
        )

    def _connect(self, stack: socket.socket) -> None:
        deadline = time.monotonic() + READY_DEADLINE_S
        while True:
            try:
                sockets.connect(stack, self._place, SOCKET)
            except OSError:
                pass
            else:
                lab_processes.remove(self._place / SOCKET)  # so that no other program connects
                return
            if self.processes[0].poll() is not None or time.monotonic() > deadline:
                said = self._log.read_text(errors="replace")[-LOG_BYTES:].strip()
                raise HostFailed(f"host {self._place.name} has no way out: its program does not answer: {said}")
            time.sleep(0.01)


def _rules(place: Path) -> list[confinement.ConfinementRule]:
    return [
        *map(confinement.may_run, map(Path, ("/usr", "/lib", "/lib64"))),
        *map(confinement.may_read, (Path("/etc"), RESOLVER.resolve().parent)),
        *map(confinement.may_read, map(Path, ("/dev/random", "/dev/urandom"))),
        confinement.may_write(Path("/dev/null")),
        confinement.may_keep_house(place),
    ]


def _carry(source: socket.socket, target: socket.socket, may_pass: Callable[[bytes], bool]) -> None:
    """Carry frames until either end is closed; then end this program."""
    try:
        while frame := source.recv(LARGEST_FRAME_BYTES):
            if may_pass(frame):
                target.send(frame)
    except OSError:
        pass
    os._exit(0)


def main() -> None:
    kernel, stack = (socket.socket(fileno=int(word)) for word in sys.argv[1:3])
    confinement.prepare([], calls=system_calls.FILTER)()
    threading.Thread(target=_carry, args=(stack, kernel, lambda _: True), daemon=True).start()
    _carry(kernel, stack, may_leave)


if __name__ == "__main__":
    main()
