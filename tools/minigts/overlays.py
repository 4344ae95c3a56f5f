"""Overlays: which script, on which host, in which order, with which environment.

An overlay is a folder under provision/overlays with five scripts, each of which may be run again, in this order:

- install.sh  on all hosts at once: programs and daemons
- join.sh     on the leader (the first host), then on the others at once; the leader's `KEY=VALUE` lines on stdout
              become the others' environment
- start.sh    likewise: the measuring container, with netserver (12865) and iperf3 (5201) listening; prints
              ADDRESS, MTU and, where there is a container, ENTER: a process id in it
- reach.sh    (one for all overlays) on all hosts at once: waits until PEERS, all other ADDRESSes, answer
- verify.sh   proves the data path to PEER, another host's ADDRESS; prints ENCAPSULATION
- leave.sh    on all hosts at once: nothing of the overlay remains

Every script sees MINIGTS_HOST, MINIGTS_ADDRESS, MINIGTS_INDEX, MINIGTS_LEADER (an address) and MINIGTS_HOSTS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

from minigts import paths
from minigts.errors import InputError, MinigtsError
from minigts.lab import Lab, Progress
from minigts.topology.plan import Host

UNDERLAY = "none"
IN_HOST = PurePosixPath("/run/minigts")
PHASE_TIMEOUT_S = 180.0
ENTER = ("nsenter", "--all", "--root", "--wd", "--target")


@dataclass(frozen=True)
class Endpoint:
    """Where an overlay can be measured from and to, on one host.

    `prefix` in front of a command runs it in the measuring container; `mtu` is the overlay interface's, in bytes.
    """

    host: str
    address: str
    mtu: int
    prefix: tuple[str, ...]


class Joined(BaseModel):
    """overlay.json in the run directory: the overlay that is up, with what its scripts said on each host."""

    model_config = ConfigDict(extra="forbid")

    name: str
    said: dict[str, dict[str, str]]
    """KEY=VALUE lines of start.sh by host; empty while the overlay is being joined."""

    def endpoints(self) -> dict[str, Endpoint]:
        return {host: _endpoint(host, said) for host, said in self.said.items()}


def known() -> tuple[str, ...]:
    """Names of the overlays there are, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in _scripts().glob("*/join.sh")))


def joined(lab: Lab) -> Joined | None:
    """What is joined on this lab now."""
    try:
        return Joined.model_validate_json((lab.rundir / "overlay.json").read_text())
    except (OSError, ValidationError):
        return None


def join(lab: Lab, name: str, progress: Progress) -> dict[str, Endpoint]:
    """Lay overlay `name` over the lab, in place of the one that is there; return where it can be measured.

    Raises InputError for an overlay that is not there, CommandFailed when a script fails.
    """
    if name not in known():
        raise InputError(f"no overlay {name!r}; overlays are {', '.join(known())}")
    before = joined(lab)
    if before is not None and before.name == name and before.said:
        return before.endpoints()
    if before is not None:
        leave(lab, progress)
    _put_scripts(lab, name)
    # Written before the first script runs: a join that breaks off half-way can be left.
    _write(lab, Joined(name=name, said={}))
    progress(f"{name}: installing on {len(lab.plan.hosts)} hosts")
    _on_all(lab, name, "install", {})
    progress(f"{name}: joining")
    _leader_first(lab, name, "join")
    progress(f"{name}: starting the measuring ends")
    said = _leader_first(lab, name, "start")
    _wait_until_connected(lab, name, said)
    now = Joined(name=name, said=said)
    _write(lab, now)
    return now.endpoints()


def verify(lab: Lab, progress: Progress) -> dict[str, dict[str, str]]:
    """Prove the data path of what is joined, from every host to the next in the file; what each host said of it."""
    now = joined(lab)
    if now is None or not now.said:
        raise MinigtsError(f"no overlay is joined on lab {lab.name}")
    progress(f"{now.name}: verifying the data path")
    hosts = [host.name for host in lab.plan.hosts]
    peers = dict(zip(hosts, [*hosts[1:], hosts[0]], strict=True))
    said = {host: {**now.said[host], "PEER": now.said[peers[host]]["ADDRESS"]} for host in hosts}
    return lab.on_every_host(lambda host: _run(lab, f"{now.name}/verify.sh", host, said[host.name]))


def leave(lab: Lab, progress: Progress) -> None:
    """Take the overlay that is joined, or was being joined, off the lab."""
    now = joined(lab)
    if now is None:
        return
    progress(f"{now.name}: leaving")
    _on_all(lab, now.name, "leave", {})
    (lab.rundir / "overlay.json").unlink()


def _wait_until_connected(lab: Lab, name: str, said: Mapping[str, Mapping[str, str]]) -> None:
    """Every end reaches every other; the plain hosts of a lab in mode neighbours never will."""
    if name == UNDERLAY and lab.plan.routing == "neighbours":
        return

    def wait(host: Host) -> None:
        peers = " ".join(other["ADDRESS"] for peer, other in said.items() if peer != host.name)
        _run(lab, "reach.sh", host, {**said[host.name], "PEERS": peers})

    lab.on_every_host(wait)


def _endpoint(host: str, said: Mapping[str, str]) -> Endpoint:
    enter = (*ENTER, said["ENTER"], "--") if "ENTER" in said else ()
    return Endpoint(host, said["ADDRESS"], int(said["MTU"]), enter)


def _scripts() -> Path:
    return paths.project_root() / "provision" / "overlays"


def _put_scripts(lab: Lab, name: str) -> None:
    """The overlay's own folder and what its scripts source, placed relative to each other as they are here."""
    shared = [_scripts().parent / "lib.sh", *_scripts().glob("*.sh")]

    def put(host: Host) -> None:
        for path in shared:
            lab.provider.put(host.name, path, IN_HOST / path.relative_to(_scripts().parent))
        lab.provider.put(host.name, _scripts() / name, IN_HOST / "overlays" / name)

    lab.on_every_host(put)


def _on_all(lab: Lab, name: str, phase: str, said: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return lab.on_every_host(lambda host: _run(lab, f"{name}/{phase}.sh", host, said))


def _leader_first(lab: Lab, name: str, phase: str) -> dict[str, dict[str, str]]:
    leader = lab.plan.hosts[0]
    said = _run(lab, f"{name}/{phase}.sh", leader, {})

    def follow(host: Host) -> dict[str, str]:
        return said if host == leader else _run(lab, f"{name}/{phase}.sh", host, said)

    return lab.on_every_host(follow)


def _run(lab: Lab, script: str, host: Host, said: Mapping[str, str]) -> dict[str, str]:
    """Run one script on one host; its KEY=VALUE lines."""
    environment = {
        **said,
        "MINIGTS_HOST": host.name,
        "MINIGTS_ADDRESS": host.address,
        "MINIGTS_INDEX": str(host.index),
        "MINIGTS_LEADER": lab.plan.hosts[0].address,
        "MINIGTS_HOSTS": " ".join(other.name for other in lab.plan.hosts),
    }
    settings = [f"{key}={value}" for key, value in environment.items()]
    argv = ["env", *settings, str(IN_HOST / "overlays" / script)]
    result = lab.provider.run(host.name, argv, timeout_s=PHASE_TIMEOUT_S)
    lines = [line.partition("=") for line in result.stdout.splitlines() if "=" in line]
    return {key: value for key, _, value in lines}


def _write(lab: Lab, content: Joined) -> None:
    temporary = lab.rundir / "overlay.json.new"
    temporary.write_text(content.model_dump_json(indent=1) + "\n")
    temporary.rename(lab.rundir / "overlay.json")
