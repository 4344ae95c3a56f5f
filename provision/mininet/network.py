#!/usr/bin/python3
"""Builds a network with Mininet, and runs as long as the network: hosts and switches are this process's children.

Reads JSON in the variable MINIGTS_NETWORK:
{"hosts": [NAME…], "switches": [NAME…], "links": [[NAME, PORT, MAC, NAME, PORT, MAC]…]};
prints JSON {NAME: process id}, the process that holds each machine's namespaces, and continues in the background. It
uses Mininet's API: a topology, a Mininet, nodes and links. These classes differ from Mininet's:

- A node is a forked child that only waits; commands enter its namespaces. Mininet's is a shell on a terminal, with
  several programs each.
- A machine has its own host name, mounts and file system besides its network, so that others do not see what it writes.
- One `ip -batch` makes all links, directly in the machines' namespaces. Mininet runs several programs for each link.
- Addresses, routes and shaping are set later, in the same way as on every provider.

Runs on Debian's mininet package, Python 3.11 or later.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import traceback
from pathlib import Path
from typing import ClassVar

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node, Switch
from mininet.topo import Topo

HOME = Path("/run/minigts-mininet")
"""The directory of machines' files, in memory like all of /run."""
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


class Machine:
    """A mixin for Mininet's nodes that starts the process of a machine and configures nothing."""

    def startShell(self, mnopts: object = None) -> None:
        self.pid = start_machine(self.name)

    def configDefault(self, **params: object) -> None:
        pass


class Host(Machine, Node):
    """A machine that computes."""


class Bridge(Machine, Switch):
    """A machine for Open vSwitch, which provision/switch.sh starts later, as on every provider."""

    def start(self, controllers: object) -> None:
        pass


class Port(Intf):
    """A link's end, which is not configured."""

    def config(self, **params: object) -> dict:
        return {}


class Wire(Link):
    """A veth pair, which `bring_up` makes together with all others."""

    batch: ClassVar[list[str]] = []

    @classmethod
    def makeIntfPair(cls, name1, name2, mac1=None, mac2=None, node1=None, node2=None, deleteIntfs=True) -> None:
        first = f"link add name {name1} address {mac1} netns {node1.pid} type veth"
        cls.batch.append(f"{first} peer name {name2} address {mac2} netns {node2.pid}")

    @classmethod
    def bring_up(cls) -> None:
        batch = "\n".join(cls.batch) + "\n"
        subprocess.run(["ip", "-batch", "-"], input=batch.encode(), check=True, stdout=2)


class Plan(Topo):
    """The network as it was asked for."""

    def build(self, wanted: dict) -> None:
        for name in wanted["hosts"]:
            self.addHost(name)
        for index, name in enumerate(wanted["switches"], 1):
            self.addSwitch(name, dpid=f"{index:016x}", inNamespace=True)
        for one, port1, mac1, other, port2, mac2 in wanted["links"]:
            self.addLink(one, other, intfName1=port1, intfName2=port2, addr1=mac1, addr2=mac2)


def call(result: int) -> None:
    """Raise OSError if a call of the C library has failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source: str, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    arguments = (source.encode(), str(target).encode(), kind.encode(), flags, options.encode())
    call(libc.mount(arguments[0], arguments[1], arguments[2], ctypes.c_ulong(flags), arguments[4]))


def start_machine(name: str) -> int:
    """Start a process in its own namespaces, which ends with this one; return its id when it can be entered."""
    ready, started = os.pipe()
    pid = os.fork()
    if pid == 0:
        be_machine(name, started)
    os.close(started)
    with os.fdopen(ready, "rb") as answer:
        if not answer.read():
            raise ChildProcessError(f"{name} did not start")
    return pid


def be_machine(name: str, started: int) -> None:
    """Never returns."""
    try:
        become_machine(name)
        os.write(started, b"y")
        os.closerange(0, started + 1)
        while True:
            signal.pause()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def become_machine(name: str) -> None:
    call(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    call(libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET))
    mount("none", Path("/"), flags=MS_REC | MS_PRIVATE)
    root = own_root(HOME / name)
    os.chroot(root)
    os.chdir("/root")


def own_root(place: Path) -> Path:
    """Mount an overlay over the kernel's file system, so that what is written stays in the machine."""
    root, upper, work = (place / part for part in ("root", "upper", "work"))
    for directory in (root, upper, work):
        directory.mkdir(parents=True)
    mount("overlay", root, "overlay", options=f"lowerdir=/,upperdir={upper},workdir={work}")
    for shared in ("proc", "dev"):
        mount(f"/{shared}", root / shared, flags=MS_BIND | MS_REC)
    mount("sysfs", root / "sys", "sysfs")  # it shows the interfaces of the namespace that it is mounted in
    mount("/sys/fs/cgroup", root / "sys/fs/cgroup", flags=MS_BIND | MS_REC)
    for own, mode in (("run", "755"), ("tmp", "1777")):
        mount("tmpfs", root / own, "tmpfs", options=f"mode={mode}")
    return root


def go_on_in_background() -> int:
    """Continue in a child; return a descriptor for the line that this process prints before it ends."""
    answer, to_caller = os.pipe()
    if os.fork() != 0:
        os.close(to_caller)
        with os.fdopen(answer, "rb") as said:
            text = said.readline()
        os.write(1, text)
        os._exit(0 if text else 1)
    os.close(answer)
    os.setsid()
    return to_caller


def main() -> None:
    wanted = json.loads(os.environ["MINIGTS_NETWORK"])
    to_caller = go_on_in_background()
    Mininet.inited = True  # else Mininet would change limits of the whole kernel, with a program for each
    Node.isSetup = Switch.isSetup = True  # else Mininet would look for programs that are not used here
    network = Mininet(Plan(wanted=wanted), host=Host, switch=Bridge, link=Wire, intf=Port, controller=None)
    Wire.bring_up()
    network.start()
    os.write(to_caller, json.dumps({node.name: node.pid for node in network.values()}).encode() + b"\n")
    for descriptor in (0, 1, 2, to_caller):
        os.close(descriptor)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
