"""The process that keeps one SSH connection to the agent on every machine of a lab.

It runs as `python -m minigts.providers.vagrant.ssh_supervisor RUNDIR`, reads RUNDIR/launch.json, and serves
hosts/NAME/control.sock with the same code as the supervisor of provider `uml`. A connection that ends is made again,
since a machine may be halted and brought up. It ends when RUNDIR is deleted.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from minigts import paths
from minigts.language import documents
from minigts.machine import shell
from minigts.providers.agent import lab_processes
from minigts.providers.agent.agent_line import AgentHost
from minigts.providers.agent.own_directory import OwnDirectory

AGENT = "/usr/lib/minigts/agent line"
WINDOW = 1 << 20
"""Bytes that may be on their way to the agent; TCP has its own flow control."""
AGAIN_S = 1.0
SSH_OPTIONS = (
    "BatchMode=yes",
    "IdentitiesOnly=yes",
    "StrictHostKeyChecking=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=10",
    "ServerAliveCountMax=6",
    "Compression=no",
    "LogLevel=ERROR",
    "EscapeChar=none",
)


@dataclass(frozen=True)
class SshLaunch:
    """How every host is reached by SSH."""

    addresses: dict[str, str]
    private_key: str
    known_hosts: str
    known_as: str
    prefix: tuple[str, ...]
    """The words before `ssh` that start it in the right network namespace."""

    @classmethod
    def read(cls, path: Path) -> SshLaunch:
        raw = documents.document(paths.read_whole(path, documents.USUAL.bytes))
        return cls(**{**raw, "prefix": tuple(raw["prefix"])})

    def write(self, path: Path) -> None:
        paths.write_whole(path, json.dumps(asdict(self)))


def start(rundir: Path) -> None:
    """Start the supervisor, detached, so that it outlives this process. The folders hosts/NAME must exist."""
    file = rundir / "ssh_supervisor.log"
    file.touch(mode=0o600)
    with file.open("ab") as log:
        shell.start(
            [sys.executable, "-m", "minigts.providers.vagrant.ssh_supervisor", str(rundir)],
            output=log.fileno(),
            env={"PYTHONPATH": str(paths.import_root()), lab_processes.MARK: str(rundir)},
        )


def ssh(launch: SshLaunch, host: str) -> list[str]:
    """The command that connects its standard input and output to the agent of `host`."""
    options = [
        *SSH_OPTIONS,
        f"UserKnownHostsFile={_option(launch.known_hosts)}",
        f"HostKeyAlias={launch.known_as}",
        f"IdentityFile={_option(launch.private_key)}",
    ]
    words = [word for option in options for word in ("-o", option)]
    return [*launch.prefix, "ssh", "-T", "-F", "none", *words, f"root@{launch.addresses[host]}", AGENT]


def _option(path: str) -> str:
    """A path quoted as one word for an option of SSH, with its per cent signs escaped (ssh_config(5))."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != path or set(path) & set(" '\t") else path


async def _keep(launch: SshLaunch, rundir: Path, name: str, stop: asyncio.Event) -> None:
    path = rundir / "hosts" / name
    while not stop.is_set():
        ours, theirs = socket.socketpair()
        with (path / "ssh.log").open("ab") as log:
            connection = shell.start(
                ssh(launch, name),
                stdin=theirs.fileno(),
                output=theirs.fileno(),
                errors=log.fileno(),
                new_session=False,
                dies_with_parent=True,
            )
        theirs.close()
        host = AgentHost(name, connection, ours, window=WINDOW)
        serving = asyncio.create_task(host.serve(f"hosts/{name}/{paths.CONTROL_SOCKET}"))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        connection.kill()
        await serving
        stopping.cancel()
        connection.wait()
        await asyncio.sleep(0 if stop.is_set() else AGAIN_S)


async def keep(rundir: Path) -> None:
    launch = SshLaunch.read(rundir / lab_processes.LAUNCH)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    watching = asyncio.create_task(OwnDirectory(rundir).wait_until_gone())
    watching.add_done_callback(lambda _: stop.set())
    await asyncio.gather(*(_keep(launch, rundir, name, stop) for name in launch.addresses))
    watching.cancel()


def main() -> None:
    rundir = Path(sys.argv[1])
    os.umask(0o077)  # whoever can connect to a host's socket is root there
    os.chdir(rundir)
    lab_processes.record(rundir)
    asyncio.run(keep(rundir))


if __name__ == "__main__":
    main()
